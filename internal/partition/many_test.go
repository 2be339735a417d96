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
