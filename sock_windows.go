package weir

import (
	"errors"
	"net"

	"golang.org/x/sys/windows"
)

func isAddrInUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }

// setBacklog leaves the backlog to the system, which takes its largest: Windows
// does not change it on a socket that listens.
func setBacklog(net.Listener, int) error { return nil }
