package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weirmq/weir/internal/disk"
)

// Dir is the folder of the metadata log inside the metadata log dir.
const Dir = "__weir_metadata"

const (
	logSuffix      = ".log"
	snapshotSuffix = ".snapshot"
	snapshotMagic  = "weirsnap"

	// Files are filled with zeros ahead of what is written: a sync then has no
	// change of size to make durable (213 against 123 us on ext4 here), and a
	// full disk is met before a change is proposed, not after.
	firstFill = 16 << 10
	fill      = 256 << 10
)

// CorruptError is damage that no crash leaves behind.
type CorruptError struct {
	File   string
	Offset int64
	Err    error
	Try    string // a way out, when it stops a start
}

func (e *CorruptError) Error() string {
	s := fmt.Sprintf("metadata log %s is damaged at byte %d: %v", e.File, e.Offset, e.Err)
	if e.Try != "" {
		s += ": " + e.Try
	}
	return s
}

func (e *CorruptError) Unwrap() error { return e.Err }

// snapshot is a state with its place in the log.
type snapshot struct {
	index, term uint64
	voters      []uint64
	data        []byte // records, one to a line
}

// stored is what the files hold.
type stored struct {
	id      start // identity and voters; prev of the base
	snap    *snapshot
	hard    hardState
	entries []*pb.Entry // from base+1
	base    uint64      // index before entries[0]
	baseTrm uint64
}

func (s *stored) lastIndex() uint64 { return s.base + uint64(len(s.entries)) }

// logFile is one file of entries.
type logFile struct {
	path string
	last uint64 // highest index it ever held
}

// files writes the log and snapshot files. Used by one goroutine.
type files struct {
	fs   disk.FS
	dir  string
	log  *slog.Logger
	id   start
	f    disk.File
	end  int64 // where the next frame goes
	size int64 // of the file, zeros included

	older []logFile
	cur   logFile
	bytes int64 // of frames since the last snapshot
	buf   []byte
	snap  uint64
}

func logName(first uint64) string   { return fmt.Sprintf("%020d%s", first, logSuffix) }
func snapName(index uint64) string  { return fmt.Sprintf("%020d%s", index, snapshotSuffix) }
func (w *files) at(n string) string { return filepath.Join(w.dir, n) }

func parseName(name, suffix string) (uint64, bool) {
	base, ok := strings.CutSuffix(name, suffix)
	if !ok || len(base) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(base, 10, 64)
	return n, err == nil
}

// openFiles reads what is there, or begins an empty log for id.
//
// Its way out of damage is no cut at the damaged byte, though the rest would
// load: producer ids given out behind it would be given out again, and a new
// producer taken for an old one loses records as duplicates.
func openFiles(fsys disk.FS, dir string, id start, log *slog.Logger) (*files, *stored, error) {
	w, st, err := readFiles(fsys, dir, id, log)
	if c, ok := errors.AsType[*CorruptError](err); ok {
		c.Try = fmt.Sprintf("put the folder %s back from a copy, or start in an empty folder with --data-dir; weir log dump %s shows what the file still holds", dir, c.File)
	}
	return w, st, err
}

func readFiles(fsys disk.FS, dir string, id start, log *slog.Logger) (*files, *stored, error) {
	w := &files{fs: fsys, dir: dir, log: log, id: id}
	entries, err := fsys.ReadDir(dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		err = fsys.MkdirAll(dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("metadata log: %w", err)
	}
	var logs, snaps []uint64
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".tmp") {
			if err := fsys.Remove(w.at(e.Name)); err != nil {
				return nil, nil, fmt.Errorf("metadata log: %w", err)
			}
		}
		if n, ok := parseName(e.Name, logSuffix); ok {
			logs = append(logs, n)
		}
		if n, ok := parseName(e.Name, snapshotSuffix); ok {
			snaps = append(snaps, n)
		}
	}
	sort.Slice(logs, func(i, j int) bool { return logs[i] < logs[j] })
	sort.Slice(snaps, func(i, j int) bool { return snaps[i] < snaps[j] })

	st := &stored{id: id}
	if len(snaps) > 0 {
		newest := snaps[len(snaps)-1]
		if st.snap, err = readSnapshot(fsys, w.at(snapName(newest))); err != nil {
			return nil, nil, err
		}
		w.snap = newest
		st.base, st.baseTrm, st.id.voters = st.snap.index, st.snap.term, st.snap.voters
	}
	for i, first := range logs {
		if err := w.replay(st, first, i == 0, i == len(logs)-1); err != nil {
			return nil, nil, err
		}
	}
	if len(logs) == 0 {
		if st.snap == nil {
			st.base, st.baseTrm = 1, 1 // the entry that would have made the voters
		}
		st.hard = hardState{term: st.baseTrm, commit: st.base}
		w.id.voters = st.id.voters
		if err := w.create(st.base, st.baseTrm, st.hard); err != nil {
			return nil, nil, err
		}
	}
	if fresh { // last: journalling file systems have made it durable by now
		if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
			_ = w.close()
			return nil, nil, fmt.Errorf("metadata log: %w", err)
		}
	}
	w.id.voters = st.id.voters
	st.hard.commit = min(max(st.hard.commit, st.base), st.lastIndex())
	st.hard.term = max(st.hard.term, st.baseTrm)
	return w, st, nil
}

