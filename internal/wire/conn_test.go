package wire

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// These tests run a Server over net.Pipe in a synctest bubble: order of
// responses, Pendings, timeouts and the end of connections, on a fake clock.

type handlerFunc func(*Request) Response

func (f handlerFunc) Handle(r *Request) Response { return f(r) }

func testTable() *Table {
	t := new(Table)
	t.Add(0, 0, 13) // Produce
	t.Add(1, 0, 18) // Fetch
	t.Add(3, 0, 13) // Metadata
	t.Add(12, 0, 4) // Heartbeat
	t.Add(18, 0, 4) // ApiVersions
	t.Add(10, 0, 6) // FindCoordinator
	t.Add(22, 0, 5) // InitProducerId
	return t
}

// frameOf encodes a request as clients do.
func frameOf(req kmsg.Request, corr int32, client string) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(client)).AppendRequest(nil, req, corr)
}

func heartbeat(version int16, corr int32) []byte {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = version
	req.Group, req.MemberID = "g", "m"
	return frameOf(req, corr, "test")
}

func heartbeatResponse(req *Request, throttle int32) *kmsg.HeartbeatResponse {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.Version = req.Version
	resp.ThrottleMillis = throttle
	return resp
}

// readFrame returns the next response without its length prefix.
func readFrame(t testing.TB, r io.Reader) []byte {
	t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		t.Fatalf("read of a response's length: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatalf("read of a response: %v", err)
	}
	return b
}

func corrOf(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }

// fakePending is a Pending whose moments a test decides.
type fakePending struct {
	ready     chan struct{}
	deadline  time.Time
	resp      Response
	answered  int
	cancelled int
	check     func() // of what must still be there, at the end
}

func (p *fakePending) Ready() <-chan struct{} { return p.ready }
func (p *fakePending) Deadline() time.Time    { return p.deadline }
func (p *fakePending) Cancel() {
	p.cancelled++
	if p.check != nil {
		p.check()
	}
}

func (p *fakePending) Response(time.Time) Response {
	p.answered++
	if p.check != nil {
		p.check()
	}
	return p.resp
}

// world is a server in a bubble with one connection to it.
type world struct {
	*testing.T
	srv   *Server
	nc    net.Conn
	log   *bytes.Buffer
	start time.Time
}

func inBubble(t *testing.T, opts Options, h handlerFunc, fn func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, log: new(bytes.Buffer), start: time.Now()}
		opts.Log = slog.New(slog.NewTextHandler(w.log, nil))
		w.srv = NewServer(h, testTable(), opts)
		w.nc = w.connect()
		fn(w)
		if t.Failed() {
			t.Log(w.log)
		}
		_ = w.nc.Close()
		_ = w.srv.Close()
		time.Sleep(time.Minute) // whoever the test left sleeping finds the connection closed
		if n := w.srv.Conns(); n != 0 {
			t.Errorf("%d connections left", n)
		}
		if used, _ := w.srv.FrameBytes(); used != 0 {
			t.Errorf("%d bytes of frame memory left", used)
		}
		if len(w.srv.perIP) != 0 {
			t.Errorf("addresses left: %v", w.srv.perIP)
		}
	})
}

func (w *world) connect() net.Conn {
	client, server := net.Pipe()
	w.srv.ServeConn(server, "PLAINTEXT")
	return client
}

func (w *world) send(b []byte) {
	w.Helper()
	if _, err := w.nc.Write(b); err != nil {
		w.Fatalf("write: %v", err)
	}
}

// closedAfter waits for the server to close the connection.
func (w *world) closedAfter(d, late time.Duration) {
	w.Helper()
	if _, err := io.Copy(io.Discard, w.nc); err != nil {
		w.Fatalf("read: %v", err)
	}
	if got := time.Since(w.start); got < d || got > d+late {
		w.Fatalf("closed after %v, want %v", got, d)
	}
	synctest.Wait() // for its log line
}

func echo(req *Request) Response {
	return Response{Msg: heartbeatResponse(req, req.CorrelationID)}
}

