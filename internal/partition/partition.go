package partition

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/replica"
)

// Partition is one replica of a partition on this node.
type Partition struct {
	TP  kafka.TopicPartition
	ID  kafka.TopicID
	dir *logDir
	// Meter counts the topic's traffic; nil counts nothing.
	Meter *metrics.Topic

	settings atomic.Pointer[Settings]
	hw       atomic.Int64
	epoch    atomic.Int32         // leader epoch
	failed   atomic.Pointer[fail] // why the partition serves nothing, or nil
	closed   atomic.Bool          // failed only because it was closed in order
	waiters  waiters
	shard    atomic.Pointer[Shard]

	cleaning   bool         // the cleaner's own: a run is under way
	cleanAfter atomic.Int64 // no compaction before, in ns: the last one failed

	mu       sync.Mutex // the writer lock
	log      *commitlog.Log
	leader   *replica.Leader
	hwSize   int64 // log bytes appended up to the watermark, for waking fetches
	appended int64 // log bytes appended in this life
	flushDue bool  // the watermark waits for an fdatasync
	timerSet bool  // flush.ms is running
	full     bool  // the last append met a full disk; said once
}

type fail struct{ err error }

// ErrOffline is wrapped by every answer of a partition whose log dir failed or
// whose files are damaged: KAFKA_STORAGE_ERROR on the wire.
var ErrOffline = errors.New("partition offline")

// Failed is why the partition serves nothing, or nil.
func (p *Partition) Failed() error {
	if f := p.failed.Load(); f != nil {
		return f.err
	}
	return nil
}

// Settings are those in force.
func (p *Partition) Settings() *Settings { return p.settings.Load() }

// Epoch is the leader epoch.
func (p *Partition) Epoch() kafka.Epoch { return kafka.Epoch(p.epoch.Load()) }

// HighWatermark is the offset below which records are safe and visible.
func (p *Partition) HighWatermark() kafka.Offset { return kafka.Offset(p.hw.Load()) }

// Log gives the partition's log for reads (LogStart, End, Size, OffsetForTime,
// EndOfEpoch, Producers). Nil when the partition failed to open.
func (p *Partition) Log() *commitlog.Log { return p.log }

// Dir is the log dir the partition lies in.
func (p *Partition) Dir() string { return p.dir.path }

// LastStable is the offset below which every transaction is decided, never past
// the watermark.
func (p *Partition) LastStable() kafka.Offset { return p.log.LastStable(p.HighWatermark()) }

// A Ticket is what an append gives: the offsets, and whether they are already
// behind the watermark.
type Ticket struct {
	commitlog.Appended
	Done bool
}

// Append appends one validated batch as leader and stamps it in place; the bytes
// are not kept. Errors: kafka.Error for what the protocol names (not enough
// replicas, producer sequences), ErrOffline, or the log's own error.
// It blocks for the write, not for replicas or flushes: see Await.
func (p *Partition) Append(now time.Time, b batch.View, acks int16) (Ticket, error) {
	s := p.settings.Load()
	p.mu.Lock()
	if err := p.Failed(); err != nil {
		p.mu.Unlock()
		return Ticket{}, err
	}
	if code := p.leader.CheckAppend(acks); code != kafka.NoError {
		p.mu.Unlock()
		return Ticket{}, code
	}
	a, err := p.log.Append(now, b, kafka.Epoch(p.epoch.Load()))
	if err != nil {
		refused := p.refusedLocked(err)
		p.mu.Unlock()
		p.dir.missed(err)
		return Ticket{}, refused
	}
	if p.full {
		p.full = false
		p.dir.log.Info("partition takes writes again", "partition", p.TP.String())
	}
	if !a.Duplicate {
		p.appended += int64(len(b))
		if a.Rolled {
			p.dir.requestFlush(p) // so that a recovery reads the active segment alone
		}
		p.settleLocked(s)
	}
	done := a.Last < kafka.Offset(p.hw.Load())
	p.mu.Unlock()
	return Ticket{Appended: a, Done: done}, nil
}

// refusedLocked tells the protocol's own refusals from a disk that refused: that
// one is said once, not for each retry of each producer.
func (p *Partition) refusedLocked(err error) error {
	if _, ok := errors.AsType[kafka.Error](err); ok {
		return err
	}
	if !p.full {
		p.full = true
		what := "partition refuses writes: mend the disk"
		if disk.IsNoSpace(err) {
			what = "partition refuses writes: make room; reads go on, and writes when there is room"
		}
		p.dir.log.Error(what, "partition", p.TP.String(), "dir", p.dir.path, "err", err)
	}
	return fmt.Errorf("%w: %w", ErrOffline, err)
}

