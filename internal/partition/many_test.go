package partition

// What thousands of partitions cost to make, to open again after a kill and after a
// stop in order, and to keep.

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/metadata"
)

func openIn(tb testing.TB, dir string, img *metadata.Image, d *metadata.Delta) *Manager {
	s := plain()
	m, err := OpenManager(Options{FS: disk.OS, Dirs: []string{dir}, Self: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Settings: func(*metadata.Image, string) *Settings { return s }})
	if err != nil {
		tb.Fatal(err)
	}
	m.Apply(img, d)
	return m
}

// abandon leaves the files as a kill would.
func (m *Manager) abandon() {
	for _, d := range m.dirs {
		d.lock.Close()
	}
}

func BenchmarkCreate(b *testing.B) {
	const n = 1000
	empty, _ := image()
	img, delta := image(topic("a", topicA, n))
	for i := 0; b.Loop(); i++ {
		m := openIn(b, filepath.Join(b.TempDir(), fmt.Sprint(i)), empty, nil)
		m.Apply(img, delta)
		b.StopTimer()
		m.abandon()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/partition")
}

func BenchmarkOpen(b *testing.B) {
	const n = 1000
	img, delta := image(topic("a", topicA, n))
	for _, filled := range []bool{false, true} {
		for _, clean := range []bool{false, true} {
			b.Run(fmt.Sprintf("filled=%t/clean=%t", filled, clean), func(b *testing.B) {
				dir := b.TempDir()
				m := openIn(b, dir, img, delta)
				for _, p := range m.All() {
					if filled {
						if _, err := p.Append(time.Now(), records(1), -1); err != nil {
							b.Fatal(err)
						}
					}
				}
				for b.Loop() {
					b.StopTimer()
					if clean {
						m.Close()
					} else {
						m.abandon()
					}
					m = nil
					b.StartTimer()
					m = openIn(b, dir, img, delta)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/partition")
				with := heapBytes()
				m.Close()
				m = nil
				b.ReportMetric(float64(with-min(with, heapBytes()))/n, "heap-B/partition")
			})
		}
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// Partitions that one change made live through a power cut as soon as a record in
// them counts as flushed, although no folder but the log dir was synced on its own:
// the dir once for the change, before it is answered, and file and folder names with
// the first flush. After a kill without a power cut nothing is missing at all.
func TestMadeTogetherSurvivePowerCut(t *testing.T) {
	const n = 30
	mem := disk.NewMem(7)
	s := plain()
	s.FlushMessages = 1
	m := open(t, mem, s)
	defer m.Close()
	img, _ := image()
	d := img.Edit()
	d.Apply(topic("a", topicA, n))
	img, delta := d.Done(2)
	m.Apply(img, delta)
	for p := range int32(n) {
		if p%3 == 0 {
			continue // without a record: made again if lost
		}
		w := NewWaiter(1)
		if tk := mustAppend(t, m.Get(topicA, p), 1); !tk.Done && m.Get(topicA, p).Await(tk.Last, w) {
			<-w.Ready()
		}
	}
	for how := disk.CrashAny; how <= disk.CrashTorn; how++ {
		for range 5 {
			m, err := OpenManager(Options{FS: mem.CrashCloneAs(how), Dirs: []string{"/data"}, Self: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				Settings: func(*metadata.Image, string) *Settings { return plain() }})
			if err != nil {
				t.Fatal(err)
			}
			m.Apply(img, nil)
			for p := range int32(n) {
				want := int64(1)
				if p%3 == 0 {
					want = 0
				}
				got := m.Get(topicA, p)
				if err := got.Failed(); err != nil || int64(got.Log().End()) != want {
					t.Errorf("crash %d, partition %d: %v, want end %d", how, p, err, want)
				}
			}
			m.Close()
		}
	}
}

// A checkpoint that says nothing new is not written, and one that does is.
func TestCheckpointOfNothingNew(t *testing.T) {
	mem := disk.NewMem(1)
	m := open(t, mem, plain(), topic("a", topicA, 3))
	defer m.Close()
	m.checkpoint(false)
	_, before := mem.Counts()
	m.checkpoint(false)
	if _, n := mem.Counts(); n != before {
		t.Errorf("%d syncs for what is on the disk", n-before)
	}
	mustAppend(t, m.Get(topicA, 1), 1)
	m.checkpoint(false)
	if _, n := mem.Counts(); n == before {
		t.Error("a watermark moved and was not written")
	}
}
