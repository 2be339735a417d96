//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

func volumeSpace(path string) (free, total uint64, err error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == unix.EINTR {
			continue
		}
		size := uint64(st.Bsize)
		return uint64(st.Bavail) * size, uint64(st.Blocks) * size, pathError("statfs", path, err)
	}
}
