package disk

import (
	"io"
	"os"
)

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

func openOS(path string, flag int) (File, error) {
	f, err := openFile(path, flag)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, fd: f.Fd()}, nil
}

func (osFS) Open(path string) (File, error)     { return openOS(path, os.O_RDWR) }
func (osFS) OpenRead(path string) (File, error) { return openOS(path, os.O_RDONLY) }
func (osFS) Create(path string) (File, error) {
	return openOS(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (osFS) OpenOrCreate(path string) (File, error) {
	return openOS(path, os.O_RDWR|os.O_CREATE)
}

func (osFS) Remove(path string) error             { return os.Remove(path) }
func (osFS) RemoveAll(path string) error          { return os.RemoveAll(path) }
func (osFS) Rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }
func (osFS) MkdirAll(path string) error           { return os.MkdirAll(path, 0o755) }
func (osFS) Mkdir(path string) error              { return os.Mkdir(path, 0o755) }
func (osFS) ReadFile(path string) ([]byte, error) { return readFile(path) }

func (fs osFS) WriteAtomic(path string, data []byte) error { return writeAtomic(fs, path, data) }

func (osFS) ReadDir(path string) ([]Entry, error) {
	return readDir(path)
}

func (osFS) Stat(path string) (Info, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), ModTime: info.ModTime(), Dir: info.IsDir()}, nil
}

func (osFS) SyncDir(path string) error { return syncDir(path) }

func (osFS) Lock(path string) (io.Closer, error) { return lockFile(path) }

func (osFS) Space(path string) (free, total uint64, err error) { return volumeSpace(path) }

// osFile caches the descriptor: os.File.Fd is not free, and Region users ask for
// it with every send.
type osFile struct {
	*os.File
	fd uintptr
}

func (f *osFile) Sync() error                  { return f.syncData() }
func (f *osFile) Preallocate(size int64) error { return f.preallocate(size) }
func (f *osFile) Fd() (uintptr, bool)          { return f.fd, true }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
