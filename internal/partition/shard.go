package partition

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// A ShardFactory makes the machine for one partition of an internal topic, with
// the way its records lie in a batch, and starts the pump.
type ShardFactory func(p *Partition, log *slog.Logger) *Shard

// Codec says how a machine's records lie in a record batch.
type Codec[R any] struct {
	Add    func(b *batch.Builder, tsMs int64, r R)
	Decode func(key, value []byte) (R, error) // the record may alias them: the machine copies what it keeps
}

// inbox bounds what waits for a shard's pump; past it, a request is answered
// COORDINATOR_LOAD_IN_PROGRESS, which clients try again.
const inbox = 4096

// Shard is a running machine: one goroutine drives its Core, the partition's log
// is where its records go.
type Shard struct {
	in   chan input
	hwCh chan struct{} // capacity 1: the watermark moved
	stop chan struct{}
	wg   sync.WaitGroup
	hw   func() kafka.Offset

	mu     sync.RWMutex // held shared while an input is queued, so that none is after finish
	closed bool
}

type input struct {
	req   any
	reply func(resp any)
}

func (s *Shard) advanced(kafka.Offset) {
	select {
	case s.hwCh <- struct{}{}:
	default:
	}
}

// Submit hands a request to the machine. reply is called once, from the pump's
// goroutine or from the caller's, with the machine's response or a kafka.Error;
// it must not block. A nil reply wants no answer.
func (s *Shard) Submit(req any, reply func(resp any)) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		refuse(reply, kafka.ErrNotCoordinator)
		return
	}
	queued := false
	select {
	case s.in <- input{req, reply}:
		queued = true
	default:
	}
	s.mu.RUnlock()
	if !queued {
		refuse(reply, kafka.ErrCoordinatorLoadInProgress)
	}
}

func refuse(reply func(any), code kafka.Error) {
	if reply != nil {
		reply(code)
	}
}

// Close stops the pump, answers what is open with NOT_COORDINATOR, and waits.
func (s *Shard) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// pump is the goroutine's own state.
type pump[R any] struct {
	*Shard
	p       *Partition
	make    func() machine.Machine[R]
	codec   Codec[R]
	log     *slog.Logger
	core    *machine.Core[R]
	next    machine.Token
	replies map[machine.Token]func(any)
	said    string // the error of the last load, as it was logged
}

// StartShard runs the machines that newMachine makes over partition p. A machine
// whose append failed is dropped, and a new one loaded from the log.
func StartShard[R any](p *Partition, newMachine func() machine.Machine[R], codec Codec[R], log *slog.Logger) *Shard {
	s := &Shard{in: make(chan input, inbox), hwCh: make(chan struct{}, 1), stop: make(chan struct{}), hw: p.HighWatermark}
	u := &pump[R]{Shard: s, p: p, make: newMachine, codec: codec, log: log, replies: make(map[machine.Token]func(any))}
	s.wg.Go(u.run)
	return s
}

// Append is machine.Log over the partition.
func (u *pump[R]) Append(now time.Time, records []R) (int64, error) {
	ms := now.UnixMilli()
	b := batch.NewBuilder(batch.BuilderOptions{NowMs: ms, ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1})
	for _, r := range records {
		u.codec.Add(b, ms, r)
	}
	t, err := u.p.Append(now, b.Bytes(), -1)
	return int64(t.Last), err
}

func (u *pump[R]) load() error {
	core := machine.NewCore(u.make(), machine.Log[R](u))
	err := u.p.Scan(func(b batch.View) error {
		if b.Control() {
			return nil
		}
		base := int64(b.BaseOffset())
		return b.Each(func(r *batch.Record) error {
			rec, err := u.codec.Decode(r.Key, r.Value)
			if err != nil {
				return fmt.Errorf("record at offset %d: %w", base+int64(r.OffsetDelta), err)
			}
			core.Load(base+int64(r.OffsetDelta), rec)
			return nil
		})
	})
	if err != nil {
		return err
	}
	core.Start(time.Now())
	core.Watermark(int64(u.p.HighWatermark()) - 1)
	u.core = core
	return nil
}

// reloadEvery is how long a shard that could not load, or whose log refused an
// append (a full disk), waits before it tries again.
const reloadEvery = time.Second

// reloadDamagedEvery is how long it waits when its log is damaged: each try reads it.
const reloadDamagedEvery = 10 * time.Second

func (u *pump[R]) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer u.finish()
	for {
		if u.core == nil {
			if err := u.load(); err != nil {
				// What is damaged stays so, and whoever reads the log has read it.
				if text := err.Error(); !errors.Is(err, ErrOffline) && text != u.said {
					u.said = text
					u.log.Error("coordinator shard cannot load and answers nobody, trying again", "partition", u.p.TP.String(), "err", err)
				}
				wait := reloadEvery
				if _, bad := errors.AsType[*commitlog.CorruptError](err); bad {
					wait = reloadDamagedEvery
				}
				if !u.refuseFor(wait) {
					return
				}
				continue
			}
			u.said = ""
		}
		wait := time.Hour
		if d := u.core.NextDeadline(); !d.IsZero() {
			wait = max(time.Until(d), 0)
		}
		timer.Reset(wait)
		select {
		case <-u.stop:
			return
		case <-u.hwCh:
			u.answer(u.core.Watermark(int64(u.hw()) - 1))
		case in := <-u.in:
			u.submit(in)
			for range len(u.in) { // what has come meanwhile goes into one batch
				u.submit(<-u.in)
			}
			u.drain()
		case <-timer.C:
			u.core.Expire(time.Now())
			u.drain()
		}
	}
}

func (u *pump[R]) submit(in input) {
	var tok machine.Token
	if in.reply != nil {
		u.next++
		tok = u.next
		u.replies[tok] = in.reply
	}
	u.core.Submit(time.Now(), tok, in.req)
}

func (u *pump[R]) drain() {
	released, _, err := u.core.Drain(time.Now())
	u.answer(released)
	if err != nil {
		u.log.Error("coordinator shard cannot write, reloading", "partition", u.p.TP.String(), "err", err)
		u.core = nil
		return
	}
	u.answer(u.core.Watermark(int64(u.hw()) - 1))
}

func (u *pump[R]) answer(replies []machine.Reply) {
	for _, r := range replies {
		if reply := u.replies[r.Token]; reply != nil {
			delete(u.replies, r.Token)
			reply(r.Resp)
		}
	}
}

// refuseFor answers every request for d; false when the shard is closed.
func (u *pump[R]) refuseFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-u.stop:
			return false
		case <-timer.C:
			return true
		case in := <-u.in:
			refuse(in.reply, kafka.ErrCoordinatorLoadInProgress)
		}
	}
}

func (u *pump[R]) finish() {
	if u.core != nil {
		u.answer(u.core.Fail())
	}
	for {
		select {
		case in := <-u.in:
			refuse(in.reply, kafka.ErrNotCoordinator)
		default:
			return
		}
	}
}
