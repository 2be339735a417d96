package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// openFile is os.OpenFile without the three calls by which that one finds out that a
// plain file cannot be polled: indexes of old segments are opened for every look-up.
func openFile(path string, flag int) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC, 0o644)
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if err != unix.EINTR {
			return nil, pathError("open", path, err)
		}
	}
}

func (f *osFile) syncData() error {
	for {
		if err := unix.Fdatasync(int(f.fd)); err != unix.EINTR {
			return pathError("fdatasync", f.Name(), err)
		}
	}
}

// preallocate keeps the size: a file that ends in zeros would have to be told
// from a torn tail after a crash.
func (f *osFile) preallocate(size int64) error {
	for {
		err := unix.Fallocate(int(f.fd), unix.FALLOC_FL_KEEP_SIZE, 0, size)
		switch err {
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return ErrUnsupported
		default:
			return pathError("fallocate", f.Name(), err)
		}
	}
}

// lockFile uses an open file description lock: it excludes Kafka's own lock
// (fcntl) on the same file, which flock would not, and also a second broker in
// this process, which a plain fcntl lock would not.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = ErrLocked
		}
		return nil, pathError("lock", path, err)
	}
	return f, nil
}
