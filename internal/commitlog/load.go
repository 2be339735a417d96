package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// isDamage says whether err is about the bytes and not about reading them.
func isDamage(err error) bool {
	return errors.Is(err, errTorn) || errors.Is(err, batch.ErrCorrupt) || errors.Is(err, batch.ErrMagic) || errors.Is(err, batch.ErrShort)
}

// damageAt tells damage from a disk that cannot be read.
func damageAt(file string, pos int64, err error) error {
	if isDamage(err) {
		return &CorruptError{file, pos, err}
	}
	return fmt.Errorf("commitlog: %s at byte %d: %w", file, pos, err)
}

// readTopicID compares the folder's topic id with the expected one and writes it
// where it is missing or unreadable.
func (op *opening) readTopicID(fresh bool) error {
	if !fresh {
		b, err := op.fs.ReadFile(op.file(metadataFile))
		if err == nil {
			var id kafka.TopicID
			if id, err = parseTopicID(b); err == nil {
				if !op.id.IsZero() && !id.IsZero() && id != op.id {
					return fmt.Errorf("commitlog: %s holds topic id %s, want %s: %w", op.Dir(), id, op.id, kafka.ErrInconsistentTopicID)
				}
				if !id.IsZero() || op.id.IsZero() {
					op.id = id
					return nil
				}
			}
		}
		if err != nil && !isNotExist(err) {
			op.log.Warn("topic id not readable, written anew", "partition", op.tp.String(), "err", err)
		}
	}
	if op.id.IsZero() {
		return nil
	}
	path := op.file(metadataFile)
	write := op.replace
	if fresh {
		write = op.put // nothing to keep, and thousands of partitions may be made at once
	}
	if err := write(path, encodeTopicID(op.id)); err != nil {
		return err
	}
	op.namesDirty.Store(true)
	op.unsynced.add(path)
	return nil
}

func encodeTopicID(id kafka.TopicID) []byte {
	return fmt.Appendf(nil, "version: 0\ntopic_id: %s", id)
}

func parseTopicID(b []byte) (kafka.TopicID, error) {
	version, rest, _ := strings.Cut(strings.TrimRight(string(b), "\r\n"), "\n")
	if strings.TrimSpace(version) != "version: 0" {
		return kafka.TopicID{}, fmt.Errorf("%s begins with %.40q, want version: 0", metadataFile, version)
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(rest), "topic_id: ")
	if !ok {
		return kafka.TopicID{}, fmt.Errorf("%s has no topic_id", metadataFile)
	}
	return kafka.ParseTopicID(strings.TrimSpace(text))
}

// readEpochs loads the epoch file; false when it must be rebuilt.
func (op *opening) readEpochs() bool {
	var b []byte
	err := error(fs.ErrNotExist)
	if _, have := op.sizes[epochFile]; have {
		b, err = op.fs.ReadFile(op.file(epochFile))
	}
	if err == nil {
		var chain []epochStart
		if chain, err = parseEpochs(b); err == nil {
			op.epochs.set(chain, false)
			return true
		}
	}
	if isNotExist(err) {
		empty := true
		for _, s := range op.segs {
			empty = empty && s.size == 0
		}
		if empty || !op.cfg.Clean && op.cfg.RecoveryPoint <= op.segs[0].base {
			return true // recovery sees every batch
		}
	}
	op.log.Warn("leader epochs rebuilt from the batches", "partition", op.tp.String(), "why", err.Error())
	return false
}

