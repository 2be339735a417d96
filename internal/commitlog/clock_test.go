package commitlog

// What a clock does that steps by an hour, in either direction: files that wait for
// their removal go after their delay, no time of a record is invented, segments
// roll, and look-ups by time go on. (Timers of sessions, fetches and connections
// count from the monotonic reading and do not see the step.)

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/disk"
)

func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				o.RetentionMs, o.SegmentBytes, o.FileDeleteDelayMs = 1000, 400, 60_000
			})
			w.fillTo(10, 50)
			now := t0.Add(10 * time.Second)
			w.retain(now) // all is expired and renamed
			if !strings.Contains(listNames(w), deletedExt) {
				t.Fatalf("nothing waits: %s", listNames(w))
			}
			now = now.Add(step)
			for _, later := range []time.Duration{0, 61 * time.Second} {
				if err := w.l.Sweep(now.Add(later)); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(listNames(w), deletedExt) {
				t.Errorf("a minute after the step still there: %s", listNames(w))
			}
			w.fillTo(30, 50)
			if off, ok, err := w.l.OffsetForTime(0, w.l.End()); err != nil || !ok || off.Offset < w.l.LogStart() {
				t.Errorf("look-up after the step: %v %v %v", off, ok, err)
			}
			w.reopen(false)
			if w.l.End() != 30 {
				t.Errorf("log end %d after a crash", w.l.End())
			}
		})
		t.Run("deleted log, "+step.String(), func(t *testing.T) {
			t.Chdir(t.TempDir())
			w := worldOn(t, disk.OS, func(o *Options) { o.FileDeleteDelayMs = 60_000 })
			w.fillTo(3, 50)
			if err := w.l.Delete(); err != nil {
				t.Fatal(err)
			}
			for _, at := range []time.Duration{0, step, step + 61*time.Second} {
				if err := w.l.Sweep(t0.Add(at)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(w.l.Dir()); err == nil {
				t.Error("the folder is still there")
			}
		})
	}
}
