package tools

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/quorum"
)

// damage is what is wrong with a file, and where.
type damage struct {
	at  int64 // byte
	err error
}

func (d *damage) Error() string { return fmt.Sprintf("damaged at byte %d: %v", d.at, d.err) }

// dumpFile writes what one file holds. A file that is not sound ends with
// *damage, after all that could be read of it.
func dumpFile(w io.Writer, path string, o commitlog.DumpOptions) error {
	if isMetadata(path) {
		err := quorum.Dump(w, disk.OS, path)
		if c, ok := errors.AsType[*quorum.CorruptError](err); ok {
			return &damage{c.Offset, c.Err}
		}
		return err
	}
	err := commitlog.Dump(w, disk.OS, path, o)
	if c, ok := errors.AsType[*commitlog.CorruptError](err); ok {
		return &damage{c.Position, c.Err}
	}
	return err
}

// isMetadata says whether a file is of the metadata log: by its folder, or,
// where it was copied elsewhere, by its first bytes.
func isMetadata(path string) bool {
	if abs, err := filepath.Abs(path); err == nil && filepath.Base(filepath.Dir(abs)) == quorum.Dir {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 8)
	_, err = io.ReadFull(f, head)
	return err == nil && quorum.Recognize(head)
}
