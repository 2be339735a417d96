package commitlog

// Reading: byte limits (B047), bounds, look-ups by time (B006), ends of epochs
// (B157), and readers beside the writer.

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

func stamped(b []byte, base kafka.Offset) batch.View {
	v := batch.View(append([]byte(nil), b...))
	v.Stamp(base, 0)
	return v
}

func TestByteLimits(t *testing.T) { // batches of 100 bytes, one record each
	for _, far := range []bool{false, true} { // near the end, or beyond the ring
		w := newWorld(t, func(o *Options) { o.IndexIntervalBytes = 300 })
		w.fillTo(10, 30)
		if far {
			w.fillTo(1000, 30)
			w.reopen(true)
		}
		for _, tc := range []struct {
			from, bound kafka.Offset
			max         int
			minOne      bool
			want        int64
			incomplete  bool
		}{
			{8, 10, 200, true, 200, false}, {8, 10, 199, true, 199, false}, {8, 10, 100, true, 100, false},
			{8, 10, 99, true, 100, false}, {8, 10, 99, false, 99, true}, {8, 10, 0, true, 100, false}, {8, 10, 0, false, 0, true},
			{8, 10, 1, true, 100, false}, {8, 9, 1000, true, 100, false}, {8, 8, 1000, true, 0, false}, {8, 7, 1000, true, 0, false},
			{0, 10, 1000, false, 1000, false}, {0, 3, 1 << 20, false, 300, false}, {3, 10, 150, false, 150, false},
		} {
			sl, err := w.l.Read(tc.from, tc.bound, tc.max, tc.minOne)
			if err != nil || sl.Region.Len != tc.want || sl.Incomplete != tc.incomplete {
				t.Errorf("far=%v Read(%d, %d, %d, %v) = %d bytes, incomplete %v, %v; want %d, %v", far,
					tc.from, tc.bound, tc.max, tc.minOne, sl.Region.Len, sl.Incomplete, err, tc.want, tc.incomplete)
			}
			sl.Region.Release()
		}
	}
}

// TestReadAnywhere compares reads from every offset to every bound with the batches
// that were written.
func TestReadAnywhere(t *testing.T) {
	for _, how := range []string{"fresh", "clean", "kill"} {
		w := newWorld(t, func(o *Options) { o.SegmentBytes = 7000; o.IndexIntervalBytes = 300 })
		rng := rand.New(rand.NewPCG(1, 2))
		var bases []kafka.Offset
		for w.l.End() < 400 {
			bases = append(bases, w.append(recs(t0.UnixMilli(), 1+rng.IntN(4), rng.IntN(60))).Base)
		}
		if how != "fresh" {
			w.reopen(how == "clean")
		}
		for range 4000 {
			from, bound := kafka.Offset(rng.Int64N(400)), kafka.Offset(rng.Int64N(405))
			sl, err := w.l.Read(from, bound, 1+rng.IntN(3000), true)
			if err != nil {
				t.Fatal(err)
			}
			b, err := sl.Region.Bytes()
			sl.Region.Release()
			if err != nil {
				t.Fatal(err)
			}
			i := len(bases) - 1
			for bases[i] > from {
				i--
			}
			if (len(b) == 0) != (from >= bound) {
				t.Fatalf("%s: Read(%d, %d): %d bytes", how, from, bound, len(b))
			}
			for n := 0; len(b) > 0; n++ {
				v, rest, err := batch.Next(b)
				if errors.Is(err, batch.ErrShort) && n > 0 {
					break
				}
				if err != nil || v.BaseOffset() != bases[i] || v.BaseOffset() >= bound {
					t.Fatalf("%s: Read(%d, %d): batch %v, want base %d; %v", how, from, bound, v, bases[i], err)
				}
				i, b = i+1, rest
			}
		}
	}
}

func TestOffsetForTime(t *testing.T) { // B006
	ts := t0.UnixMilli()
	one := func(w *world) {
		for i := int64(1); i <= 4; i++ {
			w.append(recs(ts+10*i, 1, 10))
		}
	}
	packed := func(w *world) {
		b := batch.NewBuilder(batch.Plain(batch.Gzip))
		for i := int64(1); i <= 4; i++ {
			b.Add(ts+10*i, nil, []byte("v"))
		}
		w.append(b.Bytes())
	}
	for name, fill := range map[string]func(w *world){"single": one, "packed": packed} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if _, ok, err := w.l.OffsetForTime(10, 0); ok || err != nil {
				t.Fatal("empty log", ok, err)
			}
			fill(w)
			for range 2 {
				for _, tc := range []struct{ ask, off, at int64 }{{5, 0, 10}, {10, 0, 10}, {15, 1, 20}, {40, 3, 40}, {41, -1, 0}} {
					got, ok, err := w.l.OffsetForTime(ts+tc.ask, 4)
					if err != nil || ok != (tc.off >= 0) || ok && (got != TimeOffset{kafka.Offset(tc.off), ts + tc.at, 0}) {
						t.Errorf("time %d: %+v %v %v", tc.ask, got, ok, err)
					}
				}
				if _, ok, _ := w.l.OffsetForTime(ts+40, 3); ok {
					t.Error("passed the bound")
				}
				if m, ok, err := w.l.MaxTimestamp(); !ok || err != nil || m != (TimeOffset{3, ts + 40, 0}) {
					t.Error(m, ok, err)
				}
				w.reopen(true)
			}
		})
	}
}

