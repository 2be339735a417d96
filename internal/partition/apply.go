package partition

import (
	"path/filepath"
	"time"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
)

// Apply brings the partitions in line with an image. It is called from one
// goroutine, in order; when it returns, the topics the delta made are open. The
// first call opens everything the image names.
func (m *Manager) Apply(img *metadata.Image, d *metadata.Delta) {
	m.applying.Lock()
	defer m.applying.Unlock()
	if m.image.Load() == nil {
		m.openAll(img)
		m.syncDirs()
		m.image.Store(img)
		return
	}
	for _, t := range d.Deleted {
		m.remove(t)
	}
	if len(d.Deleted) > 0 {
		// What the checkpoints say of these must not be taken for a later topic of
		// the same name.
		m.checkpoint(false)
	}
	var jobs []opening
	pl := m.placing()
	for _, t := range d.Created {
		jobs = m.grow(img, t, pl, jobs)
	}
	for _, c := range d.Changed {
		jobs = m.grow(img, c.New, pl, jobs)
	}
	m.openEach(img, jobs, nil, makers*len(m.dirs))
	m.syncDirs()
	m.image.Store(img)
	m.reconfigure(img, d.ConfigsChanged)
}

// syncDirs makes the folders of new partitions durable, once for all of a change:
// an fdatasync of their files is worth nothing while a crash may lose the folder.
func (m *Manager) syncDirs() {
	for _, d := range m.dirs {
		if d.grew.Swap(false) {
			if err := m.o.FS.SyncDir(d.path); err != nil {
				d.fail(err)
			}
		}
	}
}

// openAll opens every partition of the image and sets strays aside.
func (m *Manager) openAll(img *metadata.Image) {
	for _, d := range m.dirs {
		if err := d.opened(); err != nil {
			d.fail(err)
		}
	}
	found := m.find()
	if m.setAside(img, found) {
		defer m.checkpoint(false) // as after a deletion
	}
	pl := m.placing()
	jobs := make([]opening, 0, img.PartitionCount())
	img.EachTopic(func(t *metadata.Topic) bool {
		s := m.o.Settings(img, t.Name)
		for n := range t.Partitions {
			j := opening{t: t, n: int32(n), settings: s}
			if _, known := found[kafka.TopicPartition{Topic: t.Name, Partition: j.n}.String()]; !known {
				j.in = pl.next()
			}
			jobs = append(jobs, j)
		}
		return true
	})
	m.openEach(img, jobs, found, m.atOnce())
	m.twice = nil // a later topic of such a name is another's
	for _, d := range m.dirs {
		d.slim()
	}
}

// opening is a partition to be opened or made.
type opening struct {
	t        *metadata.Topic
	n        int32
	settings *Settings
	in       *logDir // where to make it, if it is not found
}

// openEach opens partitions, atOnce at a time. When the process runs out of
// descriptors the rest does not wait for one, each in turn: reopenStarved comes back.
func (m *Manager) openEach(img *metadata.Image, jobs []opening, found map[string]*logDir, atOnce int) {
	m.mu.Lock()
	if len(m.parts) == 0 {
		m.parts = make(map[partKey]*Partition, len(jobs))
	}
	m.mu.Unlock()
	m.starved.Store(nil)
	each(jobs, atOnce, func(j opening) {
		p := m.open(img, j.t, j.n, j.settings, found, j.in)
		m.mu.Lock()
		m.parts[partKey{j.t.ID, j.n}] = p
		m.mu.Unlock()
	})
	m.starved.Store(nil)
	for _, j := range jobs {
		m.startShard(m.Get(j.t.ID, j.n))
	}
}

// grow lists the partitions of a topic that are not open, behind jobs, and follows
// changes of leader epoch of those that are.
func (m *Manager) grow(img *metadata.Image, t *metadata.Topic, pl placing, jobs []opening) []opening {
	s := m.o.Settings(img, t.Name)
	for n := range t.Partitions {
		if p := m.Get(t.ID, int32(n)); p != nil {
			if p.Failed() == nil && p.Epoch() < t.Partitions[n].LeaderEpoch {
				m.lead(p, &t.Partitions[n])
				p.waiters.fireAll(false)
			}
			continue
		}
		jobs = append(jobs, opening{t, int32(n), s, pl.next()})
	}
	return jobs
}

func (m *Manager) startShard(p *Partition) {
	if f := m.o.Shards[p.TP.Topic]; f != nil && p.Failed() == nil {
		p.shard.Store(f(p, m.o.Log))
	}
}

// remove closes a topic's partitions and renames their folders; the files go
// after the delete delay, so that answers being sent can end.
func (m *Manager) remove(t *metadata.Topic) {
	m.o.Metrics.DropTopic(t.Name)
	for n := range t.Partitions {
		key := partKey{t.ID, int32(n)}
		m.mu.Lock()
		p := m.parts[key]
		delete(m.parts, key)
		m.mu.Unlock()
		if p != nil {
			m.discard(p)
		}
	}
}

func (m *Manager) discard(p *Partition) {
	if sh := p.shard.Swap(nil); sh != nil {
		sh.Close()
	}
	p.dir.remove(p)
	p.mu.Lock()
	wasOffline := !p.failed.CompareAndSwap(nil, &fail{kafka.ErrUnknownTopicOrPartition})
	var err error
	if p.log != nil {
		err = p.log.Delete()
	} else {
		// It never opened: only the folder is there.
		from := filepath.Join(p.dir.path, p.TP.String())
		err = m.o.FS.RemoveAll(from)
	}
	p.mu.Unlock()
	p.waiters.fireAll(true)
	if err != nil && !wasOffline {
		m.o.Log.Error("deleted partition's files stay: delete the folder by hand", "partition", p.TP.String(), "dir", p.dir.path, "err", err)
	}
	if p.log != nil {
		m.goneMu.Lock()
		m.gone = append(m.gone, leaving{p, time.Now().Add(time.Duration(p.Settings().Log.FileDeleteDelayMs) * time.Millisecond)})
		m.goneMu.Unlock()
	}
}

// leaving is a deleted partition whose files go at a time.
type leaving struct {
	p  *Partition
	at time.Time
}

// sweepGone removes the files of partitions deleted long enough ago.
func (m *Manager) sweepGone(now time.Time) {
	m.goneMu.Lock()
	defer m.goneMu.Unlock()
	keep := m.gone[:0]
	for _, g := range m.gone {
		if now.Before(g.at) {
			keep = append(keep, g)
			continue
		}
		if err := m.o.FS.RemoveAll(g.p.log.Dir()); err != nil {
			m.o.Log.Warn("deleted partition's files cannot be removed", "partition", g.p.TP.String(), "err", err)
		}
	}
	m.gone = keep
}

// reconfigure resolves settings again for the topics that a change of configs
// touches: one topic, or all when the brokers' own changed.
func (m *Manager) reconfigure(img *metadata.Image, changed []metadata.ConfigKey) {
	all := false
	for _, k := range changed {
		if k.Kind == metadata.BrokerConfig {
			all = true
		}
	}
	if all {
		img.EachTopic(func(t *metadata.Topic) bool {
			m.applySettings(img, t)
			return true
		})
		return
	}
	for _, k := range changed {
		if k.Kind != metadata.TopicConfig {
			continue
		}
		if t, ok := img.Topic(k.Name); ok {
			m.applySettings(img, t)
		}
	}
}

func (m *Manager) applySettings(img *metadata.Image, t *metadata.Topic) {
	s := m.o.Settings(img, t.Name)
	for n := range t.Partitions {
		if p := m.Get(t.ID, int32(n)); p != nil {
			p.apply(s)
		}
	}
}
