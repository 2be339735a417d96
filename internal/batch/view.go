package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/weirmq/weir/internal/kafka"
)

// HeaderLen is the size of a batch's header: everything before its records.
const HeaderLen = 61

// Where the fields of the header stand.
const (
	atLength        = 8
	atLeaderEpoch   = 12
	atMagic         = 16
	atCRC           = 17
	atAttributes    = 21
	atLastDelta     = 23
	atBaseTimestamp = 27
	atMaxTimestamp  = 35
	atProducerID    = 43
	atProducerEpoch = 51
	atBaseSequence  = 53
	atCount         = 57

	// lengthAfter is where the bytes begin that the length field counts.
	lengthAfter = 12
)

// Bits of the attributes.
const (
	attrCodec         = 0x07
	attrAppendTime    = 1 << 3
	attrTransactional = 1 << 4
	attrControl       = 1 << 5
	attrDeleteHorizon = 1 << 6
)

// NoTimestamp is the timestamp of a record that has none.
const NoTimestamp int64 = -1

// NoSequence is the base sequence of a batch without one.
const NoSequence int32 = -1

var (
	// ErrShort: the bytes end before the batch does.
	ErrShort = errors.New("batch: incomplete")
	// ErrMagic: the bytes are not of magic 2.
	ErrMagic = errors.New("batch: not a batch of magic 2")
	// ErrCorrupt: the bytes cannot be a batch.
	ErrCorrupt = errors.New("batch: corrupt")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// View is one whole batch, header and records and nothing else. It aliases the
// bytes it was made from. Only Next, Validate, UpConvert, Builder and Control
// make Views; every accessor relies on len >= HeaderLen.
type View []byte

// Next cuts the first batch off buf and returns it with the rest, both aliasing
// buf. It checks length and magic, not the CRC (CRCOK) nor the records (Each).
// Errors: ErrShort, ErrMagic, ErrCorrupt.
func Next(buf []byte) (View, []byte, error) {
	if len(buf) < lengthAfter {
		return nil, buf, ErrShort
	}
	size, err := HeaderSize(buf)
	if len(buf) > atMagic && buf[atMagic] != 2 {
		return nil, buf, ErrMagic
	}
	if err != nil {
		return nil, buf, err
	}
	if size > len(buf) {
		return nil, buf, ErrShort
	}
	return View(buf[:size:size]), buf[size:], nil
}

// HeaderSize returns the size in bytes of the whole batch that h begins. h holds
// at least base offset and length, 12 bytes. The error wraps ErrShort or, when
// no batch has such a length, ErrCorrupt.
func HeaderSize(h []byte) (total int, err error) {
	if len(h) < lengthAfter {
		return 0, ErrShort
	}
	n := int32(binary.BigEndian.Uint32(h[atLength:]))
	if n < HeaderLen-lengthAfter || n > math.MaxInt32-lengthAfter {
		return 0, fmt.Errorf("%w: length field %d", ErrCorrupt, n)
	}
	return int(n) + lengthAfter, nil
}

// BaseOffset is the offset of the batch's first record as it was produced, also
// when compaction has removed that record since.
func (v View) BaseOffset() kafka.Offset { return kafka.Offset(v.i64(0)) }

// Size is the whole batch in bytes.
func (v View) Size() int { return len(v) }

// LeaderEpoch is the epoch of the leader that appended the batch.
func (v View) LeaderEpoch() kafka.Epoch { return kafka.Epoch(v.i32(atLeaderEpoch)) }

// Magic is the format's version, 2.
func (v View) Magic() int8 { return int8(v[atMagic]) }

// CRC is the checksum that the header states.
func (v View) CRC() uint32 { return binary.BigEndian.Uint32(v[atCRC:]) }

// CRCOK says whether the stated checksum is right.
func (v View) CRCOK() bool { return v.CRC() == v.sum() }

// Attributes are the header's bits.
func (v View) Attributes() int16 { return int16(binary.BigEndian.Uint16(v[atAttributes:])) }

// Codec is how the records are compressed. It may be unknown in bytes from
// outside; Codec.Known tells.
func (v View) Codec() Codec { return Codec(v[atAttributes+1] & attrCodec) }

// AppendTime says that every record has MaxTimestamp as its time, set by a
// broker, rather than its own.
func (v View) AppendTime() bool { return v[atAttributes+1]&attrAppendTime != 0 }

// Transactional says that the batch belongs to a transaction.
func (v View) Transactional() bool { return v[atAttributes+1]&attrTransactional != 0 }

// Control says that the batch holds a control record, see Marker.
func (v View) Control() bool { return v[atAttributes+1]&attrControl != 0 }

// LastOffsetDelta is last minus base offset.
func (v View) LastOffsetDelta() int32 { return v.i32(atLastDelta) }

// LastOffset is the offset of the batch's last record as it was produced.
func (v View) LastOffset() kafka.Offset {
	return v.BaseOffset() + kafka.Offset(v.LastOffsetDelta())
}

// BaseTimestamp is what the records' timestamp deltas count from, in ms.
func (v View) BaseTimestamp() int64 { return v.i64(atBaseTimestamp) }

// MaxTimestamp is the latest timestamp of the records, in ms.
func (v View) MaxTimestamp() int64 { return v.i64(atMaxTimestamp) }

// ProducerID is the producer's id, kafka.NoProducer if it is not idempotent.
func (v View) ProducerID() kafka.ProducerID { return kafka.ProducerID(v.i64(atProducerID)) }

// HasProducer says whether the batch has a producer id.
func (v View) HasProducer() bool { return v.ProducerID() > kafka.NoProducer }

// ProducerEpoch is the producer's epoch, -1 without one.
func (v View) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(v[atProducerEpoch:])) }

