package metadata

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// createPartitions serves CreatePartitions 0-3.
func (c *Controller) createPartitions(req *kmsg.CreatePartitionsRequest) (*kmsg.CreatePartitionsResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	resp.Topics = make([]kmsg.CreatePartitionsResponseTopic, 0, len(req.Topics))
	names := make(map[string]int, len(req.Topics))
	for i := range req.Topics {
		names[req.Topics[i].Topic]++
	}
	var rs []Record
	added := 0
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		var f *failure
		if n := names[t.Topic]; n == 0 {
			continue
		} else if n > 1 {
			names[t.Topic] = 0
			f = fail(kafka.ErrInvalidRequest, "Duplicate topic name.")
		} else {
			var r *PartitionsRecord
			if r, f = c.addPartitions(t, maxPartitionsPerRequest-added); f == nil {
				rs = append(rs, r)
				added += len(r.Partitions)
			}
		}
		out.ErrorCode, out.ErrorMessage = f.parts()
		resp.Topics = append(resp.Topics, out)
	}
	if req.ValidateOnly {
		rs = nil
	}
	return resp, rs
}

func (c *Controller) addPartitions(t *kmsg.CreatePartitionsRequestTopic, room int) (*PartitionsRecord, *failure) {
	topic, ok := c.img().Topic(t.Topic)
	if !ok {
		return nil, fail(kafka.ErrUnknownTopicOrPartition, "This server does not host this topic-partition.")
	}
	have := len(topic.Partitions)
	if int(t.Count) == have {
		return nil, fail(kafka.ErrInvalidPartitions, "Topic already has %d partition(s).", have)
	}
	if int(t.Count) < have {
		return nil, fail(kafka.ErrInvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", t.Topic, have, t.Count)
	}
	more := int(t.Count) - have
	if more > room {
		return nil, fail(kafka.ErrPolicyViolation, "Excessively large number of partitions per request.")
	}
	r := &PartitionsRecord{ID: topic.ID, First: int32(have)}
	factor := len(topic.Partitions[0].Replicas)
	if t.Assignment == nil {
		var f *failure
		r.Partitions, f = c.placeAll(newPlacer(c.img().brokers, c.cfg.Rand), more, factor)
		return r, f
	}
	if len(t.Assignment) != more {
		return nil, fail(kafka.ErrInvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", more, len(t.Assignment))
	}
	for i := range t.Assignment {
		replicas := brokerIDs(t.Assignment[i].Replicas)
		if f := c.checkReplicas(replicas, factor); f != nil {
			return nil, f
		}
		p, ok := c.fresh(replicas)
		if !ok {
			return nil, fail(kafka.ErrInvalidReplicaAssignment,
				"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", have+i)
		}
		r.Partitions = append(r.Partitions, p)
	}
	return r, nil
}
