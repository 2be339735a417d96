package broker

import (
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/wire"
)

// Metadata, versions 0 to 13. 1: null asks for all topics, and an empty list for
// none. 4: allow auto creation. 5: offline replicas. 7: leader epochs. 8-10:
// authorized operations (nothing is restricted yet). 10: topic ids. 13: top-level
// error (KIP-1102).

// noOperations stands for authorized operations that were not asked for.
const noOperations = -1 << 31

func (b *Broker) metadata(r *wire.Request, req *kmsg.MetadataRequest) wire.Response {
	img := b.o.Quorum.Image()
	if req.Topics == nil && req.Version > 0 || len(req.Topics) == 0 && req.Version == 0 {
		return respond(b.metadataResponse(r, req, img, nil))
	}
	if wrongTopicIDs(req) {
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		resp.ControllerID, resp.AuthorizedOperations = -1, noOperations
		resp.ErrorCode = int16(kafka.ErrInvalidRequest)
		for _, t := range req.Topics {
			name := ""
			if t.Topic != nil {
				name = *t.Topic
			}
			resp.Topics = append(resp.Topics, missingTopic(&name, t.TopicID, kafka.ErrInvalidRequest))
		}
		return respond(resp)
	}
	missing := b.toCreate(img, req)
	if len(missing) == 0 {
		return respond(b.metadataResponse(r, req, img, nil))
	}
	// Make the topics and answer with them: the client needs no second round
	// (docs/decisions/0003). What the controller refuses is told per topic.
	refused := make(map[string]kafka.Error)
	l := newLater()
	b.createAll(missing, func(code map[string]kafka.Error) {
		for t, c := range code {
			refused[t] = c
		}
		l.finish(respond(b.metadataResponse(r, req, b.o.Quorum.Image(), refused)))
	})
	return wire.Response{Pending: l}
}

// wrongTopicIDs says whether a request names topics in a way its version cannot: ids
// came with 10, but count from 12 on only (KIP-516), and one of name and id must be there.
func wrongTopicIDs(req *kmsg.MetadataRequest) bool {
	if req.Version < 10 {
		return false
	}
	for _, t := range req.Topics {
		id := t.TopicID != [16]byte{}
		if req.Version < 12 && (id || t.Topic == nil) || t.Topic == nil && !id {
			return true
		}
	}
	return false
}

// toCreate lists the topics a request asks for that are missing and may be made.
func (b *Broker) toCreate(img *metadata.Image, req *kmsg.MetadataRequest) []string {
	if byID(req) || req.Version >= 4 && !req.AllowAutoTopicCreation || !b.o.Config().Static().Bool("auto.create.topics.enable") {
		return nil
	}
	var missing []string
	for _, t := range req.Topics {
		if t.Topic == nil || *t.Topic == "" {
			continue
		}
		if _, ok := img.Topic(*t.Topic); !ok {
			missing = append(missing, *t.Topic)
		}
	}
	return sortedSet(missing)
}

// createAll makes topics with the broker's defaults and tells which were refused.
// A topic that is there by now counts as made.
func (b *Broker) createAll(topics []string, done func(refused map[string]kafka.Error)) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	req.TimeoutMillis = 30000
	for _, name := range topics {
		req.Topics = append(req.Topics, b.newTopic(name))
	}
	b.o.Quorum.Submit(req, func(resp any) {
		refused := make(map[string]kafka.Error)
		switch v := resp.(type) {
		case *kmsg.CreateTopicsResponse:
			for _, t := range v.Topics {
				if c := kafka.Error(t.ErrorCode); c != kafka.NoError && c != kafka.ErrTopicAlreadyExists {
					refused[t.Topic] = c
				}
			}
		default:
			for _, name := range topics {
				refused[name] = kafka.ErrLeaderNotAvailable // retriable: the controller did not answer
			}
		}
		done(refused)
	})
}

// newTopic is a topic as the broker makes it by itself.
func (b *Broker) newTopic(name string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	if name != OffsetsTopic {
		return t
	}
	c := b.o.Config().Static()
	t.NumPartitions = int32(c.Int("offsets.topic.num.partitions"))
	t.ReplicationFactor = int16(min(c.Int("offsets.topic.replication.factor"), len(b.o.Quorum.Image().Brokers())))
	size, n := "segment.bytes", c.Int("offsets.topic.segment.bytes")
	if n < 1<<20 {
		size = "internal.segment.bytes" // the broker's key may be smaller than a topic's
	}
	for k, v := range map[string]string{
		"cleanup.policy":   "compact",
		"compression.type": "producer",
		size:               strconv.Itoa(n),
	} {
		kv := kmsg.NewCreateTopicsRequestTopicConfig()
		kv.Name, kv.Value = k, ptr(v)
		t.Configs = append(t.Configs, kv)
	}
	return t
}

