package metadata

import (
	"slices"

	"github.com/weirmq/weir/internal/kafka"
)

// How a leader may be chosen.
type election int8

const (
	// online keeps a good leader, else takes the first replica that is in sync.
	online election = iota
	// preferred moves leadership to the first replica if that is in sync.
	preferred
	// unclean takes a replica that is not in sync when no other is alive: what
	// only the lost ones had is gone.
	unclean
)

// revise fits a partition's leader to its replicas, its ISR and the brokers,
// completes a reassignment whose targets are all in sync, and raises the
// epochs. p is what the partition shall be, old what it is. False: no change.
//
// The leader epoch rises when the leader changes, and when a replica leaves the
// replica list, so that a removed one that still fetches is fenced.
func (img *Image) revise(old *Partition, p Partition, how election) (Partition, bool) {
	target := slices.DeleteFunc(slices.Clone(p.Replicas), func(id kafka.BrokerID) bool { return slices.Contains(p.Removing, id) })
	if p.reassigning() && len(target) > 0 {
		done := true
		for _, id := range target {
			// Those that were there before may lag without holding up the move.
			if slices.Contains(p.Adding, id) && !slices.Contains(p.ISR, id) {
				done = false
			}
		}
		isr := slices.DeleteFunc(slices.Clone(p.ISR), func(id kafka.BrokerID) bool { return !slices.Contains(target, id) })
		if done && len(isr) > 0 {
			p.Replicas, p.ISR, p.Adding, p.Removing = target, isr, nil, nil
		}
	}
	p.Leader = img.elect(&p, target, how)
	if p.Leader != kafka.NoBroker && !slices.Contains(p.ISR, p.Leader) {
		p.ISR = []kafka.BrokerID{p.Leader} // unclean
	}
	p.LeaderEpoch, p.PartitionEpoch = old.LeaderEpoch, old.PartitionEpoch
	if equalPartition(old, &p) {
		return *old, false
	}
	if p.Leader != old.Leader || slices.ContainsFunc(old.Replicas, func(id kafka.BrokerID) bool { return !slices.Contains(p.Replicas, id) }) {
		p.LeaderEpoch++
	}
	p.PartitionEpoch++
	return p, true
}

func (img *Image) elect(p *Partition, order []kafka.BrokerID, how election) kafka.BrokerID {
	fit := func(id kafka.BrokerID) bool { return slices.Contains(p.ISR, id) && img.active(id) }
	if how == preferred && len(order) > 0 && fit(order[0]) {
		return order[0]
	}
	// A leader in controlled shutdown stays until another can follow.
	if fit(p.Leader) && slices.Contains(p.Replicas, p.Leader) {
		return p.Leader
	}
	for _, id := range order {
		if fit(id) {
			return id
		}
	}
	for _, id := range p.Replicas {
		if fit(id) {
			return id
		}
	}
	if how == unclean {
		for _, id := range p.Replicas {
			if img.active(id) {
				return id
			}
		}
	}
	if b := img.broker(p.Leader); b != nil && !b.Fenced && slices.Contains(p.ISR, p.Leader) {
		return p.Leader
	}
	return kafka.NoBroker
}

// leave takes a broker out of every ISR and from every leadership, as after its
// registration in img was changed to fenced or leaving. The last one in sync
// stays in the ISR without leading: only it has everything.
func (img *Image) leave(id kafka.BrokerID) (rs []Record) {
	img.EachTopic(func(t *Topic) bool {
		for i := range t.Partitions {
			p := t.Partitions[i]
			if !slices.Contains(p.ISR, id) {
				continue
			}
			if len(p.ISR) > 1 {
				p.ISR = slices.DeleteFunc(slices.Clone(p.ISR), func(b kafka.BrokerID) bool { return b == id })
			}
			if next, ok := img.revise(&t.Partitions[i], p, online); ok {
				rs = append(rs, &PartitionRecord{ID: t.ID, Index: int32(i), Partition: next})
			}
		}
		return true
	})
	return rs
}

// join gives leaders to partitions that had none, when a broker came back.
func (img *Image) join() (rs []Record) {
	img.EachTopic(func(t *Topic) bool {
		for i := range t.Partitions {
			if p := &t.Partitions[i]; p.Leader == kafka.NoBroker {
				if next, ok := img.revise(p, *p, online); ok {
					rs = append(rs, &PartitionRecord{ID: t.ID, Index: int32(i), Partition: next})
				}
			}
		}
		return true
	})
	return rs
}
