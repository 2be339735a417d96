package batch

// Shows: franz-go's client reads what is made here, and what it makes is read
// here, for batches of every codec and for message sets of the formats 0 and 1.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// plainRecord is a record as both sides can show it.
type plainRecord struct {
	Offset, Timestamp int64
	Key, Value        []byte
	Headers           []Header
}

func (p plainRecord) String() string {
	return fmt.Sprintf("%d@%d %#v=%#v %#v", p.Offset, p.Timestamp, p.Key, p.Value, p.Headers)
}

func ours(t testing.TB, v View) []plainRecord {
	t.Helper()
	var out []plainRecord
	if err := v.Each(func(r *Record) error {
		p := plainRecord{Offset: int64(v.Offset(r)), Timestamp: v.Timestamp(r)}
		p.Key, p.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		for _, h := range r.Headers {
			p.Headers = append(p.Headers, Header{h.Key, bytes.Clone(h.Value)})
		}
		out = append(out, p)
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return out
}

func theirs(t *testing.T, records []byte) []plainRecord {
	t.Helper()
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.RecordBatches = records
	rp.HighWatermark, rp.LastStableOffset = 1<<60, 1<<60
	fp, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: "t", KeepControlRecords: true}, &rp, kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		t.Fatalf("franz-go: %v", fp.Err)
	}
	var out []plainRecord
	for _, r := range fp.Records {
		p := plainRecord{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			p.Headers = append(p.Headers, Header{h.Key, h.Value})
		}
		out = append(out, p)
	}
	return out
}

func same(t testing.TB, what string, got, want []plainRecord) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: record %d is %.200s, want %.200s", what, i, got[i].String(), want[i].String())
		}
	}
}

func randomBytes(r *rand.Rand, most int) []byte {
	switch r.IntN(8) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = byte('a' + r.IntN(1+i%26))
	}
	return b
}

func randomRecords(r *rand.Rand) []plainRecord {
	sizes := []int{0, 1, 10, 100, 5000, 40000}
	out := make([]plainRecord, 1+r.IntN([]int{1, 3, 200}[r.IntN(3)]))
	if len(out) > 10 {
		sizes = sizes[:4]
	}
	for i := range out {
		p := plainRecord{Offset: int64(i), Timestamp: nowMs + int64(r.IntN(1<<r.IntN(20))) - int64(r.IntN(1<<r.IntN(20)))}
		p.Key, p.Value = randomBytes(r, sizes[r.IntN(len(sizes))]), randomBytes(r, sizes[r.IntN(len(sizes))])
		for range r.IntN(1 << r.IntN(4)) {
			p.Headers = append(p.Headers, Header{string(randomBytes(r, 20)), randomBytes(r, 100)})
		}
		out[i] = p
	}
	return out
}

