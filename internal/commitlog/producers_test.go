package commitlog

// Producer rules: each step is one batch and the answer it gets. Field cases B121
// (expiry), B122 (window of five), B123 (epochs), B125 (kill).

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

type step struct {
	epoch   int16
	seq     int32
	n       int
	txn     bool
	want    kafka.Error
	dupOf   kafka.Offset // with dup: the offset of the first copy
	dup     bool
	marker  bool // end the transaction (abort) instead
	coord   int32
	comment string
}

func play(w *world, steps []step) {
	w.Helper()
	for i, s := range steps {
		b := fromProducer(t0.UnixMilli(), 1, s.epoch, s.seq, max(s.n, 1), s.txn)
		if s.marker {
			b = batch.Control(batch.Abort, 1, s.epoch, s.coord, t0.UnixMilli())
		}
		end := w.l.End()
		a, err := w.l.Append(t0, b, 0)
		var code kafka.Error
		if err != nil && !errors.As(err, &code) {
			w.Fatalf("step %d %s: %v", i, s.comment, err)
		}
		if code != s.want {
			w.Fatalf("step %d %s: got %v, want %v", i, s.comment, code, s.want)
		}
		if a.Duplicate != s.dup || s.dup && a.Base != s.dupOf {
			w.Fatalf("step %d %s: %+v, want duplicate %v of %d", i, s.comment, a, s.dup, s.dupOf)
		}
		if grew := w.l.End() > end; grew != (code == 0 && !s.dup) {
			w.Fatalf("step %d %s: end went from %d to %d", i, s.comment, end, w.l.End())
		}
	}
}

func seqs(from, to int32) (steps []step) {
	for s := from; s <= to; s++ {
		steps = append(steps, step{seq: s})
	}
	return steps
}

func TestProducerRules(t *testing.T) {
	old := kafka.ErrOutOfOrderSequenceNumber
	for name, steps := range map[string][]step{
		"window of five (B122)": append(append(seqs(0, 4),
			step{seq: 0, dup: true, dupOf: 0}, step{seq: 2, dup: true, dupOf: 2}, step{seq: 4, dup: true, dupOf: 4},
			step{seq: 7, want: old}),
			append(seqs(5, 9), step{seq: 0, want: old}, step{seq: 5, dup: true, dupOf: 5})...),
		"epochs (B123)": {
			{seq: 0}, {epoch: 1, seq: 0}, {epoch: 2, seq: 5, want: old}, {epoch: 0, seq: 1, want: kafka.ErrInvalidProducerEpoch},
			{epoch: 1, seq: 1}, {epoch: 2, seq: 0}, {epoch: 2, seq: 0, dup: true, dupOf: 3},
		},
		"unknown producer begins anywhere (B121)": {{seq: 7}, {seq: 8}, {seq: 10, want: old}},
		"wrap": {
			{seq: math.MaxInt32 - 1, n: 2}, {seq: 0, n: 1}, {seq: math.MaxInt32 - 1, n: 2, dup: true, dupOf: 0}, {seq: 1},
		},
		"wrap within a batch": {
			{seq: math.MaxInt32 - 1, n: 5}, {seq: 3}, {seq: math.MaxInt32 - 1, n: 5, dup: true, dupOf: 0}, {seq: 3, dup: true, dupOf: 5},
		},
		"same start, other length": {{seq: 0, n: 3}, {seq: 0, n: 2, want: old}, {seq: 3}},
		"transactions": {
			{seq: 0, txn: true}, {seq: 1, want: kafka.ErrInvalidTxnState}, {seq: 1, txn: true},
			{marker: true, coord: 3}, {seq: 2}, {marker: true, coord: 2, want: kafka.ErrTransactionCoordinatorFenced},
			{epoch: -1, marker: true, coord: 3, want: kafka.ErrInvalidProducerEpoch}, {epoch: 1, marker: true, coord: 3},
			{seq: 3, want: kafka.ErrInvalidProducerEpoch}, {epoch: 1, seq: 4, comment: "a marker leaves no sequence", want: old}, {epoch: 1, seq: 0},
		},
	} {
		t.Run(name, func(t *testing.T) { play(newWorld(t, nil), steps) })
	}
}

func TestProducerSurvivesRestart(t *testing.T) {
	for _, how := range []string{"clean", "kill", "kill after roll", "snapshot lost"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, nil)
			play(w, seqs(0, 3))
			if how == "kill after roll" || how == "snapshot lost" {
				if err := w.l.roll(t0, w.l.End()); err != nil {
					t.Fatal(err)
				}
			}
			play(w, []step{{seq: 4}})
			if how == "snapshot lost" {
				if err := w.fs.Remove(w.l.path(4, snapshotExt)); err != nil {
					t.Fatal(err)
				}
			}
			w.reopen(how == "clean")
			// All five in flight are known, although a snapshot keeps one batch.
			play(w, []step{{seq: 0, dup: true, dupOf: 0}, {seq: 4, dup: true, dupOf: 4}, {seq: 2, dup: true, dupOf: 2},
				{seq: 6, want: kafka.ErrOutOfOrderSequenceNumber}, {seq: 5}, {seq: 0, want: kafka.ErrOutOfOrderSequenceNumber}})
		})
	}
}

