package commitlog

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Options are the settings a topic can change while its logs are open. A zero
// field means Kafka's default, given beside it; where zero has a meaning of its
// own the field says so.
type Options struct {
	SegmentBytes    int64 // 1 GiB; at most 2 GiB - 1
	SegmentMs       int64 // 7 days
	SegmentJitterMs int64 // 0: none

	IndexIntervalBytes int // 4096; a segment gets an index entry about this often
	IndexMaxBytes      int // 10 MiB

	RetentionMs    int64 // -1: for ever; 0: nothing that is not new
	RetentionBytes int64 // -1: no limit; 0: nothing

	Delete  bool // cleanup.policy has delete
	Compact bool // cleanup.policy has compact

	Preallocate          bool
	FileDeleteDelayMs    int64 // 0: at the next Sweep
	ProducerExpirationMs int64 // 1 day

	DeleteRetentionMs  int64 // 0: tombstones go with the first cleaning that may drop them
	MinCompactionLagMs int64
	MaxCompactionLagMs int64   // no limit
	MinDirtyRatio      float64 // 0: any dirt is worth a cleaning
	// RollDirtyBytes closes the active segment of a compacted log once it has as many
	// bytes, so that they can be compacted; 0: not before SegmentBytes.
	RollDirtyBytes int64
}

// DefaultOptions are Kafka's defaults for a topic.
func DefaultOptions() Options {
	return Options{
		RetentionMs: 7 * 24 * 3600 * 1000, RetentionBytes: -1, Delete: true,
		FileDeleteDelayMs: 60_000, DeleteRetentionMs: 24 * 3600 * 1000, MinDirtyRatio: 0.5,
	}.filled()
}

func (o Options) filled() Options {
	def := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	def(&o.SegmentBytes, 1<<30)
	def(&o.SegmentMs, 7*24*3600*1000)
	def(&o.ProducerExpirationMs, 24*3600*1000)
	def(&o.MaxCompactionLagMs, math.MaxInt64)
	if o.IndexIntervalBytes == 0 {
		o.IndexIntervalBytes = 4096
	}
	if o.IndexMaxBytes == 0 {
		o.IndexMaxBytes = 10 << 20
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.SegmentBytes < 1 || o.SegmentBytes > math.MaxInt32:
		return fmt.Errorf("commitlog: SegmentBytes %d: want 1 to %d", o.SegmentBytes, math.MaxInt32)
	case o.SegmentMs < 1:
		return fmt.Errorf("commitlog: SegmentMs %d: want 1 or more", o.SegmentMs)
	case o.IndexMaxBytes < 4:
		return fmt.Errorf("commitlog: IndexMaxBytes %d: want 4 or more", o.IndexMaxBytes)
	case o.IndexIntervalBytes < 0:
		return fmt.Errorf("commitlog: IndexIntervalBytes %d: want 0 or more", o.IndexIntervalBytes)
	}
	return nil
}

// Config says which log to open and what its owner knows about it.
type Config struct {
	FS      disk.FS
	Dir     string // the partition's folder
	TP      kafka.TopicPartition
	ID      kafka.TopicID // zero: not known, not written
	Options Options
	Now     time.Time

	// RecoveryPoint: everything below it was synced (recovery-point-offset-checkpoint).
	RecoveryPoint kafka.Offset
	// PointLost: what was saved as RecoveryPoint cannot be read, it may be anywhere.
	PointLost bool
	// LogStart as last saved (log-start-offset-checkpoint); 0: none.
	LogStart kafka.Offset
	// Cleaned: compaction has been up to here (cleaner-offset-checkpoint); 0: nowhere.
	Cleaned kafka.Offset
	// Clean: the last owner closed every log of the directory in order
	// (.kafka_cleanshutdown), so the files are as they should be.
	Clean bool
	// New: the owner knows of no such folder, so making it is tried first.
	New bool
	// ParentSynced: the owner syncs the folder's own name before a record in it is
	// acknowledged.
	ParentSynced bool
	// Files bounds the open files of all logs that share it; nil: no bound.
	Files *Files
	// OnSyncError is told when a sync failed that the log made by itself, before it
	// closed a file; nil: the log alone takes no more writes.
	OnSyncError func(error)
	// Log takes warnings; nil: none.
	Log *slog.Logger
}
