package commitlog

// Every fault at every step: a history of appends, rolls, flushes, checkpoints,
// retention, compaction and a close in order meets an error at its n-th operation of
// each kind. Nothing flushed is lost, neither for readers nor for the next start on
// what a power cut leaves; a full disk ends nothing once there is room; and a failed
// read never makes a start cut the log. Field case B136.

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// faultWorld is a log of batches of one record whose value is its number.
type faultWorld struct {
	*world
	mem     *disk.Mem
	f       *disk.Faulty
	written int          // records in the log
	flushed kafka.Offset // said to be safe
	saved   Config       // with what a broker had saved
}

func newFaultWorld(t *testing.T) *faultWorld {
	mem := disk.NewMem(1)
	f := disk.NewFaulty(mem)
	w := &faultWorld{mem: mem, f: f, world: worldOn(t, f, func(o *Options) {
		o.SegmentBytes, o.IndexIntervalBytes, o.FileDeleteDelayMs = 1500, 200, 0
		o.Compact, o.MinDirtyRatio, o.Delete = true, 0, false
	})}
	if err := mem.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	w.saved = w.cfg
	return w
}

func (w *faultWorld) put() error {
	b := kv(batch.BuilderOptions{ProducerID: 3, BaseSequence: int32(w.written)}, t0.UnixMilli(), fmt.Sprint("k", w.written%40, "=", w.written, " 012345678901234567890123456789"))
	a, err := w.l.Append(t0, b, 0)
	if err == nil {
		if int(a.Last) != w.written {
			w.Fatalf("record %d went to %d", w.written, a.Last)
		}
		w.written++
	}
	return err
}

// live does the whole history and gives the errors met.
func (w *faultWorld) live() (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	flush := func() {
		off, err := w.l.Flush()
		note(err)
		if err == nil {
			w.flushed = off
			w.saved.RecoveryPoint = off
		}
	}
	for i := range 60 {
		note(w.put())
		switch i {
		case 10, 30, 50:
			flush()
		case 20:
			note(w.l.Checkpoint(t0))
		case 40:
			_, err := w.l.Retain(t0, w.l.End())
			note(err)
		case 55:
			c, err := w.l.PrepareClean(t0, w.l.End(), CleanLimits{})
			note(err)
			if c != nil {
				w.flushed, w.saved.RecoveryPoint = w.l.Flushed(), w.l.Flushed()
				_, err := c.Commit(t0)
				note(err)
			}
			note(w.l.Sweep(t0.Add(time.Hour)))
		}
	}
	note(w.l.Close(true))
	return errs
}

// look checks that of every key the last record below end is there.
func (w *faultWorld) look(l *Log, what string) {
	w.Helper()
	v := &world{TB: w.TB, l: l}
	state, _ := v.state()
	for n := max(int(l.End())-40, 0); n < int(l.End()); n++ {
		if want := fmt.Sprint(n, " 012345678901234567890123456789"); state[fmt.Sprint("k", n%40)] != want {
			w.Fatalf("%s: key %d holds %q, want %q\n%s", what, n%40, state[fmt.Sprint("k", n%40)], want, w.logs.String())
		}
	}
}

func TestEveryFault(t *testing.T) {
	faults, full := 0, 0
	for _, op := range []disk.Op{disk.OpOpen, disk.OpWrite, disk.OpSync, disk.OpTruncate, disk.OpRemove, disk.OpRename, disk.OpSyncDir, disk.OpRead} {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
			if cause == syscall.ENOSPC && (op == disk.OpRead || op == disk.OpRemove) {
				continue
			}
			for skip := 0; ; skip++ {
				w := newFaultWorld(t)
				what := fmt.Sprintf("%v at %s %d", cause, op, skip)
				hits := w.f.Inject(disk.Fault{Op: op, Err: cause, Skip: skip, Times: 1, Torn: skip * 7 % 90})
				errs := w.live()
				if hits(true) == 0 {
					break // the history has no more of these
				}
				faults++
				for _, err := range errs {
					var failed *FailedError
					if !errors.Is(err, cause) && !errors.As(err, &failed) {
						t.Fatalf("%s: %v", what, err)
					}
				}
				if cause == syscall.ENOSPC && op == disk.OpWrite && w.written >= 59 {
					full++ // one record was refused and the log went on
				}
				for _, how := range []disk.Crash{disk.CrashKept, disk.CrashLost, disk.CrashTorn} {
					cfg := w.saved
					cfg.FS = w.mem.CrashCloneAs(how)
					l, err := Open(cfg)
					if err != nil {
						t.Fatalf("%s: start after crash %d: %v\n%s", what, how, err, w.logs.String())
					}
					if l.End() < w.flushed || int(l.End()) > w.written+1 || how == disk.CrashKept && int(l.End()) < w.written {
						t.Fatalf("%s: crash %d: end %d, flushed %d, written %d", what, how, l.End(), w.flushed, w.written)
					}
					w.look(l, what)
					if err := l.Close(true); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
			}
		}
	}
	t.Logf("%d faults, the log went on after %d full disks", faults, full)
	if faults < 100 || full == 0 {
		t.Error("the history meets too few faults")
	}
}

// A start that cannot read says so; what it could not read is not cut away.
func TestEveryReadFaultAtStart(t *testing.T) {
	for _, clean := range []bool{false, true} {
		for skip := 0; ; skip++ {
			w := newFaultWorld(t)
			for range 60 {
				if err := w.put(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.l.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := w.l.Close(clean); err != nil {
				t.Fatal(err)
			}
			cfg := w.saved
			cfg.Clean = clean
			hits := w.f.Inject(disk.Fault{Op: disk.OpRead, Err: syscall.EIO, Skip: skip, Times: 1})
			l, err := Open(cfg)
			if hits(true) == 0 {
				break
			}
			var ce *CorruptError
			if errors.As(err, &ce) {
				t.Fatalf("read %d: taken for damage: %v", skip, err)
			}
			if err == nil {
				if l.End() != 60 {
					t.Fatalf("clean %v, read %d: end %d after a failed read\n%s", clean, skip, l.End(), w.logs.String())
				}
				if err := l.Close(false); err != nil {
					t.Fatal(err)
				}
			}
			cfg.Clean = false
			if l, err = Open(cfg); err != nil || l.End() != 60 {
				t.Fatalf("clean %v, read %d: the next start: %v, %v", clean, skip, l, err)
			}
			w.look(l, fmt.Sprint("read ", skip))
		}
	}
}
