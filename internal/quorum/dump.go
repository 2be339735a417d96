package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weirmq/weir/internal/disk"
)

// Recognize says whether a file that begins with head, at least 8 bytes, is a
// log or snapshot file of this room.
func Recognize(head []byte) bool {
	return strings.HasPrefix(string(head), logMagic) || strings.HasPrefix(string(head), snapshotMagic)
}

// Dump writes one log or snapshot file as text: a line for each frame and
// entry, and the records as they stand. It reads past nothing: at the first
// broken frame it says so and ends with an error.
func Dump(w io.Writer, fs disk.FS, path string) error {
	b, err := fs.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.HasPrefix(string(b), snapshotMagic) {
		s, err := parseSnapshot(b)
		if err != nil {
			return &CorruptError{File: path, Err: err}
		}
		fmt.Fprintf(w, "snapshot index %d term %d voters %v bytes %d\n", s.index, s.term, s.voters, len(s.data))
		return dumpRecords(w, s.data)
	}
	if len(b) < fileHeaderLen || string(b[:8]) != logMagic {
		return &CorruptError{File: path, Err: errors.New("neither a metadata log nor a metadata snapshot")}
	}
	fmt.Fprintf(w, "log version %d\n", binary.BigEndian.Uint32(b[8:]))
	for off := fileHeaderLen; ; {
		body, next, err := frameAt(b, off)
		if err == errNoFrame {
			fmt.Fprintf(w, "%d end\n", off)
			return nil
		}
		if err == nil {
			err = dumpFrame(w, off, body)
		}
		if err != nil {
			fmt.Fprintf(w, "%d broken\n", off)
			return &CorruptError{File: path, Offset: int64(off), Err: err}
		}
		off = next
	}
}

func dumpFrame(w io.Writer, off int, body []byte) error {
	if body[0] == kindStart {
		s, err := readStart(body)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d start after index %d term %d; term %d vote %d commit %d; node %d cluster %s voters %v\n",
			off, s.prevIndex, s.prevTerm, s.hard.term, s.hard.vote, s.hard.commit, s.nodeID, s.clusterID, s.voters)
		return nil
	}
	h, ents, err := readEntries(body)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d append term %d vote %d commit %d\n", off, h.term, h.vote, h.commit)
	for _, e := range ents {
		fmt.Fprintf(w, "  entry %d term %d type %d bytes %d\n", e.GetIndex(), e.GetTerm(), e.GetType(), len(e.GetData()))
		if err := dumpRecords(w, e.GetData()); err != nil {
			return err
		}
	}
	return nil
}

func dumpRecords(w io.Writer, data []byte) error {
	for line := range strings.Lines(string(data)) {
		if _, err := fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}
