package console

// Each page asked for over httptest.

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestPages(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total"})
	reg.MustRegister(c)
	c.Inc()
	var ill error
	h := Handler(Options{Gatherer: reg, Ready: func() error { return ill }})
	get := func(path, peer string) (int, string) {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const here, there = "127.0.0.1:5", "192.0.2.1:5"
	for _, tc := range []struct {
		path, peer string
		ill        error
		code       int
		has        string
	}{
		{"/metrics", there, nil, 200, "seen_total 1"},
		{"/health/live", there, errors.New("disk failed"), 200, "ok"},
		{"/health/ready", there, nil, 200, "ok"},
		{"/health/ready", there, errors.New("disk failed"), 503, "disk failed"},
		{"/", there, nil, 200, "/metrics"},
		{"/nothing", there, nil, 404, ""},
		{"/debug/pprof/", here, nil, 200, "goroutine"},
		{"/debug/pprof/", "[::1]:5", nil, 200, "goroutine"},
		{"/debug/pprof/", there, nil, 403, "this machine"},
		{"/debug/pprof/profile", there, nil, 403, "this machine"},
	} {
		ill = tc.ill
		if code, body := get(tc.path, tc.peer); code != tc.code || !strings.Contains(body, tc.has) {
			t.Errorf("GET %s from %s: %d %q, want %d with %q", tc.path, tc.peer, code, body, tc.code, tc.has)
		}
	}
}

// A peer that asks for metrics and does not read them is cut off.
func TestUnreadPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "seen_total"}, []string{"l"})
		reg.MustRegister(c)
		for i := range 1000 {
			c.WithLabelValues(strings.Repeat("x", i)).Inc()
		}
		client, server := net.Pipe()
		srv := &http.Server{Handler: Handler(Options{Gatherer: reg, Ready: func() error { return nil }})}
		l := &oneConn{conns: make(chan net.Conn, 1)}
		l.conns <- server
		go func() { _ = srv.Serve(l) }()
		start := time.Now()
		if _, err := io.WriteString(client, "GET /metrics HTTP/1.1\r\nHost: weir\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pageTimeout + time.Second)
		_, _ = io.Copy(io.Discard, client) // what is left ends at once
		if d := time.Since(start); d != pageTimeout+time.Second {
			t.Errorf("cut off after %v", d)
		}
		_ = srv.Close()
	})
}

// oneConn is a listener with one connection to give.
type oneConn struct{ conns chan net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	nc, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return nc, nil
}

func (l *oneConn) Close() error   { close(l.conns); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
