package batch

// Shows: what DownConvert makes of a batch is read the same by franz-go, by a
// plain reader here and by UpConvert: keys, values, offsets with their gaps and,
// in format 1, times. Limits fall between messages, from begins anywhere, and
// what has no place in the old formats is left out or refused.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

// readSet reads a message set by the formats' description alone: wrappers are
// opened, offsets made absolute.
func readSet(t testing.TB, set []byte) []plainRecord {
	t.Helper()
	var out []plainRecord
	for len(set) > 0 {
		if len(set) < messageMin0 {
			t.Fatalf("%d bytes at the end of the set", len(set))
		}
		m := set[:12+binary.BigEndian.Uint32(set[8:])]
		set = set[len(m):]
		if sum := binary.BigEndian.Uint32(m[12:]); sum != crc32.ChecksumIEEE(m[16:]) {
			t.Fatalf("message states CRC %08x", sum)
		}
		magic, attributes := m[16], m[17]
		p := plainRecord{Offset: int64(binary.BigEndian.Uint64(m)), Timestamp: NoTimestamp}
		rest := m[18:]
		if magic == 1 {
			p.Timestamp = int64(binary.BigEndian.Uint64(rest))
			rest = rest[8:]
		}
		field := func() []byte {
			n := int32(binary.BigEndian.Uint32(rest))
			rest = rest[4:]
			if n < 0 {
				return nil
			}
			b := bytes.Clone(rest[:n:n])
			rest = rest[n:]
			if b == nil {
				b = []byte{}
			}
			return b
		}
		p.Key, p.Value = field(), field()
		if len(rest) != 0 {
			t.Fatalf("%d bytes left in a message", len(rest))
		}
		if attributes&7 == 0 {
			out = append(out, p)
			continue
		}
		unpacked, err := Decompress(Codec(attributes&7), p.Value, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		inner := readSet(t, unpacked)
		latest := NoTimestamp
		shift := int64(0)
		if magic == 1 {
			shift = p.Offset - inner[len(inner)-1].Offset
		}
		for i := range inner {
			inner[i].Offset += shift
			latest = max(latest, inner[i].Timestamp)
		}
		if inner[len(inner)-1].Offset != p.Offset || magic == 1 && latest != p.Timestamp {
			t.Fatalf("wrapper at %d, latest time %d, of messages up to %d, %d", p.Offset, p.Timestamp, inner[len(inner)-1].Offset, latest)
		}
		out = append(out, inner...)
	}
	return out
}

// asOld is what an old format keeps of records.
func asOld(recs []plainRecord, magic int8, from int64) []plainRecord {
	var out []plainRecord
	for _, r := range recs {
		if r.Offset < from {
			continue
		}
		r.Headers = nil
		r.Timestamp = max(r.Timestamp, NoTimestamp)
		if magic == 0 {
			r.Timestamp = NoTimestamp
		}
		out = append(out, r)
	}
	return out
}

// gapped is a batch from offset base on with every third record compacted away.
func gapped(t testing.TB, recs []plainRecord, c Codec, base int64) (View, []plainRecord) {
	t.Helper()
	b := NewBuilder(Plain(c))
	for _, r := range recs {
		b.Add(r.Timestamp, r.Key, r.Value, r.Headers...)
	}
	v, _, err := Filter(b.Bytes(), NoHorizon, func(r *Record) (bool, error) { return r.OffsetDelta%3 != 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	v.Stamp(kafka.Offset(base), 7)
	return v, ours(t, v)
}

func TestDownConvertReadsBack(t *testing.T) {
	for seed := range uint64(20) {
		for _, c := range everyCodec[:4] {
			v, kept := gapped(t, randomRecords(pcg(seed)), c, 1000)
			for magic := range int8(2) {
				what := fmt.Sprintf("seed %d format %d %s", seed, magic, c)
				want := asOld(kept, magic, 0)
				set, next, err := DownConvert(nil, v, magic, 0, math.MaxInt, room())
				if err != nil || next != v.LastOffset()+1 {
					t.Fatalf("%s: next %d, %v", what, next, err)
				}
				same(t, what, readSet(t, set), want)
				read := theirs(t, set)
				if magic == 0 {
					for i := range read {
						read[i].Timestamp = NoTimestamp
					}
				}
				same(t, what+": franz-go", read, want)
				packed := c
				if c == LZ4 && magic == 0 {
					packed = NoCodec
				}
				back, err := UpConvert(set, testRules())
				if err != nil || back.Batch.Codec() != packed {
					t.Fatalf("%s: up again: %v, %v", what, back.Batch, err)
				}
				again := ours(t, back.Batch)
				for i := range again {
					again[i].Offset = want[i].Offset // UpConvert numbers anew
				}
				same(t, what+": up again", again, want)

				// In pieces: each call goes on where the one before ended.
				var got []plainRecord
				for at, calls := kafka.Offset(0), 0; at <= v.LastOffset(); calls++ {
					piece, next, err := DownConvert(nil, v, magic, at, 300, room())
					if err != nil || next <= at || calls > len(kept)+1 {
						t.Fatalf("%s: from %d: next %d, %v", what, at, next, err)
					}
					part := readSet(t, piece)
					if packed == NoCodec && len(part) > 1 && len(piece) > 300 {
						t.Fatalf("%s: %d bytes, %d messages for a limit of 300", what, len(piece), len(part))
					}
					got = append(got, part...)
					at = next
				}
				same(t, what+": in pieces", got, want)
			}
		}
	}
}

func TestDownConvertFrom(t *testing.T) {
	recs := make([]plainRecord, 9) // kept: 0 2 3 5 6 8
	for i := range recs {
		recs[i] = plainRecord{Offset: int64(i), Timestamp: nowMs + int64(i), Value: []byte{byte('0' + i)}}
	}
	for _, c := range everyCodec[:4] {
		v, kept := gapped(t, recs, c, 100)
		for from := int64(95); from <= 110; from++ {
			set, next, err := DownConvert([]byte("before"), v, 1, kafka.Offset(from), 1<<20, room())
			if err != nil || next != 109 || !bytes.HasPrefix(set, []byte("before")) {
				t.Fatalf("%s from %d: next %d, %v", c, from, next, err)
			}
			same(t, fmt.Sprintf("%s from %d", c, from), readSet(t, set[6:]), asOld(kept, 1, from))
		}
	}
}

// The limit: first whole, later ones not at all, and never cut.
func TestDownConvertLimit(t *testing.T) {
	for _, c := range everyCodec[:4] {
		v := three(c)
		whole, _, err := DownConvert(nil, v, 1, 0, 1, room())
		if err != nil || len(readSet(t, whole)) == 0 {
			t.Fatalf("%s: the first message must come whole: %v", c, err)
		}
		if c == NoCodec && len(readSet(t, whole)) != 1 {
			t.Fatalf("%d messages for a limit of 1 byte", len(readSet(t, whole)))
		}
		out, next, err := DownConvert(whole, v, 1, 0, len(whole)+1, room())
		if err != nil || next != 0 || !bytes.Equal(out, whole) {
			t.Fatalf("%s: %d bytes, next %d, %v, want nothing more", c, len(out), next, err)
		}
	}
}

// A million records that hardly take room compressed: several wrappers, and a
// limit holds between them.
func TestDownConvertManyInOne(t *testing.T) {
	const n = 100_000
	b := NewBuilder(Plain(Gzip))
	for range n {
		b.Add(nowMs, nil, nil)
	}
	v := b.Bytes()
	set, next, err := DownConvert(nil, v, 1, 0, math.MaxInt, room())
	if err != nil || next != n {
		t.Fatalf("next %d, %v", next, err)
	}
	if got := readSet(t, set); len(got) != n || got[n-1].Offset != n-1 {
		t.Fatalf("%d records", len(got))
	}
	wrappers := 0
	for rest := set; len(rest) > 0; wrappers++ {
		rest = rest[12+binary.BigEndian.Uint32(rest[8:]):]
	}
	if want := n * messageMin1 / wrapperMax; wrappers < want || wrappers > want+1 {
		t.Errorf("%d wrappers, want about %d", wrappers, want)
	}
	some, next, err := DownConvert(nil, v, 1, 0, len(set)/2, room())
	if err != nil || len(some) > len(set)/2 || next <= 0 || next >= n || len(readSet(t, some)) != int(next) {
		t.Errorf("%d of %d bytes, next %d, %v", len(some), len(set), next, err)
	}
}

func TestDownConvertTimes(t *testing.T) {
	b := NewBuilder(Plain(NoCodec))
	b.Add(-5, nil, []byte("before 1970"))
	b.Add(nowMs, nil, []byte("v"))
	for _, c := range everyCodec[:4] {
		v := b.Bytes()
		if c != NoCodec {
			r := testRules()
			r.Target, r.BeforeMaxMs = c, math.MaxInt64
			got, err := Validate(bytes.Clone(v), r)
			if err != nil {
				t.Fatal(err)
			}
			v = got.Batch
		}
		set, _, err := DownConvert(nil, v, 1, 0, math.MaxInt, room())
		if err != nil {
			t.Fatal(err)
		}
		if got := readSet(t, set); got[0].Timestamp != NoTimestamp || got[1].Timestamp != nowMs {
			t.Errorf("%s: times %d %d", c, got[0].Timestamp, got[1].Timestamp)
		}
		stamped := View(bytes.Clone(v))
		stamped.SetAppendTime(nowMs + 9)
		set, _, err = DownConvert(nil, stamped, 1, 0, math.MaxInt, room())
		if err != nil {
			t.Fatal(err)
		}
		if set[17] != byte(c)|attrAppendTime {
			t.Errorf("%s: attributes %#x of a batch of append time", c, set[17])
		}
		for _, r := range readSet(t, set) {
			if r.Timestamp != nowMs+9 {
				t.Errorf("%s: append time %d", c, r.Timestamp)
			}
		}
		if set, _, _ = DownConvert(nil, stamped, 0, 0, math.MaxInt, room()); set[17] != byte(c) && c != LZ4 {
			t.Errorf("%s: attributes %#x in format 0", c, set[17])
		}
	}
}

// Clients do not agree on lz4 in format 0.
func TestDownConvertLZ4InFormat0(t *testing.T) {
	want, _, _ := DownConvert(nil, three(NoCodec), 0, 0, math.MaxInt, room())
	if set, _, err := DownConvert(nil, three(LZ4), 0, 0, math.MaxInt, room()); err != nil || !bytes.Equal(set, want) {
		t.Errorf("% x, %v, want the plain messages % x", set, err, want)
	}
}

func TestDownConvertLeavesOut(t *testing.T) {
	for _, c := range []struct {
		name string
		v    View
		want error
		all  bool
	}{
		{"control batch", Control(Commit, 1, 0, 0, nowMs), nil, true},
		{"batch of no records", func() View {
			v, _ := gapped(t, []plainRecord{{}}, NoCodec, 0)
			v, _, _ = Filter(v, NoHorizon, func(*Record) (bool, error) { return false, nil })
			return v
		}(), nil, true},
		{"zstd", three(Zstd), ErrZstd, false},
		{"wrong CRC", func() View { v := View(bytes.Clone(three(NoCodec))); v[len(v)-1] ^= 1; return v }(), ErrCorrupt, false},
		{"unknown codec", edit(three(NoCodec), func(v View) { v[atAttributes+1] |= 6 }), ErrCorrupt, false},
		{"no gzip in it", edit(three(NoCodec), func(v View) { v[atAttributes+1] |= 1 }), ErrCorrupt, false},
		{"records cut", edit(three(NoCodec), func(v View) { v.put32(atCount, 2) }), ErrCorrupt, false},
	} {
		set, next, err := DownConvert([]byte{1}, c.v, 1, 0, math.MaxInt, room())
		if !errors.Is(err, c.want) || len(set) != 1 {
			t.Errorf("%s: %d bytes, %v, want %v", c.name, len(set), err, c.want)
		}
		if end := c.v.LastOffset() + 1; c.all && next != end || !c.all && next != 0 {
			t.Errorf("%s: next %d", c.name, next)
		}
	}
}

func FuzzDownConvert(f *testing.F) {
	seedBatches(f)
	v, _ := gapped(f, randomRecords(pcg(3)), Gzip, 0)
	f.Add([]byte(v))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, _, err := Next(sealed(data))
		if err != nil {
			return
		}
		v.Stamp(1<<33, 0)
		for magic := range int8(2) {
			set, next, err := DownConvert(nil, v, magic, 0, fuzzBound, room())
			if err != nil {
				if len(set) != 0 || next != 0 {
					t.Fatalf("%d bytes, next %d with %v", len(set), next, err)
				}
				continue
			}
			got := readSet(t, set)
			if v.Control() || v.Count() == 0 {
				if len(got) != 0 {
					t.Fatalf("%d records of a batch without any for clients", len(got))
				}
				continue
			}
			want := asOld(ours(t, v), magic, 0)
			if next <= v.LastOffset() {
				for i := range want {
					if want[i].Offset >= int64(next) {
						want = want[:i]
						break
					}
				}
			}
			same(t, "down", got, want)
			r := fuzzRules()
			r.MaxBytes, r.MaxDecompressed = 0, 1<<30
			back, err := UpConvert(set, r)
			if err != nil {
				t.Fatalf("up again: %v", err)
			}
			again := ours(t, back.Batch)
			for i := range again {
				again[i].Offset = want[min(i, len(want)-1)].Offset
			}
			same(t, "up again", again, want)
		}
	})
}

// room is for all that a batch may unpack to.
func room() *int { n := DefaultMaxDecompressed; return &n }

// A batch that unpacks to much is given in pieces, each for a bounded work, and
// together they are all of it; whoever begins deep in it is told what that takes.
func TestDownConvertUnpacksABoundedAmount(t *testing.T) {
	const n, size = 60, 1 << 20
	for _, c := range []Codec{Gzip, LZ4} {
		b := NewBuilder(Plain(c))
		for i := range n {
			b.Add(nowMs, nil, bytes.Repeat([]byte{byte(i)}, size))
		}
		v := b.Bytes()
		pieces := 0
		for at := kafka.Offset(0); at < n; pieces++ {
			unpack := 16 << 20
			set, next, err := DownConvert(nil, v, 1, at, math.MaxInt, &unpack)
			if errors.Is(err, ErrTooLarge) && (c != Gzip || at >= 15) {
				unpack = DefaultMaxDecompressed
				set, next, err = DownConvert(nil, v, 1, at, math.MaxInt, &unpack)
			}
			if err != nil || next <= at || next > at+giveMost/size+1 || unpack < 0 {
				t.Fatalf("%s from %d: next %d, %v, %d left", c, at, next, err, unpack)
			}
			got := readSet(t, set)
			if len(got) != int(next-at) || got[0].Offset != int64(at) || got[0].Value[0] != byte(at) {
				t.Fatalf("%s from %d to %d: %d records, first %d", c, at, next, len(got), got[0].Offset)
			}
			at = next
		}
		if pieces < 4 || pieces > 5 {
			t.Errorf("%s: %d pieces", c, pieces)
		}
		few := 100
		if set, next, err := DownConvert([]byte("x"), v, 1, 0, math.MaxInt, &few); !errors.Is(err, ErrTooLarge) || next != 0 || len(set) != 1 {
			t.Errorf("%s, room for nothing: %d bytes, next %d, %v", c, len(set), next, err)
		}
	}
}
