package batch

// Shows: what Validate refuses, with which code, and that what it takes comes
// back as it was sent. Codes marked "stricter" differ from Kafka 4.4 on purpose;
// all others were compared with it over the wire.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

const nowMs = int64(1_700_000_000_000)

func rulesNow() *Rules {
	r := NewRules(nowMs)
	r.BeforeMaxMs, r.AfterMaxMs = 3600_000, 3600_000
	return &r
}

// three is a good batch of three records.
func three(c Codec) View {
	b := NewBuilder(Plain(c))
	for i := range 3 {
		b.Add(nowMs+int64(i), []byte{'k', byte('0' + i)}, []byte("value"))
	}
	return b.Bytes()
}

// edit changes a copy of v and gives it a right CRC.
func edit(v View, change func(v View)) View {
	v = append(View(nil), v...)
	change(v)
	v.seal()
	return v
}

// raw makes a batch of count records from the bytes of its payload.
func raw(count int32, payload []byte) View {
	v := append(make(View, HeaderLen), payload...)
	v.header(0, count-1, nowMs, nowMs)
	v.put64(atProducerID, -1)
	binary.BigEndian.PutUint16(v[atProducerEpoch:], 0xffff)
	v.put32(atBaseSequence, -1)
	v.put32(atCount, count)
	v.seal()
	return v
}

// fields makes a record of varints and bytes, with its length in front.
func fields(parts ...any) []byte {
	var body []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			body = binary.AppendVarint(body, int64(p))
		case string:
			body = append(body, p...)
		}
	}
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

type refusal struct {
	name     string
	records  []byte
	rules    func(r *Rules)
	want     kafka.Error
	stricter bool // Kafka takes it (offset delta, transactional) or answers UNKNOWN_SERVER_ERROR, which says less
}