// replay reads one log file into st. Only the last file may end in a torn frame.
func (w *files) replay(st *stored, first uint64, isFirst, isLast bool) error {
	path := w.at(logName(first))
	b, err := w.fs.ReadFile(path)
	if err != nil {
		return fmt.Errorf("metadata log: %w", err)
	}
	bad := func(off int, err error) error { return &CorruptError{File: path, Offset: int64(off), Err: err} }
	if len(b) < fileHeaderLen || string(b[:8]) != logMagic {
		return bad(0, errors.New("not a metadata log"))
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != formatVersion {
		return fmt.Errorf("metadata log %s has version %d, this program knows %d", path, v, formatVersion)
	}
	body, off, err := frameAt(b, fileHeaderLen)
	if err != nil {
		return bad(fileHeaderLen, err)
	}
	s, err := readStart(body)
	if err != nil {
		return bad(fileHeaderLen, err)
	}
	if err := w.sameOwner(path, s); err != nil {
		return err
	}
	if isFirst && st.snap == nil {
		st.base, st.baseTrm, st.id.voters = s.prevIndex, s.prevTerm, s.voters
	}
	if s.prevIndex > st.lastIndex() {
		return bad(fileHeaderLen, fmt.Errorf("begins after entry %d but the last one known is %d: a file is missing", s.prevIndex, st.lastIndex()))
	}
	st.hard = s.hard
	file := logFile{path: path, last: s.prevIndex}
	for {
		body, next, err := frameAt(b, off)
		if err == errNoFrame {
			break
		}
		if err != nil {
			if later := laterFrame(b, off); !isLast || later >= 0 {
				return bad(off, err)
			}
			w.log.Warn("metadata log: the last write was cut by a crash and is dropped", "file", path, "offset", off)
			break
		}
		hard, ents, err := readEntries(body)
		if err != nil {
			return bad(off, err)
		}
		st.hard = hard
		for _, e := range ents {
			i := e.GetIndex()
			if i > st.lastIndex()+1 {
				return bad(off, fmt.Errorf("entry %d follows entry %d", i, st.lastIndex()))
			}
			file.last = max(file.last, i)
			if i <= st.base {
				continue // in the snapshot
			}
			st.entries = append(st.entries[:i-st.base-1], e)
		}
		w.bytes += int64(next - off)
		off = next
	}
	if !isLast {
		w.older = append(w.older, file)
		return nil
	}
	w.cur = file
	if w.f, err = w.fs.Open(path); err != nil {
		return fmt.Errorf("metadata log: %w", err)
	}
	w.end, w.size = int64(off), int64(len(b))
	if !allZero(b[off:]) {
		// Gone for good before anything is written behind it.
		if err := w.f.Truncate(w.end); err != nil {
			return fmt.Errorf("metadata log: %w", err)
		}
		if err := w.f.Sync(); err != nil {
			return fmt.Errorf("metadata log: %w", err)
		}
		w.size = w.end
	}
	return nil
}

func (w *files) sameOwner(path string, s *start) error {
	if s.clusterID != w.id.clusterID {
		return fmt.Errorf("metadata log %s belongs to cluster %s, this node is of cluster %s", path, s.clusterID, w.id.clusterID)
	}
	if s.nodeID != w.id.nodeID {
		return fmt.Errorf("metadata log %s belongs to node %d, this node is %d", path, s.nodeID, w.id.nodeID)
	}
	return nil
}

// create begins a log file after entry prev. It gets its name only when its
// first frame is durable, so a log file always says whose it is.
func (w *files) create(prev, prevTerm uint64, hard hardState) error {
	path := w.at(logName(prev + 1))
	tmp := path + ".tmp"
	f, err := w.fs.Create(tmp)
	if err != nil {
		return fmt.Errorf("metadata log: %w", err)
	}
	s := w.id
	s.prevIndex, s.prevTerm, s.hard = prev, prevTerm, hard
	b := make([]byte, fileHeaderLen, firstFill)
	copy(b, logMagic)
	binary.BigEndian.PutUint32(b[8:], formatVersion)
	frame := appendStart(beginFrame(nil, kindStart), &s)
	b = append(b, endFrame(frame, fileHeaderLen)...)
	end := int64(len(b))
	if len(b) < firstFill {
		b = b[:firstFill]
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = w.fs.Rename(tmp, path)
	}
	if err == nil {
		err = w.fs.SyncDir(w.dir)
	}
	if err != nil {
		_ = f.Close()
		_ = w.fs.Remove(tmp)
		return fmt.Errorf("metadata log: %w", err)
	}
	if w.f != nil {
		_ = w.f.Close() // all of it is synced
		w.older = append(w.older, w.cur)
	}
	w.f, w.end, w.size = f, end, int64(len(b))
	w.cur = logFile{path: path, last: prev}
	return nil
}

// room makes sure that n more bytes of entries fit, with the frames around
// them. It is the place where a full disk is met, while nothing is decided yet.
func (w *files) room(n int) error {
	need := w.end + int64(n) + 4*frameHeaderLen + 256
	if need <= w.size {
		return nil
	}
	size := (need + fill - 1) / fill * fill
	if _, err := w.f.WriteAt(make([]byte, size-w.size), w.size); err != nil {
		return fmt.Errorf("metadata log %s: making room: %w", w.cur.path, err)
	}
	w.size = size
	return nil
}

// append writes one frame and syncs it.
func (w *files) append(hard hardState, ents []*pb.Entry) error {
	n := 64
	for _, e := range ents {
		n += 21 + len(e.GetData())
	}
	if err := w.room(n); err != nil {
		return err
	}
	if cap(w.buf) > 4<<20 {
		w.buf = nil // do not keep the memory of one huge request
	}
	b := endFrame(appendEntries(beginFrame(w.buf[:0], kindAppend), hard, ents), w.end)
	w.buf = b
	if len(b)-frameHeaderLen > maxFrameBody {
		panic(fmt.Sprintf("BUG: metadata frame of %d bytes", len(b)))
	}
	if _, err := w.f.WriteAt(b, w.end); err != nil {
		return fmt.Errorf("metadata log %s at %d: %w", w.cur.path, w.end, err)
	}
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("metadata log %s: sync: %w", w.cur.path, err)
	}
	w.end += int64(len(b))
	w.bytes += int64(len(b))
	for _, e := range ents {
		w.cur.last = max(w.cur.last, e.GetIndex())
	}
	return nil
}

