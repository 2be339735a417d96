package commitlog

// Retention, deletion, truncation and what they leave. Field cases B014, B069, B138,
// B140, B142, B143.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

func (w *world) retain(now time.Time) int64 {
	w.Helper()
	freed, err := w.l.Retain(now, w.l.End())
	if err != nil {
		w.Fatal(err)
	}
	if err := w.l.Sweep(now); err != nil {
		w.Fatal(err)
	}
	return freed
}

func TestEverythingExpires(t *testing.T) { // B014
	w := newWorld(t, func(o *Options) { o.RetentionMs = 1000; o.SegmentBytes = 400 })
	later := t0.Add(time.Hour)
	for end := kafka.Offset(10); end < 13; end++ {
		w.fillTo(end, 50)
		w.retain(later)
		for range 2 {
			if w.l.LogStart() != end || w.l.End() != end || w.l.Segments() != 1 || w.l.Size() != 0 {
				t.Fatalf("%d..%d, %d segments of %d bytes", w.l.LogStart(), w.l.End(), w.l.Segments(), w.l.Size())
			}
			if sl, err := w.l.Read(end, end, 100, true); err != nil || sl.Region.Len != 0 {
				t.Fatal(sl, err)
			}
			for _, off := range []kafka.Offset{end - 1, end + 1} {
				if _, err := w.l.Read(off, end, 100, true); err != kafka.ErrOffsetOutOfRange {
					t.Fatal(off, err)
				}
			}
			if _, ok, err := w.l.OffsetForTime(0, end); ok || err != nil {
				t.Fatal(ok, err)
			}
			w.reopen(end%2 == 0)
		}
	}
	if n := strings.Count(listNames(w), logExt); n != 1 {
		t.Fatal(listNames(w))
	}
}

func TestRetention(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(o *Options)
		hw   kafka.Offset // 0: end
		now  time.Duration
		want kafka.Offset // log start of 100 records in segments of 10
	}{
		"no limits (B142)": {func(o *Options) { o.RetentionMs, o.RetentionBytes = -1, -1 }, 0, 1 << 50, 0},
		"nothing old":      {func(o *Options) { o.RetentionMs = 1000 }, 0, 0, 0},
		"time":             {func(o *Options) { o.RetentionMs = 1000 }, 0, 1055 * time.Millisecond, 50},
		"ms 0 (B142)":      {func(o *Options) { o.RetentionMs = 0 }, 0, time.Second, 100},
		"bytes 1 (B142)":   {func(o *Options) { o.RetentionMs, o.RetentionBytes = -1, 1 }, 0, 0, 90},
		"bytes 0 (B142)":   {func(o *Options) { o.RetentionMs, o.RetentionBytes = -1, 0 }, 0, 0, 100},
		"bytes of three":   {func(o *Options) { o.RetentionMs, o.RetentionBytes = -1, 3*segBytes+5 }, 0, 0, 60},
		"watermark":        {func(o *Options) { o.RetentionMs = 0 }, 35, time.Hour, 30},
		"delete is off":    {func(o *Options) { o.RetentionMs = 0; o.Delete = false; o.Compact = true }, 0, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.SegmentBytes = segBytes; tc.set(o) })
			w.fillTo(100, 30)
			if w.l.Size() != 10*segBytes || w.l.Segments() != 10 {
				t.Fatal("a record takes other than 100 bytes: ", w.l.Size(), w.l.Segments())
			}
			hw := tc.hw
			if hw == 0 {
				hw = w.l.End()
			}
			freed, err := w.l.Retain(t0.Add(tc.now), hw)
			if err != nil || w.l.LogStart() != tc.want || freed != int64(tc.want)*100 {
				t.Fatalf("log start %d, want %d; freed %d; %v", w.l.LogStart(), tc.want, freed, err)
			}
			w.wantRange(tc.want, 100)
			if err := w.l.Sweep(t0.Add(tc.now)); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(listNames(w), deletedExt) {
				t.Fatal(listNames(w))
			}
			w.reopen(false)
			if w.l.LogStart() != tc.want || w.l.End() != 100 {
				t.Fatalf("after restart %d..%d", w.l.LogStart(), w.l.End())
			}
		})
	}
}

