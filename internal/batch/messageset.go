package batch

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/weirmq/weir/internal/kafka"
)

// Layout of a message in the formats 0 and 1, which have no batches but sets of
// messages one behind the other (KIP-31, KIP-32):
//
//	 0  offset      int64   in a wrapper of format 1 relative to the set's first
//	 8  size        int32   of what follows
//	12  CRC-32      uint32  IEEE, of everything from 16 on
//	16  magic       int8
//	17  attributes  int8    bits 0-2 codec, 3 append time (format 1)
//	18  timestamp   int64   format 1 only
//	    key, value          int32 length each, negative: null
//
// A message with a codec is a wrapper: its value is a packed set of messages of
// the same format, which may not be wrappers themselves. A wrapper's offset is
// that of its last message.
const (
	messageHead = 18
	messageMin0 = messageHead + 8
	messageMin1 = messageMin0 + 8
	messageCRC  = 12
)

// message is one message of a set; it aliases the set.
type message struct {
	magic      int8
	codec      Codec
	appendTime bool
	timestamp  int64
	key, value []byte
}

// UpConvert checks what a producer sent for one partition with Produce v0 to v2
// and makes one batch of it: all messages of the set in order, with new offsets,
// compressed as the first wrapper was or as Rules.Target says. Messages of
// format 0 have no time. A batch of format 2 is taken as by Validate. The error
// is always an *Invalid.
func UpConvert(messageSet []byte, r *Rules) (Checked, error) {
	if magicOf(messageSet) == 2 {
		return Validate(messageSet, r)
	}
	lo, hi := r.span()
	c := converter{rules: r, w: walk{lo: lo, hi: hi, compacted: r.Compacted, maxTimestamp: NoTimestamp}, b: NewBuilder(Plain(NoCodec)), codec: NoCodec}
	if fault := c.outer(messageSet); fault != nil {
		return Checked{}, fault
	}
	if fault := c.w.verdict(); fault != nil {
		return Checked{}, fault
	}
	if r.Target != TargetProducer {
		c.codec = r.Target
	}
	out := Checked{MaxTimestamp: c.w.maxTimestamp, Count: c.b.count, AppendTimeMs: -1}
	c.b.opts.Codec, c.b.opts.Level = c.codec, r.level(c.codec)
	if r.AppendTime {
		out.MaxTimestamp, out.AppendTimeMs = r.NowMs, r.NowMs
		c.b.opts.AppendTime, c.b.opts.NowMs = true, r.NowMs
	}
	out.Batch = c.b.Bytes()
	if fault := checkSize(len(out.Batch), r); fault != nil {
		return Checked{}, fault
	}
	return out, nil
}

// converter gathers the messages of a set.
type converter struct {
	rules *Rules
	w     walk // only for its limits and what it refused
	b     *Builder
	codec Codec // of the first wrapper
	spent int   // bytes that wrappers unpacked to so far
}

// outer takes the set as it was sent.
func (c *converter) outer(set []byte) *Invalid {
	magic := magicOf(set)
	for len(set) > 0 {
		size, fault := messageSize(set)
		if fault != nil {
			return fault
		}
		if size > len(set) {
			break // a cut message at the end is dropped, as Kafka does
		}
		if fault := checkSize(size, c.rules); fault != nil {
			return fault
		}
		m, fault := readMessage(set[:size], magic)
		if fault != nil {
			return fault
		}
		set = set[size:]
		if m.codec == NoCodec {
			c.add(&m)
			continue
		}
		if fault := c.wrapper(&m); fault != nil {
			return fault
		}
	}
	if c.b.count == 0 {
		return invalid(kafka.ErrInvalidRecord, "no whole message in the set")
	}
	return nil
}

