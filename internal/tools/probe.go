package tools

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// A peer that is no broker must be named as what it is. Kafka's own clients
// read its first bytes as a length and report a giant message. So before the
// client starts, one ApiVersions request goes to each bootstrap address by
// hand: the only request every broker since 0.10 answers to anybody.

const (
	sniffAfter = 1500 * time.Millisecond // of silence, before asking in HTTP and TLS
	sniffWait  = time.Second
	replyMax   = 1 << 20 // an ApiVersions reply has a few hundred bytes
)

// probe asks all addresses at once and returns those that answered by the time
// the first did. When none did it returns a sentence for the user.
func probe(ctx context.Context, addrs []string, conf *tls.Config, timeout time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type result struct {
		i   int
		err error
	}
	results := make(chan result, len(addrs))
	for i, a := range addrs {
		go func() { results <- result{i, probeOne(ctx, a, conf, timeout)} }()
	}
	errs := make([]error, len(addrs))
	var good []string
	for n := 0; n < len(addrs); n++ {
		r := <-results
		if errs[r.i] = r.err; r.err == nil && len(good) == 0 {
			good = append(good, addrs[r.i])
			cancel() // the others come back at once; nobody is left behind
		}
	}
	if len(good) > 0 {
		return good, nil
	}
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) {
		return nil, err
	}
	if len(errs) == 1 {
		return nil, &Failure{ExitFailed, errs[0]}
	}
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return nil, failf("none of the %d bootstrap addresses is a broker: %s", len(addrs), strings.Join(all, "; "))
}

func probeOne(ctx context.Context, addr string, conf *tls.Config, timeout time.Duration) error {
	d := net.Dialer{}
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return dialError(addr, err, timeout)
	}
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := raw
	if conf != nil {
		tc := tls.Client(c, named(conf, addr))
		if err := tc.HandshakeContext(ctx); err != nil {
			return tlsError(ctx, addr, err, timeout)
		}
		c = tc
	}
	hello := []byte("\x00\x00\x00\x0e\x00\x12\x00\x00\x57\x45\x49\x52\x00\x04weir") // ApiVersions v0, correlation id "WEIR"
	if _, err := c.Write(hello); err != nil {
		return closedError(ctx, addr, conf)
	}
	sniffed := make(chan string, 1)
	if conf == nil {
		sctx, cancel := context.WithCancel(ctx)
		t := time.AfterFunc(min(sniffAfter, timeout/2), func() {
			what := sniff(sctx, addr)
			if what != "" {
				raw.SetReadDeadline(time.Unix(1, 0))
			}
			sniffed <- what
			close(sniffed)
		})
		defer func() {
			if cancel(); !t.Stop() {
				<-sniffed
			}
		}()
	}
	var head [8]byte
	n, err := io.ReadFull(c, head[:])
	if n >= 4 {
		if what := speaks(head[:n]); what != "" {
			return notABroker(addr, what)
		}
	}
	if err != nil {
		if isTimeout(err) && conf == nil && ctx.Err() == nil {
			if what := <-sniffed; what != "" { // only the sniffer sets a deadline while ctx lives
				return notABroker(addr, what)
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s accepted the connection and did not answer within %v: it may not be a broker, or be stuck; check the address or give a longer --timeout", addr, timeout)
		}
		return closedError(ctx, addr, conf)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > replyMax || string(head[4:]) != "WEIR" {
		return fmt.Errorf("%s does not speak the Kafka protocol (its first bytes are % x): check the port", addr, head)
	}
	_, err = io.CopyN(io.Discard, c, int64(size)-4)
	if err != nil {
		return closedError(ctx, addr, conf)
	}
	return nil
}

// speaks names the protocol of a peer by the first bytes it sent.
func speaks(b []byte) string {
	switch {
	case string(b[:4]) == "HTTP":
		return "HTTP"
	case (b[0] == 0x15 || b[0] == 0x16) && b[1] == 3 && b[2] <= 4:
		return "TLS"
	case string(b[:4]) == "SSH-":
		return "SSH"
	}
	return ""
}

func notABroker(addr, what string) error {
	switch what {
	case "TLS":
		return fmt.Errorf("the peer at %s expects TLS: add -X security.protocol=SSL (or SASL_SSL)", addr)
	case "HTTP":
		return fmt.Errorf("the peer at %s speaks HTTP, it is not a Kafka listener: give the port of the broker (9092 by default)", addr)
	}
	return fmt.Errorf("the peer at %s speaks %s, it is not a Kafka listener: give the port of the broker (9092 by default)", addr, what)
}

// sniff asks a peer that says nothing, or hangs up, in two other languages on
// connections of their own. Each costs at most sniffWait.
func sniff(ctx context.Context, addr string) string {
	ask := func(talk func(c net.Conn)) string {
		ctx, cancel := context.WithTimeout(ctx, sniffWait)
		defer cancel()
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return ""
		}
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		r := &firstBytes{Conn: c}
		talk(r)
		if len(r.b) < 4 {
			return ""
		}
		return speaks(r.b)
	}
	if what := ask(func(c net.Conn) {
		tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake()
	}); what != "" {
		return what
	}
	host, _, _ := net.SplitHostPort(addr)
	return ask(func(c net.Conn) {
		io.WriteString(c, "GET / HTTP/1.0\r\nHost: "+host+"\r\n\r\n")
		io.ReadFull(c, make([]byte, 4))
	})
}

// firstBytes keeps the first bytes that were read through it.
type firstBytes struct {
	net.Conn
	b []byte
}

func (f *firstBytes) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if len(f.b) < 8 {
		f.b = append(f.b, p[:min(n, 8)]...)
	}
	return n, err
}

func named(conf *tls.Config, addr string) *tls.Config {
	c := conf.Clone()
	if c.ServerName == "" {
		host, _, _ := net.SplitHostPort(addr)
		c.ServerName, _, _ = strings.Cut(host, "%")
	}
	return c
}

func closedError(ctx context.Context, addr string, conf *tls.Config) error {
	if conf == nil {
		if what := sniff(ctx, addr); what != "" {
			return notABroker(addr, what)
		}
	}
	return fmt.Errorf("the peer at %s closed the connection before it replied: it may not be a broker, be just starting or refuse this address; check the port and the broker's log", addr)
}

// dialError says in one sentence why there is no connection.
func dialError(addr string, err error, timeout time.Duration) error {
	return fmt.Errorf("cannot connect to %s (%s): check the address, and that the broker runs", addr, dialReason(err, timeout))
}

func dialReason(err error, timeout time.Duration) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return "no such host"
		}
		return "name lookup failed: " + dns.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route to it"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Sprintf("no answer within %v", timeout)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

func tlsError(ctx context.Context, addr string, err error, timeout time.Duration) error {
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &notTLS):
		return fmt.Errorf("the peer at %s does not speak TLS: use -X security.protocol=PLAINTEXT (or SASL_PLAINTEXT)", addr)
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not complete the TLS handshake within %v: it may not expect TLS; try -X security.protocol=PLAINTEXT", addr, timeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the peer at %s closed the connection during the TLS handshake: it may not expect TLS; try -X security.protocol=PLAINTEXT", addr)
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return fmt.Errorf("the certificate of %s is not trusted (%v): give its authority with -X ssl.ca.location=FILE", addr, cert.Err)
	}
	return fmt.Errorf("the TLS handshake with %s failed: %v; check the certificates on both sides", addr, err)
}
