package partition

import (
	"errors"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/metrics"
)

// CleanerSettings are what compaction may take. They are asked for before each run.
type CleanerSettings struct {
	Threads        int           // log.cleaner.threads: runs at once; 0: none begins
	Backoff        time.Duration // log.cleaner.backoff.ms: rest when nothing is due
	KeyBytes       int64         // log.cleaner.dedupe.buffer.size, over all threads
	KeyLoad        float64       // log.cleaner.io.buffer.load.factor
	BufferBytes    int           // log.cleaner.io.buffer.size, over all threads
	BytesPerSecond float64       // log.cleaner.io.max.bytes.per.second, over all threads
}

// cleanAgain is how long a partition whose compaction failed is left alone, so that
// it does not keep the others from theirs.
const cleanAgain = 10 * time.Minute

// wakeEvery is how often a closed segment makes the cleaner look before its rest is over.
const wakeEvery = time.Second

// cleaner starts compactions, the dirtiest partition first, at most
// CleanerSettings.Threads at once. The long part of a run goes beside the
// partition's writer; only the swap of files takes its lock.
type cleaner struct {
	m    *Manager
	pace pacer
	done chan cleaned
	wg   sync.WaitGroup
	busy int
	bad  map[*Partition]struct{} // whose last compaction failed
}

// cleaned is the end of a run.
type cleaned struct {
	p   *Partition
	err error // why it failed; nil also when it had no chance to
}

func (m *Manager) newCleaner() *cleaner {
	return &cleaner{m: m, done: make(chan cleaned), bad: make(map[*Partition]struct{}), pace: pacer{
		rate: func() float64 { return m.o.Cleaner().BytesPerSecond },
		stop: m.stop,
	}}
}

// cleanLoop is the goroutine that owns the cleaner.
func (m *Manager) cleanLoop() {
	c := m.newCleaner()
	defer c.wg.Wait()
	rest := time.NewTimer(m.o.Cleaner().Backoff)
	defer rest.Stop()
	var looked time.Time
	for {
		select {
		case <-m.stop:
			return
		case e := <-c.done:
			c.finished(e)
		case <-m.wake:
			if d := time.Since(looked); d < wakeEvery {
				rest.Reset(wakeEvery - d)
				continue
			}
		case <-rest.C:
		}
		looked = time.Now()
		s := m.o.Cleaner()
		for c.begin(time.Now(), s) {
		}
		rest.Reset(s.Backoff)
	}
}

// begin starts a run on the partition that needs it most; false: none does, or
// enough run.
func (c *cleaner) begin(now time.Time, s CleanerSettings) bool {
	if c.busy >= s.Threads {
		return false
	}
	p := c.dirtiest(now)
	if p == nil {
		return false
	}
	p.cleaning = true
	c.busy++
	c.wg.Go(func() {
		err := c.run(p, s)
		select {
		case c.done <- cleaned{p, err}:
		case <-c.m.stop:
		}
	})
	return true
}

func (c *cleaner) finished(e cleaned) {
	e.p.cleaning = false
	c.busy--
	if e.err != nil {
		c.bad[e.p] = struct{}{}
	} else {
		delete(c.bad, e.p)
	}
}

// restsUntil says whether a partition whose compaction failed is left alone. A time
// further away than that ever lasts was set before the clock stepped back.
func restsUntil(unixNano int64, now time.Time) bool {
	left := unixNano - now.UnixNano()
	return left > 0 && left <= int64(cleanAgain)
}

