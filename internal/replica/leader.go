package replica

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

// DefaultLagMaxMs is Kafka's replica.lag.time.max.ms.
const DefaultLagMaxMs = 30000

// LeaderConfig is what a new leader starts from.
type LeaderConfig struct {
	Self           kafka.BrokerID
	Epoch          kafka.Epoch
	PartitionEpoch int32
	Replicas, ISR  []kafka.BrokerID // with Self; copied
	Start, End     kafka.Offset     // of the log
	HighWatermark  kafka.Offset     // the last one known, brought between Start and End
	MinISR         int              // min.insync.replicas
	LagMaxMs       int64            // replica.lag.time.max.ms; 0: DefaultLagMaxMs
	Now            time.Time        // in-sync followers count as caught up from here
}

// Leader holds the leader's side of a partition for one leader epoch.
type Leader struct {
	self           kafka.BrokerID
	epoch          kafka.Epoch
	partitionEpoch int32
	epochStart     kafka.Offset // log end when the epoch began: followers join only from here (KIP-101)
	end            kafka.Offset
	hw             kafka.Offset
	minISR         int
	lagMaxMs       int64
	clockMs        int64 // the latest now of any call that brought one

	replicas  []kafka.BrokerID
	isr       []kafka.BrokerID // committed by the controller
	pending   *Proposal
	followers []follower // every replica but self, in the order of replicas
}

// follower is what the leader knows of another replica.
type follower struct {
	id         kafka.BrokerID
	end        kafka.Offset // NoOffset: has not fetched in this epoch
	eligible   bool         // alive and not shutting down, as of its last fetch
	caughtUpMs int64        // last time at which it had all the leader had
	fetchMs    int64        // of the last fetch
	leaderEnd  kafka.Offset // the leader's end at the last fetch
}

// Proposal asks the controller for another in-sync set (AlterPartition).
type Proposal struct {
	Epoch          kafka.Epoch
	PartitionEpoch int32 // the one the proposal is based on
	ISR            []kafka.BrokerID
}

// Fetch is what a follower's fetch tells of it.
type Fetch struct {
	From     kafka.BrokerID
	Offset   kafka.Offset // the fetch offset, hence the follower's log end
	Eligible bool         // by the image: not fenced, not shutting down, same incarnation
}

// NewLeader returns the leader of a new epoch. A single replica's watermark is at
// its log end at once; with more it moves with their fetches.
func NewLeader(c LeaderConfig) *Leader {
	if !slices.Contains(c.ISR, c.Self) || !slices.Contains(c.Replicas, c.Self) {
		panic(fmt.Sprintf("BUG: leader %d is not among replicas %v and in-sync %v", c.Self, c.Replicas, c.ISR))
	}
	if c.LagMaxMs == 0 {
		c.LagMaxMs = DefaultLagMaxMs
	}
	l := &Leader{
		self: c.Self, epoch: c.Epoch, partitionEpoch: c.PartitionEpoch, epochStart: c.End, end: c.End,
		hw: min(max(c.HighWatermark, c.Start), c.End), minISR: c.MinISR, lagMaxMs: c.LagMaxMs,
	}
	l.assign(c.Replicas, c.ISR, c.Now)
	l.tick(c.Now)
	l.advance()
	return l
}

// assign takes replicas and in-sync set, keeping what is known of replicas that
// stay.
func (l *Leader) assign(replicas, isr []kafka.BrokerID, now time.Time) {
	old := l.followers
	l.replicas, l.isr, l.followers = slices.Clone(replicas), slices.Clone(isr), nil
	for _, id := range replicas {
		if id == l.self {
			continue
		}
		if i := slices.IndexFunc(old, func(f follower) bool { return f.id == id }); i >= 0 {
			l.followers = append(l.followers, old[i])
			continue
		}
		f := follower{id: id, end: kafka.NoOffset, leaderEnd: kafka.NoOffset}
		if slices.Contains(isr, id) {
			// It had all that was committed; give it the whole lag time to come.
			f.eligible, f.caughtUpMs = true, now.UnixMilli()
		}
		l.followers = append(l.followers, f)
	}
}

// Epoch is the leader epoch.
func (l *Leader) Epoch() kafka.Epoch { return l.epoch }

// PartitionEpoch is the version of replicas and in-sync set.
func (l *Leader) PartitionEpoch() int32 { return l.partitionEpoch }

