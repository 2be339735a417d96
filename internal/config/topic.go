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

	SegmentBytes                        int64
	SegmentMs                           int64
	SegmentJitterMs                     int64
	SegmentIndexBytes                   int
	IndexIntervalBytes                  int
	Preallocate                         bool
	FileDeleteDelayMs                   int64
	FlushMessages, FlushMs              int64 // math.MaxInt64: left to the operating system
	MaxMessageBytes                     int
	MaxDecompressedBytes                int
	Compression                         string // producer, uncompressed, gzip, snappy, lz4, zstd
	GzipLevel                           int    // -1: the codec's own default
	LZ4Level, ZstdLevel                 int
	AppendTime                          bool  // message.timestamp.type=LogAppendTime
	TimestampBeforeMaxMs                int64 // math.MaxInt64: any age
	TimestampAfterMaxMs                 int64
	MinInsyncReplicas                   int
	UncleanElection                     bool
	DeleteRetentionMs                   int64
	MinCompactionLagMs                  int64
	MaxCompactionLagMs                  int64
	MinDirtyRatio                       float64
	RemoteStorage                       bool
	RemoteCopyDisable                   bool
	RemoteDeleteOnDisable               bool
	RemoteCopyLagMs, RemoteCopyLagBytes int64
	LocalRetentionMs                    int64 // -2: as RetentionMs
	LocalRetentionBytes                 int64 // -2: as RetentionBytes
	LeaderThrottledReplicas             []string
	FollowerThrottledReplicas           []string
	DeadLetterQueue                     bool
}

// Topic is the configuration of a topic with these overrides. Overrides that do
// not pass their check, or that nothing knows, are left out.
func (v *View) Topic(overrides map[string]string) TopicConfig {
	t := v.topic
	for name, raw := range overrides {
		if k := topicIndex[name]; k != nil {
			if val, err := k.parse(raw); err == nil {
				topicFields[name](&t, val)
			}
		}
	}
	if raw, ok := overrides["internal.segment.bytes"]; ok { // stronger, and maps have no order
		if val, err := topicIndex["internal.segment.bytes"].parse(raw); err == nil {
			t.SegmentBytes = val.n
		}
	}
	return t
}

// topicFields say where in a TopicConfig a topic key's value belongs.
var topicFields = map[string]func(t *TopicConfig, v value){
	"cleanup.policy": func(t *TopicConfig, v value) {
		t.CleanupDelete, t.CleanupCompact = slices.Contains(v.list, "delete"), slices.Contains(v.list, "compact")
	},
	"retention.ms":                            func(t *TopicConfig, v value) { t.RetentionMs = max(v.n, -1) },
	"retention.bytes":                         func(t *TopicConfig, v value) { t.RetentionBytes = max(v.n, -1) },
	"segment.bytes":                           func(t *TopicConfig, v value) { t.SegmentBytes = v.n },
	"internal.segment.bytes":                  func(t *TopicConfig, v value) {}, // see Topic
	"segment.ms":                              func(t *TopicConfig, v value) { t.SegmentMs = v.n },
	"segment.jitter.ms":                       func(t *TopicConfig, v value) { t.SegmentJitterMs = v.n },
	"segment.index.bytes":                     func(t *TopicConfig, v value) { t.SegmentIndexBytes = int(v.n) },
	"index.interval.bytes":                    func(t *TopicConfig, v value) { t.IndexIntervalBytes = int(v.n) },
	"preallocate":                             func(t *TopicConfig, v value) { t.Preallocate = v.n == 1 },
	"file.delete.delay.ms":                    func(t *TopicConfig, v value) { t.FileDeleteDelayMs = v.n },
	"flush.messages":                          func(t *TopicConfig, v value) { t.FlushMessages = v.n },
	"flush.ms":                                func(t *TopicConfig, v value) { t.FlushMs = v.n },
	"max.message.bytes":                       func(t *TopicConfig, v value) { t.MaxMessageBytes = int(v.n) },
	"max.decompressed.message.bytes":          func(t *TopicConfig, v value) { t.MaxDecompressedBytes = int(v.n) },
	"compression.type":                        func(t *TopicConfig, v value) { t.Compression = v.raw },
	"compression.gzip.level":                  func(t *TopicConfig, v value) { t.GzipLevel = int(v.n) },
	"compression.lz4.level":                   func(t *TopicConfig, v value) { t.LZ4Level = int(v.n) },
	"compression.zstd.level":                  func(t *TopicConfig, v value) { t.ZstdLevel = int(v.n) },
	"message.timestamp.type":                  func(t *TopicConfig, v value) { t.AppendTime = v.raw == "LogAppendTime" },
	"message.timestamp.before.max.ms":         func(t *TopicConfig, v value) { t.TimestampBeforeMaxMs = v.n },
	"message.timestamp.after.max.ms":          func(t *TopicConfig, v value) { t.TimestampAfterMaxMs = v.n },
	"min.insync.replicas":                     func(t *TopicConfig, v value) { t.MinInsyncReplicas = int(v.n) },
	"unclean.leader.election.enable":          func(t *TopicConfig, v value) { t.UncleanElection = v.n == 1 },
	"delete.retention.ms":                     func(t *TopicConfig, v value) { t.DeleteRetentionMs = v.n },
	"min.compaction.lag.ms":                   func(t *TopicConfig, v value) { t.MinCompactionLagMs = v.n },
	"max.compaction.lag.ms":                   func(t *TopicConfig, v value) { t.MaxCompactionLagMs = v.n },
	"min.cleanable.dirty.ratio":               func(t *TopicConfig, v value) { t.MinDirtyRatio = v.f },
	"remote.storage.enable":                   func(t *TopicConfig, v value) { t.RemoteStorage = v.n == 1 },
	"remote.log.copy.disable":                 func(t *TopicConfig, v value) { t.RemoteCopyDisable = v.n == 1 },
	"remote.log.delete.on.disable":            func(t *TopicConfig, v value) { t.RemoteDeleteOnDisable = v.n == 1 },
	"remote.copy.lag.ms":                      func(t *TopicConfig, v value) { t.RemoteCopyLagMs = v.n },
	"remote.copy.lag.bytes":                   func(t *TopicConfig, v value) { t.RemoteCopyLagBytes = v.n },
	"local.retention.ms":                      func(t *TopicConfig, v value) { t.LocalRetentionMs = v.n },
	"local.retention.bytes":                   func(t *TopicConfig, v value) { t.LocalRetentionBytes = v.n },
	"leader.replication.throttled.replicas":   func(t *TopicConfig, v value) { t.LeaderThrottledReplicas = v.list },
	"follower.replication.throttled.replicas": func(t *TopicConfig, v value) { t.FollowerThrottledReplicas = v.list },
	"errors.deadletterqueue.group.enable":     func(t *TopicConfig, v value) { t.DeadLetterQueue = v.n == 1 },
}

// topicBase is a topic without overrides.
func (v *View) topicBase() (t TopicConfig) {
	for _, k := range topicKeys {
		topicFields[k.Name](&t, v.topics[k.index])
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
	return k.def
}

// TopicDefault is what a topic gets for a key it does not set, as text; ok is
// false for a key nothing knows and for one without a value.
func (v *View) TopicDefault(key string) (text string, ok bool) {
	k := topicIndex[key]
	if k == nil || v.topics[k.index].null {
		return "", false
	}
	return v.topics[k.index].raw, true
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
