package lab

import (
	"sync"
	"time"
)

// errorCodesMax bounds the different failures a run keeps apart; what comes
// after is counted together as OTHER.
const errorCodesMax = 64

// tally is what became of records in some time.
type tally struct {
	acked  int64
	bytes  int64 // of keys and values acknowledged
	failed int64
	errors map[string]int64
	late   time.Duration // the largest queue time
	book   *Book
	// Of a probe: end to end from the due time and from the send; else nil.
	due, sent *Latency
}

func newTally() *tally { return &tally{book: NewBook()} }

func (t *tally) reset() {
	b := t.book
	b.reset()
	*t = tally{book: b}
}

func (t *tally) fail(code string, n int64) {
	t.failed += n
	if t.errors == nil {
		t.errors = map[string]int64{}
	}
	if _, known := t.errors[code]; !known && len(t.errors) >= errorCodesMax {
		code = "OTHER"
	}
	t.errors[code] += n
}

func (t *tally) merge(o *tally) {
	t.acked += o.acked
	t.bytes += o.bytes
	for code, n := range o.errors {
		t.fail(code, n)
	}
	t.late = max(t.late, o.late)
	t.book.merge(o.book)
	if o.due != nil {
		if t.due == nil {
			t.due, t.sent = NewLatency(), NewLatency()
		}
		t.due.Merge(o.due)
		t.sent.Merge(o.sent)
	}
}

// ledger is one sender's books. Acknowledgements write it, from any goroutine;
// the collector swaps the tally once a window; the sender takes slots back.
type ledger struct {
	open  bool          // open loop: due time and send are two things
	freed chan struct{} // has one element when a slot came free since the last look

	mu   sync.Mutex
	now  *tally
	next *tally // empty
	free []*slot
	done int64
	good int64 // acknowledged
}

func newLedger(open bool) *ledger {
	return &ledger{open: open, freed: make(chan struct{}, 1), now: newTally(), next: newTally()}
}

func (l *ledger) settle(now time.Duration, p *slot, err error) {
	l.mu.Lock()
	t := l.now
	switch {
	case err != nil:
		t.fail(errorName(err), 1)
		t.book.Failed.Record(now - p.due)
	default:
		t.acked++
		l.good++
		t.bytes += int64(p.size + len(p.rec.Key))
		t.book.Service.Record(now - p.sent)
		if l.open {
			queue := p.sent - p.due
			t.late = max(t.late, queue)
			t.book.Queue.Record(queue)
			t.book.Intended.Record(now - p.due)
		}
	}
	l.done++
	l.free = append(l.free, p)
	l.mu.Unlock()
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// takeFree gives all free slots; empty is a slice to use for the next ones.
func (l *ledger) takeFree(empty []*slot) []*slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == 0 {
		return empty
	}
	out := l.free
	l.free = empty[:0]
	return out
}

func (l *ledger) settled() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

func (l *ledger) acknowledged() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.good
}

// swap gives the tally of the window that ends now; back must be called with it
// when it was merged.
func (l *ledger) swap() *tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.now
	l.now, l.next = l.next, nil
	return t
}

func (l *ledger) back(t *tally) {
	t.reset()
	l.mu.Lock()
	l.next = t
	l.mu.Unlock()
}
