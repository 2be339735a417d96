package batch

import (
	"errors"

	"github.com/weirmq/weir/internal/kafka"
)

// Checked is what Validate and UpConvert found good.
type Checked struct {
	Batch        View  // the caller's bytes, or new ones when packed anew or converted
	MaxTimestamp int64 // ms
	Count        int32
	AppendTimeMs int64 // for the response; -1 on topics of create time
}

// Validate checks what a producer sent for one partition with Produce v3 and up:
// exactly one batch of magic 2. On success the batch is ready for the log save
// for base offset and epoch; it may have been changed in place (append time, or a
// maximum timestamp that the producer had wrong) or replaced (other codec). The
// error is always an *Invalid.
//
// Bytes after the batch that cannot be a whole batch are dropped, as Kafka does.
func Validate(records []byte, r *Rules) (Checked, error) {
	v, fault := single(records)
	if fault != nil {
		return Checked{}, fault
	}
	if fault = checkHeader(v, r); fault != nil {
		return Checked{}, fault
	}

	lo, hi := r.span()
	w := walk{baseTimestamp: v.BaseTimestamp(), lo: lo, hi: hi, compacted: r.Compacted}
	payload := v.Records()
	source, target := v.Codec(), r.Target
	if target == TargetProducer {
		target = source
	}
	if source != NoCodec {
		buf := getScratch()
		defer putScratch(buf)
		out, err := appendDecompressed(*buf, source, payload, r.maxDecompressed())
		if errors.Is(err, ErrTooLarge) {
			return Checked{}, invalid(kafka.ErrMessageTooLarge, "batch unpacks to more than %d bytes", r.maxDecompressed())
		}
		if err == nil && source == LZ4 {
			err = lz4Foreign(payload)
		}
		if err != nil {
			return Checked{}, invalid(kafka.ErrInvalidRecord, "records cannot be unpacked: %v", err)
		}
		*buf, payload = out, out
	}
	if fault = w.run(payload, v.Count()); fault != nil {
		return Checked{}, fault
	}
	if fault = w.verdict(); fault != nil {
		return Checked{}, fault
	}

	changed := false
	if target != source {
		packed, err := appendCompressed(make([]byte, HeaderLen, HeaderLen+packedGuess(target, len(payload))), target, r.level(target), payload)
		if err != nil {
			return Checked{}, invalid(kafka.ErrUnknownServerError, "records cannot be packed: %v", err)
		}
		copy(packed, v[:HeaderLen])
		v = packed
		v.put32(atLength, int32(len(v)-lengthAfter))
		v[atAttributes+1] = v[atAttributes+1]&^attrCodec | byte(target)
		changed = true
		if fault = checkSize(len(v), r); fault != nil {
			return Checked{}, fault
		}
	}
	c := Checked{Batch: v, MaxTimestamp: w.maxTimestamp, Count: v.Count(), AppendTimeMs: -1}
	switch {
	case r.AppendTime:
		c.MaxTimestamp, c.AppendTimeMs = r.NowMs, r.NowMs
		v.SetAppendTime(r.NowMs)
	case changed || v.AppendTime() || v.MaxTimestamp() != w.maxTimestamp:
		v.setCreateTime(w.maxTimestamp)
	}
	return c, nil
}

// packedGuess is the room to make for n bytes packed with c.
func packedGuess(c Codec, n int) int {
	if c == NoCodec {
		return n
	}
	return n/2 + 64
}

// single cuts the one batch off what a Produce request has for a partition.
func single(records []byte) (View, *Invalid) {
	v, rest, err := Next(records)
	switch {
	case errors.Is(err, ErrShort):
		return nil, invalid(kafka.ErrInvalidRecord, "no whole batch in %d bytes", len(records))
	case errors.Is(err, ErrMagic) && records[atMagic] < 2:
		return nil, invalid(kafka.ErrInvalidRecord, "message set of format %d in a request that carries batches of format 2", records[atMagic])
	case err != nil:
		return nil, invalid(kafka.ErrCorruptMessage, "%v", err)
	}
	if len(rest) >= lengthAfter {
		switch _, _, err = Next(rest); {
		case errors.Is(err, ErrShort):
		case errors.Is(err, ErrCorrupt):
			return nil, invalid(kafka.ErrCorruptMessage, "after the first batch: %v", err)
		default:
			return nil, invalid(kafka.ErrInvalidRecord, "more than one batch for the partition")
		}
	}
	return v, nil
}

// checkHeader checks all that the header alone tells, and the CRC.
func checkHeader(v View, r *Rules) *Invalid {
	if base := v.BaseOffset(); base != 0 {
		return invalid(kafka.ErrInvalidRecord, "base offset is %d, a producer has to send 0", base)
	}
	if fault := checkSize(len(v), r); fault != nil {
		return fault
	}
	if !v.CRCOK() {
		return invalid(kafka.ErrCorruptMessage, "CRC is %08x, the batch states %08x", v.sum(), v.CRC())
	}
	codec := v.Codec()
	if !codec.Known() {
		return invalid(kafka.ErrInvalidRecord, "unknown compression %d", codec)
	}
	if codec == Zstd && r.NoZstd {
		return invalid(kafka.ErrUnsupportedCompressionType, "zstd needs Produce version 7 or later")
	}
	count, last := v.Count(), v.LastOffsetDelta()
	if count <= 0 || last < 0 || last != count-1 {
		return invalid(kafka.ErrInvalidRecord, "batch states %d records and last offset delta %d", count, last)
	}
	if v.Control() {
		return invalid(kafka.ErrInvalidRecord, "clients may not write control records")
	}
	if v.HasProducer() && v.BaseSequence() < 0 {
		return invalid(kafka.ErrInvalidRecord, "base sequence %d in a batch of producer %d", v.BaseSequence(), v.ProducerID())
	}
	if v.Transactional() && !v.HasProducer() {
		return invalid(kafka.ErrInvalidRecord, "transactional batch without a producer id")
	}
	if v.AppendTime() && r.AppendTime {
		// On topics of create time Kafka takes such a batch and clears the bit.
		return invalid(kafka.ErrInvalidTimestamp, textAppendTime)
	}
	return nil
}

func checkSize(size int, r *Rules) *Invalid {
	if r.MaxBytes > 0 && size > r.MaxBytes {
		return invalid(kafka.ErrMessageTooLarge, "batch of %d bytes, the topic's limit is %d", size, r.MaxBytes)
	}
	return nil
}

// magicOf is the format of the first batch or message in records, -1 if they
// are too short to tell. It stands at the same place in every format.
func magicOf(records []byte) int8 {
	if len(records) <= atMagic {
		return -1
	}
	return int8(records[atMagic])
}
