package wire

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirmq/weir/internal/metrics"
)

// Conn is one client connection.
type Conn struct {
	srv      *Server
	nc       net.Conn
	raw      syscall.RawConn // of a plain TCP connection, else nil
	listener string
	meter    *metrics.Listener
	ip       netip.Addr
	id       uint64

	done chan struct{} // closed when the connection is dead
	once sync.Once

	software atomic.Pointer[software]
	values   sync.Map

	reader // read goroutine only
	sender // owner of the out buffer: see the package text
	queue  queue

	// What the sweeper looks at. activity counts reads and finished responses;
	// busy is off only in a read; writes is odd during a write and moves with its
	// progress; partial names the unfinished frame (0: none), of which awaited
	// bytes were announced; arrived counts bytes of such frames.
	activity atomic.Uint32
	busy     atomic.Bool
	writes   atomic.Uint32
	partial  atomic.Uint64
	awaited  atomic.Int64
	arrived  atomic.Int64
	watch    watch
	rest     atomic.Uint32 // awake, asked or resting: see rest.go

	// queued counts responses in the queue, the one being sent included.
	queued atomic.Int32
}

type software struct{ name, version string }

func newConn(s *Server, nc net.Conn, listener string, ip netip.Addr) *Conn {
	c := &Conn{srv: s, nc: nc, listener: listener, ip: ip, id: s.nextID.Add(1), done: make(chan struct{})}
	c.inSize = inMin
	c.req = new(Request)
	c.queue.wake = make(chan struct{}, 1)
	c.queue.space = make(chan struct{}, 1)
	return c
}

// tune sets socket options. Errors are left alone: a dead socket shows in the
// first read.
func (c *Conn) tune() {
	t, ok := c.nc.(*net.TCPConn)
	if !ok {
		return
	}
	_ = t.SetNoDelay(true)
	_ = t.SetKeepAlive(true)
	if n := c.srv.opts.SendBuf; n > 0 {
		_ = t.SetWriteBuffer(n)
	}
	if n := c.srv.opts.RecvBuf; n > 0 {
		_ = t.SetReadBuffer(n)
	}
	if raw, err := t.SyscallConn(); err == nil {
		c.raw = raw
		c.sendInit()
	}
}

// RemoteAddr is the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// LocalAddr is the address the client connected to.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteHost is the client's address without the port, as group members show it.
func (c *Conn) RemoteHost() string {
	if c.ip.IsValid() {
		return c.ip.String()
	}
	return addrString(c.nc.RemoteAddr())
}

// Listener is the name of the listener the client came in by.
func (c *Conn) Listener() string { return c.listener }

// ID is unique within the Server's life.
func (c *Conn) ID() uint64 { return c.id }

// String names the connection in logs.
func (c *Conn) String() string {
	return c.listener + "-" + c.addr() + "-" + strconv.FormatUint(c.id, 10)
}

// Done is closed when the connection is dead.
func (c *Conn) Done() <-chan struct{} { return c.done }

// SetSoftware keeps what the client said in ApiVersions v3 (KIP-511).
func (c *Conn) SetSoftware(name, version string) { c.software.Store(&software{name, version}) }

// Software is what SetSoftware kept, or empty strings.
func (c *Conn) Software() (name, version string) {
	if s := c.software.Load(); s != nil {
		return s.name, s.version
	}
	return "", ""
}

// Set keeps a value of the handler's (its session, its principal) with the
// connection. Keys are compared as in a map.
func (c *Conn) Set(key, value any) { c.values.Store(key, value) }

// Get returns what Set kept, or nil.
func (c *Conn) Get(key any) any {
	v, _ := c.values.Load(key)
	return v
}

func (c *Conn) addr() string { return addrString(c.nc.RemoteAddr()) }

// kill ends the connection at once, from any goroutine; false when it had
// ended before.
func (c *Conn) kill() (first bool) {
	c.once.Do(func() {
		first = true
		close(c.done)
		_ = c.nc.Close()
	})
	return first
}

// run is the read goroutine.
func (c *Conn) run() {
	orderly, err := c.readLoop()
	if orderly {
		// What was asked before is still answered.
		if c.queued.Load() == 0 {
			_ = c.flush(false)
		}
		c.queue.waitEmpty(c)
		if err != nil || !c.srv.draining.Load() {
			c.linger()
		}
	}
	c.kill()
	c.queue.shut(c)
	c.freeOut()
	if c.in != nil {
		c.in.release()
		c.in = nil
	}
	if !orderly && !quiet(err) && !c.srv.draining.Load() {
		c.meter.Killed("failed")
		c.srv.warn("connection failed", "listener", c.listener, "addr", c.addr(), "err", err)
	}
}

// linger lets the last response arrive: closing with unread input would make
// the kernel send a reset, which overtakes it.
func (c *Conn) linger() {
	t, ok := c.nc.(*net.TCPConn)
	if !ok || t.CloseWrite() != nil || t.SetReadDeadline(time.Now().Add(500*time.Millisecond)) != nil {
		return
	}
	scratch := make([]byte, 4096)
	for n := 0; n < 1<<20; {
		m, err := t.Read(scratch)
		if n += m; err != nil {
			return
		}
	}
}
