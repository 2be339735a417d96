package commitlog

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Log is one partition's log. See the package text for who may call what.
type Log struct {
	fs          disk.FS
	log         *slog.Logger
	files       *Files      // nil: not counted
	onSyncError func(error) // a sync that nobody asked for failed; nil: the log alone knows
	tp          kafka.TopicPartition
	id          kafka.TopicID

	dir  atomic.Pointer[string] // changes once, at Delete
	opts atomic.Pointer[Options]

	segs  atomic.Pointer[[]*segment] // never empty while open; the last is active
	start atomic.Int64
	end   atomic.Int64
	total atomic.Int64  // bytes of all segments
	gen   atomic.Uint64 // odd during a truncation: a read that failed across one is done again

	// flushed and syncing: whoever holds the token syncs for all who wait for it.
	flushed    atomic.Int64
	syncing    sync.Mutex
	namesDirty atomic.Bool // names in the folder changed since it was synced
	parentNew  atomic.Bool // the folder itself is new
	removed    atomic.Bool // a file went whose return would do harm
	unsynced   pathSet     // side files that the next flush syncs

	failed atomic.Pointer[FailedError]
	closed atomic.Bool

	epochs    epochs
	producers producers
	aborts    atomic.Bool // some transaction index may hold something

	// The writer's own.
	snapshots []kafka.Offset // that exist, ascending
	deleted   atomic.Bool

	sweeping sync.Mutex // Sweep runs beside the writer
	doomed   []doomed   // files that wait for the end of the delete delay
	dueMs    int64      // when the folder of a deleted log goes; 0: not known yet
	scratch  []byte
	futureTs kafka.Offset // segment warned of for a timestamp in the future
	cleaner  cleanerState
}

// doomed is a renamed file.
type doomed struct {
	path  string
	dueMs int64
}

// pathSet collects files to sync.
type pathSet struct {
	mu    sync.Mutex
	paths []string
}

func (p *pathSet) add(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.paths, path) {
		p.paths = append(p.paths, path)
	}
}

func (p *pathSet) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	paths := p.paths
	p.paths = nil
	return paths
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Dir is the folder; it changes when the log is deleted.
func (l *Log) Dir() string { return *l.dir.Load() }

// TP is the partition.
func (l *Log) TP() kafka.TopicPartition { return l.tp }

// ID is the topic's id, from the folder if the configuration had none.
func (l *Log) ID() kafka.TopicID { return l.id }

func (l *Log) options() *Options { return l.opts.Load() }

// Options are the settings in force.
func (l *Log) Options() Options { return *l.opts.Load() }

// SetOptions puts other settings in force. Out of range: the old ones stay and the
// error says why.
func (l *Log) SetOptions(o Options) error {
	o = o.filled()
	if err := o.check(); err != nil {
		return err
	}
	l.opts.Store(&o)
	return nil
}

func (l *Log) segments() []*segment { return *l.segs.Load() }

func (l *Log) active() *segment {
	segs := l.segments()
	return segs[len(segs)-1]
}

// publish puts a new list of segments in force.
func (l *Log) publish(segs []*segment) { l.segs.Store(&segs) }

