package disk

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A start reads a folder and some small files for each of thousands of partitions.
// Package os takes two or three calls more for each, to find out that a plain file
// cannot be polled, and looks up the whole path again for every name of a folder.

// retry does a call again that a signal cut short.
func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if err != unix.EINTR {
			return v, err
		}
	}
}

func openFD(op, path string, flag int) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, flag|unix.O_CLOEXEC, 0o644) })
	return fd, pathError(op, path, err)
}

var readBuffers = sync.Pool{New: func() any { b := make([]byte, 8<<10); return &b }}

func readFile(path string) ([]byte, error) {
	fd, err := openFD("open", path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	bp := readBuffers.Get().(*[]byte)
	defer readBuffers.Put(bp)
	n, err := retry(func() (int, error) { return unix.Read(fd, *bp) })
	if err == nil && n < len(*bp) { // a file that gave less than asked has ended
		_ = unix.Close(fd)
		return bytes.Clone((*bp)[:n]), nil
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if err != nil {
		return nil, pathError("read", path, err)
	}
	rest, err := io.ReadAll(f)
	return append(bytes.Clone((*bp)[:n]), rest...), err
}

func readDir(path string) ([]Entry, error) {
	fd, err := openFD("open", path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	bp := readBuffers.Get().(*[]byte)
	defer readBuffers.Put(bp)
	var entries []Entry
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, *bp) })
		if err != nil {
			return nil, pathError("getdents", path, err)
		}
		if n == 0 {
			slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
			return entries, nil
		}
		if entries, err = statAll(fd, path, (*bp)[:n], entries); err != nil {
			return nil, err
		}
	}
}

// statAll reads a row of linux_dirent64: inode and position (8 bytes each), length of
// the entry (2), type (1), name, zero bytes.
func statAll(fd int, path string, b []byte, entries []Entry) ([]Entry, error) {
	for len(b) > 0 {
		length := int(binary.NativeEndian.Uint16(b[16:]))
		kind, name := b[18], b[19:length]
		b = b[length:]
		name = name[:bytes.IndexByte(name, 0)]
		if s := string(name); s != "." && s != ".." {
			e := Entry{Name: s, Dir: kind == unix.DT_DIR}
			if !e.Dir {
				var st unix.Stat_t
				_, err := retry(func() (struct{}, error) {
					return struct{}{}, unix.Fstatat(fd, s, &st, unix.AT_SYMLINK_NOFOLLOW)
				})
				if err == unix.ENOENT {
					continue // went between the listing and the stat
				}
				if err != nil {
					return nil, pathError("stat", path+"/"+s, err)
				}
				e.Dir, e.Size = st.Mode&unix.S_IFMT == unix.S_IFDIR, st.Size
				if e.Dir {
					e.Size = 0
				}
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}
