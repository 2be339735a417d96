package partition

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Kafka's names for what lies in a log dir beside the partitions.
const (
	recoveryCheckpoint = "recovery-point-offset-checkpoint"
	startCheckpoint    = "log-start-offset-checkpoint"
	cleanerCheckpoint  = "cleaner-offset-checkpoint"
	hwCheckpoint       = "replication-offset-checkpoint"
	cleanMarker        = ".kafka_cleanshutdown"
	metaProperties     = "meta.properties"
)

// logDir is one of log.dirs: its lock, its checkpoints and its flush workers.
type logDir struct {
	path string
	fs   disk.FS
	log  *slog.Logger
	lock io.Closer

	clean    bool // the last life ended in order
	used     bool // there was a last life
	recovery map[kafka.TopicPartition]kafka.Offset
	starts   map[kafka.TopicPartition]kafka.Offset
	cleaned  map[kafka.TopicPartition]kafka.Offset

	failed atomic.Pointer[fail]

	mu     sync.Mutex
	cond   *sync.Cond
	queue  []*Partition            // wait for a flush, in order
	inQ    map[*Partition]struct{} // those in queue
	doomed map[*Partition]struct{} // their logs have files to be removed
	stop   bool
	wg     sync.WaitGroup

	parts   map[kafka.TopicPartition]*Partition // guarded by mu
	order   []*Partition                        // parts by topic and number; nil: to be made anew; guarded by mu
	changed atomic.Bool                         // some log start or cleaned offset moved since the last checkpoint
	grew    atomic.Bool                         // folders were made since the last sync of the dir
	writing sync.Mutex                          // one checkpoint at a time
	written [checkpoints]uint64                 // hashes of the checkpoints on the disk, 0: not known; guarded by writing
	cleaner chan struct{}                       // the Manager's, capacity 1: there may be something to compact
}

func (d *logDir) wakeCleaner() {
	select {
	case d.cleaner <- struct{}{}:
	default:
	}
}

// flushWorkers bounds concurrent fdatasyncs per log dir: four files at once give
// half again as many a second as one on the disks measured, more adds little.
const flushWorkers = 4

func openDir(fs disk.FS, path string, log *slog.Logger) (*logDir, error) {
	d := &logDir{path: path, fs: fs, log: log, inQ: make(map[*Partition]struct{}), doomed: make(map[*Partition]struct{}), parts: make(map[kafka.TopicPartition]*Partition)}
	d.cond = sync.NewCond(&d.mu)
	if err := fs.MkdirAll(path); err != nil {
		return nil, fmt.Errorf("log dir %s: %w: name a folder this user may write with --data-dir or log.dirs", path, err)
	}
	_ = fs.SyncDir(filepath.Dir(path)) // a new folder's own name; a parent that cannot be opened was there before
	lock, err := fs.Lock(filepath.Join(path, ".lock"))
	if err != nil {
		if errors.Is(err, disk.ErrLocked) {
			return nil, fmt.Errorf("log dir %s is in use by another broker: stop that one, or choose another folder with --data-dir", path)
		}
		return nil, fmt.Errorf("log dir %s: cannot lock it: %w: name a folder this user may write with --data-dir or log.dirs", path, err)
	}
	d.lock = lock
	if _, err := fs.Stat(filepath.Join(path, cleanMarker)); err == nil {
		d.clean = true
	}
	if _, err := fs.Stat(filepath.Join(path, metaProperties)); err == nil {
		d.used = true
	}
	d.recovery = d.readCheckpoint(recoveryCheckpoint)
	d.starts = d.readCheckpoint(startCheckpoint)
	d.cleaned = d.readCheckpoint(cleanerCheckpoint)
	for range flushWorkers {
		d.wg.Go(d.flushLoop)
	}
	return d, nil
}

