//go:build unix

package lab

import (
	"time"

	"golang.org/x/sys/unix"
)

// Busy is the CPU time this process has used.
func Busy() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
