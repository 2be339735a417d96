package metadata

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// maxPartitionsPerRequest bounds how much one request can add; Kafka's bound is
// 10,000 records. Beyond it POLICY_VIOLATION, as there.
const maxPartitionsPerRequest = 100_000

// createTopics serves CreateTopics 0-7: v1 validate_only and messages, v4
// defaults by -1 (accepted in all versions), v5 configs in the reply, v7 ids.
func (c *Controller) createTopics(req *kmsg.CreateTopicsRequest) (*kmsg.CreateTopicsResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	resp.Topics = make([]kmsg.CreateTopicsResponseTopic, 0, len(req.Topics))
	names := make(map[string]int, len(req.Topics))
	for i := range req.Topics {
		names[req.Topics[i].Topic]++
	}
	job := creation{c: c, def: c.cfg.Defaults(c.img()), version: req.Version, spellings: map[string]string{}, ids: map[kafka.TopicID]bool{}}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewCreateTopicsResponseTopic()
		out.Topic, out.NumPartitions, out.ReplicationFactor = t.Topic, -1, -1
		if n := names[t.Topic]; n == 0 {
			continue // a name given twice is answered once
		} else if n > 1 {
			names[t.Topic] = 0
			out.ErrorCode, out.ErrorMessage = fail(kafka.ErrInvalidRequest, "Duplicate topic name.").parts()
		} else {
			out.ErrorCode, out.ErrorMessage = job.create(t, &out).parts()
		}
		if out.ErrorCode != 0 {
			out.Configs = []kmsg.CreateTopicsResponseTopicConfig{} // empty, as Kafka's, not null
		}
		resp.Topics = append(resp.Topics, out)
	}
	if req.ValidateOnly {
		return resp, nil // with the ids that were not given, as Kafka answers
	}
	return resp, job.records
}

// creation is one CreateTopics request at work.
type creation struct {
	c         *Controller
	def       Defaults
	version   int16
	records   []Record
	added     int
	spellings map[string]string // collisionKey -> name, of this request
	ids       map[kafka.TopicID]bool
	placer    *placer
}

func (j *creation) create(t *kmsg.CreateTopicsRequestTopic, out *kmsg.CreateTopicsResponseTopic) *failure {
	c := j.c
	if t.Topic == metadataTopic {
		return fail(kafka.ErrInvalidRequest, "Creation of internal topic %s is prohibited.", metadataTopic)
	}
	if why := CheckTopicName(t.Topic); why != "" {
		return &failure{kafka.ErrInvalidTopicException, why}
	}
	if _, ok := c.img().Topic(t.Topic); ok {
		return fail(kafka.ErrTopicAlreadyExists, "Topic '%s' already exists.", t.Topic)
	}
	key := collisionKey(t.Topic)
	if key != "" {
		clash := j.spellings[key]
		if names, ok := c.img().collisions.get(key); ok {
			clash = strings.Join(names, ", ")
		}
		if clash != "" {
			return fail(kafka.ErrInvalidTopicException, "Topic '%s' collides with existing topic: %s", t.Topic, clash)
		}
	}
	set, f := c.creationConfigs(t)
	if f != nil {
		return f
	}
	var ps []Partition
	if len(t.ReplicaAssignment) > 0 {
		ps, f = j.assigned(t)
	} else {
		ps, f = j.placed(t)
	}
	if f != nil {
		return f
	}
	if j.added += len(ps); j.added > maxPartitionsPerRequest {
		return fail(kafka.ErrPolicyViolation, "Excessively large number of partitions per request.")
	}
	id := j.newID()
	j.records = append(j.records, &TopicRecord{Name: t.Topic, ID: id, Partitions: ps})
	if len(set) > 0 {
		j.records = append(j.records, &ConfigRecord{Key: ConfigKey{TopicConfig, t.Topic}, Set: set})
	}
	if key != "" {
		j.spellings[key] = t.Topic
	}
	out.TopicID = id
	out.NumPartitions = int32(len(ps))
	out.ReplicationFactor = int16(len(ps[0].Replicas))
	if j.version >= 5 && c.cfg.Rules != nil {
		out.Configs = c.cfg.Rules.TopicConfigs(c.img(), set)
	}
	return nil
}

// newID makes an id that is free. As in Kafka no id reads like a command-line
// flag, and the first two are never given: they stand for none and for the
// metadata log.
func (j *creation) newID() kafka.TopicID {
	for range 1000 {
		id := j.c.cfg.NewID()
		if id.IsZero() || id == (kafka.TopicID{15: 1}) || id.String()[0] == '-' {
			continue
		}
		if _, taken := j.c.img().TopicByID(id); !taken && !j.ids[id] {
			j.ids[id] = true
			return id
		}
	}
	panic("BUG: 1000 new topic ids in a row were taken")
}

// placed lets the placer choose; -1 stands for the defaults.
func (j *creation) placed(t *kmsg.CreateTopicsRequestTopic) ([]Partition, *failure) {
	factor, n := t.ReplicationFactor, t.NumPartitions
	if factor < -1 || factor == 0 {
		return nil, fail(kafka.ErrInvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	}
	if n < -1 || n == 0 {
		return nil, fail(kafka.ErrInvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	if factor == -1 {
		factor = j.def.ReplicationFactor
	}
	if n == -1 {
		n = j.def.Partitions
	}
	if int(n) > maxPartitionsPerRequest-j.added {
		return nil, fail(kafka.ErrPolicyViolation, "Excessively large number of partitions per request.")
	}
	// One placer for the request: its topics go on where the last one stopped.
	if j.placer == nil {
		j.placer = newPlacer(j.c.img().brokers, j.c.cfg.Rand)
	}
	return j.c.placeAll(j.placer, int(n), int(factor))
}

// placeAll makes n partitions. On one broker they all share one replica list.
func (c *Controller) placeAll(p *placer, n, factor int) ([]Partition, *failure) {
	if why := p.check(factor); why != "" {
		return nil, fail(kafka.ErrInvalidReplicationFactor, "Unable to replicate the partition %d time(s): %s", factor, why)
	}
	ps := make([]Partition, n)
	for i := range ps {
		if i > 0 && len(p.active) == 1 {
			ps[i] = ps[0]
			continue
		}
		ps[i], _ = c.fresh(p.place(factor)) // the leader is active: never without ISR
	}
	return ps, nil
}

// assigned takes the replica lists from the request.
func (j *creation) assigned(t *kmsg.CreateTopicsRequestTopic) ([]Partition, *failure) {
	if t.ReplicationFactor != -1 {
		return nil, fail(kafka.ErrInvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if t.NumPartitions != -1 {
		return nil, fail(kafka.ErrInvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byIndex := make(map[int32]Partition, len(t.ReplicaAssignment))
	factor := 0
	for i := range t.ReplicaAssignment {
		a := &t.ReplicaAssignment[i]
		if _, dup := byIndex[a.Partition]; dup {
			return nil, fail(kafka.ErrInvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		replicas := brokerIDs(a.Replicas)
		if f := j.c.checkReplicas(replicas, factor); f != nil {
			return nil, f
		}
		factor = len(replicas)
		p, ok := j.c.fresh(replicas)
		if !ok {
			return nil, fail(kafka.ErrInvalidReplicaAssignment,
				"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", a.Partition)
		}
		byIndex[a.Partition] = p
	}
	ps := make([]Partition, len(byIndex))
	for i := range ps {
		p, ok := byIndex[int32(i)]
		if !ok {
			return nil, fail(kafka.ErrInvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
		ps[i] = p
	}
	return ps, nil
}