func TestTimesOutOfOrder(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SegmentBytes = 3000; o.IndexIntervalBytes = 200 })
	rng := rand.New(rand.NewPCG(3, 4))
	var times []int64
	for range 300 {
		times = append(times, t0.UnixMilli()+rng.Int64N(500)+int64(len(times)))
		w.append(recs(times[len(times)-1], 1, 30))
	}
	check := func() {
		t.Helper()
		for ask := t0.UnixMilli() - 1; ask < t0.UnixMilli()+900; ask += 7 {
			want := -1
			for i, ts := range times {
				if ts >= ask {
					want = i
					break
				}
			}
			got, ok, err := w.l.OffsetForTime(ask, w.l.End())
			if err != nil || ok != (want >= 0) || ok && int(got.Offset) != want {
				t.Fatalf("time %d: %+v %v %v, want %d", ask, got, ok, err, want)
			}
		}
	}
	check()
	w.reopen(true)
	check()
	w.reopen(false)
	check()
}

func TestEndOfEpoch(t *testing.T) { // B157
	w := newWorld(t, nil)
	for i := range 30 {
		if _, err := w.l.Append(t0, recs(1, 1, 1), []kafka.Epoch{1, 3, 5}[i/10]); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		for _, tc := range []struct {
			ask, epoch kafka.Epoch
			end        kafka.Offset
		}{{-1, -1, -1}, {0, 0, 0}, {1, 1, 10}, {2, 1, 10}, {3, 3, 20}, {4, 3, 20}, {5, 5, 30}, {9, -1, -1}} {
			if e, end := w.l.EndOfEpoch(tc.ask); e != tc.epoch || end != tc.end {
				t.Errorf("round %d: EndOfEpoch(%d) = %d, %d; want %d, %d", round, tc.ask, e, end, tc.epoch, tc.end)
			}
		}
		w.reopen(round == 0)
	}
	if err := w.l.AssignEpoch(7); err != nil {
		t.Fatal(err)
	}
	if e, end := w.l.EndOfEpoch(6); e != 5 || end != 30 || w.l.LastEpoch() != 7 {
		t.Fatal(e, end)
	}
	if err := w.l.TruncateTo(15); err != nil {
		t.Fatal(err)
	}
	if e, end := w.l.EndOfEpoch(3); e != 3 || end != 15 || w.l.LastEpoch() != 3 {
		t.Fatal(e, end)
	}
	if _, err := w.l.DeleteBefore(12); err != nil {
		t.Fatal(err)
	}
	if e, end := w.l.EndOfEpoch(1); e != 1 || end != 12 {
		t.Fatal(e, end)
	}
}

// TestReadersBesideWriter is for the race detector: everything that may run beside
// the writer does.
func TestReadersBesideWriter(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.SegmentBytes = 5000
		o.IndexIntervalBytes = 300
		o.RetentionMs = -1
		o.RetentionBytes = 40_000
	})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	reader := func(fn func(rng *rand.Rand) error) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, 2))
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := fn(rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	reader(func(rng *rand.Rand) error {
		end := w.l.End()
		_, err := walkLog(w.l, max(w.l.LogStart(), end-50), end, 500)
		return ignoreRange(err)
	})
	reader(func(rng *rand.Rand) error {
		end, start := w.l.End(), w.l.LogStart()
		_, err := walkLog(w.l, start+kafka.Offset(rng.Int64N(int64(end-start)+1)), end, 5000)
		return ignoreRange(err)
	})
	reader(func(rng *rand.Rand) error {
		_, _, err := w.l.OffsetForTime(t0.UnixMilli()+rng.Int64N(3000), w.l.End())
		w.l.EndOfEpoch(0)
		w.l.LastStable(w.l.End())
		w.l.Aborted(w.l.LogStart(), w.l.End())
		w.l.Producers(t0)
		return err
	})
	reader(func(*rand.Rand) error { _, err := w.l.Flush(); return err })
	for i := range 3000 {
		w.append(recs(t0.UnixMilli()+int64(i), 1, 60))
		if i%100 == 99 {
			if i%500 == 499 {
				if err := w.l.TruncateTo(w.l.End() - 20); err != nil {
					t.Fatal(err)
				}
			}
			w.retain(t0.Add(time.Second))
		}
	}
	close(stop)
	wg.Wait()
}

// ignoreRange forgives a reader whose offset was retained or truncated away.
func ignoreRange(err error) error {
	if err == kafka.ErrOffsetOutOfRange || errors.Is(err, batch.ErrCorrupt) || err != nil && err.Error() == "unexpected EOF" {
		return nil
	}
	return err
}
