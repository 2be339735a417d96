package console

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options are what the pages show.
type Options struct {
	Gatherer prometheus.Gatherer
	Ready    func() error // why the broker should get no traffic; nil: it may
}

// Handler serves /metrics, /health/live, /health/ready, /debug/pprof (to loopback
// peers alone) and an index.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	// The text format alone and without compression: scrapes are rare, and a
	// compressor per scrape costs more memory than all the rest of an idle broker.
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("/debug/pprof/", loopback(http.HandlerFunc(pprof.Index)))
	mux.Handle("/debug/pprof/cmdline", loopback(http.HandlerFunc(pprof.Cmdline)))
	mux.Handle("/debug/pprof/profile", loopback(http.HandlerFunc(pprof.Profile)))
	mux.Handle("/debug/pprof/symbol", loopback(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("/debug/pprof/trace", loopback(http.HandlerFunc(pprof.Trace)))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>weir</title><h1>weir</h1><ul>
<li><a href="/metrics">metrics</a><li><a href="/health/live">live</a><li><a href="/health/ready">ready</a><li><a href="/debug/pprof/">profiles</a> (from this machine)</ul>
`)
	})
	return hurried(mux)
}

// pageTimeout is how long a page may take to send. Profiles, which run as long
// as they are asked to, come from this machine and are exempt.
const pageTimeout = 30 * time.Second

// hurried cuts off peers that ask and do not read: a few of them would take up
// all the scrapes that run at one time.
func hurried(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/debug/") {
			// Not supported by a test's recorder; a real connection has it.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pageTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// loopback lets through peers on this machine: a profile tells what is in memory.
func loopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			http.Error(w, "profiles are served to this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
