package commitlog

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Compaction keeps the last record of every key (KIP-534 and Kafka's Cleaner). A run
// has two parts. PrepareClean, beside the writer, reads the dirty part of the log,
// notes every key's last offset, and writes what remains of the closed segments to
// .cleaned files. Commit, by the writer, puts these in place of the old segments.
// The first offset that was not looked at is the next run's start.

// cleanKeysMax bounds the keys of one run; each takes about 50 bytes. What lies
// behind is left to the next run.
const cleanKeysMax = 2 << 20

// ErrCleaning: another run is under way.
var ErrCleaning = errors.New("commitlog: being compacted already")

// CleanStats tells what a run did.
type CleanStats struct {
	Cleaned                    kafka.Offset // the next run begins here
	SegmentsBefore, After      int
	BytesBefore, BytesAfter    int64
	RecordsBefore, RecordsKept int64
	NoKey                      int64 // records without a key, which are dropped
}

// cleanerState is what compaction remembers between two runs.
type cleanerState struct {
	mu      sync.Mutex
	running bool
	cleaned kafka.Offset // everything below has been cleaned
	scanned bool         // horizon is known
	horizon int64        // when the first tombstone or marker may go, in ms; MaxInt64: none
}

// Cleaned is the first offset that no compaction has looked at: what
// cleaner-offset-checkpoint keeps.
func (l *Log) Cleaned() kafka.Offset {
	l.cleaner.mu.Lock()
	defer l.cleaner.mu.Unlock()
	return l.cleaner.cleaned
}

// Cleanable says how much of the closed part of the log is dirty, 0 to 1, and
// whether a run is due whatever the ratio: a record waits for longer than
// MaxCompactionLagMs, or tombstones may go. Logs are to be cleaned by falling ratio
// once it passes MinDirtyRatio.
func (l *Log) Cleanable(now time.Time, hw kafka.Offset) (ratio float64, due bool, err error) {
	o := l.options()
	if !o.Compact {
		return 0, false, nil
	}
	from, to, err := l.dirtyRange(now, hw)
	if err != nil {
		return 0, false, err
	}
	nowMs := now.UnixMilli()
	var clean, dirty int64
	segs := l.segments()
	for i, s := range segs[:len(segs)-1] {
		switch {
		case segs[i+1].base <= from:
			clean += s.sizeNow()
		case s.base < to:
			dirty += s.sizeNow()
			if !due && o.MaxCompactionLagMs < math.MaxInt64 {
				first, err := s.firstTime()
				if err != nil {
					return 0, false, err
				}
				due = first >= 0 && nowMs-first > o.MaxCompactionLagMs
			}
		}
	}
	if dirty > 0 {
		ratio = float64(dirty) / float64(clean+dirty)
	}
	horizon, err := l.deleteHorizon()
	return ratio, due || horizon <= nowMs, err
}

// dirtyRange is what a run may look at: from the first offset not cleaned up to the
// active segment, the last stable offset, or a record too young.
func (l *Log) dirtyRange(now time.Time, hw kafka.Offset) (from, to kafka.Offset, err error) {
	from = max(l.Cleaned(), l.LogStart())
	if from > l.End() {
		from = l.LogStart() // the log was truncated below a saved point
	}
	segs := l.segments()
	to = min(segs[len(segs)-1].base, l.LastStable(hw))
	if lag := l.options().MinCompactionLagMs; lag > 0 {
		for i, s := range segs[:len(segs)-1] {
			if segs[i+1].base <= from {
				continue
			}
			if s.base >= to {
				break
			}
			t, err := s.largestTime()
			if err != nil {
				return 0, 0, err
			}
			if t.ts > now.UnixMilli()-lag {
				to = min(to, s.base)
				break
			}
		}
	}
	return from, max(to, from), nil
}

// uncleanFrom: what lies at or above off was cut away and may come again.
func (l *Log) uncleanFrom(off kafka.Offset) {
	l.cleaner.mu.Lock()
	defer l.cleaner.mu.Unlock()
	l.cleaner.cleaned = min(l.cleaner.cleaned, off)
}

// firstTime is the time of the segment's first batch.
func (s *segment) firstTime() (int64, error) {
	f, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer f.Release()
	if s.sizeNow() == 0 {
		return -1, nil
	}
	b, err := newScanner(f, 0, s.sizeNow(), false).next()
	if err != nil {
		return 0, &CorruptError{f.Name(), 0, err}
	}
	return b.MaxTimestamp(), nil
}

// deleteHorizon is the earliest delete horizon in the closed segments. After a
// start it is looked up in the headers, once: on a quiet topic nothing else would
// ever bring the tombstones away.
func (l *Log) deleteHorizon() (int64, error) {
	l.cleaner.mu.Lock()
	defer l.cleaner.mu.Unlock()
	if l.cleaner.scanned {
		return l.cleaner.horizon, nil
	}
	horizon := int64(math.MaxInt64)
	segs := l.segments()
	for _, s := range segs[:len(segs)-1] {
		if s.base >= l.cleaner.cleaned {
			break // never cleaned: no batch has a horizon
		}
		err := l.walk(s, s.base, func(b found) error {
			if ms, ok := b.DeleteHorizon(); ok {
				horizon = min(horizon, ms)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	l.cleaner.scanned, l.cleaner.horizon = true, horizon
	return horizon, nil
}

// Clean is PrepareClean and Commit in one, for a writer that can wait.
func (l *Log) Clean(now time.Time, hw kafka.Offset) (CleanStats, error) {
	c, err := l.PrepareClean(now, hw)
	if c == nil || err != nil {
		return CleanStats{}, err
	}
	return c.Commit(now)
}

// Cleaning is a prepared run; Commit or Abort ends it.
type Cleaning struct {
	l       *Log
	gen     uint64 // of the log: a truncation since makes the key map wrong
	stats   CleanStats
	groups  []*cleanGroup
	horizon int64
	nowMs   int64
	keepMs  int64 // delete.retention.ms
	last    keyMap
	end     kafka.Offset // the key map knows every record of the dirty part below
	active  map[kafka.ProducerID]lastOfProducer
	buf     batch.View
	keep    []bool
}

// cleanGroup is neighbouring segments that become one.
type cleanGroup struct {
	old  []*segment
	new  *segment
	file disk.File
	size int64
	out  []byte // bytes not written yet
	txns []AbortedTxn
	ix   index
	max  timeEntry
	next kafka.Offset
}

// lastOfProducer: the batch that must stay, even empty, for the producer's sequence,
// or the marker for its epoch.
type lastOfProducer struct {
	offset kafka.Offset // NoOffset: no data since its last marker
	epoch  int16
}

type keyMap map[[16]byte]kafka.Offset

func keyOf(key []byte) (k [16]byte) {
	sum := sha256.Sum256(key)
	copy(k[:], sum[:])
	return k
}

// PrepareClean does the long part of a run if one is due: the dirty ratio is above
// MinDirtyRatio, a record waits for longer than MaxCompactionLagMs, or tombstones may
// go. Otherwise, and without the Compact option, it gives nil, nil. It may run beside
// the writer; if the writer removes segments meanwhile it fails or Commit does, and
// nothing has happened.
func (l *Log) PrepareClean(now time.Time, hw kafka.Offset) (*Cleaning, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	l.cleaner.mu.Lock()
	if l.cleaner.running {
		l.cleaner.mu.Unlock()
		return nil, ErrCleaning
	}
	l.cleaner.running = true
	l.cleaner.mu.Unlock()
	c := &Cleaning{l: l, gen: l.gen.Load(), nowMs: now.UnixMilli(), keepMs: l.options().DeleteRetentionMs, horizon: math.MaxInt64}
	work, err := c.prepare(now, hw)
	if !work || err != nil {
		c.Abort()
		return nil, err
	}
	return c, nil
}

// Abort gives a prepared run up.
func (c *Cleaning) Abort() {
	for _, g := range c.groups {
		if g.file != nil {
			g.file.Close()
		}
		for _, ext := range segmentExts {
			_ = c.l.fs.Remove(c.l.path(g.old[0].base, ext+cleanedExt)) // the next start would too
		}
	}
	c.groups = nil
	c.finish()
}

func (c *Cleaning) finish() {
	c.l.cleaner.mu.Lock()
	c.l.cleaner.running = false
	c.l.cleaner.mu.Unlock()
}

func (c *Cleaning) prepare(now time.Time, hw kafka.Offset) (work bool, err error) {
	l := c.l
	ratio, due, err := l.Cleanable(now, hw)
	if err != nil || !due && ratio <= l.options().MinDirtyRatio {
		return false, err
	}
	from, to, err := l.dirtyRange(now, hw)
	if err != nil {
		return false, err
	}
	c.end = from
	if err := c.mapKeys(from, to); err != nil {
		return false, err
	}
	c.stats.Cleaned = c.end
	c.active = l.lastOfProducers()
	c.group()
	if len(c.groups) == 0 {
		return false, nil
	}
	// Also of what lies above c.end in the last group: its index is written anew.
	txns := newCleanTxns(l.Aborted(0, c.groups[len(c.groups)-1].next))
	for _, g := range c.groups {
		if err := c.cleanGroup(g, txns); err != nil {
			return false, err
		}
	}
	return true, nil
}

// mapKeys notes the last offset of every key in [from, to), as far as the map goes.
func (c *Cleaning) mapKeys(from, to kafka.Offset) error {
	l := c.l
	c.last = keyMap{}
	txns := newCleanTxns(l.Aborted(from, to))
	segs := l.segments()
	full := errors.New("key map is full")
	for i := findSegment(segs, from); i < len(segs)-1 && segs[i].base < to; i++ {
		err := c.walkWhole(segs[i], from, func(v batch.View, _ int64) error {
			if v.BaseOffset() >= to {
				return io.EOF
			}
			if len(c.last)+int(v.Count()) > cleanKeysMax && len(c.last) > 0 {
				return full
			}
			if v.Control() {
				if _, err := txns.marker(v); err != nil {
					return err
				}
			} else if !txns.data(v) {
				err := v.Each(func(r *batch.Record) error {
					if off := v.Offset(r); r.Key != nil && off >= from {
						c.last[keyOf(r.Key)] = off
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			c.end = min(v.LastOffset()+1, to)
			return nil
		})
		switch err {
		case nil:
			c.end = max(c.end, min(segs[i+1].base, to))
		case io.EOF:
			c.end = to
			return nil
		case full:
			return nil
		default:
			return err
		}
	}
	return nil
}

// walkWhole calls fn with whole batches that end at or above from. The View is valid
// during fn.
func (c *Cleaning) walkWhole(s *segment, from kafka.Offset, fn func(v batch.View, pos int64) error) error {
	f, err := s.acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	pos, size := int64(0), s.sizeNow()
	if from > s.base {
		p, ok, err := s.search(f, from, size)
		if err != nil || !ok {
			return err
		}
		pos = p.pos
	}
	sc := newScanner(f, pos, size, false)
	sc.buf = make([]byte, scanBytes)
	for {
		b, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &CorruptError{f.Name(), sc.pos, err}
		}
		v := b.View
		if !b.whole {
			if b.size <= int64(len(sc.buf)) {
				v, err = sc.fill(b.pos, int(b.size))
			} else {
				c.buf = slices.Grow(c.buf[:0], int(b.size))[:b.size]
				v = c.buf
				_, err = f.ReadAt(v, b.pos)
			}
			if err != nil && err != io.EOF {
				return &CorruptError{f.Name(), b.pos, err}
			}
		}
		if !v.CRCOK() { // damage must not be copied under a new checksum
			return &CorruptError{f.Name(), b.pos, fmt.Errorf("%w: CRC does not match", batch.ErrCorrupt)}
		}
		if err := fn(v, b.pos); err != nil {
			return err
		}
	}
}

// lastOfProducers lists what must be kept of every known producer.
func (l *Log) lastOfProducers() map[kafka.ProducerID]lastOfProducer {
	l.producers.mu.Lock()
	defer l.producers.mu.Unlock()
	out := make(map[kafka.ProducerID]lastOfProducer, len(l.producers.byID))
	for id, p := range l.producers.byID {
		last := lastOfProducer{kafka.NoOffset, p.epoch}
		if p.n > 0 {
			last.offset = p.last[p.n-1].last
		}
		out[id] = last
	}
	return out
}

// group splits the segments below the end of the key map so that each group fits
// into one segment.
func (c *Cleaning) group() {
	o := c.l.options()
	segs := c.l.segments()
	var g *cleanGroup
	var bytes, indexed int64
	for i, s := range segs[:len(segs)-1] {
		if s.base >= c.end {
			break
		}
		size := s.sizeNow()
		s.mu.RLock()
		n := int64(max(s.ix.offsetCount()*offsetEntryBytes, s.ix.timeCount()*timeEntryBytes))
		s.mu.RUnlock()
		if g == nil || bytes+size > o.SegmentBytes || indexed+n > int64(o.IndexMaxBytes) || segs[i+1].base-g.old[0].base > math.MaxInt32 {
			g = &cleanGroup{ix: newIndex(), max: noTime}
			c.groups = append(c.groups, g)
			bytes, indexed = 0, 0
		}
		g.old = append(g.old, s)
		g.next = segs[i+1].base
		bytes, indexed = bytes+size, indexed+n
		c.stats.SegmentsBefore++
		c.stats.BytesBefore += size
	}
	c.stats.After = len(c.groups)
}

// cleanGroup writes what remains of a group to .cleaned files, durably.
func (c *Cleaning) cleanGroup(g *cleanGroup, txns *cleanTxns) error {
	l, base := c.l, g.old[0].base
	var err error
	if g.file, err = l.fs.Create(l.path(base, logExt+cleanedExt)); err != nil {
		return err
	}
	for _, s := range g.old {
		if err := c.walkWhole(s, s.base, func(v batch.View, _ int64) error { return c.cleanBatch(g, v, txns) }); err != nil {
			return err
		}
	}
	if err := g.write(); err != nil {
		return err
	}
	if err := g.file.Sync(); err != nil {
		return err
	}
	g.ix.addTime(g.max)
	var b []byte
	for _, t := range txns.kept {
		b = encodeTxn(b, t)
	}
	g.txns, txns.kept = txns.kept, nil
	contents := [][]byte{encodeOffsets(nil, base, g.ix.offsets), encodeTimes(nil, base, g.ix.times), b}
	for i, ext := range []string{indexExt, timeExt, txnExt} {
		data := contents[i]
		if len(data) == 0 && ext == txnExt {
			continue
		}
		f, err := l.fs.Create(l.path(base, ext+cleanedExt))
		if err != nil {
			return err
		}
		_, err = f.WriteAt(data, 0)
		if err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	c.stats.BytesAfter += g.size
	return nil
}

// cleanBatch decides what remains of a batch (Kafka's Cleaner.cleanInto).
func (c *Cleaning) cleanBatch(g *cleanGroup, v batch.View, txns *cleanTxns) error {
	c.stats.RecordsBefore += int64(v.Count())
	horizon, hasHorizon := v.DeleteHorizon()
	expired := hasHorizon && horizon <= c.nowMs
	var discard, startHorizon bool
	if v.Control() {
		empty, err := txns.marker(v)
		if err != nil {
			return err
		}
		discard, startHorizon = empty && expired, empty && !hasHorizon
	} else {
		discard = txns.data(v)
	}
	// The last batch of a live producer stays although empty: its sequence, or its
	// epoch, is nowhere else.
	live := false
	if last, ok := c.active[v.ProducerID()]; ok && v.HasProducer() {
		if last.offset != kafka.NoOffset {
			live = v.LastOffset() == last.offset
		} else {
			live = v.Control() && v.ProducerEpoch() == last.epoch
		}
	}
	if discard && !live {
		return nil
	}
	c.keep = c.keep[:0]
	kept := 0
	if err := v.Each(func(r *batch.Record) error {
		keep := !discard && (v.Control() || c.keepRecord(v, r, expired))
		if keep {
			kept++
			startHorizon = startHorizon || !v.Control() && r.Value == nil && !hasHorizon
		}
		c.keep = append(c.keep, keep)
		return nil
	}); err != nil {
		return err
	}
	if kept == 0 && !live {
		return nil
	}
	out := v
	if kept < len(c.keep) || startHorizon {
		ms := batch.NoHorizon
		if startHorizon {
			ms = c.nowMs + c.keepMs
		}
		i := -1
		var err error
		if out, _, err = batch.Filter(v, ms, func(*batch.Record) (bool, error) { i++; return c.keep[i], nil }); err != nil {
			return err
		}
	}
	if kept == 0 {
		out = withMaxTime(out, v.MaxTimestamp())
	}
	if ms, ok := out.DeleteHorizon(); ok && kept > 0 {
		c.horizon = min(c.horizon, ms)
	}
	c.stats.RecordsKept += int64(kept)
	return g.add(out, int64(c.l.options().IndexIntervalBytes))
}

func (c *Cleaning) keepRecord(v batch.View, r *batch.Record, expired bool) bool {
	off := v.Offset(r)
	if off >= c.end {
		return true
	}
	if r.Key == nil {
		c.stats.NoKey++
		return false
	}
	if last, ok := c.last[keyOf(r.Key)]; ok && off < last {
		return false
	}
	return r.Value != nil || !expired
}

// withMaxTime gives a batch without records a time back: the producer it is kept for
// would seem to have been silent for ever. v is ours to change.
func withMaxTime(v batch.View, ms int64) batch.View {
	if v.MaxTimestamp() != ms {
		binary.BigEndian.PutUint64(v[maxTimeAt:], uint64(ms))
		binary.BigEndian.PutUint32(v[sumAt:], crc32.Checksum(v[crcAt:], castagnoli))
	}
	return v
}

func (g *cleanGroup) add(v batch.View, interval int64) error {
	if ts := v.MaxTimestamp(); ts > g.max.ts {
		g.max = timeEntry{ts, v.LastOffset()}
	}
	g.ix.add(v.LastOffset(), g.size, int64(len(v)), g.max, interval)
	g.size += int64(len(v))
	g.out = append(g.out, v...)
	if len(g.out) >= 1<<20 {
		return g.write()
	}
	return nil
}

func (g *cleanGroup) write() error {
	_, err := g.file.WriteAt(g.out, g.size-int64(len(g.out)))
	g.out = g.out[:0]
	return err
}

// Commit puts the result in place. Writer only. An error before the first rename
// leaves all as it was; a later one sticks.
func (c *Cleaning) Commit(now time.Time) (CleanStats, error) {
	l := c.l
	if err := l.usable(); err != nil {
		c.Abort()
		return CleanStats{}, err
	}
	if c.gen != l.gen.Load() {
		c.Abort()
		return CleanStats{}, ErrGone
	}
	segs := l.segments()
	for _, g := range c.groups { // the writer may have removed segments since
		i := slices.Index(segs, g.old[0])
		if i < 0 || i+len(g.old) >= len(segs) || !slices.Equal(segs[i:i+len(g.old)], g.old) || segs[i+len(g.old)].base != g.next {
			c.Abort()
			return CleanStats{}, ErrGone
		}
	}
	for _, g := range c.groups {
		if err := l.swapIn(g, now); err != nil {
			c.finish()
			return CleanStats{}, l.fail(err)
		}
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		c.finish()
		return CleanStats{}, l.fail(err)
	}
	l.recount()
	l.cleaner.mu.Lock()
	l.cleaner.running = false
	l.cleaner.cleaned = c.stats.Cleaned
	l.cleaner.scanned, l.cleaner.horizon = true, c.horizon
	l.cleaner.mu.Unlock()
	return c.stats, nil
}

// swapIn replaces a group's old segments. The log's rename to .swap is the moment
// from which a start finishes the replacement instead of undoing it. Readers get the
// new segment before any name changes: it has its file open and its index in memory.
func (l *Log) swapIn(g *cleanGroup, now time.Time) error {
	base := g.old[0].base
	for _, ext := range segmentExts {
		path := l.path(base, ext)
		if err := l.fs.Rename(path+cleanedExt, path+swapExt); err != nil && !(isNotExist(err) && ext == txnExt) {
			return err
		}
	}
	if err := l.fs.SyncDir(l.Dir()); err != nil {
		return err
	}
	s := l.newSegment(base, g.old[0].createdMs)
	s.size, s.next, s.maxTime, s.timeKnown, s.ix, s.gaps = g.size, g.next, g.max, true, g.ix, true
	s.txn = txnIndex{true, g.txns}
	s.shared.Store(disk.NewShared(g.file))
	g.file = nil
	segs := l.segments()
	i := slices.Index(segs, g.old[0])
	l.publish(slices.Concat(segs[:i], []*segment{s}, segs[i+len(g.old):]))
	for _, old := range g.old {
		if err := l.doom(old, now.UnixMilli()); err != nil {
			return err
		}
	}
	for _, ext := range segmentExts {
		path := l.path(base, ext)
		if err := l.fs.Rename(path+swapExt, path); err != nil && !(isNotExist(err) && ext == txnExt) {
			return err
		}
	}
	s.mu.Lock()
	s.ix.offsetsFiled, s.ix.timesFiled = len(s.ix.offsets), len(s.ix.times)
	s.ix.trustedOffsets, s.ix.trustedTimes = s.ix.offsetsFiled, s.ix.timesFiled
	s.ix.offsets, s.ix.times = nil, nil
	s.mu.Unlock()
	l.namesDirty.Store(true)
	return nil
}

// cleanTxns follows transactions through a walk: whose data was aborted, and whose
// marker has no data left before it.
type cleanTxns struct {
	aborted   []AbortedTxn // by First; a prefix is consumed
	open      map[kafka.ProducerID]*abortedWalk
	committed map[kafka.ProducerID]bool // saw data that was not aborted
	kept      []AbortedTxn              // for the new index
}

type abortedWalk struct {
	AbortedTxn
	seen bool
}

func newCleanTxns(aborted []AbortedTxn) *cleanTxns {
	slices.SortStableFunc(aborted, func(a, b AbortedTxn) int { return cmp.Compare(a.First, b.First) })
	return &cleanTxns{aborted: aborted}
}

func (t *cleanTxns) upTo(off kafka.Offset) {
	for len(t.aborted) > 0 && t.aborted[0].First <= off {
		if t.open == nil {
			t.open = map[kafka.ProducerID]*abortedWalk{}
		}
		t.open[t.aborted[0].ID] = &abortedWalk{AbortedTxn: t.aborted[0]}
		t.aborted = t.aborted[1:]
	}
}

// data says whether a batch's transaction was aborted.
func (t *cleanTxns) data(v batch.View) bool {
	t.upTo(v.LastOffset())
	if !v.Transactional() {
		return false
	}
	if a := t.open[v.ProducerID()]; a != nil {
		a.seen = true
		return true
	}
	if t.committed == nil {
		t.committed = map[kafka.ProducerID]bool{}
	}
	t.committed[v.ProducerID()] = true
	return false
}

// marker says whether a control batch ends a transaction without data, so that it
// may go when its time has come.
func (t *cleanTxns) marker(v batch.View) (empty bool, err error) {
	t.upTo(v.LastOffset())
	m, err := v.Marker()
	if err != nil {
		return false, err
	}
	id := v.ProducerID()
	switch m.Kind {
	case batch.Abort:
		a := t.open[id]
		delete(t.open, id)
		if a != nil && a.seen {
			t.kept = append(t.kept, a.AbortedTxn)
			return false, nil
		}
		return true, nil
	case batch.Commit:
		had := t.committed[id]
		delete(t.committed, id)
		return !had, nil
	}
	return false, nil
}
