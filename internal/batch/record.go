package batch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/weirmq/weir/internal/kafka"
)

// Record is one record of a batch, with its deltas as stored; View.Offset and
// View.Timestamp make numbers of them.
type Record struct {
	OffsetDelta    int32
	TimestampDelta int64
	Key, Value     []byte // nil: null, which is not the same as empty
	Headers        []Header
}

// Header is a record's header. Names may repeat; order is kept.
type Header struct {
	Key   string
	Value []byte // nil: null
}

// recordMin is the smallest record: length, attributes, two deltas, null key,
// null value, no headers, one byte each.
const recordMin = 7

// Each calls fn for every record, in order, and ends with fn's first error. The
// Record and its Headers slice are valid only during the call; Key, Value and
// header values alias the batch when it is not compressed and are otherwise
// valid only during the call too. Compressed records are unpacked first, up to
// DefaultMaxDecompressed. Malformed records give an error that wraps
// ErrCorrupt, after fn saw those before them; offset deltas must rise but, as
// compaction leaves gaps, need not be contiguous.
func (v View) Each(fn func(r *Record) error) error {
	payload := v.Records()
	if c := v.Codec(); c != NoCodec {
		buf := getScratch()
		defer putScratch(buf)
		out, err := appendDecompressed(*buf, c, payload, DefaultMaxDecompressed)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		*buf, payload = out, out
	}
	count := v.Count()
	if count < 0 || int(count) > len(payload)/recordMin {
		return fmt.Errorf("%w: %d records in %d bytes", ErrCorrupt, count, len(payload))
	}
	var r Record
	last := int32(-1)
	for i := range count {
		rest, why := r.read(payload)
		if why != "" {
			return fmt.Errorf("%w: record %d: %s", ErrCorrupt, i, why)
		}
		if r.OffsetDelta <= last {
			return fmt.Errorf("%w: record %d: offset delta %d after %d", ErrCorrupt, i, r.OffsetDelta, last)
		}
		last = r.OffsetDelta
		if err := fn(&r); err != nil {
			return err
		}
		payload = rest
	}
	if len(payload) > 0 {
		return fmt.Errorf("%w: %d bytes after the last record", ErrCorrupt, len(payload))
	}
	return nil
}

// read fills r from the record that p begins with and returns what follows, or
// what is wrong. It reuses r.Headers.
func (r *Record) read(p []byte) (rest []byte, why string) {
	d := decoder{p: p}
	n := d.varint32()
	if d.bad || n < recordMin-1 || int(n) > len(d.p) {
		return nil, fmt.Sprintf("length %d where %d bytes are left", n, len(d.p))
	}
	rest = d.p[n:]
	d.p = d.p[:n:n]
	d.skip(1) // attributes: none are defined
	r.TimestampDelta = d.varint()
	r.OffsetDelta = d.varint32()
	r.Key = d.bytes()
	r.Value = d.bytes()
	headers := d.varint32()
	if d.bad || headers < 0 || int(headers) > len(d.p)/2 {
		return nil, "fields run past its end"
	}
	r.Headers = r.Headers[:0]
	for range headers {
		key := d.bytes()
		value := d.bytes()
		if d.bad || key == nil {
			return nil, "header without a name or past the record's end"
		}
		r.Headers = append(r.Headers, Header{Key: string(key), Value: value})
	}
	if len(d.p) != 0 {
		return nil, fmt.Sprintf("%d bytes left in it", len(d.p))
	}
	return rest, ""
}

// decoder reads a record's fields. Once bad it stays bad and returns zeros.
type decoder struct {
	p   []byte
	bad bool
}

func (d *decoder) varint() int64 {
	v, n := varint(d.p)
	return d.took(v, n)
}

func (d *decoder) varint32() int32 {
	v, n := varint32(d.p)
	return int32(d.took(v, n))
}

func (d *decoder) took(v int64, n int) int64 {
	if n <= 0 {
		d.bad, d.p = true, nil
		return 0
	}
	d.p = d.p[n:]
	return v
}

func (d *decoder) skip(n int) {
	if n > len(d.p) {
		d.bad, d.p = true, nil
		return
	}
	d.p = d.p[n:]
}

