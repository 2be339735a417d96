package commitlog

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Compaction keeps the last record of every key (KIP-534 and Kafka's Cleaner). A run
// has two parts. PrepareClean, beside the writer, reads the dirty part of the log,
// notes every key's last offset, and writes what remains of the closed segments to
// .cleaned files. Commit, by the writer, puts these in place of the old segments.
// The first offset that was not looked at is the next run's start.

// ErrCleaning: another run is under way.
var ErrCleaning = errors.New("commitlog: being compacted already")

// CleanStats tells what a run did.
type CleanStats struct {
	Cleaned                    kafka.Offset // the next run begins here
	SegmentsBefore, After      int
	BytesBefore, BytesAfter    int64
	RecordsBefore, RecordsKept int64
	NoKey                      int64   // records without a key, which are dropped
	KeysFilled                 float64 // share of CleanLimits.KeyBytes that keys took, 0 to 1
}

// cleanerState is what compaction remembers between two runs.
type cleanerState struct {
	mu      sync.Mutex
	running bool
	cleaned kafka.Offset // everything below has been cleaned
	scanned bool         // horizon is known
	horizon int64        // when the first tombstone or marker below cleaned may go, in ms; MaxInt64: none
}

// Cleaned is the first offset that no compaction has looked at: what
// cleaner-offset-checkpoint keeps.
func (l *Log) Cleaned() kafka.Offset {
	l.cleaner.mu.Lock()
	defer l.cleaner.mu.Unlock()
	return l.cleaner.cleaned
}

// Cleanable says how much of the closed part of the log is dirty, 0 to 1, and
// whether a run is due whatever the ratio: a record waits for longer than
// MaxCompactionLagMs, or tombstones may go. Logs are to be cleaned by falling ratio
// once it passes MinDirtyRatio.
func (l *Log) Cleanable(now time.Time, hw kafka.Offset) (ratio float64, due bool, err error) {
	o := l.options()
	if !o.Compact {
		return 0, false, nil
	}
	clean, dirty, late, err := l.measure(now, hw)
	if err != nil {
		return 0, false, err
	}
	if dirty > 0 {
		ratio = float64(dirty) / float64(clean+dirty)
	}
	horizon, err := l.deleteHorizon()
	return ratio, late || horizon <= now.UnixMilli(), err
}

// DirtyBytes is what of the closed part of the log waits for compaction.
func (l *Log) DirtyBytes(now time.Time, hw kafka.Offset) (int64, error) {
	_, dirty, _, err := l.measure(now, hw)
	return dirty, err
}

// measure adds up the segments that are clean and those that are not; late: a record in
// one of these waits for longer than MaxCompactionLagMs.
func (l *Log) measure(now time.Time, hw kafka.Offset) (clean, dirty int64, late bool, err error) {
	from, to, err := l.dirtyRange(now, hw)
	if err != nil {
		return 0, 0, false, err
	}
	lag := l.options().MaxCompactionLagMs
	segs := l.segments()
	if from == to {
		segs = segs[len(segs)-1:] // the rest of a segment that may not be looked at yet is not dirty
	}
	for i, s := range segs[:len(segs)-1] {
		switch {
		case segs[i+1].base <= from:
			clean += s.sizeNow()
		case s.base < to:
			dirty += s.sizeNow()
			if !late && lag < math.MaxInt64 {
				first, err := s.firstTime()
				if err != nil {
					return 0, 0, false, err
				}
				late = first >= 0 && now.UnixMilli()-first > lag
			}
		}
	}
	return clean, dirty, late, nil
}

// dirtyRange is what a run may look at: from the first offset not cleaned up to the
// active segment, the last stable offset, or a record too young.
func (l *Log) dirtyRange(now time.Time, hw kafka.Offset) (from, to kafka.Offset, err error) {
	from = max(l.Cleaned(), l.LogStart())
	if from > l.End() {
		from = l.LogStart() // the log was truncated below a saved point
	}
	segs := l.segments()
	to = min(segs[len(segs)-1].base, l.LastStable(hw))
	if lag := l.options().MinCompactionLagMs; lag > 0 {
		for i, s := range segs[:len(segs)-1] {
			if segs[i+1].base <= from {
				continue
			}
			if s.base >= to {
				break
			}
			t, err := s.largestTime()
			if err != nil {
				return 0, 0, err
			}
			if t.ts > now.UnixMilli()-lag {
				to = min(to, s.base)
				break
			}
		}
	}
	return from, max(to, from), nil
}

// uncleanFrom: what lies at or above off was cut away and may come again.
func (l *Log) uncleanFrom(off kafka.Offset) {
	l.cleaner.mu.Lock()
	defer l.cleaner.mu.Unlock()
	l.cleaner.cleaned = min(l.cleaner.cleaned, off)
}

// firstTime is the time of the segment's first batch.
func (s *segment) firstTime() (int64, error) {
	f, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer f.Release()
	if s.sizeNow() == 0 {
		return -1, nil
	}
	b, err := newScanner(f, 0, s.sizeNow(), false).next()
	if err != nil {
		return 0, damageAt(f.Name(), 0, err)
	}
	return b.MaxTimestamp(), nil
}

// deleteHorizon is the earliest time at which a tombstone, or the marker of an empty
// transaction, may go from the closed segments. After a start it is looked up, once: on
// a quiet topic nothing else would ever bring the tombstones away. A batch keeps its
// horizon when its tombstones are gone, so the records of those that have one are read.
func (l *Log) deleteHorizon() (int64, error) {
	l.cleaner.mu.Lock()
	defer l.cleaner.mu.Unlock()
	if l.cleaner.scanned {
		return l.cleaner.horizon, nil
	}
	horizon := int64(math.MaxInt64)
	segs := l.segments()
	for _, s := range segs[:len(segs)-1] {
		if s.base >= l.cleaner.cleaned {
			break // never cleaned: no batch has a horizon
		}
		err := l.walk(s, s.base, func(b found) error {
			ms, ok := b.DeleteHorizon()
			if !ok || ms >= horizon || b.BaseOffset() >= l.cleaner.cleaned {
				return nil
			}
			waits, err := s.waits(b, l.cleaner.cleaned)
			if waits {
				horizon = ms
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	l.cleaner.scanned, l.cleaner.horizon = true, horizon
	return horizon, nil
}

// waits says whether a batch with a delete horizon has a record below end that goes
// when it is reached.
func (s *segment) waits(b found, end kafka.Offset) (bool, error) {
	if b.Count() == 0 || b.Control() {
		return b.Count() > 0, nil
	}
	f, err := s.acquire()
	if err != nil {
		return false, err
	}
	defer f.Release()
	v := make(batch.View, b.size)
	if n, err := f.ReadAt(v, b.pos); n < len(v) {
		return false, err
	}
	if !v.CRCOK() {
		return false, fmt.Errorf("%w: CRC does not match", batch.ErrCorrupt)
	}
	tombstone := false
	err = v.Each(func(r *batch.Record) error {
		tombstone = tombstone || r.Value == nil && v.Offset(r) < end
		return nil
	})
	return tombstone, err
}

// Clean is PrepareClean and Commit in one, for a writer that can wait.
func (l *Log) Clean(now time.Time, hw kafka.Offset) (CleanStats, error) {
	c, err := l.PrepareClean(now, hw, CleanLimits{})
	if c == nil || err != nil {
		return CleanStats{}, err
	}
	return c.Commit(now)
}

// Cleaning is a prepared run; Commit or Abort ends it.
type Cleaning struct {
	l       *Log
	gen     uint64 // of the log: a truncation since makes the key map wrong
	stats   CleanStats
	groups  []*cleanGroup
	horizon int64
	nowMs   int64
	keepMs  int64 // delete.retention.ms
	limits  CleanLimits
	keys    *keyTable
	end     kafka.Offset // the table knows every record of the dirty part below
	active  map[kafka.ProducerID]lastOfProducer
	readBuf []byte
	out     []byte     // to be written
	buf     batch.View // a batch larger than readBuf
	keep    []bool
}

// cleanGroup is neighbouring segments that become one.
type cleanGroup struct {
	old  []*segment
	new  *segment
	file disk.File
	size int64
	txns []AbortedTxn
	ix   index
	max  timeEntry
	next kafka.Offset
}

// lastOfProducer: the batch that must stay, even empty, for the producer's sequence,
// or the marker for its epoch.
type lastOfProducer struct {
	offset kafka.Offset // NoOffset: no data since its last marker
	epoch  int16
}

// PrepareClean does the long part of a run if one is due: the dirty ratio is above
// MinDirtyRatio, a record waits for longer than MaxCompactionLagMs, or tombstones may
// go. Otherwise, and without the Compact option, it gives nil, nil. It may run beside
// the writer; if the writer removes segments meanwhile it fails or Commit does, and
// nothing has happened.
func (l *Log) PrepareClean(now time.Time, hw kafka.Offset, limits CleanLimits) (*Cleaning, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	l.cleaner.mu.Lock()
	if l.cleaner.running {
		l.cleaner.mu.Unlock()
		return nil, ErrCleaning
	}
	l.cleaner.running = true
	l.cleaner.mu.Unlock()
	c := &Cleaning{l: l, gen: l.gen.Load(), limits: limits.filled(), nowMs: now.UnixMilli(), keepMs: l.options().DeleteRetentionMs, horizon: math.MaxInt64}
	work, err := c.prepare(now, hw)
	if !work || err != nil {
		c.Abort()
		return nil, err
	}
	return c, nil
}

// Abort gives a prepared run up.
func (c *Cleaning) Abort() {
	for _, g := range c.groups {
		if g.file != nil {
			g.file.Close()
		}
		for _, ext := range segmentExts {
			_ = c.l.fs.Remove(c.l.path(g.old[0].base, ext+cleanedExt)) // the next start would too
		}
	}
	c.groups = nil
	c.finish()
}

func (c *Cleaning) finish() {
	c.l.cleaner.mu.Lock()
	c.l.cleaner.running = false
	c.l.cleaner.mu.Unlock()
}

func (c *Cleaning) prepare(now time.Time, hw kafka.Offset) (work bool, err error) {
	l := c.l
	ratio, due, err := l.Cleanable(now, hw)
	if err != nil || !due && ratio <= l.options().MinDirtyRatio {
		return false, err
	}
	from, to, err := l.dirtyRange(now, hw)
	if err != nil {
		return false, err
	}
	if to > l.Flushed() {
		// A record goes because a later one stands for it: that one must not be lost
		// in a power cut. A closed segment was mostly synced when it was closed.
		if _, err := l.Flush(); err != nil {
			return false, err
		}
	}
	c.end = from
	var largest int64
	for _, s := range l.segments() {
		largest = max(largest, s.sizeNow())
	}
	c.readBuf = make([]byte, max(min(int64(c.limits.Buffer), largest), batch.HeaderLen))
	if err := c.mapKeys(from, to); err != nil {
		return false, err
	}
	c.stats.Cleaned, c.stats.KeysFilled = c.end, float64(c.keys.used)*keySlotBytes/float64(c.limits.KeyBytes)
	c.active = l.lastOfProducers()
	c.group()
	if len(c.groups) == 0 {
		// What made the run due was retired since: look again.
		l.cleaner.mu.Lock()
		l.cleaner.scanned = false
		l.cleaner.mu.Unlock()
		return false, nil
	}
	// Also of what lies above c.end in the last group: its index is written anew.
	txns := newCleanTxns(l.Aborted(0, c.groups[len(c.groups)-1].next))
	for _, g := range c.groups {
		if err := c.cleanGroup(g, txns); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Commit puts the result in place. Writer only. Before it the caller saves Flushed as
// the recovery point: the gaps that come into the log lie below it, and recovery takes
// one above it for the end of a segment that never reached the disk. An error before
// the first rename leaves all as it was; a later one sticks.
func (c *Cleaning) Commit(now time.Time) (CleanStats, error) {
	l := c.l
	if err := l.usable(); err != nil {
		c.Abort()
		return CleanStats{}, err
	}
	if c.gen != l.gen.Load() || !l.options().Compact {
		c.Abort()
		return CleanStats{}, ErrGone
	}
	segs := l.segments()
	for _, g := range c.groups { // the writer may have removed segments since
		i := slices.Index(segs, g.old[0])
		if i < 0 || i+len(g.old) >= len(segs) || !slices.Equal(segs[i:i+len(g.old)], g.old) || segs[i+len(g.old)].base != g.next {
			c.Abort()
			return CleanStats{}, ErrGone
		}
	}
	for _, g := range c.groups {
		if err := l.swapIn(g, now); err != nil {
			c.finish()
			return CleanStats{}, l.fail(err)
		}
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		c.finish()
		return CleanStats{}, l.fail(err)
	}
	l.recount()
	l.cleaner.mu.Lock()
	l.cleaner.running = false
	l.cleaner.cleaned = c.stats.Cleaned
	l.cleaner.scanned, l.cleaner.horizon = true, c.horizon
	l.cleaner.mu.Unlock()
	return c.stats, nil
}

// swapIn replaces a group's old segments. The log's rename to .swap is the moment
// from which a start finishes the replacement instead of undoing it. Readers get the
// new segment before any name changes: it has its file open and its index in memory.
func (l *Log) swapIn(g *cleanGroup, now time.Time) error {
	base := g.old[0].base
	for _, ext := range segmentExts {
		path := l.path(base, ext)
		if err := l.fs.Rename(path+cleanedExt, path+swapExt); err != nil && !(isNotExist(err) && ext == txnExt) {
			return err
		}
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return err
	}
	s := l.newSegment(base, g.old[0].createdMs)
	s.size, s.next, s.maxTime, s.timeKnown, s.ix, s.gaps = g.size, g.next, g.max, true, g.ix, true
	s.txn = txnIndex{true, g.txns}
	s.shared.Store(disk.NewShared(g.file))
	g.file = nil
	segs := l.segments()
	i := slices.Index(segs, g.old[0])
	l.publish(slices.Concat(segs[:i], []*segment{s}, segs[i+len(g.old):]))
	for _, old := range g.old {
		if err := l.doom(old, now.UnixMilli()); err != nil {
			return err
		}
	}
	for _, ext := range segmentExts {
		path := l.path(base, ext)
		if err := l.fs.Rename(path+swapExt, path); err != nil && !(isNotExist(err) && ext == txnExt) {
			return err
		}
	}
	s.mu.Lock()
	s.ix.offsetsFiled, s.ix.timesFiled = len(s.ix.offsets), len(s.ix.times)
	s.ix.trustedOffsets, s.ix.trustedTimes = s.ix.offsetsFiled, s.ix.timesFiled
	s.ix.offsets, s.ix.times = nil, nil
	s.mu.Unlock()
	l.namesDirty.Store(true)
	return nil
}