// wantOrder reads responses n to m-1.
func (w *world) wantOrder(n, m int32) {
	w.Helper()
	for corr := n; corr < m; corr++ {
		if got := corrOf(readFrame(w, w.nc)); got != corr {
			w.Fatalf("response %d has correlation id %d", corr, got)
		}
	}
}

// Field case B028: a quick request behind a waiting one waits too.
func TestOrderBehindPending(t *testing.T) {
	var pending *fakePending
	inBubble(t, Options{}, func(req *Request) Response {
		if req.CorrelationID == 1 {
			pending = &fakePending{ready: make(chan struct{}), deadline: time.Now().Add(500 * time.Millisecond),
				resp: Response{Msg: heartbeatResponse(req, 1)}}
			return Response{Pending: pending}
		}
		return echo(req)
	}, func(w *world) {
		go func() {
			for corr := range int32(50) {
				_, _ = w.nc.Write(heartbeat(4, corr))
			}
		}()
		w.wantOrder(0, 1)
		if time.Since(w.start) != 0 {
			t.Fatalf("the response before the pending one waited %v", time.Since(w.start))
		}
		w.wantOrder(1, 50)
		if d := time.Since(w.start); d != 500*time.Millisecond {
			t.Fatalf("answered after %v, want the deadline", d)
		}
		if pending.answered != 1 || pending.cancelled != 0 {
			t.Fatalf("pending answered %d times, cancelled %d times", pending.answered, pending.cancelled)
		}
		// The queue has run empty: the read goroutine answers again.
		w.send(heartbeat(4, 50))
		w.wantOrder(50, 51)
	})
}

