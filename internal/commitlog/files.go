package commitlog

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weirmq/weir/internal/disk"
)

// Files is the book of segment files that are open, over all logs of a process. It
// bounds their number: a log holds its file only while it is used, so that 100,000
// partitions need no more descriptors than those that are read or written.
//
// Who must go is found as by a clock's hand: a file that was used since the hand
// last passed stays, and of the others first those that have nothing to sync.
type Files struct {
	max func() int
	log *slog.Logger

	live  atomic.Int64 // files open, those too that their log let go and a reader still holds
	dirty sync.Mutex   // one batch of syncs at a time

	mu     sync.Mutex
	open   []*segment
	hand   int
	warned bool
}

// NewFiles keeps at most max() segment files open, a few more for a moment while all
// of them are in use. 0, or no function: no bound. It is asked at every opening.
func NewFiles(max func() int, log *slog.Logger) *Files {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Files{max: max, log: log}
}

// Open is how many segment files are open.
func (fs *Files) Open() int {
	if fs == nil {
		return 0
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.open)
}

// counted is an open file of the book.
type counted struct {
	disk.File
	files *Files
}

func (c counted) Close() error {
	c.files.live.Add(-1)
	return c.File.Close()
}

// count makes f one of the open files until it is closed.
func (fs *Files) count(f disk.File) disk.File {
	if fs == nil {
		return f
	}
	fs.live.Add(1)
	return counted{f, fs}
}

// errBusy is a lack of descriptors of our own making.
var errBusy = fmt.Errorf("log files in use by readers: %w", syscall.EMFILE)

// admit makes room for a reader's file. Without room it is an error: answers under
// way hold their files until they are sent, and more of them must not take what
// writers and flushes need.
func (fs *Files) admit() error {
	if fs == nil || fs.max == nil {
		return nil
	}
	n := int64(fs.max())
	if n <= 0 || fs.live.Load() < n {
		return nil
	}
	fs.shrink(1, nil)
	if fs.live.Load() < n {
		return nil
	}
	return errBusy
}

// add enters a segment whose file was opened; how many files are too many now.
func (fs *Files) add(s *segment) (over int) {
	if fs == nil {
		return 0
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if s.slot == 0 {
		fs.open = append(fs.open, s)
		s.slot = int32(len(fs.open))
	}
	return fs.overLocked()
}

func (fs *Files) overLocked() int {
	if fs.max == nil {
		return 0
	}
	n := fs.max()
	if n <= 0 {
		return 0
	}
	return len(fs.open) - n
}

func (fs *Files) drop(s *segment) {
	if fs == nil {
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if s.slot == 0 {
		return
	}
	last := fs.open[len(fs.open)-1]
	fs.open[s.slot-1], last.slot = last, s.slot
	fs.open[len(fs.open)-1] = nil
	fs.open = fs.open[:len(fs.open)-1]
	s.slot = 0
}

// next is where the hand points; it moves on.
func (fs *Files) next() (s *segment, of int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.open) == 0 {
		return nil, 0
	}
	if fs.hand >= len(fs.open) {
		fs.hand = 0
	}
	s = fs.open[fs.hand]
	fs.hand++
	return s, len(fs.open)
}

// shrink closes n files, not that of but, which is about to be used. No lock of a
// segment may be held.
func (fs *Files) shrink(n int, but *segment) {
	for _, second := range []bool{false, true} {
		_, of := fs.next()
		for ; of > 0 && n > 0; of-- {
			s, _ := fs.next()
			if s == nil {
				return
			}
			if s == but || !second && s.used.Swap(false) || s.dirty.Load() {
				continue
			}
			if s.rest(false) {
				n--
			}
		}
		if n <= 0 {
			return
		}
	}
	fs.shrinkDirty(n, but)
}

// dirtyBatch is how many files are synced and closed when only unsynced ones are
// left: 32 syncs at once share the commits of the file system's journal, so that a
// batch takes little longer than one.
const (
	dirtyBatch = 256
	dirtySyncs = 32
)

func (fs *Files) shrinkDirty(n int, but *segment) {
	fs.dirty.Lock() // others wait for this batch and need none of their own
	defer fs.dirty.Unlock()
	fs.mu.Lock()
	of := len(fs.open)
	enough := but != nil && fs.overLocked() <= 0
	fs.mu.Unlock()
	if enough {
		return
	}
	fs.warn()
	n = max(n, min(dirtyBatch, of/4))
	victims := make(chan *segment)
	var wg sync.WaitGroup
	for range min(n, dirtySyncs) {
		wg.Go(func() {
			for s := range victims {
				s.rest(false)
			}
		})
	}
	for ; of > 0 && n > 0; of-- {
		if s, _ := fs.next(); s != nil && s != but {
			victims <- s
			n--
		}
	}
	close(victims)
	wg.Wait()
}

func (fs *Files) warn() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !fs.warned {
		fs.warned = true
		fs.log.Warn("more partitions are written at once than files may be open: writes wait for the disk; raise the limit of open files (ulimit -n, LimitNOFILE)",
			"log_files", len(fs.open))
	}
}

