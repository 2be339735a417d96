package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

const (
	offsetEntryBytes = 8  // relative offset, position
	timeEntryBytes   = 12 // timestamp, relative offset
	txnEntryBytes    = 34

	// pendingMax is how many index entries wait in memory before they are written.
	pendingMax = 512
)

// offsetEntry: the batch that ends with offset begins at pos.
type offsetEntry struct {
	offset kafka.Offset
	pos    int64
}

// timeEntry: ts is the largest timestamp up to here, first reached by the batch
// that ends with offset.
type timeEntry struct {
	ts     int64
	offset kafka.Offset
}

var noTime = timeEntry{ts: -1, offset: kafka.NoOffset}

// index is a segment's offset and time index: a part in the files and, after it,
// entries that still wait in memory. The segment's lock guards it; only the writer
// adds. The rule when to add is Kafka's LogSegment.append.
type index struct {
	offsets []offsetEntry
	times   []timeEntry

	offsetsFiled, timesFiled int // entries in the files
	lastTime                 timeEntry
	sinceEntry               int64 // bytes appended since the last entry

	trustedOffsets, trustedTimes int // filed entries that need no check
}

func newIndex() index { return index{lastTime: noTime} }

func (ix *index) offsetCount() int { return ix.offsetsFiled + len(ix.offsets) }
func (ix *index) timeCount() int   { return ix.timesFiled + len(ix.times) }

// add tells the index of a batch before it counts; maxTime includes it.
func (ix *index) add(last kafka.Offset, pos, size int64, maxTime timeEntry, interval int64) {
	if ix.sinceEntry > interval {
		ix.offsets = append(ix.offsets, offsetEntry{last, pos})
		ix.addTime(maxTime)
		ix.sinceEntry = 0
	}
	ix.sinceEntry += size
}

func (ix *index) addTime(t timeEntry) {
	if t.ts > ix.lastTime.ts {
		ix.times = append(ix.times, t)
		ix.lastTime = t
	}
}

// full says that another entry might not fit in the size Kafka would map.
func (ix *index) full(maxBytes int) bool {
	return ix.offsetCount() >= maxBytes/offsetEntryBytes || ix.timeCount() >= maxBytes/timeEntryBytes-1
}

func encodeOffsets(buf []byte, base kafka.Offset, entries []offsetEntry) []byte {
	for _, e := range entries {
		buf = binary.BigEndian.AppendUint32(buf, uint32(e.offset-base))
		buf = binary.BigEndian.AppendUint32(buf, uint32(e.pos))
	}
	return buf
}

func encodeTimes(buf []byte, base kafka.Offset, entries []timeEntry) []byte {
	for _, e := range entries {
		buf = binary.BigEndian.AppendUint64(buf, uint64(e.ts))
		buf = binary.BigEndian.AppendUint32(buf, uint32(e.offset-base))
	}
	return buf
}

func decodeOffset(base kafka.Offset, b []byte) offsetEntry {
	return offsetEntry{base + kafka.Offset(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))}
}

func decodeTime(base kafka.Offset, b []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(b)), base + kafka.Offset(binary.BigEndian.Uint32(b[8:]))}
}

var errIndexOrder = errors.New("index entries are not ascending")

// parseOffsets reads a whole offset index of a segment of size bytes. Offsets and
// positions ascend strictly, or a page of it was lost.
func parseOffsets(base kafka.Offset, b []byte, size int64) ([]offsetEntry, error) {
	if len(b)%offsetEntryBytes != 0 {
		return nil, fmt.Errorf("%d bytes are no multiple of %d", len(b), offsetEntryBytes)
	}
	entries := make([]offsetEntry, 0, len(b)/offsetEntryBytes)
	prev := offsetEntry{base - 1, -1}
	for ; len(b) > 0; b = b[offsetEntryBytes:] {
		e := decodeOffset(base, b)
		if e.offset <= prev.offset || e.pos <= prev.pos || e.pos >= size || e.offset-base > math.MaxInt32 {
			return nil, errIndexOrder
		}
		entries = append(entries, e)
		prev = e
	}
	return entries, nil
}

func parseTimes(base kafka.Offset, b []byte) ([]timeEntry, error) {
	if len(b)%timeEntryBytes != 0 {
		return nil, fmt.Errorf("%d bytes are no multiple of %d", len(b), timeEntryBytes)
	}
	entries := make([]timeEntry, 0, len(b)/timeEntryBytes)
	prev := timeEntry{-1, base - 1}
	for ; len(b) > 0; b = b[timeEntryBytes:] {
		e := decodeTime(base, b)
		if e.ts <= prev.ts || e.offset <= prev.offset || e.offset-base > math.MaxInt32 {
			return nil, errIndexOrder
		}
		entries = append(entries, e)
		prev = e
	}
	return entries, nil
}

