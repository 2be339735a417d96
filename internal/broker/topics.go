package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/wire"
)

// CreateTopics 0-7, DeleteTopics 0-6, CreatePartitions 0-3: the controller decides
// and answers; here its refusal as a whole (no controller, too late) is spread over
// the items of the request.

func (b *Broker) createTopics(r *wire.Request, req *kmsg.CreateTopicsRequest) wire.Response {
	return forwardWithin(b, req, req.TimeoutMillis, func(out *kmsg.CreateTopicsResponse, code kafka.Error) {
		for _, t := range req.Topics {
			rt := kmsg.NewCreateTopicsResponseTopic()
			rt.Topic, rt.ErrorCode = t.Topic, int16(code)
			out.Topics = append(out.Topics, rt)
		}
	})
}

func (b *Broker) deleteTopics(r *wire.Request, req *kmsg.DeleteTopicsRequest) wire.Response {
	return forwardWithin(b, req, req.TimeoutMillis, func(out *kmsg.DeleteTopicsResponse, code kafka.Error) {
		for _, name := range req.TopicNames {
			rt := kmsg.NewDeleteTopicsResponseTopic()
			rt.Topic, rt.ErrorCode = ptr(name), int16(code)
			out.Topics = append(out.Topics, rt)
		}
		for _, t := range req.Topics {
			rt := kmsg.NewDeleteTopicsResponseTopic()
			rt.Topic, rt.TopicID, rt.ErrorCode = t.Topic, t.TopicID, int16(code)
			out.Topics = append(out.Topics, rt)
		}
	})
}

func (b *Broker) createPartitions(r *wire.Request, req *kmsg.CreatePartitionsRequest) wire.Response {
	return forwardWithin(b, req, req.TimeoutMillis, func(out *kmsg.CreatePartitionsResponse, code kafka.Error) {
		for _, t := range req.Topics {
			rt := kmsg.NewCreatePartitionsResponseTopic()
			rt.Topic, rt.ErrorCode = t.Topic, int16(code)
			out.Topics = append(out.Topics, rt)
		}
	})
}

// ElectLeaders 0-2 (KIP-183, KIP-460) and the reassignment pair (KIP-455).

func (b *Broker) electLeaders(r *wire.Request, req *kmsg.ElectLeadersRequest) wire.Response {
	return forwardWithin(b, req, req.TimeoutMillis, func(out *kmsg.ElectLeadersResponse, code kafka.Error) {
		out.ErrorCode = int16(code)
	})
}

func (b *Broker) alterReassignments(r *wire.Request, req *kmsg.AlterPartitionAssignmentsRequest) wire.Response {
	return forwardWithin(b, req, req.TimeoutMillis, func(out *kmsg.AlterPartitionAssignmentsResponse, code kafka.Error) {
		out.ErrorCode = int16(code)
	})
}

func (b *Broker) listReassignments(r *wire.Request, req *kmsg.ListPartitionReassignmentsRequest) wire.Response {
	return forwardWithin(b, req, req.TimeoutMillis, func(out *kmsg.ListPartitionReassignmentsResponse, code kafka.Error) {
		out.ErrorCode = int16(code)
	})
}
