package commitlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// DumpOptions say how much Dump shows.
type DumpOptions struct {
	Deep         bool  // records, not batches only
	Data         bool  // keys and values too; implies Deep
	SkipMetadata bool  // keys and values alone; implies Data
	IndexCheck   bool  // index files: only say whether they are sound
	VerifyIndex  bool  // index files: only compare them with the log beside them
	MaxBytes     int64 // of batches read from a .log file; 0: all
	// Render writes a record's key and value; nil: as text.
	Render func(w io.Writer, r *batch.Record)
}

// Dump shows what a file of a log holds, in the lines of Kafka's DumpLogSegments,
// which people's scripts know. It understands .log, .index, .timeindex, .txnindex
// and .snapshot, also with a suffix such as .deleted, and the text files of a log
// directory. Damage is shown where it is met, and the first of it comes back as
// *CorruptError: a wrong checksum too, which is a line of the dump and ends nothing,
// for what comes behind the batch is worth seeing.
func Dump(w io.Writer, fs disk.FS, path string, o DumpOptions) error {
	out := bufio.NewWriter(w)
	d := dumper{w: out, fs: fs, path: path, o: o}
	err := d.run()
	if d.bad != nil && (err == nil || errors.As(err, new(*CorruptError))) {
		err = d.bad
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return err
}

type dumper struct {
	w    *bufio.Writer
	fs   disk.FS
	path string
	o    DumpOptions
	bad  error // the first damage that did not end the dump
}

var errChecksum = errors.New("the checksum of the batch does not match")

func (d *dumper) damaged(pos int64, err error) {
	if d.bad == nil {
		d.bad = &CorruptError{d.path, pos, err}
	}
}

func (d *dumper) run() error {
	fmt.Fprintf(d.w, "Dumping %s\n", d.path)
	name := filepath.Base(d.path)
	base, ext, ok := parseName(name)
	for _, suffix := range []string{deletedExt, cleanedExt, swapExt} {
		ext = strings.TrimSuffix(ext, suffix)
	}
	switch {
	case ok && ext == logExt:
		return d.log(base)
	case ok && ext == indexExt:
		return d.index(base)
	case ok && ext == timeExt:
		return d.times(base)
	case ok && ext == txnExt:
		return d.txns()
	case ok && ext == snapshotExt:
		return d.snapshot()
	case name == epochFile, name == metadataFile, strings.HasSuffix(name, "-checkpoint"):
		b, err := d.fs.ReadFile(d.path)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.w, "%s\n", strings.TrimSuffix(string(b), "\n"))
		return nil
	}
	fmt.Fprintf(d.w, "Ignoring unknown file %s\n", d.path)
	return nil
}

