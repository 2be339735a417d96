package batch

import (
	"fmt"
	"hash/crc32"
	"testing"
)

func benchBatch(c Codec, records, size int) View {
	b := NewBuilder(Plain(c))
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(i * 7)
	}
	for i := range records {
		b.Add(1700000000000+int64(i), []byte("key-0001"), value)
	}
	return b.Bytes()
}

// BenchmarkValidate: the cost of a batch on the produce path, beside the CRC
// alone, which is the floor.
func BenchmarkValidate(b *testing.B) {
	for _, shape := range []struct{ records, size int }{{1, 100}, {16, 1024}, {160, 100}, {1000, 10}} {
		v := benchBatch(NoCodec, shape.records, shape.size)
		r := testRules()
		b.Run(fmt.Sprintf("%dx%d", shape.records, shape.size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(v)))
			for b.Loop() {
				if _, err := Validate(v, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*shape.records), "ns/record")
		})
		b.Run(fmt.Sprintf("%dx%d/crc", shape.records, shape.size), func(b *testing.B) {
			b.SetBytes(int64(len(v)))
			for b.Loop() {
				crc32.Checksum(v[atAttributes:], castagnoli)
			}
		})
	}
}

// BenchmarkValidatePacked: the same for compressed batches.
func BenchmarkValidatePacked(b *testing.B) {
	for _, c := range everyCodec[1:] {
		v := benchBatch(c, 64, 1024)
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(64 * 1024)
			r := testRules()
			for b.Loop() {
				if _, err := Validate(v, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEach: reading records out of a batch.
func BenchmarkEach(b *testing.B) {
	v := benchBatch(NoCodec, 160, 100)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := v.Each(func(r *Record) error { n += len(r.Value); return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*160), "ns/record")
}
