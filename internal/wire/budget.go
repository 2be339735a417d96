package wire

import "sync"

// budget bounds the frame memory of all connections together. Who finds it used
// up waits in line, which stops the reading of that connection.
//
// Half frames that hold memory and wait for more could hold up each other for
// ever. So when nothing has moved for a while, the first in line may overdraw
// the budget until its frame is done with: one frame at a time.
type budget struct {
	max int64

	mu      sync.Mutex
	used    int64
	moved   bool            // memory was given or given back since the last relax
	over    bool            // a frame overdraws
	waiters []*budgetWaiter // oldest first
}

type budgetWaiter struct {
	n     int64
	ready chan struct{} // closed once n bytes are taken for the waiter
	over  bool          // before ready: the budget is overdrawn for it
}

// acquire takes n bytes, at most the whole budget, waiting until they are free;
// ok is false when cancel was closed first. over says that the frame they are
// for may take the rest of what it needs by force, and ends with endOver.
func (b *budget) acquire(n int64, cancel <-chan struct{}) (over, ok bool) {
	if b.tryAcquire(n) {
		return false, true
	}
	b.mu.Lock()
	w := &budgetWaiter{n: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.wakeLocked() // what was used may have been given back in between
	b.mu.Unlock()
	select {
	case <-w.ready:
		return w.over, true
	case <-cancel:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, x := range b.waiters {
		if x == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.wakeLocked() // a large waiter may have held up smaller ones
			return false, false
		}
	}
	return w.over, true // granted at the same moment
}

// force takes n bytes for the frame that overdraws.
func (b *budget) force(n int64) {
	b.mu.Lock()
	b.used += n
	b.mu.Unlock()
}

// endOver ends what acquire said with over.
func (b *budget) endOver() {
	b.mu.Lock()
	b.over = false
	b.mu.Unlock()
}

// relax lets the first in line overdraw if nothing has moved since the last
// call.
func (b *budget) relax() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) > 0 && !b.moved && !b.over {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.used += w.n
		b.over, w.over = true, true
		close(w.ready)
	}
	b.moved = false
}

// tryAcquire takes n bytes when they are free and nobody waits.
func (b *budget) tryAcquire(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) > 0 || b.used+n > b.max {
		return false
	}
	b.used += n
	return true
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	b.used -= n
	b.moved = true
	if b.used < 0 {
		panic("BUG: wire budget below zero")
	}
	b.wakeLocked()
	b.mu.Unlock()
}

func (b *budget) wakeLocked() {
	for len(b.waiters) > 0 && b.used+b.waiters[0].n <= b.max {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.used += w.n
		b.moved = true
		close(w.ready)
	}
}