func (b *Broker) metadataResponse(r *wire.Request, req *kmsg.MetadataRequest, img *metadata.Image, refused map[string]kafka.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	resp.ClusterID = ptr(img.ClusterID())
	resp.ControllerID = int32(img.Controller())
	resp.AuthorizedOperations = noOperations
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	for _, br := range img.Brokers() {
		if br.Fenced {
			continue
		}
		out := kmsg.NewMetadataResponseBroker()
		out.NodeID, out.Rack = int32(br.ID), br.Rack
		out.Host, out.Port = b.address(r.Conn, &br)
		resp.Brokers = append(resp.Brokers, out)
	}
	describe := func(t *metadata.Topic) {
		resp.Topics = append(resp.Topics, b.metadataTopic(img, req, t))
	}
	if req.Topics == nil && req.Version > 0 || len(req.Topics) == 0 && req.Version == 0 {
		img.EachTopic(func(t *metadata.Topic) bool { describe(t); return true })
		return resp
	}
	if byID(req) {
		seen := make(map[kafka.TopicID]bool, len(req.Topics))
		for _, in := range req.Topics {
			if in.TopicID == [16]byte{} || seen[in.TopicID] {
				continue
			}
			seen[in.TopicID] = true
			if t, ok := img.TopicByID(in.TopicID); ok {
				describe(t)
			} else {
				resp.Topics = append(resp.Topics, missingTopic(nil, in.TopicID, kafka.ErrUnknownTopicID))
			}
		}
		return resp
	}
	seen := make(map[string]bool, len(req.Topics))
	for _, in := range req.Topics {
		name := *in.Topic
		if seen[name] {
			continue // a set, as in Kafka
		}
		seen[name] = true
		if t, ok := img.Topic(name); ok {
			describe(t)
			continue
		}
		code := kafka.ErrUnknownTopicOrPartition
		if c, ok := refused[name]; ok {
			code = c
		} else if metadata.CheckTopicName(name) != "" {
			code = kafka.ErrInvalidTopicException
		}
		resp.Topics = append(resp.Topics, missingTopic(in.Topic, [16]byte{}, code))
	}
	return resp
}

// byID says whether a request asks by ids. One id is enough: names beside it, which
// the Java client sends empty, do not count then.
func byID(req *kmsg.MetadataRequest) bool {
	for _, t := range req.Topics {
		if t.TopicID != [16]byte{} {
			return true
		}
	}
	return false
}

func missingTopic(name *string, id [16]byte, code kafka.Error) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.ErrorCode = name, id, int16(code)
	out.IsInternal = name != nil && isInternal(*name)
	out.AuthorizedOperations = noOperations
	return out
}

func (b *Broker) metadataTopic(img *metadata.Image, req *kmsg.MetadataRequest, t *metadata.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = ptr(t.Name), t.ID, isInternal(t.Name)
	out.AuthorizedOperations = noOperations
	if req.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = topicOperations
	}
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for n := range t.Partitions {
		p, pout := &t.Partitions[n], &out.Partitions[n]
		pout.Default()
		pout.Partition, pout.Leader, pout.LeaderEpoch = int32(n), int32(p.Leader), int32(p.LeaderEpoch)
		pout.Replicas, pout.ISR = ids(p.Replicas), ids(p.ISR)
		pout.OfflineReplicas = offline(img, p.Replicas)
		if here := b.o.Partitions.Get(t.ID, int32(n)); here != nil && here.Failed() != nil && p.Leader == b.o.Self {
			// Its log dir failed: as Kafka says it once its controller has heard of that.
			pout.Leader = int32(kafka.NoBroker)
			pout.OfflineReplicas = append(pout.OfflineReplicas, int32(b.o.Self))
			pout.ErrorCode = int16(kafka.ErrLeaderNotAvailable)
		}
		if p.Leader == kafka.NoBroker {
			pout.ErrorCode = int16(kafka.ErrLeaderNotAvailable)
		}
	}
	return out
}

// Bits of AclOperation as authorized operations list them (KIP-430): everything
// is allowed as long as nothing is restricted.
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
	groupOperations   = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
)

func ids(in []kafka.BrokerID) []int32 {
	out := make([]int32, len(in))
	for i, id := range in {
		out[i] = int32(id)
	}
	return out
}

func offline(img *metadata.Image, replicas []kafka.BrokerID) []int32 {
	out := []int32{}
	for _, id := range replicas {
		if br, ok := img.Broker(id); !ok || br.Fenced {
			out = append(out, int32(id))
		}
	}
	return out
}

// address is what a client on this connection should dial for a broker: the
// advertised address of the listener it came in by, or, for this broker where
// none is configured, the very address it reached us at.
func (b *Broker) address(c *wire.Conn, br *metadata.Broker) (string, int32) {
	if br.ID == b.o.Self && !b.o.Fixed(c.Listener()) {
		if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
			return a.IP.String(), int32(a.Port)
		}
	}
	for _, l := range br.Listeners {
		if l.Name == c.Listener() {
			return l.Host, l.Port
		}
	}
	if len(br.Listeners) > 0 {
		return br.Listeners[0].Host, br.Listeners[0].Port
	}
	return "", -1
}

// OffsetsTopic holds groups and their offsets.
const OffsetsTopic = "__consumer_offsets"

// isInternal says whether a topic is the broker's own.
func isInternal(name string) bool {
	return name == OffsetsTopic || name == "__transaction_state" || name == "__share_group_state"
}
