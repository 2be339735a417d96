package disk

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// scarceTries and scarceWait bound how long a call waits for a descriptor: most
// of a second, in which a burst of connections comes and goes.
const (
	scarceTries = 40
	scarceWait  = 20 * time.Millisecond
)

// Scarce is fs for a process that may run out of descriptors. A call that fails for
// want of one asks give to close some that are not in use, and is done again; it
// may block for most of a second. That a file could not be opened for a moment
// would otherwise be taken for a broken disk: a flush that cannot open what it has
// to sync ends a log dir.
func Scarce(fs FS, give func()) FS { return scarce{fs, give} }

type scarce struct {
	FS
	give func()
}

// IsNoDescriptor says whether err means that this process or the system has no
// file descriptor left.
func IsNoDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func again[T any](s scarce, call func() (T, error)) (T, error) {
	v, err := call()
	for try := 0; err != nil && try < scarceTries && IsNoDescriptor(err); try++ {
		s.give()
		if try > 0 {
			time.Sleep(scarceWait)
		}
		v, err = call()
	}
	return v, err
}

func (s scarce) do(call func() error) error {
	_, err := again(s, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (s scarce) Open(path string) (File, error) {
	return again(s, func() (File, error) { return s.FS.Open(path) })
}

func (s scarce) OpenRead(path string) (File, error) {
	return again(s, func() (File, error) { return s.FS.OpenRead(path) })
}

func (s scarce) Create(path string) (File, error) {
	return again(s, func() (File, error) { return s.FS.Create(path) })
}

func (s scarce) OpenOrCreate(path string) (File, error) {
	return again(s, func() (File, error) { return s.FS.OpenOrCreate(path) })
}

func (s scarce) ReadDir(path string) ([]Entry, error) {
	return again(s, func() ([]Entry, error) { return s.FS.ReadDir(path) })
}

func (s scarce) ReadFile(path string) ([]byte, error) {
	return again(s, func() ([]byte, error) { return s.FS.ReadFile(path) })
}

func (s scarce) Lock(path string) (io.Closer, error) {
	return again(s, func() (io.Closer, error) { return s.FS.Lock(path) })
}

func (s scarce) SyncDir(path string) error { return s.do(func() error { return s.FS.SyncDir(path) }) }

func (s scarce) RemoveAll(path string) error {
	return s.do(func() error { return s.FS.RemoveAll(path) })
}

// WriteAtomic is done in its steps, each of which may wait: the whole must not be
// done again after a failed sync.
func (s scarce) WriteAtomic(path string, data []byte) error { return writeAtomic(s, path, data) }
