package partition

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// sweepEvery is how often files past their delete delay are looked for, or more
// often where retention is.
const sweepEvery = 5 * time.Second

// restEvery is how often log files that nobody uses are looked for.
const restEvery = 5 * time.Second

// housekeep is the Manager's one loop: retention, forgotten producers, checkpoints
// and file deletion.
func (m *Manager) housekeep() {
	retention := time.NewTimer(m.o.InitialDelay)
	expire := time.NewTimer(m.o.InitialDelay)
	check := time.NewTicker(m.o.CheckpointEvery)
	starts := time.NewTicker(m.o.StartCheckpointEvery)
	sweep := time.NewTicker(min(sweepEvery, m.o.RetentionEvery))
	rest := time.NewTicker(restEvery)
	defer rest.Stop()
	defer retention.Stop()
	defer expire.Stop()
	defer check.Stop()
	defer starts.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-retention.C:
			m.retain(time.Now()) // the ticker's own time is old when the loop was busy
			retention.Reset(m.o.RetentionEvery)
		case <-expire.C:
			m.expireProducers(time.Now())
			expire.Reset(m.o.ExpireEvery)
		case <-check.C:
			m.checkpoint(false)
		case <-starts.C:
			m.checkpoint(true)
		case <-sweep.C:
			m.sweep(time.Now())
			m.reopenStarved()
		case <-rest.C:
			m.files.Rest()
		}
	}
}

// expireProducers forgets idempotent producers that were silent for long.
func (m *Manager) expireProducers(now time.Time) {
	for _, p := range m.All() {
		if p.Failed() == nil && p.log != nil {
			p.log.ExpireProducers(now)
		}
	}
}

// retain drops what the topics' retention lets go.
func (m *Manager) retain(now time.Time) {
	for _, p := range m.All() {
		if p.Failed() != nil || p.log == nil {
			continue
		}
		p.mu.Lock()
		before := p.log.LogStart()
		_, err := p.log.Retain(now, p.HighWatermark())
		moved := p.log.LogStart() != before
		p.mu.Unlock()
		if moved {
			p.dir.noteMoved()
			p.waiters.note()
		}
		p.noteDoomed()
		if err != nil {
			m.o.Log.Warn("retention failed, trying again at the next check", "partition", p.TP.String(), "err", err)
			p.dir.missed(err)
		}
	}
}

// sweep removes files whose delete delay is over. Only partitions that have such
// files are looked at.
func (m *Manager) sweep(now time.Time) {
	m.sweepGone(now)
	for _, d := range m.dirs {
		for _, p := range d.takeDoomed() {
			if p.Failed() != nil {
				continue
			}
			if err := p.log.Sweep(now); err != nil {
				m.o.Log.Warn("old segment cannot be removed, trying again", "partition", p.TP.String(), "err", err)
			}
			p.noteDoomed()
		}
	}
}

// noteDoomed lets sweep know when the partition's log has files to be removed.
func (p *Partition) noteDoomed() {
	if !p.log.Swept() {
		p.dir.mu.Lock()
		p.dir.doomed[p] = struct{}{}
		p.dir.mu.Unlock()
	}
}

func (d *logDir) takeDoomed() []*Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Keys(d.doomed))
	clear(d.doomed)
	return out
}

// checkpoint writes the log dirs' checkpoint files; onlyMoved: those where a log
// start moved.
func (m *Manager) checkpoint(onlyMoved bool) {
	for _, d := range m.dirs {
		if !onlyMoved {
			d.changed.Store(true)
		}
		if err := d.saveMoved(); err != nil && !errors.Is(err, ErrOffline) {
			m.o.Log.Warn("checkpoint not written, trying again: recovery after a kill would read more", "dir", d.path, "err", err)
			d.missed(err)
		}
	}
}

// SaveStarts writes the log starts that moved, so that an acknowledged
// DeleteRecords holds after a kill.
func (m *Manager) SaveStarts() error {
	var errs []error
	for _, d := range m.dirs {
		errs = append(errs, d.saveMoved())
	}
	return errors.Join(errs...)
}
