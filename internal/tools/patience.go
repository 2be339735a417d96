package tools

import "time"

// patience says when to give up on acknowledgements. The client's own delivery
// timeout is of no use here: it counts from a record's timestamp, so that a
// record of last week would be given up before it is sent.
//
// A slow broker is waited for as long as it acknowledges something. A bound on
// each record stands beside that, for a partition that hangs while others go on.
type patience struct {
	quiet time.Duration // longest wait in which nothing is acknowledged; 0: no bound
	each  time.Duration // longest wait of one record; 0: no bound

	progress time.Time           // of the last acknowledgement, or of the record that ended a rest
	waiting  map[time.Time]int64 // records not settled yet, by when they came, rounded to step
}

// step is how exactly the age of a record is known.
const step = 100 * time.Millisecond

// sent counts a record and returns when it came, for settled.
func (p *patience) sent(now time.Time) time.Time {
	if len(p.waiting) == 0 {
		p.progress = now
		if p.waiting == nil {
			p.waiting = map[time.Time]int64{}
		}
	}
	at := now.Round(0).Truncate(step) // without the monotonic clock, as a key
	p.waiting[at]++
	return at
}

func (p *patience) settled(now, at time.Time) {
	p.progress = now
	if p.waiting[at]--; p.waiting[at] == 0 {
		delete(p.waiting, at)
	}
}

// over says that records wait for too long.
func (p *patience) over(now time.Time) bool {
	if len(p.waiting) == 0 {
		return false
	}
	if p.quiet > 0 && now.Sub(p.progress) >= p.quiet {
		return true
	}
	if p.each > 0 {
		for at := range p.waiting {
			if now.Sub(at) >= p.each {
				return true
			}
		}
	}
	return false
}
