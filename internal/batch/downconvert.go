package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/weirmq/weir/internal/kafka"
)

// ErrZstd: the batch is packed with zstd, which the formats 0 and 1 do not have.
var ErrZstd = errors.New("batch: zstd cannot be given to clients of message formats 0 and 1")

// wrapperMax is about how much one compressed message of an old format unpacks
// to; a batch of more becomes several. Without a bound, a million tiny records
// that compress well would take five times their unpacked size here.
const wrapperMax = 1 << 20

// giveMost is about how many unpacked bytes of a compressed batch one call gives.
const giveMost = 16 << 20

var (
	// errStop ends the walk early: what comes next does not fit.
	errStop = errors.New("full")
	// errEnough ends it after a record that was given.
	errEnough = errors.New("enough")
)

// DownConvert appends to dst the records of v from offset from on, as messages of
// format magic (0 or 1), for clients that know no batches (Fetch v0 to v3). It
// returns the extended dst and the offset of the first record that it did not
// give, which is v.LastOffset()+1 when it gave all.
//
// It stops before the message that would take dst beyond limit bytes, but a
// message that comes first in an empty dst is whole whatever its size. Offsets
// are the records' own, gaps included. What the old formats have no place for is
// left out: headers, producer, and in format 0 the time; control batches
// altogether. A compressed batch becomes messages packed with the same codec, but
// lz4 becomes plain messages in format 0: the frames that Kafka's clients of that
// time want, with a wrong header checksum, other clients refuse (decision 0015).
//
// A small batch may unpack to much and be small again: limit does not bound the
// work. unpack does, in bytes, and is lowered by what was unpacked. When it is
// used up, DownConvert gives what it has; it also gives no more than about giveMost
// unpacked bytes of a compressed batch.
//
// dst and v must not overlap. Errors, with dst as it was: ErrZstd, ErrTooLarge when
// unpack was used up before the first record to give, or what wraps ErrCorrupt; the
// CRC is checked, as the client gets new ones.
func DownConvert(dst []byte, v View, magic int8, from kafka.Offset, limit int, unpack *int) ([]byte, kafka.Offset, error) {
	if magic != 0 && magic != 1 {
		panic(fmt.Sprintf("BUG: batch.DownConvert to format %d", magic))
	}
	end := v.LastOffset() + 1
	if v.Control() || v.Count() == 0 || from >= end {
		return dst, end, nil
	}
	codec := v.Codec()
	switch {
	case !v.CRCOK():
		return dst, from, fmt.Errorf("%w: CRC is %08x, the batch at %d states %08x", ErrCorrupt, v.sum(), v.BaseOffset(), v.CRC())
	case codec == Zstd:
		return dst, from, ErrZstd
	case !codec.Known():
		return dst, from, fmt.Errorf("%w: unknown compression %d", ErrCorrupt, codec)
	}
	if codec == LZ4 && magic == 0 {
		codec = NoCodec
	}
	d := downConverter{out: dst, magic: magic, limit: limit, codec: codec, next: end, appendTime: v.AppendTime(), packed: v.Codec() != NoCodec}
	if codec != NoCodec {
		d.buf = getScratch()
		defer putScratch(d.buf)
	}
	err := v.eachWithin(unpack, func(r *Record) error {
		offset := v.Offset(r)
		if offset < from {
			return nil
		}
		return d.add(offset, v.Timestamp(r), r.Key, r.Value)
	})
	switch {
	case err == nil:
		err = d.wrap()
	case errors.Is(err, errEnough), errors.Is(err, ErrTooLarge) && d.given > 0:
		d.next = d.last + 1
		err = d.wrap()
	}
	if err != nil && err != errStop {
		return dst, from, err
	}
	return d.out, d.next, nil
}

// downConverter writes messages one behind the other, or packs them.
type downConverter struct {
	out        []byte
	magic      int8
	appendTime bool
	limit      int
	codec      Codec
	next       kafka.Offset // the first offset not given
	last       kafka.Offset // given
	given      int          // bytes of messages, before they are packed
	packed     bool         // the batch is

	// The wrapper under way, when there is a codec.
	buf    *[]byte // its messages
	first  kafka.Offset
	latest int64 // of the times
}