// bytes reads a length and as many bytes. Any negative length is null.
func (d *decoder) bytes() []byte {
	n := d.varint32()
	if n < 0 || d.bad {
		return nil
	}
	if int(n) > len(d.p) {
		d.bad, d.p = true, nil
		return nil
	}
	b := d.p[:n:n]
	d.p = d.p[n:]
	return b
}

// walk checks the framing of an unpacked batch's records and each record
// against the rules, without making Records. It is the hot path of Produce: it
// must not allocate unless a record is refused.
type walk struct {
	baseTimestamp int64
	lo, hi        int64 // times allowed, NoTimestamp always is
	compacted     bool

	maxTimestamp int64 // out: the latest, NoTimestamp if none has any
	refused      *Invalid
}

// run walks count records in p, which they must fill. It returns what is wrong
// with their framing; what the rules refuse is in w.refused afterwards.
func (w *walk) run(p []byte, count int32) *Invalid {
	if count < 0 || int(count) > len(p)/recordMin {
		return invalid(kafka.ErrInvalidRecord, "batch states %d records in %d bytes", count, len(p))
	}
	w.maxTimestamp = NoTimestamp
	for i := range count {
		// Each field: one byte in nearly all records, so that case is written
		// out and the general one is a call.
		if len(p) == 0 {
			return malformed(i)
		}
		length, n := int64(p[0]>>1)^-int64(p[0]&1), 1
		if p[0] >= 0x80 {
			length, n = varint32(p)
		}
		if n <= 0 || length < recordMin-1 || length > int64(len(p)-n) {
			return malformed(i)
		}
		r := p[n : n+int(length)]
		p = p[n+int(length):]

		at := 1 // past the attributes
		b := r[at]
		delta := int64(b>>1) ^ -int64(b&1)
		if b < 0x80 {
			at++
		} else {
			if delta, n = varint(r[at:]); n <= 0 {
				return malformed(i)
			}
			at += n
		}
		if at >= len(r) {
			return malformed(i)
		}
		b = r[at]
		offset := int64(b>>1) ^ -int64(b&1)
		if b < 0x80 {
			at++
		} else {
			if offset, n = varint32(r[at:]); n <= 0 {
				return malformed(i)
			}
			at += n
		}
		if offset != int64(i) {
			return invalid(kafka.ErrInvalidRecord, "record %d has offset delta %d", i, offset)
		}

		if at >= len(r) {
			return malformed(i)
		}
		b = r[at]
		key := int64(b>>1) ^ -int64(b&1)
		if b < 0x80 {
			at++
		} else {
			if key, n = varint32(r[at:]); n <= 0 {
				return malformed(i)
			}
			at += n
		}
		if key > 0 {
			if key > int64(len(r)-at) {
				return malformed(i)
			}
			at += int(key)
		}

		if at >= len(r) {
			return malformed(i)
		}
		b = r[at]
		value := int64(b>>1) ^ -int64(b&1)
		if b < 0x80 {
			at++
		} else {
			if value, n = varint32(r[at:]); n <= 0 {
				return malformed(i)
			}
			at += n
		}
		if value > 0 {
			if value > int64(len(r)-at) {
				return malformed(i)
			}
			at += int(value)
		}

		if at >= len(r) {
			return malformed(i)
		}
		if r[at] == 0 {
			at++
		} else if at = skipHeaders(r, at); at < 0 {
			return malformed(i)
		}
		if at != len(r) {
			return malformed(i)
		}

		if w.compacted && key < 0 {
			w.refuse(kafka.ErrInvalidRecord, i, textNoKey)
			continue
		}
		ts := w.baseTimestamp + delta
		if ts > w.maxTimestamp {
			w.maxTimestamp = ts
		}
		if w.untimely(ts) {
			w.refuse(kafka.ErrInvalidTimestamp, i, w.textUntimely(ts))
		}
	}
	if len(p) > 0 {
		return invalid(kafka.ErrInvalidRecord, "%d bytes follow the batch's %d records", len(p), count)
	}
	return nil
}

func (w *walk) untimely(ts int64) bool { return (ts < w.lo || ts > w.hi) && ts != NoTimestamp }