const segBytes = 1000 // ten records of recs(…, 1, 30)

func TestFutureTimestamp(t *testing.T) { // B140
	w := newWorld(t, func(o *Options) { o.SegmentBytes = segBytes; o.RetentionMs = 1000 })
	w.fillTo(20, 30)
	w.append(recs(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), 1, 30))
	w.fillTo(60, 30)
	for range 3 {
		w.retain(t0.Add(time.Hour))
	}
	if w.l.LogStart() != 20 {
		t.Fatal(w.l.LogStart())
	}
	if n := strings.Count(w.logs.String(), "future"); n != 1 || !strings.Contains(w.logs.String(), "segment=20") {
		t.Fatal(w.logs.String())
	}
	o := w.l.Options()
	o.RetentionBytes = 2 * segBytes
	if err := w.l.SetOptions(o); err != nil {
		t.Fatal(err)
	}
	w.retain(t0.Add(time.Hour))
	if w.l.LogStart() != 60 { // size took the poisoned one, age the rest
		t.Fatal(w.l.LogStart())
	}
}

func TestDeleteDelay(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SegmentBytes = segBytes; o.RetentionMs = 0; o.FileDeleteDelayMs = 60_000 })
	w.fillTo(20, 30)
	sl, err := w.l.Read(3, 20, 300, true)
	if err != nil {
		t.Fatal(err)
	}
	now := t0.Add(time.Minute)
	for _, tc := range []struct {
		at   time.Duration
		want bool
	}{{0, true}, {59 * time.Second, true}, {60 * time.Second, false}} {
		w.retain(now.Add(tc.at))
		if got := strings.Contains(listNames(w), deletedExt); got != tc.want {
			t.Fatalf("after %v: %s", tc.at, listNames(w))
		}
	}
	if b, err := sl.Region.Bytes(); err != nil || len(b) != 300 {
		t.Fatalf("a region outlives its file: %d bytes, %v", len(b), err)
	}
	sl.Region.Release()
}

func TestDeleteBefore(t *testing.T) { // B143
	w := newWorld(t, func(o *Options) { o.SegmentBytes = segBytes })
	w.fillTo(100, 30)
	for _, tc := range []struct{ to, want, segs kafka.Offset }{{50, 50, 5}, {20, 50, 5}, {57, 57, 5}, {60, 60, 4}} {
		if got, err := w.l.DeleteBefore(tc.to); err != nil || got != tc.want || w.l.Segments() != int(tc.segs) {
			t.Fatal(tc, got, err, w.l.Segments())
		}
		w.reopen(tc.to == 50)
		if w.l.LogStart() != tc.want {
			t.Fatal(w.l.LogStart())
		}
		if _, err := w.l.Read(tc.want-1, 100, 10, true); err != kafka.ErrOffsetOutOfRange {
			t.Fatal(err)
		}
		w.wantRange(tc.want, 100)
		if got, ok, err := w.l.OffsetForTime(0, 100); !ok || err != nil || got.Offset != tc.want {
			t.Fatal(got, ok, err)
		}
	}
	if _, err := w.l.DeleteBefore(101); err != kafka.ErrOffsetOutOfRange {
		t.Fatal(err)
	}
	if got, err := w.l.DeleteBefore(100); got != 100 || err != nil {
		t.Fatal(got, err)
	}
	w.reopen(true)
	if w.l.LogStart() != 100 || w.l.End() != 100 {
		t.Fatal(w.l.LogStart(), w.l.End())
	}
}

