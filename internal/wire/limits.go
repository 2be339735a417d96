package wire

import (
	"math"
	"net/netip"
	"sync"
	"time"
)

// NoLimit in a field of Limits is no limit.
const NoLimit = math.MaxInt32

// Limits bound connections. They may change while the Server runs; connections
// that are open stay open. Zero is a limit like any other: nothing gets in.
type Limits struct {
	MaxConns int                // open at once (max.connections)
	MaxPerIP int                // from one address (max.connections.per.ip)
	PerIP    map[netip.Addr]int // instead of MaxPerIP (max.connections.per.ip.overrides)
	Rate     int                // new ones in a second (max.connection.creation.rate)

	// Listeners hold bounds of single listeners, by name. They count beside the
	// ones above, not instead (listener.name.<name>.max.connections).
	Listeners map[string]ListenerLimits
}

// ListenerLimits bound the connections of one listener.
type ListenerLimits struct {
	MaxConns int
	Rate     int
}

// Unlimited bounds nothing.
func Unlimited() Limits { return Limits{MaxConns: NoLimit, MaxPerIP: NoLimit, Rate: NoLimit} }

// SetLimits puts other limits in force. The caller must not change l.PerIP and
// l.Listeners afterwards.
func (s *Server) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
	s.pace.set(l.Rate)
	for name := range s.paces {
		s.paces[name].set(l.listener(name).Rate)
	}
}

func (l *Limits) listener(name string) ListenerLimits {
	if ll, ok := l.Listeners[name]; ok {
		return ll
	}
	return ListenerLimits{NoLimit, NoLimit}
}

// refuseLocked says which limit keeps a connection out, or nothing.
func (s *Server) refuseLocked(ip netip.Addr, listener string) string {
	perIP, ok := s.limits.PerIP[ip]
	if !ok {
		perIP = s.limits.MaxPerIP
	}
	switch own := s.limits.listener(listener).MaxConns; {
	case s.closed:
		return "shutdown"
	case s.limits.MaxConns < NoLimit && len(s.conns) >= s.limits.MaxConns,
		own < NoLimit && s.perListener[listener] >= own:
		return "max.connections"
	case ip.IsValid() && perIP < NoLimit && s.perIP[ip] >= perIP:
		return "max.connections.per.ip"
	}
	return ""
}

// paceOf is the pace of one listener, kept for the Server's life.
func (s *Server) paceOf(listener string) *pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.paces[listener]
	if p == nil {
		p = newPace(s.limits.listener(listener).Rate)
		s.paces[listener] = p
	}
	return p
}

// await holds an accepted connection back until the paces let it in; the others
// stay in the backlog meanwhile. False: the Server closes.
func (s *Server) await(paces ...*pace) bool {
	for _, p := range paces {
		for {
			wait := p.take(time.Now())
			if wait <= 0 {
				break
			}
			select {
			case <-time.After(wait):
			case <-s.stop:
				return false
			}
		}
	}
	return true
}

// paceCheck is the longest wait before a pace is looked at again: it may have
// been changed.
const paceCheck = 100 * time.Millisecond

// pace is a bucket of one second's connections, full at first.
type pace struct {
	mu     sync.Mutex
	rate   int
	tokens float64
	last   time.Time // zero: nothing was taken yet
}

func newPace(rate int) *pace { return &pace{rate: rate, tokens: float64(rate)} }

func (p *pace) set(rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rate > p.rate {
		p.tokens, p.last = float64(rate), time.Time{}
	}
	p.rate = rate
}

// take takes one connection out of the bucket, or says how long to wait before
// trying again.
func (p *pace) take(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate >= NoLimit {
		return 0
	}
	if !p.last.IsZero() {
		p.tokens += now.Sub(p.last).Seconds() * float64(p.rate)
	}
	p.tokens, p.last = min(p.tokens, float64(p.rate)), now
	if p.tokens >= 1 {
		p.tokens--
		return 0
	}
	if p.rate == 0 {
		return paceCheck
	}
	wait := time.Duration((1 - p.tokens) / float64(p.rate) * float64(time.Second))
	return min(max(wait, time.Millisecond), paceCheck)
}
