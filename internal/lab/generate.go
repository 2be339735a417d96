package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Sender is what records leave through; *kgo.Client is one. Produce may block
// while the client's buffer is full, and calls promise once for each record,
// from any goroutine, when it is acknowledged or given up.
type Sender interface {
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
}

// Load is what Produce sends. Duration or Records, or both, must be set.
type Load struct {
	Arrivals *Arrivals     // nil: closed loop, the next record leaves when a place is free
	Duration time.Duration // 0: until Records are sent
	Records  int64         // of all senders together; 0: until Duration is over
	Payload  *Pool
	Keys     *KeyTable // nil: none
	Topic    string    // empty: the client's default
	Window   int       // records in flight at most, for each sender; 0: 32 MiB of them, at most 50,000
	Every    time.Duration
	Drain    time.Duration // how long acknowledgements are waited for after the last send; 0: 30 s
	Stamp    *Stamp        // written over the first bytes of each value; nil: nothing
	KeepAll  bool          // drop no warm-up
	Live     func(Window)  // called once a window, by one goroutine; nil: nobody
	Busy     func() time.Duration
	Cores    float64 // that this process may use, for Busy

	arrivals   *arrivals         // of a probe
	arrived    func(acked int64) // waits for what has not arrived
	plainSleep bool              // a fake clock does not know nanosleep
}

// maxWindows bounds what a run keeps: a longer one has longer windows.
const maxWindows = 3600

func (l Load) withDefaults() (Load, error) {
	switch {
	case l.Duration < 0 || l.Records < 0 || l.Duration == 0 && l.Records == 0:
		return l, errors.New("a load needs a duration or a number of records, above 0")
	case l.Payload == nil:
		return l, errors.New("a load needs a payload")
	case l.Window < 0:
		return l, fmt.Errorf("a window of %d records in flight: want at least 1", l.Window)
	}
	if l.Arrivals != nil {
		if err := l.Arrivals.Check(); err != nil {
			return l, err
		}
	}
	if l.Window == 0 {
		l.Window = int(min(50_000, max(64, 32<<20/(l.Payload.MeanSize()+64))))
	}
	if l.Every == 0 {
		l.Every = max(time.Second, l.Duration/maxWindows)
	}
	if l.Drain == 0 {
		l.Drain = 30 * time.Second
	}
	if l.Keys == nil {
		l.Keys = NewKeyTable(KeySpec{Kind: "none"})
	}
	return l, nil
}

// slot is one record in flight; it is used again when it was acknowledged.
type slot struct {
	rec   kgo.Record
	due   time.Duration
	sent  time.Duration
	size  int
	done  func(*kgo.Record, error)
	key   [KeyBytes]byte
	value []byte // only with a stamp: the value has to be written to
}

// sender is one producer of a run.
type sender struct {
	l     Load
	cl    Sender
	share int
	of    int
	start time.Time
	book  *ledger
	spare []*slot // free, for the sending goroutine alone

	sent atomic.Int64 // by the sending goroutine; read by the others
	// Written by the sending goroutine, read when it has ended.
	owed    int64         // due by the end and never sent
	blocked time.Duration // waiting for a place in the window or in the client's buffer
	idle    time.Duration // waiting for the next due time
	awake   time.Duration // from the first send to the last
	made    int           // slots
}

// Produce runs a load and returns when every record is acknowledged, given up
// or, after Drain, unfinished. When ctx ends it stops sending, waits for what is
// in flight at most 5 s, and returns what was measured with Interrupted set.
// The error is for a load that cannot be run at all.
func Produce(ctx context.Context, l Load, clients []Sender) (*Produced, error) {
	l, err := l.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(clients) == 0 {
		return nil, errors.New("a load needs at least one producer")
	}
	// Sends in flight outlive the caller's interrupt, for Drain.
	sctx, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	var senders []*sender
	for i, cl := range clients {
		senders = append(senders, &sender{l: l, cl: cl, share: i, of: len(clients), book: newLedger(l.Arrivals != nil)})
	}
	start := time.Now()
	if l.arrivals != nil {
		l.arrivals.begin(start)
	}
	col := newCollector(l, senders, start)
	var sending sync.WaitGroup
	for _, s := range senders {
		s.start = start
		sending.Go(func() { s.run(ctx, sctx) })
	}
	collected := col.start()
	sending.Wait()
	sendingEnded := time.Since(start)
	drain := l.Drain
	if ctx.Err() != nil {
		drain = min(drain, 5*time.Second)
	}
	unfinished := int64(0)
	deadline := time.NewTimer(drain)
	defer deadline.Stop()
	for _, s := range senders {
		unfinished += s.settle(deadline, giveUp)
	}
	if l.arrived != nil {
		var acked int64
		for _, s := range senders {
			acked += s.book.acknowledged()
		}
		l.arrived(acked)
	}
	end := time.Since(start)
	col.stop <- struct{}{}
	<-collected
	return col.result(ctx.Err() != nil, sendingEnded, end, unfinished), nil
}

// ends is when sending stops. What was due just before the end of an open loop
// and is a little late is still sent: it is no debt.
func (l Load) ends() time.Duration {
	if l.Arrivals == nil {
		return l.Duration
	}
	return l.Duration + max(l.Duration/100, 100*time.Millisecond)
}

// errUnfinished is the cause that ends what is in flight after the drain.
var errUnfinished = errors.New("not acknowledged when the wait was over")