// Give closes some files because the process has no descriptor left.
func (fs *Files) Give() {
	fs.shrink(max(8, fs.Open()/8), nil)
}

const (
	// restRounds is after how many Rests an idle file is synced and closed: the
	// kernel has long written it by then, so that the sync is cheap.
	restRounds = 12
	// restSyncs bounds the syncs of one Rest.
	restSyncs = 256
)

// Rest closes files that nobody has used for a while: those of old segments at the
// second call that finds them so, the active ones after restRounds calls. What such
// a log had not synced is synced before, so that a log that is left alone is safe
// and its recovery short. It blocks on the disk; one caller at a time.
func (fs *Files) Rest() {
	fs.mu.Lock()
	over := fs.overLocked()
	open := make([]*segment, len(fs.open))
	copy(open, fs.open)
	fs.mu.Unlock()
	if over > 0 { // the bound came down
		fs.shrink(over, nil)
	}
	syncs := 0
	for _, s := range open {
		if s.used.Swap(false) {
			s.idle = 0
			continue
		}
		if s.idle++; s.idle < restRounds && (s.dirty.Load() || s.isActive()) || syncs >= restSyncs {
			continue
		}
		if s.dirty.Load() {
			syncs++
		}
		s.rest(true)
	}
}

var errNotOpen = errors.New("not open")

// syncOpen syncs the file if it is open. It opens none, for that might make room by
// closing others, which is what the caller is at.
func (s *segment) syncOpen() error {
	f := s.shared.Load()
	if f == nil || !f.Acquire() {
		return errNotOpen
	}
	defer f.Release()
	return f.Sync()
}

func (s *segment) isActive() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.active
}

// rest closes the segment's file; its users keep theirs until they are done. Bytes
// that no sync has covered are synced first: the kernel tells a write that failed
// later to whoever syncs next, but it may forget the file, and the failure with it,
// when nobody has it open. all brings the whole log up to date. False: the file
// stays open, for a flush is under way or more was written meanwhile.
func (s *segment) rest(all bool) bool {
	l := s.l
	if s.dirty.Load() {
		if !l.syncing.TryLock() {
			return false
		}
		var err error
		if err = l.usable(); err == nil {
			if all {
				_, err = l.flushHeld(l.end.Load(), false)
			}
			if err == nil && s.dirty.Swap(false) {
				if err = s.syncOpen(); err != nil {
					s.dirty.Store(true)
					if err != errNotOpen {
						err = l.fail(err)
					}
				}
			}
		}
		l.syncing.Unlock()
		if err != nil {
			if l.Err() != nil && l.onSyncError != nil {
				l.onSyncError(err)
			}
			return false
		}
	}
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if s.dirty.Load() {
		return false
	}
	s.closeLocked()
	return true
}
