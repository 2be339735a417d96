package metadata

import (
	"slices"
	"time"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// RegisterBroker announces a broker that starts (KIP-631). Broker's Epoch and
// Leaving are ignored. Without Fenced it serves at once, as a node does that is
// its own controller; with it, it serves after a Heartbeat that asks to.
type RegisterBroker struct {
	Broker    Broker
	ClusterID string // checked when not empty
	// Unclean says that the broker may have lost the end of its logs: it did
	// not shut down in order. Every partition it leads gets a new leader epoch,
	// so that whoever read what was lost can tell (KIP-320).
	Unclean bool
}

// RegisterBrokerReply carries the broker's epoch, which later requests repeat.
type RegisterBrokerReply struct {
	Epoch int64
	Err   kafka.Error
}

// UnregisterBroker forgets a broker that is gone for good.
type UnregisterBroker struct{ ID kafka.BrokerID }

// UnregisterBrokerReply answers UnregisterBroker.
type UnregisterBrokerReply struct{ Err kafka.Error }

// Heartbeat keeps a broker's session and says what the broker wants.
type Heartbeat struct {
	ID           kafka.BrokerID
	Epoch        int64
	WantFence    bool
	WantShutdown bool
}

// HeartbeatReply tells the broker what it is now.
type HeartbeatReply struct {
	Fenced     bool
	MayStop    bool // leads nothing any more
	Err        kafka.Error
	Controller kafka.BrokerID
}

// AllocateProducerIDs asks for ids to hand out (KIP-730). Count 0 stands for
// Kafka's block of 1000.
type AllocateProducerIDs struct {
	Broker kafka.BrokerID
	Epoch  int64 // 0: not checked
	Count  int32
}

// AllocateProducerIDsReply is the block First .. First+Count-1.
type AllocateProducerIDsReply struct {
	First kafka.ProducerID
	Count int32
	Err   kafka.Error
}

const producerIDBlock = 1000

func (c *Controller) registerBroker(req *RegisterBroker) (*RegisterBrokerReply, []Record) {
	if req.ClusterID != "" && req.ClusterID != c.img().clusterID {
		return &RegisterBrokerReply{Epoch: -1, Err: kafka.ErrInconsistentClusterID}, nil
	}
	if req.Broker.ID < 0 || len(req.Broker.Listeners) == 0 {
		return &RegisterBrokerReply{Epoch: -1, Err: kafka.ErrInvalidRegistration}, nil
	}
	b := req.Broker
	b.Leaving = false
	b.Listeners = slices.Clone(b.Listeners)
	was := c.img().broker(b.ID)
	if was != nil && was.Incarnation != b.Incarnation {
		if _, alive := c.sessions[b.ID]; alive {
			return &RegisterBrokerReply{Epoch: -1, Err: kafka.ErrDuplicateBrokerRegistration}, nil
		}
	}
	b.Epoch = c.img().brokerEpoch + 1
	if was != nil && was.Incarnation == b.Incarnation {
		b.Epoch = was.Epoch // the same start asking again
	}
	rs := []Record{&BrokerRecord{Broker: b}}
	if req.Unclean && was != nil {
		rs = append(rs, &LeaderEpochsRecord{Leader: b.ID})
	}
	rs = append(rs, c.after(b)...)
	return &RegisterBrokerReply{Epoch: b.Epoch}, rs
}

// after lists what the partitions need once a broker's registration is b.
func (c *Controller) after(b Broker) []Record {
	view := c.d.img
	view.brokers = slices.Clone(view.brokers)
	i, found := slices.BinarySearchFunc(view.brokers, b.ID, func(b Broker, id kafka.BrokerID) int { return int(b.ID) - int(id) })
	if !found {
		view.brokers = slices.Insert(view.brokers, i, b)
	}
	was := view.brokers[i].active() && found
	view.brokers[i] = b
	switch {
	case b.active() && !was:
		return view.join()
	case !b.active():
		return view.leave(b.ID)
	}
	return nil
}

func (c *Controller) unregisterBroker(req *UnregisterBroker) (*UnregisterBrokerReply, []Record) {
	b := c.img().broker(req.ID)
	if b == nil {
		return &UnregisterBrokerReply{Err: kafka.ErrBrokerIDNotRegistered}, nil
	}
	var rs []Record
	if !b.Fenced {
		gone := *b
		gone.Fenced = true
		rs = c.after(gone)
	}
	delete(c.sessions, req.ID)
	return &UnregisterBrokerReply{}, append(rs, &BrokerRemovedRecord{ID: req.ID})
}

func (c *Controller) sessionEnd(now time.Time) time.Time {
	return now.Add(time.Duration(c.cfg.SessionMs) * time.Millisecond)
}

func (c *Controller) heartbeat(now time.Time, req *Heartbeat) (*HeartbeatReply, []Record) {
	b := c.img().broker(req.ID)
	switch {
	case b == nil:
		return &HeartbeatReply{Fenced: true, Err: kafka.ErrBrokerIDNotRegistered}, nil
	case b.Epoch != req.Epoch:
		return &HeartbeatReply{Fenced: true, Err: kafka.ErrStaleBrokerEpoch}, nil
	}
	if c.cfg.SessionMs > 0 {
		c.sessions[req.ID] = c.sessionEnd(now)
	}
	next := *b
	next.Fenced = req.WantFence
	next.Leaving = req.WantShutdown && !req.WantFence
	reply := &HeartbeatReply{Fenced: next.Fenced, Controller: c.img().controller}
	var rs []Record
	if next.Fenced != b.Fenced || next.Leaving != b.Leaving {
		rs = append(rs, &BrokerRecord{Broker: next})
		rs = append(rs, c.after(next)...)
	}
	reply.MayStop = next.Leaving && len(rs) == 0 && !c.leadsMovable(req.ID)
	return reply, rs
}

// leadsMovable says whether a broker leads a partition that another could lead.
func (c *Controller) leadsMovable(id kafka.BrokerID) (yes bool) {
	c.img().EachTopic(func(t *Topic) bool {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if p.Leader == id && c.img().elect(p, p.Replicas, online) != id {
				yes = true
			}
		}
		return !yes
	})
	return yes
}

