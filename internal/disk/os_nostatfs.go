//go:build netbsd || openbsd || dragonfly

package disk

func volumeSpace(string) (free, total uint64, err error) { return 0, 0, ErrUnsupported }
