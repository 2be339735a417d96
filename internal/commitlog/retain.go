package commitlog

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

// Retain drops the oldest segments that the settings no longer keep, as far as
// they lie below the high watermark hw: those below LogStart always; by age and by
// size if Delete is set. If even the active segment has expired it is rolled, so
// that LogStart comes to End. The files go with a later Sweep; freed counts their
// bytes now.
func (l *Log) Retain(now time.Time, hw kafka.Offset) (freed int64, err error) {
	if err := l.usable(); err != nil {
		return 0, err
	}
	l.producers.lastStable(hw) // also forgets transactions that are done with
	o := l.options()
	nowMs := now.UnixMilli()
	for {
		segs := l.segments()
		n, why, err := l.expired(o, nowMs, hw)
		if err != nil {
			return freed, err
		}
		if n == 0 {
			return freed, nil
		}
		if n == len(segs) {
			if err := l.roll(now, l.End()); err != nil {
				return freed, err
			}
			segs = l.segments()
		}
		got, err := l.retire(segs, n, nowMs)
		freed += got
		if err != nil {
			return freed, err
		}
		l.log.Info("segments expired", "partition", l.tp.String(), "count", n, "bytes", got, "log_start", int64(l.LogStart()), "why", why)
	}
}

// expired counts the segments at the front that have to go, by the first rule that
// takes any.
func (l *Log) expired(o *Options, nowMs int64, hw kafka.Offset) (n int, why string, err error) {
	segs := l.segments()
	count := func(gone func(i int, s *segment, next kafka.Offset) (bool, error)) (int, error) {
		for i, s := range segs {
			next := l.End()
			if i+1 < len(segs) {
				next = segs[i+1].base
			} else if s.size == 0 {
				return i, nil // an empty active segment stays
			}
			if next > hw {
				return i, nil
			}
			ok, err := gone(i, s, next)
			if err != nil || !ok {
				return i, err
			}
		}
		return len(segs), nil
	}
	start := l.LogStart()
	n, err = count(func(i int, s *segment, next kafka.Offset) (bool, error) {
		return next <= start && i+1 < len(segs), nil
	})
	if n > 0 || err != nil || !o.Delete {
		return n, "below the log start", err
	}
	if o.RetentionMs >= 0 {
		n, err = count(func(_ int, s *segment, _ kafka.Offset) (bool, error) {
			ts, err := s.ageTime()
			if err != nil {
				return false, err
			}
			if ts > nowMs {
				l.warnFuture(s, ts)
			}
			return nowMs-ts > o.RetentionMs, nil
		})
		if n > 0 || err != nil {
			return n, "retention.ms", err
		}
	}
	if o.RetentionBytes >= 0 {
		over := l.Size() - o.RetentionBytes
		n, err = count(func(_ int, s *segment, _ kafka.Offset) (bool, error) {
			if over-s.size < 0 {
				return false, nil
			}
			over -= s.size
			return true, nil
		})
		if n > 0 || err != nil {
			return n, "retention.bytes", err
		}
	}
	return 0, "", nil
}

// ageTime is the time a segment's age counts from: its largest timestamp, or when
// its file was last written if it has none.
func (s *segment) ageTime() (int64, error) {
	t, err := s.largestTime()
	if err != nil {
		return 0, err
	}
	if t.ts >= 0 {
		return t.ts, nil
	}
	info, err := s.l.fs.Stat(s.l.path(s.base, logExt))
	if err != nil {
		return 0, err
	}
	return info.ModTime.UnixMilli(), nil
}

// warnFuture tells once per segment why nothing behind it expires by time.
func (l *Log) warnFuture(s *segment, ts int64) {
	if l.futureTs == s.base {
		return
	}
	l.futureTs = s.base
	l.log.Warn("a record is stamped in the future: this segment and all after it are kept until then",
		"partition", l.tp.String(), "segment", int64(s.base), "timestamp", time.UnixMilli(ts).UTC())
}

// retire takes the first n segments out of the log.
func (l *Log) retire(segs []*segment, n int, nowMs int64) (freed int64, err error) {
	l.publish(segs[n:len(segs):len(segs)])
	if first := segs[n].base; first > l.LogStart() {
		l.start.Store(int64(first))
	}
	l.epochs.truncateStart(l.LogStart())
	for _, s := range segs[:n] {
		freed += s.size
		if derr := l.doom(s, nowMs); err == nil {
			err = derr
		}
	}
	l.total.Add(-freed)
	keep := l.snapshots[:0]
	for _, off := range l.snapshots {
		if off >= segs[n].base {
			keep = append(keep, off)
		} else if rerr := l.fs.Remove(l.path(off, snapshotExt)); rerr != nil && !isNotExist(rerr) {
			keep = append(keep, off)
		}
	}
	l.snapshots = keep
	return freed, err
}

