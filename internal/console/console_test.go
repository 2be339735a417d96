package console

// Each page asked for over httptest.

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

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
