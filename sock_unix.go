//go:build unix

package weir

import (
	"errors"
	"net"
	"syscall"
)

func isAddrInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// setBacklog sets how many connections the system completes before they are
// accepted. net.Listen takes what the system allows; listening a second time on
// the same socket only changes that number.
func setBacklog(l net.Listener, n int) error {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	var lerr error
	err = raw.Control(func(fd uintptr) { lerr = syscall.Listen(int(fd), n) })
	return errors.Join(err, lerr)
}
