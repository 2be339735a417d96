//go:build netbsd || openbsd || dragonfly

package disk

func freeBytes(string) (uint64, error) { return 0, ErrUnsupported }
