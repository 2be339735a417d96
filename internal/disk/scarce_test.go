package disk

// A call without a descriptor waits for one (B178); Mkdir tells a name that is
// taken from a parent that is missing, everywhere alike.

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
)

// noFiles is out of descriptors for the next n opens.
type noFiles struct {
	FS
	n int
}

func (f *noFiles) OpenOrCreate(path string) (File, error) {
	if f.n > 0 {
		f.n--
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
	}
	return f.FS.OpenOrCreate(path)
}

func (f *noFiles) Create(path string) (File, error) {
	if f.n > 0 {
		f.n--
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENFILE}
	}
	return f.FS.Create(path)
}

func TestScarceB178(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &noFiles{FS: NewMem(1)}
		gave := 0
		fsys := Scarce(f, func() { gave++ })
		f.n = 3
		if _, err := fsys.OpenOrCreate("/a"); err != nil || gave != 3 {
			t.Fatalf("%v, gave %d times", err, gave)
		}
		f.n = 2
		if err := fsys.WriteAtomic("/b", []byte("x")); err != nil || gave != 5 {
			t.Fatalf("%v, gave %d times", err, gave)
		}
		f.n = 1 << 20
		if _, err := fsys.OpenOrCreate("/c"); !IsNoDescriptor(err) {
			t.Fatal("an end to waiting:", err)
		}
		if _, err := fsys.Open("/d"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	})
}

func TestLoad(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		must(t, err)
		_, err = f.WriteAt([]byte("0123456789"), 0)
		must(t, err)
		sh := NewShared(f)
		r, _ := sh.Region(2, 5)
		m, err := r.Load()
		must(t, err)
		must(t, sh.Release())
		if b, err := m.Bytes(); string(b) != "23456" || err != nil || sh.Acquire() {
			t.Errorf("%q, %v; the file is closed: %t", b, err, !sh.Acquire())
		}
		m.Release()
	})
}

func TestMkdir(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		must(t, fsys.Mkdir(filepath.Join(dir, "a")))
		if err := fsys.Mkdir(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrExist) {
			t.Error("twice:", err)
		}
		if err := fsys.Mkdir(filepath.Join(dir, "b", "c")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("without its parent:", err)
		}
		must(t, fsys.Mkdir(filepath.Join(dir, "a", "b")))
	})
}
