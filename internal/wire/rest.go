package wire

import (
	"errors"
	"os"
	"time"
)

// A connection rests when nothing has come in for restAfter: it gives back its
// input buffer, which grew to 64 KiB if it was busy, and its write goroutine. It
// then waits for the next request's length in four bytes of its own. So thousands
// of idle connections cost a goroutine and a few hundred bytes each, and the busy
// ones pay nothing for it.
//
// The sweeper asks by a read deadline that has passed, which ends the blocking
// read; the read goroutine does the rest.
const restAfter = 5 * time.Second

// States of Conn.rest. The sweeper moves it from awake to asked, the read
// goroutine from there on.
const (
	awake = iota
	asked
	resting
)

// errRest is what a read returns that was ended for the connection to rest.
var errRest = errors.New("time to rest")

// askRest is the sweeper's part.
func (c *Conn) askRest() {
	if c.partial.Load() == 0 && c.rest.CompareAndSwap(awake, asked) {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// restAsked says whether err ended a read because the sweeper asked, and takes
// the deadline away. Server.Close sets draining before its own deadline, so that
// one is never taken for this one, nor taken away unseen.
func (c *Conn) restAsked(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || c.srv.draining.Load() || c.rest.Load() != asked {
		return false
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	c.rest.Store(awake)
	return !c.srv.draining.Load()
}

// lieDown gives back what an idle connection does not need. Read goroutine only.
func (c *Conn) lieDown() {
	c.in.release() // queued responses that look into it hold it themselves
	c.in, c.r, c.w = nil, 0, 0
	c.inSize, c.roomy = inMin, 0
	if c.queued.Load() == 0 {
		c.queue.rest()
	}
	c.rest.Store(resting)
}

// wake waits for the next request and takes a buffer for it.
func (c *Conn) wake() error {
	n, err := c.read(c.first[:], 0, len(c.first))
	if err != nil {
		return err
	}
	c.rest.Store(awake)
	c.makeRoom(0, len(c.first))
	c.w = copy(c.in.b, c.first[:n])
	return nil
}

// rest ends the write goroutine; the next push starts another. Read goroutine
// only, while nothing is queued.
func (q *queue) rest() {
	if !q.started {
		return
	}
	q.retire.Store(true)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	q.writer.Wait()
	q.retire.Store(false)
	q.started = false
	q.items, q.head = nil, 0
}