// settleLocked advances the watermark after an append, or leaves that to a flush
// that is due.
func (p *Partition) settleLocked(s *Settings) {
	if p.flushDue || s.FlushesByCount() && p.log.Unflushed() >= s.FlushMessages {
		if !p.flushDue {
			p.flushDue = true
			p.dir.requestFlush(p)
		}
		return
	}
	if s.flushesByTime() && !p.timerSet {
		p.timerSet = true
		time.AfterFunc(time.Duration(s.FlushMs)*time.Millisecond, func() { p.dir.requestFlush(p) })
	}
	p.advanceLocked(p.log.End(), p.appended)
}

// advanceLocked tells the leader's rules that its own log is good up to end.
func (p *Partition) advanceLocked(end kafka.Offset, size int64) {
	if p.leader.Appended(end) {
		p.publishLocked(size)
	}
}

// publishLocked makes the leader's new watermark visible and wakes who waits.
func (p *Partition) publishLocked(size int64) {
	hw := p.leader.HighWatermark()
	n := size - p.hwSize
	p.hwSize = size
	p.hw.Store(int64(hw))
	p.waiters.advance(hw, max(n, 1))
	if sh := p.shard.Load(); sh != nil {
		sh.advanced(hw)
	}
}

// flushAgain is how long a flush that found no descriptor waits.
const flushAgain = 100 * time.Millisecond

// flush runs on a flush worker: one fdatasync for every append before it.
func (p *Partition) flush() {
	if p.Failed() != nil {
		return
	}
	p.mu.Lock()
	p.timerSet = false
	p.mu.Unlock()
	upTo, err := p.log.Flush()
	if disk.IsNoDescriptor(err) {
		time.AfterFunc(flushAgain, func() { p.dir.requestFlush(p) })
		return
	}
	if err != nil {
		p.dir.fail(err)
		return
	}
	p.flushed(upTo)
	if p.Settings().Log.RollDirtyBytes > 0 {
		p.dir.wakeCleaner() // perhaps a segment was closed
	}
}

// flushed takes note of a flush that has made everything below upTo safe. Two
// workers may flush at once, so the later one to come may know less.
func (p *Partition) flushed(upTo kafka.Offset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.flushDue || p.Failed() != nil {
		return
	}
	s := p.settings.Load()
	if s.FlushesByCount() && p.log.Unflushed() >= s.FlushMessages {
		if upTo > p.leader.ReadBound(true) {
			p.advanceLocked(upTo, p.hwSize)
		}
		p.dir.requestFlush(p) // more came meanwhile: still due
		return
	}
	p.flushDue = false
	p.advanceLocked(p.log.End(), p.appended)
}

// Await registers w for the moment the watermark passes last. False: it already
// has, or the partition is closed, and w will not be told.
func (p *Partition) Await(last kafka.Offset, w *Waiter) bool {
	p.waiters.mu.Lock()
	defer p.waiters.mu.Unlock()
	if p.waiters.closed || last < p.HighWatermark() {
		return false
	}
	p.waiters.acks = append(p.waiters.acks, ack{last, w})
	return true
}

// Watch registers w for bytes that pass the watermark from now on. False when
// the watermark is no longer seen, or the partition is closed: read again.
func (p *Partition) Watch(w *Waiter, seen kafka.Offset) bool {
	p.waiters.mu.Lock()
	defer p.waiters.mu.Unlock()
	if p.waiters.closed || p.HighWatermark() != seen {
		return false
	}
	if p.waiters.fetches == nil {
		p.waiters.fetches = make(map[*Waiter]struct{}, 1)
	}
	p.waiters.fetches[w] = struct{}{}
	return true
}

// Unwatch takes w back, from fetches and acks alike.
func (p *Partition) Unwatch(w *Waiter) {
	p.waiters.mu.Lock()
	delete(p.waiters.fetches, w)
	for i, a := range p.waiters.acks {
		if a.w == w {
			p.waiters.acks = append(p.waiters.acks[:i], p.waiters.acks[i+1:]...)
			break
		}
	}
	p.waiters.mu.Unlock()
}

