package commitlog

// Compaction: what a reader gets from a cleaned log is what it would have got in the
// end from the whole one. Field cases B145 (tombstones), B147 (lowered size limit),
// B149 (gap at the start), B132 (crash during the swap).

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

func compacted(t testing.TB, fs disk.FS, set func(o *Options)) *world {
	return worldOn(t, fs, func(o *Options) {
		o.Delete, o.Compact, o.MinDirtyRatio, o.SegmentBytes, o.IndexIntervalBytes = false, true, 0, 1500, 300
		if set != nil {
			set(o)
		}
	})
}

// kv builds a batch of records "key=value"; "key" alone is a tombstone.
func kv(opts batch.BuilderOptions, ts int64, records ...string) batch.View {
	b := batch.NewBuilder(opts)
	for i, r := range records {
		k, v, has := strings.Cut(r, "=")
		if has {
			b.Add(ts+int64(i), []byte(k), []byte(v))
		} else {
			b.Add(ts+int64(i), []byte(k), nil)
		}
	}
	return b.Bytes()
}

var plain = batch.Plain(batch.NoCodec)

// state reads the log as a read_committed reader and applies it to a map; offsets
// has the offset of every record seen, null ones too.
func (w *world) state() (state map[string]string, offsets map[string][]kafka.Offset) {
	w.Helper()
	state, offsets = map[string]string{}, map[string][]kafka.Offset{}
	from, end := w.l.LogStart(), w.l.LastStable(w.l.End())
	for from < end {
		sl, err := w.l.Read(from, end, 1<<20, true)
		if err != nil {
			w.Fatal(err)
		}
		b, err := sl.Region.Bytes()
		sl.Region.Release()
		if err != nil {
			w.Fatal(err)
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			v, rest, err := batch.Next(b)
			if err != nil || !v.CRCOK() {
				w.Fatalf("at %d: %v", from, err)
			}
			gone := v.Control()
			for _, t := range w.l.Aborted(v.BaseOffset(), v.LastOffset()+1) {
				gone = gone || v.Transactional() && t.ID == v.ProducerID() && t.First <= v.BaseOffset()
			}
			if !gone {
				if err := v.Each(func(r *batch.Record) error {
					k := string(r.Key)
					offsets[k] = append(offsets[k], v.Offset(r))
					state[k] = string(r.Value)
					if r.Value == nil {
						delete(state, k)
					}
					return nil
				}); err != nil {
					w.Fatal(err)
				}
			}
			from, b = v.LastOffset()+1, rest
		}
	}
	return state, offsets
}

func (w *world) clean(now time.Time) CleanStats {
	w.Helper()
	st, err := w.l.Clean(now, w.l.End())
	if err != nil {
		w.Fatalf("clean: %v", err)
	}
	return st
}

func (w *world) roll() {
	w.Helper()
	if err := w.l.roll(t0, w.l.End()); err != nil {
		w.Fatal(err)
	}
}

func TestTombstones(t *testing.T) { // B145
	for _, year := range []int{0, 1} {
		for _, restart := range []bool{false, true} {
			w := compacted(t, disk.NewMem(1), func(o *Options) { o.DeleteRetentionMs = 10_000 })
			ts := t0.AddDate(-year, 0, 0).UnixMilli()
			w.append(kv(plain, ts, "k=1", "other=1"))
			w.append(kv(plain, ts, "k"))
			w.roll()
			now := t0
			for _, tc := range []struct {
				wait time.Duration
				want string
			}{{0, "[2]"}, {5 * time.Second, "[2]"}, {10 * time.Second, "[]"}} {
				w.clean(now.Add(tc.wait))
				if restart {
					w.cfg.Cleaned = w.l.Cleaned()
					w.reopen(true)
				}
				if _, offs := w.state(); fmt.Sprint(offs["k"]) != tc.want || fmt.Sprint(offs["other"]) != "[1]" {
					t.Fatalf("year %d, after %v: %v", year, tc.wait, offs)
				}
			}
		}
	}
}

