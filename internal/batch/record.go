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
	return v.each(payload, fn)
}

// each is Each over records that are unpacked.
func (v View) each(payload []byte, fn func(r *Record) error) error {
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
	if len(d.p) > 0 && d.p[0] < 0x80 {
		b := d.p[0]
		d.p = d.p[1:]
		return int32(unzigzag(uint64(b)))
	}
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

// pass goes past a length and as many bytes and returns the length.
func (d *decoder) pass() int32 {
	n := d.varint32()
	d.skip(int(max(n, 0)))
	return n
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
	compacted     bool  // every record needs a key

	maxTimestamp int64 // out: the latest, NoTimestamp if none has any
	refused      *Invalid
}

// run walks count records in p, which they must fill. It returns what is wrong
// with their framing; what the rules refuse is in w.refused afterwards.
func (w *walk) run(p []byte, count int32) *Invalid {
	if count < 0 || int(count) > len(p)/recordMin {
		return invalid(kafka.ErrInvalidRecord, "batch states %d records in %d bytes", count, len(p))
	}
	s, fault := scan(p, count)
	if fault != nil {
		return fault
	}
	lo, hi := w.baseTimestamp+s.deltaMin, w.baseTimestamp+s.deltaMax
	w.maxTimestamp = max(hi, NoTimestamp)
	wraps := s.deltaMin < 0 && lo > w.baseTimestamp || s.deltaMax > 0 && hi < w.baseTimestamp
	if lo < w.lo || hi > w.hi || w.compacted && s.keyless || wraps {
		w.single(p, count)
	}
	return nil
}

// single looks at each record of p, which scan found well formed, for the rules.
func (w *walk) single(p []byte, count int32) {
	w.maxTimestamp = NoTimestamp
	at := 0
	for i := range count {
		end, delta, _, keyless := measure(p, at)
		at = end
		ts := w.baseTimestamp + delta
		w.maxTimestamp = max(w.maxTimestamp, ts)
		w.judge(i, ts, keyless)
	}
}

// scanned is what scan found.
type scanned struct {
	deltaMin, deltaMax int64 // of the timestamps
	keyless            bool  // some record has no key
}

// scan checks that count records fill p and are numbered from 0.
func scan(p []byte, count int32) (s scanned, fault *Invalid) {
	s.deltaMin, s.deltaMax = math.MaxInt64, math.MinInt64
	at := 0
	for i := int32(0); i < count; i++ {
		var (
			x, u, t, o, k, v uint64
			end, pos         int
			delta            int64
			keyless          bool
		)
		// Nearly all records have no headers, a key under 64 bytes, and other
		// fields of one or two bytes. They are read from two loads of 8 bytes, the
		// branches being well predicted; any other goes through measure, which
		// reads all there can be and takes ten times as long.
		if at+16 > len(p) {
			goto measured
		}
		x = binary.LittleEndian.Uint64(p[at:])
		if u = x & 0x7f; x&0x80 == 0 {
			pos = at + 2
			x >>= 16
		} else {
			if x&0x8000 != 0 {
				goto measured
			}
			u |= x >> 1 & 0x3f80
			pos = at + 3
			x >>= 24
		}
		// Past the length and the attributes; at least 5 bytes are left in x.
		end = pos - 1 + int(u>>1)
		if t = x & 0x7f; x&0x80 == 0 {
			pos++
			x >>= 8
		} else {
			if x&0x8000 != 0 {
				goto measured
			}
			t |= x >> 1 & 0x3f80
			pos += 2
			x >>= 16
		}
		if o = x & 0x7f; x&0x80 == 0 {
			pos++
			x >>= 8
		} else {
			if x&0x8000 != 0 {
				goto measured
			}
			o |= x >> 1 & 0x3f80
			pos += 2
			x >>= 16
		}
		if k = x & 0xff; k&0x80 != 0 {
			goto measured
		}
		pos++
		if keyless = k&1 != 0; !keyless {
			pos += int(k >> 1)
		}
		if pos+8 > len(p) {
			goto measured
		}
		x = binary.LittleEndian.Uint64(p[pos:])
		if v = x & 0x7f; x&0x80 == 0 {
			pos++
		} else {
			if x&0x8000 != 0 {
				goto measured
			}
			v |= x >> 1 & 0x3f80
			pos += 2
		}
		if v&1 == 0 {
			pos += int(v >> 1)
		}
		if u&1 != 0 || o != uint64(i)<<1 || pos >= len(p) || p[pos] != 0 || pos+1 != end {
			goto measured
		}
		delta = unzigzag(t)
		goto judged

	measured:
		end, delta, o, keyless = measure(p, at)
		if end < 0 {
			return s, invalid(kafka.ErrInvalidRecord, "record %d is malformed: its lengths do not add up", i)
		}
		if o != uint64(i)<<1 {
			return s, invalid(kafka.ErrInvalidRecord, "record %d has offset delta %d", i, unzigzag(o))
		}

	judged:
		at = end
		s.deltaMin = min(s.deltaMin, delta)
		s.deltaMax = max(s.deltaMax, delta)
		s.keyless = s.keyless || keyless
	}
	if at < len(p) {
		return s, invalid(kafka.ErrInvalidRecord, "%d bytes follow the batch's %d records", len(p)-at, count)
	}
	return s, nil
}

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// measure reads the record at p[at:] and returns where it ends, or -1 if it is
// malformed. offset is the delta as it stands, zig-zag.
func measure(p []byte, at int) (end int, delta int64, offset uint64, keyless bool) {
	d := decoder{p: p[at:]}
	n := d.varint32()
	if d.bad || n < recordMin-1 || int(n) > len(d.p) {
		return -1, 0, 0, false
	}
	end = len(p) - len(d.p) + int(n)
	d.p = d.p[:n]
	d.skip(1)
	delta = d.varint()
	offset = zigzag(int64(d.varint32()))
	keyless = d.pass() < 0
	d.pass()
	headers := d.varint32()
	if d.bad || headers < 0 || int(headers) > len(d.p)/2 {
		return -1, 0, 0, false
	}
	for range headers {
		if d.pass() < 0 {
			return -1, 0, 0, false
		}
		d.pass()
	}
	if d.bad || len(d.p) != 0 {
		return -1, 0, 0, false
	}
	return end, delta, offset, keyless
}

// judge refuses a record without key where one is needed, or with a time that is
// not allowed.
func (w *walk) judge(i int32, ts int64, keyless bool) {
	switch {
	case w.compacted && keyless:
		w.refuse(kafka.ErrInvalidRecord, i, textNoKey)
	case (ts < w.lo || ts > w.hi) && ts != NoTimestamp:
		w.refuse(kafka.ErrInvalidTimestamp, i,
			fmt.Sprintf("timestamp %d is outside what the topic allows now, %d to %d", ts, w.lo, w.hi))
	}
}

// What record errors say.
const (
	textNoKey      = "a record of a compacted topic needs a key"
	textAppendTime = "append time is the broker's to set"
)

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

// varint reads one of up to 64 bits; n <= 0 when it is cut or longer.
func varint(p []byte) (v int64, n int) {
	u, n := binary.Uvarint(p)
	return unzigzag(u), n
}

// varint32 reads one of up to 32 bits in at most 5 bytes, which is as far as
// Kafka's own readers go; n <= 0 when it is cut or longer.
func varint32(p []byte) (v int64, n int) {
	if len(p) > 1 && p[0] >= 0x80 && p[1] < 0x80 {
		return unzigzag(uint64(p[0]&0x7f) | uint64(p[1])<<7), 2
	}
	u, n := binary.Uvarint(p)
	if n > 5 || u > math.MaxUint32 {
		return 0, 0
	}
	return unzigzag(u), n
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
	for u := zigzag(v); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// countMax is the most records one batch can state.
const countMax = math.MaxInt32
