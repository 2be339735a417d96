package batch

import (
	"encoding/binary"
	"fmt"

	"github.com/weirmq/weir/internal/kafka"
)

// BuilderOptions are the header's fields. The zero value has no codec but
// claims producer 0; Plain gives the options of a batch without a producer.
type BuilderOptions struct {
	Codec         Codec
	Level         int // of the codec, 0: its default
	ProducerID    kafka.ProducerID
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	AppendTime    bool  // every record has the time NowMs
	NowMs         int64 // used only with AppendTime
}

// Plain are the options of a batch without producer, compressed with c.
func Plain(c Codec) BuilderOptions {
	return BuilderOptions{Codec: c, ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: NoSequence}
}

// Builder makes one batch with base offset 0. It keeps what it is given only as
// the bytes of the batch.
type Builder struct {
	opts  BuilderOptions
	buf   []byte // header and records, not compressed
	count int32
	base  int64
	max   int64
}

// NewBuilder returns an empty Builder.
func NewBuilder(opts BuilderOptions) *Builder {
	b := &Builder{}
	b.Reset(opts)
	return b
}

// Reset empties the Builder for another batch. Views that Bytes returned are no
// longer valid if they were not compressed.
func (b *Builder) Reset(opts BuilderOptions) {
	if !opts.Codec.Known() {
		panic(fmt.Sprintf("BUG: batch.Builder with codec %d", opts.Codec))
	}
	if b.buf == nil {
		b.buf = make([]byte, HeaderLen, 512)
	}
	*b = Builder{opts: opts, buf: b.buf[:HeaderLen], max: NoTimestamp}
}

// Add appends a record with the time tsMs; nil key or value are null.
func (b *Builder) Add(tsMs int64, key, value []byte, headers ...Header) {
	if b.count == countMax {
		panic("BUG: batch.Builder is full")
	}
	if b.count == 0 {
		b.base = tsMs
	}
	b.max = max(b.max, tsMs)
	b.buf = appendRecord(b.buf, b.count, tsMs-b.base, key, value, headers)
	b.count++
}

// Len is the size in bytes that the batch has so far, before compression.
func (b *Builder) Len() int { return len(b.buf) }

// Count is the number of records so far.
func (b *Builder) Count() int { return int(b.count) }

// Bytes completes the batch: base offset 0, leader epoch -1. Without a codec the
// View aliases the Builder until Reset or Add. An empty Builder gives a batch of
// no records, which brokers refuse.
func (b *Builder) Bytes() View {
	out := View(b.buf)
	if b.opts.Codec != NoCodec {
		packed, err := appendCompressed(make([]byte, HeaderLen, HeaderLen+len(b.buf)/2), b.opts.Codec, b.opts.Level, b.buf[HeaderLen:])
		if err != nil {
			panic("BUG: packing into memory: " + err.Error())
		}
		out = packed
	}
	bits := uint8(b.opts.Codec)
	if b.opts.Transactional {
		bits |= attrTransactional
	}
	if b.opts.Control {
		bits |= attrControl
	}
	maxTs := b.max
	if b.opts.AppendTime {
		bits |= attrAppendTime
		maxTs = b.opts.NowMs
	}
	out.header(bits, b.count-1, b.base, maxTs)
	out.put64(atProducerID, int64(b.opts.ProducerID))
	binary.BigEndian.PutUint16(out[atProducerEpoch:], uint16(b.opts.ProducerEpoch))
	out.put32(atBaseSequence, b.opts.BaseSequence)
	out.put32(atCount, b.count)
	out.seal()
	return out[:len(out):len(out)]
}

// header writes what is common to every batch that is made here; producer, count
// and CRC are the caller's.
func (v View) header(bits uint8, lastDelta int32, baseMs, maxMs int64) {
	v.Stamp(0, kafka.NoEpoch)
	v.put32(atLength, int32(len(v)-lengthAfter))
	v[atMagic] = 2
	v.putAttributes(bits)
	v.put32(atLastDelta, lastDelta)
	v.put64(atBaseTimestamp, baseMs)
	v.put64(atMaxTimestamp, maxMs)
}