func TestTruncate(t *testing.T) {
	for to := kafka.Offset(0); to <= 60; to += 3 {
		w := newWorld(t, func(o *Options) { o.SegmentBytes = segBytes; o.IndexIntervalBytes = 250 })
		w.fillTo(60, 30)
		if _, err := w.l.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := w.l.TruncateTo(to); err != nil {
			t.Fatal(err)
		}
		check := func() {
			t.Helper()
			w.wantRange(0, w.l.End())
			if w.l.Size() != int64(w.l.End())*100 || w.l.Flushed() > w.l.End() {
				t.Fatalf("to %d: %d bytes, end %d, flushed %d", to, w.l.Size(), w.l.End(), w.l.Flushed())
			}
			if m, ok, err := w.l.MaxTimestamp(); err != nil || ok != (w.l.End() > 0) || ok && m.Offset != w.l.End()-1 {
				t.Fatalf("to %d: max timestamp %+v %v %v", to, m, ok, err)
			}
		}
		if w.l.End() != to {
			t.Fatal(w.l.End(), to)
		}
		check()
		w.fillTo(to+15, 30)
		check()
		w.reopen(to%2 == 0)
		if w.l.End() != to+15 {
			t.Fatal(w.l.End())
		}
		check()
	}
}

func TestTruncateWithinBatch(t *testing.T) {
	w := newWorld(t, nil)
	w.append(recs(1, 5, 10))
	w.append(recs(2, 5, 10))
	if err := w.l.TruncateTo(7); err != nil || w.l.End() != 5 {
		t.Fatal(err, w.l.End())
	}
	if err := w.l.TruncateFullyAt(40); err != nil || w.l.End() != 40 || w.l.LogStart() != 40 {
		t.Fatal(err, w.l.End())
	}
	w.append(recs(3, 1, 10))
	w.reopen(false)
	w.wantRange(40, 41)
}

