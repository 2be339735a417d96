package wire

import "sync"

// budget bounds the frame memory of all connections together. Who finds it used
// up waits in line, which stops the reading of that connection.
//
// Half frames that hold memory and wait for more could hold up each other for
// ever. So one frame at a time, the smallest that waits, may overdraw the budget
// and take all it still needs: memory in use is at most max and one frame.
type budget struct {
	max int64

	mu      sync.Mutex
	used    int64
	over    bool            // a frame overdraws
	waiters []*budgetWaiter // oldest first
}

type budgetWaiter struct {
	n     int64
	frame int           // size of the frame it is for
	ready chan struct{} // closed once n bytes are taken for the waiter
	over  bool          // before ready: the budget is overdrawn for it
}

// acquire takes n bytes for a frame, waiting until they are free; ok is false
// when cancel was closed first. over says that the frame may take the rest of
// what it needs by force, and ends with endOver.
func (b *budget) acquire(n int64, frame int, cancel <-chan struct{}) (over, ok bool) {
	if b.tryAcquire(n) {
		return false, true
	}
	b.mu.Lock()
	w := &budgetWaiter{n: n, frame: frame, ready: make(chan struct{})}
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
	b.wakeLocked()
	b.mu.Unlock()
}

// pressed says that somebody waits.
func (b *budget) pressed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiters) > 0
}

// tryAcquire takes n bytes when they are free and nobody waits.
func (b *budget) tryAcquire(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) > 0 || !b.fitsLocked(n) {
		return false
	}
	b.used += n
	return true
}

// fitsLocked lets more than the whole budget pass when nothing else is in use.
func (b *budget) fitsLocked(n int64) bool { return b.used == 0 || b.used+n <= b.max }

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
	for len(b.waiters) > 0 && b.fitsLocked(b.waiters[0].n) {
		b.grantLocked(0)
	}
	if len(b.waiters) == 0 || b.over {
		return
	}
	smallest := 0
	for i, w := range b.waiters {
		if w.frame < b.waiters[smallest].frame {
			smallest = i
		}
	}
	b.over, b.waiters[smallest].over = true, true
	b.grantLocked(smallest)
}

func (b *budget) grantLocked(i int) {
	w := b.waiters[i]
	b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
	b.used += w.n
	close(w.ready)
}
