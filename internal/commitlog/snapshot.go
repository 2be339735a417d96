package commitlog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/weirmq/weir/internal/kafka"
)

// A .snapshot file (Kafka's ProducerSnapshot, version 1), big endian:
//
//	int16 version, uint32 CRC-32C of what follows, int32 count, entries of
//	int64 producer id, int16 epoch, int32 last sequence, int64 last offset,
//	int32 offset delta, int64 timestamp, int32 coordinator epoch, int64 first
//	offset of the open transaction or -1
//
// Its name is the offset below which it is the whole truth. It keeps one batch per
// producer; see producer.partial.
const (
	snapshotVersion    = 1
	snapshotHeadBytes  = 10
	snapshotEntryBytes = 46
)

// snapshotEntry is one producer in a snapshot.
type snapshotEntry struct {
	ID               kafka.ProducerID
	Epoch            int16
	LastSequence     int32
	LastOffset       kafka.Offset
	OffsetDelta      int32
	TimestampMs      int64
	CoordinatorEpoch int32
	TxnStart         kafka.Offset
}

func encodeSnapshot(entries []snapshotEntry) []byte {
	be := binary.BigEndian
	b := make([]byte, 6, snapshotHeadBytes+len(entries)*snapshotEntryBytes)
	be.PutUint16(b, snapshotVersion)
	b = be.AppendUint32(b, uint32(len(entries)))
	for _, e := range entries {
		b = be.AppendUint64(b, uint64(e.ID))
		b = be.AppendUint16(b, uint16(e.Epoch))
		b = be.AppendUint32(b, uint32(e.LastSequence))
		b = be.AppendUint64(b, uint64(e.LastOffset))
		b = be.AppendUint32(b, uint32(e.OffsetDelta))
		b = be.AppendUint64(b, uint64(e.TimestampMs))
		b = be.AppendUint32(b, uint32(e.CoordinatorEpoch))
		b = be.AppendUint64(b, uint64(e.TxnStart))
	}
	be.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

func parseSnapshot(b []byte) ([]snapshotEntry, error) {
	be := binary.BigEndian
	if len(b) < snapshotHeadBytes {
		return nil, fmt.Errorf("snapshot of %d bytes", len(b))
	}
	if v := int16(be.Uint16(b)); v != snapshotVersion {
		return nil, fmt.Errorf("snapshot version %d, want %d", v, snapshotVersion)
	}
	if got, want := crc32.Checksum(b[6:], castagnoli), be.Uint32(b[2:]); got != want {
		return nil, errors.New("snapshot CRC does not match")
	}
	n := int32(be.Uint32(b[6:]))
	b = b[snapshotHeadBytes:]
	if n < 0 || int64(n)*snapshotEntryBytes != int64(len(b)) {
		return nil, fmt.Errorf("snapshot of %d entries in %d bytes", n, len(b))
	}
	entries := make([]snapshotEntry, n)
	for i := range entries {
		entries[i] = snapshotEntry{
			ID:               kafka.ProducerID(be.Uint64(b)),
			Epoch:            int16(be.Uint16(b[8:])),
			LastSequence:     int32(be.Uint32(b[10:])),
			LastOffset:       kafka.Offset(be.Uint64(b[14:])),
			OffsetDelta:      int32(be.Uint32(b[22:])),
			TimestampMs:      int64(be.Uint64(b[26:])),
			CoordinatorEpoch: int32(be.Uint32(b[34:])),
			TxnStart:         kafka.Offset(be.Uint64(b[38:])),
		}
		b = b[snapshotEntryBytes:]
	}
	return entries, nil
}

// snapshot copies the state, by id.
func (ps *producers) snapshot() []snapshotEntry {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	entries := make([]snapshotEntry, 0, len(ps.byID))
	for id, p := range ps.byID {
		e := snapshotEntry{
			ID: id, Epoch: p.epoch, LastSequence: -1, LastOffset: -1, TimestampMs: p.lastTs,
			CoordinatorEpoch: p.coordinatorEpoch, TxnStart: p.txnStart,
		}
		if p.n > 0 {
			last := p.last[p.n-1]
			e.LastSequence, e.LastOffset, e.OffsetDelta = last.lastSeq, last.last, last.delta
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b snapshotEntry) int { return cmp.Compare(a.ID, b.ID) })
	return entries
}

// load replaces the state by a snapshot's, without what has expired.
func (ps *producers) load(entries []snapshotEntry, nowMs, expirationMs int64) {
	ps.reset()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, e := range entries {
		if e.TxnStart == kafka.NoOffset && nowMs-e.TimestampMs >= expirationMs {
			continue
		}
		p := ps.addLocked(e.ID)
		p.epoch, p.coordinatorEpoch, p.lastTs, p.txnStart = e.Epoch, e.CoordinatorEpoch, e.TimestampMs, e.TxnStart
		if e.LastSequence >= 0 {
			p.push(sent{e.LastSequence, e.OffsetDelta, e.LastOffset, e.TimestampMs})
			p.partial = true
		}
		if e.TxnStart != kafka.NoOffset {
			ps.open = append(ps.open, openTxn{e.TxnStart, e.ID})
		}
	}
	slices.SortFunc(ps.open, func(a, b openTxn) int { return cmp.Compare(a.start, b.start) })
}

// takeSnapshot writes the producer state as of end. It is a help for the next
// start, never needed: an error costs a warning.
func (l *Log) takeSnapshot(end kafka.Offset) {
	path := l.path(end, snapshotExt)
	if err := l.replace(path, encodeSnapshot(l.producers.snapshot())); err != nil {
		l.log.Warn("producer snapshot not written", "partition", l.tp.String(), "file", path, "err", err)
		return
	}
	l.snapshots = append(slices.DeleteFunc(l.snapshots, func(o kafka.Offset) bool { return o == end }), end)
	l.namesDirty.Store(true)
	l.unsynced.add(path)
}
