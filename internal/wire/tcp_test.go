package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/metrics"
)

// These tests need real sockets: sendfile, limits per address, resets, many
// half frames at once. None of them sleeps for a result.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(tb testing.TB, s *Server) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, "PLAINTEXT") }()
	tb.Cleanup(func() {
		_ = s.Close()
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func dial(tb testing.TB, addr string) net.Conn {
	tb.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = nc.Close() })
	return nc
}

// tempFile makes a file of n bytes and opens it as the log does.
func tempFile(tb testing.TB, n int) disk.File {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "segment")
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		tb.Fatal(err)
	}
	f, err := disk.OS.OpenRead(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

// eventually waits for what happens in the kernel and in other goroutines.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("not within 10 seconds: %s", what)
		}
	}
}

// Regions of all sizes arrive unchanged, whatever way they are sent, among
// other responses, to slow and to quick readers.
func TestRegions(t *testing.T) {
	const fileSize = 3 << 20
	f := tempFile(t, fileSize)
	content := make([]byte, fileSize)
	if _, err := f.ReadAt(content, 0); err != nil {
		t.Fatal(err)
	}
	for _, file := range []disk.File{f, noFd{f}} {
		for _, sndbuf := range []int{-1, 100 << 10} {
			rng := rand.New(rand.NewPCG(1, uint64(sndbuf)))
			var want [][]byte
			var responses []Response
			released, raws := 0, 0
			for range 40 {
				raw := &Raw{Release: func() { released++ }}
				raws++
				var body []byte
				for range rng.IntN(7) {
					head := make([]byte, rng.IntN(100))
					if rng.IntN(10) == 0 {
						head = make([]byte, rng.IntN(300<<10))
					}
					size := []int64{0, 1, 100, copyMax - 1, copyMax, copyMax + 1, 100 << 10, 1 << 20}[rng.IntN(8)]
					off := rng.Int64N(fileSize - size)
					raw.Parts = append(raw.Parts, Part{Bytes: head}, Part{Region: disk.Region{File: file, Off: off, Len: size}})
					body = append(append(body, head...), content[off:off+size]...)
				}
				responses = append(responses, Response{Raw: raw})
				want = append(want, body)
			}
			next := 0
			s := NewServer(handlerFunc(func(req *Request) Response {
				r := responses[next]
				if next++; next%3 == 0 {
					return Response{Pending: &fakePending{deadline: time.Now().Add(time.Millisecond), resp: r}}
				}
				return r
			}), testTable(), Options{SendBuf: sndbuf})
			nc := dial(t, listen(t, s))
			go func() {
				for i := range responses {
					_, _ = nc.Write(heartbeat(4, int32(i)))
				}
			}()
			for i, body := range want {
				got := readFrame(t, nc)
				if corrOf(got) != int32(i) || got[4] != 0 || !bytes.Equal(got[5:], body) {
					t.Fatalf("response %d: %d bytes, want %d; equal: %v", i, len(got)-5, len(body), bytes.Equal(got[5:], body))
				}
			}
			_ = nc.Close()
			_ = s.Close()
			if released != raws {
				t.Fatalf("%d of %d responses released", released, raws)
			}
		}
	}
}

// noFd is a file without a descriptor.
type noFd struct{ disk.File }

func (noFd) Fd() (uintptr, bool) { return 0, false }

