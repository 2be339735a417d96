//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

func freeBytes(path string) (uint64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == unix.EINTR {
			continue
		}
		return uint64(st.Bavail) * uint64(st.Bsize), pathError("statfs", path, err)
	}
}