// rebuildEpochs takes the chain from the batches. A segment whose first epoch is
// also the next one's holds no other and is not walked.
func (op *opening) rebuildEpochs() error {
	op.epochs.set(nil, true)
	firstEpoch := func(s *segment) (kafka.Epoch, error) {
		f, err := s.acquire()
		if err != nil {
			return 0, err
		}
		defer f.Release()
		b, err := newScanner(f, 0, s.size, false).next()
		if err != nil {
			return 0, damageAt(f.Name(), 0, err)
		}
		return b.LeaderEpoch(), nil
	}
	for i, s := range op.segs {
		if s.size == 0 {
			continue
		}
		first, err := firstEpoch(s)
		if err != nil {
			return err
		}
		if first >= 0 {
			op.epochs.assign(first, s.base)
		}
		if i+1 < len(op.segs) && op.segs[i+1].size > 0 {
			next, err := firstEpoch(op.segs[i+1])
			if err != nil {
				return err
			}
			if next == first {
				continue
			}
		}
		err = op.walk(s, 0, func(b found) error {
			if e := b.LeaderEpoch(); e >= 0 {
				op.epochs.assign(e, b.BaseOffset())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// walk calls fn for the batches of a segment that end at or above from. What fn
// finds wrong with a batch is told with its file and place.
func (l *Log) walk(s *segment, from kafka.Offset, fn func(b found) error) error {
	f, err := s.acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	size := s.sizeNow()
	pos := int64(0)
	if from > s.base {
		p, ok, err := s.search(f, from, size)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		pos = p.pos
	}
	sc := newScanner(f, pos, size, false)
	for {
		b, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damageAt(f.Name(), sc.pos, err)
		}
		if b.LastOffset() < from {
			continue
		}
		if err := fn(b); err != nil {
			var named *CorruptError
			if isDamage(err) && !errors.As(err, &named) {
				return damageAt(f.Name(), b.pos, err)
			}
			return err
		}
	}
}

// dropSnapshotsAbove removes snapshots above end: what they tell of is not in the
// log. The caller makes that durable before the log grows there again.
func (l *Log) dropSnapshotsAbove(end kafka.Offset) error {
	for n := len(l.snapshots); n > 0 && l.snapshots[n-1] > end; n-- {
		if err := l.fs.Remove(l.path(l.snapshots[n-1], snapshotExt)); err != nil && !isNotExist(err) {
			return err
		}
		l.removed.Store(true)
		l.snapshots = l.snapshots[:n-1]
	}
	return nil
}

// restoreProducers rebuilds the producer state as of End: from the newest usable
// snapshot at or below newest and the batches after it. The aborted transactions of
// these batches are indexed anew, so after a crash newest is the recovery point: what
// the index holds above it may be lost, whatever snapshots survived.
func (l *Log) restoreProducers(nowMs int64, newest kafka.Offset) error {
	l.producers.reset()
	segs := l.segments()
	// Segments that hold deleted records still tell of their producers; a snapshot
	// of before the first segment misses what was between.
	end, from := l.End(), segs[0].base
	expiration := l.options().ProducerExpirationMs
	for i := len(l.snapshots) - 1; i >= 0 && l.snapshots[i] >= from; i-- {
		off := l.snapshots[i]
		if off > newest {
			continue
		}
		b, err := l.fs.ReadFile(l.path(off, snapshotExt))
		var entries []snapshotEntry
		if err == nil {
			entries, err = parseSnapshot(b)
		}
		if err == nil {
			l.producers.load(entries, nowMs, expiration)
			from = off
			break
		}
		l.log.Warn("producer snapshot not usable", "partition", l.tp.String(), "offset", int64(off), "err", err)
		if err := l.fs.Remove(l.path(off, snapshotExt)); err != nil && !isNotExist(err) {
			return err
		}
		l.snapshots = slices.Delete(l.snapshots, i, i+1)
	}
	for _, s := range segs[findSegment(segs, from):] {
		if s.next > from || s.size > 0 {
			if err := s.cutAborted(from); err != nil {
				return err
			}
		}
		if from >= end {
			continue
		}
		err := l.walk(s, from, func(b found) error {
			if !b.HasProducer() || b.BaseOffset() < from {
				return nil
			}
			txn, aborted, err := l.producers.update(b.View)
			if err == nil && aborted {
				err = s.addAborted(txn)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	l.producers.expire(nowMs, expiration)
	return nil
}

// recallProducer completes the window of a producer that came from a snapshot,
// which knows its last batch only, by looking for the earlier ones in the log. It
// says whether it found any: then b is to be judged again.
func (l *Log) recallProducer(b batch.View) bool {
	l.producers.mu.Lock()
	p := l.producers.byID[b.ProducerID()]
	ask := p != nil && p.partial && p.n > 0 && b.ProducerEpoch() == p.epoch
	var last sent
	var have int8
	if ask {
		p.partial = false // once
		last, have = p.last[0], p.n
	}
	l.producers.mu.Unlock()
	if !ask || have >= window {
		return false
	}
	var earlier []sent
	segs := l.segments()
	firstWanted := last.last - kafka.Offset(last.delta)
	budget := int64(recallBytes)
	for i := findSegment(segs, firstWanted); i >= 0 && budget > 0 && len(earlier) < window; i-- {
		s := segs[i]
		var here []sent
		from := l.recallFrom(s, firstWanted, budget)
		err := l.walk(s, from, func(f found) error {
			budget -= f.size
			if f.BaseOffset() >= firstWanted {
				return io.EOF
			}
			if f.ProducerID() == b.ProducerID() && f.ProducerEpoch() == b.ProducerEpoch() && !f.Control() {
				here = append(here, sent{f.LastSequence(), f.LastOffsetDelta(), f.LastOffset(), f.MaxTimestamp()})
			}
			return nil
		})
		if err != nil && err != io.EOF {
			return false
		}
		earlier = append(here, earlier...)
	}
	if len(earlier) == 0 {
		return false
	}
	l.producers.mu.Lock()
	defer l.producers.mu.Unlock()
	all := append(earlier, p.last[:p.n]...)
	all = all[max(0, len(all)-window):]
	p.n = int8(copy(p.last[:], slices.Clone(all)))
	return true
}

// recallBytes bounds how far back recallProducer looks: five batches in flight of
// each of many producers lie well within it.
const recallBytes = 16 << 20

// recallFrom is an offset about budget bytes before off.
func (l *Log) recallFrom(s *segment, off kafka.Offset, budget int64) kafka.Offset {
	f, err := s.acquire()
	if err != nil {
		return s.base
	}
	defer f.Release()
	p, ok, err := s.search(f, off, s.sizeNow())
	if err != nil {
		return s.base
	}
	pos := s.sizeNow()
	if ok {
		pos = p.pos
	}
	if pos <= budget {
		return s.base
	}
	// No index maps positions to offsets; halve the offsets until close enough.
	lo, hi := s.base, off
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		q, ok, err := s.search(f, mid, s.sizeNow())
		if err != nil {
			return s.base
		}
		if !ok || q.pos > pos-budget {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}