// CheckEpoch compares the epoch a client believes in with ours (KIP-320).
// NoEpoch means it has no opinion.
func (p *Partition) CheckEpoch(claimed kafka.Epoch) kafka.Error {
	switch ours := p.Epoch(); {
	case claimed == kafka.NoEpoch || claimed == ours:
		return kafka.NoError
	case claimed < ours:
		return kafka.ErrFencedLeaderEpoch
	default:
		return kafka.ErrUnknownLeaderEpoch
	}
}

// Read is one partition's part of a fetch.
type Read struct {
	Slice                 commitlog.Slice
	HighWatermark, Stable kafka.Offset
	LogStart              kafka.Offset
	Bytes                 int64
	Aborted               []commitlog.AbortedTxn
	Diverging             bool // the client's last epoch ended earlier than it thinks (KIP-595)
	DivergeEpoch          kafka.Epoch
	DivergeEnd            kafka.Offset
}

// Read reads from offset from, at most maxBytes, up to the watermark (committed:
// up to the last stable offset). With minOne the first batch comes whole whatever
// its size. The caller releases the slice's Region when its Len is above 0.
// The numbers in Read are set even with an error, when the partition is alive.
func (p *Partition) Read(from kafka.Offset, lastFetched kafka.Epoch, maxBytes int, minOne, committed bool) (Read, error) {
	if err := p.Failed(); err != nil {
		return Read{HighWatermark: -1, Stable: -1, LogStart: -1}, err
	}
	r := Read{HighWatermark: p.HighWatermark(), LogStart: p.log.LogStart()}
	r.Stable = p.log.LastStable(r.HighWatermark)
	if lastFetched != kafka.NoEpoch {
		epoch, end := p.log.EndOfEpoch(lastFetched)
		if epoch == kafka.NoEpoch || end == kafka.NoOffset {
			return r, kafka.ErrOffsetOutOfRange
		}
		if epoch < lastFetched || end < from {
			r.Diverging, r.DivergeEpoch, r.DivergeEnd = true, epoch, end
			return r, nil
		}
	}
	bound := r.HighWatermark
	if committed {
		bound = r.Stable
	}
	if from > r.HighWatermark {
		// Past the watermark but inside the log is not an error: the records are
		// on their way (Kafka answers empty).
		if from > p.log.End() {
			return r, kafka.ErrOffsetOutOfRange
		}
		return r, nil
	}
	if from < r.LogStart {
		return r, kafka.ErrOffsetOutOfRange
	}
	if from >= bound || maxBytes <= 0 && !minOne {
		return r, nil
	}
	slice, err := p.log.Read(from, bound, maxBytes, minOne)
	if err != nil {
		p.dir.missed(err)
		return r, err
	}
	if slice.Incomplete {
		// Not even one batch fits: nothing is better than a piece the client
		// cannot use (Kafka, from Fetch 3 on).
		slice.Region.Release()
		return r, nil
	}
	r.Slice, r.Bytes = slice, slice.Region.Len
	if committed && r.Bytes > 0 {
		r.Aborted = p.log.Aborted(from, bound)
	}
	return r, nil
}

// DeleteRecords moves the log start to offset (NoOffset: to the watermark) and
// frees whole segments before it (KIP-107). It survives a kill only after the
// Manager's SaveStarts, which serves all partitions of a request at once.
func (p *Partition) DeleteRecords(offset kafka.Offset) (kafka.Offset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Failed(); err != nil {
		return kafka.NoOffset, err
	}
	hw := p.HighWatermark()
	if offset == kafka.NoOffset {
		offset = hw
	}
	if offset < 0 || offset > hw {
		return kafka.NoOffset, kafka.ErrOffsetOutOfRange
	}
	start, err := p.log.DeleteBefore(offset)
	if err == nil {
		p.dir.noteMoved()
		p.noteDoomed()
		p.waiters.note()
	}
	return start, err
}

// apply takes new settings into force.
func (p *Partition) apply(s *Settings) {
	p.mu.Lock()
	p.settings.Store(s)
	if p.log != nil {
		if err := p.log.SetOptions(s.Log); err != nil {
			p.dir.log.Error("settings of a partition are out of range and not used", "partition", p.TP.String(), "err", err)
		}
	}
	p.waiters.note()
	if p.leader != nil {
		if p.leader.SetMinISR(s.MinISR) {
			p.publishLocked(p.hwSize)
		}
	}
	p.mu.Unlock()
}
