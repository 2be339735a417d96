package broker

import (
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
	for _, t := range req.Topics {
		out := kmsg.NewDescribeQuorumResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			pout := kmsg.NewDescribeQuorumResponseTopicPartition()
			pout.Partition = p.Partition
			if t.Topic != metadataLog || p.Partition != 0 {
				pout.ErrorCode = int16(kafka.ErrUnknownTopicOrPartition)
			} else {
				pout.LeaderID, pout.LeaderEpoch, pout.HighWatermark = st.Leader, st.Epoch, st.HighWatermark
				v := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
				v.ReplicaID, v.LogEndOffset, v.LastFetchTimestamp, v.LastCaughtUpTimestamp = st.Leader, st.HighWatermark, now, now
				pout.CurrentVoters = append(pout.CurrentVoters, v)
			}
			out.Partitions = append(out.Partitions, pout)
		}
		resp.Topics = append(resp.Topics, out)
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
	if n := int(req.ResponsePartitionLimit); n > 0 {
		limit = min(limit, n)
	}
	var names []string
	if len(req.Topics) == 0 {
		img.EachTopic(func(t *metadata.Topic) bool { names = append(names, t.Name); return true })
	} else {
		for _, t := range req.Topics {
			names = append(names, t.Topic)
		}
		names = sortedSet(names)
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
		out.Topic, out.IsInternal, out.AuthorizedOperations = ptr(name), isInternal(name), noOperations
		t, ok := img.Topic(name)
		if !ok {
			out.ErrorCode = int16(kafka.ErrUnknownTopicOrPartition)
			if metadata.CheckTopicName(name) != "" {
				out.ErrorCode = int16(kafka.ErrInvalidTopicException)
			}
			resp.Topics = append(resp.Topics, out)
			continue
		}
		out.TopicID, out.AuthorizedOperations = t.ID, topicOperations
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
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	return respond(resp)
}
