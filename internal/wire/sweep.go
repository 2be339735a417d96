package wire

import "time"

// stallBytes of progress within StallTimeout keep an unfinished frame alive. A
// byte a second does not.
const stallBytes = 16 << 10

// sweepLoop closes idle, stalled and unread connections. Counters that the
// connections raise anyway are compared from tick to tick, so that the hot path
// sets no deadlines and reads no clock for it. The price is that a timeout comes
// up to an eighth of it late.
func (s *Server) sweepLoop() {
	shortest := min(s.opts.IdleTimeout, s.opts.StallTimeout, s.opts.WriteTimeout)
	tick := time.NewTicker(min(max(shortest/8, 10*time.Millisecond), time.Second))
	defer tick.Stop()
	lastTrim := time.Now()
	for {
		var now time.Time
		select {
		case <-s.stop:
			return
		case now = <-tick.C:
		}
		s.mu.Lock()
		for c := range s.conns {
			c.sweep(now)
		}
		s.mu.Unlock()
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
	write      uint32
	writeFrom  time.Time
}

func (c *Conn) sweep(now time.Time) {
	w, o := &c.watch, &c.srv.opts
	if a := c.activity.Load(); a != w.activity || w.idleFrom.IsZero() || c.busy.Load() || c.queued.Load() > 0 {
		w.activity, w.idleFrom = a, now
	} else if now.Sub(w.idleFrom) >= o.IdleTimeout {
		c.meter.Killed("idle")
		c.kill()
		return
	}
	if f, n := c.partial.Load(), c.arrived.Load(); f == 0 || f != w.frame || n-w.frameBytes >= stallBytes {
		w.frame, w.frameBytes, w.frameFrom = f, n, now
	} else if now.Sub(w.frameFrom) >= o.StallTimeout {
		c.meter.Killed("stalled")
		c.srv.warn("connection closed: a request began and did not go on", "listener", c.listener, "addr", c.addr(),
			"bytes_waited_for", c.awaited.Load(), "timeout", o.StallTimeout)
		c.kill()
		return
	}
	if n := c.writes.Load(); n%2 == 0 || n != w.write {
		w.write, w.writeFrom = n, now
	} else if now.Sub(w.writeFrom) >= o.WriteTimeout {
		c.meter.Killed("unread")
		c.srv.warn("connection closed: the client does not read its response", "listener", c.listener, "addr", c.addr(),
			"timeout", o.WriteTimeout)
		c.kill()
	}
}