// What record errors say.
const (
	textNoKey      = "a record of a compacted topic needs a key"
	textAppendTime = "append time is the broker's to set"
)

func (w *walk) textUntimely(ts int64) string {
	return fmt.Sprintf("timestamp %d is outside what the topic allows now, %d to %d", ts, w.lo, w.hi)
}

func malformed(i int32) *Invalid {
	return invalid(kafka.ErrInvalidRecord, "record %d is malformed: its lengths do not add up", i)
}

// refuse notes a record that the rules do not allow. As in Kafka the batch's
// code is the one for timestamps if any record is refused for its timestamp.
func (w *walk) refuse(code kafka.Error, index int32, why string) {
	if w.refused == nil {
		w.refused = &Invalid{Code: code}
	}
	if code == kafka.ErrInvalidTimestamp {
		w.refused.Code = code
	}
	if len(w.refused.Records) < recordErrorsMax {
		w.refused.Records = append(w.refused.Records, RecordError{index, why})
	}
}

// verdict is what the rules refused, with its summary, or nil.
func (w *walk) verdict() *Invalid {
	e := w.refused
	if e == nil {
		return nil
	}
	first := e.Records[0]
	e.Message = fmt.Sprintf("record %d: %s", first.Index, first.Message)
	if n := len(e.Records) - 1; n > 0 {
		e.Message += fmt.Sprintf(" (and %d more records)", n)
	}
	if e.Code == kafka.ErrInvalidTimestamp {
		e.Message = "refused because of timestamps: " + e.Message
	}
	return e
}

// skipHeaders returns the position behind the header count at r[at] and the
// headers, or -1 if they are malformed.
func skipHeaders(r []byte, at int) int {
	d := decoder{p: r[at:]}
	headers := d.varint32()
	if d.bad || headers < 0 || int(headers) > len(d.p)/2 {
		return -1
	}
	for range headers {
		name := d.varint32()
		if name < 0 {
			return -1
		}
		d.skip(int(name))
		if value := d.varint32(); value > 0 {
			d.skip(int(value))
		}
		if d.bad {
			return -1
		}
	}
	return len(r) - len(d.p)
}

// varint reads one of up to 64 bits; n <= 0 when it is cut or longer.
func varint(p []byte) (v int64, n int) {
	u, n := binary.Uvarint(p)
	return int64(u>>1) ^ -int64(u&1), n
}

// varint32 reads one of up to 32 bits in at most 5 bytes, which is as far as
// Kafka's own readers go; n <= 0 when it is cut or longer.
func varint32(p []byte) (v int64, n int) {
	u, n := binary.Uvarint(p)
	if n > 5 || u > math.MaxUint32 {
		return 0, 0
	}
	return int64(u>>1) ^ -int64(u&1), n
}

// appendRecord appends a record.
func appendRecord(dst []byte, offsetDelta int32, timestampDelta int64, key, value []byte, headers []Header) []byte {
	n := 1 + varintLen(timestampDelta) + varintLen(int64(offsetDelta)) + bytesLen(key) + bytesLen(value) + varintLen(int64(len(headers)))
	for i := range headers {
		n += varintLen(int64(len(headers[i].Key))) + len(headers[i].Key) + bytesLen(headers[i].Value)
	}
	dst = binary.AppendVarint(dst, int64(n))
	dst = append(dst, 0)
	dst = binary.AppendVarint(dst, timestampDelta)
	dst = binary.AppendVarint(dst, int64(offsetDelta))
	dst = appendBytes(dst, key)
	dst = appendBytes(dst, value)
	dst = binary.AppendVarint(dst, int64(len(headers)))
	for i := range headers {
		dst = binary.AppendVarint(dst, int64(len(headers[i].Key)))
		dst = append(dst, headers[i].Key...)
		dst = appendBytes(dst, headers[i].Value)
	}
	return dst
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 1) // -1
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

func bytesLen(b []byte) int {
	if b == nil {
		return 1
	}
	return varintLen(int64(len(b))) + len(b)
}

func varintLen(v int64) int {
	n := 1
	for u := uint64(v<<1) ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// countMax is the most records one batch can state.
const countMax = math.MaxInt32
