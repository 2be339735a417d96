package commitlog

// The world of the tests: a memory disk, batches with values that name their
// offset, and a reader that walks a log as a consumer does.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

var t0 = time.UnixMilli(1_700_000_000_000)

type world struct {
	testing.TB
	fs   disk.FS
	cfg  Config
	l    *Log
	logs lines
}

// lines collects what was logged.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (w *lines) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *lines) String() string { w.mu.Lock(); defer w.mu.Unlock(); return w.b.String() }

func newWorld(t testing.TB, set func(o *Options)) *world {
	return worldOn(t, disk.NewMem(1), set)
}

func worldOn(t testing.TB, fs disk.FS, set func(o *Options)) *world {
	t.Helper()
	w := &world{TB: t, fs: fs}
	o := DefaultOptions()
	o.FileDeleteDelayMs = 0
	if set != nil {
		set(&o)
	}
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	w.cfg = Config{
		FS: fs, Dir: "d/t-0", TP: kafka.TopicPartition{Topic: "t"}, ID: kafka.TopicID{1, 2, 3}, Options: o, Now: t0,
		Log: slog.New(slog.NewTextHandler(&w.logs, nil)),
	}
	w.open()
	return w
}

func (w *world) open() {
	w.Helper()
	l, err := Open(w.cfg)
	if err != nil {
		w.Fatalf("open: %v", err)
	}
	w.l = l
}

// reopen closes (clean or as a kill would) and opens again, saving what a broker
// would have saved.
func (w *world) reopen(clean bool) {
	w.Helper()
	if err := w.l.Close(clean); err != nil {
		w.Fatalf("close: %v", err)
	}
	w.cfg.Clean = clean
	w.cfg.RecoveryPoint, w.cfg.LogStart = w.l.Flushed(), w.l.LogStart()
	w.open()
}

// recs builds a batch of n records with the values v(i), at time ts.
func recs(ts int64, n int, size int) batch.View {
	b := batch.NewBuilder(batch.Plain(batch.NoCodec))
	for i := range n {
		v := fmt.Sprintf("%d/%d", ts, i)
		b.Add(ts, fmt.Appendf(nil, "k%d", i), append([]byte(v), make([]byte, max(0, size-len(v)))...))
	}
	return b.Bytes()
}

func (w *world) append(b batch.View) Appended {
	w.Helper()
	a, err := w.l.Append(t0, b, 0)
	if err != nil {
		w.Fatalf("append: %v", err)
	}
	return a
}

// fillTo appends batches of one record until End is end; the record at offset n has
// the time t0+n ms.
func (w *world) fillTo(end kafka.Offset, size int) {
	w.Helper()
	for w.l.End() < end {
		w.append(recs(t0.UnixMilli()+int64(w.l.End()), 1, size))
	}
}

// readAll walks the log from from to bound and returns the offsets it saw.
func (w *world) readAll(from, bound kafka.Offset, maxBytes int) []kafka.Offset {
	w.Helper()
	offs, err := walkLog(w.l, from, bound, maxBytes)
	if err != nil {
		w.Fatalf("read: %v", err)
	}
	return offs
}

func walkLog(l *Log, from, bound kafka.Offset, maxBytes int) ([]kafka.Offset, error) {
	var offs []kafka.Offset
	for from < bound {
		sl, err := l.Read(from, bound, maxBytes, true)
		if err != nil {
			return offs, err
		}
		b, err := sl.Region.Bytes()
		sl.Region.Release()
		if err != nil {
			return offs, err
		}
		if len(b) == 0 {
			return offs, nil
		}
		before := from
		for len(b) > 0 {
			v, rest, err := batch.Next(b)
			if errors.Is(err, batch.ErrShort) {
				break
			}
			if err != nil {
				return offs, err
			}
			if !v.CRCOK() {
				return offs, fmt.Errorf("batch %v: CRC", v)
			}
			if v.BaseOffset() >= bound {
				return offs, fmt.Errorf("batch at %d passes bound %d", v.BaseOffset(), bound)
			}
			err = v.Each(func(r *batch.Record) error {
				if o := v.Offset(r); o >= from {
					offs = append(offs, o)
				}
				return nil
			})
			if err != nil {
				return offs, err
			}
			from = v.LastOffset() + 1
			b = rest
		}
		if from == before {
			return offs, fmt.Errorf("no whole batch at %d", from)
		}
	}
	return offs, nil
}

func (w *world) wantRange(from, to kafka.Offset) {
	w.Helper()
	for _, maxBytes := range []int{1, 700, 1 << 20} {
		offs := w.readAll(from, to, maxBytes)
		if len(offs) != int(to-from) {
			w.Fatalf("read %d..%d with %d bytes: got %d offsets %v", from, to, maxBytes, len(offs), offs)
		}
		for i, o := range offs {
			if o != from+kafka.Offset(i) {
				w.Fatalf("read from %d: offset %d at place %d", from, o, i)
			}
		}
	}
}

func TestAppendReadReopen(t *testing.T) {
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprint("clean=", clean), func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.SegmentBytes = 20_000; o.IndexIntervalBytes = 500 })
			for range 3 {
				w.fillTo(w.l.End()+300, 100)
				w.wantRange(0, w.l.End())
				w.wantRange(150, w.l.End()-7)
				w.reopen(clean)
				w.wantRange(0, w.l.End())
			}
			if w.l.End() != 900 || w.l.Segments() < 5 {
				t.Fatalf("end %d, %d segments", w.l.End(), w.l.Segments())
			}
			if s := w.logs.String(); s != "" {
				t.Fatalf("logged: %s", s)
			}
		})
	}
}

// putSequence changes the base sequence of a batch without renewing its CRC, which
// an append does not look at.
func putSequence(v batch.View, seq int32) { binary.BigEndian.PutUint32(v[53:], uint32(seq)) }
