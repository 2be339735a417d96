package commitlog

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Appended says where a batch went.
type Appended struct {
	Base, Last   kafka.Offset
	AppendTimeMs int64 // -1: the records keep the times they were created
	Duplicate    bool  // the batch was here already, at these offsets; nothing was written
	Rolled       bool  // a segment was closed before: a good time to flush
	LogStart     kafka.Offset
}

// Append writes a batch as leader: it gets the next offsets and the epoch, in
// place (the caller's bytes change and can be reused afterwards). Errors that are
// the producer's own are a kafka.Error: 45, 47, 48, 52 (KIP-98) and 18 for a batch
// larger than a segment. On a full disk the batch is taken back and the log goes on
// when there is room (disk.IsNoSpace); any other write error sticks.
func (l *Log) Append(now time.Time, b batch.View, epoch kafka.Epoch) (Appended, error) {
	if err := l.usable(); err != nil {
		return Appended{}, err
	}
	if int64(len(b)) > l.options().SegmentBytes {
		return Appended{}, kafka.ErrRecordListTooLarge
	}
	if b.HasProducer() {
		dup, repeats, err := l.checkProducer(now, b)
		if err != nil {
			return Appended{}, err
		}
		if repeats {
			a := Appended{Base: dup.last - kafka.Offset(dup.delta), Last: dup.last, AppendTimeMs: -1, Duplicate: true, LogStart: l.LogStart()}
			if b.AppendTime() {
				a.AppendTimeMs = dup.ts
			}
			return a, nil
		}
	}
	b.Stamp(kafka.Offset(l.end.Load()), epoch)
	return l.write(now, b)
}

// AppendAt writes a batch as follower, with the offsets and the epoch it has. It
// must not begin below End; it may begin above, where the leader's log has a gap.
func (l *Log) AppendAt(now time.Time, b batch.View) (Appended, error) {
	if err := l.usable(); err != nil {
		return Appended{}, err
	}
	if base := b.BaseOffset(); base < l.End() || b.LastOffsetDelta() < 0 {
		return Appended{}, fmt.Errorf("commitlog: %s: batch at %d to %d does not follow end %d", l.tp, base, b.LastOffset(), l.End())
	}
	return l.write(now, b)
}

func (l *Log) checkProducer(now time.Time, b batch.View) (sent, bool, error) {
	dup, repeats, err := l.producers.check(b)
	if err == kafka.ErrOutOfOrderSequenceNumber && l.recallProducer(b) {
		dup, repeats, err = l.producers.check(b)
	}
	return dup, repeats, err
}

// write puts a stamped batch behind the last.
func (l *Log) write(now time.Time, b batch.View) (Appended, error) {
	a := Appended{Base: b.BaseOffset(), Last: b.LastOffset(), AppendTimeMs: -1, LogStart: l.LogStart()}
	if b.AppendTime() {
		a.AppendTimeMs = b.MaxTimestamp()
	}
	s := l.active()
	roll, err := s.shouldRoll(now, b)
	if err != nil {
		return Appended{}, err
	}
	if roll {
		// Leave room below the batch if its offset jumps, as Kafka does.
		if err := l.roll(now, max(a.Last-math.MaxInt32, l.End())); err != nil {
			return Appended{}, err
		}
		a.Rolled = true
		s = l.active()
	}
	f, err := s.acquire()
	if err != nil {
		if disk.IsNoDescriptor(err) {
			return Appended{}, fmt.Errorf("commitlog: append to %s: %w", l.tp, err) // nothing was written
		}
		return Appended{}, l.fail(err)
	}
	defer f.Release()
	pos := s.size
	s.dirty.Store(true)
	if _, err := f.WriteAt(b, pos); err != nil {
		return Appended{}, l.takeBack(f, pos, err)
	}
	if e := b.LeaderEpoch(); e >= 0 {
		l.epochs.assign(e, a.Base)
	}
	if b.HasProducer() {
		txn, aborted, err := l.producers.update(b)
		if err == nil && aborted {
			err = s.addAborted(txn)
		}
		if err != nil {
			return Appended{}, l.fail(err) // the batch is in the file, its effect is not
		}
	}
	s.grow(b, pos)
	l.total.Add(int64(len(b)))
	l.end.Store(int64(a.Last) + 1)
	if len(s.ix.offsets) >= pendingMax || len(s.ix.times) >= pendingMax {
		if err := s.fileIndex(false); err != nil && !disk.IsNoSpace(err) {
			l.log.Warn("index not written", "partition", l.tp.String(), "segment", int64(s.base), "err", err)
		}
	}
	return a, nil
}