func TestCleanLargeBatchAndGap(t *testing.T) { // B147, B149
	w := compacted(t, disk.NewMem(1), func(o *Options) { o.SegmentBytes = 1 << 20 })
	w.append(kv(plain, 1, "a=1", "b=1", "c=1"))
	w.append(kv(plain, 1, "big="+strings.Repeat("x", 900_000)))
	w.append(kv(plain, 1, "a=2", "b=2", "c=2", "a=3"))
	w.append(kv(plain, 1, "big=small"))
	w.roll()
	st := w.clean(t0)
	if st.RecordsBefore != 9 || st.RecordsKept != 4 || st.BytesAfter > 400 || w.l.Cleaned() != 9 {
		t.Fatalf("%+v", st)
	}
	state, offs := w.state()
	if fmt.Sprint(state) != "map[a:3 b:2 big:small c:2]" || fmt.Sprint(offs) != "map[a:[7] b:[5] big:[8] c:[6]]" {
		t.Fatal(state, offs)
	}
	if w.l.LogStart() != 0 || w.l.End() != 9 {
		t.Fatal(w.l.LogStart(), w.l.End())
	}
	sl, err := w.l.Read(0, 9, 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := sl.Region.Bytes()
	if v, _, err := batch.Next(b); err != nil || v.LastOffset() != 7 {
		t.Fatal(v, err)
	}
	if st := w.clean(t0); st.SegmentsBefore != 0 {
		t.Fatalf("a clean log was cleaned: %+v", st)
	}
}

func TestCleanKeepsProducers(t *testing.T) {
	w := compacted(t, disk.NewMem(1), nil)
	p := batch.BuilderOptions{ProducerID: 5}
	for i := range int32(4) {
		p.BaseSequence = i
		w.append(kv(p, t0.UnixMilli(), "k=1"))
	}
	w.append(kv(plain, 1, "k=2"))
	w.roll()
	w.clean(t0)
	w.cfg.Cleaned = w.l.Cleaned()
	if err := w.l.Close(false); err != nil {
		t.Fatal(err)
	}
	for _, off := range w.l.snapshots { // the batches alone must tell
		w.fs.Remove(w.l.path(off, snapshotExt))
	}
	w.open()
	p.BaseSequence = 3
	if a := w.append(kv(p, 1, "k=1")); !a.Duplicate || a.Base != 3 {
		t.Fatalf("%+v", a)
	}
	p.BaseSequence = 4
	w.append(kv(p, 1, "k=5"))
	if state, _ := w.state(); state["k"] != "5" {
		t.Fatal(state)
	}
}

func TestCleanTransactions(t *testing.T) {
	w := compacted(t, disk.NewMem(1), func(o *Options) { o.DeleteRetentionMs = 1000 })
	txn := batch.BuilderOptions{ProducerID: 5, Transactional: true}
	send := func(records ...string) {
		w.append(kv(txn, t0.UnixMilli(), records...))
		txn.BaseSequence += int32(len(records))
	}
	end := func(kind int16) { w.append(batch.Control(kind, 5, 0, 0, t0.UnixMilli())) }
	send("a=1", "b=1")
	end(batch.Commit) // 2
	send("a=bad", "c=bad")
	end(batch.Abort) // 5
	w.roll()
	send("b=2")
	end(batch.Commit) // 7
	send("d=open")    // 8: open, nothing from here on may go
	w.append(kv(plain, 1, "a=late"))
	w.roll()
	count := func() (markers, data int) {
		for _, s := range w.l.segments() {
			if err := w.l.walk(s, 0, func(b found) error {
				if b.Control() {
					markers++
				} else {
					data += int(b.Count())
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	want := "map[a:1 b:2]"
	for i, tc := range []struct{ markers, data int }{{3, 4}, {3, 4}} {
		w.clean(t0.Add(time.Duration(i) * 2 * time.Second))
		if m, d := count(); m > tc.markers || d != tc.data {
			t.Fatalf("run %d: %d markers, %d records", i, m, d)
		}
		if state, _ := w.state(); fmt.Sprint(state) != want {
			t.Fatal(state)
		}
	}
	end(batch.Abort)
	w.roll()
	for i := range 4 {
		w.clean(t0.Add(time.Duration(i+3) * 2 * time.Second))
		w.cfg.Cleaned = w.l.Cleaned()
		w.reopen(i%2 == 0)
		if state, _ := w.state(); fmt.Sprint(state) != "map[a:late b:2]" {
			t.Fatal(state)
		}
	}
	// The first transaction's marker has lost its last record: with the next dirt it
	// is given a horizon, and then goes.
	for i := range 3 {
		w.append(kv(plain, t0.UnixMilli(), fmt.Sprint("z=", i)))
		w.roll()
		w.clean(t0.Add(time.Duration(i+10) * 2 * time.Second))
	}
	if state, _ := w.state(); fmt.Sprint(state) != "map[a:late b:2 z:2]" {
		t.Fatal(state)
	}
	if m, d := count(); m != 2 || d != 3 {
		t.Fatalf("in the end %d markers and %d records", m, d)
	}
}

// TestCleanRandom compares with a map, through codecs, restarts and many runs.
func TestCleanRandom(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := compacted(t, disk.NewMem(seed), func(o *Options) { o.DeleteRetentionMs = int64(rng.IntN(3)) * 500 })
		want := map[string]string{}
		now := t0
		for i := range 200 {
			now = now.Add(100 * time.Millisecond)
			switch rng.IntN(20) {
			case 0:
				w.clean(now)
			case 1:
				w.cfg.Cleaned = w.l.Cleaned()
				w.reopen(rng.IntN(2) == 0)
			default:
				var records []string
				for range 1 + rng.IntN(5) {
					k := fmt.Sprint("k", rng.IntN(30))
					if rng.IntN(4) == 0 {
						delete(want, k)
						records = append(records, k)
					} else {
						want[k] = fmt.Sprint(i, "/", rng.IntN(100))
						records = append(records, k+"="+want[k])
					}
				}
				w.append(kv(batch.Plain([]batch.Codec{batch.NoCodec, batch.LZ4, batch.Zstd}[rng.IntN(3)]), now.UnixMilli(), records...))
			}
			if i%20 == 19 {
				if got, _ := w.state(); !maps.Equal(got, want) {
					t.Fatalf("seed %d step %d:\n%v\n%v", seed, i, got, want)
				}
			}
		}
		w.roll()
		w.clean(now)
		_, offs := w.state()
		for k, o := range offs {
			if len(o) != 1 {
				t.Fatalf("seed %d: %s is at %v", seed, k, o)
			}
		}
		if int(w.l.Size()) > 12_000 {
			t.Fatalf("seed %d: %d bytes left", seed, w.l.Size())
		}
	}
}

// TestCleanCrash stops a run at every call that changes the disk, by an error and by
// a power cut.
func TestCleanCrash(t *testing.T) {
	for _, op := range []disk.Op{disk.OpOpen, disk.OpWrite, disk.OpSync, disk.OpSyncDir, disk.OpRename} {
		for skip := range 100 {
			mem := disk.NewMem(uint64(skip))
			f := disk.NewFaulty(mem)
			w := compacted(t, f, nil)
			if err := mem.SyncDir("."); err != nil {
				t.Fatal(err)
			}
			for i := range 40 {
				w.append(kv(plain, t0.UnixMilli()+int64(i), fmt.Sprint("k", i%7, "=", i, strings.Repeat("x", 60)), fmt.Sprint("u", i, "=1")))
			}
			w.roll()
			if _, err := w.l.Flush(); err != nil {
				t.Fatal(err)
			}
			want, _ := w.state()
			hits := f.Inject(disk.Fault{Op: op, Err: syscall.ENOSPC, Skip: skip, Times: 1})
			_, err := w.l.Clean(t0, w.l.End())
			struck := hits(true) > 0
			if struck && err == nil {
				t.Fatalf("%s %d: the error was swallowed", op, skip)
			}
			if got, _ := w.state(); !maps.Equal(got, want) {
				t.Fatalf("%s %d: readers see %v", op, skip, got)
			}
			for range 4 {
				c := mem.CrashClone()
				cfg := w.cfg
				cfg.FS, cfg.RecoveryPoint, cfg.LogStart = c, w.l.Flushed(), 0
				l, oerr := Open(cfg)
				if oerr != nil {
					t.Fatalf("%s %d: %v", op, skip, oerr)
				}
				v := &world{TB: t, fs: c, cfg: cfg, l: l}
				if got, _ := v.state(); !maps.Equal(got, want) {
					t.Fatalf("%s %d (%v): after a crash\n%v, want\n%v\n%s", op, skip, err, got, want, w.logs.String())
				}
				if names := listNames(v); strings.Contains(names, swapExt) || strings.Contains(names, cleanedExt) || strings.Contains(names, deletedExt) {
					t.Fatalf("%s %d: %s", op, skip, names)
				}
			}
			if !struck {
				break
			}
			var fe *FailedError
			if err := w.l.Close(false); err != nil && !errors.As(err, &fe) {
				t.Fatal(err)
			}
			w.open()
			w.clean(t0)
			if got, offs := w.state(); !maps.Equal(got, want) || len(offs["k1"]) != 1 {
				t.Fatalf("%s %d: %v", op, skip, got)
			}
		}
	}
}

func TestCleanable(t *testing.T) {
	w := compacted(t, disk.NewMem(1), func(o *Options) { o.MinDirtyRatio = 0.5; o.MaxCompactionLagMs = 60_000; o.MinCompactionLagMs = 1000 })
	check := func(at time.Duration, ratio float64, due bool) {
		t.Helper()
		got, d, err := w.l.Cleanable(t0.Add(at), w.l.End())
		if err != nil || d != due || got < ratio-0.02 || got > ratio+0.02 {
			t.Fatalf("%v, %v, %v", got, d, err)
		}
	}
	check(0, 0, false)
	w.append(kv(plain, t0.UnixMilli(), "a=1", "b=1"))
	check(time.Hour, 0, false) // the active segment is never cleaned
	w.roll()
	check(0, 0, false) // too young
	check(2*time.Second, 1, false)
	check(2*time.Minute, 1, true)
	w.clean(t0.Add(2 * time.Second))
	check(2*time.Minute, 0, false)
	w.append(kv(plain, t0.UnixMilli(), "a=2"))
	w.roll()
	check(2*time.Second, 0.45, false)
	if st := w.clean(t0.Add(2 * time.Second)); st.SegmentsBefore != 0 {
		t.Fatalf("%+v", st)
	}
	if st := w.clean(t0.Add(2 * time.Minute)); st.SegmentsBefore != 2 || st.After != 1 {
		t.Fatalf("%+v", st)
	}
	if err := w.l.TruncateTo(1); err != nil || w.l.Cleaned() > w.l.End() {
		t.Fatal(err, w.l.Cleaned(), w.l.End())
	}
	if !slices.Contains([]kafka.Offset{0, 1}, w.l.End()) {
		t.Fatal(w.l.End())
	}
}

func TestCommitAfterTruncate(t *testing.T) {
	w := compacted(t, disk.NewMem(1), nil)
	for i := range 40 {
		w.append(kv(plain, 1, fmt.Sprint("k", i%7, "=", i, strings.Repeat("x", 60))))
	}
	w.roll()
	c, err := w.l.PrepareClean(t0, w.l.End(), CleanLimits{})
	if err != nil || c == nil {
		t.Fatal(err)
	}
	if _, err := w.l.PrepareClean(t0, w.l.End(), CleanLimits{}); err != ErrCleaning {
		t.Fatal(err)
	}
	w.append(kv(plain, 1, "k1=beside"))
	if err := w.l.TruncateTo(35); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Commit(t0); err == nil {
		t.Fatal("committed a run whose keys were truncated away")
	}
	w.wantRange(0, 35)
	w.roll()
	w.clean(t0)
	if state, _ := w.state(); !strings.HasPrefix(state["k6"], "34") || len(state) != 7 {
		t.Fatal(state)
	}
}

// TestHorizonWithoutTombstone: a batch that lost its tombstone keeps its delete horizon
// in the header, and is no reason to compact for ever, over restarts neither.
func TestHorizonWithoutTombstone(t *testing.T) {
	for _, codec := range []batch.Codec{batch.NoCodec, batch.Zstd} {
		for _, restart := range []bool{false, true} {
			w := compacted(t, disk.NewMem(1), func(o *Options) { o.DeleteRetentionMs = 1000; o.MinDirtyRatio = 0.5 })
			again := func() {
				if restart {
					w.cfg.Cleaned = w.l.Cleaned()
					w.reopen(true)
				}
			}
			w.append(kv(batch.Plain(codec), t0.UnixMilli(), "k=v", "x", "y=w"))
			w.roll()
			if st := w.clean(t0); st.RecordsKept != 3 {
				t.Fatalf("%+v", st)
			}
			again()
			now := t0.Add(999 * time.Millisecond)
			if _, due, err := w.l.Cleanable(now, w.l.End()); due || err != nil {
				t.Fatal(due, err)
			}
			now = t0.Add(time.Hour)
			if st := w.clean(now); st.RecordsBefore != 3 || st.RecordsKept != 2 {
				t.Fatalf("the tombstone stays: %+v", st)
			}
			again()
			for range 3 {
				now = now.Add(time.Hour)
				if st := w.clean(now); st.SegmentsBefore != 0 {
					t.Fatalf("codec %v, restart %v: compacted without a reason: %+v", codec, restart, st)
				}
			}
			// Beside one that has a tombstone still.
			w.append(kv(batch.Plain(codec), t0.UnixMilli(), "z=v", "k", strings.Repeat("p", 300)+"=1"))
			w.roll()
			w.clean(now)
			again()
			if _, due, err := w.l.Cleanable(now.Add(999*time.Millisecond), w.l.End()); due || err != nil {
				t.Fatal(due, err)
			}
			now = now.Add(time.Second)
			if st := w.clean(now); st.SegmentsBefore == 0 {
				t.Fatal("the second tombstone stays")
			}
			again()
			if st := w.clean(now.Add(time.Hour)); st.SegmentsBefore != 0 {
				t.Fatalf("compacted without a reason: %+v", st)
			}
			if state, offs := w.state(); len(state) != 3 || len(offs) != 3 {
				t.Fatal(state, offs)
			}
		}
	}
}

// TestNotDueTwice: a run that went as far as it may is not due again until something
// has changed.
func TestNotDueTwice(t *testing.T) {
	settle := func(w *world, now time.Time) {
		t.Helper()
		for range 4 {
			if ratio, due, err := w.l.Cleanable(now, w.l.End()); err != nil {
				t.Fatal(err)
			} else if !due && ratio <= w.l.options().MinDirtyRatio {
				return
			}
			w.clean(now)
		}
		t.Fatalf("due for ever: %s", listNames(w))
	}
	// An open transaction inside a closed segment.
	w := compacted(t, disk.NewMem(1), func(o *Options) { o.DeleteRetentionMs = 1000; o.MaxCompactionLagMs = 1000 })
	w.append(kv(plain, t0.UnixMilli(), "a=1", "b"))
	w.append(kv(batch.BuilderOptions{ProducerID: 5, Transactional: true}, t0.UnixMilli(), "a=2", "c"))
	w.append(kv(plain, t0.UnixMilli(), "d"))
	w.roll()
	for i := range 4 {
		settle(w, t0.Add(time.Duration(i)*time.Hour))
	}
	// The segment with the tombstone is retired.
	w = compacted(t, disk.NewMem(1), func(o *Options) { o.DeleteRetentionMs = 1000 })
	w.append(kv(plain, t0.UnixMilli(), "a=1", "b"))
	w.roll()
	w.clean(t0)
	if _, err := w.l.DeleteBefore(2); err != nil {
		t.Fatal(err)
	}
	settle(w, t0.Add(time.Hour))
	// What an earlier life compacted, and this one takes for dirty: too young to look at.
	w = compacted(t, disk.NewMem(1), func(o *Options) { o.DeleteRetentionMs = 1000 })
	w.append(kv(plain, t0.UnixMilli(), "a=1", "b"))
	w.append(kv(plain, t0.Add(time.Hour).UnixMilli(), "c", "d=1"))
	w.roll()
	w.clean(t0)
	w.cfg.Cleaned, w.cfg.Options.MinCompactionLagMs = 2, 1800_000
	w.reopen(true)
	settle(w, t0.Add(time.Hour))
}
