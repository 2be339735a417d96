package wire

import "sync"

// budget bounds the frame memory of all connections together. Who finds it used
// up waits in line, which stops the reading of that connection.
type budget struct {
	max int64

	mu      sync.Mutex
	used    int64
	waiters []*budgetWaiter // oldest first
}

type budgetWaiter struct {
	n     int64
	ready chan struct{} // closed once n bytes are taken for the waiter
}

// acquire takes n bytes, waiting until they are free; false when cancel was
// closed first. More than the whole budget counts as the whole budget, so that
// a single frame always gets through in the end: it returns what it took.
func (b *budget) acquire(n int64, cancel <-chan struct{}) (int64, bool) {
	n = min(n, b.max)
	b.mu.Lock()
	if len(b.waiters) == 0 && b.used+n <= b.max {
		b.used += n
		b.mu.Unlock()
		return n, true
	}
	w := &budgetWaiter{n: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return n, true
	case <-cancel:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, x := range b.waiters {
		if x == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.wakeLocked() // a large waiter may have held up smaller ones
			return 0, false
		}
	}
	return n, true // granted at the same moment
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
		close(w.ready)
	}
}
