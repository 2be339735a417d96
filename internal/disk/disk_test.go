package disk

// The same operations give the same answers on the machine's file system and in
// memory; power cuts in memory lose what was not synced and nothing else; Faulty
// fails exactly the calls it is told to.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
)

// both runs fn on the machine's file system and in memory.
func both(t *testing.T, fn func(t *testing.T, fs FS, dir string)) {
	t.Run("os", func(t *testing.T) { fn(t, OS, t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := NewMem(1)
		if err := m.MkdirAll("/w"); err != nil {
			t.Fatal(err)
		}
		fn(t, m, "/w")
	})
	t.Run("faulty", func(t *testing.T) { fn(t, NewFaulty(OS), t.TempDir()) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOperations(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		path := filepath.Join(dir, "a")
		for _, open := range []func(string) (File, error){fsys.Open, fsys.OpenRead} {
			if _, err := open(path); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		f, err := fsys.OpenOrCreate(path)
		must(t, err)
		_, err = f.WriteAt([]byte("hello"), 3)
		must(t, err)
		must(t, f.Sync())
		b, err := fsys.ReadFile(path)
		if err != nil || string(b) != "\x00\x00\x00hello" {
			t.Fatalf("%q %v", b, err)
		}
		p := make([]byte, 10)
		if n, err := f.ReadAt(p, 5); n != 3 || err != io.EOF || string(p[:3]) != "llo" {
			t.Fatal(n, err, p)
		}
		if n, err := f.ReadAt(p[:3], 5); n != 3 || err != nil && err != io.EOF {
			t.Fatal(n, err)
		}
		if n, err := f.ReadAt(p, 100); n != 0 || err != io.EOF {
			t.Fatal(n, err)
		}
		must(t, f.Truncate(4))
		must(t, f.Truncate(6)) // what was cut off does not come back
		b, _ = fsys.ReadFile(path)
		if string(b) != "\x00\x00\x00h\x00\x00" {
			t.Fatalf("%q", b)
		}
		if err := f.Preallocate(1 << 20); err != nil && err != ErrUnsupported {
			t.Fatal(err)
		}
		if n, err := f.Size(); n != 6 || err != nil {
			t.Fatal(n, err)
		}
		r, err := fsys.OpenRead(path)
		must(t, err)
		if _, err := r.WriteAt([]byte("x"), 0); err == nil {
			t.Fatal("wrote to a file opened to read")
		}
		must(t, fsys.Rename(path, path+"2"))
		must(t, fsys.Remove(path+"2"))
		if n, err := r.ReadAt(p[:4], 0); n != 4 {
			t.Fatal("a removed file stays readable", err)
		}
		must(t, r.Close())
		must(t, f.Close())
		if _, err := f.ReadAt(p, 0); !errors.Is(err, fs.ErrClosed) {
			t.Fatal(err)
		}

		must(t, fsys.MkdirAll(filepath.Join(dir, "x", "y")))
		must(t, fsys.WriteAtomic(filepath.Join(dir, "x", "f"), []byte("one")))
		must(t, fsys.WriteAtomic(filepath.Join(dir, "x", "f"), []byte("three")))
		entries, err := fsys.ReadDir(filepath.Join(dir, "x"))
		if err != nil || fmt.Sprint(entries) != "[{f 5 false} {y 0 true}]" {
			t.Fatal(entries, err)
		}
		info, err := fsys.Stat(filepath.Join(dir, "x", "f"))
		if err != nil || info.Size != 5 || info.Dir || info.ModTime.IsZero() {
			t.Fatal(info, err)
		}
		if err := fsys.Remove(filepath.Join(dir, "x")); err == nil {
			t.Fatal("removed a folder that is not empty")
		}
		must(t, fsys.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "z")))
		must(t, fsys.SyncDir(dir))
		must(t, fsys.RemoveAll(filepath.Join(dir, "z")))
		must(t, fsys.RemoveAll(filepath.Join(dir, "z")))
		if _, err := fsys.Stat(filepath.Join(dir, "z", "f")); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if n, total, err := fsys.Space(dir); n == 0 || total < n || err != nil && err != ErrUnsupported {
			t.Fatal(n, err)
		}
	})
}

func TestLock(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		path := filepath.Join(dir, ".lock")
		c, err := fsys.Lock(path)
		must(t, err)
		if _, err := fsys.Lock(path); !errors.Is(err, ErrLocked) {
			t.Fatal(err)
		}
		must(t, c.Close())
		c, err = fsys.Lock(path)
		must(t, err)
		must(t, c.Close())
	})
}

