package broker

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/wire"
)

// DescribeCluster 0-2 (KIP-700, KIP-919, KIP-1073), DescribeQuorum 0-2 (KIP-595),
// DescribeTopicPartitions 0 (KIP-966), DescribeClientQuotas 0-1 (KIP-546, none).

const (
	brokerEndpoint     = 1
	controllerEndpoint = 2
)

func (b *Broker) describeCluster(r *wire.Request, req *kmsg.DescribeClusterRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.EndpointType = brokerEndpoint
	resp.ClusterAuthorizedOperations = noOperations
	if req.Version >= 1 && req.EndpointType != brokerEndpoint {
		resp.ErrorCode, resp.ErrorMessage = int16(kafka.ErrMismatchedEndpointType),
			ptr("The request was sent to an endpoint of the wrong type: this one is a broker's.")
		if req.EndpointType != controllerEndpoint {
			resp.ErrorCode, resp.ErrorMessage = int16(kafka.ErrUnsupportedEndpointType), ptr("Unsupported endpoint type.")
		}
		return respond(resp)
	}
	img := b.o.Quorum.Image()
	resp.ClusterID, resp.ControllerID = img.ClusterID(), int32(img.Controller())
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	for _, br := range img.Brokers() {
		if br.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		out := kmsg.NewDescribeClusterResponseBroker()
		out.NodeID, out.Rack, out.IsFenced = int32(br.ID), br.Rack, br.Fenced
		out.Host, out.Port = b.address(r.Conn, &br)
		resp.Brokers = append(resp.Brokers, out)
	}
	return respond(resp)
}

// metadataLog is the name under which Kafka's tools ask for the metadata quorum.
const metadataLog = "__cluster_metadata"

func (b *Broker) describeQuorum(r *wire.Request, req *kmsg.DescribeQuorumRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeQuorumResponse)
	st := b.o.QuorumStatus()
	now := time.Now().UnixMilli()
	resp.ErrorMessage = ptr("")
	// Kafka knows one question only: this log's one partition, and nothing besides.
	known := len(req.Topics) == 1 && req.Topics[0].Topic == metadataLog &&
		len(req.Topics[0].Partitions) == 1 && req.Topics[0].Partitions[0].Partition == 0
	for _, t := range req.Topics {
		out := kmsg.NewDescribeQuorumResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			pout := kmsg.NewDescribeQuorumResponseTopicPartition()
			pout.Partition = p.Partition
			if !known {
				pout.ErrorCode, pout.ErrorMessage = int16(kafka.ErrUnknownTopicOrPartition), ptr("The one partition to describe is "+metadataLog+"-0.")
			} else {
				pout.ErrorMessage = ptr("")
				pout.LeaderID, pout.LeaderEpoch, pout.HighWatermark = st.Leader, st.Epoch, st.HighWatermark
				v := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
				v.ReplicaID, v.LogEndOffset, v.LastFetchTimestamp, v.LastCaughtUpTimestamp = st.Leader, st.HighWatermark, now, now
				pout.CurrentVoters = append(pout.CurrentVoters, v)
			}
			out.Partitions = append(out.Partitions, pout)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if !known {
		return respond(resp)
	}
	for _, br := range b.o.Quorum.Image().Brokers() {
		n := kmsg.NewDescribeQuorumResponseNode()
		n.NodeID = int32(br.ID)
		for _, l := range br.Listeners {
			nl := kmsg.NewDescribeQuorumResponseNodeListener()
			nl.Name, nl.Host, nl.Port = l.Name, l.Host, uint16(l.Port)
			n.Listeners = append(n.Listeners, nl)
		}
		resp.Nodes = append(resp.Nodes, n)
	}
	return respond(resp)
}

