//go:build !unix

package wire

import (
	"errors"
	"net"
	"syscall"
)

func resetByPeer(err error) bool {
	var e syscall.Errno
	return errors.As(err, &e)
}

// temporaryAccept takes every error of an open listener for passing: Windows has
// its own numbers for want of handles and buffers.
func temporaryAccept(err error) bool {
	return !errors.Is(err, net.ErrClosed)
}
