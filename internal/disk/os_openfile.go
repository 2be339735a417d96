//go:build !linux

package disk

import "os"

func openFile(path string, flag int) (*os.File, error) { return os.OpenFile(path, flag, 0o644) }