// describeTopicPartitions pages through topics by name; a cursor says where the
// next page begins.
func (b *Broker) describeTopicPartitions(r *wire.Request, req *kmsg.DescribeTopicPartitionsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeTopicPartitionsResponse)
	img := b.o.Quorum.Image()
	limit := b.o.Config().Static().Int("max.request.partition.size.limit")
	limit = max(min(limit, int(req.ResponsePartitionLimit)), 1)
	var names []string
	if len(req.Topics) == 0 {
		img.EachTopic(func(t *metadata.Topic) bool { names = append(names, t.Name); return true })
	} else {
		for _, t := range req.Topics {
			names = append(names, t.Topic)
		}
		names = sortedSet(names)
		if req.Cursor != nil && (req.Cursor.Partition < 0 || !slices.Contains(names, req.Cursor.Topic)) {
			// The page begins nowhere: no such partition, or a topic that was not asked for.
			for _, name := range names {
				out := kmsg.NewDescribeTopicPartitionsResponseTopic()
				out.Topic, out.ErrorCode, out.AuthorizedOperations = ptr(name), int16(kafka.ErrInvalidRequest), noOperations
				resp.Topics = append(resp.Topics, out)
			}
			return respond(resp)
		}
	}
	for _, name := range names {
		first := 0
		if req.Cursor != nil {
			if name < req.Cursor.Topic {
				continue
			}
			if name == req.Cursor.Topic {
				first = int(max(req.Cursor.Partition, 0))
			}
		}
		if limit <= 0 {
			resp.NextCursor = cursorAt(name, 0)
			break
		}
		out := kmsg.NewDescribeTopicPartitionsResponseTopic()
		out.Topic, out.IsInternal, out.AuthorizedOperations = ptr(name), isInternal(name), topicOperations
		t, ok := img.Topic(name)
		if !ok {
			out.ErrorCode = int16(kafka.ErrUnknownTopicOrPartition)
			if metadata.CheckTopicName(name) != "" {
				out.ErrorCode = int16(kafka.ErrInvalidTopicException)
			}
			resp.Topics = append(resp.Topics, out)
			continue
		}
		out.TopicID = t.ID
		n := first
		for ; n < len(t.Partitions) && limit > 0; n, limit = n+1, limit-1 {
			p := &t.Partitions[n]
			pout := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
			pout.Partition, pout.LeaderID, pout.LeaderEpoch = int32(n), int32(p.Leader), int32(p.LeaderEpoch)
			pout.Replicas, pout.ISR, pout.OfflineReplicas = ids(p.Replicas), ids(p.ISR), offline(img, p.Replicas)
			pout.EligibleLeaderReplicas, pout.LastKnownELR = []int32{}, []int32{} // null breaks the Java client
			if p.Leader == kafka.NoBroker {
				pout.ErrorCode = int16(kafka.ErrLeaderNotAvailable)
			}
			out.Partitions = append(out.Partitions, pout)
		}
		resp.Topics = append(resp.Topics, out)
		if n < len(t.Partitions) {
			resp.NextCursor = cursorAt(name, int32(n))
			break
		}
	}
	return respond(resp)
}

func cursorAt(topic string, n int32) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = topic, n
	return &c
}

func (b *Broker) describeClientQuotas(r *wire.Request, req *kmsg.DescribeClientQuotasRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClientQuotasResponse)
	if code, why := checkQuotaFilter(req.Components); code != kafka.NoError {
		resp.ErrorCode, resp.ErrorMessage = int16(code), &why
		return respond(resp)
	}
	resp.Entries, resp.ErrorMessage = []kmsg.DescribeClientQuotasResponseEntry{}, ptr("")
	return respond(resp)
}

// checkQuotaFilter says what is wrong with a filter for quotas, by Kafka's codes.
func checkQuotaFilter(components []kmsg.DescribeClientQuotasRequestComponent) (kafka.Error, string) {
	seen := make(map[string]bool)
	for _, c := range components {
		switch {
		case c.EntityType == "":
			return kafka.ErrInvalidRequest, "A quota filter needs an entity type."
		case seen[c.EntityType]:
			return kafka.ErrInvalidRequest, fmt.Sprintf("The entity type %s is filtered twice.", c.EntityType)
		}
		seen[c.EntityType] = true
		switch c.MatchType {
		case kmsg.QuotasMatchTypeExact:
			if c.Match == nil {
				return kafka.ErrInvalidRequest, "An exact match needs a name to match."
			}
		case kmsg.QuotasMatchTypeDefault, kmsg.QuotasMatchTypeAny:
			if c.Match != nil {
				return kafka.ErrInvalidRequest, "Only an exact match takes a name."
			}
		default:
			return kafka.ErrInvalidRequest, fmt.Sprintf("Unknown match type %d: 0 is exact, 1 the default, 2 any.", c.MatchType)
		}
	}
	for entity := range seen {
		if entity != "user" && entity != "client-id" && entity != "ip" {
			return kafka.ErrUnsupportedVersion, fmt.Sprintf("Unknown entity type %s: user, client-id and ip are known.", entity)
		}
	}
	return kafka.NoError, ""
}
