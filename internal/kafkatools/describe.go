package kafkatools

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicState is a topic as kafka-topics shows it.
type topicState struct {
	name       string
	id         [16]byte
	partitions []partitionState // by number
}

type partitionState struct {
	partition, leader int32 // leader is -1 without one
	replicas, isr     []int32
	elr, lastElr      string // as shown: ids, or N/A where the cluster does not tell
	moving            bool
	adding, removing  []int32
}

// setting is one config of a topic, broker or group, as described.
type setting struct {
	name     string
	value    *string // nil: hidden
	source   kmsg.ConfigSource
	synonyms []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym
	secret   bool
}

// describeTopics asks for the partitions of topics that exist; with limit > 0 no
// more of them in one answer.
func (k *cluster) describeTopics(names []string, limit int32) (map[string]*topicState, error) {
	out := map[string]*topicState{}
	if k.unsupported(kmsg.DescribeTopicPartitions) {
		md, err := k.metadata("describeTopics", names)
		if err != nil {
			return nil, err
		}
		for _, t := range md.Topics {
			if err := answered(t.ErrorCode, nil); err != nil {
				return nil, err
			}
			s := &topicState{name: *t.Topic, id: t.TopicID}
			for _, p := range t.Partitions {
				s.partitions = append(s.partitions, partitionState{partition: p.Partition, leader: p.Leader, replicas: p.Replicas, isr: p.ISR, elr: "N/A", lastElr: "N/A"})
			}
			out[s.name] = s
		}
	} else {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = limit
		for _, n := range slices.Sorted(slices.Values(names)) {
			t := kmsg.NewDescribeTopicPartitionsRequestTopic()
			t.Topic = n
			req.Topics = append(req.Topics, t)
		}
		for {
			resp, err := ask[*kmsg.DescribeTopicPartitionsResponse](k, "describeTopics", req)
			if err != nil {
				return nil, err
			}
			for _, t := range resp.Topics {
				if err := answered(t.ErrorCode, nil); err != nil {
					return nil, err
				}
				s := out[*t.Topic]
				if s == nil {
					s = &topicState{name: *t.Topic, id: t.TopicID}
					out[s.name] = s
				}
				for _, p := range t.Partitions {
					s.partitions = append(s.partitions, partitionState{partition: p.Partition, leader: p.LeaderID, replicas: p.Replicas, isr: p.ISR,
						elr: joined(p.EligibleLeaderReplicas, ","), lastElr: joined(p.LastKnownELR, ",")})
				}
			}
			if resp.NextCursor == nil {
				break
			}
			next := kmsg.NewDescribeTopicPartitionsRequestCursor()
			next.Topic, next.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
			if req.Cursor != nil && req.Cursor.Topic == next.Topic && req.Cursor.Partition == next.Partition {
				break // a cursor that stays would ask for ever
			}
			req.Cursor = &next
			req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.DescribeTopicPartitionsRequestTopic) bool { return t.Topic < next.Topic })
		}
	}
	for _, s := range out {
		slices.SortFunc(s.partitions, func(a, b partitionState) int { return int(a.partition - b.partition) })
	}
	return out, nil
}

// moves adds the reassignments that are under way.
func (k *cluster) moves(topics map[string]*topicState) error {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = 30000
	req.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{}
	for _, s := range topics {
		t := kmsg.NewListPartitionReassignmentsRequestTopic()
		t.Topic = s.name
		for _, p := range s.partitions {
			t.Partitions = append(t.Partitions, p.partition)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := ask[*kmsg.ListPartitionReassignmentsResponse](k, "listPartitionReassignments", req)
	if err != nil || resp.ErrorCode == codeUnsupported {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			s := topics[t.Topic]
			i := slices.IndexFunc(s.partitions, func(x partitionState) bool { return x.partition == p.Partition })
			if i >= 0 {
				s.partitions[i].moving, s.partitions[i].adding, s.partitions[i].removing = true, p.AddingReplicas, p.RemovingReplicas
			}
		}
	}
	return nil
}

// configs describes resources of one type by name, each in the order of a HashMap.
func (k *cluster) configs(kind kmsg.ConfigResourceType, names []string) (map[string][]setting, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms = true
	for _, n := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind, n
		req.Resources = append(req.Resources, r)
	}
	out := map[string][]setting{}
	for _, shard := range k.cl.RequestSharded(k.ctx, req) {
		if shard.Err != nil {
			return nil, java("describeConfigs", shard.Err)
		}
		for _, r := range shard.Resp.(*kmsg.DescribeConfigsResponse).Resources {
			if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
				return nil, err
			}
			byName := map[string]setting{}
			var order []string
			for _, c := range r.Configs {
				order = append(order, c.Name)
				byName[c.Name] = setting{c.Name, c.Value, c.Source, c.ConfigSynonyms, c.IsSensitive}
			}
			all := make([]setting, 0, len(order))
			for _, n := range hashOrder(order) {
				all = append(all, byName[n])
			}
			out[r.ResourceName] = all
		}
	}
	return out, nil
}