// BaseSequence is the sequence of the first record, NoSequence without one.
func (v View) BaseSequence() int32 { return v.i32(atBaseSequence) }

// LastSequence is the sequence of the last record; sequences wrap from the
// largest int32 to 0.
func (v View) LastSequence() int32 {
	base := v.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, v.LastOffsetDelta())
}

// AddSequence moves a sequence on by n >= 0, wrapping from the largest int32 to 0.
func AddSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}

// Count is how many records the header says there are.
func (v View) Count() int32 { return v.i32(atCount) }

// Records is what follows the header, compressed if Codec says so.
func (v View) Records() []byte { return v[HeaderLen:] }

// DeleteHorizon is the time in ms from which compaction may drop the batch's
// tombstones and markers, if one was set (KIP-534).
func (v View) DeleteHorizon() (ms int64, ok bool) {
	if v[atAttributes+1]&attrDeleteHorizon == 0 {
		return 0, false
	}
	return v.BaseTimestamp(), true
}

// Offset is the offset of a record of this batch.
func (v View) Offset(r *Record) kafka.Offset { return v.BaseOffset() + kafka.Offset(r.OffsetDelta) }

// Timestamp is the time in ms of a record of this batch.
func (v View) Timestamp(r *Record) int64 {
	if v.AppendTime() {
		return v.MaxTimestamp()
	}
	return v.BaseTimestamp() + r.TimestampDelta
}

// Stamp writes base offset and leader epoch in place. They lie outside the CRC.
func (v View) Stamp(base kafka.Offset, epoch kafka.Epoch) {
	binary.BigEndian.PutUint64(v, uint64(base))
	binary.BigEndian.PutUint32(v[atLeaderEpoch:], uint32(epoch))
}

// SetAppendTime gives every record the time ms, in place, and renews the CRC.
func (v View) SetAppendTime(ms int64) {
	v[atAttributes+1] |= attrAppendTime
	v.put64(atMaxTimestamp, ms)
	v.seal()
}

// setCreateTime lets the records' own times stand, the latest of them being
// maxMs, and renews the CRC.
func (v View) setCreateTime(maxMs int64) {
	v[atAttributes+1] &^= attrAppendTime
	v.put64(atMaxTimestamp, maxMs)
	v.seal()
}

// String shows the header on one line, for logs and test failures.
func (v View) String() string {
	if len(v) < HeaderLen {
		return fmt.Sprintf("batch of %d bytes", len(v))
	}
	return fmt.Sprintf("batch %d-%d epoch %d count %d size %d codec %s attributes %#x time %d-%d producer %d/%d sequence %d",
		v.BaseOffset(), v.LastOffset(), v.LeaderEpoch(), v.Count(), len(v), v.Codec(), uint16(v.Attributes()),
		v.BaseTimestamp(), v.MaxTimestamp(), v.ProducerID(), v.ProducerEpoch(), v.BaseSequence())
}

func (v View) sum() uint32 { return crc32.Checksum(v[atAttributes:], castagnoli) }

// seal writes the CRC.
func (v View) seal() { binary.BigEndian.PutUint32(v[atCRC:], v.sum()) }

func (v View) i32(at int) int32         { return int32(binary.BigEndian.Uint32(v[at:])) }
func (v View) i64(at int) int64         { return int64(binary.BigEndian.Uint64(v[at:])) }
func (v View) put32(at int, n int32)    { binary.BigEndian.PutUint32(v[at:], uint32(n)) }
func (v View) put64(at int, n int64)    { binary.BigEndian.PutUint64(v[at:], uint64(n)) }
func (v View) putAttributes(bits uint8) { v[atAttributes], v[atAttributes+1] = 0, bits }
