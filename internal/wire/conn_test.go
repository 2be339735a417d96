package wire

import (
	"encoding/binary"
	"io"
	"net"
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
}

func (p *fakePending) Ready() <-chan struct{} { return p.ready }
func (p *fakePending) Deadline() time.Time    { return p.deadline }
func (p *fakePending) Cancel()                { p.cancelled++ }
func (p *fakePending) Response(time.Time) Response {
	p.answered++
	return p.resp
}

func pipe(s *Server) net.Conn {
	client, server := net.Pipe()
	s.ServeConn(server, "PLAINTEXT")
	return client
}

func TestOrderBehindPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var pending *fakePending
		h := handlerFunc(func(req *Request) Response {
			if req.CorrelationID == 1 {
				pending = &fakePending{ready: make(chan struct{}), deadline: time.Now().Add(500 * time.Millisecond),
					resp: Response{Msg: heartbeatResponse(req, 1)}}
				return Response{Pending: pending}
			}
			return Response{Msg: heartbeatResponse(req, req.CorrelationID)}
		})
		s := NewServer(h, testTable(), Options{})
		nc := pipe(s)
		go func() {
			for corr := int32(0); corr < 50; corr++ {
				_, _ = nc.Write(heartbeat(4, corr))
			}
		}()
		for corr := int32(0); corr < 50; corr++ {
			if got := corrOf(readFrame(t, nc)); got != corr {
				t.Fatalf("response %d has correlation id %d", corr, got)
			}
			if corr == 0 && time.Since(start) != 0 {
				t.Fatalf("the response before the pending one waited %v", time.Since(start))
			}
		}
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Fatalf("answered after %v, want the deadline", d)
		}
		if pending.answered != 1 || pending.cancelled != 0 {
			t.Fatalf("pending answered %d times, cancelled %d times", pending.answered, pending.cancelled)
		}
		_ = nc.Close()
		synctest.Wait()
		if n := s.Conns(); n != 0 {
			t.Fatalf("%d connections left", n)
		}
		_ = s.Close()
	})
}
