package batch

import (
	"bytes"
	"math"
	"testing"
)

var everyCodec = []Codec{NoCodec, Gzip, Snappy, LZ4, Zstd}

func testRules() *Rules {
	return &Rules{NowMs: 1000, BeforeMaxMs: math.MaxInt64, AfterMaxMs: math.MaxInt64, Target: TargetProducer}
}

func TestBuildValidateEach(t *testing.T) {
	for _, c := range everyCodec {
		b := NewBuilder(Plain(c))
		for i := range 100 {
			b.Add(int64(i), []byte{byte(i)}, bytes.Repeat([]byte("v"), i*10), Header{"h", nil}, Header{"h", []byte{}})
		}
		v := b.Bytes()
		for _, target := range append(everyCodec, TargetProducer) {
			r := testRules()
			r.Target = target
			got, err := Validate(append([]byte(nil), v...), r)
			if err != nil {
				t.Fatalf("%s to %s: %v", c, target, err)
			}
			if target != TargetProducer && got.Batch.Codec() != target {
				t.Fatalf("%s to %s: stored as %s", c, target, got.Batch.Codec())
			}
			if !got.Batch.CRCOK() || got.MaxTimestamp != 99 || got.Count != 100 {
				t.Fatalf("%s to %s: %+v", c, target, got)
			}
			n := 0
			err = got.Batch.Each(func(r *Record) error {
				if r.Key[0] != byte(n) || len(r.Value) != n*10 || len(r.Headers) != 2 || r.Headers[0].Value != nil || r.Headers[1].Value == nil {
					t.Fatalf("%s to %s: record %d: %+v", c, target, n, r)
				}
				n++
				return nil
			})
			if err != nil || n != 100 {
				t.Fatalf("%s to %s: %d records, %v", c, target, n, err)
			}
		}
	}
}
