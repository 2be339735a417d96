package metadata

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// alterReassignments serves AlterPartitionReassignments 0-1 (KIP-455; v1 adds
// allow_replication_factor_change, KIP-860).
func (c *Controller) alterReassignments(req *kmsg.AlterPartitionAssignmentsRequest) (*kmsg.AlterPartitionAssignmentsResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	mayResize := req.Version < 1 || req.AllowReplicationFactorChange
	var rs []Record
	for i := range req.Topics {
		rt := &req.Topics[i]
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = rt.Topic
		t, known := c.img().Topic(rt.Topic)
		seen := map[int32]bool{}
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			if seen[rp.Partition] {
				continue
			}
			seen[rp.Partition] = true
			po := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			po.Partition = rp.Partition
			f := fail(kafka.ErrUnknownTopicOrPartition, "Unable to find a topic named %s.", rt.Topic)
			if known {
				var rec *PartitionRecord
				if rec, f = c.reassign(t, rp, mayResize); rec != nil {
					rs = append(rs, rec)
				}
			}
			po.ErrorCode, po.ErrorMessage = f.parts()
			out.Partitions = append(out.Partitions, po)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, rs
}

func (c *Controller) reassign(t *Topic, rp *kmsg.AlterPartitionAssignmentsRequestTopicPartition, mayResize bool) (*PartitionRecord, *failure) {
	if rp.Partition < 0 || int(rp.Partition) >= len(t.Partitions) {
		return nil, fail(kafka.ErrUnknownTopicOrPartition, "Unable to find partition %s:%d.", t.Name, rp.Partition)
	}
	p := &t.Partitions[rp.Partition]
	// Where the partition stood before the running move, if there is one.
	origin := slices.DeleteFunc(slices.Clone(p.Replicas), func(id kafka.BrokerID) bool { return slices.Contains(p.Adding, id) })
	next := *p
	if rp.Replicas == nil {
		if !p.reassigning() {
			return nil, fail(kafka.ErrNoReassignmentInProgress, "No partition reassignment is in progress.")
		}
		// Undone: the added replicas go, unless the only ones in sync are among them.
		isr := slices.DeleteFunc(slices.Clone(p.ISR), func(id kafka.BrokerID) bool { return !slices.Contains(origin, id) })
		if len(isr) == 0 {
			return nil, fail(kafka.ErrInvalidReplicaAssignment, "Unable to cancel: no replica from before the reassignment is in sync.")
		}
		next.Replicas, next.ISR, next.Adding, next.Removing = origin, isr, nil, nil
	} else {
		target := brokerIDs(rp.Replicas)
		if f := c.checkReplicas(target, 0); f != nil {
			return nil, f
		}
		if !mayResize && len(target) != len(origin) {
			return nil, fail(kafka.ErrInvalidReplicationFactor,
				"The replication factor is changed from %d to %d", len(origin), len(target))
		}
		gone := func(ids, from []kafka.BrokerID) []kafka.BrokerID {
			return slices.DeleteFunc(slices.Clone(ids), func(id kafka.BrokerID) bool { return slices.Contains(from, id) })
		}
		next.Adding, next.Removing = gone(target, origin), gone(origin, target)
		next.Replicas = append(slices.Clone(target), next.Removing...)
		// Replicas of an earlier move that are not wanted any more leave the ISR.
		next.ISR = slices.DeleteFunc(slices.Clone(p.ISR), func(id kafka.BrokerID) bool { return !slices.Contains(next.Replicas, id) })
		if len(next.ISR) == 0 {
			return nil, fail(kafka.ErrInvalidReplicaAssignment, "The new assignment has no replica that is in sync.")
		}
	}
	next, changed := c.img().revise(p, next, online)
	if !changed {
		return nil, nil
	}
	return &PartitionRecord{ID: t.ID, Index: rp.Partition, Partition: next}, nil
}

// listReassignments serves ListPartitionReassignments 0.
func (c *Controller) listReassignments(req *kmsg.ListPartitionReassignmentsRequest) *kmsg.ListPartitionReassignmentsResponse {
	resp := req.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	if c.img().moving == 0 {
		return resp
	}
	list := func(t *Topic, wanted []int32) {
		out := kmsg.NewListPartitionReassignmentsResponseTopic()
		out.Topic = t.Name
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if !p.reassigning() || wanted != nil && !slices.Contains(wanted, int32(i)) {
				continue
			}
			po := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
			po.Partition = int32(i)
			po.Replicas = int32s(p.Replicas)
			po.AddingReplicas = int32s(p.Adding)
			po.RemovingReplicas = int32s(p.Removing)
			out.Partitions = append(out.Partitions, po)
		}
		if len(out.Partitions) > 0 {
			resp.Topics = append(resp.Topics, out)
		}
	}
	if req.Topics == nil {
		c.img().EachTopic(func(t *Topic) bool { list(t, nil); return true })
		return resp
	}
	for i := range req.Topics {
		if t, ok := c.img().Topic(req.Topics[i].Topic); ok && len(req.Topics[i].Partitions) > 0 {
			list(t, req.Topics[i].Partitions)
		}
	}
	return resp
}
