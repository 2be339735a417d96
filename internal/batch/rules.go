package batch

import (
	"fmt"
	"math"

	"github.com/weirmq/weir/internal/kafka"
)

// TargetProducer as Rules.Target keeps the producer's codec
// (compression.type=producer).
const TargetProducer Codec = -1

// DefaultMaxDecompressed bounds what one batch may unpack to where
// Rules.MaxDecompressed is 0. A thousandfold of the default max.message.bytes
// is allowed to honest batches of zeros, a bomb is not.
const DefaultMaxDecompressed = 256 << 20

// Rules are the settings of the topic and the time, as far as they concern what
// a producer may send. They are read only; one value may serve many calls.
type Rules struct {
	NowMs                   int64
	AppendTime              bool  // message.timestamp.type=LogAppendTime
	BeforeMaxMs, AfterMaxMs int64 // how far from NowMs a record's time may be; math.MaxInt64: any. Not looked at with AppendTime
	MaxBytes                int   // of the stored batch with its header; 0: no limit
	Compacted               bool  // every record needs a key
	Target                  Codec // what to store; TargetProducer: as sent
	GzipLevel               int   // 0: the codec's own default, here and below
	LZ4Level                int
	ZstdLevel               int
	MaxDecompressed         int  // bytes; 0: DefaultMaxDecompressed
	NoZstd                  bool // the request's version does not know zstd yet (Produce before 7, KIP-110)
}

// NewRules returns Kafka's defaults for a topic: create time, at most an hour
// ahead (log.message.timestamp.after.max.ms), 1048588 bytes, the producer's codec.
func NewRules(nowMs int64) Rules {
	return Rules{NowMs: nowMs, BeforeMaxMs: math.MaxInt64, AfterMaxMs: 3600000, MaxBytes: 1048588, Target: TargetProducer}
}

func (r *Rules) maxDecompressed() int {
	if r.MaxDecompressed > 0 {
		return r.MaxDecompressed
	}
	return DefaultMaxDecompressed
}

func (r *Rules) level(c Codec) int {
	switch c {
	case Gzip:
		return r.GzipLevel
	case LZ4:
		return r.LZ4Level
	case Zstd:
		return r.ZstdLevel
	}
	return 0
}

// span returns the earliest and the latest time a record may have.
func (r *Rules) span() (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	if r.AppendTime {
		return lo, hi
	}
	if r.BeforeMaxMs != math.MaxInt64 {
		lo = r.NowMs - r.BeforeMaxMs
	}
	if r.AfterMaxMs <= math.MaxInt64-r.NowMs {
		hi = r.NowMs + r.AfterMaxMs
	}
	return lo, hi
}

// RecordError names one record that was refused (KIP-467).
type RecordError struct {
	Index   int32 // in the batch, from 0
	Message string
}

// recordErrorsMax bounds the records that one Invalid names. A client needs the
// first few; a batch can hold millions.
const recordErrorsMax = 1000

// Invalid is the error of Validate and UpConvert, always as *Invalid: what to
// answer for the partition. Nothing of the batch may be appended.
type Invalid struct {
	Code    kafka.Error
	Message string
	Records []RecordError // for Produce v8 and up
}

func (e *Invalid) Error() string { return e.Message }

func invalid(code kafka.Error, format string, args ...any) *Invalid {
	return &Invalid{Code: code, Message: fmt.Sprintf(format, args...)}
}
