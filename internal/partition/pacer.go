package partition

import (
	"errors"
	"sync"
	"time"
)

// pacer keeps the bytes of several goroutines within a rate that may change at any
// time. Whoever comes while nothing is owed goes at once, however many bytes it
// brings, and those after it wait until they are paid for: over any longer time the
// rate holds.
type pacer struct {
	rate func() float64 // bytes per second
	stop <-chan struct{}

	mu   sync.Mutex
	owed float64 // bytes let through and not yet paid for, as of at
	at   time.Time
	last float64 // the rate since at
}

var errStopped = errors.New("partition: stopping")

// paceTurn is how long a wait lasts before the rate is looked at again.
const paceTurn = 100 * time.Millisecond

// wait blocks until n bytes are within the rate.
func (p *pacer) wait(n int) error {
	for {
		d := p.take(n)
		if d == 0 {
			return nil
		}
		t := time.NewTimer(min(d, paceTurn))
		select {
		case <-t.C:
		case <-p.stop:
			t.Stop()
			return errStopped
		}
	}
}

// take lets n bytes through, or says how long until something may be.
func (p *pacer) take(n int) time.Duration {
	rate := max(p.rate(), 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.at.IsZero() {
		p.owed = max(p.owed-now.Sub(p.at).Seconds()*p.last, 0)
	}
	p.at, p.last = now, rate
	if p.owed < 1 {
		p.owed += float64(n)
		return 0
	}
	return max(time.Duration(min(p.owed/rate, 3600)*float64(time.Second)), time.Microsecond)
}
