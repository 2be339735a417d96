package lab

import (
	"time"

	"golang.org/x/sys/unix"
)

// nanosleep waits with the system's own call: the runtime's timers are half a
// millisecond late on an idle machine, which would be told as the client's queue.
func nanosleep(d time.Duration) {
	for ts := unix.NsecToTimespec(int64(d)); unix.Nanosleep(&ts, &ts) == unix.EINTR; {
		continue
	}
}