func (d *downConverter) add(offset kafka.Offset, ts int64, key, value []byte) error {
	size := messageMin(d.magic) + len(key) + len(value)
	if d.packed && d.given > 0 && d.given+size > giveMost {
		return errEnough
	}
	if d.codec == NoCodec {
		if len(d.out) > 0 && len(d.out)+size > d.limit {
			d.next = offset
			return errStop
		}
		d.out = appendMessage(d.out, d.magic, d.attributes(NoCodec), offset, ts, key, value)
		d.last, d.given = offset, d.given+size
		return nil
	}
	if len(*d.buf) == 0 {
		d.first, d.latest = offset, NoTimestamp
	}
	inner := offset
	if d.magic > 0 {
		inner -= d.first
	}
	*d.buf = appendMessage(*d.buf, d.magic, d.attributes(NoCodec), inner, ts, key, value)
	d.last, d.latest, d.given = offset, max(d.latest, ts), d.given+size
	if len(*d.buf) < wrapperMax {
		return nil
	}
	return d.wrap()
}

// wrap packs what was gathered into one message, unless that is too much.
func (d *downConverter) wrap() error {
	if d.codec == NoCodec || len(*d.buf) == 0 {
		return nil
	}
	start := len(d.out)
	d.out = append(d.out, make([]byte, messageMin(d.magic))...)
	value := len(d.out)
	packed, err := appendCompressed(d.out, d.codec, 0, *d.buf)
	if err != nil {
		return fmt.Errorf("batch: packing again: %w", err)
	}
	d.out = packed
	if start > 0 && len(d.out) > d.limit {
		d.out, d.next = d.out[:start], d.first
		return errStop
	}
	putMessageHead(d.out[start:], d.magic, d.attributes(d.codec), d.last, d.latest)
	at := value - 8
	binary.BigEndian.PutUint32(d.out[at:], 0xffffffff) // no key
	binary.BigEndian.PutUint32(d.out[at+4:], uint32(len(d.out)-value))
	sealMessage(d.out[start:])
	*d.buf = (*d.buf)[:0]
	return nil
}

func (d *downConverter) attributes(c Codec) byte {
	if d.appendTime && d.magic > 0 {
		return byte(c) | attrAppendTime
	}
	return byte(c)
}

// messageMin is the size of a message without key and value.
func messageMin(magic int8) int {
	if magic == 0 {
		return messageMin0
	}
	return messageMin1
}

func appendMessage(dst []byte, magic int8, attributes byte, offset kafka.Offset, ts int64, key, value []byte) []byte {
	start := len(dst)
	var head [messageHead + 8]byte
	dst = append(dst, head[:messageMin(magic)-8]...)
	dst = appendSized(dst, key)
	dst = appendSized(dst, value)
	putMessageHead(dst[start:], magic, attributes, offset, ts)
	sealMessage(dst[start:])
	return dst
}

// appendSized writes a length and as many bytes; nil is null.
func appendSized(dst, b []byte) []byte {
	if b == nil {
		return binary.BigEndian.AppendUint32(dst, 0xffffffff)
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}

// putMessageHead writes all before the key, but for size and CRC. A time before
// 1970 has no place in format 1.
func putMessageHead(m []byte, magic int8, attributes byte, offset kafka.Offset, ts int64) {
	binary.BigEndian.PutUint64(m, uint64(offset))
	m[atMagic], m[atMagic+1] = byte(magic), attributes
	if magic > 0 {
		binary.BigEndian.PutUint64(m[messageHead:], uint64(max(ts, NoTimestamp)))
	}
}

// sealMessage writes size and CRC of the message that fills m.
func sealMessage(m []byte) {
	binary.BigEndian.PutUint32(m[atLength:], uint32(len(m)-lengthAfter))
	binary.BigEndian.PutUint32(m[messageCRC:], crc32.ChecksumIEEE(m[atMagic:]))
}
