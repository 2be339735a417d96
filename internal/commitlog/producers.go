package commitlog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// window is how many of a producer's last batches are known for duplicates; a
// client has at most five in flight (KIP-98).
const window = 5

// ProducerState is one producer as DescribeProducers shows it.
type ProducerState struct {
	ID               kafka.ProducerID
	Epoch            int16
	LastSequence     int32
	LastTimestampMs  int64
	CoordinatorEpoch int32        // -1: no transaction ended here yet
	TxnStart         kafka.Offset // first offset of the open transaction; NoOffset: none
}

// sent is a batch a producer appended.
type sent struct {
	lastSeq int32
	delta   int32 // last minus first, of sequences and offsets
	last    kafka.Offset
	ts      int64
}

func (b sent) firstSeq() int32 {
	if b.lastSeq < b.delta { // wrapped within the batch
		return int32(int64(b.lastSeq) - int64(b.delta) + math.MaxInt32 + 1)
	}
	return b.lastSeq - b.delta
}

// producer is what a partition knows of one producer id.
type producer struct {
	epoch            int16
	n                int8 // batches in last, oldest first
	partial          bool // came from a snapshot, which keeps one batch only
	coordinatorEpoch int32
	lastTs           int64
	txnStart         kafka.Offset
	last             [window]sent
}

func (p *producer) push(b sent) {
	if p.n == window {
		copy(p.last[:], p.last[1:])
		p.n--
	}
	p.last[p.n] = b
	p.n++
}

func (p *producer) lastSeq() int32 {
	if p.n == 0 {
		return batch.NoSequence
	}
	return p.last[p.n-1].lastSeq
}

// openTxn is a transaction without its marker, doneTxn one whose marker may not
// be below the high watermark yet.
type openTxn struct {
	start kafka.Offset
	id    kafka.ProducerID
}

type doneTxn struct {
	start, marker kafka.Offset
}

// producers is the producer state of a partition: Kafka's ProducerStateManager.
// It changes with every append of an idempotent producer and is rebuilt from the
// last snapshot and the batches after it.
type producers struct {
	mu   sync.Mutex
	byID map[kafka.ProducerID]*producer
	open []openTxn // by start
	done []doneTxn
}

func (ps *producers) reset() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.byID, ps.open, ps.done = nil, nil, nil
}

// check decides on a leader's append: dup is the earlier batch that b repeats.
// The error is a kafka.Error: 45 out of order, 47 old producer epoch, 48 plain
// batch within a transaction, 52 old coordinator.
func (ps *producers) check(b batch.View) (dup sent, repeats bool, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byID[b.ProducerID()]
	if b.Control() {
		return sent{}, false, checkMarker(p, b)
	}
	if p == nil || p.epoch < 0 {
		return sent{}, false, nil // unknown, perhaps expired: any sequence will do
	}
	epoch, first := b.ProducerEpoch(), b.BaseSequence()
	switch {
	case epoch < p.epoch:
		return sent{}, false, kafka.ErrInvalidProducerEpoch
	case epoch > p.epoch:
		if first != 0 {
			return sent{}, false, kafka.ErrOutOfOrderSequenceNumber
		}
	default:
		last := b.LastSequence()
		for i := int8(0); i < p.n; i++ {
			if x := p.last[i]; x.lastSeq == last && x.firstSeq() == first {
				return x, true, nil
			}
		}
		prev := p.lastSeq()
		if prev == math.MaxInt32 {
			prev = -1
		}
		if first != prev+1 {
			return sent{}, false, kafka.ErrOutOfOrderSequenceNumber
		}
	}
	if p.txnStart != kafka.NoOffset && !b.Transactional() {
		return sent{}, false, kafka.ErrInvalidTxnState
	}
	return sent{}, false, nil
}

func checkMarker(p *producer, b batch.View) error {
	m, err := b.Marker()
	if err != nil {
		return err
	}
	if p == nil {
		return nil
	}
	if b.ProducerEpoch() < p.epoch {
		return kafka.ErrInvalidProducerEpoch
	}
	if m.CoordinatorEpoch < p.coordinatorEpoch {
		return kafka.ErrTransactionCoordinatorFenced
	}
	return nil
}

