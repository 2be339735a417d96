package replica

import (
	"fmt"

	"github.com/weirmq/weir/internal/kafka"
)

// EpochChain answers from the follower's own log which epochs it holds.
type EpochChain interface {
	// EndOfEpoch is the largest epoch of the log that is not above e, and the
	// offset at which it ends (KIP-101). When all are above e, it is e and the
	// first one's start, or kafka.NoEpoch.
	EndOfEpoch(e kafka.Epoch) (kafka.Epoch, kafka.Offset)
	// LastEpoch is the epoch of the last record, kafka.NoEpoch of an empty log.
	LastEpoch() kafka.Epoch
}

// FollowerConfig is what a new follower starts from.
type FollowerConfig struct {
	Leader        kafka.BrokerID
	Epoch         kafka.Epoch
	Start, End    kafka.Offset // of the own log
	HighWatermark kafka.Offset // the last one known, brought between Start and End
}

// Follower holds a follower's side of a partition for one leader epoch.
type Follower struct {
	leader     kafka.BrokerID
	epoch      kafka.Epoch
	start, end kafka.Offset
	hw         kafka.Offset
}

// Answer is what the leader's fetch answer says of the partition, its records
// aside.
type Answer struct {
	Code          kafka.Error
	HighWatermark kafka.Offset
	LogStart      kafka.Offset
	LogEnd        kafka.Offset // only with OFFSET_OUT_OF_RANGE: asked of the leader (ListOffsets), NoOffset if not yet
	Diverging     bool         // the leader's log differs from where this epoch ends (KIP-595)
	DivergeEpoch  kafka.Epoch
	DivergeEnd    kafka.Offset
}

// Step is what a follower has to do next.
type Step uint8

// The steps.
const (
	Append       Step = iota // append the answer's records, then Advanced
	Truncate                 // cut the log to Action.Offset, then Truncated
	TruncateFull             // drop the whole log and start it at Action.Offset, then Truncated
	AskEnds                  // ask the leader for its log start and end, then Check again with them
	Retry                    // fetch again after a pause
	Stop                     // fetch no more until metadata brings another leader epoch
)

var stepNames = [...]string{"append", "truncate", "truncate-full", "ask-ends", "retry", "stop"}

func (s Step) String() string { return stepNames[s] }

// Action is a Step with its offset.
type Action struct {
	Step   Step
	Offset kafka.Offset
}

// NewFollower returns the follower of a new epoch.
func NewFollower(c FollowerConfig) *Follower {
	return &Follower{leader: c.Leader, epoch: c.Epoch, start: c.Start, end: c.End, hw: min(max(c.HighWatermark, c.Start), c.End)}
}

// Leader is the broker to fetch from.
func (f *Follower) Leader() kafka.BrokerID { return f.leader }

// Epoch is the leader epoch, the current one to claim in fetches.
func (f *Follower) Epoch() kafka.Epoch { return f.epoch }

// FetchOffset is where to fetch from: the own log end.
func (f *Follower) FetchOffset() kafka.Offset { return f.end }

// HighWatermark is the follower's.
func (f *Follower) HighWatermark() kafka.Offset { return f.hw }

// Check decides on a leader's answer to a fetch from FetchOffset that told
// chain.LastEpoch as the last fetched epoch.
func (f *Follower) Check(a Answer, chain EpochChain) Action {
	switch a.Code {
	case kafka.NoError:
		if a.Diverging {
			return Action{Truncate, f.divergence(a.DivergeEpoch, a.DivergeEnd, chain)}
		}
		return Action{Step: Append}
	case kafka.ErrOffsetOutOfRange:
		return f.outOfRange(a)
	case kafka.ErrFencedLeaderEpoch:
		return Action{Step: Stop} // a newer leader exists; its image is on the way
	}
	// UNKNOWN_LEADER_EPOCH: the leader does not know yet that it leads.
	// NOT_LEADER_OR_FOLLOWER, storage errors, corrupt records and anything
	// unforeseen may pass.
	return Action{Step: Retry}
}

// divergence is where to cut, given the largest epoch of the leader that is not
// above ours, and where that ends there.
func (f *Follower) divergence(leaderEpoch kafka.Epoch, leaderEnd kafka.Offset, chain EpochChain) kafka.Offset {
	cut := f.end
	if leaderEnd == kafka.NoOffset {
		// The leader knows nothing of such an epoch: only what is committed is
		// surely common.
		cut = f.hw
	} else if epoch, end := chain.EndOfEpoch(leaderEpoch); epoch == kafka.NoEpoch {
		// All of ours is newer than what the leader has so far. To cut to
		// leaderEnd, past our end, would ask the same for ever.
		cut = f.start
	} else if epoch == leaderEpoch {
		cut = min(end, leaderEnd)
	} else {
		// We lack that epoch: cut to the end of the one before it and let the next
		// fetch compare again (KIP-279).
		cut = end
	}
	return min(max(cut, f.start), f.end)
}

// outOfRange: the follower's end lies outside the leader's log.
func (f *Follower) outOfRange(a Answer) Action {
	switch {
	case a.LogEnd == kafka.NoOffset:
		return Action{Step: AskEnds}
	case a.LogEnd < f.end:
		// Only after an unclean election can the leader have less.
		if a.LogEnd < f.start {
			return Action{TruncateFull, a.LogEnd}
		}
		return Action{Truncate, a.LogEnd}
	case a.LogStart > f.end:
		// What comes next is deleted on the leader already.
		return Action{TruncateFull, a.LogStart}
	}
	return Action{Step: Retry} // the leader's log moved meanwhile
}

// Truncated tells that the log was cut, and spans start to end now. The watermark
// follows, also forwards when the log starts beyond it.
func (f *Follower) Truncated(start, end kafka.Offset) {
	f.start, f.end = start, end
	f.hw = min(max(f.hw, start), end)
}

// Advanced tells that the log reaches end, with the watermark and log start of
// the answer that brought it there. It reports the follower's watermark and the
// log start that its log should now have: the leader's, as far as it is committed
// here.
func (f *Follower) Advanced(end, leaderHW, leaderStart kafka.Offset) (hw, start kafka.Offset) {
	if end < f.end {
		panic(fmt.Sprintf("BUG: follower's log end went from %d to %d without Truncated", f.end, end))
	}
	f.end = end
	// A new leader's watermark may be behind what this replica saw committed.
	f.hw = max(f.hw, min(leaderHW, end))
	f.start = max(f.start, min(leaderStart, f.hw))
	return f.hw, f.start
}
