package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Poller is what records arrive through; *kgo.Client is one.
type Poller interface {
	PollRecords(ctx context.Context, most int) kgo.Fetches
}

// pollMost bounds what one poll hands over at once.
const pollMost = 10_000

// arrivals is the book of stamped records that were read back, in the process
// that sent them and so by its one clock.
type arrivals struct {
	stamp Stamp

	mu    sync.Mutex
	start time.Time // zero: nothing is sent yet
	due   *Latency  // from the due time, of the window
	sent  *Latency  // from the send
	n     int64
	back  int64 // arrived before they were sent: a clock error, counted and never dropped
	errs  map[string]int64
}

func newArrivals(run uint64) *arrivals {
	return &arrivals{stamp: Stamp{Run: run}, due: NewLatency(), sent: NewLatency(), errs: map[string]int64{}}
}

func (a *arrivals) begin(start time.Time) {
	a.mu.Lock()
	a.start = start
	a.mu.Unlock()
}

// take notes what one poll gave.
func (a *arrivals) take(fs kgo.Fetches) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Since(a.start)
	fs.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.Canceled) && len(a.errs) < errorCodesMax {
			a.errs[errorName(err)]++
		}
	})
	fs.EachRecord(func(r *kgo.Record) {
		due, sent, ok := a.stamp.read(r.Value)
		if !ok || a.start.IsZero() {
			return
		}
		a.n++
		if now < sent {
			a.back++
		}
		a.due.Record(now - due)
		a.sent.Record(now - sent)
	})
}

// window moves the window's books over to the caller's.
func (a *arrivals) window(due, sent *Latency) {
	a.mu.Lock()
	defer a.mu.Unlock()
	due.Merge(a.due)
	sent.Merge(a.sent)
	a.due.Reset()
	a.sent.Reset()
}

func (a *arrivals) seen() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// Probed is what end-to-end latency was.
type Probed struct {
	*Produced
	Arrived  int64            `json:"arrived"`
	Lost     int64            `json:"lost"` // acknowledged, and not read back within the wait
	ReadErrs map[string]int64 `json:"read_errors,omitempty"`
}

// Probe sends a load and reads it back in the same process: the readers must
// stand at the end of every partition of the topic before it is called. Values
// carry a stamp and have at least StampBytes. wait is how long, after the last
// acknowledgement, records that have not arrived are waited for.
func Probe(ctx context.Context, l Load, senders []Sender, readers []Poller, run uint64, wait time.Duration) (*Probed, error) {
	if len(readers) == 0 {
		return nil, errors.New("a probe needs at least one consumer")
	}
	a := newArrivals(run)
	l.Stamp, l.arrivals = &a.stamp, a
	rctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var reading sync.WaitGroup
	for _, r := range readers {
		reading.Go(func() {
			for rctx.Err() == nil {
				fs := r.PollRecords(rctx, pollMost)
				if fs.IsClientClosed() {
					return
				}
				a.take(fs)
			}
		})
	}
	l.arrived = func(acked int64) {
		deadline := time.Now().Add(wait)
		for a.seen() < acked && time.Now().Before(deadline) {
			time.Sleep(2 * time.Millisecond)
		}
	}
	p, err := Produce(ctx, l, senders)
	stop()
	reading.Wait()
	if err != nil {
		return nil, err
	}
	out := &Probed{Produced: p, Arrived: a.n, Lost: max(0, p.All.Records-a.n), ReadErrs: a.errs}
	if out.Lost > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s acknowledged records did not arrive within %v", Count(float64(out.Lost)), wait))
	}
	if a.back > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s records arrived before they were sent by this clock: it was set back", Count(float64(a.back))))
	}
	return out, nil
}
