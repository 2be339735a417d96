package batch

// Shows: accessors and their edges.

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

func TestNext(t *testing.T) {
	a, b := three(NoCodec), three(Gzip)
	buf := cat(a, b, a[:30])
	v, rest, err := Next(buf)
	if err != nil || len(v) != len(a) || cap(v) != len(a) {
		t.Fatal(len(v), err)
	}
	v, rest, err = Next(rest)
	if err != nil || v.Codec() != Gzip {
		t.Fatal(v, err)
	}
	if _, again, err := Next(rest); !errors.Is(err, ErrShort) || len(again) != 30 {
		t.Fatal(len(again), err)
	}
	short := func(n int32) []byte {
		return edit(a, func(v View) { v.put32(atLength, n) })
	}
	for _, c := range []struct {
		buf  []byte
		want error
	}{
		{nil, ErrShort}, {a[:11], ErrShort}, {a[:12], ErrShort}, {a[:16], ErrShort}, {a[:len(a)-1], ErrShort},
		{short(-1), ErrCorrupt}, {short(48), ErrCorrupt}, {short(math.MaxInt32), ErrCorrupt}, {short(math.MinInt32), ErrCorrupt},
		{edit(a, func(v View) { v[atMagic] = 1 }), ErrMagic}, {make([]byte, 61), ErrMagic},
	} {
		if _, _, err := Next(c.buf); !errors.Is(err, c.want) {
			t.Errorf("%d bytes: %v, want %v", len(c.buf), err, c.want)
		}
	}
}

func TestSequences(t *testing.T) {
	for _, c := range []struct{ base, n, want int32 }{
		{0, 0, 0}, {5, 2, 7}, {math.MaxInt32, 0, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 3, 1}, {1, math.MaxInt32, 0},
	} {
		if got := AddSequence(c.base, c.n); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.base, c.n, got, c.want)
		}
	}
	v := three(NoCodec)
	if v.LastSequence() != NoSequence || v.HasProducer() {
		t.Error(v)
	}
	v = edit(v, func(v View) { v.put64(atProducerID, 1); v.put32(atBaseSequence, math.MaxInt32) })
	if v.LastSequence() != 1 || !v.HasProducer() {
		t.Error(v.LastSequence())
	}
}

func TestFields(t *testing.T) {
	b := NewBuilder(BuilderOptions{Codec: Zstd, ProducerID: 1 << 40, ProducerEpoch: 3, BaseSequence: 8, Transactional: true})
	b.Add(nowMs, []byte("k"), []byte("v"))
	b.Add(nowMs-5, nil, nil)
	if b.Count() != 2 || b.Len() <= HeaderLen {
		t.Error(b.Count(), b.Len())
	}
	v := b.Bytes()
	v.Stamp(1<<33, 12)
	if v.BaseOffset() != 1<<33 || v.LastOffset() != 1<<33+1 || v.LeaderEpoch() != 12 || v.Magic() != 2 || v.Size() != len(v) ||
		v.Codec() != Zstd || !v.Transactional() || v.Control() || v.AppendTime() || v.Count() != 2 || v.LastOffsetDelta() != 1 ||
		v.BaseTimestamp() != nowMs || v.MaxTimestamp() != nowMs || v.ProducerID() != 1<<40 || v.ProducerEpoch() != 3 ||
		v.BaseSequence() != 8 || v.LastSequence() != 9 || !v.CRCOK() || v.Attributes() != 0x14 || v.CRC() != binary.BigEndian.Uint32(v[17:]) {
		t.Error(v)
	}
	b.Reset(Plain(NoCodec))
	if v := b.Bytes(); v.Count() != 0 || v.LastOffsetDelta() != -1 || v.ProducerID() != kafka.NoProducer {
		t.Error(v)
	}
	b.Reset(BuilderOptions{ProducerID: -1, AppendTime: true, NowMs: 99})
	b.Add(5, nil, nil)
	if v := b.Bytes(); !v.AppendTime() || v.MaxTimestamp() != 99 || v.BaseTimestamp() != 5 {
		t.Error(v)
	}
}

// A batch that compaction thinned out reads; one whose offsets go back does not.
func TestEachOffsets(t *testing.T) {
	count := func(v View) (n int, err error) {
		err = v.Each(func(*Record) error { n++; return nil })
		return n, err
	}
	gaps := raw(2, cat(fields(0, 0, 3, -1, -1, 0), fields(0, 0, 900, -1, -1, 0)))
	if n, err := count(gaps); n != 2 || err != nil {
		t.Error(n, err)
	}
	back := raw(2, cat(fields(0, 0, 3, -1, -1, 0), fields(0, 0, 3, -1, -1, 0)))
	if n, err := count(back); n != 1 || !errors.Is(err, ErrCorrupt) {
		t.Error(n, err)
	}
	stop := errors.New("stop")
	if err := gaps.Each(func(*Record) error { return stop }); err != stop {
		t.Error(err)
	}
}
