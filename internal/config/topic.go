package config

import (
	"math"
	"slices"
	"strconv"
)

// TopicConfig is a topic's settings with every default filled in. Times are
// milliseconds, sizes bytes.
type TopicConfig struct {
	CleanupDelete, CleanupCompact bool
	RetentionMs, RetentionBytes   int64 // -1: without limit

	SegmentBytes             int64
	SegmentMs                int64
	SegmentJitterMs          int64
	SegmentIndexBytes        int
	IndexIntervalBytes       int
	Preallocate              bool
	FileDeleteDelayMs        int64
	FlushMessages, FlushMs   int64 // math.MaxInt64: left to the operating system
	MaxMessageBytes          int
	MaxDecompressedBytes     int
	Compression              string // producer, uncompressed, gzip, snappy, lz4, zstd
	GzipLevel                int    // -1: the codec's own default
	LZ4Level, ZstdLevel      int
	AppendTime               bool  // message.timestamp.type=LogAppendTime
	TimestampBeforeMaxMs     int64 // math.MaxInt64: any age
	TimestampAfterMaxMs      int64
	MinInsyncReplicas        int
	UncleanElection          bool
	DeleteRetentionMs        int64
	MinCompactionLagMs       int64
	MaxCompactionLagMs       int64
	MinDirtyRatio            float64
	RemoteStorage            bool
	LocalRetentionMs         int64 // -2: as RetentionMs
	LocalRetentionBytes      int64
	LeaderThrottledReplicas  []string
	FollowerThrottledReplica []string
}

// Topic is the configuration of a topic with these overrides. Overrides that do
// not pass their check, or that nothing knows, are left out.
func (v *View) Topic(overrides map[string]string) TopicConfig {
	if len(overrides) == 0 {
		return v.topic
	}
	return v.resolveTopic(overrides)
}

func (v *View) resolveTopic(overrides map[string]string) TopicConfig {
	get := func(name string) value {
		k := topicIndex[name]
		if raw, ok := overrides[name]; ok {
			if val, err := k.parse(raw); err == nil {
				return val
			}
		}
		return v.topicDefault(k)
	}
	long := func(name string) int64 { return get(name).n }
	num := func(name string) int { return int(get(name).n) }
	bool := func(name string) bool { return get(name).n == 1 }
	t := TopicConfig{
		RetentionMs:              max(long("retention.ms"), -1),
		RetentionBytes:           max(long("retention.bytes"), -1),
		SegmentBytes:             long("segment.bytes"),
		SegmentMs:                long("segment.ms"),
		SegmentJitterMs:          long("segment.jitter.ms"),
		SegmentIndexBytes:        num("segment.index.bytes"),
		IndexIntervalBytes:       num("index.interval.bytes"),
		Preallocate:              bool("preallocate"),
		FileDeleteDelayMs:        long("file.delete.delay.ms"),
		FlushMessages:            long("flush.messages"),
		FlushMs:                  long("flush.ms"),
		MaxMessageBytes:          num("max.message.bytes"),
		MaxDecompressedBytes:     num("max.decompressed.message.bytes"),
		Compression:              get("compression.type").raw,
		GzipLevel:                num("compression.gzip.level"),
		LZ4Level:                 num("compression.lz4.level"),
		ZstdLevel:                num("compression.zstd.level"),
		AppendTime:               get("message.timestamp.type").raw == "LogAppendTime",
		TimestampBeforeMaxMs:     long("message.timestamp.before.max.ms"),
		TimestampAfterMaxMs:      long("message.timestamp.after.max.ms"),
		MinInsyncReplicas:        num("min.insync.replicas"),
		UncleanElection:          bool("unclean.leader.election.enable"),
		DeleteRetentionMs:        long("delete.retention.ms"),
		MinCompactionLagMs:       long("min.compaction.lag.ms"),
		MaxCompactionLagMs:       long("max.compaction.lag.ms"),
		MinDirtyRatio:            get("min.cleanable.dirty.ratio").f,
		RemoteStorage:            bool("remote.storage.enable"),
		LocalRetentionMs:         long("local.retention.ms"),
		LocalRetentionBytes:      long("local.retention.bytes"),
		LeaderThrottledReplicas:  get("leader.replication.throttled.replicas").list,
		FollowerThrottledReplica: get("follower.replication.throttled.replicas").list,
	}
	policy := get("cleanup.policy").list
	t.CleanupDelete, t.CleanupCompact = slices.Contains(policy, "delete"), slices.Contains(policy, "compact")
	if b := get("internal.segment.bytes"); !b.null {
		t.SegmentBytes = b.n
	}
	return t
}

// topicDefault is what a topic gets without an override: the first of the broker
// keys behind it that has a value, converted to the topic key's unit.
func (v *View) topicDefault(k *Key) value {
	for _, syn := range topicSynonyms[k.Name] {
		val := v.values[mustKey(syn.name).index]
		if val.null {
			continue
		}
		if syn.times > 0 {
			val.n = times(val.n, syn.times)
			val.raw = strconv.FormatInt(val.n, 10)
		}
		return val
	}
	return k.defaultValue()
}

// times multiplies and stops at the ends of int64.
func times(n, by int64) int64 {
	switch {
	case n > math.MaxInt64/by:
		return math.MaxInt64
	case n < 0:
		return -1 // only "without limit" is negative
	}
	return n * by
}