// takeBack removes what a failed write may have left, so that the next start finds
// no torn tail. If it was for lack of room the log goes on.
func (l *Log) takeBack(f disk.File, pos int64, err error) error {
	err = fmt.Errorf("commitlog: append to %s at byte %d: %w", f.Name(), pos, err)
	if terr := f.Truncate(pos); terr != nil {
		return l.fail(errors.Join(err, terr))
	}
	if !disk.IsNoSpace(err) {
		return l.fail(err)
	}
	return err
}

// grow takes the written batch into the segment's books.
func (s *segment) grow(b batch.View, pos int64) {
	last, size, ts := b.LastOffset(), int64(len(b)), b.MaxTimestamp()
	interval := int64(s.l.options().IndexIntervalBytes)
	s.mu.Lock()
	if ts > s.maxTime.ts {
		s.maxTime = timeEntry{ts, last}
	}
	if s.size == 0 {
		s.firstTs = ts
	}
	s.ix.add(last, pos, size, s.maxTime, interval)
	s.rememberLocked(place{b.BaseOffset(), last, pos, size})
	s.size = pos + size
	s.next = last + 1
	s.mu.Unlock()
}

// shouldRoll: Kafka's LogSegment.shouldRoll. Time counts in record timestamps once
// the segment has one, so that a replayed topic is cut as the original was.
func (s *segment) shouldRoll(now time.Time, b batch.View) (bool, error) {
	if s.size == 0 {
		return b.LastOffset()-s.base > math.MaxInt32, nil
	}
	o := s.l.options()
	if s.size+int64(len(b)) > o.SegmentBytes || s.size+int64(len(b)) > math.MaxInt32 ||
		b.LastOffset()-s.base > math.MaxInt32 || s.ix.full(o.IndexMaxBytes) || o.Compact && o.RollDirtyBytes > 0 && s.size >= o.RollDirtyBytes {
		return true, nil
	}
	return s.overdue(now, b.MaxTimestamp())
}

// overdue says whether the segment is too old to take a record of time ts.
func (s *segment) overdue(now time.Time, ts int64) (bool, error) {
	if s.size == 0 {
		return false, nil
	}
	if s.firstTs == -2 {
		f, err := s.acquire()
		if err != nil {
			return false, err
		}
		defer f.Release()
		first, err := newScanner(f, 0, s.size, false).next()
		if err != nil {
			return false, &CorruptError{f.Name(), 0, err}
		}
		s.firstTs = first.MaxTimestamp()
	}
	waited := now.UnixMilli() - s.createdMs
	if s.firstTs >= 0 {
		waited = ts - s.firstTs
	}
	o := s.l.options()
	limit := o.SegmentMs
	if o.Compact { // a record in the active segment cannot be compacted
		limit = min(limit, o.MaxCompactionLagMs)
	}
	return waited > limit-s.jitterMs, nil
}

// roll closes the active segment and begins one at base.
func (l *Log) roll(now time.Time, base kafka.Offset) error {
	old := l.active()
	if err := old.fileIndex(true); err != nil {
		return fmt.Errorf("commitlog: roll of %s: %w", l.tp, err)
	}
	if err := l.trim(old); err != nil {
		return l.fail(err)
	}
	s, err := l.createSegment(base, now.UnixMilli())
	if err != nil {
		return fmt.Errorf("commitlog: roll of %s: %w", l.tp, err)
	}
	l.producers.expire(now.UnixMilli(), l.options().ProducerExpirationMs)
	l.takeSnapshot(base)
	l.dropSnapshots()
	old.mu.Lock()
	old.active, old.timeKnown = false, true
	old.next = base
	old.ring, old.ix.offsets, old.ix.times = nil, nil, nil
	old.mu.Unlock()
	segs := l.segments()
	l.publish(append(segs[:len(segs):len(segs)], s))
	return nil
}

// createSegment makes an empty active segment's file.
func (l *Log) createSegment(base kafka.Offset, nowMs int64) (*segment, error) {
	f, err := l.fs.Create(l.path(base, logExt))
	if err != nil {
		return nil, err
	}
	if err := l.reserve(f); err != nil {
		f.Close()
		_ = l.fs.Remove(l.path(base, logExt))
		return nil, err
	}
	s := l.newSegment(base, nowMs)
	s.active, s.timeKnown = true, true
	s.txn.loaded = true
	s.shared.Store(disk.NewShared(l.files.count(f)))
	s.used.Store(true)
	if over := l.files.add(s); over > 0 {
		l.files.shrink(over, s)
	}
	l.namesDirty.Store(true)
	return s, nil
}
