package commitlog

import (
	"math"
	"path/filepath"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Flushed: everything below it survives a power cut. It is the recovery point to
// be saved for the next start.
func (l *Log) Flushed() kafka.Offset { return kafka.Offset(l.flushed.Load()) }

// Unflushed is how many offsets are above Flushed.
func (l *Log) Unflushed() int64 { return max(l.end.Load()-l.flushed.Load(), 0) }

// Flush makes durable what was appended before the call and returns the offset up
// to which everything is. Callers that come while a sync runs share the next one.
// It blocks on the disk and may run beside appends. An error sticks: the log takes
// no more writes. Only where no descriptor was left (disk.IsNoDescriptor) may the
// caller try again.
func (l *Log) Flush() (kafka.Offset, error) { return l.flush(l.end.Load()) }

func (l *Log) flush(want int64) (kafka.Offset, error) {
	if done := l.flushed.Load(); done >= want {
		return kafka.Offset(done), l.Err()
	}
	l.syncing.Lock()
	defer l.syncing.Unlock()
	return l.flushHeld(want, want == math.MaxInt64)
}

// flushHeld is flush for the holder of the token; all syncs the active segment's
// index too.
func (l *Log) flushHeld(want int64, all bool) (kafka.Offset, error) {
	if done := l.flushed.Load(); done >= want {
		return kafka.Offset(done), l.Err()
	}
	if err := l.usable(); err != nil {
		return l.Flushed(), err
	}
	// The end first: segments that are rolled in later hold nothing below it.
	end := l.end.Load()
	if err := l.syncAll(all, kafka.Offset(end)); err != nil {
		if disk.IsNoDescriptor(err) {
			return l.Flushed(), err // a file could not be opened: nothing is lost for that
		}
		return l.Flushed(), l.fail(err)
	}
	l.flushed.Store(end)
	return kafka.Offset(end), nil
}

// syncAll syncs data first, then what points to it. The active segment's index is
// synced at a clean close only: recovery checks it and can do without.
func (l *Log) syncAll(all bool, end kafka.Offset) error {
	segs := l.segments()
	for i, s := range segs {
		if s.dirty.Swap(false) {
			if err := s.sync(); err != nil {
				s.dirty.Store(true)
				return err
			}
		}
		if (all || i < len(segs)-1) && s.indexDirty.Swap(false) {
			for _, ext := range []string{indexExt, timeExt} {
				if err := l.syncFile(l.path(s.base, ext)); err != nil {
					s.indexDirty.Store(true)
					return err
				}
			}
		}
	}
	for paths := l.unsynced.take(); len(paths) > 0; paths = paths[1:] {
		if err := l.syncFile(paths[0]); err != nil {
			for _, path := range paths {
				l.unsynced.add(path)
			}
			return err
		}
	}
	if err := l.writeEpochs(end); err != nil {
		return err
	}
	if l.namesDirty.Swap(false) {
		if err := l.fs.SyncDir(l.Dir()); err != nil {
			l.namesDirty.Store(true)
			return err
		}
	}
	if l.parentNew.Swap(false) {
		if err := l.fs.SyncDir(filepath.Dir(l.Dir())); err != nil {
			l.parentNew.Store(true)
			return err
		}
	}
	return nil
}

func (s *segment) sync() error {
	f, err := s.acquire()
	if err == ErrGone {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Release()
	return f.Sync()
}

// syncFile syncs a file that may be gone by now.
func (l *Log) syncFile(path string) error {
	f, err := l.fs.Open(path)
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (l *Log) file(name string) string { return filepath.Join(l.Dir(), name) }

// trim gives room back that was reserved for a segment and is not used.
func (l *Log) trim(s *segment) error {
	if !l.options().Preallocate {
		return nil
	}
	f, err := s.acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	return f.Truncate(s.size)
}

// reserve asks for a whole segment's room.
func (l *Log) reserve(f disk.File) error {
	if !l.options().Preallocate {
		return nil
	}
	err := f.Preallocate(l.options().SegmentBytes)
	if err == disk.ErrUnsupported {
		return nil
	}
	return err
}
