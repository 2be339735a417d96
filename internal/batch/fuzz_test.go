package batch

// Shows: nothing that reads bytes from outside panics or takes memory beyond its
// bound, and what was found good reads back the same.

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
)

// fuzzBound keeps what hostile input may unpack to small, so that a leak shows.
const fuzzBound = 1 << 20

func fuzzRules() *Rules {
	r := NewRules(nowMs)
	r.MaxBytes, r.MaxDecompressed, r.AfterMaxMs = fuzzBound, fuzzBound, math.MaxInt64
	return &r
}

func seedBatches(f *testing.F) {
	for _, c := range everyCodec {
		f.Add([]byte(three(c)))
	}
	for _, c := range refusals() {
		if len(c.records) > 0 {
			f.Add(c.records)
		}
	}
	f.Add([]byte(Control(Abort, 1, 2, 3, nowMs)))
}

// sealed gives a batch a right CRC and length, without which few inputs would get
// past the header.
func sealed(data []byte) View {
	v := append(View(nil), data...)
	if len(v) >= HeaderLen {
		v.put32(atLength, int32(len(v)-lengthAfter))
		v[atMagic] = 2
		v.seal()
	}
	return v
}

func FuzzValidate(f *testing.F) {
	seedBatches(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, in := range [][]byte{data, sealed(data)} {
			got, err := Validate(bytes.Clone(in), fuzzRules())
			if err != nil {
				var inv *Invalid
				if !errors.As(err, &inv) || inv.Code == 0 || inv.Message == "" {
					t.Fatalf("error is %#v", err)
				}
				continue
			}
			before := ours(t, got.Batch)
			if len(before) != int(got.Count) || !got.Batch.CRCOK() {
				t.Fatalf("%d records of %s", len(before), got.Batch)
			}
			latest := NoTimestamp
			for i, r := range before {
				latest = max(latest, r.Timestamp)
				if r.Offset != int64(i) {
					t.Fatalf("record %d has offset %d", i, r.Offset)
				}
			}
			if latest != got.MaxTimestamp || latest != got.Batch.MaxTimestamp() {
				t.Fatalf("maximum is %d, found %d: %s", latest, got.MaxTimestamp, got.Batch)
			}
			// Stored under another codec, and validated again, it says the same.
			r := fuzzRules()
			r.Target = everyCodec[len(data)%len(everyCodec)]
			r.MaxBytes = 0
			again, err := Validate(got.Batch, r)
			if err != nil {
				t.Fatalf("good, then not: %v", err)
			}
			same(t, "stored as "+r.Target.String(), ours(t, again.Batch), before)
		}
	})
}

func FuzzEach(f *testing.F) {
	seedBatches(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; ; {
			v, next, err := Next(rest)
			if err != nil {
				break
			}
			_ = v.String()
			_, _ = v.Marker()
			_ = v.Each(func(*Record) error { return nil })
			rest = next
		}
		v := sealed(data)
		if _, _, err := Next(v); err != nil || v.Codec() != NoCodec {
			return
		}
		// The fast scan and the plain reader agree on what is well formed.
		n := int32(0)
		each := v.Each(func(r *Record) error {
			if r.OffsetDelta != n {
				return fmt.Errorf("offset delta %d", r.OffsetDelta)
			}
			n++
			return nil
		})
		w := walk{baseTimestamp: v.BaseTimestamp(), lo: math.MinInt64, hi: math.MaxInt64}
		if fault := w.run(v.Records(), v.Count()); (fault == nil) != (each == nil) {
			t.Fatalf("scan: %v, each: %v", fault, each)
		}
	})
}

func FuzzUpConvert(f *testing.F) {
	recs := []plainRecord{{Timestamp: nowMs, Key: []byte("k"), Value: []byte("v")}, {Timestamp: nowMs, Value: bytes.Repeat([]byte("v"), 100)}}
	for magic := range int8(2) {
		f.Add(oldSet(magic, recs, 0))
		for _, c := range everyCodec[1:4] {
			f.Add(oldWrapper(f, magic, c, recs))
		}
	}
	seedBatches(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := UpConvert(data, fuzzRules())
		if err != nil {
			var inv *Invalid
			if !errors.As(err, &inv) || inv.Code == 0 {
				t.Fatalf("error is %#v", err)
			}
			return
		}
		r := fuzzRules()
		again, err := Validate(got.Batch, r)
		if err != nil || again.Count != got.Count || again.MaxTimestamp != got.MaxTimestamp {
			t.Fatalf("converted batch: %+v, %v", again, err)
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for c, text := range map[Codec]string{Gzip: "gzip gzip gzip", Snappy: "snappy snappy", LZ4: "lz4 lz4 lz4 lz4 lz4", Zstd: "zstd zstd zstd"} {
		packed, err := Compress(c, 0, []byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(c), packed)
	}
	f.Add(uint8(LZ4), []byte{0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0, 1, 0, 0, 0x80, 'a', 5, 0, 0, 0, 0x10, 'b', 2, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, codec uint8, src []byte) {
		c := Codec(codec % 6)
		var out []byte
		var err error
		n := allocated(func() { out, err = Decompress(c, src, fuzzBound) })
		if len(out) > fuzzBound || err == nil && cap(out) > 4*fuzzBound {
			t.Fatalf("%s: %d bytes, %d taken", c, len(out), cap(out))
		}
		// Growing costs a few times the result, readers and tables a fixed sum.
		if n > 8*fuzzBound+32<<20 {
			t.Fatalf("%s: %d bytes allocated for %d, %v", c, n, len(out), err)
		}
		if err == nil && c != NoCodec {
			packed, err := Compress(c, 0, out)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Decompress(c, packed, fuzzBound)
			if err != nil || !bytes.Equal(back, out) {
				t.Fatalf("%s: packed again: %v", c, err)
			}
		}
	})
}
