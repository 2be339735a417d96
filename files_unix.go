//go:build !windows

package weir

import "golang.org/x/sys/unix"

// openFilesLimit is how many descriptors this process may have; 0: not known. Go
// raises the soft limit to the hard one when the process starts.
func openFilesLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return int(min(uint64(r.Cur), 1<<30)) //nolint:unconvert // signed on FreeBSD
}