// A file that is shorter than its region cannot be answered from: the
// connection ends, and with a word why.
func TestRegionTooLong(t *testing.T) {
	f := tempFile(t, 100<<10)
	for _, region := range []disk.Region{{File: f, Len: 200 << 10}, {File: noFd{f}, Len: 200 << 10}, {File: f, Off: 90 << 10, Len: 20 << 10}} {
		var log syncBuffer
		var released atomic.Int32
		s := NewServer(handlerFunc(func(req *Request) Response {
			return Response{Raw: &Raw{Parts: []Part{{Region: region}}, Release: func() { released.Add(1) }}}
		}), testTable(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		nc := dial(t, listen(t, s))
		if _, err := nc.Write(heartbeat(4, 0)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, nc)
		eventually(t, "the end of the connection", func() bool { return s.Conns() == 0 })
		if released.Load() != 1 || !strings.Contains(log.String(), "EOF") {
			t.Errorf("released %d times; log: %s", released.Load(), log.String())
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Field case B007: 200 strangers announce 90 MiB each and send little. That
// costs little, ends by the stall timeout, and a client that talks sense does
// not notice.
func TestHalfFramesFromStrangers(t *testing.T) {
	before := runtime.NumGoroutine()
	s := NewServer(handlerFunc(echo), testTable(), Options{StallTimeout: 500 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	addr := listen(t, s)
	var ms0, ms1 runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&ms0)
	var strangers []net.Conn
	prefix := binary.BigEndian.AppendUint32(nil, 90<<20)
	prefix = append(prefix, make([]byte, 1000)...)
	for range 200 {
		nc := dial(t, addr)
		if _, err := nc.Write(prefix); err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, nc)
	}
	eventually(t, "everybody in", func() bool { return s.Conns() == 200 })
	runtime.ReadMemStats(&ms1)
	if grown := int64(ms1.TotalAlloc - ms0.TotalAlloc); grown > 40<<20 {
		t.Errorf("%d MiB allocated for 200 KB that arrived", grown>>20)
	}
	nc := dial(t, addr)
	for corr := range int32(100) {
		if _, err := nc.Write(heartbeat(4, corr)); err != nil {
			t.Fatal(err)
		}
		if got := corrOf(readFrame(t, nc)); got != corr {
			t.Fatalf("response %d to %d", got, corr)
		}
	}
	for _, nc := range strangers {
		if _, err := io.Copy(io.Discard, nc); err != nil && !quiet(err) {
			t.Fatal(err)
		}
	}
	_ = nc.Close()
	eventually(t, "everybody out", func() bool { return s.Conns() == 0 })
	if used, _ := s.FrameBytes(); used != 0 {
		t.Errorf("%d bytes held for nobody", used)
	}
	_ = s.Close()
	eventually(t, "goroutines gone", func() bool { return runtime.NumGoroutine() <= before+1 })
}

// ipConn is a pipe that came from an address.
type ipConn struct {
	net.Conn
	addr *net.TCPAddr
}

func (c ipConn) RemoteAddr() net.Addr { return c.addr }

// Field case B174: counts per address come back to zero, however connections
// end, and the refused are told to the log.
func TestLimits(t *testing.T) {
	for _, limits := range []Limits{
		{MaxConns: NoLimit, Rate: NoLimit, MaxPerIP: 20},
		{MaxConns: NoLimit, Rate: NoLimit, MaxPerIP: 1, PerIP: map[netip.Addr]int{netip.MustParseAddr("10.0.0.1"): 20}},
		{MaxConns: 20, Rate: NoLimit, MaxPerIP: NoLimit},
		{MaxConns: NoLimit, Rate: NoLimit, MaxPerIP: NoLimit, Listeners: map[string]ListenerLimits{"PLAINTEXT": {MaxConns: 20, Rate: NoLimit}}},
	} {
		opts := Options{Limits: &limits}
		reg := prometheus.NewRegistry()
		opts.Metrics = metrics.New(reg)
		opts.IdleTimeout = 10 * time.Second
		inBubble(t, opts, echo, func(w *world) {
			_ = w.nc.Close()
			synctest.Wait()
			connect := func() net.Conn {
				client, server := net.Pipe()
				w.srv.ServeConn(ipConn{server, &net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 1}}, "PLAINTEXT")
				return client
			}
			for round := range 50 {
				var conns []net.Conn
				for range 20 {
					conns = append(conns, connect())
				}
				for range 5 {
					if n, err := connect().Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Fatalf("round %d: a refused connection read %d bytes, %v", round, n, err)
					}
				}
				for _, nc := range conns[:10] { // the others go by idleness
					_ = nc.Close()
				}
				time.Sleep(12 * time.Second)
				w.srv.mu.Lock()
				left, perIP := len(w.srv.conns), len(w.srv.perIP)
				w.srv.mu.Unlock()
				if left != 0 || perIP != 0 {
					t.Fatalf("round %d: left %d connections from %d addresses", round, left, perIP)
				}
			}
			if n := strings.Count(w.log.String(), "connection refused"); n != 250 {
				t.Errorf("%d log lines, want 5 in each of 50 rounds", n)
			}
		})
		fams, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]float64)
		for _, f := range fams {
			for _, m := range f.Metric {
				got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		for name, want := range map[string]float64{
			"weir_connections_refused_total": 250, "kafka_server_socket_server_metrics_connection_count": 0,
			"kafka_server_socket_server_metrics_connection_creation_total": 1001,
			"kafka_server_socket_server_metrics_connection_close_total":    1001,
			"weir_connections_killed_total":                                500,
		} {
			if got[name] != want {
				t.Errorf("%s = %v, want %v", name, got[name], want)
			}
		}
	}
}

// The same over sockets, ended by resets.
func TestLimitsReset(t *testing.T) {
	s := NewServer(handlerFunc(echo), testTable(), Options{Limits: &Limits{MaxConns: NoLimit, Rate: NoLimit, MaxPerIP: 20}, Log: slog.New(slog.DiscardHandler)})
	addr := listen(t, s)
	for range 5 {
		var conns []net.Conn
		for range 20 {
			conns = append(conns, dial(t, addr))
		}
		eventually(t, "20 connections", func() bool { return s.Conns() == 20 })
		for range 5 {
			if n, err := io.Copy(io.Discard, dial(t, addr)); n != 0 || err != nil && !quiet(err) {
				t.Fatalf("a refused connection read %d bytes, %v", n, err)
			}
		}
		for _, nc := range conns {
			_ = nc.(*net.TCPConn).SetLinger(0)
			_ = nc.Close()
		}
		eventually(t, "the round's end", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.conns) == 0 && len(s.perIP) == 0
		})
	}
}

// fullListener has no descriptors for a while.
type fullListener struct {
	net.Listener
	fails    int
	attempts atomic.Int64
	closed   chan struct{}
}

func (l *fullListener) Accept() (net.Conn, error) {
	if int(l.attempts.Add(1)) <= l.fails {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errNoDescriptors)}
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *fullListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *fullListener) Addr() net.Addr { return &net.TCPAddr{} }

