package partition

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/replica"
)

// Options are what a Manager works with. Zero durations mean the defaults.
type Options struct {
	FS   disk.FS
	Dirs []string // log.dirs, at least one
	Self kafka.BrokerID
	Log  *slog.Logger

	// Settings resolves a topic's settings under an image. It must be quick and
	// free of side effects: it runs for each topic of a change.
	Settings func(img *metadata.Image, topic string) *Settings
	// Shards makes the pump of an internal topic's partitions, by topic name.
	Shards map[string]ShardFactory
	// Metrics counts per topic; nil counts nothing.
	Metrics *metrics.Set

	// MaxLogFiles bounds how many files of logs are open at once, asked at each
	// opening; 0 or nil: no bound.
	MaxLogFiles func() int

	RecoveryWorkers      int           // num.recovery.threads.per.data.dir; 2
	CheckpointEvery      time.Duration // log.flush.offset.checkpoint.interval.ms; 60 s
	StartCheckpointEvery time.Duration // log.flush.start.offset.checkpoint.interval.ms; 60 s
	RetentionEvery       time.Duration // log.retention.check.interval.ms; 5 min
	ExpireEvery          time.Duration // producer.id.expiration.check.interval.ms; 10 min
	// Cleaner gives what compaction may take at this moment. Nil: nothing is compacted.
	Cleaner      func() CleanerSettings
	InitialDelay time.Duration // log.initial.task.delay.ms: before the first of these; 30 s
}

type partKey struct {
	id kafka.TopicID
	n  int32
}

// Manager holds every partition of this node.
type Manager struct {
	o     Options
	dirs  []*logDir
	files *commitlog.Files

	mu    sync.RWMutex
	parts map[partKey]*Partition

	image   atomic.Pointer[metadata.Image]
	workers atomic.Int32 // Options.RecoveryWorkers, or what SetRecoveryWorkers said since
	stop    chan struct{}
	wake    chan struct{} // the cleaner's
	wg      sync.WaitGroup

	applying sync.Mutex           // one change of the set of partitions at a time
	starved  atomic.Pointer[fail] // an open of this change found no descriptor
	waiting  atomic.Bool          // some partition waits for reopenStarved

	lost  error               // why folders may be in a dir that is not here, or nil
	twice map[string][]string // partitions that lie in two dirs; nil after the first Apply

	goneMu sync.Mutex
	gone   []leaving // deleted partitions whose files go after the delete delay
}

// OpenManager locks the log dirs and reads their checkpoints. A dir that cannot
// be used is left out with an error in the log, as long as another is left.
// Partitions open with the first Apply.
func OpenManager(o Options) (*Manager, error) {
	if o.RecoveryWorkers <= 0 {
		o.RecoveryWorkers = 2
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&o.CheckpointEvery, time.Minute}, {&o.StartCheckpointEvery, time.Minute}, {&o.RetentionEvery, 5 * time.Minute},
		{&o.ExpireEvery, 10 * time.Minute}, {&o.InitialDelay, 30 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	m := &Manager{o: o, parts: make(map[partKey]*Partition), stop: make(chan struct{}), wake: make(chan struct{}, 1)}
	m.files = commitlog.NewFiles(o.MaxLogFiles, o.Log)
	o.FS = disk.Scarce(o.FS, m.files.Give)
	m.o.FS = o.FS
	m.workers.Store(int32(o.RecoveryWorkers))
	var errs []error
	for _, path := range o.Dirs {
		d, err := openDir(o.FS, path, o.Log)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.cleaner = m.wake
		m.dirs = append(m.dirs, d)
	}
	if len(m.dirs) == 0 {
		return nil, errors.Join(errs...)
	}
	for _, err := range errs {
		o.Log.Error("log dir left out", "err", err)
	}
	return m, nil
}

// LeaveOut ends a dir before the first Apply: what is in it is not used.
func (m *Manager) LeaveOut(path string, err error) {
	for _, d := range m.dirs {
		if d.path == path {
			d.fail(err)
		}
	}
}

// SetLost says before the first Apply that a dir of this node is not here: a
// partition whose folder is found nowhere is taken to lie there, and stays offline.
func (m *Manager) SetLost(err error) { m.lost = err }

// Unclean says whether any log dir was not closed in order by its last life, and
// held something.
func (m *Manager) Unclean() bool {
	for _, d := range m.dirs {
		if !d.clean && d.used {
			return true
		}
	}
	return false
}

// SetRecoveryWorkers changes how many partitions of each log dir are opened or
// closed at once.
func (m *Manager) SetRecoveryWorkers(n int) { m.workers.Store(int32(max(n, 1))) }

func (m *Manager) atOnce() int { return int(m.workers.Load()) * len(m.dirs) }

// closers is how many partitions of a dir are closed at once, and makers how many
// are made: what is closed waits for the disk, and 64 syncs share one commit of the
// file system's journal where two take turns; what is made waits for the system.
const (
	closers = 64
	makers  = 4
)

// FS is the file system that waits for a descriptor when the process has none left.
func (m *Manager) FS() disk.FS { return m.o.FS }

// LogFiles is how many files of logs are open.
func (m *Manager) LogFiles() int { return m.files.Open() }

// Start begins retention, checkpoints and compaction.
func (m *Manager) Start() {
	m.wg.Go(m.housekeep)
	if m.o.Cleaner != nil {
		m.wg.Go(m.cleanLoop)
	}
}

// Get gives a partition of a topic by id. Nil: not on this node.
func (m *Manager) Get(id kafka.TopicID, n int32) *Partition {
	m.mu.RLock()
	p := m.parts[partKey{id, n}]
	m.mu.RUnlock()
	return p
}

// Lookup finds a partition by topic name in the newest image applied.
func (m *Manager) Lookup(topic string, n int32) *Partition {
	img := m.image.Load()
	if img == nil {
		return nil
	}
	t, ok := img.Topic(topic)
	if !ok {
		return nil
	}
	return m.Get(t.ID, n)
}

// Shard gives the running shard of a partition of an internal topic, or nil.
func (m *Manager) Shard(topic string, n int32) *Shard {
	if p := m.Lookup(topic, n); p != nil {
		return p.shard.Load()
	}
	return nil
}

// All gives every partition, in no order.
func (m *Manager) All() []*Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*Partition, 0, len(m.parts))
	for _, p := range m.parts {
		out = append(out, p)
	}
	return out
}

