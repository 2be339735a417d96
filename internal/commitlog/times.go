package commitlog

import (
	"io"
	"sort"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// TimeOffset is the answer to a look-up by time.
type TimeOffset struct {
	Offset    kafka.Offset
	Timestamp int64 // of the record found, in ms
	Epoch     kafka.Epoch
}

// OffsetForTime finds the first record at or above LogStart and below bound whose
// timestamp is ts or later; false when there is none.
func (l *Log) OffsetForTime(ts int64, bound kafka.Offset) (TimeOffset, bool, error) {
	return l.lookUp(func() (TimeOffset, bool, error) { return l.offsetForTime(ts, bound) })
}

// lookUp does a look-up again when the log moved under it.
func (l *Log) lookUp(fn func() (TimeOffset, bool, error)) (TimeOffset, bool, error) {
	for try := 0; ; try++ {
		gen := l.gen.Load()
		r, ok, err := fn()
		if err == nil || try == readTries || !l.moved(gen, err) {
			return r, ok, err
		}
	}
}

func (l *Log) offsetForTime(ts int64, bound kafka.Offset) (TimeOffset, bool, error) {
	start := l.LogStart()
	segs := l.segments()
	for _, s := range segs[findSegment(segs, start):] {
		if s.base >= bound {
			break
		}
		t, err := s.largestTime()
		if err != nil {
			return TimeOffset{}, false, err
		}
		if t.ts < ts {
			continue
		}
		r, ok, err := s.findTime(ts, start)
		if err != nil {
			return TimeOffset{}, false, err
		}
		if ok {
			return r, r.Offset < bound, nil
		}
	}
	return TimeOffset{}, false, nil
}

// findTime finds the first record at or above start with timestamp ts or later.
func (s *segment) findTime(ts int64, start kafka.Offset) (TimeOffset, bool, error) {
	from, err := s.floorTime(ts)
	if err != nil {
		return TimeOffset{}, false, err
	}
	return s.firstRecord(max(from, start), start, ts)
}

// firstRecord looks from the batch that holds from on.
func (s *segment) firstRecord(from, start kafka.Offset, ts int64) (TimeOffset, bool, error) {
	f, err := s.acquire()
	if err != nil {
		return TimeOffset{}, false, err
	}
	defer f.Release()
	size := s.sizeNow()
	p, ok, err := s.search(f, from, size)
	if err != nil || !ok {
		return TimeOffset{}, false, err
	}
	sc := newScanner(f, p.pos, size, false)
	for {
		b, err := sc.next()
		if err == io.EOF {
			return TimeOffset{}, false, nil
		}
		if err != nil {
			return TimeOffset{}, false, &CorruptError{f.Name(), sc.pos, err}
		}
		if b.MaxTimestamp() < ts || b.LastOffset() < start {
			continue
		}
		whole, err := readBatch(f, b)
		if err != nil {
			return TimeOffset{}, false, &CorruptError{f.Name(), b.pos, err}
		}
		var r TimeOffset
		found := false
		err = whole.Each(func(rec *batch.Record) error {
			if off, t := whole.Offset(rec), whole.Timestamp(rec); t >= ts && off >= start {
				r, found = TimeOffset{off, t, whole.LeaderEpoch()}, true
				return io.EOF
			}
			return nil
		})
		if err != nil && err != io.EOF {
			return TimeOffset{}, false, &CorruptError{f.Name(), b.pos, err}
		}
		if found {
			return r, true, nil
		}
	}
}

// readBatch reads a batch whose header a scanner found.
func readBatch(r io.ReaderAt, b found) (batch.View, error) {
	if b.whole {
		return b.View, nil
	}
	v := make(batch.View, b.size)
	if n, err := r.ReadAt(v, b.pos); n < len(v) {
		if err == nil || err == io.EOF {
			err = errTorn
		}
		return nil, err
	}
	return v, nil
}

// floorTime is an offset at or before the first record with timestamp ts or later.
func (s *segment) floorTime(ts int64) (kafka.Offset, error) {
	s.mu.RLock()
	if i := sort.Search(len(s.ix.times), func(i int) bool { return s.ix.times[i].ts > ts }); i > 0 {
		off := s.ix.times[i-1].offset
		s.mu.RUnlock()
		return off, nil
	}
	filed, missing := s.ix.timesFiled, s.ixMissing
	s.mu.RUnlock()
	if filed == 0 && !missing {
		return s.base, nil
	}
	if ok, err := s.trustIndex(); !ok {
		return s.base, err
	}
	s.mu.RLock()
	filed = s.ix.timesFiled
	s.mu.RUnlock()
	e, err := s.floorTimeFiled(filed, ts)
	if err != nil || e.ts < 0 {
		return s.base, nil
	}
	return e.offset, nil
}

// MaxTimestamp finds the first record with the largest timestamp of the log (KIP-734).
func (l *Log) MaxTimestamp() (TimeOffset, bool, error) { return l.lookUp(l.findMaxTimestamp) }

func (l *Log) findMaxTimestamp() (TimeOffset, bool, error) {
	var best timeEntry = noTime
	var in *segment
	for _, s := range l.segments() {
		t, err := s.largestTime()
		if err != nil {
			return TimeOffset{}, false, err
		}
		if t.ts > best.ts && t.offset >= l.LogStart() {
			best, in = t, s
		}
	}
	if in == nil {
		return TimeOffset{}, false, nil
	}
	return in.firstRecord(best.offset, l.LogStart(), best.ts)
}