// Ready, pending, raw, absent and closing responses in random mixes keep their
// order, and every Pending and Raw is settled once, whether the connection is
// read to the end or dies somewhere.
func TestMixedResponses(t *testing.T) {
	for seed := range uint64(60) {
		rng, client := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)) // one for each goroutine
		queueMax, stopAt := 1+rng.IntN(8), 80
		if seed%2 == 1 {
			stopAt = rng.IntN(80)
		}
		var pendings []*fakePending
		raws := 0
		var released atomic.Int32
		var mismatch atomic.Int32
		raw := func(req *Request) *Raw {
			raws++
			return &Raw{Parts: []Part{{Bytes: []byte{0, 0}}, {Bytes: []byte{0, 0, 0, 0, 0}}}, Release: func() { released.Add(1) }}
		}
		inBubble(t, Options{QueueMax: queueMax}, func(req *Request) Response {
			corr, body := req.CorrelationID, req.Body
			want := crc32.ChecksumIEEE(body)
			switch rng.IntN(6) {
			case 0:
				return Response{Raw: raw(req)}
			case 1:
				return Response{None: true}
			case 2:
				return echo(req)
			}
			p := &fakePending{ready: make(chan struct{}), deadline: time.Now().Add(time.Duration(rng.IntN(20)) * time.Millisecond)}
			if rng.IntN(2) == 0 {
				p.deadline = time.Time{}
				time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, func() { close(p.ready) })
			}
			p.check = func() {
				if crc32.ChecksumIEEE(body) != want || req.CorrelationID != corr {
					mismatch.Add(1)
				}
			}
			if rng.IntN(2) == 0 {
				p.resp = Response{Raw: raw(req)}
			} else {
				p.resp = Response{Msg: heartbeatResponse(req, 1)}
			}
			pendings = append(pendings, p)
			return Response{Pending: p}
		}, func(w *world) {
			const n = 80
			go func() {
				var batch []byte
				for corr := range int32(n) {
					req := kmsg.NewPtrHeartbeatRequest()
					req.Version, req.Group = 4, strings.Repeat(string(rune('a'+corr%26)), client.IntN(3000))
					if corr%17 == 0 {
						req.Group = strings.Repeat("large", 20000)
					}
					batch = append(batch, frameOf(req, corr, "test")...)
					for len(batch) > 0 && client.IntN(3) == 0 {
						k := 1 + client.IntN(len(batch))
						if _, err := w.nc.Write(batch[:k]); err != nil {
							return
						}
						batch = batch[k:]
					}
				}
				_, _ = w.nc.Write(append(batch, heartbeat(4, n)...))
			}()
			last := int32(-1)
			for int(last) < stopAt-1 {
				// Absent responses leave gaps; the end is seen by time.
				_ = w.nc.SetReadDeadline(time.Now().Add(time.Second))
				var size [4]byte
				if _, err := io.ReadFull(w.nc, size[:]); err != nil {
					break
				}
				b := make([]byte, binary.BigEndian.Uint32(size[:]))
				if _, err := io.ReadFull(w.nc, b); err != nil {
					t.Fatal(err)
				}
				if corr := corrOf(b); corr <= last {
					t.Fatalf("seed %d: response %d after %d", seed, corr, last)
				} else {
					last = corr
				}
			}
		})
		for i, p := range pendings {
			if p.answered+p.cancelled != 1 {
				t.Fatalf("seed %d: pending %d answered %d times, cancelled %d times", seed, i, p.answered, p.cancelled)
			}
			if p.cancelled == 1 && p.resp.Raw != nil {
				raws-- // never handed over
			}
		}
		if raws != int(released.Load()) || mismatch.Load() > 0 {
			t.Fatalf("seed %d: %d raw responses, %d released; %d request bodies changed under a pending", seed, raws, released.Load(), mismatch.Load())
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	handled := 0
	opts := Options{QueueMax: 10}
	never := func(req *Request) Response {
		handled++
		return Response{Pending: &fakePending{ready: make(chan struct{})}}
	}
	inBubble(t, opts, never, func(w *world) {
		go func() {
			for corr := range int32(50) {
				_, _ = w.nc.Write(heartbeat(4, corr))
			}
		}()
		synctest.Wait()
		if handled != 11 { // one more is handled before it finds the queue full
			t.Fatalf("%d requests handled", handled)
		}
	})
	handled = 0
	inBubble(t, Options{QueueBytes: 1 << 20}, never, func(w *world) {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version, req.Group = 4, strings.Repeat("g", 300<<10)
		go func() {
			for corr := range int32(50) {
				if _, err := w.nc.Write(frameOf(req, corr, "")); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if handled != 4 {
			t.Fatalf("%d requests handled", handled)
		}
	})
}

func TestCloseAfterResponse(t *testing.T) {
	for _, behindPending := range []bool{false, true} {
		handled := 0
		inBubble(t, Options{}, func(req *Request) Response {
			handled++
			if req.CorrelationID == 0 && behindPending {
				return Response{Pending: &fakePending{deadline: time.Now().Add(time.Second), resp: Response{Msg: heartbeatResponse(req, 1)}}}
			}
			r := echo(req)
			r.Close = req.CorrelationID == 1
			return r
		}, func(w *world) {
			go func() { _, _ = w.nc.Write(slices.Concat(heartbeat(4, 0), heartbeat(4, 1), heartbeat(4, 2))) }()
			w.wantOrder(0, 2)
			w.closedAfter(0, time.Second)
		})
		if handled != 2 {
			t.Fatalf("%d requests handled, none should be after Close", handled)
		}
	}
}

// A Pending may decide to close, and an acks=0 request may, too.
func TestCloseWithoutResponse(t *testing.T) {
	inBubble(t, Options{}, func(req *Request) Response { return Response{None: true, Close: true} }, func(w *world) {
		w.send(heartbeat(4, 0))
		w.closedAfter(0, 0)
	})
	inBubble(t, Options{}, func(req *Request) Response {
		return Response{Pending: &fakePending{deadline: time.Now().Add(time.Second), resp: Response{None: true, Close: true}}}
	}, func(w *world) {
		w.send(heartbeat(4, 0))
		w.closedAfter(time.Second, 0)
	})
}

// Field case B001: an ApiVersions of the future is answered in the v0 layout,
// unread, and the connection goes on.
func TestFutureApiVersions(t *testing.T) {
	inBubble(t, Options{}, func(req *Request) Response {
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = req.Version
		return Response{Msg: resp}
	}, func(w *world) {
		w.send([]byte("\x00\x00\x00\x23\x00\x12\x00\x63\x00\x00\x00\x07\x00\x04test\x00\xff\xfe\xfd\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
		if got, want := readFrame(t, w.nc), "\x00\x00\x00\x07\x00\x23\x00\x00\x00\x01\x00\x12\x00\x00\x00\x04"; string(got) != want {
			t.Fatalf("got  % x\nwant % x", got, want)
		}
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = 3
		w.send(frameOf(req, 8, "test"))
		got := readFrame(t, w.nc)
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = 3
		// Header v0: the error code follows the correlation id at once.
		if corrOf(got) != 8 || resp.ReadFrom(got[4:]) != nil {
			t.Fatalf("ApiVersions v3 answered % x", got)
		}
		if strings.Contains(w.log.String(), "WARN") {
			t.Errorf("logged: %s", w.log)
		}
	})
}

// Field case B022: one warning that names everything, then the line is cut;
// what was asked before is answered.
func TestUnsupportedVersion(t *testing.T) {
	pend := func(req *Request) Response {
		return Response{Pending: &fakePending{deadline: time.Now().Add(time.Second), resp: echo(req)}}
	}
	inBubble(t, Options{}, pend, func(w *world) {
		w.send(heartbeat(4, 1))
		bad := slices.Concat([]byte("\x00\x00\x00\x10\x00\x03\x00\x0e\x00\x00\x00\x02\x00\x04sar\n\x00\x00"), heartbeat(4, 3))
		go func() { _, _ = w.nc.Write(bad) }()
		w.wantOrder(1, 2)
		w.closedAfter(time.Second, 0)
		log := w.log.String()
		for _, want := range []string{`client_id="sar\n"`, "addr=pipe", "api=Metadata", "key=3", "version=14", `offered="0 to 13"`} {
			if !strings.Contains(log, want) {
				t.Errorf("log lacks %s: %s", want, log)
			}
		}
		if strings.Count(log, "level=") != 1 {
			t.Errorf("want one line: %s", log)
		}
	})
	inBubble(t, Options{}, pend, func(w *world) {
		w.send([]byte("\x00\x00\x00\x08\x7f\x00\x00\x0e\x00\x00\x00\x02"))
		w.closedAfter(0, 0)
		if log := w.log.String(); !strings.Contains(log, "api=Unknown") || !strings.Contains(log, "offered=none") {
			t.Errorf("log: %s", log)
		}
	})
}

// Field case B007, the prefixes.
func TestBadPrefixesClose(t *testing.T) {
	for _, first := range []string{"\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x06\x40\x00\x01", "\x00\x00\x00\x00", "\x00\x00\x00\x07",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x00\xff\x00"} {
		inBubble(t, Options{}, echo, func(w *world) {
			go func() { _, _ = w.nc.Write([]byte(first)) }()
			w.closedAfter(0, 0)
			if n := strings.Count(w.log.String(), "level=WARN"); n != 1 {
				t.Errorf("%q: %d lines: %s", first, n, w.log)
			}
		})
	}
}

// Field case B007, the trickle: closed by the stall timeout, having cost the
// memory of what arrived.
func TestTrickleStalls(t *testing.T) {
	inBubble(t, Options{StallTimeout: 8 * time.Second}, echo, func(w *world) {
		go func() {
			if _, err := w.nc.Write(append([]byte{0x06, 0x40, 0, 0}, heartbeat(4, 1)[4:]...)); err != nil {
				return
			}
			for {
				if _, err := w.nc.Write([]byte{0}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		time.Sleep(5 * time.Second)
		if used, _ := w.srv.FrameBytes(); used > 128<<10 {
			t.Errorf("%d bytes held for a few that arrived", used)
		}
		w.closedAfter(8*time.Second, 2*time.Second)
		if !strings.Contains(w.log.String(), "did not go on") {
			t.Errorf("log: %s", w.log)
		}
	})
	// A small frame that stops in the middle stalls too; one that is slow but
	// gets on does not.
	inBubble(t, Options{StallTimeout: 8 * time.Second}, echo, func(w *world) {
		w.send(heartbeat(4, 1)[:9])
		w.closedAfter(8*time.Second, 2*time.Second)
	})
	inBubble(t, Options{StallTimeout: 8 * time.Second}, echo, func(w *world) {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version, req.Group = 4, strings.Repeat("g", 500<<10)
		b := frameOf(req, 1, "")
		go func() {
			for len(b) > 0 {
				time.Sleep(3 * time.Second)
				n := min(len(b), 10<<10)
				_, _ = w.nc.Write(b[:n])
				b = b[n:]
			}
		}()
		w.wantOrder(1, 2)
	})
}

// Field case B176.
func TestIdle(t *testing.T) {
	opts := Options{IdleTimeout: 5 * time.Second}
	inBubble(t, opts, echo, func(w *world) { // silent
		w.closedAfter(5*time.Second, time.Second)
		if w.log.Len() != 0 {
			t.Errorf("logged: %s", w.log)
		}
	})
	inBubble(t, opts, func(req *Request) Response { // a long poll, then silent
		return Response{Pending: &fakePending{deadline: time.Now().Add(20 * time.Second), resp: echo(req)}}
	}, func(w *world) {
		w.send(heartbeat(4, 0))
		w.wantOrder(0, 1)
		if d := time.Since(w.start); d != 20*time.Second {
			t.Fatalf("answered after %v", d)
		}
		w.closedAfter(25*time.Second, time.Second)
	})
	inBubble(t, opts, echo, func(w *world) { // a heartbeat every three seconds
		for corr := range int32(10) {
			w.send(heartbeat(4, corr))
			w.wantOrder(corr, corr+1)
			time.Sleep(3 * time.Second)
		}
	})
	inBubble(t, Options{IdleTimeout: -1}, echo, func(w *world) {
		time.Sleep(24 * time.Hour)
		w.send(heartbeat(4, 0))
		w.wantOrder(0, 1)
	})
}

// A client that asks and does not read is closed, and what was meant for it is
// given back.
func TestUnreadResponse(t *testing.T) {
	for _, pending := range []bool{false, true} {
		released := 0
		inBubble(t, Options{WriteTimeout: 10 * time.Second}, func(req *Request) Response {
			r := Response{Raw: &Raw{Parts: []Part{{Bytes: make([]byte, 1<<20)}}, Release: func() { released++ }}}
			if pending {
				return Response{Pending: &fakePending{deadline: time.Now().Add(time.Second), resp: r}}
			}
			return r
		}, func(w *world) {
			go func() {
				for corr := range int32(3) {
					_, _ = w.nc.Write(heartbeat(4, corr))
				}
			}()
			time.Sleep(30 * time.Second)
			if n := w.srv.Conns(); n != 0 {
				t.Errorf("%d connections left", n)
			}
			if !strings.Contains(w.log.String(), "does not read") {
				t.Errorf("log: %s", w.log)
			}
		})
		if want := 1; released != want {
			t.Errorf("pending %v: %d responses released, want the %d handed over", pending, released, want)
		}
	}
	// Slow, but reading: stays.
	inBubble(t, Options{WriteTimeout: 10 * time.Second}, func(req *Request) Response {
		return Response{Raw: &Raw{Parts: []Part{{Bytes: make([]byte, 1<<20)}}}}
	}, func(w *world) {
		w.send(heartbeat(4, 0))
		for got := 0; got < 1<<20+9; {
			n, err := w.nc.Read(make([]byte, 256<<10))
			if err != nil {
				t.Fatal(err)
			}
			got += n
			time.Sleep(7 * time.Second)
		}
	})
}

// Half frames that hold the whole budget do not stop the others: one frame at a
// time may overdraw it, and those that come slowly are closed while others wait.
func TestBudgetStandstill(t *testing.T) {
	opts := Options{InflightBytes: 2 << 20, StallTimeout: time.Minute}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group = 4, strings.Repeat("g", 1000<<10)
	b := frameOf(req, 1, "")
	inBubble(t, opts, echo, func(w *world) {
		half := func() {
			nc := w.connect()
			w.Cleanup(func() { _ = nc.Close() })
			go func() { _, _ = nc.Write(b[:700<<10]) }()
			synctest.Wait()
		}
		half() // 1 of the 1.5 MiB that are for frames of this size
		w.send(b)
		w.wantOrder(1, 2)
		if d := time.Since(w.start); d != 0 {
			t.Errorf("one could overdraw and was answered after %v", d)
		}
		half() // overdraws
		if used, most := w.srv.FrameBytes(); used > most {
			t.Fatalf("%d of %d bytes used", used, most)
		}
		time.Sleep(20 * time.Second)
		if n := w.srv.Conns(); n != 3 {
			t.Fatalf("%d connections: somebody was closed though nobody waits", n)
		}
		begun := time.Now()
		go func() { _, _ = w.nc.Write(b) }()
		w.wantOrder(1, 2)
		if d := time.Since(begun); d > pressedTimeout+2*time.Second {
			t.Errorf("answered after %v", d)
		}
		synctest.Wait()
		if n := w.srv.Conns(); n != 1 || strings.Count(w.log.String(), "came slowly") != 2 {
			t.Errorf("%d connections left; log: %s", n, w.log)
		}
	})
	// All are honest and together want more than there is: all get through.
	inBubble(t, opts, echo, func(w *world) {
		var answered atomic.Int32
		for range 8 {
			nc := w.connect()
			defer nc.Close()
			go func() {
				if _, err := nc.Write(b); err == nil {
					if _, err = io.ReadFull(nc, make([]byte, 13)); err == nil {
						answered.Add(1)
					}
				}
			}()
		}
		time.Sleep(5 * time.Minute)
		if answered.Load() != 8 {
			t.Errorf("%d of 8 requests answered", answered.Load())
		}
		w.send(b)
		w.wantOrder(1, 2)
	})
}

func TestServerClose(t *testing.T) {
	var pendings []*fakePending
	inBubble(t, Options{CloseGrace: 5 * time.Second}, func(req *Request) Response {
		p := &fakePending{deadline: time.Now().Add(time.Duration(req.CorrelationID) * time.Second), resp: echo(req)}
		pendings = append(pendings, p)
		return Response{Pending: p}
	}, func(w *world) {
		idle, slow := w.connect(), w.connect()
		defer idle.Close()
		defer slow.Close()
		w.send(heartbeat(4, 2))
		synctest.Wait()
		_, _ = slow.Write(heartbeat(4, 60))
		synctest.Wait()
		closed := make(chan struct{})
		go func() { _ = w.srv.Close(); close(closed) }()
		if _, err := io.Copy(io.Discard, idle); err != nil || time.Since(w.start) != 0 {
			t.Fatalf("idle connection: %v after %v", err, time.Since(w.start))
		}
		w.wantOrder(2, 3)
		w.closedAfter(2*time.Second, 0)
		if _, err := io.Copy(io.Discard, slow); err != nil || time.Since(w.start) != 5*time.Second {
			t.Fatalf("slow connection: %v after %v", err, time.Since(w.start))
		}
		<-closed
		late := w.connect()
		if _, err := late.Read(make([]byte, 1)); err == nil {
			t.Fatal("a closed server talks")
		}
	})
	if pendings[0].answered != 1 || pendings[1].cancelled != 1 || pendings[1].answered != 0 {
		t.Fatalf("%+v %+v", pendings[0], pendings[1])
	}
}

func TestConnKnowsItsClient(t *testing.T) {
	type key struct{}
	inBubble(t, Options{}, func(req *Request) Response {
		c := req.Conn
		if c.Get(key{}) == nil {
			c.Set(key{}, "session")
			c.SetSoftware("librdkafka", "2.11")
		}
		if c.Get(key{}) != "session" || c.Listener() != "PLAINTEXT" || c.ID() == 0 || c.RemoteHost() != "pipe" || c.RemoteAddr() == nil || c.LocalAddr() == nil {
			t.Errorf("%v", c)
		}
		return echo(req)
	}, func(w *world) {
		w.send(heartbeat(4, 0))
		w.wantOrder(0, 1)
		n := 0
		w.srv.EachSoftware(func(name, version string, count int) bool {
			n += count
			return name == "librdkafka" && version == "2.11"
		})
		if n != 1 {
			t.Errorf("%d connections counted", n)
		}
	})
}