// DirInfo describes one log dir.
type DirInfo struct {
	Path  string
	Err   error // why it is offline, or nil
	Total int64 // bytes; -1 unknown
	Free  int64
}

// Dirs describes the log dirs in use.
func (m *Manager) Dirs() []DirInfo {
	out := make([]DirInfo, 0, len(m.dirs))
	for _, d := range m.dirs {
		i := DirInfo{Path: d.path, Total: -1, Free: -1}
		if f := d.failed.Load(); f != nil {
			i.Err = f.err
		}
		if free, total, err := m.o.FS.Space(d.path); err == nil {
			i.Free, i.Total = int64(free), int64(total)
		}
		out = append(out, i)
	}
	return out
}

// open opens or makes one partition. It never fails: a partition whose files are
// damaged is there and answers ErrOffline.
// in is the dir of a partition that found does not know.
func (m *Manager) open(img *metadata.Image, t *metadata.Topic, n int32, settings *Settings, found map[string]*logDir, in *logDir) *Partition {
	tp := kafka.TopicPartition{Topic: t.Name, Partition: n}
	d, known := found[tp.String()]
	if !known {
		d = in
	}
	p := &Partition{TP: tp, ID: t.ID, dir: d, Meter: m.o.Metrics.Topic(t.Name)}
	p.settings.Store(settings)
	// Others find p through its dir: only once it is whole.
	defer func() {
		d.add(p)
		if f := d.failed.Load(); f != nil {
			p.failed.CompareAndSwap(nil, f)
		}
	}()
	if d.failed.Load() != nil {
		return p
	}
	offline := func(err error) *Partition {
		what := "partition cannot be opened and stays offline"
		if disk.IsNoDescriptor(err) || disk.IsNoSpace(err) {
			m.waiting.Store(true)
			what = "partition cannot be opened and is offline until there is room, or a descriptor"
		}
		m.o.Log.Error(what, "partition", tp.String(), "dir", d.path, "err", err)
		p.failed.Store(&fail{fmt.Errorf("%w: %w", ErrOffline, err)})
		return p
	}
	if in := m.twice[tp.String()]; in != nil {
		return offline(fmt.Errorf("it lies in two log dirs, %s and %s: move away the folder that is not wanted, most likely that of the dir that failed last", in[0], in[1]))
	}
	if found != nil && !known {
		if err := m.missing(tp); err != nil {
			return offline(err)
		}
		if m.lost != nil {
			return offline(m.lost)
		}
		m.o.Log.Warn("partition's folder is in none of the log dirs: begun empty", "partition", tp.String(), "dir", d.path)
	}
	var recovery, start, cleaned kafka.Offset
	if known { // what is saved for a folder that is gone belongs to an earlier topic of that name
		recovery, start, cleaned = d.recovery[tp], d.starts[tp], d.cleaned[tp]
	}
	cfg := commitlog.Config{
		FS: m.o.FS, Dir: filepath.Join(d.path, tp.String()), TP: tp, ID: t.ID, Options: settings.Log, Now: time.Now(),
		RecoveryPoint: recovery, PointLost: known && d.used && d.recovery == nil, LogStart: start, Cleaned: cleaned, Clean: d.clean && known, Log: m.o.Log,
		New: !known, ParentSynced: true, Files: m.files, OnSyncError: d.onSyncError,
	}
	var l *commitlog.Log
	var err error
	if f := m.starved.Load(); f != nil {
		err = f.err
	} else if l, err = commitlog.Open(cfg); disk.IsNoDescriptor(err) {
		m.starved.CompareAndSwap(nil, &fail{err})
	}
	if errors.Is(err, kafka.ErrInconsistentTopicID) && m.aside(d, tp.String()) == nil {
		// The folder of an earlier topic of this name: the broker was killed between
		// the two.
		known = false
		cfg.RecoveryPoint, cfg.PointLost, cfg.LogStart, cfg.Cleaned, cfg.Clean = 0, false, 0, 0, false
		l, err = commitlog.Open(cfg)
	}
	if err != nil {
		return offline(err)
	}
	if !known || !d.clean { // after an unclean stop nobody knows whether it was synced
		d.grew.Store(true)
	}
	p.log = l
	m.lead(p, &t.Partitions[n])
	return p
}