// readCheckpoint gives what can be read: a damaged checkpoint costs a longer
// recovery, not the partitions.
func (d *logDir) readCheckpoint(name string) map[kafka.TopicPartition]kafka.Offset {
	path := filepath.Join(d.path, name)
	if _, err := d.fs.Stat(path); err != nil {
		return nil
	}
	m, err := commitlog.ReadCheckpoint(d.fs, path)
	if err != nil {
		d.log.Warn("checkpoint unreadable, recovering without it", "file", path, "err", err)
		d.clean = false
		return nil
	}
	return m
}

// opened takes the clean marker away: from the first write on, only a stop in
// order may put it back.
func (d *logDir) opened() error {
	err := d.fs.Remove(filepath.Join(d.path, cleanMarker))
	if err != nil && !isNotExist(err) {
		return err
	}
	if err == nil {
		return d.fs.SyncDir(d.path)
	}
	return nil
}

// fail ends the dir: every partition in it serves nothing from now on.
func (d *logDir) fail(err error) {
	f := &fail{fmt.Errorf("%w: log dir %s: %w", ErrOffline, d.path, err)}
	if !d.failed.CompareAndSwap(nil, f) {
		return
	}
	d.log.Error("log dir failed: its partitions are offline until a restart; mend the disk first", "dir", d.path, "err", err)
	d.mu.Lock()
	parts := make([]*Partition, 0, len(d.parts))
	for _, p := range d.parts {
		parts = append(parts, p)
	}
	d.mu.Unlock()
	for _, p := range parts { // all, before anyone is woken and tries the next
		p.failed.CompareAndSwap(nil, f)
	}
	for _, p := range parts {
		p.waiters.fireAll(false)
	}
}

// missed ends the dir if an operation in it failed because the whole dir is gone: its
// disk was taken away. What was refused for another reason is the caller's to judge.
func (d *logDir) missed(err error) {
	if err == nil || d.failed.Load() != nil || disk.IsNoDescriptor(err) {
		return
	}
	if _, refused := errors.AsType[kafka.Error](err); refused {
		return
	}
	switch names, rerr := d.fs.ReadDir(d.path); {
	case rerr != nil && !disk.IsNoDescriptor(rerr):
		d.fail(fmt.Errorf("it cannot be read any more: %w", errors.Join(rerr, err)))
	case rerr == nil && len(names) == 0:
		d.fail(fmt.Errorf("it is empty, as if its disk was taken away: %w", err))
	}
}

// onSyncError ends the dir: a log could not sync a file that it wanted to close.
func (d *logDir) onSyncError(err error) { d.fail(err) }

// slim gives back what the checkpoints of the last life take in memory and do not
// need: offsets of 0, and a copy of every topic's name.
func (d *logDir) slim() {
	for _, m := range []*map[kafka.TopicPartition]kafka.Offset{&d.recovery, &d.starts, &d.cleaned} {
		if *m == nil {
			continue // not readable, which is not the same as empty
		}
		kept := make(map[kafka.TopicPartition]kafka.Offset)
		for _, p := range d.snapshot() {
			if o := (*m)[p.TP]; o > 0 {
				kept[p.TP] = o
			}
		}
		*m = kept
	}
}

func (d *logDir) add(p *Partition) {
	d.mu.Lock()
	d.parts[p.TP] = p
	d.order = nil
	d.mu.Unlock()
}

func (d *logDir) remove(p *Partition) {
	d.mu.Lock()
	if d.parts[p.TP] == p {
		delete(d.parts, p.TP)
		d.order = nil
		delete(d.doomed, p)
	}
	d.mu.Unlock()
}

func (d *logDir) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.parts)
}

// ordered is every partition by topic and number. Read only: it is kept until the
// set changes, for sorting 100,000 each minute is no small thing.
func (d *logDir) ordered() []*Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.order == nil {
		d.order = make([]*Partition, 0, len(d.parts))
		for _, p := range d.parts {
			d.order = append(d.order, p)
		}
		slices.SortFunc(d.order, func(a, b *Partition) int {
			return cmp.Or(cmp.Compare(a.TP.Topic, b.TP.Topic), cmp.Compare(a.TP.Partition, b.TP.Partition))
		})
	}
	return d.order
}

