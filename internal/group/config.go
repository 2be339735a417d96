package group

import "math"

// Config bounds a shard. A zero field is Kafka's default.
type Config struct {
	MinSessionMs int32 // group.min.session.timeout.ms, 6000
	MaxSessionMs int32 // group.max.session.timeout.ms, 1800000
	MaxSize      int   // group.max.size, no bound

	// InitialRebalanceDelayMs is group.initial.rebalance.delay.ms, 3000.
	// Negative stands for no delay, because zero is the default.
	InitialRebalanceDelayMs int32

	OffsetsRetentionMs     int64 // offsets.retention.minutes as ms, 7 days
	RetentionCheckMs       int64 // offsets.retention.check.interval.ms, 10 min
	OffsetMetadataMaxBytes int   // offset.metadata.max.bytes, 4096; at most 32767

	// RecordsBytesMax bounds what one request may write: a commit beyond it
	// is answered INVALID_COMMIT_OFFSET_SIZE, an assignment UNKNOWN_SERVER_ERROR,
	// as Kafka answers when the batch passes max.message.bytes of
	// __consumer_offsets. 1048576.
	RecordsBytesMax int
}

func (c Config) withDefaults() Config {
	def := func(v *int32, d int32) {
		if *v == 0 {
			*v = d
		}
	}
	def64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	defInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MinSessionMs, 6000)
	def(&c.MaxSessionMs, 1800000)
	defInt(&c.MaxSize, math.MaxInt32)
	def(&c.InitialRebalanceDelayMs, 3000)
	c.InitialRebalanceDelayMs = max(c.InitialRebalanceDelayMs, 0)
	def64(&c.OffsetsRetentionMs, 7*24*60*60*1000)
	def64(&c.RetentionCheckMs, 10*60*1000)
	defInt(&c.OffsetMetadataMaxBytes, 4096)
	c.OffsetMetadataMaxBytes = min(c.OffsetMetadataMaxBytes, math.MaxInt16)
	defInt(&c.RecordsBytesMax, 1<<20)
	return c
}

// newMemberJoinMs is how long a new member may wait in a join phase without
// its connection showing life; Kafka fixes it at five minutes.
const newMemberJoinMs = 5 * 60 * 1000
