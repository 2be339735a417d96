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
	Torn  int    // writes: bytes that reach the file before the error
	Wait  func() // runs before the call fails, or without an Err before it goes on: a slow disk
}

// Faulty is a file system whose calls fail where a test says so. Files opened
// through it have no descriptor, so that every read can be failed.
type Faulty struct {
	fs     FS
	mu     sync.Mutex
	faults []*fault
	after  func(op Op, path string)
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
	if ft.Err == nil && ft.Wait == nil {
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
	x := f.match(op, paths)
	if x == nil {
		return nil, nil
	}
	if x.Wait != nil {
		x.Wait()
	}
	if x.Err == nil {
		return nil, nil
	}
	return x, memError(string(op), paths[0], x.Err)
}

func (f *Faulty) match(op Op, paths []string) *fault {
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
		return x
	}
	return nil
}

// After has fn called after each call that changed the disk. Nil: no more. fn must
// not change the disk itself.
func (f *Faulty) After(fn func(op Op, path string)) { f.mu.Lock(); f.after = fn; f.mu.Unlock() }

// did tells of a change, and passes err on.
func (f *Faulty) did(op Op, path string, err error) error {
	f.mu.Lock()
	fn := f.after
	f.mu.Unlock()
	if fn != nil {
		fn(op, path)
	}
	return err
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
func (f *Faulty) Create(path string) (File, error)       { return f.made(path, f.fs.Create) }
func (f *Faulty) OpenOrCreate(path string) (File, error) { return f.made(path, f.fs.OpenOrCreate) }

func (f *Faulty) made(path string, open func(string) (File, error)) (File, error) {
	file, err := f.wrap(path, open)
	if err == nil {
		err = f.did(OpOpen, path, nil)
	}
	return file, err
}

func (f *Faulty) Remove(path string) error {
	if _, err := f.strike(OpRemove, path); err != nil {
		return err
	}
	return f.did(OpRemove, path, f.fs.Remove(path))
}

func (f *Faulty) RemoveAll(path string) error {
	if _, err := f.strike(OpRemove, path); err != nil {
		return err
	}
	return f.did(OpRemove, path, f.fs.RemoveAll(path))
}

func (f *Faulty) Rename(oldPath, newPath string) error {
	if _, err := f.strike(OpRename, oldPath, newPath); err != nil {
		return err
	}
	return f.did(OpRename, newPath, f.fs.Rename(oldPath, newPath))
}

func (f *Faulty) MkdirAll(path string) error {
	if _, err := f.strike(OpMkdir, path); err != nil {
		return err
	}
	return f.did(OpMkdir, path, f.fs.MkdirAll(path))
}

func (f *Faulty) Mkdir(path string) error {
	if _, err := f.strike(OpMkdir, path); err != nil {
		return err
	}
	return f.did(OpMkdir, path, f.fs.Mkdir(path))
}

func (f *Faulty) SyncDir(path string) error {
	if _, err := f.strike(OpSyncDir, path); err != nil {
		return err
	}
	return f.did(OpSyncDir, path, f.fs.SyncDir(path))
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
		n, err := f.File.WriteAt(p, off)
		return n, f.fs.did(OpWrite, f.Name(), err)
	}
	n, werr := f.File.WriteAt(p[:min(x.Torn, len(p))], off)
	_ = f.fs.did(OpWrite, f.Name(), nil)
	if werr != nil {
		return n, werr
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	if _, err := f.fs.strike(OpSync, f.Name()); err != nil {
		return err
	}
	return f.fs.did(OpSync, f.Name(), f.File.Sync())
}

func (f *faultyFile) Truncate(size int64) error {
	if _, err := f.fs.strike(OpTruncate, f.Name()); err != nil {
		return err
	}
	return f.fs.did(OpTruncate, f.Name(), f.File.Truncate(size))
}

func (f *faultyFile) Preallocate(size int64) error {
	if _, err := f.fs.strike(OpPreallocate, f.Name()); err != nil {
		return err
	}
	return f.File.Preallocate(size)
}

func (f *faultyFile) Fd() (uintptr, bool) { return 0, false }
