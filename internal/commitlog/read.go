package commitlog

import (
	"errors"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Slice is what a read found: whole batches but perhaps for the last. The caller
// releases the region, once, also when it is empty.
type Slice struct {
	Region disk.Region // Len 0: nothing to read yet
	// Incomplete: even the first batch was cut short by maxBytes.
	Incomplete bool
}

// Read gives the bytes of the batches from the one that holds from up to those
// that begin below bound, at most maxBytes of them and at most to the end of one
// segment. The first batch may begin below from. A batch at the limit is cut, as
// Kafka does; with minOne the first is whole whatever its size. Error:
// kafka.ErrOffsetOutOfRange outside [LogStart, End]; disk.IsNoDescriptor when answers
// under way hold too many files.
func (l *Log) Read(from, bound kafka.Offset, maxBytes int, minOne bool) (Slice, error) {
	for try := 0; ; try++ {
		gen := l.gen.Load()
		sl, err := l.read(from, bound, maxBytes, minOne)
		if err == nil || try == readTries || !l.moved(gen, err) {
			return sl, err
		}
	}
}

// readTries bounds how often a read is done again because the log moved under it.
const readTries = 5

// moved says whether err may come from segments being removed or cut during a read
// that began at generation gen; it waits for a truncation under way.
func (l *Log) moved(gen uint64, err error) bool {
	now := l.gen.Load()
	if now%2 == 1 { // truncating: its end is the end of the sync token's hold
		l.syncing.Lock()
		l.syncing.Unlock() //nolint:staticcheck // only waits
		return true
	}
	return now != gen || errors.Is(err, ErrGone) || isNotExist(err)
}

func (l *Log) read(from, bound kafka.Offset, maxBytes int, minOne bool) (Slice, error) {
	if l.closed.Load() {
		return Slice{}, ErrClosed
	}
	if from < l.LogStart() || from > l.End() {
		return Slice{}, kafka.ErrOffsetOutOfRange
	}
	segs := l.segments()
	for i := findSegment(segs, from); i < len(segs); i++ {
		s := segs[i]
		if s.base >= bound || from >= bound {
			break
		}
		sl, ok, err := s.read(from, bound, maxBytes, minOne)
		if ok || err != nil {
			return sl, err
		}
	}
	return Slice{}, nil
}

// read answers from one segment; ok is false when it has nothing at or above from.
func (s *segment) read(from, bound kafka.Offset, maxBytes int, minOne bool) (Slice, bool, error) {
	f, err := s.acquireToRead()
	if err != nil {
		if isNotExist(err) {
			err = errors.Join(ErrGone, err)
		}
		return Slice{}, false, err
	}
	sp, ok, err := s.locate(f, from, bound)
	if err != nil || !ok {
		f.Release()
		return Slice{}, false, err
	}
	n := max(sp.limit-sp.first.pos, 0)
	var sl Slice
	if n > int64(maxBytes) {
		size := sp.first.size
		if size < 0 {
			p, found, err := hop(f, sp.first.pos, sp.limit, 0)
			if err != nil || !found {
				f.Release()
				if err != nil {
					err = &CorruptError{f.Name(), sp.first.pos, err}
				}
				return Slice{}, true, err
			}
			size = p.size
		}
		n = int64(max(maxBytes, 0))
		if n < size {
			if minOne {
				n = size
			} else {
				sl.Incomplete = true
			}
		}
	}
	if n == 0 {
		f.Release()
		return sl, true, nil
	}
	// The region takes over our reference.
	sl.Region = f.Hand(sp.first.pos, n)
	return sl, true, nil
}