// NextDeadline is when the first session ends.
func (c *Controller) NextDeadline() (first time.Time) {
	for _, end := range c.sessions {
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// Expire fences the brokers whose session has ended.
func (c *Controller) Expire(now time.Time) machine.Step[Record] {
	var due []kafka.BrokerID
	for id, end := range c.sessions {
		if !now.Before(end) {
			due = append(due, id)
		}
	}
	// One broker a step: the next decision must see the last one's records.
	var step machine.Step[Record]
	if len(due) == 0 {
		return step
	}
	id := slices.Min(due)
	delete(c.sessions, id)
	if b := c.img().broker(id); b != nil && !b.Fenced {
		next := *b
		next.Fenced, next.Leaving = true, false
		step.Records = append([]Record{&BrokerRecord{Broker: next}}, c.after(next)...)
	}
	return step
}

func (c *Controller) allocateProducerIDs(req *AllocateProducerIDs) (*AllocateProducerIDsReply, []Record) {
	b := c.img().broker(req.Broker)
	switch {
	case b == nil:
		return &AllocateProducerIDsReply{First: kafka.NoProducer, Err: kafka.ErrBrokerIDNotRegistered}, nil
	case req.Epoch != 0 && req.Epoch != b.Epoch:
		return &AllocateProducerIDsReply{First: kafka.NoProducer, Err: kafka.ErrStaleBrokerEpoch}, nil
	}
	n := req.Count
	if n <= 0 {
		n = producerIDBlock
	}
	first := c.img().nextProducerID
	if first > 1<<63-1-kafka.ProducerID(n) {
		return &AllocateProducerIDsReply{First: kafka.NoProducer, Err: kafka.ErrUnknownServerError}, nil
	}
	return &AllocateProducerIDsReply{First: first, Count: n}, []Record{&ProducerIDsRecord{Next: first + kafka.ProducerID(n)}}
}
