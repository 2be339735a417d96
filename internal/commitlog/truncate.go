package commitlog

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

// TruncateTo removes everything at or above off. A batch that holds off goes whole,
// so End may come out lower. Above End it does nothing.
func (l *Log) TruncateTo(off kafka.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	if off >= l.End() {
		return nil
	}
	segs := l.segments()
	if off < segs[0].base || off <= 0 {
		return l.TruncateFullyAt(max(off, 0))
	}
	l.syncing.Lock() // no flush may count bytes that go
	defer l.syncing.Unlock()
	n := findSegment(segs, off)
	s := segs[n]
	f, err := s.acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	p, ok, err := s.search(f, off, s.sizeNow())
	if err != nil {
		return err
	}
	end := off
	pos := s.sizeNow()
	if ok {
		pos, end = p.pos, min(off, p.base)
	}
	l.gen.Add(1)
	defer l.gen.Add(1)
	l.end.Store(int64(end))
	l.publish(segs[: n+1 : n+1])
	l.flushed.Store(min(l.flushed.Load(), int64(end)))
	l.start.Store(min(l.start.Load(), int64(end)))
	// From the back, and durable before anything is appended: a power cut must not
	// bring old records back behind new ones.
	if err := l.removeSegments(segs[n+1:]); err != nil {
		return l.fail(err)
	}
	if err := l.dropSnapshotsAbove(end); err != nil {
		return l.fail(err)
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return l.fail(err)
	}
	if err := s.cutTo(end, pos); err != nil {
		return l.fail(err)
	}
	if err := f.Truncate(pos); err != nil {
		return l.fail(err)
	}
	if err := f.Sync(); err != nil {
		return l.fail(err)
	}
	l.recount()
	l.uncleanFrom(end)
	l.epochs.truncateEnd(end)
	if err := l.restoreProducers(time.Time{}.UnixMilli(), end); err != nil {
		return l.fail(err)
	}
	return nil
}

// cutTo makes the segment active again with its end at end, byte pos, in its books
// and indexes. The log file is cut later: readers must learn first.
func (s *segment) cutTo(end kafka.Offset, pos int64) error {
	if ok, err := s.trustIndex(); err != nil {
		return err
	} else if !ok {
		return fmt.Errorf("index of active segment %d cannot be used", s.base)
	}
	offsets, times, err := s.loadIndex(false, s.ix.offsetsFiled, s.ix.timesFiled, s.sizeNow())
	if err != nil {
		return err
	}
	offsets, times = s.ix.cut(append(offsets, s.ix.offsets...), append(times, s.ix.times...), end, pos)
	s.mu.Lock()
	s.active, s.timeKnown = true, true
	s.size, s.next = pos, end
	s.ring, s.ringAt = nil, 0
	since := pos
	s.ix = newIndex()
	s.ix.offsets, s.ix.times = offsets, times
	if n := len(offsets); n > 0 {
		since = pos - offsets[n-1].pos
	}
	s.ix.sinceEntry = since
	if n := len(times); n > 0 {
		s.ix.lastTime = times[n-1]
	}
	s.maxTime = s.ix.lastTime
	s.mu.Unlock()
	// The largest timestamp may stand behind the last entry.
	from := s.base
	if n := len(offsets); n > 0 {
		from = offsets[n-1].offset
	}
	maxTime := s.maxTime
	if err := s.l.walk(s, from, func(b found) error {
		if ts := b.MaxTimestamp(); ts > maxTime.ts {
			maxTime = timeEntry{ts, b.LastOffset()}
		}
		return nil
	}); err != nil {
		return err
	}
	s.mu.Lock()
	s.maxTime = maxTime
	s.mu.Unlock()
	if err := writeIndexFiles(s.l, s.base, offsets, times); err != nil {
		return err
	}
	s.l.namesDirty.Store(true)
	s.mu.Lock()
	s.ix.offsetsFiled, s.ix.timesFiled = len(offsets), len(times)
	s.ix.trustedOffsets, s.ix.trustedTimes = len(offsets), len(times)
	s.ix.offsets, s.ix.times = nil, nil
	s.mu.Unlock()
	return nil
}

// TruncateFullyAt empties the log; the next record gets off.
func (l *Log) TruncateFullyAt(off kafka.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.gen.Add(1)
	defer l.gen.Add(1)
	old := l.segments()
	for _, s := range old {
		s.release(true)
	}
	if err := l.removeFiles(old); err != nil {
		return l.fail(err)
	}
	if err := l.dropSnapshotsAbove(-1); err != nil {
		return l.fail(err)
	}
	s, err := l.createSegment(off, old[len(old)-1].createdMs)
	if err != nil {
		return l.fail(err)
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return l.fail(err)
	}
	l.publish([]*segment{s})
	l.end.Store(int64(off))
	l.start.Store(int64(off))
	l.flushed.Store(min(l.flushed.Load(), int64(off)))
	l.recount()
	l.uncleanFrom(off)
	l.epochs.set(nil, true)
	l.producers.reset()
	return nil
}

// removeSegments closes and removes segments that are no longer listed.
func (l *Log) removeSegments(segs []*segment) error {
	for _, s := range segs {
		s.release(true)
	}
	return l.removeFiles(segs)
}

func (l *Log) removeFiles(segs []*segment) error {
	for _, s := range slices.Backward(segs) {
		for _, ext := range segmentExts {
			if err := l.fs.Remove(l.path(s.base, ext)); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	l.namesDirty.Store(true)
	return nil
}

// recount adds up the segments' bytes.
func (l *Log) recount() {
	var total int64
	for _, s := range l.segments() {
		total += s.sizeNow()
	}
	l.total.Store(total)
}