func TestDeleteLog(t *testing.T) { // B069
	t.Chdir(t.TempDir())
	topic := strings.Repeat("n", 249)
	if err := os.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	cfg := Config{FS: disk.OS, Options: o, Now: t0}
	for round := range 2 {
		for p := range int32(12) {
			cfg.TP = kafka.TopicPartition{Topic: topic, Partition: p}
			cfg.Dir = filepath.Join("d", cfg.TP.String())
			l, err := Open(cfg)
			if err != nil {
				t.Fatal(round, err)
			}
			if l.End() != 0 {
				t.Fatal("old records came back")
			}
			if _, err := l.Append(t0, recs(1, 1, 10), 0); err != nil {
				t.Fatal(err)
			}
			sl, err := l.Read(0, 1, 100, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Delete(); err != nil {
				t.Fatal(err)
			}
			if b, err := sl.Region.Bytes(); err != nil || len(b) == 0 {
				t.Fatal(err)
			}
			sl.Region.Release()
			if n := len(filepath.Base(l.Dir())); n > 255 {
				t.Fatalf("%d bytes: %s", n, l.Dir())
			}
			dirs, err := PartitionDirs(disk.OS, "d")
			if err != nil || len(dirs) != 1 || !dirs[0].Deleted || dirs[0].TP.Partition != p {
				t.Fatal(dirs, err)
			}
			for _, at := range []time.Duration{0, 59 * time.Second, 61 * time.Second} {
				if err := l.Sweep(t0.Add(at)); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(l.Dir()); (err == nil) != (at < time.Minute) {
					t.Fatal(at, err)
				}
			}
		}
	}
}

func TestBeyondTwoGiB(t *testing.T) { // B138, in holes
	t.Chdir(t.TempDir())
	w := worldOn(t, disk.OS, func(o *Options) { o.RetentionMs, o.RetentionBytes = -1, 5<<29 })
	w.fillTo(1, 30)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(w.l.path(0, logExt))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(w.l.path(1, snapshotExt))
	for i, base := range []kafka.Offset{0, 100, 200, 300} {
		os.WriteFile(w.l.path(base, logExt), stamped(b, base), 0o644)
		os.WriteFile(w.l.path(base, indexExt), nil, 0o644)
		if i < 3 {
			os.Truncate(w.l.path(base, logExt), 1<<30)
		}
	}
	w.cfg.Clean = true
	os.WriteFile(w.l.path(301, snapshotExt), encodeSnapshot(nil), 0o644)
	for _, base := range []kafka.Offset{0, 100, 200, 300} {
		os.WriteFile(w.l.path(base, timeExt), encodeTimes(nil, base, []timeEntry{{t0.UnixMilli(), base}}), 0o644)
	}
	w.open()
	if w.l.Size() != 3<<30+100 || w.l.End() != 301 {
		t.Fatal(w.l.Size(), w.l.End())
	}
	if freed := w.retain(t0); freed != 0 { // 3 GiB + 100 - 2.5 GiB < 1 GiB
		t.Fatal(freed)
	}
	o := w.l.Options()
	o.RetentionBytes = 2 << 30
	w.l.SetOptions(o)
	if freed := w.retain(t0); freed != 1<<30 || w.l.LogStart() != 100 || w.l.Size() != 2<<30+100 {
		t.Fatal(freed, w.l.LogStart(), w.l.Size())
	}
}

func TestRoll(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(o *Options)
		size int
		step time.Duration // of record time per record
		want int           // segments for 100 records of size bytes
	}{
		"bytes":             {func(o *Options) { o.SegmentBytes = segBytes }, 30, 0, 10},
		"record time":       {func(o *Options) { o.SegmentMs = 1000 }, 30, 100 * time.Millisecond, 10},
		"offset index full": {func(o *Options) { o.IndexIntervalBytes = 1; o.IndexMaxBytes = 80 }, 30, 0, 10},
		"nothing":           {func(o *Options) {}, 30, time.Second, 1},
		"jitter":            {func(o *Options) { o.SegmentMs = 10_000; o.SegmentJitterMs = 9000 }, 30, 100 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.set)
			for i := range 100 {
				if _, err := w.l.Append(t0, recs(t0.Add(time.Duration(i)*tc.step).UnixMilli(), 1, tc.size), 0); err != nil {
					t.Fatal(err)
				}
			}
			n := w.l.Segments()
			if tc.want == 0 && n <= 1 || tc.want > 0 && (n < tc.want-1 || n > tc.want+1) {
				t.Fatalf("%d segments, want %d", n, tc.want)
			}
			w.wantRange(0, 100)
			w.reopen(true)
			w.wantRange(0, 100)
		})
	}
}

func TestRollOnOffsetSpan(t *testing.T) {
	w := newWorld(t, nil)
	for _, base := range []kafka.Offset{0, 5, 1<<31 + 7, 1 << 40} {
		b := recs(1, 2, 10)
		b.Stamp(base, 0)
		if _, err := w.l.AppendAt(t0, b); err != nil {
			t.Fatal(err)
		}
		b.Stamp(base, 0)
		if _, err := w.l.AppendAt(t0, b); err == nil {
			t.Fatal("the same offsets twice")
		}
	}
	if w.l.Segments() != 3 || w.l.End() != 1<<40+2 {
		t.Fatal(w.l.Segments(), w.l.End())
	}
	offs := w.readAll(0, w.l.End(), 1<<20)
	if fmt.Sprint(offs) != fmt.Sprint([]int64{0, 1, 5, 6, 1<<31 + 7, 1<<31 + 8, 1 << 40, 1<<40 + 1}) {
		t.Fatal(offs)
	}
}

func TestPreallocate(t *testing.T) {
	t.Chdir(t.TempDir())
	w := worldOn(t, disk.OS, func(o *Options) { o.Preallocate = true; o.SegmentBytes = 1 << 20 })
	w.fillTo(3000, 1000)
	for _, clean := range []bool{false, true} {
		w.reopen(clean)
		w.wantRange(0, 3000)
	}
	if w.logs.String() != "" {
		t.Fatal(w.logs.String())
	}
}