// missing is the error of a partition whose folder is gone though records in it
// were synced; nil when there were none.
func (m *Manager) missing(tp kafka.TopicPartition) error {
	for _, d := range m.dirs {
		if r := d.recovery[tp]; r > d.starts[tp] {
			return fmt.Errorf("folder %s is gone, but records below offset %d in it were synced: put it back, or accept the loss by deleting %s from the log dir",
				filepath.Join(d.path, tp.String()), r, recoveryCheckpoint)
		}
	}
	return nil
}

// reopenStarved tries again to open partitions that met a full disk, or a process
// without descriptors, when they were made.
func (m *Manager) reopenStarved() {
	m.applying.Lock()
	defer m.applying.Unlock()
	defer m.starved.Store(nil)
	img := m.image.Load()
	for _, p := range m.All() {
		noFiles := disk.IsNoDescriptor(p.Failed())
		if p.log != nil || p.dir.failed.Load() != nil || !noFiles && !disk.IsNoSpace(p.Failed()) {
			continue
		}
		t, ok := img.TopicByID(p.ID)
		if !ok || int(p.TP.Partition) >= len(t.Partitions) {
			continue
		}
		if free, _, err := m.o.FS.Space(p.dir.path); !noFiles && err == nil && free < reopenRoom {
			continue // it would fail again, and say so each time
		}
		again := m.open(img, t, p.TP.Partition, m.o.Settings(img, t.Name), map[string]*logDir{p.TP.String(): p.dir}, nil)
		if err := again.Failed(); err != nil {
			if disk.IsNoDescriptor(err) {
				return // so would the others, each after a wait and a line in the log
			}
			continue
		}
		again.dir.grew.Store(true)
		m.syncDirs()
		m.mu.Lock()
		m.parts[partKey{t.ID, p.TP.Partition}] = again
		m.mu.Unlock()
		m.startShard(again)
		p.waiters.fireAll(true)
		m.o.Log.Info("partition is online: there is room, or a descriptor, again", "partition", p.TP.String())
	}
}

// reopenRoom is the room below which reopening is not tried.
const reopenRoom = 1 << 20

// lead makes p the leader under the image's epoch.
func (m *Manager) lead(p *Partition, mp *metadata.Partition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.log.AssignEpoch(mp.LeaderEpoch); err != nil {
		p.failed.Store(&fail{fmt.Errorf("%w: %w", ErrOffline, err)})
		return
	}
	p.epoch.Store(int32(mp.LeaderEpoch))
	p.leader = replica.NewLeader(replica.LeaderConfig{
		Self: m.o.Self, Epoch: mp.LeaderEpoch, PartitionEpoch: mp.PartitionEpoch, Replicas: mp.Replicas, ISR: mp.ISR,
		Start: p.log.LogStart(), End: p.log.End(), HighWatermark: p.log.LogStart(), MinISR: p.Settings().MinISR,
	})
	p.advanceLocked(p.log.End(), p.appended)
	p.hw.Store(int64(p.leader.HighWatermark()))
}

// placing chooses the log dirs of new partitions: the one with the fewest, as Kafka.
type placing struct {
	m      *Manager
	counts []int
}

func (m *Manager) placing() placing {
	pl := placing{m, make([]int, len(m.dirs))}
	for i, d := range m.dirs {
		pl.counts[i] = d.count()
	}
	return pl
}

