//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// syncData is os.File.Sync, which on darwin asks the drive itself (F_FULLFSYNC).
func (f *osFile) syncData() error { return f.File.Sync() }

func (f *osFile) preallocate(int64) error { return ErrUnsupported }

func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, pathError("lock", path, err)
	}
	return f, nil
}