func (c *cleaner) dirtiest(now time.Time) *Partition {
	var dirtiest *Partition
	most, shown := -1.0, 0.0
	all := c.m.All()
	for _, p := range all {
		if p.cleaning || p.Failed() != nil || p.log == nil || !p.Settings().Log.Compact || restsUntil(p.cleanAfter.Load(), now) {
			continue
		}
		ratio, due, err := p.log.Cleanable(now, p.HighWatermark())
		if err != nil {
			if !errors.Is(err, commitlog.ErrGone) && !errors.Is(err, commitlog.ErrClosed) {
				p.cleanAfter.Store(now.Add(cleanAgain).UnixNano())
				c.bad[p] = struct{}{}
				c.m.o.Log.Warn("compaction cannot look at a partition, trying again later", "partition", p.TP.String(), "err", err)
			}
			continue
		}
		shown = max(shown, ratio)
		if due {
			ratio = max(ratio, 1)
		}
		if ratio > most && (due || ratio > p.Settings().Log.MinDirtyRatio) {
			dirtiest, most = p, ratio
		}
	}
	c.m.o.Metrics.CleanerLooked(now, shown, c.uncleanable(now, all))
	return dirtiest
}

// uncleanable adds up per log dir the partitions whose last compaction failed, and
// forgets those that are gone or not to be compacted any more.
func (c *cleaner) uncleanable(now time.Time, all []*Partition) []metrics.Uncleanable {
	out := make([]metrics.Uncleanable, len(c.m.dirs))
	still := make(map[*Partition]struct{}, len(c.bad))
	for i, d := range c.m.dirs {
		out[i].Dir = d.path
		if len(c.bad) == 0 {
			continue // nearly always
		}
		for _, p := range all {
			if _, bad := c.bad[p]; !bad || p.dir != d || p.Failed() != nil || !p.Settings().Log.Compact {
				continue
			}
			still[p] = struct{}{}
			out[i].Partitions++
			if bytes, err := p.log.DirtyBytes(now, p.HighWatermark()); err == nil {
				out[i].Bytes += bytes
			}
		}
	}
	c.bad = still
	return out
}

// run is one compaction, on a goroutine of its own.
func (c *cleaner) run(p *Partition, s CleanerSettings) error {
	threads := max(s.Threads, 1)
	now, log := time.Now(), c.m.o.Log
	before := p.log.Cleaned()
	stats, err := p.clean(now, commitlog.CleanLimits{
		KeyBytes: s.KeyBytes / int64(threads), KeyLoad: s.KeyLoad,
		Buffer: s.BufferBytes / threads / 2, // half to read, half to write
		Pace:   c.pace.wait,
	})
	switch {
	case errors.Is(err, commitlog.ErrClosed), errors.Is(err, commitlog.ErrGone), errors.Is(err, errStopped):
		return nil // deleted, or the broker stops; or retention took a segment meanwhile
	case err != nil:
		p.cleanAfter.Store(now.Add(cleanAgain).UnixNano())
		log.Warn("compaction failed, trying again later", "partition", p.TP.String(), "err", err)
		if _, bad := errors.AsType[*commitlog.FailedError](err); bad {
			p.dir.fail(err)
		}
		return err
	case stats == nil || stats.Cleaned == before && stats.RecordsKept == stats.RecordsBefore && stats.BytesAfter == stats.BytesBefore:
		// It was due and nothing came of it: the others have their turn first.
		p.cleanAfter.Store(now.Add(min(max(s.Backoff, time.Second), cleanAgain)).UnixNano())
		return nil
	}
	c.m.o.Metrics.Compacted(stats.BytesBefore, stats.BytesAfter, stats.KeysFilled, time.Since(now))
	log.Debug("compacted", "partition", p.TP.String(), "records", stats.RecordsBefore, "kept", stats.RecordsKept,
		"bytes", stats.BytesBefore, "left", stats.BytesAfter)
	p.dir.noteMoved()
	return nil
}

// clean runs one compaction; nil stats: none was due.
func (p *Partition) clean(now time.Time, limits commitlog.CleanLimits) (*commitlog.CleanStats, error) {
	c, err := p.log.PrepareClean(now, p.HighWatermark(), limits)
	if c == nil || err != nil {
		return nil, err
	}
	p.dir.noteMoved()
	if err := p.dir.saveMoved(); err != nil { // the recovery point, before there are gaps below it
		c.Abort()
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Failed(); err != nil {
		c.Abort()
		return nil, commitlog.ErrClosed
	}
	stats, err := c.Commit(now)
	p.noteDoomed()
	return &stats, err
}
