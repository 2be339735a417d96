package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// inMin is the input buffer of a connection that sends little.
	inMin = 512
	// inMax bounds the frames that are parsed in place, in the input buffer.
	// Larger ones get a buffer of their own and count against the budget.
	inMax = 64 << 10
	// aheadMax bounds what a connection may allocate before bytes arrive, however
	// large the frames it completed before.
	aheadMax = 8 << 20
	// holdMax is how long a response may lie in the out buffer while further
	// requests of the same read are handled.
	holdMax = 500 * time.Microsecond
)

// errClose ends a connection whose reason has been logged.
var errClose = errors.New("connection closed")

// reader is the state of the read goroutine.
type reader struct {
	in         *buffer // in.b[r:w] is read and not yet parsed; nil at rest
	r, w       int
	first      [4]byte // what ends a rest is read here
	inSize     int     // size of the next input buffer
	roomy      int     // reads in a row that a smaller one would have held
	afterLarge bool
	largest    int    // largest frame completed
	frames     uint64 // frames completed
	client     string // of the last request: clients do not change it
	req        *Request
	readAt     time.Time // when the last read returned
	now        time.Time // readAt, or the end of the last Handle
}

// readLoop reads and handles requests. orderly says that responses still owed
// are to be sent before the connection closes.
func (c *Conn) readLoop() (orderly bool, err error) {
	for {
		for c.w-c.r >= 4 {
			size := int(int32(binary.BigEndian.Uint32(c.in.b[c.r:])))
			if size < headerMin || size > c.srv.opts.MaxRequestBytes {
				c.meter.Killed("malformed")
				c.srv.warn("connection closed: not a Kafka request", "listener", c.listener, "addr", c.addr(),
					"reason", badPrefix(c.in.b[c.r:c.w], size, c.srv.opts.MaxRequestBytes))
				return true, errClose
			}
			var frame []byte
			buf := c.in
			switch {
			case c.w-c.r-4 >= size:
				frame = c.in.b[c.r+4 : c.r+4+size : c.r+4+size]
				c.r += 4 + size
			case 4+size > inMax:
				if buf, err = c.readLarge(size); err != nil {
					return c.readFailed(err)
				}
				frame = buf.b[:size:size]
			}
			if frame == nil {
				break
			}
			c.frames++
			stop, err := c.serve(frame, buf)
			if buf != c.in {
				buf.release()
			}
			if stop {
				return err == nil || errors.Is(err, errClose), err
			}
		}
		if err := c.fill(); err != nil {
			return c.readFailed(err)
		}
	}
}

