package disk

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Op names an operation that Faulty can fail.
type Op string

// The operations. Open stands for every way to open, Create too when the file is
// to be written.
const (
	OpOpen        Op = "open"
	OpRead        Op = "read"
	OpWrite       Op = "write"
	OpSync        Op = "sync"
	OpTruncate    Op = "truncate"
	OpPreallocate Op = "preallocate"
	OpRemove      Op = "remove"
	OpRename      Op = "rename"
	OpMkdir       Op = "mkdir"
	OpSyncDir     Op = "syncdir"
)

// Fault says which calls fail and how.
type Fault struct {
	Op    Op
	Path  string // calls whose path contains this; for a rename, either path
	Skip  int    // matching calls that still pass
	Times int    // calls that fail after those; 0: all
	Err   error
	Torn  int // writes: bytes that reach the file before the error
}

// Faulty is a file system whose calls fail where a test says so. Files opened
// through it have no descriptor, so that every read can be failed.
type Faulty struct {
	fs     FS
	mu     sync.Mutex
	faults []*fault
}

type fault struct {
	Fault
	seen, hit int
}

// NewFaulty wraps fs; without faults it changes nothing.
func NewFaulty(fs FS) *Faulty { return &Faulty{fs: fs} }

// Inject adds a fault. The returned function tells how often it struck and, with
// true, takes it away.
func (f *Faulty) Inject(ft Fault) (hits func(remove bool) int) {
	if ft.Err == nil {
		panic(fmt.Sprintf("BUG: fault without an error: %+v", ft))
	}
	x := &fault{Fault: ft}
	f.mu.Lock()
	f.faults = append(f.faults, x)
	f.mu.Unlock()
	return func(remove bool) int {
		f.mu.Lock()
		defer f.mu.Unlock()
		if remove {
			for i, y := range f.faults {
				if x == y {
					f.faults = append(f.faults[:i:i], f.faults[i+1:]...)
					break
				}
			}
		}
		return x.hit
	}
}

// Clear takes all faults away.
func (f *Faulty) Clear() { f.mu.Lock(); f.faults = nil; f.mu.Unlock() }

func (f *Faulty) strike(op Op, paths ...string) (*fault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.faults {
		if x.Op != op {
			continue
		}
		match := x.Path == ""
		for _, p := range paths {
			match = match || strings.Contains(p, x.Path)
		}
		if !match {
			continue
		}
		x.seen++
		if x.seen <= x.Skip || x.Times > 0 && x.hit >= x.Times {
			continue
		}
		x.hit++
		return x, memError(string(op), paths[0], x.Err)
	}
	return nil, nil
}

func (f *Faulty) wrap(path string, open func(string) (File, error)) (File, error) {
	if _, err := f.strike(OpOpen, path); err != nil {
		return nil, err
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, fs: f}, nil
}

func (f *Faulty) Open(path string) (File, error)         { return f.wrap(path, f.fs.Open) }
func (f *Faulty) OpenRead(path string) (File, error)     { return f.wrap(path, f.fs.OpenRead) }
func (f *Faulty) Create(path string) (File, error)       { return f.wrap(path, f.fs.Create) }
func (f *Faulty) OpenOrCreate(path string) (File, error) { return f.wrap(path, f.fs.OpenOrCreate) }

func (f *Faulty) Remove(path string) error {
	if _, err := f.strike(OpRemove, path); err != nil {
		return err
	}
	return f.fs.Remove(path)
}

func (f *Faulty) RemoveAll(path string) error {
	if _, err := f.strike(OpRemove, path); err != nil {
		return err
	}
	return f.fs.RemoveAll(path)
}

func (f *Faulty) Rename(oldPath, newPath string) error {
	if _, err := f.strike(OpRename, oldPath, newPath); err != nil {
		return err
	}
	return f.fs.Rename(oldPath, newPath)
}

func (f *Faulty) MkdirAll(path string) error {
	if _, err := f.strike(OpMkdir, path); err != nil {
		return err
	}
	return f.fs.MkdirAll(path)
}

func (f *Faulty) SyncDir(path string) error {
	if _, err := f.strike(OpSyncDir, path); err != nil {
		return err
	}
	return f.fs.SyncDir(path)
}

func (f *Faulty) ReadFile(path string) ([]byte, error) {
	if _, err := f.strike(OpRead, path); err != nil {
		return nil, err
	}
	return f.fs.ReadFile(path)
}

func (f *Faulty) WriteAtomic(path string, data []byte) error        { return writeAtomic(f, path, data) }
func (f *Faulty) ReadDir(path string) ([]Entry, error)              { return f.fs.ReadDir(path) }
func (f *Faulty) Stat(path string) (Info, error)                    { return f.fs.Stat(path) }
func (f *Faulty) Lock(path string) (io.Closer, error)               { return f.fs.Lock(path) }
func (f *Faulty) Space(path string) (free, total uint64, err error) { return f.fs.Space(path) }

type faultyFile struct {
	File
	fs *Faulty
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if _, err := f.fs.strike(OpRead, f.Name()); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	x, err := f.fs.strike(OpWrite, f.Name())
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	n, werr := f.File.WriteAt(p[:min(x.Torn, len(p))], off)
	if werr != nil {
		return n, werr
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	if _, err := f.fs.strike(OpSync, f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if _, err := f.fs.strike(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Preallocate(size int64) error {
	if _, err := f.fs.strike(OpPreallocate, f.Name()); err != nil {
		return err
	}
	return f.File.Preallocate(size)
}

func (f *faultyFile) Fd() (uintptr, bool) { return 0, false }
