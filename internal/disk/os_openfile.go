//go:build !linux

package disk

import "os"

func openFile(path string, flag int) (*os.File, error) { return os.OpenFile(path, flag, 0o644) }

func readFile(path string) ([]byte, error) { return os.ReadFile(path) }

func readDir(path string) ([]Entry, error) {
	des, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(des))
	for _, de := range des {
		e := Entry{Name: de.Name(), Dir: de.IsDir()}
		if !e.Dir {
			info, err := de.Info()
			if os.IsNotExist(err) {
				continue // went between the listing and the stat
			}
			if err != nil {
				return nil, err
			}
			e.Size = info.Size()
		}
		entries = append(entries, e)
	}
	return entries, nil
}
