package commitlog

import (
	"errors"
	"io"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// ringLen is how many of the last batches a growing segment remembers exactly.
const ringLen = 128

// segment is one .log file with its indexes.
type segment struct {
	base kafka.Offset
	l    *Log

	// shared is nil while the file is closed. openMu guards opening and gone.
	shared atomic.Pointer[disk.Shared]
	openMu sync.Mutex
	gone   bool
	used   atomic.Bool // since the last Sweep, Rest or passing of the hand
	slot   int32       // place in Files plus one, 0: not there; guarded by Files.mu
	idle   uint8       // Rests that found it unused; only Rest's

	dirty      atomic.Bool // bytes that no sync has covered
	indexDirty atomic.Bool
	build      sync.Mutex // one rebuild of the index at a time

	jitterMs  int64
	createdMs int64
	gaps      bool // recovery saw missing offsets: compaction has been here

	mu        sync.RWMutex // guards what follows; the writer may read without it
	active    bool
	size      int64
	next      kafka.Offset // above the last batch; for an old segment the next one's base
	maxTime   timeEntry
	timeKnown bool  // maxTime is right
	firstTs   int64 // of the first batch, for rolling by time; -2 not read yet, -1 none
	ring      []place
	ringAt    int // index of the oldest, when the ring is full
	ix        index
	ixMissing bool // the files cannot be right: rebuild before use
	ixThere   bool // both files exist; the writer's own

	txnMu sync.Mutex
	txn   txnIndex
}

func (l *Log) newSegment(base kafka.Offset, nowMs int64) *segment {
	return &segment{
		base: base, l: l, next: base, createdMs: nowMs, jitterMs: l.jitter(base),
		maxTime: noTime, firstTs: -2, ix: newIndex(),
	}
}

// jitter spreads the rolls of logs that were created together; it is the same
// after a restart.
func (l *Log) jitter(base kafka.Offset) int64 {
	span := l.options().SegmentJitterMs
	if span <= 0 {
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(fileName(base, l.tp.String())) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return int64(h % uint64(span))
}

// acquire gives the open file with a reference; the caller releases it.
func (s *segment) acquire() (*disk.Shared, error) {
	if f := s.shared.Load(); f != nil && f.Acquire() {
		if !s.used.Load() {
			s.used.Store(true)
		}
		return f, nil
	}
	f, over, err := s.open()
	if over > 0 {
		s.l.files.shrink(over, s)
	}
	return f, err
}

// acquireToRead is acquire for an answer that may be long on its way. Where too many
// files are held already the error is disk.IsNoDescriptor: try again later.
func (s *segment) acquireToRead() (*disk.Shared, error) {
	if s.shared.Load() == nil {
		if err := s.l.files.admit(); err != nil {
			return nil, err
		}
	}
	return s.acquire()
}

// open opens the file, unless another has meanwhile; over is how many files are
// open beyond the bound.
func (s *segment) open() (sh *disk.Shared, over int, err error) {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.gone {
		return nil, 0, ErrGone
	}
	if f := s.shared.Load(); f != nil && f.Acquire() {
		return f, 0, nil
	}
	f, err := s.l.fs.Open(s.l.path(s.base, logExt))
	if err != nil {
		return nil, 0, err
	}
	sh = disk.NewShared(s.l.files.count(f))
	sh.Acquire()
	s.shared.Store(sh)
	s.used.Store(true)
	return sh, s.l.files.add(s), nil
}

// release closes the file as soon as its readers are done; gone: for good.
func (s *segment) release(gone bool) {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	s.gone = s.gone || gone
	s.closeLocked()
}

// closeLocked lets go of the file; openMu is held.
func (s *segment) closeLocked() {
	if s.shared.Load() == nil {
		return
	}
	s.l.files.drop(s)
	if f := s.shared.Swap(nil); f != nil {
		if err := f.Release(); err != nil {
			s.l.log.Warn("segment did not close", "file", f.Name(), "err", err)
		}
	}
}

func (s *segment) sizeNow() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

func (s *segment) nextNow() kafka.Offset {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.next
}

// remember puts a batch into the ring; the lock is held.
func (s *segment) rememberLocked(p place) {
	if len(s.ring) < ringLen {
		if s.ring == nil {
			s.ring = make([]place, 0, 8)
		}
		s.ring = append(s.ring, p)
		return
	}
	s.ring[s.ringAt] = p
	s.ringAt = (s.ringAt + 1) % ringLen
}

func (s *segment) ringGet(i int) *place {
	if len(s.ring) < ringLen {
		return &s.ring[i]
	}
	return &s.ring[(s.ringAt+i)%ringLen]
}

// ringFind finds the first remembered batch whose last offset is at or above
// target. known is false when target lies before the ring.
func (s *segment) ringFind(target kafka.Offset) (p *place, known bool) {
	n := len(s.ring)
	if n == 0 || target < s.ringGet(0).base {
		return nil, false
	}
	if last := s.ringGet(n - 1); target > last.last {
		return nil, true
	} else if target >= last.base {
		return last, true
	}
	lo, hi := 0, n-1
	for lo < hi {
		mid := (lo + hi) / 2
		if s.ringGet(mid).last >= target {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return s.ringGet(lo), true
}

// span is what a segment holds of an offset range.
type span struct {
	first place // the batch holding the first offset; size -1: not known
	limit int64 // where the range ends
}

// locate finds the bytes of the batches that hold from and all after it with a
// base below bound. ok is false when the segment has nothing at or above from.
func (s *segment) locate(file io.ReaderAt, from, bound kafka.Offset) (sp span, ok bool, err error) {
	s.mu.RLock()
	size, next := s.size, s.next
	var fromKnown, boundKnown bool
	if bound >= next {
		sp.limit, boundKnown = size, true
	} else if p, known := s.ringFind(bound); known {
		boundKnown = true
		switch {
		case p == nil:
			sp.limit = size
		case p.base >= bound:
			sp.limit = p.pos
		default:
			sp.limit = p.pos + p.size
		}
	}
	if p, known := s.ringFind(from); known {
		fromKnown = true
		if p != nil {
			sp.first, ok = *p, true
		}
	} else if from <= s.base && size > 0 {
		fromKnown, ok = true, true
		sp.first = place{base: s.base, pos: 0, size: -1}
	}
	s.mu.RUnlock()
	if !fromKnown {
		if sp.first, ok, err = s.search(file, from, size); err != nil {
			return span{}, false, err
		}
	}
	if ok && !boundKnown {
		p, found, err := s.search(file, bound, size)
		switch {
		case err != nil:
			return span{}, false, err
		case !found:
			sp.limit = size
		case p.base >= bound:
			sp.limit = p.pos
		default:
			sp.limit = p.pos + p.size
		}
	}
	return sp, ok, nil
}

// search finds the batch of target by the index and a walk over headers.
func (s *segment) search(file io.ReaderAt, target kafka.Offset, size int64) (place, bool, error) {
	pos, err := s.floor(target)
	if err != nil {
		return place{}, false, err
	}
	p, ok, err := hop(file, pos, size, target)
	if err != nil && pos > 0 && !errors.Is(err, ErrGone) {
		p, ok, err = hop(file, 0, size, target) // an index that lies costs time only
	}
	if err != nil {
		return p, false, &CorruptError{s.l.path(s.base, logExt), p.pos, err}
	}
	return p, ok, nil
}

// floor gives a position at or before the batch that holds target.
func (s *segment) floor(target kafka.Offset) (int64, error) {
	s.mu.RLock()
	if i := sort.Search(len(s.ix.offsets), func(i int) bool { return s.ix.offsets[i].offset > target }); i > 0 {
		pos := s.ix.offsets[i-1].pos
		s.mu.RUnlock()
		return pos, nil
	}
	filed := s.ix.offsetsFiled
	missing := s.ixMissing
	s.mu.RUnlock()
	if filed == 0 && !missing {
		return 0, nil
	}
	if ok, err := s.trustIndex(); !ok {
		return 0, err
	}
	s.mu.RLock()
	filed = s.ix.offsetsFiled
	s.mu.RUnlock()
	pos, err := s.floorFiled(filed, target)
	if err != nil {
		return 0, nil // gone or cut under us: the walk from 0 is right too
	}
	return pos, nil
}

// largestTime is the largest timestamp in the segment and its batch's last
// offset; ts -1 when there is none.
func (s *segment) largestTime() (timeEntry, error) {
	s.mu.RLock()
	t, known, size := s.maxTime, s.timeKnown, s.size
	s.mu.RUnlock()
	if known || size == 0 {
		return t, nil
	}
	if ok, err := s.trustIndex(); !ok {
		return noTime, err
	}
	s.mu.RLock()
	t, known = s.maxTime, s.timeKnown
	filed := s.ix.timesFiled
	s.mu.RUnlock()
	if known {
		return t, nil
	}
	if filed == 0 { // Kafka ends every time index with an entry, so this one is lost
		s.build.Lock()
		_, err := s.rebuildIndex()
		s.build.Unlock()
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.maxTime, err
	}
	var b [timeEntryBytes]byte
	f, err := s.l.fs.OpenRead(s.l.path(s.base, timeExt))
	if err != nil {
		return noTime, err
	}
	defer f.Close()
	if _, err := f.ReadAt(b[:], int64(filed-1)*timeEntryBytes); err != nil {
		return noTime, err
	}
	t = decodeTime(s.base, b[:])
	s.mu.Lock()
	s.maxTime, s.timeKnown = t, true
	s.mu.Unlock()
	return t, nil
}