func (f *topicFlags) runDescribe(c *call, k *cluster) error {
	limit := int32(2000)
	if n, given, err := f.limit.number(); err != nil {
		return err
	} else if given {
		limit = n
	}
	names, err := f.described(k)
	if err != nil || len(names) == 0 {
		return err
	}
	topics, err := k.describeTopics(names, limit)
	if err != nil {
		return err
	}
	configs, err := k.configs(kmsg.ConfigResourceTypeTopic, names)
	if err != nil {
		return err
	}
	md, err := k.metadata("describeCluster", []string{})
	if err != nil {
		return err
	}
	live := map[int32]bool{}
	for _, b := range md.Brokers {
		live[b.NodeID] = true
	}
	if err := k.moves(topics); err != nil {
		return err
	}
	some := f.underReplicated.given || f.unavailable.given || f.underMin.given || f.atMin.given
	for _, name := range hashOrder(slices.Sorted(maps.Keys(topics))) {
		t := topics[name]
		if !some {
			f.head(c, t, configs[name])
		}
		if f.overrides.given {
			continue
		}
		least := minISR(configs[name])
		for _, p := range t.partitions {
			leads := p.leader >= 0
			if !some ||
				f.underReplicated.given && p.factor() > len(p.isr) ||
				f.unavailable.given && (!leads || !live[p.leader]) ||
				f.underMin.given && (!leads || len(p.isr) < least) ||
				f.atMin.given && len(p.isr) == least {
				c.printf("%s\n", p.line(name))
			}
		}
	}
	return nil
}

// described are the topics that --describe is about.
func (f *topicFlags) described(k *cluster) ([]string, error) {
	word, err := f.topicID.one()
	if err != nil {
		return nil, err
	}
	var id [16]byte
	if f.topicID.given {
		if id, err = parseUUID(word); err != nil {
			return nil, err
		}
	}
	if id == ([16]byte{}) {
		return f.mustFind(k)
	}
	md, err := k.metadata("listTopics", nil)
	if err != nil {
		return nil, err
	}
	for _, t := range md.Topics {
		if t.TopicID == id && !(f.external.given && internal(*t.Topic)) {
			return []string{*t.Topic}, nil
		}
	}
	if f.ifExists.given {
		return nil, nil
	}
	return nil, illegalArgument("TopicId '%s' does not exist as expected", uuid(id))
}

func minISR(all []setting) int {
	for _, s := range all {
		if s.name == "min.insync.replicas" && s.value != nil {
			n, _ := strconv.Atoi(*s.value)
			return n
		}
	}
	return 1
}

// factor is how many replicas the partition has, those being added not counted.
func (p *partitionState) factor() int {
	if p.moving {
		for _, id := range slices.Concat(p.removing, p.adding) {
			if slices.Contains(p.replicas, id) {
				return len(p.replicas) - len(p.adding)
			}
		}
	}
	return len(p.replicas)
}

func (f *topicFlags) head(c *call, t *topicState, all []setting) {
	var own []string
	for _, s := range all {
		if s.source != kmsg.ConfigSourceDefaultConfig {
			own = append(own, s.name+"="+s.text())
		}
	}
	if f.overrides.given && len(own) == 0 || len(t.partitions) == 0 {
		return
	}
	c.printf("Topic: %s", t.name)
	if t.id != ([16]byte{}) {
		c.printf("\tTopicId: %s", uuid(t.id))
	}
	c.printf("\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s\n", len(t.partitions), t.partitions[0].factor(), strings.Join(own, ","))
}

// text is the value as Java prints it.
func (s *setting) text() string {
	if s.value == nil {
		return "null"
	}
	return *s.value
}

func (p *partitionState) line(topic string) string {
	leader := "none"
	if p.leader >= 0 {
		leader = strconv.Itoa(int(p.leader))
	}
	s := "\tTopic: " + topic + "\tPartition: " + strconv.Itoa(int(p.partition)) + "\tLeader: " + leader +
		"\tReplicas: " + joined(p.replicas, ",") + "\tIsr: " + joined(p.isr, ",")
	if p.moving {
		s += "\tAdding Replicas: " + joined(p.adding, ",") + "\tRemoving Replicas: " + joined(p.removing, ",")
	}
	return s + "\tElr: " + p.elr + "\tLastKnownElr: " + p.lastElr
}
