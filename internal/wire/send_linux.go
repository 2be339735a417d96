package wire

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// fileSender is the state of a raw send. Its functions are made once per
// connection, so that sending allocates nothing.
type fileSender struct {
	sendfile func(fd uintptr) bool
	sendmore func(fd uintptr) bool

	src  int
	off  int64
	left int64
	buf  []byte
	err  error
}

func (c *Conn) sendInit() {
	f := &c.file
	f.sendfile = func(fd uintptr) bool {
		for f.left > 0 {
			n, err := unix.Sendfile(int(fd), f.src, &f.off, int(min(f.left, 1<<20)))
			switch {
			case n > 0:
				f.left -= int64(n)
				c.writes.Add(2)
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false
			case err == nil:
				f.err = io.ErrUnexpectedEOF // the file is shorter than the region
				return true
			default:
				f.err = err
				return true
			}
		}
		return true
	}
	f.sendmore = func(fd uintptr) bool {
		for len(f.buf) > 0 {
			n, err := unix.SendmsgN(int(fd), f.buf, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false
			case err != nil:
				f.err = err
				return true
			default:
				f.buf = f.buf[n:]
				c.writes.Add(2)
			}
		}
		return true
	}
}

// sendFile sends length bytes of a file from off on without copying them. done
// is false when this file cannot be sent so and nothing was sent.
func (c *Conn) sendFile(src uintptr, off, length int64) (done bool, err error) {
	f := &c.file
	f.src, f.off, f.left, f.err = int(src), off, length, nil
	c.writes.Add(1)
	err = c.raw.Write(f.sendfile)
	c.writes.Add(1)
	if err == nil {
		err = f.err
	}
	if err != nil && f.left == length && (err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sendfile of %d bytes at %d, %d left: %w", length, off, f.left, err)
	}
	return true, nil
}

func (c *Conn) writeMore(b []byte) error {
	f := &c.file
	f.buf, f.err = b, nil
	err := c.raw.Write(f.sendmore)
	f.buf = nil
	if err == nil {
		err = f.err
	}
	return err
}
