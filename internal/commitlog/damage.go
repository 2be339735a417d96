package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// A crash leaves two marks on the unsynced end of a log: a batch that stops short,
// with nothing behind it, and after a power cut pages that never reached the disk and
// read as zeros, perhaps with whole batches behind them. Both are cut. Anything else
// that is bad with whole batches behind it was good once: cutting there would drop
// records that can still be read, so the log is not opened.

const (
	damagePage  = 4096 // what a disk loses at once
	damageChunk = 1 << 20
)

// acceptFile in a partition's folder tells the next start to cut the log at the damage
// instead of refusing it. It is removed once that is done.
const acceptFile = "accept-loss"

// WayOut says what can be done about damage in the log; either takes a start.
func (l *Log) WayOut() string {
	return "restore the file from a copy, or give up everything from there on with: touch " + l.file(acceptFile)
}

// acceptLoss says whether the folder holds acceptFile.
func (op *opening) acceptLoss() bool {
	_, err := op.fs.Stat(op.file(acceptFile))
	return err == nil
}

// lost is the error of a log whose synced records are not there any more.
func (op *opening) lost(file string, pos int64, next kafka.Offset, why error) error {
	return &CorruptError{file, pos, fmt.Errorf("%w, at offset %d, but records below %d were synced: %s", why, next, op.cfg.RecoveryPoint, op.WayOut())}
}

// emptied is the error of a synced, closed segment among the first n that has no bytes:
// only compaction leaves such.
func (op *opening) emptied(n int) error {
	for _, s := range op.segs[:n] {
		if s.size == 0 && !op.accepting && !op.options().Compact {
			return op.lost(op.path(s.base, logExt), 0, s.base, errTorn)
		}
	}
	return nil
}

// gone is the error of a synced, closed segment whose file is missing. Its producer
// snapshot is still there: that costs no read where all is well.
func (op *opening) gone(n int) error {
	if op.accepting || op.options().Compact || op.cfg.Cleaned > 0 || n == 0 {
		return nil
	}
	for _, base := range op.snapshots {
		i := findSegment(op.segs, base)
		s := op.segs[i]
		if i >= n || base <= s.base {
			continue
		}
		next := s.base
		if err := op.walk(s, s.base, func(b found) error { next = b.LastOffset() + 1; return nil }); err != nil {
			return err
		}
		if next < op.segs[i+1].base { // otherwise the snapshot was taken within the segment
			return op.lost(op.path(base, logExt), 0, next, errGone)
		}
	}
	return nil
}

var errGone = errors.New("the segment is missing")

// judge says whether the bad bytes at pos of segment s (the next batch should begin
// there, at or above offset next) are damage in the middle of the log. more: later
// segments hold batches.
func (op *opening) judge(f disk.File, pos, size int64, next kafka.Offset, more bool, why error) error {
	behind, err := wholeBatchBehind(f, pos, size, next)
	if err != nil {
		return err
	}
	if behind < 0 {
		if !more || errors.Is(why, errTorn) { // the file's own end never reached the disk
			return nil
		}
		behind = size
	}
	hole, err := hasLostPage(f, pos, behind)
	if err != nil || hole {
		return err
	}
	return &CorruptError{f.Name(), pos, fmt.Errorf("%w, at offset %d, and whole batches follow: %s", why, next, op.WayOut())}
}

// wholeBatchBehind finds the first place behind pos where a whole batch with a right
// CRC begins whose offsets could follow; -1: there is none.
func wholeBatchBehind(f disk.File, pos, size int64, next kafka.Offset) (int64, error) {
	buf := make([]byte, min(damageChunk+batch.HeaderLen, max(size-pos, 0)))
	for at := pos + 1; at+batch.HeaderLen <= size; at += damageChunk {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for i := 0; i+batch.HeaderLen <= n && i < damageChunk; i++ {
			h := buf[i : i+batch.HeaderLen]
			if h[16] != 2 { // magic
				continue
			}
			base := int64(binary.BigEndian.Uint64(h))
			length := int64(int32(binary.BigEndian.Uint32(h[8:]))) + 12
			if base < int64(next) || base-int64(next) > 1<<31 || length < batch.HeaderLen || at+int64(i)+length > size {
				continue
			}
			sc := newScanner(f, at+int64(i), at+int64(i)+length, true)
			if b, err := sc.next(); err == nil && b.size == length {
				return at + int64(i), nil
			}
		}
	}
	return -1, nil
}

// hasLostPage says whether some page's share of [from, to) is all zeros.
func hasLostPage(f disk.File, from, to int64) (bool, error) {
	buf := make([]byte, damagePage)
	for at := from; at < to; {
		end := min((at/damagePage+1)*damagePage, to)
		page := buf[:end-at]
		if _, err := f.ReadAt(page, at); err != nil && err != io.EOF {
			return false, err
		}
		if allZero(page) {
			return true, nil
		}
		at = end
	}
	return false, nil
}
