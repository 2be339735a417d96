package tools

import (
	"sync/atomic"
	"time"
)

// patience says when to give up on acknowledgements. The client's own delivery
// timeout is of no use here: it counts from a record's timestamp, so that a
// record of last week would be given up before it is sent.
//
// A slow broker is waited for as long as it acknowledges something. A bound on
// each record stands beside that, for a partition that hangs while others go on.
//
// sent and settled are on the path of every record, from several goroutines: they
// count and look at no clock. over is called every step, by one goroutine.
type patience struct {
	quiet time.Duration // longest wait in which nothing is acknowledged; 0: no bound
	each  time.Duration // longest wait of one record; 0: no bound

	sent, settled atomic.Int64
	now           atomic.Pointer[cohort]

	cohorts  []*cohort // with records that wait, the oldest first, and the youngest two
	before   int64     // settled at the last look
	progress time.Time // of the last look that found something settled, or nothing waiting
}

// cohort is the records sent within one step.
type cohort struct {
	begin   time.Time
	waiting atomic.Int64
}

// step is how exactly the age of a record is known.
const step = 100 * time.Millisecond

func newPatience(quiet, each time.Duration, now time.Time) *patience {
	p := &patience{quiet: quiet, each: each, progress: now}
	p.rotate(now)
	return p
}

func (p *patience) rotate(now time.Time) {
	c := &cohort{begin: now}
	p.cohorts = append(p.cohorts, c)
	p.now.Store(c)
}

// send counts a record and gives what settle wants of it.
func (p *patience) send() *cohort {
	p.sent.Add(1)
	c := p.now.Load()
	c.waiting.Add(1)
	return c
}

func (p *patience) settle(c *cohort) {
	c.waiting.Add(-1)
	p.settled.Add(1)
}

// over says that records wait for too long.
func (p *patience) over(now time.Time) bool {
	settled := p.settled.Load()
	waits := p.sent.Load() > settled
	if settled != p.before || !waits {
		p.before, p.progress = settled, now
	}
	kept := p.cohorts[:0]
	for i, c := range p.cohorts {
		// A sender may hold one of the youngest and not have counted in it yet.
		if c.waiting.Load() > 0 || i >= len(p.cohorts)-2 {
			kept = append(kept, c)
		}
	}
	p.cohorts = kept
	oldest := p.cohorts[0]
	late := p.each > 0 && oldest.waiting.Load() > 0 && now.Sub(oldest.begin) >= p.each
	p.rotate(now)
	return late || waits && p.quiet > 0 && now.Sub(p.progress) >= p.quiet
}
