package metadata

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// alterPartition serves AlterPartition 2-3 (KIP-497, KIP-841): a leader
// proposes its ISR. v2 names topics by id, v3 adds each replica's broker epoch
// (KIP-903), so that a broker that restarted meanwhile is not taken in.
func (c *Controller) alterPartition(req *kmsg.AlterPartitionRequest) (*kmsg.AlterPartitionResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
	from := c.img().broker(kafka.BrokerID(req.BrokerID))
	if from == nil || from.Epoch != req.BrokerEpoch {
		resp.ErrorCode = int16(kafka.ErrStaleBrokerEpoch)
		return resp, nil
	}
	var rs []Record
	for i := range req.Topics {
		rt := &req.Topics[i]
		out := kmsg.NewAlterPartitionResponseTopic()
		out.Topic, out.TopidID = rt.Topic, rt.TopicID
		t, known := c.img().TopicByID(rt.TopicID)
		unknown := kafka.ErrUnknownTopicID
		if req.Version < 2 {
			t, known = c.img().Topic(rt.Topic)
			unknown = kafka.ErrUnknownTopicOrPartition
		}
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			po := kmsg.NewAlterPartitionResponseTopicPartition()
			po.Partition = rp.Partition
			code := unknown
			if known {
				var rec *PartitionRecord
				if rec, code = c.alterISR(from.ID, t, rp, req.Version); rec != nil {
					rs = append(rs, rec)
					p := &rec.Partition
					po.LeaderID, po.LeaderEpoch, po.PartitionEpoch = int32(p.Leader), int32(p.LeaderEpoch), p.PartitionEpoch
					po.ISR = int32s(p.ISR)
				}
			}
			po.ErrorCode = int16(code)
			out.Partitions = append(out.Partitions, po)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, rs
}

func (c *Controller) alterISR(from kafka.BrokerID, t *Topic, rp *kmsg.AlterPartitionRequestTopicPartition, version int16) (*PartitionRecord, kafka.Error) {
	if rp.Partition < 0 || int(rp.Partition) >= len(t.Partitions) {
		return nil, kafka.ErrUnknownTopicOrPartition
	}
	p := &t.Partitions[rp.Partition]
	var isr []kafka.BrokerID
	if version >= 3 {
		for _, r := range rp.NewEpochISR {
			isr = append(isr, kafka.BrokerID(r.BrokerID))
		}
	} else {
		isr = brokerIDs(rp.NewISR)
	}
	switch {
	case kafka.Epoch(rp.LeaderEpoch) > p.LeaderEpoch, rp.PartitionEpoch > p.PartitionEpoch:
		// The leader knows more than this controller: another one is active.
		return nil, kafka.ErrNotController
	case kafka.Epoch(rp.LeaderEpoch) < p.LeaderEpoch:
		return nil, kafka.ErrFencedLeaderEpoch
	case from != p.Leader:
		return nil, kafka.ErrInvalidRequest
	case rp.PartitionEpoch < p.PartitionEpoch:
		return nil, kafka.ErrInvalidUpdateVersion
	case !slices.Contains(isr, p.Leader):
		return nil, kafka.ErrInvalidRequest
	case rp.LeaderRecoveryState != 0:
		return nil, kafka.ErrInvalidRequest // nothing here recovers uncleanly
	}
	for i, id := range isr {
		if !slices.Contains(p.Replicas, id) || slices.Contains(isr[:i], id) {
			return nil, kafka.ErrInvalidRequest
		}
	}
	for i, id := range isr {
		b := c.img().broker(id)
		stale := version >= 3 && b != nil && rp.NewEpochISR[i].BrokerEpoch != -1 && rp.NewEpochISR[i].BrokerEpoch != b.Epoch
		// A member that leaves may stay, but not come in.
		if b == nil || stale || !b.active() && !slices.Contains(p.ISR, id) {
			return nil, kafka.ErrIneligibleReplica
		}
	}
	next := *p
	next.ISR = isr
	next, changed := c.img().revise(p, next, online)
	if !changed {
		// As Kafka: agreed, and the epoch moves, so that the leader sees an answer.
		next.PartitionEpoch++
	}
	rec := &PartitionRecord{ID: t.ID, Index: rp.Partition, Partition: next}
	if next.Leader != p.Leader {
		return rec, kafka.ErrNewLeaderElected // the move it completed took the leadership away
	}
	return rec, kafka.NoError
}
