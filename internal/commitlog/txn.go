package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weirmq/weir/internal/kafka"
)

// AbortedTxn is an aborted transaction: a read_committed reader drops the
// producer's records from First up to the marker at Last.
type AbortedTxn struct {
	ID          kafka.ProducerID
	First, Last kafka.Offset
	stable      kafka.Offset // last stable offset right after the marker
}

// A .txnindex file is a row of entries, by Last: int16 version 0, int64 producer
// id, first offset, last offset, last stable offset. There is none when nothing
// was aborted.
func encodeTxn(b []byte, t AbortedTxn) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, 0)
	b = be.AppendUint64(b, uint64(t.ID))
	b = be.AppendUint64(b, uint64(t.First))
	b = be.AppendUint64(b, uint64(t.Last))
	return be.AppendUint64(b, uint64(t.stable))
}

func parseTxns(b []byte) ([]AbortedTxn, error) {
	if len(b)%txnEntryBytes != 0 {
		return nil, fmt.Errorf("transaction index of %d bytes, no multiple of %d", len(b), txnEntryBytes)
	}
	be := binary.BigEndian
	txns := make([]AbortedTxn, 0, len(b)/txnEntryBytes)
	prev := kafka.Offset(-1)
	for ; len(b) > 0; b = b[txnEntryBytes:] {
		if v := be.Uint16(b); v != 0 {
			return nil, fmt.Errorf("transaction index entry of version %d", v)
		}
		t := AbortedTxn{
			ID:    kafka.ProducerID(be.Uint64(b[2:])),
			First: kafka.Offset(be.Uint64(b[10:])), Last: kafka.Offset(be.Uint64(b[18:])),
			stable: kafka.Offset(be.Uint64(b[26:])),
		}
		if t.Last <= prev || t.First >= t.Last || t.First < 0 { // a marker follows records
			return nil, errors.New("transaction index is not ascending")
		}
		prev = t.Last
		txns = append(txns, t)
	}
	return txns, nil
}

// txnIndex is a segment's aborted transactions, read once and kept: they are few.
type txnIndex struct {
	loaded bool
	txns   []AbortedTxn // only appended to
}

func (s *segment) aborted() ([]AbortedTxn, error) {
	s.txnMu.Lock()
	defer s.txnMu.Unlock()
	err := s.loadTxnsLocked()
	var ce *CorruptError
	if errors.As(err, &ce) {
		err = s.rebuildTxnsLocked(err)
	}
	return s.txn.txns, err
}

// rebuildTxnsLocked makes a damaged index anew from the batches: without it a
// read_committed reader would be shown aborted records.
func (s *segment) rebuildTxnsLocked(why error) error {
	l := s.l
	segs := l.segments()
	i := slices.Index(segs, s)
	if i < 0 {
		return ErrGone
	}
	var ps producers
	first := 0
	for j := i; j > 0; j-- { // what was open when the segment began
		b, err := l.fs.ReadFile(l.path(segs[j].base, snapshotExt))
		if err != nil {
			continue
		}
		if entries, err := parseSnapshot(b); err == nil {
			ps.load(entries, 0, math.MaxInt64)
			first = j
			break
		}
	}
	var txns []AbortedTxn
	for _, t := range segs[first : i+1] {
		err := l.walk(t, t.base, func(b found) error {
			if !b.HasProducer() {
				return nil
			}
			txn, aborted, err := ps.update(b.View)
			if aborted && t == s {
				txns = append(txns, txn)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	l.log.Warn("index of aborted transactions rebuilt", "partition", l.tp.String(), "segment", int64(s.base), "why", why.Error())
	var b []byte
	for _, t := range txns {
		b = encodeTxn(b, t)
	}
	path := l.path(s.base, txnExt)
	if err := l.replace(path, b); err != nil {
		return err
	}
	l.unsynced.add(path)
	l.namesDirty.Store(true)
	s.txn = txnIndex{true, txns}
	return nil
}

func (s *segment) loadTxnsLocked() error {
	if s.txn.loaded {
		return nil
	}
	path := s.l.path(s.base, txnExt)
	b, err := s.l.fs.ReadFile(path)
	if err != nil && !isNotExist(err) {
		return err
	}
	txns, err := parseTxns(b)
	if err != nil {
		return &CorruptError{path, 0, err}
	}
	s.txn = txnIndex{true, txns}
	return nil
}

// addAborted puts a transaction that the segment's last batch aborted into its
// index. Writer only.
func (s *segment) addAborted(t AbortedTxn) error {
	s.txnMu.Lock()
	defer s.txnMu.Unlock()
	if err := s.loadTxnsLocked(); err != nil {
		return err
	}
	if n := len(s.txn.txns); n > 0 && s.txn.txns[n-1].Last >= t.Last {
		return nil // replayed
	}
	s.l.aborts.Store(true)
	path := s.l.path(s.base, txnExt)
	if len(s.txn.txns) == 0 {
		s.l.namesDirty.Store(true)
	}
	if err := s.l.putAt(path, encodeTxn(nil, t), int64(len(s.txn.txns))*txnEntryBytes); err != nil {
		return err
	}
	s.l.unsynced.add(path)
	s.txn.txns = append(s.txn.txns, t)
	return nil
}

// cutAborted drops transactions that ended at or above off.
func (s *segment) cutAborted(off kafka.Offset) error {
	s.txnMu.Lock()
	defer s.txnMu.Unlock()
	if err := s.loadTxnsLocked(); err != nil {
		if off <= s.base { // all of it will be replayed
			s.txn = txnIndex{loaded: true}
			return s.l.replace(s.l.path(s.base, txnExt), nil)
		}
		if err := s.rebuildTxnsLocked(err); err != nil {
			return err
		}
	}
	n := len(s.txn.txns)
	if n == 0 {
		return nil
	}
	for n > 0 && s.txn.txns[n-1].Last >= off {
		n--
	}
	path := s.l.path(s.base, txnExt)
	if n == 0 {
		s.txn.txns = nil
		if err := s.l.fs.Remove(path); err != nil && !isNotExist(err) {
			return err
		}
		return nil
	}
	if n == len(s.txn.txns) {
		return nil
	}
	s.txn.txns = s.txn.txns[:n:n]
	var b []byte
	for _, t := range s.txn.txns {
		b = encodeTxn(b, t)
	}
	return s.l.replace(path, b)
}

// Aborted lists the aborted transactions that a read_committed reader of
// [from, to) has to know, in the order of their markers.
func (l *Log) Aborted(from, to kafka.Offset) []AbortedTxn {
	if !l.aborts.Load() {
		return nil // a topic without transactions, nearly always
	}
	segs := l.segments()
	var out []AbortedTxn
	for _, s := range segs[findSegment(segs, from):] {
		txns, err := s.aborted()
		if err != nil {
			l.log.Warn("aborted transactions not read", "partition", l.tp.String(), "segment", int64(s.base), "err", err)
			continue
		}
		for _, t := range txns {
			if t.Last >= from && t.First < to {
				out = append(out, t)
			}
			if t.stable >= to {
				return out
			}
		}
	}
	return out
}
