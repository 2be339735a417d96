package commitlog

// Damage in the middle of a log, and records that were synced and are gone: the log
// is not opened, nothing is cut, and the error names file, byte, offset and a way out.
// Holes that a power cut leaves are told from it.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

// batchAt is the byte at which the batch of an offset begins in the first segment.
func (w *world) batchAt(off kafka.Offset) int {
	w.Helper()
	s, err := w.l.Read(off, w.l.End(), 1, true)
	if err != nil {
		w.Fatal(err)
	}
	defer s.Region.Release()
	return int(s.Region.Off)
}

// accept does what the error says and opens the log.
func accept(w *world) {
	w.Helper()
	if _, err := w.fs.Create(w.cfg.Dir + "/" + acceptFile); err != nil {
		w.Fatal(err)
	}
	w.open()
	if _, err := w.fs.Stat(w.cfg.Dir + "/" + acceptFile); err == nil {
		w.Error("the word was not taken back")
	}
}

func TestDamageInTheMiddle(t *testing.T) {
	for name, tc := range map[string]struct {
		do      func(b []byte, at int) []byte // damages the batch of offset 200, which begins at byte at
		refused bool
		end     kafka.Offset // when not refused
	}{
		"a flipped byte in a record":   {func(b []byte, at int) []byte { b[at+70] ^= 1; return b }, true, 0},
		"a flipped byte in the length": {func(b []byte, at int) []byte { b[at+9] ^= 0x40; return b }, true, 0},
		"a flipped byte in the magic":  {func(b []byte, at int) []byte { b[at+16] = 9; return b }, true, 0},
		"a flipped byte in the offset": {func(b []byte, at int) []byte { b[at+7] ^= 0x80; return b }, true, 0},
		"overwritten with a letter": {func(b []byte, at int) []byte {
			for i := range 9000 {
				b[at+i] = 'x'
			}
			return b
		}, true, 0},
		"pages that never reached the disk": {func(b []byte, at int) []byte {
			clear(b[at/damagePage*damagePage+damagePage:][:2*damagePage])
			return b
		}, false, -1},
		"everything from there on gone": {func(b []byte, at int) []byte { return b[:at] }, false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.fillTo(500, 60)
			at := w.batchAt(200)
			if err := w.l.Close(false); err != nil {
				t.Fatal(err)
			}
			w.cfg.Clean, w.cfg.RecoveryPoint = false, 0
			var before int
			w.edit(fileName(0, logExt), func(b []byte) []byte { b = tc.do(b, at); before = len(b); return b })
			l, err := Open(w.cfg)
			if !tc.refused {
				if err != nil {
					t.Fatal(err)
				}
				if tc.end >= 0 && l.End() != tc.end || l.End() < 200 || l.End() >= 500 {
					t.Errorf("end %d, want %d", l.End(), tc.end)
				}
				_ = l.Close(false)
				return
			}
			var ce *CorruptError
			if !errors.As(err, &ce) || ce.Position != int64(at) || !strings.HasSuffix(ce.File, fileName(0, logExt)) ||
				!strings.Contains(err.Error(), "offset 200") || !strings.Contains(err.Error(), "touch d/t-0/accept-loss") {
				t.Fatalf("error %v, want one at byte %d and offset 200", err, at)
			}
			if b, _ := w.fs.ReadFile(w.cfg.Dir + "/" + fileName(0, logExt)); len(b) != before {
				t.Errorf("the refused file has %d bytes, had %d", len(b), before)
			}
			accept(w)
			w.wantRange(0, 200)
		})
	}
}

// A damaged closed segment stops the log too: what follows lies in the next files.
func TestDamageInAnEarlierSegment(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SegmentBytes = 20_000 })
	w.fillTo(500, 60)
	if err := w.l.Close(false); err != nil {
		t.Fatal(err)
	}
	w.cfg.Clean, w.cfg.RecoveryPoint = false, 0
	w.edit(fileName(0, logExt), func(b []byte) []byte { b[len(b)-9] ^= 1; return b })
	var ce *CorruptError
	if _, err := Open(w.cfg); !errors.As(err, &ce) {
		t.Fatalf("open: %v", err)
	}
}