// run sends until the load is over.
func (s *sender) run(ctx, sctx context.Context) {
	count := int64(-1)
	if s.l.Records > 0 {
		count = (s.l.Records - int64(s.share) + int64(s.of) - 1) / int64(s.of)
	}
	var schedule *Schedule
	if s.l.Arrivals != nil {
		schedule = s.l.Arrivals.Schedule(s.share, s.of)
	}
	values, keys := s.l.Payload.Walk(s.share, s.of), s.l.Keys.Walk(s.share, s.of)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	now := time.Since(s.start)
	began := now
	for n := int64(0); count < 0 || n < count; n++ {
		var due time.Duration
		if schedule != nil {
			var more bool
			due, more = schedule.Next()
			if !more || s.l.Duration > 0 && due >= s.l.Duration {
				break
			}
			if wait := due - now; wait > 0 {
				s.idle += wait
				if !s.sleep(ctx, timer, due, wait) {
					break
				}
				now = time.Since(s.start)
			}
		}
		if s.l.Duration > 0 && now >= s.l.ends() || ctx.Err() != nil {
			// Time is up with records still due: they are owed, not forgotten.
			if schedule != nil {
				limit := s.l.Duration
				if ctx.Err() != nil {
					limit = now
				}
				for (limit == 0 || due < limit) && (count < 0 || n < count) {
					s.owed++
					n++
					var more bool
					if due, more = schedule.Next(); !more {
						break
					}
				}
			}
			break
		}
		place := s.place()
		for place == nil && ctx.Err() == nil && (s.l.Duration == 0 || now < s.l.ends()) {
			before := now
			select {
			case <-s.book.freed:
			case <-ctx.Done():
			case <-s.over(timer, now):
			}
			now = time.Since(s.start)
			s.blocked += now - before
			place = s.place()
		}
		if place == nil {
			if schedule != nil {
				s.owed++ // the next turn counts what else is
			}
			continue
		}
		if schedule == nil {
			due = now
		}
		s.send(sctx, place, due, now, values, keys)
		// One reading of the clock a record: the end of a send is the begin of the
		// next when that is due already.
		after := time.Since(s.start)
		if after-now > time.Millisecond {
			s.blocked += after - now
		}
		now = after
	}
	s.awake = time.Since(s.start) - began
}

// over ends a wait for a place when the run's time is up; without a duration it
// never does. The timer is used again by the next sleep.
func (s *sender) over(timer *time.Timer, now time.Duration) <-chan time.Time {
	if s.l.Duration == 0 {
		return nil
	}
	timer.Reset(s.l.ends() - now)
	return timer.C
}

// sleep waits d until due, exactly where the system can; false: the caller ended the run.
func (s *sender) sleep(ctx context.Context, timer *time.Timer, due, d time.Duration) bool {
	// The runtime's timer may be a millisecond late, so it wakes early and the
	// system waits for the rest.
	const exact = 1500 * time.Microsecond
	coarse := d
	if !s.l.plainSleep {
		coarse -= exact
	}
	if coarse > 0 {
		timer.Reset(coarse)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if !s.l.plainSleep {
		if rest := due - time.Since(s.start); rest > 0 {
			nanosleep(rest)
		}
	}
	return true
}

// place is a free slot, or nil when the window is full.
func (s *sender) place() *slot {
	if len(s.spare) == 0 {
		s.spare = s.book.takeFree(s.spare)
	}
	if n := len(s.spare); n > 0 {
		p := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return p
	}
	if s.made == s.l.Window {
		return nil
	}
	s.made++
	p := &slot{}
	if s.l.Stamp != nil {
		p.value = make([]byte, 0, int(s.l.Payload.MeanSize()))
	}
	p.done = func(_ *kgo.Record, err error) {
		s.book.settle(time.Since(s.start), p, err)
	}
	return p
}

func (s *sender) send(ctx context.Context, p *slot, due, now time.Duration, values *Walk, keys *KeyWalk) {
	v := values.Next()
	if s.l.Stamp != nil {
		p.value = append(p.value[:0], v...)
		p.value = s.l.Stamp.write(p.value, due, now)
		v = p.value
	}
	p.due, p.sent, p.size = due, now, len(v)
	p.rec = kgo.Record{Topic: s.l.Topic, Key: keys.Next(p.key[:]), Value: v}
	s.sent.Add(1)
	s.cl.Produce(ctx, &p.rec, p.done)
}

// settle waits for what is in flight; after the deadline it gives up and counts.
func (s *sender) settle(deadline *time.Timer, giveUp context.CancelCauseFunc) (unfinished int64) {
	for s.inFlight() > 0 {
		select {
		case <-s.book.freed:
		case <-deadline.C:
			deadline.Reset(0) // for the senders after this one
			giveUp(errUnfinished)
			// A client fails what was given up at once; one that does not is not waited for.
			grace := time.NewTimer(2 * time.Second)
			defer grace.Stop()
			for s.inFlight() > 0 {
				select {
				case <-s.book.freed:
				case <-grace.C:
					return s.inFlight()
				}
			}
		}
	}
	return 0
}

func (s *sender) inFlight() int64 { return s.sent.Load() - s.book.settled() }

// errorName is the protocol's name of a failure, or a short one of our own.
func errorName(err error) string {
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke.Message
	}
	switch {
	case errors.Is(err, kgo.ErrRecordTimeout):
		return "RECORD_TIMEOUT"
	case errors.Is(err, kgo.ErrRecordRetries):
		return "RETRIES_EXHAUSTED"
	case errors.Is(err, errUnfinished), errors.Is(err, context.Canceled):
		return "UNFINISHED"
	case errors.Is(err, context.DeadlineExceeded):
		return "TIMEOUT"
	}
	s := err.Error()
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(s)
}