// HighWatermark is the offset below which every record is committed.
func (l *Leader) HighWatermark() kafka.Offset { return l.hw }

// ISR is the committed in-sync set, not to be changed.
func (l *Leader) ISR() []kafka.BrokerID { return l.isr }

// SetMinISR takes a new min.insync.replicas. It reports whether that let the
// watermark move.
func (l *Leader) SetMinISR(n int) (advanced bool) {
	l.minISR = n
	return l.advance()
}

// CheckEpoch compares the epoch a request claims with the leader's (KIP-320).
func (l *Leader) CheckEpoch(claimed kafka.Epoch) kafka.Error { return CheckEpoch(claimed, l.epoch) }

// CheckEpoch answers a request that claims a leader epoch; kafka.NoEpoch claims
// nothing.
func CheckEpoch(claimed, current kafka.Epoch) kafka.Error {
	switch {
	case claimed == kafka.NoEpoch || claimed == current:
		return kafka.NoError
	case claimed < current:
		return kafka.ErrFencedLeaderEpoch
	default:
		return kafka.ErrUnknownLeaderEpoch
	}
}

// CheckAppend says whether a write with acks may be taken: acks=-1 needs the
// minimum of replicas in sync.
func (l *Leader) CheckAppend(acks int16) kafka.Error {
	if acks == -1 && len(l.isr) < l.effectiveMin() {
		return kafka.ErrNotEnoughReplicas
	}
	return kafka.NoError
}

// AckedAll says whether the record at last is acknowledged to an acks=-1
// producer, and with what: when the in-sync set has shrunk below the minimum
// since, the write is there but its promise is not kept.
func (l *Leader) AckedAll(last kafka.Offset) (done bool, code kafka.Error) {
	if l.hw <= last {
		return false, kafka.NoError
	}
	if l.maximalSize() < l.effectiveMin() {
		return true, kafka.ErrNotEnoughReplicasAfterAppend
	}
	return true, kafka.NoError
}

// ReadBound is the offset up to which a fetch may read: followers read all of the
// log, consumers what is committed. For read_committed the log knows better.
func (l *Leader) ReadBound(fromFollower bool) kafka.Offset {
	if fromFollower {
		return l.end
	}
	return l.hw
}

// Appended tells that the leader's own log is good up to end. It reports whether
// the watermark moved. The end may not fall: a leader does not truncate.
func (l *Leader) Appended(end kafka.Offset) (advanced bool) {
	if end < l.end {
		panic(fmt.Sprintf("BUG: leader's log end went from %d to %d", l.end, end))
	}
	l.end = end
	return l.advance()
}

// Fetched notes a follower's fetch. It reports whether the watermark moved and
// what in-sync set to propose now, if any. The code refuses a fetch from a broker
// that is not a replica.
func (l *Leader) Fetched(now time.Time, f Fetch) (advanced bool, p *Proposal, code kafka.Error) {
	i := slices.IndexFunc(l.followers, func(o follower) bool { return o.id == f.From })
	if i < 0 {
		return false, nil, kafka.ErrUnknownLeaderEpoch // as in Kafka: the fetcher knows an assignment we do not
	}
	ms := l.tick(now)
	o := &l.followers[i]
	switch {
	case f.Offset >= l.end:
		o.caughtUpMs = max(o.caughtUpMs, ms)
	case o.leaderEnd != kafka.NoOffset && f.Offset >= o.leaderEnd:
		// It has now what there was to have at its previous fetch.
		o.caughtUpMs = max(o.caughtUpMs, o.fetchMs)
	}
	o.end, o.eligible, o.fetchMs, o.leaderEnd = min(f.Offset, l.end), f.Eligible, ms, l.end

	if l.pending == nil && l.mayJoin(o) {
		p = l.propose(append(slices.Clone(l.isr), o.id))
	}
	return l.advance(), p, kafka.NoError
}

// mayJoin: a follower joins the in-sync set once it has all that is committed and
// has reached this epoch; before that a new leader's watermark may be behind what
// was committed.
func (l *Leader) mayJoin(o *follower) bool {
	return o.eligible && !slices.Contains(l.isr, o.id) && o.end >= l.hw && o.end >= l.epochStart
}

