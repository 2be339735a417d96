package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Open opens a partition's log and makes it when there is none. After a crash it
// recovers: batches at or above the recovery point are checked and a torn tail is
// cut, with one warning. It reads no segment that lies below the recovery point,
// and after a clean close only the last few headers of the active one.
//
// Errors: *CorruptError for damage that a crash does not explain,
// kafka.ErrInconsistentTopicID (wrapped) when the folder belongs to another topic.
func Open(cfg Config) (*Log, error) {
	o := cfg.Options.filled()
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &Log{fs: cfg.FS, log: cfg.Log, tp: cfg.TP, id: cfg.ID, files: cfg.Files, onSyncError: cfg.OnSyncError}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.futureTs = kafka.NoOffset
	l.cleaner.cleaned = cfg.Cleaned
	cfg.LogStart = max(cfg.LogStart, 0)
	l.dir.Store(&cfg.Dir)
	l.opts.Store(&o)
	op := opening{Log: l, cfg: &cfg}
	err := op.run()
	for _, s := range op.segs {
		// Whoever reads or writes opens it again: most of thousands of partitions wait
		// long for that.
		s.release(err != nil)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// opening is the state of one Open.
type opening struct {
	accepting bool // acceptFile was there
	cut       bool // recovery dropped something
	forgot    bool // the saved log start is not used
	*Log
	cfg   *Config
	segs  []*segment
	sizes map[string]int64 // of the folder's files
}

func (op *opening) run() error {
	fresh, err := op.list()
	if err != nil {
		return err
	}
	if !fresh {
		if op.accepting = op.acceptLoss(); op.accepting {
			op.cfg.Clean, op.cfg.RecoveryPoint = false, 0 // every batch is checked
		}
		if err := op.strays(); err != nil {
			return err
		}
		if err := op.collect(); err != nil {
			return err
		}
	}
	if err := op.readTopicID(fresh); err != nil {
		return err
	}
	if len(op.segs) == 0 {
		s, err := op.createSegment(op.cfg.LogStart, op.cfg.Now.UnixMilli())
		if err != nil {
			return err
		}
		op.segs = []*segment{s}
	}
	op.doubtStart()
	epochsOK := fresh || op.readEpochs()
	if !fresh {
		if err := op.recover(); err != nil {
			return err
		}
	}
	if last := op.segs[len(op.segs)-1]; !fresh && last.next < op.cfg.RecoveryPoint && op.cfg.LogStart < op.cfg.RecoveryPoint {
		return op.lost(op.path(last.base, logExt), last.size, last.next, errTorn)
	}
	if err := op.restart(); err != nil {
		return err
	}
	op.settle()
	if !epochsOK {
		if err := op.rebuildEpochs(); err != nil {
			return err
		}
	}
	op.epochs.dropEmpty(op.End())
	op.epochs.truncateStart(op.LogStart())
	if err := op.dropSnapshotsAbove(op.End()); err != nil {
		return err
	}
	if op.removed.Swap(false) {
		// Before anything is appended: a power cut must not bring back what belongs
		// to another history.
		if err := op.fs.SyncDir(op.Dir()); err != nil {
			return err
		}
	}
	newest := op.End()
	if !op.cfg.Clean {
		newest = op.cfg.RecoveryPoint
	}
	if err := op.restoreProducers(op.cfg.Now.UnixMilli(), newest); err != nil || !op.accepting {
		return err
	}
	return op.fs.Remove(op.file(acceptFile))
}

// list reads the folder, or makes it.
func (op *opening) list() (fresh bool, err error) {
	op.namesDirty.Store(true)
	op.parentNew.Store(!op.cfg.ParentSynced)
	if op.cfg.New {
		if err := op.fs.Mkdir(op.cfg.Dir); err == nil {
			return true, nil
		}
	}
	entries, err := op.fs.ReadDir(op.cfg.Dir)
	if isNotExist(err) {
		return true, op.fs.MkdirAll(op.cfg.Dir)
	}
	if err != nil {
		return false, err
	}
	if op.cfg.Clean { // else nobody knows whether the last owner came to sync the names
		op.parentNew.Store(false)
		op.namesDirty.Store(false)
	}
	op.sizes = make(map[string]int64, len(entries))
	for _, e := range entries {
		if _, ext, ok := parseName(e.Name); e.Dir && ok && ext == logExt {
			return false, &CorruptError{op.file(e.Name), 0, errors.New("it is a folder: put the segment's file back, or remove the folder")}
		}
		if !e.Dir {
			op.sizes[e.Name] = e.Size
		}
	}
	return false, nil
}

func (op *opening) names() []string {
	names := make([]string, 0, len(op.sizes))
	for name := range op.sizes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (op *opening) remove(name string) error {
	delete(op.sizes, name)
	op.namesDirty.Store(true)
	op.removed.Store(true)
	if err := op.fs.Remove(op.file(name)); err != nil && !isNotExist(err) {
		return err
	}
	return nil
}

// strays ends what a crash interrupted. A .cleaned file is an unfinished result
// and goes; so does what waits for deletion and what an atomic write left. A .swap
// log is a finished result: what it covers goes and it takes its place. If some
// results of the same cleaning are still .cleaned, the finished ones at or above
// the first of those go too: the old segments are all there. Nothing goes before
// every result was found whole.
func (op *opening) strays() error {
	minCleaned := kafka.Offset(-1)
	var swaps []swap
	for _, name := range op.names() {
		base, ext, ok := parseName(name)
		switch {
		case !ok:
		case ext == logExt+cleanedExt:
			if minCleaned < 0 || base < minCleaned {
				minCleaned = base
			}
		case ext == logExt+swapExt:
			sw, err := op.readSwap(base)
			if err != nil {
				return err
			}
			swaps = append(swaps, sw)
		}
	}
	for _, name := range op.names() {
		switch filepath.Ext(name) {
		case deletedExt, tmpExt, cleanedExt:
			if err := op.remove(name); err != nil {
				return err
			}
		}
	}
	for _, sw := range swaps {
		_, old := op.sizes[fileName(sw.base, logExt)]
		if sw.useless || old && minCleaned >= 0 && sw.base >= minCleaned {
			for _, ext := range segmentExts {
				if err := op.remove(fileName(sw.base, ext+swapExt)); err != nil {
					return err
				}
			}
			continue
		}
		if err := op.finishSwap(sw); err != nil {
			return err
		}
	}
	for _, name := range op.names() { // index files whose log was renamed already
		if strings.HasSuffix(name, swapExt) {
			if base, ext, ok := parseName(name); ok {
				plain := fileName(base, strings.TrimSuffix(ext, swapExt))
				if _, have := op.sizes[plain]; !have {
					if err := op.rename(name, plain); err != nil {
						return err
					}
					continue
				}
			}
			if err := op.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (op *opening) rename(from, to string) error {
	if err := op.fs.Rename(op.file(from), op.file(to)); err != nil {
		return err
	}
	op.sizes[to] = op.sizes[from]
	delete(op.sizes, from)
	op.namesDirty.Store(true)
	return nil
}

// swap is a compacted segment that is to take the place of those in [base, next).
type swap struct {
	base, next kafka.Offset
	useless    bool // the old segments hold all that it does
}

// readSwap looks at every byte of the .swap log at base: what takes the place of sound
// segments must be sound. The first segment it replaces is the first to go, so while
// that is there an empty or broken result is not needed.
func (op *opening) readSwap(base kafka.Offset) (swap, error) {
	name := fileName(base, logExt+swapExt)
	sw := swap{base: base, next: base}
	_, old := op.sizes[fileName(base, logExt)]
	if op.sizes[name] == 0 { // everything in the old segments was superseded, or it is not ours
		sw.useless = old
		return sw, nil
	}
	f, err := op.fs.OpenRead(op.file(name))
	if err != nil {
		return sw, err
	}
	defer f.Close()
	sc := newScanner(f, 0, op.sizes[name], true)
	for {
		b, err := sc.next()
		if err == io.EOF {
			return sw, nil
		}
		if err == nil && b.BaseOffset() < sw.next {
			sc.pos, err = b.pos, fmt.Errorf("%w: offsets %d to %d after %d", batch.ErrCorrupt, b.BaseOffset(), b.LastOffset(), sw.next-1)
		}
		if err == nil {
			sw.next = b.LastOffset() + 1
			continue
		}
		if !isDamage(err) {
			return sw, fmt.Errorf("commitlog: %s at byte %d: %w", f.Name(), sc.pos, err)
		}
		for name := range op.sizes {
			if b, ext, ok := parseName(name); ok && ext == logExt+deletedExt && b >= base {
				old = false // perhaps one of those that it replaces
			}
		}
		if !old {
			return sw, &CorruptError{op.file(name), sc.pos, fmt.Errorf("%w: it is the result of a compaction, and segments that it replaces may be gone; restore the folder from a copy, or put the segments' .deleted files back under their names and remove the .swap files", err)}
		}
		op.log.Warn("result of a compaction is damaged and not used: the segments that it was made of are there", "partition", op.tp.String(), "file", op.file(name), "at", sc.pos, "err", err)
		sw.useless = true
		return sw, nil
	}
}

// finishSwap puts the compacted segment in place of all it covers.
func (op *opening) finishSwap(sw swap) error {
	base, next := sw.base, sw.next
	for _, name := range op.names() {
		b, ext, ok := parseName(name)
		if !ok || !slices.Contains(segmentExts[:], ext) || b < base || b >= max(next, base+1) {
			continue
		}
		if err := op.remove(name); err != nil {
			return err
		}
	}
	for _, ext := range segmentExts {
		name := fileName(base, ext)
		if _, ok := op.sizes[name+swapExt]; ok {
			if err := op.rename(name+swapExt, name); err != nil {
				return err
			}
		}
	}
	op.log.Info("compaction of before the crash finished", "partition", op.tp.String(), "segment", int64(base))
	return nil
}

// collect makes the segments from the folder's names and sizes.
func (op *opening) collect() error {
	for _, name := range op.names() {
		base, ext, ok := parseName(name)
		switch {
		case !ok:
		case ext == logExt:
			s := op.newSegment(base, op.cfg.Now.UnixMilli())
			s.size = op.sizes[name]
			ixSize, haveIx := op.sizes[fileName(base, indexExt)]
			timeSize, haveTime := op.sizes[fileName(base, timeExt)]
			s.ix.offsetsFiled, s.ix.timesFiled = int(ixSize/offsetEntryBytes), int(timeSize/timeEntryBytes)
			s.ixThere = haveIx && haveTime
			s.ixMissing = !haveIx || !haveTime || ixSize%offsetEntryBytes != 0 || timeSize%timeEntryBytes != 0
			_, haveTxns := op.sizes[fileName(base, txnExt)]
			s.txn.loaded = !haveTxns
			if haveTxns {
				op.aborts.Store(true)
			}
			op.segs = append(op.segs, s)
		case ext == snapshotExt:
			op.snapshots = append(op.snapshots, base)
		default:
			if _, haveLog := op.sizes[fileName(base, logExt)]; !haveLog && slices.Contains(segmentExts[:], ext) {
				if err := op.remove(name); err != nil {
					return err
				}
			}
		}
	}
	for i, s := range op.segs[:max(len(op.segs)-1, 0)] {
		s.next = op.segs[i+1].base
	}
	if n := len(op.segs); n > 0 {
		op.segs[n-1].active = true
	}
	return nil
}

// recover establishes where the log ends.
func (op *opening) recover() error {
	n := len(op.segs)
	first := n - 1
	if op.cfg.Clean {
		if err := errors.Join(op.emptied(n-1), op.gone(n-1)); err != nil {
			return err
		}
		ok, err := op.segs[n-1].tail()
		if err != nil {
			return err
		}
		if ok {
			return nil
		}
		op.log.Warn("log was closed cleanly but its end is damaged: recovering", "partition", op.tp.String())
	} else {
		first = findSegment(op.segs, op.cfg.RecoveryPoint)
		if err := errors.Join(op.emptied(first), op.gone(first)); err != nil {
			return err
		}
	}
	for i := first; i < len(op.segs); i++ {
		s := op.segs[i]
		dropped, why, err := op.recoverSegment(s, i == first)
		if err != nil {
			return err
		}
		if i > 0 && s.size == 0 && i == len(op.segs)-1 && dropped == 0 {
			break // rolled just before the crash
		}
		if dropped == 0 {
			if why = op.mismatch(s, i); why == nil {
				continue
			}
		}
		// Nothing behind the damage is usable: readers cannot be led over a gap.
		for _, t := range op.segs[i+1:] {
			dropped += t.size
			if err := op.dropSegment(t); err != nil {
				return err
			}
		}
		op.segs = op.segs[:i+1]
		op.log.Warn("log cut at its last whole batch", "partition", op.tp.String(), "segment", int64(s.base),
			"end", int64(s.next), "bytes_dropped", dropped, "why", why)
		op.cut = true
		break
	}
	last := op.segs[len(op.segs)-1]
	last.mu.Lock()
	last.active, last.timeKnown = true, true
	last.mu.Unlock()
	return nil
}

// mismatch says why the segment after number i does not follow it. A gap is right
// only where compaction has been, and that goes no further than the saved recovery
// point: otherwise the end of s never reached the disk, at a batch's border, and what
// comes after was written later.
func (op *opening) mismatch(s *segment, i int) error {
	if i+1 == len(op.segs) {
		return nil
	}
	base := op.segs[i+1].base
	if base < s.next {
		return fmt.Errorf("offsets up to %d overlap the next segment at %d", s.next-1, base)
	}
	cleaned := (op.cfg.Options.Compact || s.gaps) && (op.cfg.PointLost || op.accepting || base <= max(op.cfg.RecoveryPoint, op.cfg.Cleaned))
	if base > s.next && !cleaned {
		return fmt.Errorf("offsets %d to %d are missing", s.next, base-1)
	}
	return nil
}

func (op *opening) dropSegment(s *segment) error {
	s.release(true)
	for _, ext := range segmentExts {
		if err := op.remove(fileName(s.base, ext)); err != nil {
			return err
		}
	}
	return nil
}

// tail finds the end of a segment that was closed in order; ok is false when
// something is not as it was left.
func (s *segment) tail() (ok bool, err error) {
	s.timeKnown = true
	if s.size == 0 {
		if s.ix.offsetsFiled+s.ix.timesFiled > 0 {
			return false, nil
		}
		s.ixMissing = false
		return true, nil
	}
	if s.ixMissing {
		return false, nil
	}
	f, err := s.acquire()
	if err != nil {
		return false, err
	}
	defer f.Release()
	pos := int64(0)
	var want kafka.Offset = -1
	if n := s.ix.offsetsFiled; n > 0 {
		b, err := readTail(s.l.fs, s.l.path(s.base, indexExt), n-1, offsetEntryBytes)
		if err != nil {
			return false, nil
		}
		e := decodeOffset(s.base, b)
		if e.pos <= 0 || e.pos >= s.size {
			return false, nil
		}
		pos, want = e.pos, e.offset
	}
	if n := s.ix.timesFiled; n > 0 {
		b, err := readTail(s.l.fs, s.l.path(s.base, timeExt), n-1, timeEntryBytes)
		if err != nil {
			return false, nil
		}
		s.ix.lastTime = decodeTime(s.base, b)
		if s.ix.lastTime.ts < 0 {
			return false, nil
		}
		s.maxTime = s.ix.lastTime
	}
	sc := newScanner(f, pos, s.size, false)
	for {
		b, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil || b.BaseOffset() < s.base || want >= 0 && b.LastOffset() != want {
			return false, nil
		}
		want = -1
		s.take(b)
		s.ix.sinceEntry += b.size
	}
	return true, nil
}

func readTail(fs disk.FS, path string, i, width int) ([]byte, error) {
	f, err := fs.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, width)
	_, err = f.ReadAt(b, int64(i)*int64(width))
	return b, err
}

// take moves the segment's end behind a batch that was found in the file.
func (s *segment) take(b found) {
	if ts := b.MaxTimestamp(); ts > s.maxTime.ts {
		s.maxTime = timeEntry{ts, b.LastOffset()}
	}
	s.next = b.LastOffset() + 1
	s.rememberLocked(place{b.BaseOffset(), b.LastOffset(), b.pos, b.size})
}

// recoverSegment checks every batch at or above the recovery point, rebuilds the
// index from there and cuts the file behind the last whole batch.
func (op *opening) recoverSegment(s *segment, first bool) (dropped int64, why, err error) {
	var f *disk.Shared
	if s.size > 0 { // thousands of partitions may hold nothing
		if f, err = s.acquire(); err != nil {
			return 0, nil, err
		}
		defer f.Release()
	}
	size := s.size
	pos := int64(0)
	var offsets []offsetEntry
	var times []timeEntry
	if first {
		pos, offsets, times = s.resume(f, op.cfg.RecoveryPoint)
	}
	s.ix = newIndex()
	s.ix.offsets, s.ix.times = offsets, times
	s.maxTime, s.next, s.ring, s.ringAt = noTime, s.base, nil, 0
	if n := len(times); n > 0 {
		s.ix.lastTime = times[n-1]
		s.maxTime = times[n-1]
	}
	if n := len(offsets); n > 0 {
		s.next = offsets[n-1].offset // at least: the batch at pos ends here
		s.ix.sinceEntry = 0
	}
	s.size = pos
	sc := newScanner(f, pos, size, true)
	interval := int64(op.options().IndexIntervalBytes)
	resumed := pos > 0
	for {
		b, err := sc.next()
		if err == io.EOF {
			break
		}
		if err == nil && (b.BaseOffset() < s.next && !resumed || b.BaseOffset() < s.base || b.LastOffset()-s.base > 1<<31-1) {
			err = fmt.Errorf("%w: offsets %d to %d after %d", batch.ErrCorrupt, b.BaseOffset(), b.LastOffset(), s.next-1)
			sc.pos = b.pos
		}
		if err != nil {
			if !isDamage(err) {
				return 0, nil, fmt.Errorf("commitlog: %s at byte %d: %w", f.Name(), sc.pos, err)
			}
			more := false
			for _, t := range op.segs {
				more = more || t.base > s.base && t.size > 0
			}
			if s.next < op.cfg.RecoveryPoint && op.cfg.LogStart < op.cfg.RecoveryPoint {
				return 0, nil, op.lost(f.Name(), sc.pos, s.next, err)
			}
			if !op.accepting {
				if bad := op.judge(f, sc.pos, size, s.next, more, err); bad != nil {
					return 0, nil, bad
				}
			}
			why = err
			break
		}
		if first && b.pos == pos {
			// From here on the batches tell the epochs. The file may be of before a
			// truncation.
			op.epochs.truncateEnd(b.BaseOffset())
		}
		s.gaps = s.gaps || b.BaseOffset() > s.next && !resumed
		s.take(b)
		if resumed {
			s.ix.sinceEntry += b.size // its entry is there
		} else {
			s.ix.add(b.LastOffset(), b.pos, b.size, s.maxTime, interval)
		}
		resumed = false
		if e := b.LeaderEpoch(); e >= 0 {
			op.epochs.assign(e, b.BaseOffset())
		}
		s.size = b.pos + b.size
	}
	if dropped = size - s.size; dropped > 0 {
		if err := f.Truncate(s.size); err != nil {
			return 0, nil, err
		}
		if err := f.Sync(); err != nil {
			return 0, nil, err
		}
	}
	if size > 0 {
		s.dirty.Store(true)
		s.indexDirty.Store(true)
	}
	s.timeKnown = true
	last := op.segs[len(op.segs)-1] == s
	if !s.active || !last || op.closingTimeFiled(s) {
		s.ix.addTime(s.maxTime)
	}
	if err := op.updateIndexFiles(s, last); err != nil {
		return 0, nil, err
	}
	s.ix.offsetsFiled, s.ix.timesFiled = len(s.ix.offsets), len(s.ix.times)
	s.ix.trustedOffsets, s.ix.trustedTimes = s.ix.offsetsFiled, s.ix.timesFiled
	s.ix.offsets, s.ix.times = nil, nil
	s.ixMissing = false
	return dropped, why, nil
}

// closingTimeFiled says whether the time index has one entry more than recovery
// found: the closing one, of the end in order before the last. It is right, and
// writing thousands of files to take it away takes seconds.
func (op *opening) closingTimeFiled(s *segment) bool {
	return s.maxTime.ts > s.ix.lastTime.ts && op.sizes[fileName(s.base, timeExt)] == int64(len(s.ix.times)+1)*timeEntryBytes
}

// updateIndexFiles writes what recovery found, where the files say otherwise: after
// a kill of thousands of idle partitions they mostly do not. An active segment that
// has no entries yet needs no files (last).
func (op *opening) updateIndexFiles(s *segment, last bool) error {
	contents := [][]byte{encodeOffsets(nil, s.base, s.ix.offsets), encodeTimes(nil, s.base, s.ix.times)}
	for i, ext := range []string{indexExt, timeExt} {
		data := contents[i]
		path := op.path(s.base, ext)
		size, have := op.sizes[fileName(s.base, ext)]
		if len(data) == 0 && !have && (s.size == 0 || last) {
			continue
		}
		if have && size == int64(len(data)) {
			if old, err := op.fs.ReadFile(path); err == nil && bytes.Equal(old, data) {
				continue
			}
		}
		if err := op.replace(path, data); err != nil {
			return err
		}
		op.namesDirty.Store(true)
	}
	return nil
}

// resume finds where checking can begin: the last index entry below the recovery
// point, if the index stands every test; otherwise the segment's first byte.
func (s *segment) resume(f io.ReaderAt, point kafka.Offset) (int64, []offsetEntry, []timeEntry) {
	if point <= s.base || s.ixMissing {
		return 0, nil, nil
	}
	offsets, times, err := s.loadIndex(false, s.ix.offsetsFiled, s.ix.timesFiled, s.size)
	if err != nil {
		return 0, nil, nil
	}
	offsets, _ = s.ix.cut(offsets, nil, point, s.size)
	if len(offsets) == 0 {
		return 0, nil, nil
	}
	e := offsets[len(offsets)-1]
	b, err := newScanner(f, e.pos, s.size, true).next()
	if err != nil || b.LastOffset() != e.offset {
		return 0, nil, nil
	}
	_, times = s.ix.cut(nil, times, e.offset+1, s.size)
	return e.pos, offsets, times
}

// doubtStart forgets a saved log start that cannot be: a log that was closed in order
// ended at its recovery point, and no start lies behind the end.
func (op *opening) doubtStart() {
	if !op.cfg.Clean || op.cfg.RecoveryPoint <= 0 || op.cfg.LogStart <= op.cfg.RecoveryPoint {
		return
	}
	op.forgetStart(op.cfg.RecoveryPoint)
}

func (op *opening) forgetStart(end kafka.Offset) {
	op.forgot = true
	op.log.Warn("saved log start lies behind the end of a log that was closed in order, and is not used: all records are kept, also those that DeleteRecords had deleted",
		"partition", op.tp.String(), "saved_start", int64(op.cfg.LogStart), "end", int64(end))
	op.cfg.LogStart = 0
}

// restart begins anew at the saved log start when the log does not reach it. After a
// crash that is the lost tail of a log whose records DeleteRecords had deleted: what is
// left lies below, and the offsets up to the start were given away. Whether it is so
// nobody can say for certain, so the segments are set aside and not removed.
func (op *opening) restart() error {
	end := op.segs[len(op.segs)-1].next
	if op.cfg.LogStart <= end {
		return nil
	}
	if op.cfg.Clean && !op.cut && op.cfg.LogStart > op.cfg.RecoveryPoint {
		op.forgetStart(end)
		return nil
	}
	var bytes int64
	for _, s := range op.segs {
		bytes += s.size
		if err := op.setAside(s); err != nil {
			return err
		}
	}
	op.log.Warn("log ends below its saved start: begun anew there; its segments are kept with the ending "+asideExt+", remove them if nothing in them is wanted",
		"partition", op.tp.String(), "end", int64(end), "log_start", int64(op.cfg.LogStart), "bytes", bytes, "dir", op.Dir())
	s, err := op.createSegment(op.cfg.LogStart, op.cfg.Now.UnixMilli())
	if err != nil {
		return err
	}
	op.segs = []*segment{s}
	return nil
}

// setAside takes a segment out of the log and keeps its records under another name.
func (op *opening) setAside(s *segment) error {
	name := fileName(s.base, logExt)
	if s.size > 0 {
		s.release(true)
		to := name + asideExt
		for n := 2; ; n++ {
			if _, taken := op.sizes[to]; !taken {
				break
			}
			to = fmt.Sprint(name, ".", n, asideExt)
		}
		if err := op.rename(name, to); err != nil {
			return err
		}
		op.removed.Store(true)
	}
	return op.dropSegment(s) // the indexes, and an empty log
}

// settle puts what was found in force.
func (op *opening) settle() {
	last := op.segs[len(op.segs)-1]
	end := last.next
	start := max(op.cfg.LogStart, op.segs[0].base)
	if start > op.cfg.LogStart && !op.forgot {
		why := "a stop of Kafka, which saves no start that retention moved"
		if !op.cfg.Clean {
			why = "retention shortly before the kill"
		}
		op.log.Warn("log begins above its saved start: what lay between is not there", "partition", op.tp.String(),
			"saved_start", int64(op.cfg.LogStart), "first_offset", int64(start), "dir", op.Dir(), "harmless_after", why,
			"otherwise", "its first segments were removed by hand: stop the broker, put them back, and set the partition's line in log-start-offset-checkpoint to the saved start")
	}
	op.publish(op.segs)
	op.end.Store(int64(end))
	op.start.Store(int64(start))
	var total int64
	for _, s := range op.segs {
		total += s.size
	}
	op.total.Store(total)
	if total == 0 {
		// A log without records is closed without a sync, however often.
		op.namesDirty.Store(true)
	}
	point := min(op.cfg.RecoveryPoint, end)
	if op.cfg.Clean && !last.dirty.Load() {
		point = end
	}
	op.flushed.Store(int64(point))
}