func (c *Conn) readFailed(err error) (bool, error) {
	if c.srv.draining.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// badPrefix says in words what a length prefix that cannot be one looks like.
func badPrefix(b []byte, size, limit int) string {
	switch s := string(b[:min(len(b), 4)]); {
	case s == "GET " || s == "POST" || s == "HEAD" || s == "PUT " || s == "OPTI" || s == "PRI ":
		return "the client speaks HTTP"
	case s[0] == 0x16 && s[1] == 3:
		return "the client speaks TLS to a listener without it"
	case size < 0:
		return fmt.Sprintf("length %d", size)
	case size < headerMin:
		return fmt.Sprintf("length %d is less than a request header", size)
	default:
		return fmt.Sprintf("length %d is above socket.request.max.bytes %d", size, limit)
	}
}

// read is one blocking read, before which everything owed is flushed. have is
// how much of an unfinished frame of want bytes is there.
func (c *Conn) read(p []byte, have, want int) (int, error) {
	if c.queued.Load() == 0 {
		if err := c.flush(false); err != nil {
			return 0, err
		}
	}
	if have > 0 {
		c.awaited.Store(int64(want - have))
		frame := c.frames + 1
		if want > inMax {
			frame |= largeFrame
		}
		c.partial.Store(frame)
	}
	c.busy.Store(false)
	n, err := c.nc.Read(p)
	for n == 0 && err != nil && c.restAsked(err) {
		if have == 0 {
			return 0, errRest
		}
		n, err = c.nc.Read(p)
	}
	c.busy.Store(true)
	c.activity.Add(1)
	if have > 0 {
		c.arrived.Add(int64(n))
		c.partial.Store(0)
	}
	c.readAt = time.Now()
	c.now = c.readAt
	if n > 0 {
		return n, nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return 0, err
}

// fill reads more input behind what is there, in a buffer with room for the
// frame that began.
func (c *Conn) fill() error {
	if c.in == nil && c.rest.Load() == resting {
		return c.wake()
	}
	have := c.w - c.r
	want := 4
	if have >= 4 {
		want = 4 + int(binary.BigEndian.Uint32(c.in.b[c.r:]))
	}
	c.makeRoom(have, want)
	end := len(c.in.b)
	if c.afterLarge {
		// The next frame is likely as large: what is read here of it is copied.
		end = min(end, c.w+inMin)
	}
	n, err := c.read(c.in.b[c.w:end], have, want)
	if err == errRest {
		c.lieDown()
		return nil
	}
	c.w += n
	if c.afterLarge {
		c.afterLarge = false
		return err
	}
	switch {
	case c.w == len(c.in.b):
		c.inSize, c.roomy = min(c.inSize*4, inMax), 0
	case n > c.inSize/4:
		c.roomy = 0
	default:
		if c.roomy++; c.roomy >= 64 {
			c.inSize, c.roomy = max(c.inSize/4, inMin), 0
		}
	}
	return err
}

// makeRoom leaves space for want bytes from c.r on. Queued responses may still
// look at requests in the buffer, so it is moved only when nobody does; the
// space behind c.w is nobody's.
func (c *Conn) makeRoom(have, want int) {
	if c.in != nil {
		alone := c.in.refs.Load() == 1
		fits := want <= len(c.in.b) && len(c.in.b) >= c.inSize && (have > 0 || len(c.in.b) == c.inSize)
		if alone && fits {
			if have == 0 {
				c.r, c.w = 0, 0
			} else if c.r > 0 && (len(c.in.b)-c.r < want || len(c.in.b)-c.w < inMin/4) {
				copy(c.in.b, c.in.b[c.r:c.w])
				c.r, c.w = 0, have
			}
			return
		}
		if len(c.in.b)-c.r >= want && len(c.in.b)-c.w >= inMin/4 {
			return
		}
	}
	next := c.srv.pool.get(max(want, c.inSize))
	if c.in != nil {
		copy(next.b, c.in.b[c.r:c.w])
		c.in.release()
	}
	c.in, c.r, c.w = next, 0, have
}

// readLarge reads the frame of size bytes whose prefix is at c.r into a buffer
// of its own. The buffer doubles as bytes arrive; only a connection that has
// completed such frames before gets one ahead of them.
func (c *Conn) readLarge(size int) (*buffer, error) {
	buf, err := c.frameBuffer(min(size, max(min(c.largest, aheadMax), inMax)), size, nil)
	if err != nil {
		return nil, err
	}
	n := copy(buf.b, c.in.b[c.r+4:c.w])
	c.r, c.w = 0, 0
	if c.in.refs.Load() > 1 {
		c.in.release()
		c.in = c.srv.pool.get(c.inSize)
	}
	for n < size {
		if n == len(buf.b) {
			if buf, err = c.frameBuffer(min(size, 2*n), size, buf); err != nil {
				return nil, err
			}
		}
		m, err := c.read(buf.b[n:min(size, len(buf.b))], 4+n, 4+size)
		if err != nil {
			buf.release()
			return nil, err
		}
		n += m
	}
	c.largest = max(c.largest, size)
	c.afterLarge = true
	return buf, nil
}

// frameBuffer takes n bytes of frame memory from the budget for a frame of size
// bytes, waiting for it, or all of the frame's when it may overdraw, and moves
// what old holds (nil: nothing) into it. On error old is released.
func (c *Conn) frameBuffer(n, size int, old *buffer) (*buffer, error) {
	b := c.srv.budgetOf(size)
	charge, had, over := int64(classSize(classOf(n))), int64(0), false
	if old != nil {
		had = old.charged
	}
	if !b.tryAcquire(charge - had) {
		err := error(nil)
		if c.queued.Load() == 0 {
			err = c.flush(false)
		}
		if err == nil {
			// busy: it is not the client that lets us wait.
			ok := false
			if over, ok = b.acquire(charge-had, size, c.done); !ok {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			if old != nil {
				old.release()
			}
			return nil, err
		}
		if over {
			whole := int64(classSize(classOf(size)))
			b.force(whole - charge)
			n, charge = size, whole
		}
	}
	buf := c.srv.pool.get(n)
	buf.budget, buf.charged, buf.over = b, charge, over
	if old != nil {
		copy(buf.b, old.b)
		old.budget, old.charged = nil, 0
		old.release()
	}
	return buf, nil
}

// serve handles one frame, which lies in buf. stop ends the connection: in
// order when err is nil or errClose.
func (c *Conn) serve(frame []byte, buf *buffer) (stop bool, err error) {
	h, err := parseHeader(c.srv.table, frame)
	if err != nil {
		c.meter.Killed("malformed")
		c.srv.warn("connection closed: not a Kafka request", "listener", c.listener, "addr", c.addr(), "reason", err)
		return true, errClose
	}
	if !h.offered {
		return c.refuse(h)
	}
	if c.queued.Load() == 0 && len(c.out) > 0 && c.now.Sub(c.outSince) > holdMax {
		if err := c.flush(false); err != nil {
			return true, err
		}
	}
	if string(h.client) != c.client {
		c.client = string(h.client)
	}
	req := c.req
	*req = Request{
		Key: h.key, Version: h.version, CorrelationID: h.correlationID,
		ClientID: c.client, ClientIDNull: h.client == nil,
		Body: h.body, Conn: c, Received: c.readAt,
	}
	start := c.now
	resp := c.srv.handler.Handle(req)
	c.now = time.Now()
	it := item{
		correlationID: h.correlationID, key: h.key, version: h.version,
		flexible: h.api.flexibleResponse(h.key, h.version),
		resp:     resp, received: c.readAt, handled: c.now, handle: c.now.Sub(start), requestBytes: len(frame) + 4,
	}
	if resp.Pending == nil {
		req.Body = nil // or it would keep the frame's memory until the next request
	}
	if resp.Pending == nil && c.queued.Load() == 0 {
		err := c.respond(&it, c.now)
		return err != nil || resp.Close, err
	}
	if resp.Pending != nil {
		c.req = new(Request) // the Pending may go on looking at this one
	}
	if err := c.queue.push(c, it, buf); err != nil {
		return true, err
	}
	return resp.Close, nil
}

// refuse answers a request of an API or version that is not offered.
func (c *Conn) refuse(h header) (stop bool, err error) {
	if h.key == keyApiVersions && h.api.ok {
		it := item{correlationID: h.correlationID, key: h.key, version: 0, received: c.readAt, handled: c.now}
		it.resp.Raw = &Raw{Parts: []Part{{Bytes: appendUnsupported(nil, h.api)}}}
		if c.queued.Load() == 0 {
			err := c.respond(&it, c.now)
			return err != nil, err
		}
		if err := c.queue.push(c, it, nil); err != nil {
			return true, err
		}
		return false, nil
	}
	c.meter.Killed("unsupported")
	offered := "none"
	if h.api.ok {
		offered = fmt.Sprintf("%d to %d", h.api.min, h.api.max)
	}
	c.srv.warn("connection closed: the client sent a request version that is not offered", "listener", c.listener,
		"addr", c.addr(), "client_id", logSafe(h.client), "api", kmsg.NameForKey(h.key), "key", h.key,
		"version", h.version, "offered", offered)
	return true, errClose
}

// logSafe shortens a client's string for a log line; the log handler escapes it.
func logSafe(b []byte) string {
	if len(b) > 128 {
		return string(b[:128]) + "..."
	}
	return string(b)
}