func TestRegion(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		f, err := fsys.Create(filepath.Join(dir, "f"))
		must(t, err)
		_, err = f.WriteAt([]byte("0123456789"), 0)
		must(t, err)
		s := NewShared(f)
		r, ok := s.Region(2, 5)
		if !ok {
			t.Fatal("no region of an open file")
		}
		r2 := r.Retain()
		must(t, s.Release()) // the owner lets go, and the name goes
		must(t, fsys.Remove(filepath.Join(dir, "f")))
		p := make([]byte, 3)
		for _, tc := range []struct {
			off  int64
			want string
			err  error
		}{{0, "234", nil}, {2, "456", nil}, {3, "56", io.EOF}, {5, "", io.EOF}, {-1, "", io.EOF}} {
			n, err := r.ReadAt(p, tc.off)
			if string(p[:n]) != tc.want || err != tc.err {
				t.Fatalf("ReadAt(%d) = %q, %v", tc.off, p[:n], err)
			}
		}
		r.Release()
		if b, err := r2.Bytes(); string(b) != "23456" || err != nil {
			t.Fatal(b, err)
		}
		r2.Release()
		if _, err := f.ReadAt(p, 0); !errors.Is(err, fs.ErrClosed) {
			t.Fatal("the last release closes", err)
		}
		if _, ok := s.Region(0, 1); ok {
			t.Fatal("a region of a closed file")
		}
		Region{}.Release()
	})
}

// TestCrashClone: synced bytes and names stay, unsynced ones may.
func TestCrashClone(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		m := NewMem(seed)
		must(t, m.MkdirAll("d"))
		must(t, m.SyncDir("."))
		f, err := m.Create("d/f")
		must(t, err)
		synced := bytes.Repeat([]byte("s"), 3*pageBytes)
		_, err = f.WriteAt(synced, 0)
		must(t, err)
		must(t, f.Sync())
		must(t, m.SyncDir("d"))
		_, err = f.WriteAt(bytes.Repeat([]byte("u"), 3*pageBytes), 2*pageBytes)
		must(t, err)
		must(t, m.WriteAtomic("d/atomic", []byte("new")))
		_, err = m.Create("d/unsynced")
		must(t, err)
		must(t, m.Rename("d/unsynced", "d/renamed"))
		c := m.CrashClone()
		b, err := c.ReadFile("d/f")
		must(t, err)
		if !bytes.Equal(b[:2*pageBytes], synced[:2*pageBytes]) || len(b) < len(synced) || len(b) > 5*pageBytes {
			t.Fatalf("seed %d: synced bytes lost, %d left", seed, len(b))
		}
		if b, err := c.ReadFile("d/atomic"); string(b) != "new" {
			t.Fatal(string(b), err)
		}
		var third string
		switch {
		case b[2*pageBytes] == 'u':
			third = "written"
		case b[2*pageBytes] == 's':
			third = "old"
		}
		seen["page "+third] = true
		seen[fmt.Sprint("size ", len(b) == 5*pageBytes)] = true
		_, err1 := c.Stat("d/unsynced")
		_, err2 := c.Stat("d/renamed")
		seen[fmt.Sprint("names ", err1 == nil, err2 == nil)] = true
		if err1 == nil && err2 == nil {
			t.Fatal("a rename left both names")
		}
		if b, _ := m.ReadFile("d/f"); len(b) != 5*pageBytes {
			t.Fatal("the original was harmed")
		}
	}
	for _, want := range []string{"page written", "page old", "names false false", "names true false", "names false true"} {
		if !seen[want] {
			t.Errorf("never saw %s in %v", want, seen)
		}
	}
}

func TestCrashCloneIsDeterministic(t *testing.T) {
	run := func() string {
		m := NewMem(7)
		rng := rand.New(rand.NewPCG(1, 1))
		var out string
		for range 20 {
			f, _ := m.OpenOrCreate(fmt.Sprint("f", rng.IntN(3)))
			f.WriteAt(make([]byte, rng.IntN(20000)), int64(rng.IntN(20000)))
			c := m.CrashClone()
			entries, _ := c.ReadDir(".")
			out += fmt.Sprintln(entries)
		}
		return out
	}
	if a, b := run(), run(); a != b {
		t.Fatalf("%s\n%s", a, b)
	}
}

func TestFaulty(t *testing.T) {
	f := NewFaulty(NewMem(1))
	file, err := f.Create("log")
	must(t, err)
	hits := f.Inject(Fault{Op: OpWrite, Path: "log", Skip: 1, Times: 2, Err: syscall.ENOSPC, Torn: 2})
	for i, want := range []error{nil, syscall.ENOSPC, syscall.ENOSPC, nil} {
		n, err := file.WriteAt([]byte("abcd"), int64(4*i))
		if !errors.Is(err, want) || (err == nil) != (want == nil) || err != nil && n != 2 {
			t.Fatal(i, n, err)
		}
		if want != nil && !IsNoSpace(err) {
			t.Fatal(err)
		}
	}
	if hits(true) != 2 {
		t.Fatal("hits")
	}
	b, _ := f.ReadFile("log")
	if string(b) != "abcdab\x00\x00ab\x00\x00abcd" {
		t.Fatalf("%q", b)
	}
	for _, op := range []Op{OpOpen, OpWrite, OpSync, OpRename, OpSyncDir} {
		must(t, f.WriteAtomic("x", []byte("old")))
		f.Inject(Fault{Op: op, Err: syscall.EIO})
		if err := f.WriteAtomic("x", []byte("new")); !errors.Is(err, syscall.EIO) {
			t.Fatal(op, err)
		}
		f.Clear()
		b, err := f.ReadFile("x")
		if err != nil || string(b) != "old" && op != OpSyncDir {
			t.Fatalf("%s: %q %v", op, b, err)
		}
		if _, err := f.Stat("x.tmp"); err == nil {
			t.Fatal(op, "left x.tmp")
		}
	}
}