// saveSnapshot makes a state durable, begins a new log file after last, and
// removes what the snapshot replaces.
func (w *files) saveSnapshot(s *snapshot, last, lastTerm uint64, hard hardState) error {
	if err := w.fs.WriteAtomic(w.at(snapName(s.index)), appendSnapshot(nil, s)); err != nil {
		return fmt.Errorf("metadata snapshot: %w", err)
	}
	old := w.snap
	w.snap, w.bytes = s.index, 0
	if err := w.create(last, lastTerm, hard); err != nil {
		return err
	}
	kept := w.older[:0]
	for _, l := range w.older {
		if l.last > s.index {
			kept = append(kept, l)
			continue
		}
		if err := w.fs.Remove(l.path); err != nil {
			return fmt.Errorf("metadata log: %w", err)
		}
	}
	w.older = kept
	if old != 0 && old != s.index {
		if err := w.fs.Remove(w.at(snapName(old))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("metadata snapshot: %w", err)
		}
	}
	return nil
}

func (w *files) close() error { return w.f.Close() }

func appendSnapshot(b []byte, s *snapshot) []byte {
	b = append(b, snapshotMagic...)
	b = binary.BigEndian.AppendUint32(b, formatVersion)
	at := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, s.index)
	b = binary.BigEndian.AppendUint64(b, s.term)
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.voters)))
	for _, v := range s.voters {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, s.data...)
	binary.BigEndian.PutUint32(b[at:], crc32.Checksum(b[at+4:], castagnoli))
	return b
}

func readSnapshot(fsys disk.FS, path string) (*snapshot, error) {
	b, err := fsys.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("metadata snapshot: %w", err)
	}
	s, err := parseSnapshot(b)
	if err != nil {
		return nil, &CorruptError{File: path, Err: err}
	}
	return s, nil
}

func parseSnapshot(b []byte) (*snapshot, error) {
	if len(b) < 16 || string(b[:8]) != snapshotMagic {
		return nil, errors.New("not a metadata snapshot")
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != formatVersion {
		return nil, fmt.Errorf("version %d, this program knows %d", v, formatVersion)
	}
	if crc32.Checksum(b[16:], castagnoli) != binary.BigEndian.Uint32(b[12:]) {
		return nil, errors.New("wrong checksum")
	}
	c := cursor{b[16:], true}
	s := &snapshot{index: c.u64(), term: c.u64(), voters: c.voters()}
	if !c.ok {
		return nil, errors.New("too short")
	}
	s.data = c.b
	return s, nil
}