func TestProducerExpiry(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ProducerExpirationMs = 5000 })
	play(w, append(seqs(0, 6), step{seq: 8, want: kafka.ErrOutOfOrderSequenceNumber}))
	if n := len(w.l.Producers(t0.Add(4 * time.Second))); n != 1 {
		t.Fatalf("%d producers before expiry", n)
	}
	if n := len(w.l.Producers(t0.Add(20 * time.Second))); n != 0 {
		t.Fatalf("%d producers after expiry", n)
	}
	play(w, []step{{seq: 8}})
	w.cfg.Now = t0.Add(20 * time.Second)
	w.reopen(true)
	if n := len(w.l.Producers(w.cfg.Now)); n != 0 {
		t.Fatalf("%d producers after a restart past expiry", n)
	}
}

func TestLastStableAndAborted(t *testing.T) {
	for _, restart := range []string{"", "clean", "kill"} {
		t.Run("restart="+restart, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.SegmentBytes = 600 })
			put := func(b batch.View) kafka.Offset { return w.append(b).Base }
			ts := t0.UnixMilli()
			put(recs(ts, 1, 10))                              // 0
			put(fromProducer(ts, 1, 0, 0, 2, true))           // 1-2
			put(fromProducer(ts, 2, 0, 0, 2, true))           // 3-4
			put(batch.Control(batch.Commit, 2, 0, 0, ts))     // 5
			put(fromProducer(ts, 1, 0, 2, 1, true))           // 6
			a := put(batch.Control(batch.Abort, 1, 0, 0, ts)) // 7
			put(fromProducer(ts, 3, 0, 0, 1, true))           // 8
			put(recs(ts, 3, 10))                              // 9-11
			b := put(batch.Control(batch.Abort, 3, 0, 0, ts)) // 12
			open := put(fromProducer(ts, 4, 0, 0, 1, true))   // 13
			put(recs(ts, 1, 400))                             // 14
			put(batch.Control(batch.Abort, 99, 0, 0, ts))     // 15: nothing to end
			if a != 7 || b != 12 || open != 13 || w.l.Segments() < 2 {
				t.Fatal("the table above is off", a, b, open, w.l.Segments())
			}
			if restart != "" {
				w.reopen(restart == "clean")
			}
			if restart == "" {
				for hw, want := range map[kafka.Offset]kafka.Offset{0: 0, 1: 1, 5: 1} {
					if got := w.l.LastStable(hw); got != want {
						t.Errorf("LastStable(%d) = %d, want %d", hw, got, want)
					}
				}
				if got := w.l.LastStable(7); got != 1 {
					t.Errorf("marker at 7 is not below the watermark 7: %d", got)
				}
			}
			if got := w.l.LastStable(8); got != 8 {
				t.Errorf("LastStable(8) = %d", got)
			}
			if got := w.l.LastStable(w.l.End()); got != 13 {
				t.Errorf("LastStable(end) = %d, want 13", got)
			}
			for _, tc := range []struct {
				from, to kafka.Offset
				want     string
			}{
				{0, 13, "[{1 1 7 3} {3 8 12 13}]"}, {0, 5, "[{1 1 7 3}]"}, {8, 13, "[{3 8 12 13}]"}, {13, 16, "[]"}, {0, 1, "[]"}, {12, 13, "[{3 8 12 13}]"},
			} {
				got := w.l.Aborted(tc.from, tc.to)
				for i := range got {
					got[i].stable = 0
				}
				if s := fmt.Sprint(shortTxns(got)); s != fmt.Sprint(shortTxns(parseShort(tc.want))) {
					t.Errorf("Aborted(%d, %d) = %v, want %s", tc.from, tc.to, got, tc.want)
				}
			}
		})
	}
}

func shortTxns(ts []AbortedTxn) (out []string) {
	for _, t := range ts {
		out = append(out, fmt.Sprintf("%d:%d-%d", t.ID, t.First, t.Last))
	}
	return out
}

func parseShort(s string) (out []AbortedTxn) {
	var a AbortedTxn
	for len(s) > 0 {
		if n, _ := fmt.Sscanf(s, "{%d %d %d %d}", &a.ID, &a.First, &a.Last, &a.stable); n == 4 {
			out = append(out, a)
		}
		s = s[1:]
	}
	return out
}

func TestSnapshotRoundTrip(t *testing.T) {
	in := []snapshotEntry{{1, 2, 3, 4, 5, 6, 7, 8}, {9, -1, -1, -1, 0, -1, -1, -1}}
	b := encodeSnapshot(in)
	out, err := parseSnapshot(b)
	if err != nil || fmt.Sprint(in) != fmt.Sprint(out) {
		t.Fatal(out, err)
	}
	for i := range b {
		c := append([]byte(nil), b...)
		c[i] ^= 0x10
		if _, err := parseSnapshot(c); err == nil {
			t.Fatalf("a flipped bit in byte %d was not seen", i)
		}
		if _, err := parseSnapshot(b[:i]); err == nil {
			t.Fatalf("%d of %d bytes were taken", i, len(b))
		}
	}
}