// fileIndex writes the waiting entries to their files. At the end of a segment's
// growth (last) it also adds the closing time entry and makes sure that both files
// exist, as Kafka expects of a whole segment. Writer only.
func (s *segment) fileIndex(last bool) error {
	if last {
		s.mu.Lock()
		s.ix.addTime(s.maxTime)
		s.mu.Unlock()
	}
	if n := len(s.ix.offsets); n > 0 || last {
		s.l.scratch = encodeOffsets(s.l.scratch[:0], s.base, s.ix.offsets)
		if err := s.l.putAt(s.l.path(s.base, indexExt), s.l.scratch, int64(s.ix.offsetsFiled)*offsetEntryBytes); err != nil {
			return err
		}
		s.mu.Lock()
		if s.ix.trustedOffsets == s.ix.offsetsFiled {
			s.ix.trustedOffsets += n
		}
		s.ix.offsetsFiled += n
		s.ix.offsets = s.ix.offsets[:0]
		s.mu.Unlock()
	}
	if n := len(s.ix.times); n > 0 || last {
		s.l.scratch = encodeTimes(s.l.scratch[:0], s.base, s.ix.times)
		if err := s.l.putAt(s.l.path(s.base, timeExt), s.l.scratch, int64(s.ix.timesFiled)*timeEntryBytes); err != nil {
			return err
		}
		s.mu.Lock()
		if s.ix.trustedTimes == s.ix.timesFiled {
			s.ix.trustedTimes += n
		}
		s.ix.timesFiled += n
		s.ix.times = s.ix.times[:0]
		s.mu.Unlock()
	}
	s.ixThere = s.ixThere || last
	s.indexDirty.Store(true)
	return nil
}

// indexWhole says whether both files are there and hold every entry, the closing
// one too.
func (s *segment) indexWhole() bool {
	return s.ixThere && len(s.ix.offsets)+len(s.ix.times) == 0 && s.maxTime.ts <= s.ix.lastTime.ts
}

func (l *Log) put(path string, data []byte) error { return l.putAt(path, data, 0) }

// putAt writes data at off of the file at path, making the file if need be.
func (l *Log) putAt(path string, data []byte, off int64) error {
	f, err := l.fs.OpenOrCreate(path)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		_, err = f.WriteAt(data, off)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// floorFiled is the position of the last of the first n filed offset entries at
// or below target; 0 when there is none.
func (s *segment) floorFiled(n int, target kafka.Offset) (int64, error) {
	var e offsetEntry
	ok, err := s.searchFile(indexExt, n, offsetEntryBytes, func(b []byte) bool {
		return decodeOffset(s.base, b).offset > target
	}, func(b []byte) { e = decodeOffset(s.base, b) })
	if !ok || err != nil {
		return 0, err
	}
	return e.pos, nil
}

// floorTimeFiled is the same for the time index.
func (s *segment) floorTimeFiled(n int, ts int64) (timeEntry, error) {
	e := timeEntry{-1, s.base}
	_, err := s.searchFile(timeExt, n, timeEntryBytes, func(b []byte) bool {
		return decodeTime(s.base, b).ts > ts
	}, func(b []byte) { e = decodeTime(s.base, b) })
	return e, err
}

// searchFile finds the last of n entries that is not above, reading single
// entries until a block of hopBytes holds the rest.
func (s *segment) searchFile(ext string, n, width int, above func([]byte) bool, take func([]byte)) (bool, error) {
	f, err := s.l.fs.OpenRead(s.l.path(s.base, ext))
	if err != nil {
		return false, err
	}
	defer f.Close()
	bp := hopBuffers.Get().(*[]byte)
	defer hopBuffers.Put(bp)
	buf := *bp
	lo, hi := 0, n // the first entry above lies in [lo, hi]
	for block := hopBytes / width; hi-lo > block; {
		mid := lo + (hi-lo)/2
		if _, err := f.ReadAt(buf[:width], int64(mid)*int64(width)); err != nil {
			return false, err
		}
		if above(buf[:width]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	from := max(lo-1, 0) // the answer may be the one before
	b := buf[:min((hi-from)*width, hopBytes/width*width)]
	if len(b) < (hi-from)*width {
		b = make([]byte, (hi-from)*width)
	}
	if len(b) > 0 {
		if m, err := f.ReadAt(b, int64(from)*int64(width)); m < len(b) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return false, err
		}
	}
	i := sort.Search(hi-from, func(i int) bool { return above(b[i*width:]) })
	if i == 0 {
		return false, nil
	}
	take(b[(i-1)*width:])
	return true, nil
}

// trustIndex makes sure, once per segment and process, that the files of an
// inactive segment's index are what they should be, and rebuilds them otherwise.
// For the active segment it answers false when they cannot be used: the writer
// may be at them.
func (s *segment) trustIndex() (bool, error) {
	s.mu.RLock()
	ok := s.ix.trustedOffsets >= s.ix.offsetsFiled && s.ix.trustedTimes >= s.ix.timesFiled && !s.ixMissing
	no, nt, size, active := s.ix.offsetsFiled, s.ix.timesFiled, s.size, s.active
	missing := s.ixMissing
	s.mu.RUnlock()
	if ok {
		return true, nil
	}
	s.build.Lock()
	defer s.build.Unlock()
	offsets, times, err := s.loadIndex(missing, no, nt, size)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ix.trustedOffsets = max(s.ix.trustedOffsets, len(offsets))
		s.ix.trustedTimes = max(s.ix.trustedTimes, len(times))
		s.ixMissing = false
		return true, nil
	}
	if active {
		return false, nil
	}
	s.mu.RLock()
	done := !s.ixMissing && s.ix.trustedOffsets >= s.ix.offsetsFiled && s.ix.trustedTimes >= s.ix.timesFiled
	s.mu.RUnlock()
	if done {
		return true, nil // another reader rebuilt it meanwhile
	}
	s.l.log.Warn("index rebuilt", "partition", s.l.tp.String(), "segment", int64(s.base), "why", err.Error())
	return s.rebuildIndex()
}

// loadIndex reads and checks the first entries of both files.
func (s *segment) loadIndex(missing bool, no, nt int, size int64) ([]offsetEntry, []timeEntry, error) {
	if missing {
		return nil, nil, errors.New("index file missing or of an impossible size")
	}
	b, err := readHead(s.l.fs, s.l.path(s.base, indexExt), no*offsetEntryBytes)
	if err != nil {
		return nil, nil, err
	}
	offsets, err := parseOffsets(s.base, b, size)
	if err != nil {
		return nil, nil, err
	}
	b, err = readHead(s.l.fs, s.l.path(s.base, timeExt), nt*timeEntryBytes)
	if err != nil {
		return nil, nil, err
	}
	times, err := parseTimes(s.base, b)
	return offsets, times, err
}

func readHead(fs disk.FS, path string, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	f, err := fs.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, n)
	if m, err := f.ReadAt(b, 0); m < n {
		return nil, fmt.Errorf("%s: %d of %d bytes: %w", path, m, n, err)
	}
	return b, nil
}

