package tools

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Shows: a peer that is no broker is named as what it is, within the timeout,
// in one sentence, and without taking a length from it. How: small servers on
// loopback that speak HTTP, TLS, garbage, nothing, or hang up.

func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// B180: what a port that is no broker's says is told, and never believed as a size.
func TestProbe(t *testing.T) {
	const timeout = time.Second
	f := func(name, addr string, conf *tls.Config, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := probe(context.Background(), []string{addr}, conf, timeout)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
			if err != nil && (ExitCode(err) != ExitFailed || strings.Contains(err.Error(), "\n")) {
				t.Errorf("exit code %d for %q", ExitCode(err), err)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("allocated %d bytes", n)
			}
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	addr := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	insecure := &tls.Config{InsecureSkipVerify: true}

	// This one waits for a line end, which the probe never sends: the sniffer
	// has to find out.
	f("http", addr(web), nil, "speaks HTTP")
	f("http at once", listen(t, func(c net.Conn) {
		io.CopyN(io.Discard, c, 4)
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	}), nil, "speaks HTTP")
	f("tls", addr(secure), nil, "expects TLS: add -X security.protocol=SSL")
	f("tls with tls", addr(secure), insecure, "")
	f("plain with tls", addr(web), insecure, "does not speak TLS")
	f("untrusted", addr(secure), &tls.Config{}, "is not trusted")
	f("closes", listen(t, func(c net.Conn) {}), nil, "closed the connection before it replied")
	f("closes with tls", listen(t, func(c net.Conn) {}), insecure, "during the TLS handshake")
	f("silent", listen(t, func(c net.Conn) { io.Copy(io.Discard, c) }), nil, "did not answer within 1s")
	f("giant", listen(t, func(c net.Conn) {
		io.CopyN(io.Discard, c, 4)
		io.WriteString(c, "\x7f\xff\xff\xffWEIR")
		io.Copy(io.Discard, c)
	}), nil, "does not speak the Kafka protocol")
	f("half", listen(t, func(c net.Conn) {
		io.CopyN(io.Discard, c, 4)
		io.WriteString(c, "\x00\x00\x00\x20WEIRxx")
	}), nil, "closed the connection")

	l, _ := net.Listen("tcp", "127.0.0.1:0")
	refused := l.Addr().String()
	l.Close()
	f("refused", refused, nil, "cannot connect to "+refused+" (connection refused)")
	f("no name", "nowhere.invalid:9092", nil, "cannot connect to nowhere.invalid:9092")

	_, err := probe(context.Background(), []string{refused, addr(web)}, nil, timeout)
	if err == nil || !strings.Contains(err.Error(), "none of the 2 bootstrap addresses is a broker") || !strings.Contains(err.Error(), "HTTP") {
		t.Errorf("two bad ones: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	silent := listen(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	if _, err := probe(ctx, []string{silent}, nil, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
