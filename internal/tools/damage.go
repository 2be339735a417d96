package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

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
	// A wrong checksum is a line of the dump and ends nothing: what comes behind
	// the batch is worth seeing.
	seen := &damageLines{w: w}
	err := commitlog.Dump(seen, disk.OS, path, o)
	if err == nil && seen.found != nil && o.Data {
		// A record may hold a text that looks like such a line.
		o.Data = false
		seen = &damageLines{w: io.Discard}
		err = commitlog.Dump(seen, disk.OS, path, o)
	}
	if err == nil && seen.found != nil {
		return seen.found
	}
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

// damageLines passes a dump on and keeps the first line of it that tells damage.
type damageLines struct {
	w     io.Writer
	rest  []byte
	found *damage
}

var (
	invalidBatch   = regexp.MustCompile(`^baseOffset: .* position: (\d+) .* isvalid: false$`)
	invalidRecords = regexp.MustCompile(`^Records at position (\d+) cannot be read: (.*)$`)
)

func (d *damageLines) Write(p []byte) (int, error) {
	if d.found == nil {
		d.rest = append(d.rest, p...)
		for d.found == nil {
			line, rest, ok := bytes.Cut(d.rest, []byte("\n"))
			if !ok {
				break
			}
			m, err := invalidBatch.FindSubmatch(line), errors.New("the checksum of the batch does not match")
			if m == nil {
				if m = invalidRecords.FindSubmatch(line); m != nil {
					err = fmt.Errorf("the records of the batch cannot be read: %s", m[2])
				}
			}
			if m != nil {
				at, _ := strconv.ParseInt(string(m[1]), 10, 64)
				d.found = &damage{at, err}
			}
			d.rest = rest
		}
	}
	return d.w.Write(p)
}