// Expire proposes an in-sync set without the members that fell behind for longer
// than the lag time, if any. It reports whether the watermark moved, as it does
// when a replica outside the set that held it is gone. Call it about twice per
// lag time.
func (l *Leader) Expire(now time.Time) (advanced bool, p *Proposal) {
	ms := l.tick(now)
	advanced = l.advance()
	if l.pending != nil {
		return advanced, nil
	}
	kept := make([]kafka.BrokerID, 0, len(l.isr))
	for _, id := range l.isr {
		if id == l.self || !l.lags(id, ms) {
			kept = append(kept, id)
		}
	}
	if len(kept) == len(l.isr) {
		return advanced, nil
	}
	return advanced, l.propose(kept)
}

func (l *Leader) lags(id kafka.BrokerID, nowMs int64) bool {
	for i := range l.followers {
		if o := &l.followers[i]; o.id == id {
			return o.end != l.end && nowMs-o.caughtUpMs > l.lagMaxMs
		}
	}
	return true // not a replica any more
}

func (l *Leader) propose(isr []kafka.BrokerID) *Proposal {
	l.pending = &Proposal{Epoch: l.epoch, PartitionEpoch: l.partitionEpoch, ISR: isr}
	return l.pending
}

// Pending is the proposal that is out, or nil.
func (l *Leader) Pending() *Proposal { return l.pending }

// Committed takes replicas and in-sync set from the controller, by answer or
// image, for the same leader epoch. An older partition epoch is ignored. It
// settles whatever was proposed and reports whether the watermark moved.
func (l *Leader) Committed(now time.Time, partitionEpoch int32, replicas, isr []kafka.BrokerID) (advanced bool) {
	if partitionEpoch <= l.partitionEpoch {
		return false
	}
	l.partitionEpoch, l.pending = partitionEpoch, nil
	l.tick(now)
	l.assign(replicas, isr, now)
	return l.advance()
}

// Refused takes the controller's error for a proposal. It returns the proposal to
// send again after a pause, or nil: then either the image will bring what is
// newer, or the rules will propose anew.
func (l *Leader) Refused(p *Proposal, code kafka.Error) (again *Proposal) {
	if p != l.pending {
		return nil // settled meanwhile
	}
	switch code {
	case kafka.ErrOperationNotAttempted, kafka.ErrIneligibleReplica:
		// Known not to have happened; the joiner may not join now.
		for i := range l.followers {
			if !slices.Contains(l.isr, l.followers[i].id) {
				l.followers[i].eligible = false
			}
		}
		l.pending = nil
		return nil
	case kafka.ErrInvalidUpdateVersion, kafka.ErrFencedLeaderEpoch, kafka.ErrNewLeaderElected,
		kafka.ErrUnknownTopicOrPartition, kafka.ErrUnknownTopicID, kafka.ErrInvalidRequest:
		// The controller is ahead of this leader. Until its image is here the
		// proposal may have been committed, so its joiner keeps holding the watermark.
		return nil
	}
	return p
}

// maximalSize is the size of the in-sync set as it may already be.
func (l *Leader) maximalSize() int {
	if l.pending != nil && len(l.pending.ISR) > len(l.isr) {
		return len(l.pending.ISR)
	}
	return len(l.isr)
}

func (l *Leader) inMaximal(id kafka.BrokerID) bool {
	return slices.Contains(l.isr, id) || l.pending != nil && slices.Contains(l.pending.ISR, id)
}

// effectiveMin is min.insync.replicas, which a topic of fewer replicas cannot
// keep anyway.
func (l *Leader) effectiveMin() int { return max(1, min(l.minISR, len(l.replicas))) }

// tick notes the time and returns it in ms.
func (l *Leader) tick(now time.Time) int64 {
	l.clockMs = max(l.clockMs, now.UnixMilli())
	return l.clockMs
}

// advance moves the watermark as far as it may.
func (l *Leader) advance() bool {
	if len(l.isr) < l.effectiveMin() {
		return false
	}
	hw := l.end
	for i := range l.followers {
		if o := &l.followers[i]; o.end < hw && (l.inMaximal(o.id) || l.joining(o)) {
			hw = o.end
		}
	}
	if hw <= l.hw {
		return false
	}
	l.hw = hw
	return true
}

// joining: a replica that is caught up, though not in sync yet, holds the
// watermark already; else it would run after it for ever.
func (l *Leader) joining(o *follower) bool {
	return o.eligible && o.end != kafka.NoOffset && l.clockMs-o.caughtUpMs <= l.lagMaxMs
}
