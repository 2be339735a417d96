package partition

import (
	"sync"
	"sync/atomic"

	"github.com/weirmq/weir/internal/kafka"
)

// A Waiter is woken once, when what it waits for has come about on the
// partitions it was handed to. Fire may be called from any goroutine.
//
// A fetch waits for bytes: each partition reports what its watermark passed, and
// the waiter fires when the sum reaches what the fetch wants. A produce waits for
// watermarks: each partition reports once when its own offset is passed, and the
// waiter fires at the last. Both are a count that runs down to zero.
type Waiter struct {
	left  atomic.Int64
	fired atomic.Bool
	ready chan struct{}
}

// NewWaiter waits for count units: bytes for a fetch, partitions for a produce.
func NewWaiter(count int64) *Waiter {
	w := &Waiter{ready: make(chan struct{})}
	w.left.Store(count)
	return w
}

// Ready is closed when the waiter fires.
func (w *Waiter) Ready() <-chan struct{} { return w.ready }

// Advance takes n units off the count and fires the waiter at zero.
func (w *Waiter) Advance(n int64) {
	if w.left.Add(-n) <= 0 {
		w.Fire()
	}
}

// Fire wakes the waiter whatever its count: a partition went away, an error is
// better told now than at the deadline.
func (w *Waiter) Fire() {
	if w.fired.CompareAndSwap(false, true) {
		close(w.ready)
	}
}

// ack is a produce waiting for one offset to fall behind the watermark.
type ack struct {
	last kafka.Offset
	w    *Waiter
}

// A Subscriber is told of every change of a partition that a fetch could see: the
// watermark, the log start, the epoch, a failure. It must not block, and not call the
// partition: the partition's locks are held.
type Subscriber interface {
	// Changed tells that n more bytes passed the watermark; 0: another change, which a
	// fetch that waits need not be told at once; -1: one that it must be told.
	Changed(n int64)
}

// Subscribe has s told of what changes from now on, until Unsubscribe. False when the
// partition is closed.
func (p *Partition) Subscribe(s Subscriber) bool {
	p.waiters.mu.Lock()
	defer p.waiters.mu.Unlock()
	if p.waiters.closed {
		return false
	}
	p.waiters.subs = append(p.waiters.subs, s)
	return true
}

// Unsubscribe takes s back.
func (p *Partition) Unsubscribe(s Subscriber) {
	p.waiters.mu.Lock()
	defer p.waiters.mu.Unlock()
	for i, t := range p.waiters.subs {
		if s == t {
			last := len(p.waiters.subs) - 1
			p.waiters.subs[i] = p.waiters.subs[last]
			p.waiters.subs[last] = nil
			p.waiters.subs = p.waiters.subs[:last]
			return
		}
	}
}

// waiters are those of one partition.
type waiters struct {
	mu      sync.Mutex
	fetches map[*Waiter]struct{}
	acks    []ack // in order of last
	closed  bool
	subs    []Subscriber
}

// advance tells that the watermark is now hw and passed n more bytes.
func (ws *waiters) advance(hw kafka.Offset, n int64) {
	ws.mu.Lock()
	for w := range ws.fetches {
		w.Advance(n)
	}
	for _, s := range ws.subs {
		s.Changed(n)
	}
	i := 0
	for i < len(ws.acks) && ws.acks[i].last < hw {
		ws.acks[i].w.Advance(1)
		i++
	}
	if i > 0 {
		ws.acks = append(ws.acks[:0], ws.acks[i:]...)
	}
	ws.mu.Unlock()
}

// fireAll wakes everyone, for a partition that closes, fails or changes leader.
func (ws *waiters) fireAll(closing bool) {
	ws.mu.Lock()
	for w := range ws.fetches {
		w.Fire()
	}
	for _, s := range ws.subs {
		s.Changed(-1)
	}
	for _, a := range ws.acks {
		a.w.Fire()
	}
	ws.acks = nil
	if ws.closed = ws.closed || closing; ws.closed {
		ws.subs = nil
	}
	ws.mu.Unlock()
}

// note tells subscribers that something of the partition changed, waking nobody.
func (ws *waiters) note() {
	ws.mu.Lock()
	for _, s := range ws.subs {
		s.Changed(0)
	}
	ws.mu.Unlock()
}

func (ws *waiters) idle() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.fetches) == 0 && len(ws.acks) == 0
}
