package weir

import (
	"github.com/google/uuid"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/machine"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
)

// settings resolves a topic's configuration into the plain values that the
// storage rooms take.
func (s *Server) settings(img *metadata.Image, topic string) *partition.Settings {
	view := s.view.Load()
	t := view.Topic(img.Config(metadata.TopicConfig, topic))
	out := &partition.Settings{
		Log: commitlog.Options{
			SegmentBytes: t.SegmentBytes, SegmentMs: t.SegmentMs, SegmentJitterMs: t.SegmentJitterMs,
			IndexIntervalBytes: t.IndexIntervalBytes, IndexMaxBytes: t.SegmentIndexBytes,
			RetentionMs: t.RetentionMs, RetentionBytes: t.RetentionBytes,
			Delete: t.CleanupDelete, Compact: t.CleanupCompact, Preallocate: t.Preallocate,
			FileDeleteDelayMs: t.FileDeleteDelayMs, ProducerExpirationMs: view.Long("producer.id.expiration.ms"),
			DeleteRetentionMs: t.DeleteRetentionMs, MinCompactionLagMs: t.MinCompactionLagMs, MaxCompactionLagMs: t.MaxCompactionLagMs,
			MinDirtyRatio: t.MinDirtyRatio,
		},
		Rules: batch.Rules{
			AppendTime: t.AppendTime, BeforeMaxMs: t.TimestampBeforeMaxMs, AfterMaxMs: t.TimestampAfterMaxMs,
			MaxBytes: max(t.MaxMessageBytes, 1), Compacted: t.CleanupCompact, Target: batch.TargetProducer,
			LZ4Level: t.LZ4Level, ZstdLevel: t.ZstdLevel, MaxDecompressed: t.MaxDecompressedBytes,
		},
		MinISR: t.MinInsyncReplicas, FlushMessages: t.FlushMessages, FlushMs: t.FlushMs,
	}
	if t.GzipLevel > 0 {
		out.Rules.GzipLevel = t.GzipLevel
	}
	if t.Compression != "producer" {
		if c, err := batch.ParseCodec(t.Compression); err == nil {
			out.Rules.Target = c
		}
	}
	return out
}

// topicDefaults are what CreateTopics uses where a request says -1.
func (s *Server) topicDefaults(*metadata.Image) metadata.Defaults {
	v := s.view.Load()
	return metadata.Defaults{
		Partitions:        int32(v.Int("num.partitions")),
		ReplicationFactor: int16(v.Int("default.replication.factor")),
		TopicsUndeletable: !v.Bool("delete.topic.enable"),
	}
}

type groupMachine = machine.Machine[group.Record]

var groupCodec = partition.Codec[group.Record]{
	Add: func(b *batch.Builder, tsMs int64, r group.Record) { b.Add(tsMs, r.Key, r.Value) },
	Decode: func(key, value []byte) (group.Record, error) {
		return group.Record{Key: append([]byte(nil), key...), Value: cloneOrNil(value)}, nil
	},
}

func cloneOrNil(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// newMemberID is Kafka's form: the client id, a dash and a random UUID.
func newMemberID(clientID string) string { return clientID + "-" + uuid.NewString() }
