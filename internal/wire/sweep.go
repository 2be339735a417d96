package wire

import "time"

// stallBytes of progress within StallTimeout keep an unfinished frame alive. A
// byte a second does not.
const stallBytes = 16 << 10

// While others wait for frame memory, a large frame needs more than that to stay:
// pressedBytes within pressedTimeout.
const (
	pressedBytes   = 256 << 10
	pressedTimeout = 5 * time.Second
)

// largeFrame marks a Conn.partial that holds memory of the budget.
const largeFrame = 1 << 63

// sweepLoop closes idle, stalled and unread connections. Counters that the
// connections raise anyway are compared from tick to tick, so that the hot path
// sets no deadlines and reads no clock for it. The price is that a timeout comes
// up to an eighth of it late.
func (s *Server) sweepLoop() {
	shortest := min(s.opts.IdleTimeout, s.opts.StallTimeout, s.opts.WriteTimeout)
	tick := time.NewTicker(min(max(shortest/8, 10*time.Millisecond), time.Second))
	defer tick.Stop()
	lastTrim := time.Now()
	var conns []*Conn
	for {
		var now time.Time
		select {
		case <-s.stop:
			return
		case now = <-tick.C:
		}
		s.mu.Lock()
		for c := range s.conns {
			conns = append(conns, c)
		}
		s.mu.Unlock()
		pressed := s.budget.pressed() || s.giants.pressed()
		for _, c := range conns {
			c.sweep(now, pressed)
		}
		clear(conns)
		conns = conns[:0]
		if now.Sub(lastTrim) >= 30*time.Second {
			lastTrim = now
			s.pool.trim()
		}
	}
}

// watch is what the sweeper remembers of a connection. Only it touches this.
type watch struct {
	activity   uint32
	idleFrom   time.Time
	frame      uint64
	frameBytes int64
	frameFrom  time.Time
	largeBytes int64
	largeFrom  time.Time
	write      uint32
	writeFrom  time.Time
}

// sweep closes the connection if its time is up.
func (c *Conn) sweep(now time.Time, pressed bool) {
	w, o := &c.watch, &c.srv.opts
	if a := c.activity.Load(); a != w.activity || w.idleFrom.IsZero() || c.busy.Load() || c.queued.Load() > 0 {
		w.activity, w.idleFrom = a, now
	} else if idle := now.Sub(w.idleFrom); idle >= o.IdleTimeout {
		if c.kill() {
			c.meter.Killed("idle")
		}
		return
	} else if idle >= restAfter {
		c.askRest()
	}
	f, n := c.partial.Load(), c.arrived.Load()
	if !pressed || f&largeFrame == 0 || f != w.frame || n-w.largeBytes >= pressedBytes {
		w.largeBytes, w.largeFrom = n, now
	} else if now.Sub(w.largeFrom) >= pressedTimeout {
		c.close("stalled", "a large request came slowly while others waited for memory", pressedTimeout)
		return
	}
	if f == 0 || f != w.frame || n-w.frameBytes >= stallBytes {
		w.frame, w.frameBytes, w.frameFrom = f, n, now
	} else if now.Sub(w.frameFrom) >= o.StallTimeout {
		c.close("stalled", "a request began and did not go on", o.StallTimeout)
		return
	}
	if n := c.writes.Load(); n%2 == 0 || n != w.write {
		w.write, w.writeFrom = n, now
	} else if now.Sub(w.writeFrom) >= o.WriteTimeout {
		c.close("unread", "the client does not read its response", o.WriteTimeout)
	}
}

func (c *Conn) close(kind, text string, timeout time.Duration) {
	if c.kill() {
		c.meter.Killed(kind)
		c.srv.warn("connection closed: "+text, "listener", c.listener, "addr", c.addr(), "timeout", timeout,
			"bytes_awaited", c.awaited.Load())
	}
}
