package partition

import (
	"errors"
	"time"

	"github.com/weirmq/weir/internal/commitlog"
)

// cleanLoop compacts, one partition at a time, the dirtiest first. It rests for
// CleanBackoff when there is nothing to do. The long part of a run goes beside the
// partition's writer; only the swap of files takes its lock.
func (m *Manager) cleanLoop() {
	rest := time.NewTimer(m.o.InitialDelay)
	defer rest.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-rest.C:
		}
		for m.cleanOne(time.Now()) {
			select {
			case <-m.stop:
				return
			default:
			}
		}
		rest.Reset(m.o.CleanBackoff())
	}
}

// cleanOne compacts the partition that needs it most; false: none does, or it
// failed and waits for the next round.
func (m *Manager) cleanOne(now time.Time) bool {
	var dirtiest *Partition
	most := -1.0
	for _, p := range m.All() {
		if p.Failed() != nil || p.log == nil || !p.Settings().Log.Compact {
			continue
		}
		ratio, due, err := p.log.Cleanable(now, p.HighWatermark())
		if err != nil {
			m.o.Log.Warn("compaction cannot look at a partition", "partition", p.TP.String(), "err", err)
			continue
		}
		if due {
			ratio = max(ratio, 1)
		}
		if ratio > most && (due || ratio > p.Settings().Log.MinDirtyRatio) {
			dirtiest, most = p, ratio
		}
	}
	if dirtiest == nil {
		return false
	}
	stats, err := dirtiest.clean(now)
	switch {
	case errors.Is(err, commitlog.ErrClosed), errors.Is(err, commitlog.ErrGone):
		return false // deleted, or the broker stops; or retention took a segment meanwhile
	case err != nil:
		m.o.Log.Warn("compaction failed, trying again later", "partition", dirtiest.TP.String(), "err", err)
		return false
	case stats == nil:
		return false
	}
	m.o.Log.Debug("compacted", "partition", dirtiest.TP.String(), "records", stats.RecordsBefore, "kept", stats.RecordsKept,
		"bytes", stats.BytesBefore, "left", stats.BytesAfter)
	dirtiest.dir.noteMoved()
	return true
}

// clean runs one compaction; nil stats: none was due.
func (p *Partition) clean(now time.Time) (*commitlog.CleanStats, error) {
	c, err := p.log.PrepareClean(now, p.HighWatermark())
	if c == nil || err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Failed(); err != nil {
		c.Abort()
		return nil, commitlog.ErrClosed
	}
	stats, err := c.Commit(now)
	return &stats, err
}
