package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// cleanerGauges show compaction as Kafka's LogCleaner and LogCleanerManager do.
type cleanerGauges struct {
	uncleanable, uncleanableBytes        *prometheus.GaugeVec
	dirty, recopy, buffer, took, deadAre prometheus.Gauge
}

// Uncleanable is what of one log dir cannot be compacted.
type Uncleanable struct {
	Dir        string
	Partitions int
	Bytes      int64 // that wait for compaction in them
}

// CleanerLooked takes note that the cleaner looked for work: the ratio of dirty bytes
// of the dirtiest log, 0 to 1, and what of each log dir cannot be compacted.
func (s *Set) CleanerLooked(now time.Time, dirtiest float64, dirs []Uncleanable) {
	if s == nil {
		return
	}
	s.cleanerRun.Store(now.UnixMilli())
	s.cleaner.dirty.Set(float64(int(100 * dirtiest)))
	for _, d := range dirs {
		dir := Label(d.Dir)
		s.cleaner.uncleanable.WithLabelValues(dir).Set(float64(d.Partitions))
		s.cleaner.uncleanableBytes.WithLabelValues(dir).Set(float64(d.Bytes))
	}
}

// Compacted takes the figures of a finished run: the bytes it read and what was left of
// them, how full its memory for keys became, 0 to 1, and how long it took.
func (s *Set) Compacted(read, left int64, keys float64, took time.Duration) {
	if s == nil {
		return
	}
	s.cleaner.recopy.Set(float64(100 * left / max(read, 1)))
	s.cleaner.buffer.Set(float64(int(100 * keys)))
	s.cleaner.took.Set(float64(took / time.Second))
}