// findSegment is the index of the segment that holds off, or the first.
func findSegment(segs []*segment, off kafka.Offset) int {
	if n := len(segs); segs[n-1].base <= off {
		return n - 1 // nearly always
	}
	lo, hi := 0, len(segs)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if segs[mid].base <= off {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// LogStart is the first offset that can be read.
func (l *Log) LogStart() kafka.Offset { return kafka.Offset(l.start.Load()) }

// End is the offset the next record gets.
func (l *Log) End() kafka.Offset { return kafka.Offset(l.end.Load()) }

// Size is the bytes of all segments, without indexes.
func (l *Log) Size() int64 { return l.total.Load() }

// Segments is how many there are.
func (l *Log) Segments() int { return len(l.segments()) }

// LastEpoch is the latest leader epoch, NoEpoch when there is none.
func (l *Log) LastEpoch() kafka.Epoch { return l.epochs.last() }

// EndOfEpoch answers OffsetsForLeaderEpoch (KIP-101, KIP-320): the largest known
// epoch at or below e and the offset where it ends; (NoEpoch, NoOffset) when e is
// NoEpoch or later than every known one.
func (l *Log) EndOfEpoch(e kafka.Epoch) (kafka.Epoch, kafka.Offset) {
	return l.epochs.endOf(e, l.End())
}

// EpochAt is the leader epoch of the record at off, NoEpoch if not known.
func (l *Log) EpochAt(off kafka.Offset) kafka.Epoch { return l.epochs.at(off) }

// AssignEpoch notes that this broker leads from End on with epoch e. The file
// follows with the first flush; until a record of the epoch is durable its loss
// changes nothing.
func (l *Log) AssignEpoch(e kafka.Epoch) error {
	if err := l.usable(); err != nil {
		return err
	}
	l.epochs.assign(e, l.End())
	return nil
}

// Err is the error that stopped the log from taking writes, nil if it takes them.
func (l *Log) Err() error {
	if f := l.failed.Load(); f != nil {
		return f
	}
	return nil
}

// usable says whether the log takes writes.
func (l *Log) usable() error {
	if l.closed.Load() {
		return ErrClosed
	}
	return l.Err()
}

// fail makes err stick.
func (l *Log) fail(err error) error {
	f := &FailedError{l.Dir(), err}
	if l.failed.CompareAndSwap(nil, f) {
		l.log.Error("log failed", "partition", l.tp.String(), "err", err)
	}
	return l.failed.Load()
}

// writeEpochs brings the epoch file up to date. An epoch that has no record below
// end is not worth the writing: every start after a kill begins one in every
// partition.
func (l *Log) writeEpochs(end kafka.Offset) error {
	l.epochs.mu.Lock()
	if !l.epochs.dirty && (len(l.epochs.chain) <= l.epochs.filed || l.epochs.chain[l.epochs.filed].start >= end) {
		l.epochs.mu.Unlock()
		return nil
	}
	n := len(l.epochs.chain)
	for n > 0 && l.epochs.chain[n-1].start >= end {
		n--
	}
	data := encodeEpochs(l.epochs.chain[:n])
	l.epochs.dirty, l.epochs.filed = false, n
	l.epochs.mu.Unlock()
	err := l.fs.WriteAtomic(l.file(epochFile), data)
	if err != nil {
		l.epochs.mu.Lock()
		l.epochs.dirty = true
		l.epochs.mu.Unlock()
	}
	return err
}

// Checkpoint writes what speeds up the next start if it comes after a kill: index
// entries, producer state as of End, epochs. None of it is needed.
func (l *Log) Checkpoint(now time.Time) error {
	if err := l.usable(); err != nil {
		return err
	}
	s := l.active()
	if err := s.fileIndex(false); err != nil {
		return err
	}
	l.producers.expire(now.UnixMilli(), l.options().ProducerExpirationMs)
	l.takeSnapshot(l.End())
	l.dropSnapshots()
	return l.writeEpochs(l.End())
}

// Close ends the log. clean: everything is synced and the side files are brought
// up to date, so that Kafka and Weir open it without recovery; an error then means
// that this is not so. Regions handed out stay readable.
func (l *Log) Close(clean bool) error {
	if l.closed.Load() {
		return nil
	}
	var err error
	if clean {
		if err = l.Err(); err == nil {
			err = l.closeClean()
		}
	}
	l.closed.Store(true)
	l.syncing.Lock() // waits for a flush under way
	defer l.syncing.Unlock()
	for _, s := range l.segments() {
		s.release(true)
	}
	return err
}

func (l *Log) closeClean() error {
	s := l.active()
	if l.End() == 0 && l.Size() == 0 {
		// Nothing was ever here: what a power cut takes of the folder is made again.
		return l.trim(s)
	}
	if s.size > 0 && !s.indexWhole() {
		if err := s.fileIndex(true); err != nil {
			return err
		}
	}
	if err := l.trim(s); err != nil {
		return l.fail(err)
	}
	if end := l.End(); end > 0 && !slices.Contains(l.snapshots, end) {
		l.takeSnapshot(end)
	}
	l.dropSnapshots()
	_, err := l.flush(math.MaxInt64)
	return err
}

// dropSnapshots removes the snapshots that no start would use: all but those at a
// segment's base and the last.
func (l *Log) dropSnapshots() {
	segs := l.segments()
	keep := l.snapshots[:0]
	for i, off := range l.snapshots {
		j := findSegment(segs, off)
		if segs[j].base == off || i == len(l.snapshots)-1 {
			keep = append(keep, off)
			continue
		}
		if err := l.fs.Remove(l.path(off, snapshotExt)); err != nil && !isNotExist(err) {
			l.log.Warn("producer snapshot not removed", "partition", l.tp.String(), "offset", int64(off), "err", err)
		}
	}
	l.snapshots = keep
}