// update takes in an appended batch, whoever appended it. An ended transaction
// that was aborted comes back, to be put into the segment's index.
func (ps *producers) update(b batch.View) (AbortedTxn, bool, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	id := b.ProducerID()
	p := ps.byID[id]
	if b.Control() {
		m, err := b.Marker()
		if err != nil {
			return AbortedTxn{}, false, err
		}
		if m.Kind != batch.Abort && m.Kind != batch.Commit {
			return AbortedTxn{}, false, nil
		}
		if p == nil {
			p = ps.addLocked(id)
		}
		return ps.endLocked(id, p, b, m)
	}
	if p == nil {
		p = ps.addLocked(id)
	}
	if p.epoch != b.ProducerEpoch() {
		p.epoch, p.n, p.partial = b.ProducerEpoch(), 0, false
	}
	p.push(sent{b.LastSequence(), b.LastOffsetDelta(), b.LastOffset(), b.MaxTimestamp()})
	p.lastTs = b.MaxTimestamp()
	if b.Transactional() && p.txnStart == kafka.NoOffset {
		p.txnStart = b.BaseOffset()
		ps.open = append(ps.open, openTxn{p.txnStart, id})
	}
	return AbortedTxn{}, false, nil
}

func (ps *producers) addLocked(id kafka.ProducerID) *producer {
	if ps.byID == nil {
		ps.byID = map[kafka.ProducerID]*producer{}
	}
	p := &producer{epoch: -1, coordinatorEpoch: -1, lastTs: -1, txnStart: kafka.NoOffset}
	ps.byID[id] = p
	return p
}

func (ps *producers) endLocked(id kafka.ProducerID, p *producer, b batch.View, m batch.Marker) (AbortedTxn, bool, error) {
	if p.epoch != b.ProducerEpoch() {
		p.epoch, p.n, p.partial = b.ProducerEpoch(), 0, false
	}
	p.coordinatorEpoch = m.CoordinatorEpoch
	p.lastTs = b.MaxTimestamp()
	if p.txnStart == kafka.NoOffset {
		return AbortedTxn{}, false, nil // a marker without records changes nothing for readers
	}
	start, marker := p.txnStart, b.LastOffset()
	p.txnStart = kafka.NoOffset
	ps.open = slices.DeleteFunc(ps.open, func(t openTxn) bool { return t.id == id })
	ps.done = append(ps.done, doneTxn{start, marker})
	if m.Kind != batch.Abort {
		return AbortedTxn{}, false, nil
	}
	stable := marker + 1
	if len(ps.open) > 0 {
		stable = min(stable, ps.open[0].start)
	}
	return AbortedTxn{ID: id, First: start, Last: marker, stable: stable}, true, nil
}

// lastStable is the first offset that a read_committed reader must not see: the
// start of the oldest transaction that is open, or whose end is not replicated.
func (ps *producers) lastStable(hw kafka.Offset) kafka.Offset {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.done) > 0 {
		ps.done = slices.DeleteFunc(ps.done, func(t doneTxn) bool { return t.marker < hw })
	}
	lso := hw
	if len(ps.open) > 0 {
		lso = min(lso, ps.open[0].start)
	}
	for _, t := range ps.done {
		lso = min(lso, t.start)
	}
	return lso
}

// expire forgets producers that were silent for long and have nothing open.
func (ps *producers) expire(nowMs, expirationMs int64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id, p := range ps.byID {
		if p.txnStart == kafka.NoOffset && nowMs-p.lastTs >= expirationMs {
			delete(ps.byID, id)
		}
	}
}

// ExpireProducers forgets producers that were silent for long. It may run beside
// the writer.
func (l *Log) ExpireProducers(now time.Time) {
	l.producers.expire(now.UnixMilli(), l.options().ProducerExpirationMs)
}

// Producers lists the producers that are known, by id.
func (l *Log) Producers(now time.Time) []ProducerState {
	l.producers.expire(now.UnixMilli(), l.options().ProducerExpirationMs)
	l.producers.mu.Lock()
	defer l.producers.mu.Unlock()
	out := make([]ProducerState, 0, len(l.producers.byID))
	for _, id := range slices.Sorted(maps.Keys(l.producers.byID)) {
		p := l.producers.byID[id]
		out = append(out, ProducerState{id, p.epoch, p.lastSeq(), p.lastTs, p.coordinatorEpoch, p.txnStart})
	}
	return out
}

// LastStable is the last stable offset when hw is the high watermark.
func (l *Log) LastStable(hw kafka.Offset) kafka.Offset { return l.producers.lastStable(hw) }

func (p *producer) String() string {
	return fmt.Sprintf("epoch %d last %d (%d batches) txn %d", p.epoch, p.lastSeq(), p.n, p.txnStart)
}
