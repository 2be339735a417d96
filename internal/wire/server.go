package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/metrics"
)

// Server accepts connections and runs them.
type Server struct {
	handler Handler
	table   *Table
	opts    Options
	budget  budget // of large frames
	giants  budget // of those above giantMin: they cannot keep the others out
	pool    bufferPool
	encoded atomic.Int64 // bytes of ready responses that wait behind others
	logs    *limiter
	meters  []*metrics.API // by key; nil without metrics

	draining atomic.Bool
	stop     chan struct{} // closed by Close
	nextID   atomic.Uint64
	wg       sync.WaitGroup // connections, sweeper, accept loops

	pace *pace // of all listeners together

	mu          sync.Mutex
	closed      bool
	listeners   map[net.Listener]struct{}
	conns       map[*Conn]struct{}
	perIP       map[netip.Addr]int
	perListener map[string]int
	limits      Limits
	paces       map[string]*pace // by listener
}

// NewServer returns a Server that serves nothing yet. Close it in any case: its
// sweeper already runs. The table must not change any more.
func NewServer(h Handler, table *Table, opts Options) *Server {
	s := &Server{
		handler:     h,
		table:       table,
		opts:        opts.withDefaults(),
		stop:        make(chan struct{}),
		listeners:   make(map[net.Listener]struct{}),
		conns:       make(map[*Conn]struct{}),
		perIP:       make(map[netip.Addr]int),
		perListener: make(map[string]int),
		limits:      Unlimited(),
		paces:       make(map[string]*pace),
	}
	if opts.Limits != nil {
		s.limits = *opts.Limits
	}
	s.pace = newPace(s.limits.Rate)
	s.giants.max = s.opts.InflightBytes / 4
	s.budget.max = s.opts.InflightBytes - s.giants.max
	s.pool.maxIdle = 64 << 20
	table.Each(func(key, lo, hi int16) {
		s.meters = append(s.meters, make([]*metrics.API, int(key)+1-len(s.meters))...)
		s.meters[key] = s.opts.Metrics.API(kmsg.NameForKey(key), lo, hi)
	})
	s.logs = &limiter{burst: 50, every: 10 * time.Second}
	s.wg.Go(s.sweepLoop)
	return s
}

// Serve accepts connections on l until Close, when it returns nil, or until l
// fails for good. Running out of descriptors is not for good: it waits and goes
// on. Serve closes l. name is the listener's name (PLAINTEXT, ...).
func (s *Server) Serve(l net.Listener, name string) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = l.Close()
		return nil
	}
	s.listeners[l] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	meter := s.opts.Metrics.Listener(name)
	own := s.paceOf(name)
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
		_ = l.Close()
		s.wg.Done()
	}()

	backoff := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			backoff = 0
			if !s.await(own, s.pace) {
				_ = nc.Close()
				return nil
			}
			s.admit(nc, name, meter)
			continue
		}
		if s.draining.Load() {
			return nil
		}
		if !temporaryAccept(err) {
			return fmt.Errorf("accept on %s %s: %w", name, l.Addr(), err)
		}
		// Out of descriptors or memory: the connection stays in the backlog, so
		// accepting again at once would only spin.
		backoff = min(max(2*backoff, 5*time.Millisecond), time.Second)
		s.warn("cannot accept connections, trying again", "listener", name, "err", err)
		select {
		case <-time.After(backoff):
		case <-s.stop:
			return nil
		}
	}
}

// ServeConn runs one connection that came from elsewhere than a listener of
// Serve, under the same limits, those of the rate excepted. It does not block.
func (s *Server) ServeConn(nc net.Conn, name string) {
	s.admit(nc, name, s.opts.Metrics.Listener(name))
}

func (s *Server) admit(nc net.Conn, name string, meter *metrics.Listener) {
	ip := remoteIP(nc)
	c := newConn(s, nc, name, ip)
	c.meter = meter
	s.mu.Lock()
	reason := s.refuseLocked(ip, name)
	if reason == "" {
		s.conns[c] = struct{}{}
		s.perListener[name]++
		if ip.IsValid() {
			s.perIP[ip]++
		}
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if reason != "" {
		_ = nc.Close()
		if reason != "shutdown" {
			s.warn("connection refused", "listener", name, "addr", addrString(nc.RemoteAddr()), "limit", reason)
		}
		meter.Refused(reason)
		return
	}
	meter.Opened()
	c.tune()
	go func() {
		defer s.wg.Done()
		c.run()
		s.mu.Lock()
		delete(s.conns, c)
		s.perListener[name]--
		if ip.IsValid() {
			if s.perIP[ip]--; s.perIP[ip] == 0 {
				delete(s.perIP, ip)
			}
		}
		s.mu.Unlock()
		meter.Closed()
	}()
}

// Conns returns the number of open connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// FrameBytes returns the memory large requests hold and the most they may.
func (s *Server) FrameBytes() (used, max int64) {
	for _, b := range []*budget{&s.budget, &s.giants} {
		b.mu.Lock()
		used += b.used
		b.mu.Unlock()
	}
	return used, s.opts.InflightBytes
}

// giantMin is the size from which on a frame counts against the quarter of the
// budget that is for the few of that size.
const giantMin = 8 << 20

func (s *Server) budgetOf(size int) *budget {
	if size > giantMin {
		return &s.giants
	}
	return &s.budget
}

// EachSoftware counts open connections by the client software they named.
func (s *Server) EachSoftware(yield func(name, version string, n int) bool) {
	counts := make(map[software]int)
	s.mu.Lock()
	for c := range s.conns {
		if sw := c.software.Load(); sw != nil {
			counts[*sw]++
		}
	}
	s.mu.Unlock()
	for sw, n := range counts {
		if !yield(sw.name, sw.version, n) {
			return
		}
	}
}

// Close stops accepting, closes idle connections at once and the others when
// the requests they sent are answered, at the latest after CloseGrace. It
// returns when all goroutines have ended.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	s.draining.Store(true)
	close(s.stop)
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		// Ends the blocking read; the read loop then sees draining.
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()

	grace := time.AfterFunc(s.opts.CloseGrace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			c.kill()
		}
	})
	s.wg.Wait()
	grace.Stop()
	return nil
}

func (s *Server) warn(msg string, args ...any) {
	ok, dropped := s.logs.allow(time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		args = append(args, "suppressed", dropped)
	}
	s.opts.Log.Warn(msg, args...)
}

// limiter lets burst log lines pass per period and counts the others.
type limiter struct {
	burst int
	every time.Duration

	mu      sync.Mutex
	start   time.Time
	n       int
	dropped int
}

func (l *limiter) allow(now time.Time) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.start) >= l.every {
		l.start, l.n = now, 0
		dropped, l.dropped = l.dropped, 0
	}
	if l.n >= l.burst {
		l.dropped++
		return false, 0
	}
	l.n++
	return true, dropped
}

func remoteIP(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

func addrString(a net.Addr) string {
	if a == nil {
		return "unknown"
	}
	return a.String()
}

// quiet says that err is an ordinary end of a connection.
func quiet(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || resetByPeer(err)
}
