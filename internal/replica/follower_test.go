package replica

// Shows: what a follower does with each answer; the cases of KIP-101, KIP-279
// and B155.

import (
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

// chain is a log as its epochs: each with its start, in order.
type chain struct {
	epochs []kafka.Epoch
	starts []kafka.Offset
	end    kafka.Offset
}

func (c *chain) EndOfEpoch(e kafka.Epoch) (kafka.Epoch, kafka.Offset) {
	for i := len(c.epochs) - 1; i >= 0; i-- {
		if c.epochs[i] > e {
			continue
		}
		if i == len(c.epochs)-1 {
			return c.epochs[i], c.end
		}
		return c.epochs[i], c.starts[i+1]
	}
	return kafka.NoEpoch, kafka.NoOffset
}

func (c *chain) LastEpoch() kafka.Epoch {
	if len(c.epochs) == 0 {
		return kafka.NoEpoch
	}
	return c.epochs[len(c.epochs)-1]
}

func TestFollowerCheck(t *testing.T) {
	// Own log: epoch 1 from 10, 3 from 20, 5 from 30, end 40; watermark 25.
	own := &chain{epochs: []kafka.Epoch{1, 3, 5}, starts: []kafka.Offset{10, 20, 30}, end: 40}
	diverging := func(e kafka.Epoch, end kafka.Offset) Answer {
		return Answer{Diverging: true, DivergeEpoch: e, DivergeEnd: end}
	}
	outside := func(start, end kafka.Offset) Answer {
		return Answer{Code: kafka.ErrOffsetOutOfRange, LogStart: start, LogEnd: end}
	}
	for _, c := range []struct {
		name   string
		answer Answer
		want   Action
	}{
		{"records", Answer{}, Action{Step: Append}},
		{"the leader ended our epoch earlier", diverging(5, 35), Action{Truncate, 35}},
		{"the leader has an older epoch, which we have longer", diverging(3, 25), Action{Truncate, 25}},
		{"the leader has an older epoch, which we have shorter", diverging(3, 35), Action{Truncate, 30}},
		{"the leader's epoch is unknown here: cut the later ones", diverging(4, 33), Action{Truncate, 30}},
		{"and before all of ours", diverging(0, 5), Action{Truncate, 10}},
		{"the leader knows no such epoch: to the watermark", diverging(kafka.NoEpoch, kafka.NoOffset), Action{Truncate, 25}},
		{"out of range: ask", outside(0, kafka.NoOffset), Action{Step: AskEnds}},
		{"the leader has less", outside(0, 35), Action{Truncate, 35}},
		{"the leader ends before our start", outside(0, 7), Action{TruncateFull, 7}},
		{"the leader starts after our end (B155)", outside(50, 90), Action{TruncateFull, 50}},
		{"in range after all", outside(0, 90), Action{Step: Retry}},
		{"newer epoch exists", Answer{Code: kafka.ErrFencedLeaderEpoch}, Action{Step: Stop}},
		{"leader is behind in metadata", Answer{Code: kafka.ErrUnknownLeaderEpoch}, Action{Step: Retry}},
		{"not the leader", Answer{Code: kafka.ErrNotLeaderOrFollower}, Action{Step: Retry}},
		{"broken disk there", Answer{Code: kafka.ErrKafkaStorageError}, Action{Step: Retry}},
	} {
		f := NewFollower(FollowerConfig{Leader: 2, Epoch: 6, Start: 10, End: 40, HighWatermark: 25})
		if got := f.Check(c.answer, own); got != c.want {
			t.Errorf("%s: %v %d, want %v %d", c.name, got.Step, got.Offset, c.want.Step, c.want.Offset)
		}
	}
}

func TestFollowerWatermark(t *testing.T) {
	f := NewFollower(FollowerConfig{Leader: 2, Epoch: 6, Start: 10, End: 40, HighWatermark: 25})
	step := func(name string, hw, start, wantHW, wantStart kafka.Offset) {
		t.Helper()
		if hw != wantHW || start != wantStart {
			t.Errorf("%s: watermark %d start %d, want %d and %d", name, hw, start, wantHW, wantStart)
		}
	}
	hw, start := f.Advanced(40, 20, 10)
	step("a new leader's watermark is behind", hw, start, 25, 10)
	hw, start = f.Advanced(50, 90, 10)
	step("not past the own end", hw, start, 50, 10)
	hw, start = f.Advanced(50, 90, 70)
	step("log start not past the watermark", hw, start, 50, 50)
	f.Truncated(50, 50)
	f.Truncated(80, 80)
	step("a log that starts anew takes the watermark along (B155)", f.HighWatermark(), f.FetchOffset(), 80, 80)
	f.Truncated(5, 30)
	step("cut below the watermark", f.HighWatermark(), f.FetchOffset(), 30, 30)
}