// rebuildIndex makes both files of an inactive segment anew from its batches.
func (s *segment) rebuildIndex() (bool, error) {
	file, err := s.acquire()
	if err != nil {
		return false, err
	}
	defer file.Release()
	ix, maxTime := newIndex(), noTime
	sc := newScanner(file, 0, s.sizeNow(), false)
	for {
		f, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, &CorruptError{file.Name(), sc.pos, err}
		}
		if ts := f.MaxTimestamp(); ts > maxTime.ts {
			maxTime = timeEntry{ts, f.LastOffset()}
		}
		ix.add(f.LastOffset(), f.pos, f.size, maxTime, int64(s.l.options().IndexIntervalBytes))
	}
	ix.addTime(maxTime)
	if err := writeIndexFiles(s.l, s.base, ix.offsets, ix.times); err != nil {
		return false, err
	}
	ix.offsetsFiled, ix.timesFiled = len(ix.offsets), len(ix.times)
	ix.trustedOffsets, ix.trustedTimes = ix.offsetsFiled, ix.timesFiled
	ix.offsets, ix.times = nil, nil
	s.mu.Lock()
	s.ix, s.ixMissing, s.maxTime, s.timeKnown = ix, false, maxTime, true
	s.mu.Unlock()
	return true, nil
}

func writeIndexFiles(l *Log, base kafka.Offset, offsets []offsetEntry, times []timeEntry) error {
	if err := l.replace(l.path(base, indexExt), encodeOffsets(nil, base, offsets)); err != nil {
		return err
	}
	return l.replace(l.path(base, timeExt), encodeTimes(nil, base, times))
}

// replace writes a file that can be rebuilt: in one step for readers, without a
// sync.
func (l *Log) replace(path string, data []byte) error {
	f, err := l.fs.Create(path + tmpExt)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = l.fs.Rename(path+tmpExt, path)
	}
	if err != nil {
		_ = l.fs.Remove(path + tmpExt)
	}
	return err
}

// cutIndex drops entries of what lies at or above next/pos; the files too.
func (ix *index) cut(offsets []offsetEntry, times []timeEntry, next kafka.Offset, pos int64) ([]offsetEntry, []timeEntry) {
	no := sort.Search(len(offsets), func(i int) bool { return offsets[i].offset >= next || offsets[i].pos >= pos })
	nt := sort.Search(len(times), func(i int) bool { return times[i].offset >= next })
	return slices.Clip(offsets[:no]), slices.Clip(times[:nt])
}
