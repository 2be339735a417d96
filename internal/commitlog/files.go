package commitlog

import (
	"log/slog"
	"sync"

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
	for round := range 3 {
		_, of := fs.next()
		for ; of > 0 && n > 0; of-- {
			s, _ := fs.next()
			if s == nil {
				return
			}
			if s == but || round == 0 && s.used.Swap(false) || round < 2 && s.dirty.Load() {
				continue
			}
			if round == 2 {
				fs.warn()
			}
			if s.rest(false) {
				n--
			}
		}
		if n <= 0 {
			return
		}
	}
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
func (fs *Files) Give() { fs.shrink(max(8, fs.Open()/8), nil) }

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
				if err = s.sync(); err != nil {
					s.dirty.Store(true)
					if !disk.IsNoDescriptor(err) {
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