// wrapper takes the messages inside a packed one.
func (c *converter) wrapper(m *message) *Invalid {
	if m.codec > LZ4 {
		return invalid(kafka.ErrInvalidRecord, "compression %s in a message of format %d", m.codec, m.magic)
	}
	if c.codec == NoCodec {
		c.codec = m.codec
	}
	limit := c.rules.maxDecompressed() - c.spent
	buf := getScratch()
	defer putScratch(buf)
	set, err := appendDecompressed(*buf, m.codec, m.value, limit)
	if errors.Is(err, ErrTooLarge) {
		return invalid(kafka.ErrMessageTooLarge, "message set unpacks to more than %d bytes", c.rules.maxDecompressed())
	}
	if err != nil {
		return invalid(kafka.ErrInvalidRecord, "message cannot be unpacked: %v", err)
	}
	*buf = set
	c.spent += len(set)
	if len(set) == 0 {
		return invalid(kafka.ErrInvalidRecord, "compressed message without messages in it")
	}
	for len(set) > 0 {
		size, fault := messageSize(set)
		if fault != nil {
			return fault
		}
		if size > len(set) {
			return invalid(kafka.ErrInvalidRecord, "message inside a compressed one is cut")
		}
		inner, fault := readMessage(set[:size], m.magic)
		if fault != nil {
			return fault
		}
		if inner.codec != NoCodec {
			return invalid(kafka.ErrInvalidRecord, "compressed message inside a compressed one")
		}
		if m.appendTime {
			inner.appendTime, inner.timestamp = true, m.timestamp
		}
		c.add(&inner)
		set = set[size:]
	}
	return nil
}

// add checks a message against the rules and adds it to the batch.
func (c *converter) add(m *message) {
	i := c.b.count
	if keyless := m.key == nil; m.appendTime && c.rules.AppendTime && !(c.w.compacted && keyless) {
		c.w.refuse(kafka.ErrInvalidTimestamp, i, textAppendTime)
	} else {
		c.w.judge(i, m.timestamp, keyless)
	}
	c.w.maxTimestamp = max(c.w.maxTimestamp, m.timestamp)
	c.b.Add(m.timestamp, m.key, m.value)
}

// messageSize is the size of the message that set begins with, which may be
// more than there is.
func messageSize(set []byte) (int, *Invalid) {
	if len(set) <= atMagic {
		return len(set) + 1, nil
	}
	n := int32(binary.BigEndian.Uint32(set[atLength:]))
	if n < messageMin0-lengthAfter {
		return 0, invalid(kafka.ErrCorruptMessage, "message states a size of %d", n)
	}
	return int(n) + lengthAfter, nil
}

// readMessage reads the message that fills p and has to be of format magic.
func readMessage(p []byte, magic int8) (message, *Invalid) {
	m := message{magic: int8(p[atMagic]), timestamp: NoTimestamp}
	if m.magic < 0 || m.magic > 1 {
		return m, invalid(kafka.ErrCorruptMessage, "message of unknown format %d", m.magic)
	}
	if m.magic != magic {
		return m, invalid(kafka.ErrInvalidRecord, "message of format %d in a set of format %d", m.magic, magic)
	}
	if m.magic == 1 && len(p) < messageMin1 {
		return m, invalid(kafka.ErrCorruptMessage, "message of format 1 with %d bytes", len(p))
	}
	stated := binary.BigEndian.Uint32(p[messageCRC:])
	if sum := crc32.ChecksumIEEE(p[atMagic:]); sum != stated {
		return m, invalid(kafka.ErrCorruptMessage, "message's CRC is %08x, it states %08x", sum, stated)
	}
	attributes := p[atMagic+1]
	m.codec = Codec(attributes & attrCodec)
	if !m.codec.Known() {
		return m, invalid(kafka.ErrInvalidRecord, "unknown compression %d", m.codec)
	}
	rest := p[messageHead:]
	if m.magic == 1 {
		m.appendTime = attributes&attrAppendTime != 0
		m.timestamp = int64(binary.BigEndian.Uint64(rest))
		rest = rest[8:]
	}
	var ok bool
	if m.key, rest, ok = sized(rest); ok {
		m.value, rest, ok = sized(rest)
	}
	if !ok || len(rest) != 0 {
		return m, invalid(kafka.ErrCorruptMessage, "message's key and value do not fill it")
	}
	return m, nil
}

// sized reads a length and as many bytes; a negative length is null.
func sized(p []byte) (b, rest []byte, ok bool) {
	if len(p) < 4 {
		return nil, nil, false
	}
	n := int32(binary.BigEndian.Uint32(p))
	p = p[4:]
	if n < 0 {
		return nil, p, true
	}
	if int(n) > len(p) {
		return nil, nil, false
	}
	return p[:n:n], p[n:], true
}
