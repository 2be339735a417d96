package commitlog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// TestCrashTransactions: after any crash, and after damage to the index of aborted
// transactions, producers, aborted transactions and the last stable offset are what
// the batches say.
func TestCrashTransactions(t *testing.T) {
	for seed := range crashSeeds {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := disk.NewMem(seed)
		w := worldOn(t, mem, func(o *Options) { o.SegmentBytes = 1500; o.IndexIntervalBytes = 200 })
		if err := mem.SyncDir("."); err != nil {
			t.Fatal(err)
		}
		for round := range 4 {
			w.randomTxns(rng, 60)
			w.wantTruth(fmt.Sprintf("seed %d round %d", seed, round))
			if rng.IntN(2) == 0 {
				mem = mem.CrashClone()
				w.fs, w.cfg.FS = mem, mem
			}
			if err := w.l.Close(false); err != nil {
				t.Fatal(err)
			}
			w.open()
			w.wantTruth(fmt.Sprintf("seed %d round %d after the crash\n%s", seed, round, w.logs.String()))
		}
		w.reopen(true)
		w.wantTruth(fmt.Sprintf("seed %d after a clean close", seed))
		for _, s := range w.l.segments() {
			if txns, _ := s.aborted(); len(txns) > 0 && rng.IntN(2) == 0 {
				w.cfg.Clean = true
				if err := w.l.Close(true); err != nil {
					t.Fatal(err)
				}
				w.edit(fileName(s.base, txnExt), []func([]byte) []byte{zeros, cut(3)}[rng.IntN(2)])
				w.open()
				w.wantTruth(fmt.Sprintf("seed %d, index of segment %d damaged", seed, s.base))
			}
		}
	}
}

func (w *world) randomTxns(rng *rand.Rand, n int) {
	w.Helper()
	for range n {
		id := kafka.ProducerID(1 + rng.IntN(3))
		st := ProducerState{LastSequence: -1, TxnStart: kafka.NoOffset}
		for _, p := range w.l.Producers(t0) {
			if p.ID == id {
				st = p
			}
		}
		switch rng.IntN(10) {
		case 0:
			if _, err := w.l.Flush(); err != nil {
				w.Fatal(err)
			}
			w.cfg.RecoveryPoint = w.l.Flushed()
		case 1:
			if err := w.l.Checkpoint(t0); err != nil {
				w.Fatal(err)
			}
		case 2, 3, 4:
			w.append(batch.Control(int16(rng.IntN(2)), id, st.Epoch, 0, t0.UnixMilli()))
		default:
			w.append(fromProducer(t0.UnixMilli(), id, st.Epoch, st.LastSequence+1, 1, true))
		}
	}
}

// wantTruth compares with a replay of all batches.
func (w *world) wantTruth(when string) {
	w.Helper()
	var ps producers
	var want []AbortedTxn
	for _, s := range w.l.segments() {
		if err := w.l.walk(s, 0, func(b found) error {
			txn, aborted, err := ps.update(b.View)
			if aborted {
				want = append(want, txn)
			}
			return err
		}); err != nil {
			w.Fatal(err)
		}
	}
	end := w.l.End()
	if got := w.l.Aborted(0, end+1); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("%s: aborted\n%v, want\n%v", when, got, want)
	}
	if got, want := w.l.LastStable(end), ps.lastStable(end); got != want {
		w.Fatalf("%s: last stable %d, want %d", when, got, want)
	}
	if got, want := w.l.producers.snapshot(), ps.snapshot(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("%s: producers\n%v, want\n%v", when, got, want)
	}
}
