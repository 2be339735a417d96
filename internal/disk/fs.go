package disk

import (
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLocked says that another process (or another broker in this one) holds the
// lock of a directory.
var ErrLocked = errors.New("locked by another process")

// ErrUnsupported is what Preallocate and Space answer where the system has no such
// call. Callers go on without.
var ErrUnsupported = errors.New("not supported here")

// FS is a file system as the storage rooms see it. Paths are the system's own.
// Errors satisfy errors.Is with fs.ErrNotExist and fs.ErrExist as in package os.
type FS interface {
	// Open opens an existing file to read and write.
	Open(path string) (File, error)
	// OpenRead opens an existing file to read.
	OpenRead(path string) (File, error)
	// Create opens a file to read and write, empty; what was there is lost.
	Create(path string) (File, error)
	// OpenOrCreate opens a file to read and write and makes an empty one when
	// there is none.
	OpenOrCreate(path string) (File, error)

	Remove(path string) error
	RemoveAll(path string) error
	// Rename replaces what stands at newPath, in one step.
	Rename(oldPath, newPath string) error
	MkdirAll(path string) error
	// Mkdir makes one folder in a folder that is there; fs.ErrExist when the name
	// is taken.
	Mkdir(path string) error
	// ReadDir lists a directory by name.
	ReadDir(path string) ([]Entry, error)
	Stat(path string) (Info, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(path string) error

	ReadFile(path string) ([]byte, error)
	// WriteAtomic replaces a file so that after a crash it holds either the old or
	// the new bytes: it writes path+".tmp", syncs it, renames it and syncs the
	// directory.
	WriteAtomic(path string, data []byte) error

	// Lock takes the lock file at path for this process and this call; ErrLocked
	// when someone holds it. Closing gives it back; the file stays.
	Lock(path string) (io.Closer, error)
	// Space is the room an ordinary user has left on the volume of path, and the
	// volume's size, in bytes.
	Space(path string) (free, total uint64, err error)
}

// File is an open file. ReadAt and WriteAt may be called from several goroutines.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the bytes and the size durable (fdatasync). After an error the
	// file's state is unknown: do not call it again and hope.
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
	// Preallocate reserves room for a file of this size without changing what
	// Size answers. Truncate gives unused room back.
	Preallocate(size int64) error
	// Name is the path the file was opened by.
	Name() string
	// Fd is the descriptor, for sendfile; false when there is none. It is valid
	// until Close.
	Fd() (uintptr, bool)
}

// Entry is one name in a directory. Size is 0 for directories.
type Entry struct {
	Name string
	Size int64
	Dir  bool
}

// Info is what Stat knows.
type Info struct {
	Size    int64
	ModTime time.Time
	Dir     bool
}

// IsNoSpace says whether err means that the volume (or the user's quota) is full:
// the one write error after which a log may go on once there is room.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || isQuota(err)
}

// writeAtomic is WriteAtomic in terms of the other operations, so that every
// implementation takes the same steps and Faulty can fail each.
func writeAtomic(fs FS, path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := fs.Create(tmp)
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
	if err == nil {
		err = fs.Rename(tmp, path)
	}
	if err != nil {
		_ = fs.Remove(tmp) // a left-over is harmless: readers skip .tmp
		return err
	}
	return fs.SyncDir(filepath.Dir(path))
}