// Field case B178: without descriptors the accept loop neither spins nor fills
// the log, and goes on when there are some again.
func TestAcceptBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		s := NewServer(handlerFunc(echo), testTable(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		l := &fullListener{fails: 300, closed: make(chan struct{})}
		served := make(chan error, 1)
		start := time.Now()
		go func() { served <- s.Serve(l, "PLAINTEXT") }()
		time.Sleep(30 * time.Second)
		if l.attempts.Load() > 50 {
			t.Errorf("%d attempts in 30 seconds", l.attempts.Load())
		}
		time.Sleep(300 * time.Second)
		if l.attempts.Load() != 301 {
			t.Errorf("%d attempts after %v, want all failures passed", l.attempts.Load(), time.Since(start))
		}
		_ = s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if n := strings.Count(log.String(), "cannot accept"); n > 350 || n == 0 {
			t.Errorf("%d log lines", n)
		}
	})
	s := NewServer(handlerFunc(echo), testTable(), Options{Log: slog.New(slog.DiscardHandler)})
	l := &brokenListener{}
	if err := s.Serve(l, "PLAINTEXT"); err == nil || !strings.Contains(err.Error(), "PLAINTEXT") {
		t.Errorf("a broken listener: %v", err)
	}
	_ = s.Close()
	if err := s.Serve(l, "PLAINTEXT"); err != nil {
		t.Errorf("Serve of a closed server: %v", err)
	}
}

type brokenListener struct{}

func (*brokenListener) Accept() (net.Conn, error) { return nil, errors.New("broken") }
func (*brokenListener) Close() error              { return nil }
func (*brokenListener) Addr() net.Addr            { return &net.TCPAddr{} }

// The last response arrives although the client has sent more than is read.
func TestLastResponseArrives(t *testing.T) {
	s := NewServer(handlerFunc(func(req *Request) Response {
		r := echo(req)
		r.Close = true
		return r
	}), testTable(), Options{})
	addr := listen(t, s)
	for range 20 {
		nc := dial(t, addr)
		b := heartbeat(4, 5)
		for range 2000 {
			b = append(b, heartbeat(4, 6)...)
		}
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
		if got := corrOf(readFrame(t, nc)); got != 5 {
			t.Fatalf("correlation id %d", got)
		}
		_ = nc.Close()
	}
}
