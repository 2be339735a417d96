package wire

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"
)

// scriptConn is a connection whose client has sent all it will, in pieces.
type scriptConn struct {
	in    []byte
	sizes []byte // of the pieces, over and over
	i     int
	out   bytes.Buffer
}

func (c *scriptConn) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if len(c.sizes) > 0 {
		n = 1 + int(c.sizes[c.i%len(c.sizes)])
		c.i++
	}
	n = copy(p[:min(n, len(p))], c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *scriptConn) Write(p []byte) (int, error)        { return c.out.Write(p) }
func (c *scriptConn) Close() error                       { return nil }
func (c *scriptConn) LocalAddr() net.Addr                { return nil }
func (c *scriptConn) RemoteAddr() net.Addr               { return nil }
func (c *scriptConn) SetDeadline(time.Time) error        { return nil }
func (c *scriptConn) SetReadDeadline(t time.Time) error  { return nil }
func (c *scriptConn) SetWriteDeadline(t time.Time) error { return nil }

// FuzzFrames sends any bytes, cut anywhere: the requests seen and the bytes
// answered are the same as when they arrive at once, and no memory is left over.
func FuzzFrames(f *testing.F) {
	f.Add(heartbeat(4, 1), []byte{0})
	f.Add(append(heartbeat(4, 1), heartbeat(0, 2)...), []byte{3, 200, 7})
	f.Add(append(heartbeat(4, 1), 0, 0, 0, 3, 1), []byte{1})
	f.Add([]byte("\x00\x00\x00\x23\x00\x12\x00\x63\x00\x00\x00\x07\x00\x04test\x00\xff\xfe\xfd\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), []byte{9})
	large := heartbeat(0, 3)
	large = append(large, bytes.Repeat([]byte("x"), 200000)...)
	large[1], large[2], large[3] = byte((len(large)-4)>>16), byte((len(large)-4)>>8), byte(len(large)-4)
	f.Add(append(large, large...), []byte{255, 1, 255})
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		whole, whole2 := runScript(t, in, nil)
		cut, cut2 := runScript(t, in, sizes)
		if !bytes.Equal(whole, cut) || !bytes.Equal(whole2, cut2) {
			t.Fatalf("cut into %v: seen %x, answered %x; whole: %x, %x", sizes, cut, cut2, whole, whole2)
		}
	})
}

func runScript(t *testing.T, in, sizes []byte) (seen, answered []byte) {
	table := testTable()
	s := &Server{table: table, opts: Options{Log: slog.New(slog.DiscardHandler)}.withDefaults(), stop: make(chan struct{}),
		logs: &limiter{}, budget: budget{max: 1 << 20}, pool: bufferPool{maxIdle: 1 << 20}}
	s.meters = append(s.meters, nil)
	for range 100 {
		s.meters = append(s.meters, nil)
	}
	s.handler = handlerFunc(func(req *Request) Response {
		seen = append(seen, byte(req.Key), byte(req.Version))
		seen = append(append(seen, req.ClientID...), req.Body...)
		return Response{Raw: &Raw{Parts: []Part{{Bytes: req.Body[:min(len(req.Body), 10)]}}}}
	})
	nc := &scriptConn{in: bytes.Clone(in), sizes: sizes}
	c := newConn(s, nc, "PLAINTEXT", remoteIP(nc))
	c.run()
	if s.budget.used != 0 || c.in != nil || c.outBuf != nil {
		t.Fatalf("left over: %d bytes of budget, %v, %v", s.budget.used, c.in, c.outBuf)
	}
	return seen, nc.out.Bytes()
}

// The hot path allocates nothing of its own: whatever a request costs is the
// handler's.
func TestServeAllocatesNothing(t *testing.T) {
	s := NewServer(handlerFunc(echo2), testTable(), Options{Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
	nc := &scriptConn{}
	c := newConn(s, nc, "PLAINTEXT", remoteIP(nc))
	frame := heartbeat(4, 1)[4:]
	n := testing.AllocsPerRun(1000, func() {
		nc.out.Reset()
		for range 3 {
			if stop, err := c.serve(frame, nil); stop || err != nil {
				t.Fatal(stop, err)
			}
		}
		if err := c.flush(false); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for three requests", n)
	}
}

var okResponse = &Raw{Parts: []Part{{Bytes: []byte{0, 0, 0, 0, 0, 0, 0}}}}

func echo2(*Request) Response { return Response{Raw: okResponse} }