func TestLostSynced(t *testing.T) {
	for _, clean := range []bool{false, true} {
		w := newWorld(t, nil)
		w.fillTo(500, 60)
		if err := w.l.Close(true); err != nil {
			t.Fatal(err)
		}
		w.cfg.Clean, w.cfg.RecoveryPoint = clean, w.l.Flushed()
		w.edit(fileName(0, logExt), cut(7))
		var ce *CorruptError
		_, err := Open(w.cfg)
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), "offset 499") || !strings.Contains(err.Error(), "accept-loss") {
			t.Fatalf("clean %v: %v", clean, err)
		}
		accept(w)
		if w.l.End() != 499 {
			t.Errorf("end %d after the loss was accepted", w.l.End())
		}
	}
}

// A closed segment is never empty: emptied by something else, it stops the log.
func TestEmptiedSegment(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.SegmentBytes = 20_000 })
	w.fillTo(500, 60)
	second := w.l.segments()[1].base
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	w.cfg.Clean, w.cfg.RecoveryPoint = true, w.l.Flushed()
	w.edit(fileName(second, logExt), func([]byte) []byte { return nil })
	var ce *CorruptError
	if _, err := Open(w.cfg); !errors.As(err, &ce) || !strings.HasSuffix(ce.File, fileName(second, logExt)) {
		t.Fatalf("open: %v", err)
	}
}

// A closed segment that is no longer there, or where a folder stands in its place,
// stops the log: a reader would not notice the gap.
func TestMissingSegment(t *testing.T) {
	for _, how := range []string{"gone", "folder"} {
		for _, clean := range []bool{false, true} {
			w := newWorld(t, func(o *Options) { o.SegmentBytes = 10_000 })
			w.fillTo(500, 60)
			second := w.l.segments()[1].base
			if err := w.l.Checkpoint(t0); err != nil {
				t.Fatal(err)
			}
			if err := w.l.Close(true); err != nil {
				t.Fatal(err)
			}
			w.cfg.Clean, w.cfg.RecoveryPoint = clean, w.l.Flushed()
			path := w.cfg.Dir + "/" + fileName(second, logExt)
			if err := w.fs.Remove(path); err != nil {
				t.Fatal(err)
			}
			if how == "folder" {
				if err := w.fs.MkdirAll(path); err != nil {
					t.Fatal(err)
				}
			}
			var ce *CorruptError
			if _, err := Open(w.cfg); !errors.As(err, &ce) || !strings.HasSuffix(ce.File, fileName(second, logExt)) {
				t.Fatalf("%s, clean %v: %v", how, clean, err)
			}
			if how == "folder" {
				if err := w.fs.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			accept(w)
			if w.l.End() != second {
				t.Errorf("%s: end %d after the loss was accepted, want %d", how, w.l.End(), second)
			}
		}
	}
}

// The first segment has nothing before it that would show its loss but the saved start.
func TestMissingFirstSegment(t *testing.T) {
	for _, clean := range []bool{false, true} {
		w := newWorld(t, func(o *Options) { o.SegmentBytes = 10_000 })
		w.fillTo(500, 60)
		w.reopen(clean)
		second := w.l.segments()[1].base
		if _, err := w.l.DeleteBefore(3); err != nil {
			t.Fatal(err)
		}
		w.reopen(clean)
		if said := w.logs.String(); strings.Contains(said, "above its saved start") {
			t.Fatalf("nothing is missing:\n%s", said)
		}
		if err := w.l.Close(clean); err != nil {
			t.Fatal(err)
		}
		if err := w.fs.Remove(w.l.path(0, logExt)); err != nil {
			t.Fatal(err)
		}
		w.open()
		if said := w.logs.String(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, fmt.Sprint("saved_start=3 first_offset=", second)) {
			t.Errorf("clean %v: said\n%s", clean, said)
		}
		w.reopen(clean) // the new start is saved
		if said := w.logs.String(); strings.Count(said, "level=WARN") != 1 {
			t.Errorf("clean %v: said again\n%s", clean, said)
		}
		w.wantRange(second, 500)
	}
}