func pcg(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// asKmsg builds the batch with franz-go's generated encoder and its compressor.
func asKmsg(t *testing.T, recs []plainRecord, codec Codec) View {
	t.Helper()
	b := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, Attributes: int16(codec),
		FirstTimestamp: recs[0].Timestamp, NumRecords: int32(len(recs)), LastOffsetDelta: int32(len(recs) - 1)}
	for i, r := range recs {
		b.MaxTimestamp = max(b.MaxTimestamp, r.Timestamp)
		k := kmsg.Record{TimestampDelta64: r.Timestamp - b.FirstTimestamp, OffsetDelta: int32(i), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		k.Length = int32(len(k.AppendTo(nil)) - 1) // -1: a length of 0 takes one byte
		b.Records = k.AppendTo(b.Records)
	}
	if codec != NoCodec {
		comp, err := kgo.DefaultCompressor(map[Codec]kgo.CompressionCodec{Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(),
			LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression()}[codec])
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		packed, used := comp.Compress(&buf, b.Records)
		if Codec(used) != codec {
			t.Fatalf("franz-go used %d", used)
		}
		b.Records = bytes.Clone(packed)
	}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[atLength:], uint32(len(out)-lengthAfter))
	binary.BigEndian.PutUint32(out[atCRC:], crc32.Checksum(out[atAttributes:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

func TestFranzBatches(t *testing.T) {
	for seed := range uint64(30) {
		r := pcg(seed)
		recs := randomRecords(r)
		for _, c := range everyCodec {
			what := fmt.Sprintf("seed %d %s", seed, c)
			b := NewBuilder(Plain(c))
			for _, p := range recs {
				b.Add(p.Timestamp, p.Key, p.Value, p.Headers...)
			}
			mine, kmsgs := b.Bytes(), asKmsg(t, recs, c)
			if c == NoCodec && !bytes.Equal(mine, kmsgs) {
				t.Fatalf("%s: bytes differ", what)
			}
			same(t, what+": franz-go reads ours", theirs(t, mine), recs)
			for _, target := range []Codec{TargetProducer, everyCodec[r.IntN(5)]} {
				rules := testRules()
				rules.Target = target
				got, err := Validate(bytes.Clone(kmsgs), rules)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				got.Batch.Stamp(1000, 3)
				read := ours(t, got.Batch)
				for i := range read {
					read[i].Offset -= 1000
				}
				same(t, what+": we read franz-go's, stored as "+target.String(), read, recs)
			}
		}
	}
}

func TestFranzControl(t *testing.T) {
	v := Control(Commit, 77, 3, 9, nowMs)
	var b kmsg.RecordBatch
	if err := b.ReadFrom(v); err != nil {
		t.Fatal(err)
	}
	if b.Attributes != 0x30 || b.ProducerID != 77 || b.ProducerEpoch != 3 || b.FirstSequence != -1 || b.NumRecords != 1 || b.MaxTimestamp != nowMs {
		t.Fatalf("%+v", b)
	}
	got := theirs(t, v)
	var k kmsg.ControlRecordKey
	var e kmsg.EndTxnMarker
	if err := k.ReadFrom(got[0].Key); err != nil || k.Type != kmsg.ControlRecordKeyTypeCommit || k.Version != 0 {
		t.Fatalf("%+v %v", k, err)
	}
	if err := e.ReadFrom(got[0].Value); err != nil || e.CoordinatorEpoch != 9 {
		t.Fatalf("%+v %v", e, err)
	}
	if m, err := v.Marker(); err != nil || m != (Marker{Commit, 9}) {
		t.Fatalf("%+v %v", m, err)
	}
	if _, err := three(NoCodec).Marker(); err == nil {
		t.Fatal("marker in a plain batch")
	}
}

// oldSet makes a message set. Timestamps are left out in format 0.
func oldSet(magic int8, recs []plainRecord, base int64) []byte {
	var out []byte
	for i, r := range recs {
		out = append(out, oldMessage(magic, 0, base+int64(i), r.Timestamp, r.Key, r.Value)...)
	}
	return out
}

func oldMessage(magic int8, attributes int8, offset, ts int64, key, value []byte) []byte {
	var out []byte
	if magic == 0 {
		m := kmsg.MessageV0{Offset: offset, Attributes: attributes, Key: key, Value: value}
		out = m.AppendTo(nil)
	} else {
		m := kmsg.MessageV1{Offset: offset, Magic: magic, Attributes: attributes, Timestamp: ts, Key: key, Value: value}
		out = m.AppendTo(nil)
	}
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-12))
	binary.BigEndian.PutUint32(out[12:], crc32.ChecksumIEEE(out[16:]))
	return out
}

// oldWrapper packs a set into one message, with relative offsets in format 1.
func oldWrapper(t testing.TB, magic int8, c Codec, recs []plainRecord) []byte {
	inner := oldSet(magic, recs, 0)
	packed, err := Compress(c, 0, inner)
	if err != nil {
		t.Fatal(err)
	}
	if c == LZ4 && magic == 0 {
		// What Kafka wrote before format 1: the checksum covers the magic too.
		packed[6] = byte(xxh32(packed[:6]) >> 8)
	}
	return oldMessage(magic, int8(c), int64(len(recs)-1), recs[len(recs)-1].Timestamp, nil, packed)
}

func TestFranzMessageSets(t *testing.T) {
	for seed := range uint64(20) {
		r := pcg(seed)
		recs := randomRecords(r)
		for i := range recs {
			recs[i].Headers = nil
		}
		for magic := range int8(2) {
			want := recs
			if magic == 0 {
				want = append([]plainRecord(nil), recs...)
				for i := range want {
					want[i].Timestamp = NoTimestamp
				}
			}
			for _, c := range everyCodec[:4] {
				set := oldSet(magic, recs, 0)
				if c != NoCodec {
					set = oldWrapper(t, magic, c, recs)
				}
				what := fmt.Sprintf("seed %d format %d %s", seed, magic, c)
				if !(c == LZ4 && magic == 0) { // franz-go cannot read those
					read := theirs(t, set)
					if magic == 0 {
						for i := range read {
							read[i].Timestamp = NoTimestamp
						}
					}
					same(t, what+": franz-go reads the set", read, want)
				}
				for _, target := range []Codec{TargetProducer, Zstd, NoCodec} {
					rules := testRules()
					rules.Target = target
					got, err := UpConvert(set, rules)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					wantCodec := target
					if target == TargetProducer {
						wantCodec = c
					}
					if got.Batch.Codec() != wantCodec || !got.Batch.CRCOK() || int(got.Count) != len(recs) {
						t.Fatalf("%s to %s: %+v", what, target, got)
					}
					same(t, what+": converted", ours(t, got.Batch), want)
					again, err := Validate(got.Batch, testRules())
					if err != nil || again.MaxTimestamp != got.MaxTimestamp {
						t.Fatalf("%s: converted batch: %+v %v", what, again, err)
					}
				}
			}
		}
	}
}

func TestMessageSetRefused(t *testing.T) {
	recs := []plainRecord{{Timestamp: nowMs, Key: []byte("k"), Value: []byte("v")}, {Timestamp: nowMs, Value: []byte("v")}}
	plain := oldSet(1, recs, 0)
	touched := func(at int, b byte) []byte { out := bytes.Clone(plain); out[at] = b; return out }
	resum := func(out []byte) []byte {
		binary.BigEndian.PutUint32(out[12:], crc32.ChecksumIEEE(out[16:12+binary.BigEndian.Uint32(out[8:])]))
		return out
	}
	wrap := func(magic int8, c Codec, inner []byte) []byte {
		packed, _ := Compress(c, 0, inner)
		return oldMessage(magic, int8(c), 0, nowMs, nil, packed)
	}
	for _, c := range []struct {
		name  string
		set   []byte
		rules func(r *Rules)
		want  kafka.Error
	}{
		{"good", plain, nil, 0},
		{"good, last message cut", plain[:len(plain)-1], nil, 0},
		{"nothing", nil, nil, kafka.ErrInvalidRecord},
		{"cut", plain[:20], nil, kafka.ErrInvalidRecord},
		{"size -1", append(touched(8, 0xff)[:8], 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0), nil, kafka.ErrCorruptMessage},
		{"wrong crc", touched(13, 0xaa), nil, kafka.ErrCorruptMessage},
		{"key longer than the message", resum(touched(26, 0x7f)), nil, kafka.ErrCorruptMessage},
		{"formats mixed", cat(oldSet(0, recs[:1], 0), plain), nil, kafka.ErrInvalidRecord},
		{"format 3", oldMessage(3, 0, 0, 0, nil, nil), nil, kafka.ErrCorruptMessage},
		{"unknown codec", oldMessage(1, 6, 0, nowMs, nil, nil), nil, kafka.ErrInvalidRecord},
		{"zstd", wrap(1, Zstd, plain), nil, kafka.ErrInvalidRecord},
		{"empty wrapper", wrap(1, Gzip, nil), nil, kafka.ErrInvalidRecord},
		{"wrapper of a cut message", wrap(1, Gzip, plain[:len(plain)-1]), nil, kafka.ErrInvalidRecord},
		{"wrapper of garbage", oldMessage(1, 1, 0, nowMs, nil, []byte("garbage")), nil, kafka.ErrInvalidRecord},
		{"wrapper in a wrapper", wrap(1, Gzip, wrap(1, Gzip, plain)), nil, kafka.ErrInvalidRecord},
		{"wrapper of another format", wrap(1, Gzip, oldSet(0, recs, 0)), nil, kafka.ErrInvalidRecord},
		{"bomb", wrap(1, Gzip, make([]byte, 2000)), func(r *Rules) { r.MaxDecompressed = 1000 }, kafka.ErrMessageTooLarge},
		{"message too large", plain, func(r *Rules) { r.MaxBytes = 30 }, kafka.ErrMessageTooLarge},
		{"batch too large", plain, func(r *Rules) { r.MaxBytes = 70 }, kafka.ErrMessageTooLarge},
		{"no key", plain, func(r *Rules) { r.Compacted = true }, kafka.ErrInvalidRecord},
		{"too old", plain, func(r *Rules) { r.NowMs += 7200_000 }, kafka.ErrInvalidTimestamp},
		{"append time", oldMessage(1, 8, 0, nowMs, nil, nil), func(r *Rules) { r.AppendTime = true }, kafka.ErrInvalidTimestamp},
		{"batch of format 2", three(NoCodec), nil, 0},
	} {
		r := rulesNow()
		if c.rules != nil {
			c.rules(r)
		}
		if _, err := UpConvert(c.set, r); codeOf(err) != c.want {
			t.Errorf("%s: %d (%v), want %d", c.name, codeOf(err), err, c.want)
		}
	}
	r := rulesNow()
	r.AppendTime = true
	got, err := UpConvert(plain, r)
	if err != nil || got.AppendTimeMs != nowMs || !got.Batch.AppendTime() || got.Batch.MaxTimestamp() != nowMs || !got.Batch.CRCOK() {
		t.Errorf("append time: %+v, %v", got, err)
	}
}