func (d *logDir) snapshot() []*Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]*Partition, 0, len(d.parts))
	for _, p := range d.parts {
		out = append(out, p)
	}
	return out
}

// requestFlush queues p for a flush worker; twice in the queue is once.
func (d *logDir) requestFlush(p *Partition) {
	d.mu.Lock()
	if _, ok := d.inQ[p]; !ok && !d.stop {
		d.inQ[p] = struct{}{}
		d.queue = append(d.queue, p)
		d.cond.Signal()
	}
	d.mu.Unlock()
}

func (d *logDir) flushLoop() {
	for {
		d.mu.Lock()
		for len(d.queue) == 0 && !d.stop {
			d.cond.Wait()
		}
		if len(d.queue) == 0 {
			d.mu.Unlock()
			return
		}
		p := d.queue[0]
		d.queue = d.queue[1:]
		delete(d.inQ, p)
		d.mu.Unlock()
		p.flush()
	}
}

// noteMoved tells that a log start or a cleaned offset moved: saveMoved has work.
func (d *logDir) noteMoved() { d.changed.Store(true) }

// checkpointLocked writes the recovery points, log starts, cleaned offsets and
// watermarks.
func (d *logDir) checkpointLocked() error {
	if f := d.failed.Load(); f != nil {
		return f.err
	}
	parts := d.ordered()
	points := make([]savedOffsets, len(parts))
	for i, p := range parts {
		if p.log == nil || p.Failed() != nil && !p.closed.Load() {
			// Keep what the last life knew: nothing is known anew.
			points[i] = savedOffsets{d.recovery[p.TP], d.starts[p.TP], d.cleaned[p.TP], kafka.NoOffset}
			continue
		}
		points[i] = savedOffsets{p.log.Flushed(), p.log.LogStart(), p.log.Cleaned(), p.HighWatermark()}
	}
	entries := make([]commitlog.Checkpoint, 0, len(parts))
	for kind, name := range checkpointNames {
		entries = entries[:0]
		for i, p := range parts {
			o := points[i][kind]
			// As Kafka's: every partition has a recovery point and a watermark, the others
			// only what is not 0.
			if o > 0 || o == 0 && (name == recoveryCheckpoint || name == hwCheckpoint) {
				entries = append(entries, commitlog.Checkpoint{TP: p.TP, Offset: o})
			}
		}
		data := commitlog.EncodeCheckpoint(entries)
		sum := maphash.Bytes(checkpointSeed, data)
		if sum == d.written[kind] {
			continue // nothing moved: a sync saved
		}
		d.written[kind] = 0
		if err := d.fs.WriteAtomic(filepath.Join(d.path, name), data); err != nil {
			return err
		}
		d.written[kind] = sum
	}
	return nil
}

// savedOffsets are what the checkpoints say of one partition, in the order of
// checkpointNames.
type savedOffsets [checkpoints]kafka.Offset

const checkpoints = 4

var (
	checkpointNames = [checkpoints]string{recoveryCheckpoint, startCheckpoint, cleanerCheckpoint, hwCheckpoint}
	checkpointSeed  = maphash.MakeSeed()
)

// saveMoved writes the checkpoints if something moved since the last time, and returns
// only when what had moved before the call is written.
func (d *logDir) saveMoved() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if !d.changed.Swap(false) {
		return nil
	}
	err := d.checkpointLocked()
	if err != nil {
		d.changed.Store(true)
	}
	return err
}

// close ends the workers. The partitions are closed by the Manager before.
func (d *logDir) close(write, clean bool) error {
	d.mu.Lock()
	d.stop = true
	d.queue = nil
	d.cond.Broadcast()
	d.mu.Unlock()
	d.wg.Wait()
	var err error
	if write && d.failed.Load() == nil {
		d.changed.Store(true)
		err = d.saveMoved()
		if err == nil && clean {
			err = d.fs.WriteAtomic(filepath.Join(d.path, cleanMarker), []byte("{\"version\":0}"))
		}
	}
	return errors.Join(err, d.lock.Close())
}
