package commitlog

import (
	"fmt"
	"testing"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

func BenchmarkAppend(b *testing.B) {
	for _, bc := range []struct {
		name string
		id   kafka.ProducerID
		size int
	}{{"plain/16KiB", -1, 16 << 10}, {"idempotent/16KiB", 9, 16 << 10}, {"plain/300B", -1, 300}} {
		b.Run(bc.name, func(b *testing.B) {
			b.Chdir(b.TempDir())
			w := worldOn(b, disk.OS, func(o *Options) { o.SegmentBytes = 256 << 20; o.RetentionBytes = 512 << 20 })
			v := recs(t0.UnixMilli(), 1, bc.size)
			if bc.id >= 0 {
				v = fromProducer(t0.UnixMilli(), bc.id, 0, 0, 1000, false)
			}
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			seq := int32(0)
			for b.Loop() {
				if bc.id >= 0 {
					putSequence(v, seq)
					seq += 1000
					if seq > 1<<30 {
						seq = 0
						w.l.producers.reset()
					}
				}
				if a := w.append(v); a.Rolled {
					if _, err := w.l.Retain(t0, w.l.End()); err != nil {
						b.Fatal(err)
					}
					if err := w.l.Sweep(t0); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	b.Chdir(b.TempDir())
	w := worldOn(b, disk.OS, func(o *Options) { o.SegmentBytes = 64 << 20 })
	w.fillTo(10_000, 16<<10)
	end := w.l.End()
	for _, bc := range []struct {
		name string
		from kafka.Offset
	}{{"tail", end - 1}, {"tail-100", end - 100}, {"active", end - 1500}, {"old", 2000}} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sl, err := w.l.Read(bc.from, end, 1<<20, true)
				if err != nil || sl.Region.Len == 0 {
					b.Fatal(err, sl)
				}
				sl.Region.Release()
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, clean := range []bool{true, false} {
		b.Run(fmt.Sprintf("clean=%v", clean), func(b *testing.B) {
			b.Chdir(b.TempDir())
			w := worldOn(b, disk.OS, func(o *Options) { o.SegmentBytes = 1 << 20 })
			w.fillTo(500, 16<<10)
			if err := w.l.Close(true); err != nil {
				b.Fatal(err)
			}
			w.cfg.Clean, w.cfg.RecoveryPoint = clean, w.l.Flushed()
			b.ReportAllocs()
			for b.Loop() {
				w.open()
				if err := w.l.Close(false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("new", func(b *testing.B) {
		b.Chdir(b.TempDir())
		w := worldOn(b, disk.OS, nil)
		n := 0
		for b.Loop() {
			w.cfg.Dir = fmt.Sprint("d/n-", n)
			n++
			w.open()
			if err := w.l.Close(false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
