package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

type phase uint8

const (
	loading phase = iota
	running
	failed
)

// parked is a reply or effect that waits for the watermark to pass at.
type parked struct {
	at     int64 // last offset that must be safe; Live while not appended
	reply  Reply
	effect any // set: an effect, not a reply
}

// Core runs one Machine over one Log. Zero value unusable; see NewCore.
type Core[R any] struct {
	m     Machine[R]
	log   Log[R]
	phase phase

	open map[Token]struct{} // submitted, answer not yet handed out

	pending  []R      // replayed, not appended
	undated  int      // how many entries at the end of queue stand behind pending
	queue    []parked // in order of decision; at never falls
	last     int64    // offset of the last appended record; Live: none yet
	safe     int64    // highest offset known to be safe
	released []Reply  // ready, not yet taken by Drain or Watermark
	effects  []any    // ready, not yet taken
}

// NewCore makes a Core that is loading: records come in through Load, requests
// are answered COORDINATOR_LOAD_IN_PROGRESS until Start.
func NewCore[R any](m Machine[R], log Log[R]) *Core[R] {
	return &Core[R]{m: m, log: log, open: map[Token]struct{}{}, last: Live, safe: Live}
}

// Load replays one record of the log, in order of offsets, before Start. What
// is loaded counts as not yet safe unless Watermark says so: the first replies
// wait for it too.
func (c *Core[R]) Load(offset int64, r R) {
	if c.phase != loading {
		panic(fmt.Sprintf("BUG: machine: load of offset %d after start", offset))
	}
	c.m.Replay(offset, r)
	c.last = offset
}

// Start ends loading.
func (c *Core[R]) Start(now time.Time) {
	if c.phase != loading {
		panic("BUG: machine: started twice")
	}
	c.phase = running
	c.m.Loaded(now)
}

// Submit hands one input to the machine. Token 0 wants no answer; any other is
// answered by exactly one Reply of a later Drain, Watermark or Fail. The caller
// drains after a handful of submits: what one Drain appends is one batch.
func (c *Core[R]) Submit(now time.Time, tok Token, req any) {
	if tok != 0 {
		if _, dup := c.open[tok]; dup {
			panic(fmt.Sprintf("BUG: machine: token %d submitted twice", tok))
		}
		c.open[tok] = struct{}{}
	}
	switch c.phase {
	case loading:
		c.refuse(tok, kafka.ErrCoordinatorLoadInProgress)
	case failed:
		c.refuse(tok, kafka.ErrNotCoordinator)
	default:
		c.take(c.m.Handle(now, tok, req))
	}
}

func (c *Core[R]) refuse(tok Token, code kafka.Error) {
	if tok != 0 {
		c.released = append(c.released, Reply{Token: tok, Resp: code})
	}
}

// Expire lets passed deadlines act; a call before NextDeadline does nothing.
func (c *Core[R]) Expire(now time.Time) {
	if c.phase != running {
		return
	}
	if d := c.m.NextDeadline(); d.IsZero() || now.Before(d) {
		return
	}
	c.take(c.m.Expire(now))
}

// NextDeadline is when Expire is wanted; zero: not at all.
func (c *Core[R]) NextDeadline() time.Time {
	if c.phase != running {
		return time.Time{}
	}
	return c.m.NextDeadline()
}

// take replays a step's records at once, so that the next input sees them, and
// queues its replies behind everything replayed so far.
func (c *Core[R]) take(s Step[R]) {
	for _, r := range s.Records {
		c.m.Replay(Live, r)
	}
	c.pending = append(c.pending, s.Records...)
	for _, r := range s.Replies {
		if r.Token == 0 {
			continue
		}
		c.park(parked{reply: r})
	}
	for _, e := range s.Effects {
		c.park(parked{effect: e})
	}
}

func (c *Core[R]) park(p parked) {
	if len(c.pending) > 0 {
		p.at = Live
		c.undated++
	} else {
		p.at = c.last
		if len(c.queue) == 0 && c.last <= c.safe {
			c.release(p)
			return
		}
	}
	c.queue = append(c.queue, p)
}

func (c *Core[R]) release(p parked) {
	if p.effect != nil {
		c.effects = append(c.effects, p.effect)
		return
	}
	c.released = append(c.released, p.reply)
}

// Pending is how many records wait for Drain.
func (c *Core[R]) Pending() int { return len(c.pending) }

// Drain appends the pending records as one batch and gives the replies and
// effects that need not wait for the watermark (any longer). After an error
// every open token is among the replies with NOT_COORDINATOR and the Core is
// over: the caller drops it and loads a new one from the log. The slices are
// the caller's.
func (c *Core[R]) Drain(now time.Time) (released []Reply, effects []any, err error) {
	if len(c.pending) > 0 && c.phase == running {
		last, err := c.log.Append(now, c.pending)
		if err != nil {
			return c.Fail(), nil, err
		}
		if last <= c.last {
			panic(fmt.Sprintf("BUG: machine: append ended at %d after %d", last, c.last))
		}
		c.last = last
		clear(c.pending)
		c.pending = c.pending[:0]
		for i := len(c.queue) - c.undated; i < len(c.queue); i++ {
			c.queue[i].at = last
		}
		c.undated = 0
		c.settle()
	}
	return c.answers(), c.Effects(), nil
}

// Watermark tells that every record up to and including offset off is safe
// (committed: a high watermark less one), and gives the replies this frees.
// Effects it frees are given by Effects or the next Drain.
func (c *Core[R]) Watermark(off int64) []Reply {
	if off > c.safe {
		c.safe = off
		c.settle()
	}
	return c.answers()
}

// Effects takes the effects whose records are safe.
func (c *Core[R]) Effects() []any {
	e := c.effects
	c.effects = nil
	return e
}

func (c *Core[R]) settle() {
	n := 0
	for dated := len(c.queue) - c.undated; n < dated && c.queue[n].at <= c.safe; n++ {
		c.release(c.queue[n])
	}
	if n > 0 {
		c.queue = slices.Delete(c.queue, 0, n)
	}
}

func (c *Core[R]) answers() []Reply {
	out := c.released
	c.released = nil
	for _, r := range out {
		if _, ok := c.open[r.Token]; !ok {
			panic(fmt.Sprintf("BUG: machine: token %d answered twice or never submitted", r.Token))
		}
		delete(c.open, r.Token)
	}
	return out
}

// Fail ends the Core: leadership went, or the log refused. Every open token,
// also one the machine still holds (a waiting JoinGroup), is answered
// NOT_COORDINATOR, except those that were already free to go. Later submits get
// the same answer from Drain.
func (c *Core[R]) Fail() []Reply {
	c.phase = failed
	out := c.answers()
	rest := make([]Token, 0, len(c.open))
	for t := range c.open {
		rest = append(rest, t)
	}
	slices.Sort(rest)
	for _, t := range rest {
		out = append(out, Reply{Token: t, Resp: kafka.ErrNotCoordinator})
	}
	clear(c.open)
	c.pending, c.queue, c.undated, c.effects = nil, nil, 0, nil
	return out
}

// Failed says whether the Core is over.
func (c *Core[R]) Failed() bool { return c.phase == failed }
