package weir

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/machine"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// settings resolves a topic's configuration into the plain values that the
// storage rooms take.
func (s *Server) settings(img *metadata.Image, topic string) *partition.Settings {
	view := s.view.Load()
	t := view.Topic(img.Config(metadata.TopicConfig, topic))
	out := &partition.Settings{
		Log: commitlog.Options{
			SegmentBytes: t.SegmentBytes, SegmentMs: t.SegmentMs, SegmentJitterMs: t.SegmentJitterMs,
			IndexIntervalBytes: max(t.IndexIntervalBytes, 1), IndexMaxBytes: t.SegmentIndexBytes,
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
	if topic == broker.OffsetsTopic && s.static.Bool("log.cleaner.enable") {
		out.Log.RollDirtyBytes = offsetsDirtyBytes
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

// offsetsDirtyBytes is how much of a partition of the offsets topic is left to compaction
// at most, whatever its segment.bytes: a start reads all of it, and ten million commits
// of a thousand groups are 770 MB as they come and 1 MB when they are compacted.
const offsetsDirtyBytes = 1 << 20

// limitConnections puts the bounds on connections in force. It runs on the
// quorum's goroutine, so hosts that are names and not addresses are looked up
// beside it, and the bound of one that is not known yet follows.
func (s *Server) limitConnections(v *config.View) {
	l := wire.Limits{
		MaxConns: min(v.Int("max.connections"), s.files.connections),
		MaxPerIP: v.Int("max.connections.per.ip"),
		Rate:     v.Int("max.connection.creation.rate"),
		PerIP:    make(map[netip.Addr]int),
	}
	for _, a := range s.addrs {
		own := wire.ListenerLimits{MaxConns: wire.NoLimit, Rate: wire.NoLimit}
		if n, ok := v.OfListener(a.Listener, "max.connections"); ok {
			own.MaxConns = int(n)
		}
		if n, ok := v.OfListener(a.Listener, "max.connection.creation.rate"); ok {
			own.Rate = int(n)
		}
		if own != (wire.ListenerLimits{MaxConns: wire.NoLimit, Rate: wire.NoLimit}) {
			if l.Listeners == nil {
				l.Listeners = make(map[string]wire.ListenerLimits)
			}
			l.Listeners[a.Listener] = own
		}
	}
	names := make(map[string]int)
	for host, n := range v.MaxConnectionsPerIP() {
		if ip, err := netip.ParseAddr(host); err == nil {
			l.PerIP[ip.Unmap()] = n
		} else {
			names[host] = n
		}
	}
	s.limiting.Lock()
	s.wire.SetLimits(l)
	s.limiting.Unlock()
	if len(names) > 0 {
		s.wg.Go(func() { s.limitHosts(v, l, names) })
	}
}

// limitHosts looks names up and adds their addresses to the limits, unless the
// configuration has changed meanwhile.
func (s *Server) limitHosts(v *config.View, l wire.Limits, names map[string]int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	perIP := maps.Clone(l.PerIP)
	for host, n := range names {
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			s.log.Warn("a host's bound on connections is not in force: the name is not known; give an address, or set the key again when it is known",
				"key", "max.connections.per.ip.overrides", "host", host, "err", err)
			continue
		}
		for _, ip := range ips {
			if _, given := l.PerIP[ip.Unmap()]; !given {
				perIP[ip.Unmap()] = n
			}
		}
	}
	l.PerIP = perIP
	s.limiting.Lock()
	defer s.limiting.Unlock()
	if s.view.Load() == v {
		s.wire.SetLimits(l)
	}
}

// millis is a setting in milliseconds, as far as a Duration reaches.
func millis(ms int64) time.Duration {
	return time.Duration(min(ms, int64(never/time.Millisecond))) * time.Millisecond
}

// never is far enough not to happen.
const never = 100 * 365 * 24 * time.Hour

// notZero stands in for 0 where a room takes 0 for its default and the setting
// means it.
func notZero(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
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
		return group.Record{Key: key, Value: value}, nil
	},
}

// newMemberID is Kafka's form: the client id, a dash and a random UUID.
func newMemberID(clientID string) string { return clientID + "-" + uuid.NewString() }