func (d *dumper) log(base kafka.Offset) error {
	fmt.Fprintf(d.w, "Log starting offset: %d\n", base)
	f, err := d.fs.OpenRead(d.path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	limit := size
	if d.o.MaxBytes > 0 {
		limit = min(limit, d.o.MaxBytes)
	}
	sc := newScanner(f, 0, limit, false)
	for {
		b, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err == errTorn && limit < size {
			return nil // the caller's limit
		}
		if err != nil {
			fmt.Fprintf(d.w, "Found %d invalid bytes at the end of %s: %v\n", size-sc.pos, filepath.Base(d.path), err)
			return &CorruptError{d.path, sc.pos, err}
		}
		v, err := readBatch(f, b)
		if err != nil {
			return err
		}
		if !v.CRCOK() {
			d.damaged(b.pos, errChecksum)
		}
		if !d.o.SkipMetadata {
			d.batch(v, b.pos)
		}
		if d.o.Deep || d.o.Data || d.o.SkipMetadata {
			if err := d.records(v); err != nil {
				fmt.Fprintf(d.w, "Records at position %d cannot be read: %v\n", b.pos, err)
				d.damaged(b.pos, fmt.Errorf("the records of the batch cannot be read: %w", err))
			}
		}
	}
}

func (d *dumper) batch(v batch.View, pos int64) {
	horizon := "OptionalLong.empty"
	if ms, ok := v.DeleteHorizon(); ok {
		horizon = fmt.Sprintf("OptionalLong[%d]", ms)
	}
	fmt.Fprintf(d.w, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d"+
		" partitionLeaderEpoch: %d isTransactional: %t isControl: %t deleteHorizonMs: %s position: %d %s: %d size: %d magic: %d"+
		" compresscodec: %s crc: %d isvalid: %t\n",
		v.BaseOffset(), v.LastOffset(), v.Count(), v.BaseSequence(), v.LastSequence(), v.ProducerID(), v.ProducerEpoch(),
		v.LeaderEpoch(), v.Transactional(), v.Control(), horizon, pos, timeName(v), v.MaxTimestamp(), len(v), v.Magic(),
		v.Codec(), v.CRC(), v.CRCOK())
}

func timeName(v batch.View) string {
	if v.AppendTime() {
		return "LogAppendTime"
	}
	return "CreateTime"
}

func (d *dumper) records(v batch.View) error {
	if v.Control() && d.o.SkipMetadata {
		return nil
	}
	return v.Each(func(r *batch.Record) error {
		fmt.Fprint(d.w, "| ")
		if !d.o.SkipMetadata {
			seq := batch.NoSequence
			if v.BaseSequence() != batch.NoSequence {
				seq = batch.AddSequence(v.BaseSequence(), r.OffsetDelta)
			}
			names := make([]string, len(r.Headers))
			for i, h := range r.Headers {
				names[i] = h.Key
			}
			fmt.Fprintf(d.w, "offset: %d %s: %d keySize: %d valueSize: %d sequence: %d headerKeys: [%s]",
				v.Offset(r), timeName(v), v.Timestamp(r), sizeOf(r.Key), sizeOf(r.Value), seq, strings.Join(names, ","))
			if v.Control() {
				if m, err := v.Marker(); err == nil && (m.Kind == batch.Abort || m.Kind == batch.Commit) {
					fmt.Fprintf(d.w, " endTxnMarker: %s coordinatorEpoch: %d", []string{"ABORT", "COMMIT"}[m.Kind], m.CoordinatorEpoch)
				}
			}
		}
		if (d.o.Data || d.o.SkipMetadata) && !v.Control() {
			if d.o.Render != nil {
				d.o.Render(d.w, r)
			} else {
				if r.Key != nil {
					fmt.Fprintf(d.w, " key: %s", r.Key)
				}
				if r.Value != nil {
					fmt.Fprintf(d.w, " payload: %s", r.Value)
				}
			}
		}
		fmt.Fprintln(d.w)
		return nil
	})
}

func sizeOf(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// beside opens the log file that an index file belongs to.
func (d *dumper) beside(base kafka.Offset) (disk.File, int64, error) {
	f, err := d.fs.OpenRead(filepath.Join(filepath.Dir(d.path), fileName(base, logExt)))
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

func (d *dumper) index(base kafka.Offset) error {
	b, err := d.fs.ReadFile(d.path)
	if err != nil {
		return err
	}
	b = dropZeroTail(b, offsetEntryBytes)
	if d.empty(b) {
		return nil
	}
	size := int64(1) << 31
	var f disk.File
	if d.o.VerifyIndex {
		if f, size, err = d.beside(base); err != nil {
			return err
		}
		defer f.Close()
	}
	entries, err := parseOffsets(base, b, size)
	if err != nil {
		fmt.Fprintf(d.w, "%s: %v\n", d.path, err)
		return &CorruptError{d.path, 0, err}
	}
	if d.o.IndexCheck {
		fmt.Fprintf(d.w, "%s passed sanity check.\n", d.path)
		return nil
	}
	for _, e := range entries {
		if !d.o.VerifyIndex {
			fmt.Fprintf(d.w, "offset: %d position: %d\n", e.offset, e.pos)
			continue
		}
		h, err := newScanner(f, e.pos, size, false).next()
		if err == nil && h.LastOffset() != e.offset {
			err = fmt.Errorf("index offset %d, log offset %d", e.offset, h.LastOffset())
		}
		if err != nil {
			fmt.Fprintf(d.w, "Mismatch in %s at position %d: %v\n", d.path, e.pos, err)
			return &CorruptError{d.path, e.pos, err}
		}
	}
	return nil
}

func (d *dumper) times(base kafka.Offset) error {
	b, err := d.fs.ReadFile(d.path)
	if err != nil {
		return err
	}
	b = dropZeroTail(b, timeEntryBytes)
	if d.empty(b) {
		return nil
	}
	entries, err := parseTimes(base, b)
	if err != nil {
		fmt.Fprintf(d.w, "%s: %v\n", d.path, err)
		return &CorruptError{d.path, 0, err}
	}
	if d.o.IndexCheck {
		fmt.Fprintf(d.w, "%s passed sanity check.\n", d.path)
		return nil
	}
	if !d.o.VerifyIndex {
		for _, e := range entries {
			fmt.Fprintf(d.w, "timestamp: %d offset: %d\n", e.ts, e.offset)
		}
		return nil
	}
	f, size, err := d.beside(base)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := newScanner(f, 0, size, false)
	for _, e := range entries {
		for {
			h, err := sc.next()
			if err == nil && h.LastOffset() < e.offset {
				continue
			}
			if err == nil && (h.LastOffset() != e.offset || h.MaxTimestamp() != e.ts) {
				err = fmt.Errorf("index %d at %d, log %d at %d", e.ts, e.offset, h.MaxTimestamp(), h.LastOffset())
			}
			if err != nil {
				fmt.Fprintf(d.w, "Mismatch in %s: %v\n", d.path, err)
				return &CorruptError{d.path, 0, err}
			}
			break
		}
	}
	return nil
}

// empty says so of an index without entries, as Kafka does.
func (d *dumper) empty(b []byte) bool {
	if len(b) == 0 {
		fmt.Fprintf(d.w, "%s is empty.\n", d.path)
	}
	return len(b) == 0
}

// dropZeroTail takes the room off that Kafka reserves in the index of a segment
// that still grows. The first entry may itself be zeros.
func dropZeroTail(b []byte, width int) []byte {
	n := len(b)
	for n >= 2*width && n%width == 0 && allZero(b[n-width:n]) {
		n -= width
	}
	if n == width && len(b) > width && allZero(b[:n]) {
		n = 0
	}
	return b[:n]
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (d *dumper) txns() error {
	b, err := d.fs.ReadFile(d.path)
	if err != nil {
		return err
	}
	txns, err := parseTxns(b)
	if err != nil {
		return &CorruptError{d.path, 0, err}
	}
	for _, t := range txns {
		fmt.Fprintf(d.w, "version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", t.ID, t.First, t.Last, t.stable)
	}
	return nil
}

func (d *dumper) snapshot() error {
	b, err := d.fs.ReadFile(d.path)
	if err != nil {
		return err
	}
	entries, err := parseSnapshot(b)
	if err != nil {
		fmt.Fprintf(d.w, "%s: %v\n", d.path, err)
		return &CorruptError{d.path, 0, err}
	}
	for _, e := range entries {
		start := "OptionalLong.empty"
		if e.TxnStart != kafka.NoOffset {
			start = fmt.Sprintf("OptionalLong[%d]", e.TxnStart)
		}
		fmt.Fprintf(d.w, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d ",
			e.ID, e.Epoch, e.CoordinatorEpoch, start, e.TimestampMs)
		if e.LastSequence >= 0 {
			first := sent{lastSeq: e.LastSequence, delta: e.OffsetDelta}.firstSeq()
			fmt.Fprintf(d.w, "firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				first, e.LastSequence, e.LastOffset, e.OffsetDelta, e.TimestampMs)
		}
		fmt.Fprintln(d.w)
	}
	return nil
}