func (pl placing) next() *logDir {
	best := -1
	for i, d := range pl.m.dirs {
		if d.failed.Load() == nil && (best < 0 || pl.counts[i] < pl.counts[best]) {
			best = i
		}
	}
	if best < 0 {
		return pl.m.dirs[0]
	}
	pl.counts[best]++
	return pl.m.dirs[best]
}

// find maps folder names to the dir they lie in, and removes what an earlier life
// had deleted.
func (m *Manager) find() map[string]*logDir {
	found := make(map[string]*logDir)
	for _, d := range m.dirs {
		names, err := commitlog.PartitionDirs(m.o.FS, d.path)
		if err != nil {
			d.fail(err)
			continue
		}
		for _, pd := range names {
			if pd.Deleted {
				if err := m.o.FS.RemoveAll(filepath.Join(d.path, pd.Name)); err != nil {
					m.o.Log.Warn("deleted partition's files cannot be removed", "dir", d.path, "folder", pd.Name, "err", err)
				}
				continue
			}
			if other, twice := found[pd.Name]; twice {
				if m.twice == nil {
					m.twice = make(map[string][]string)
				}
				m.twice[pd.Name] = []string{other.path, d.path}
				continue
			}
			found[pd.Name] = d
		}
	}
	return found
}

// setAside renames what belongs to no topic of the image: a topic deleted while
// this node was down, or a folder that is not ours. Nothing is deleted. It says
// whether there was any.
func (m *Manager) setAside(img *metadata.Image, found map[string]*logDir) (any bool) {
	wanted := make(map[string]bool)
	img.EachTopic(func(t *metadata.Topic) bool {
		for n := range t.Partitions {
			wanted[kafka.TopicPartition{Topic: t.Name, Partition: int32(n)}.String()] = true
		}
		return true
	})
	for name, d := range found {
		if wanted[name] {
			continue
		}
		if m.aside(d, name) == nil {
			delete(found, name)
			any = true
		}
	}
	return any
}

// aside renames a folder that no topic wants.
func (m *Manager) aside(d *logDir, name string) error {
	to := strayName(name)
	if err := m.o.FS.Rename(filepath.Join(d.path, name), filepath.Join(d.path, to)); err != nil {
		m.o.Log.Error("stray partition folder cannot be set aside", "dir", d.path, "folder", name, "err", err)
		return err
	}
	m.o.Log.Warn("partition folder belongs to no topic and was set aside: delete it when nothing in it is wanted", "dir", d.path, "folder", to)
	return nil
}

// strayName is Kafka's form, at most 255 bytes.
func strayName(name string) string {
	suffix := fmt.Sprintf(".%032x-stray", time.Now().UnixNano())
	return name[:min(len(name), 255-len(suffix))] + suffix
}

func isNotExist(err error) bool { return errors.Is(err, os.ErrNotExist) }

// Close closes every partition and, when all of them closed in order, marks the
// dirs clean. It stops all goroutines.
func (m *Manager) Close() error {
	close(m.stop)
	m.wg.Wait()
	all := m.All()
	for _, p := range all {
		if sh := p.shard.Load(); sh != nil {
			sh.Close()
		}
	}
	var mu sync.Mutex
	var errs []error
	failed := make(map[*logDir]bool)
	each(all, closers*len(m.dirs), func(p *Partition) {
		err := p.close()
		if err == nil && p.closed.Load() {
			return
		}
		// One that was offline counts too: its files must be looked at again, and
		// the mark stands for every partition of the dir.
		mu.Lock()
		defer mu.Unlock()
		failed[p.dir] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.TP, err))
		}
	})
	// A start that was given up before any partition opened knows nothing: what the
	// last life left stays as it is.
	opened := m.image.Load() != nil
	for _, d := range m.dirs {
		if err := d.close(opened, !failed[d]); err != nil {
			errs = append(errs, fmt.Errorf("log dir %s: %w", d.path, err))
		}
	}
	return errors.Join(errs...)
}

// close closes the log in order. The watermark and ends stay readable.
func (p *Partition) close() error {
	p.waiters.fireAll(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	offline := p.Failed()
	p.failed.CompareAndSwap(nil, &fail{fmt.Errorf("%w: closed", ErrOffline)})
	if p.log == nil {
		return nil
	}
	if offline != nil {
		_ = p.log.Close(false)
		return nil
	}
	err := p.log.Close(true)
	p.closed.Store(err == nil)
	return err
}

// each runs fn over all with at most n at once.
func each[T any](all []T, n int, fn func(T)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, len(all)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				fn(all[i])
			}
		})
	}
	wg.Wait()
}
