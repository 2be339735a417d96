package disk

// Reading files and folders gives what package os gives, on every system.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFileSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, n := range []int{0, 1, 8191, 8192, 8193, 100_000} {
		want := bytes.Repeat([]byte("weir"), n/4+1)[:n]
		must(t, os.WriteFile(path, want, 0o644))
		if got, err := OS.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
	if _, err := OS.ReadFile(filepath.Dir(path)); err == nil {
		t.Error("a folder read as a file")
	}
}

func TestReadDirAsPackageOS(t *testing.T) {
	dir := t.TempDir()
	for i := range 1500 { // more than one call of the system
		name := filepath.Join(dir, fmt.Sprintf("%0*d", 1+i%200, i))
		if i%3 == 0 {
			must(t, os.Mkdir(name, 0o755))
		} else {
			must(t, os.WriteFile(name, make([]byte, i), 0o644))
		}
	}
	_ = os.Symlink(dir, filepath.Join(dir, "link")) // not everywhere allowed
	got, err := OS.ReadDir(dir)
	must(t, err)
	des, err := os.ReadDir(dir)
	must(t, err)
	if len(got) != len(des) {
		t.Fatalf("%d names, want %d", len(got), len(des))
	}
	for i, de := range des {
		want := Entry{Name: de.Name(), Dir: de.IsDir()}
		if info, err := de.Info(); err == nil && !want.Dir {
			want.Size = info.Size()
		}
		if got[i] != want {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
}