func refusals() []refusal {
	plain := three(NoCodec)
	long := func(n int32) []byte {
		return edit(plain, func(v View) { v.put32(atLength, n) })
	}
	fieldsOf := func(parts ...any) []byte { return raw(1, fields(parts...)) }
	packedAs := func(c Codec, payload []byte) []byte {
		v := raw(3, payload)
		return edit(v, func(v View) { v.putAttributes(uint8(c)) })
	}
	compacted := func(r *Rules) { r.Compacted = true }
	keyless := NewBuilder(Plain(NoCodec))
	keyless.Add(nowMs, []byte("k"), nil)
	keyless.Add(nowMs, nil, []byte("v"))
	keyless.Add(nowMs, []byte{}, []byte("v"))
	timed := func(ts int64) []byte {
		b := NewBuilder(Plain(NoCodec))
		b.Add(nowMs, nil, []byte("v"))
		b.Add(ts, nil, []byte("v"))
		return b.Bytes()
	}
	return []refusal{
		{"nothing", nil, nil, kafka.ErrInvalidRecord, false},
		{"cut", plain[:len(plain)-1], nil, kafka.ErrInvalidRecord, false},
		{"11 bytes", plain[:11], nil, kafka.ErrInvalidRecord, false},
		{"header alone, cut", plain[:60], nil, kafka.ErrInvalidRecord, false},
		{"length -1", long(-1), nil, kafka.ErrCorruptMessage, false},
		{"length -100", long(-100), nil, kafka.ErrCorruptMessage, false},
		{"length max", long(math.MaxInt32), nil, kafka.ErrCorruptMessage, true}, // Kafka: -1
		{"length 13", long(13), nil, kafka.ErrCorruptMessage, false},
		{"length 48", long(48), nil, kafka.ErrCorruptMessage, false},
		{"length one too long", long(int32(len(plain) - 11)), nil, kafka.ErrInvalidRecord, false},
		{"magic 1", edit(plain, func(v View) { v[atMagic] = 1 }), nil, kafka.ErrInvalidRecord, false},
		{"magic 0", edit(plain, func(v View) { v[atMagic] = 0 }), nil, kafka.ErrInvalidRecord, false},
		{"magic 3", edit(plain, func(v View) { v[atMagic] = 3 }), nil, kafka.ErrCorruptMessage, false},
		{"magic -1", edit(plain, func(v View) { v[atMagic] = 0xff }), nil, kafka.ErrCorruptMessage, false},
		{"two batches", cat(plain, plain), nil, kafka.ErrInvalidRecord, false},
		{"bad length after it", cat(plain, long(-1)), nil, kafka.ErrCorruptMessage, false},
		{"wrong crc", func() []byte { v := append([]byte(nil), plain...); v[len(v)-1] ^= 1; return v }(), nil, kafka.ErrCorruptMessage, false},
		{"base offset 5", edit(plain, func(v View) { v.Stamp(5, 0) }), nil, kafka.ErrInvalidRecord, false},
		{"unknown codec 5", edit(plain, func(v View) { v.putAttributes(5) }), nil, kafka.ErrInvalidRecord, true}, // Kafka: -1
		{"control bit", edit(plain, func(v View) { v.putAttributes(attrControl) }), nil, kafka.ErrInvalidRecord, false},
		{"control bit with producer", Control(Commit, 5, 0, 0, nowMs), nil, kafka.ErrInvalidRecord, false},
		{"producer without sequence", edit(plain, func(v View) { v.put64(atProducerID, 7) }), nil, kafka.ErrInvalidRecord, false},
		{"transactional without producer", edit(plain, func(v View) { v.putAttributes(attrTransactional) }), nil, kafka.ErrInvalidRecord, true},
		{"count 0", edit(plain, func(v View) { v.put32(atCount, 0) }), nil, kafka.ErrInvalidRecord, false},
		{"count -1", edit(plain, func(v View) { v.put32(atCount, -1) }), nil, kafka.ErrInvalidRecord, false},
		{"count and last delta 0 and -1", edit(plain, func(v View) { v.put32(atCount, 0); v.put32(atLastDelta, -1) }), nil, kafka.ErrInvalidRecord, false},
		{"count above last delta", edit(plain, func(v View) { v.put32(atCount, 4) }), nil, kafka.ErrInvalidRecord, false},
		{"last delta max", edit(plain, func(v View) { v.put32(atLastDelta, math.MaxInt32) }), nil, kafka.ErrInvalidRecord, false},
		{"one record more than there is", edit(plain, func(v View) { v.put32(atCount, 4); v.put32(atLastDelta, 3) }), nil, kafka.ErrInvalidRecord, false},
		{"one record less than there is", edit(plain, func(v View) { v.put32(atCount, 2); v.put32(atLastDelta, 1) }), nil, kafka.ErrInvalidRecord, false},
		{"absurd count", edit(plain, func(v View) { v.put32(atCount, math.MaxInt32); v.put32(atLastDelta, math.MaxInt32-1) }), nil, kafka.ErrInvalidRecord, false},
		{"append time on append time topic", edit(plain, func(v View) { v.putAttributes(attrAppendTime) }), func(r *Rules) { r.AppendTime = true }, kafka.ErrInvalidTimestamp, false},
		{"too large", plain, func(r *Rules) { r.MaxBytes = len(plain) - 1 }, kafka.ErrMessageTooLarge, false},
		{"zstd too early", three(Zstd), func(r *Rules) { r.NoZstd = true }, kafka.ErrUnsupportedCompressionType, false},

		{"record: offset delta", raw(2, cat(fields(0, 0, 0, -1, -1, 0), fields(0, 0, 2, -1, -1, 0))), nil, kafka.ErrInvalidRecord, true},
		{"record: length past the end", raw(1, []byte{100, 0, 0, 0, 1, 1, 0}), nil, kafka.ErrInvalidRecord, false},
		{"record: negative length", raw(1, []byte{1, 0, 0, 0, 1, 1, 0}), nil, kafka.ErrInvalidRecord, false},
		{"record: length of nothing", raw(1, []byte{0, 0, 0, 0, 1, 1, 0}), nil, kafka.ErrInvalidRecord, false},
		{"record: key past the end", fieldsOf(0, 0, 0, 100, "k", -1, 0), nil, kafka.ErrInvalidRecord, false},
		{"record: value past the end", fieldsOf(0, 0, 0, -1, 100, "v", 0), nil, kafka.ErrInvalidRecord, false},
		{"record: bytes left over", fieldsOf(0, 0, 0, -1, 1, "v", 0, "x"), nil, kafka.ErrInvalidRecord, false},
		{"record: header count negative", fieldsOf(0, 0, 0, -1, -1, -1), nil, kafka.ErrInvalidRecord, false},
		{"record: header count absurd", fieldsOf(0, 0, 0, -1, -1, math.MaxInt32), nil, kafka.ErrInvalidRecord, false},
		{"record: header without a name", fieldsOf(0, 0, 0, -1, -1, 1, -1, -1), nil, kafka.ErrInvalidRecord, false},
		{"record: header value past the end", fieldsOf(0, 0, 0, -1, -1, 1, 0, 100), nil, kafka.ErrInvalidRecord, false},
		{"record: varint without end", raw(1, []byte{28, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), nil, kafka.ErrInvalidRecord, false},
		{"record: bytes after the last", raw(1, cat(fields(0, 0, 0, -1, -1, 0), []byte{0})), nil, kafka.ErrInvalidRecord, false},

		{"no key on a compacted topic", keyless.Bytes(), compacted, kafka.ErrInvalidRecord, false},
		{"too old", timed(nowMs - 3600_001), nil, kafka.ErrInvalidTimestamp, false},
		{"too new", timed(nowMs + 3600_001), nil, kafka.ErrInvalidTimestamp, false},
		{"year 2100 (B140)", timed(4102444800000), nil, kafka.ErrInvalidTimestamp, false},
		{"timestamp that wraps", timed(math.MinInt64 + 5), nil, kafka.ErrInvalidTimestamp, false},

		{"gzip of garbage", packedAs(Gzip, []byte("garbage")), nil, kafka.ErrInvalidRecord, true}, // Kafka: -1
		{"snappy of garbage", packedAs(Snappy, []byte("garbage")), nil, kafka.ErrInvalidRecord, true},
		{"lz4 of garbage", packedAs(LZ4, []byte("garbage")), nil, kafka.ErrInvalidRecord, true},
		{"zstd of garbage", packedAs(Zstd, []byte("garbage")), nil, kafka.ErrInvalidRecord, true},
		{"lz4, linked blocks", packedAs(LZ4, lz4Frame(three(NoCodec)[HeaderLen:], 0x40, 0x70, 0xdf)), nil, kafka.ErrInvalidRecord, true}, // Kafka: -1, as Java clients cannot read it
		{"lz4, header checksum of format 0", packedAs(LZ4, lz4Frame(three(NoCodec)[HeaderLen:], 0x60, 0x40, 0x1a)), nil, kafka.ErrInvalidRecord, true},
		{"lz4, two frames", packedAs(LZ4, append(lz4Frame(three(NoCodec)[HeaderLen:], 0x60, 0x70, 0x73), lz4Frame(nil, 0x60, 0x70, 0x73)...)), nil, kafka.ErrInvalidRecord, true},
		{"lz4, cut", func() []byte { v := three(LZ4); return packedAs(LZ4, v[HeaderLen:len(v)-5]) }(), nil, kafka.ErrInvalidRecord, true},
		{"gzip, cut", func() []byte { v := three(Gzip); return packedAs(Gzip, v[HeaderLen:len(v)-9]) }(), nil, kafka.ErrInvalidRecord, true},
		{"gzip, one record missing", edit(three(Gzip), func(v View) { v.put32(atCount, 4); v.put32(atLastDelta, 3) }), nil, kafka.ErrInvalidRecord, false},
		{"gzip, one record more", edit(three(Gzip), func(v View) { v.put32(atCount, 2); v.put32(atLastDelta, 1) }), nil, kafka.ErrInvalidRecord, false},
		{"gzip, keyless on a compacted topic", func() []byte {
			b := NewBuilder(Plain(Gzip))
			b.Add(nowMs, nil, nil)
			return b.Bytes()
		}(), compacted, kafka.ErrInvalidRecord, false},
	}
}

// lz4Frame is a frame of one stored block; the descriptor ends with its checksum.
func lz4Frame(body []byte, descriptor ...byte) []byte {
	b := append([]byte{0x04, 0x22, 0x4d, 0x18}, descriptor...)
	b = binary.LittleEndian.AppendUint32(b, lz4Stored|uint32(len(body)))
	return append(append(b, body...), 0, 0, 0, 0)
}

func TestRefused(t *testing.T) {
	for _, c := range refusals() {
		r := rulesNow()
		if c.rules != nil {
			c.rules(r)
		}
		records := append([]byte(nil), c.records...)
		got, err := Validate(records, r)
		var inv *Invalid
		if !errors.As(err, &inv) || inv.Code != c.want || inv.Message == "" {
			t.Errorf("%s: got %+v, %#v, want code %d", c.name, got, err, c.want)
		}
		if !bytes.Equal(records, c.records) {
			t.Errorf("%s: a refused batch was changed", c.name)
		}
	}
}

// B032, KIP-467: the records at fault are named.
func TestRecordErrors(t *testing.T) {
	b := NewBuilder(Plain(NoCodec))
	b.Add(nowMs, []byte("k"), nil)
	b.Add(nowMs, nil, []byte("v"))
	b.Add(nowMs, []byte{}, []byte("v"))
	b.Add(nowMs+7200_000, []byte("k"), []byte("v"))
	for _, c := range []struct {
		compacted bool
		after     int64
		code      kafka.Error
		indexes   string
	}{
		{true, math.MaxInt64, kafka.ErrInvalidRecord, "[1]"},
		{false, 3600_000, kafka.ErrInvalidTimestamp, "[3]"},
		{true, 3600_000, kafka.ErrInvalidTimestamp, "[1 3]"},
	} {
		r := rulesNow()
		r.Compacted, r.AfterMaxMs = c.compacted, c.after
		_, err := Validate(b.Bytes(), r)
		var inv *Invalid
		if !errors.As(err, &inv) {
			t.Fatalf("%+v: %v", c, err)
		}
		var at []int32
		for _, e := range inv.Records {
			at = append(at, e.Index)
			if e.Message == "" {
				t.Errorf("%+v: record %d without a message", c, e.Index)
			}
		}
		if inv.Code != c.code || fmt.Sprint(at) != c.indexes || !strings.Contains(inv.Message, fmt.Sprintf("record %d", at[0])) {
			t.Errorf("%+v: got %d %q %v", c, inv.Code, inv.Message, at)
		}
	}
	many := NewBuilder(Plain(NoCodec))
	for range recordErrorsMax + 5 {
		many.Add(nowMs, nil, nil)
	}
	r := rulesNow()
	r.Compacted = true
	_, err := Validate(many.Bytes(), r)
	if inv := err.(*Invalid); len(inv.Records) != recordErrorsMax {
		t.Errorf("%d records are named", len(inv.Records))
	}
}

// B011, B036, B140: what is changed in a good batch, and what is not.
func TestTimestamps(t *testing.T) {
	for _, codec := range everyCodec {
		v := edit(three(codec), func(v View) { v.put64(atMaxTimestamp, 1); v.Stamp(0, 77) })
		got, err := Validate(append([]byte(nil), v...), rulesNow())
		if err != nil || got.MaxTimestamp != nowMs+2 || got.Batch.MaxTimestamp() != nowMs+2 || got.AppendTimeMs != -1 || !got.Batch.CRCOK() {
			t.Errorf("%s, wrong maximum: %+v, %v", codec, got, err)
		}
		r := rulesNow()
		r.AppendTime, r.NowMs = true, 5
		got, err = Validate(append([]byte(nil), v...), r)
		if err != nil || got.MaxTimestamp != 5 || got.Batch.MaxTimestamp() != 5 || got.AppendTimeMs != 5 || !got.Batch.AppendTime() || !got.Batch.CRCOK() {
			t.Errorf("%s, append time: %+v, %v", codec, got, err)
		}
		_ = got.Batch.Each(func(rec *Record) error {
			if ts := got.Batch.Timestamp(rec); ts != 5 {
				t.Errorf("%s, append time: record at %d", codec, ts)
			}
			return nil
		})
		got.Batch.Stamp(1<<40, 3)
		if !got.Batch.CRCOK() || got.Batch.LastOffset() != 1<<40+2 || got.Batch.LeaderEpoch() != 3 {
			t.Errorf("%s: stamp: %s", codec, got.Batch)
		}
	}
	got, err := Validate(edit(three(NoCodec), func(v View) { v.putAttributes(attrAppendTime) }), rulesNow())
	if err != nil || got.Batch.AppendTime() || got.MaxTimestamp != nowMs+2 || !got.Batch.CRCOK() {
		t.Errorf("append time from a producer: %+v, %v", got, err)
	}
	b := NewBuilder(Plain(NoCodec))
	b.Add(NoTimestamp, nil, nil)
	got, err = Validate(b.Bytes(), rulesNow())
	if err != nil || got.MaxTimestamp != NoTimestamp {
		t.Errorf("record without time: %+v, %v", got, err)
	}
}

// B034: the limit is of what is stored.
func TestSizeLimit(t *testing.T) {
	of := func(c Codec, n, size int) View {
		b := NewBuilder(Plain(c))
		for range n {
			b.Add(nowMs, nil, make([]byte, size))
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name   string
		batch  View
		target Codec
		want   kafka.Error
	}{
		{"900 bytes", of(NoCodec, 1, 900), TargetProducer, 0},
		{"3 x 400", of(NoCodec, 3, 400), TargetProducer, kafka.ErrMessageTooLarge},
		{"50 KB of zeros, zstd", of(Zstd, 1, 50_000), TargetProducer, 0},
		{"50 KB of zeros, zstd, stored plain", of(Zstd, 1, 50_000), NoCodec, kafka.ErrMessageTooLarge},
		{"1200 bytes, would fit when packed", of(NoCodec, 3, 400), Gzip, kafka.ErrMessageTooLarge},
	} {
		r := rulesNow()
		r.MaxBytes, r.Target = 1000, c.target
		_, err := Validate(c.batch, r)
		if code := codeOf(err); code != c.want {
			t.Errorf("%s: %d, want %d (%v)", c.name, code, c.want, err)
		}
	}
	r := rulesNow()
	r.MaxDecompressed = 49_000
	for _, c := range everyCodec[1:] {
		if _, err := Validate(of(c, 1, 50_000), r); codeOf(err) != kafka.ErrMessageTooLarge {
			t.Errorf("%s unpacks past the bound: %v", c, err)
		}
	}
}

func codeOf(err error) kafka.Error {
	var inv *Invalid
	if errors.As(err, &inv) {
		return inv.Code
	}
	if err != nil {
		return -1
	}
	return 0
}

// B039: with the producer's codec the stored bytes are those that were sent,
// base offset and epoch aside; trailing bytes that are no batch are dropped.
func TestStoredAsSent(t *testing.T) {
	for _, c := range everyCodec {
		v := three(c)
		in := append(append([]byte(nil), v...), v[:20]...)
		got, err := Validate(in, rulesNow())
		if err != nil || !bytes.Equal(got.Batch, v) || &got.Batch[0] != &in[0] || got.Count != 3 {
			t.Errorf("%s: %+v, %v", c, got, err)
		}
	}
}

// B038: null and empty stay apart, header order and duplicates stay.
func TestNullAndEmpty(t *testing.T) {
	all := [][]byte{nil, {}, []byte("x")}
	for _, codec := range everyCodec {
		b := NewBuilder(Plain(codec))
		for _, k := range all {
			for _, v := range all {
				for _, h := range all {
					b.Add(nowMs, k, v, Header{"same", h}, Header{"", h}, Header{"same", []byte("second")})
				}
			}
		}
		thousand := make([]Header, 1000)
		for i := range thousand {
			thousand[i] = Header{fmt.Sprint(i), nil}
		}
		b.Add(nowMs, nil, nil, thousand...)
		for _, target := range append(everyCodec, TargetProducer) {
			r := rulesNow()
			r.Target = target
			got, err := Validate(b.Bytes(), r)
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			err = got.Batch.Each(func(rec *Record) error {
				defer func() { i++ }()
				if i == 27 {
					if len(rec.Headers) != 1000 || rec.Headers[999].Key != "999" {
						t.Errorf("%s: %d headers", codec, len(rec.Headers))
					}
					return nil
				}
				k, v, h := all[i/9], all[i/3%3], all[i%3]
				want := fmt.Sprintf("%#v %#v %#v", k, v, []Header{{"same", h}, {"", h}, {"same", []byte("second")}})
				if got := fmt.Sprintf("%#v %#v %#v", rec.Key, rec.Value, rec.Headers); got != want {
					t.Errorf("%s to %s: record %d is %s, want %s", codec, target, i, got, want)
				}
				return nil
			})
			if err != nil || i != 28 {
				t.Errorf("%s: %d records, %v", codec, i, err)
			}
		}
	}
}

func TestValidateDoesNotAllocate(t *testing.T) {
	v := benchBatch(NoCodec, 100, 100)
	r := testRules()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Validate(v, r); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