// doom renames a segment's files and lets Sweep remove them after the delay, which
// counts from nowMs, or if that is 0 from the next Sweep.
func (l *Log) doom(s *segment, nowMs int64) error {
	s.release(true)
	l.namesDirty.Store(true)
	due := int64(0) // no time is given: the next Sweep sets it
	if nowMs > 0 {
		due = nowMs + l.options().FileDeleteDelayMs
	}
	for _, ext := range segmentExts {
		path := l.path(s.base, ext)
		err := l.fs.Rename(path, path+deletedExt)
		if isNotExist(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("commitlog: %w", err)
		}
		l.sweeping.Lock()
		l.doomed = append(l.doomed, doomed{fileName(s.base, ext) + deletedExt, due})
		l.sweeping.Unlock()
	}
	return nil
}

// Sweep removes files whose delay has passed, closes old segments that nobody has
// read since the last Sweep, and removes the folder of a deleted log when its delay
// has passed (counted from the first Sweep after Delete). It may run beside the writer;
// one that retires segments at that moment waits for the removals.
func (l *Log) Sweep(now time.Time) error {
	nowMs := now.UnixMilli()
	// What is due later than that was set before the clock stepped back.
	latest := nowMs + l.options().FileDeleteDelayMs
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	if l.deleted.Load() {
		if l.dueMs == 0 || l.dueMs > latest {
			l.dueMs = latest
		}
		if nowMs < l.dueMs {
			return nil
		}
		return l.fs.RemoveAll(l.Dir())
	}
	if l.closed.Load() {
		return nil
	}
	segs := l.segments()
	for _, s := range segs[:len(segs)-1] {
		if s.shared.Load() != nil && !s.dirty.Load() && !s.used.Swap(false) {
			s.release(false)
		}
	}
	var first error
	keep := l.doomed[:0]
	for _, d := range l.doomed {
		if d.dueMs == 0 || d.dueMs > latest {
			d.dueMs = latest
		}
		if d.dueMs > nowMs {
			keep = append(keep, d)
			continue
		}
		if err := l.fs.Remove(l.file(d.path)); err != nil && !isNotExist(err) {
			keep = append(keep, d)
			if first == nil {
				first = err
			}
		}
	}
	l.doomed = keep
	return first
}

// Swept says whether nothing waits for a Sweep any more.
func (l *Log) Swept() bool {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	return len(l.doomed) == 0
}

// DeleteBefore moves LogStart up to off and frees the segments that lie wholly
// below it (their files at a later Sweep). The caller makes sure that off is not
// above the high watermark, and saves the new start. Below LogStart nothing
// changes; above End the error is kafka.ErrOffsetOutOfRange.
func (l *Log) DeleteBefore(off kafka.Offset) (newStart kafka.Offset, err error) {
	if err := l.usable(); err != nil {
		return l.LogStart(), err
	}
	if off > l.End() {
		return l.LogStart(), kafka.ErrOffsetOutOfRange
	}
	if off <= l.LogStart() {
		return l.LogStart(), nil
	}
	l.start.Store(int64(off))
	l.epochs.truncateStart(off)
	segs := l.segments()
	n := 0
	for n+1 < len(segs) && segs[n+1].base <= off {
		n++
	}
	if n > 0 {
		if _, err := l.retire(segs, n, 0); err != nil {
			return off, err
		}
	}
	return off, nil
}

// Delete ends the log and renames its folder so that the name is free at once; the
// folder goes with a Sweep after the delay, or whenever the caller removes Dir().
func (l *Log) Delete() error {
	if l.deleted.Load() {
		return nil
	}
	if err := l.Close(false); err != nil {
		return err
	}
	old := l.Dir()
	dir := filepath.Join(filepath.Dir(old), deleteDirName(l.tp))
	if err := l.fs.Rename(old, dir); err != nil {
		return fmt.Errorf("commitlog: delete %s: %w", l.tp, err)
	}
	l.dir.Store(&dir)
	l.deleted.Store(true)
	return l.fs.SyncDir(filepath.Dir(dir))
}

// deleteDirName is Kafka's name for a deleted partition's folder. The topic is cut
// where the name would pass 255 bytes.
func deleteDirName(tp kafka.TopicPartition) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	suffix := fmt.Sprintf("-%d.%s%s", tp.Partition, hex.EncodeToString(id[:]), deleteDirExt)
	return tp.Topic[:min(len(tp.Topic), 255-len(suffix))] + suffix
}
