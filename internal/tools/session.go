package tools

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// connFlags are the flags of every command that talks to a cluster.
type connFlags struct {
	servers []string
	props   []string
	file    string
	timeout time.Duration
	debug   bool
}

func (f *connFlags) flags(c *cobra.Command) {
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&f.servers, "bootstrap-server", "b", []string{"127.0.0.1:9092"}, "brokers to start from: host[:port], [IPv6]:port, comma-separated or repeated")
	fs.StringArrayVarP(&f.props, "command-property", "X", nil, "client property key=value, by librdkafka's or the Java client's name")
	fs.StringVarP(&f.file, "command-config", "F", "", "properties file with client properties; -X wins over it")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "longest wait for the cluster; 0: no bound")
	fs.BoolVar(&f.debug, "debug", false, "log what the client does, on stderr")
}

// session is a client that has reached the cluster, and what it takes to say
// in one sentence why something failed.
type session struct {
	cl      *kgo.Client
	adm     *kadm.Client
	ctx     context.Context // ends with the command, or with the cause in watch
	cancel  context.CancelCauseFunc
	w       *watch
	seeds   []string
	timeout time.Duration // 0: none
	release []func()
	opts    []kgo.Opt // of cl, for more clients like it
}

// load reads the properties, once for each command.
func (f *connFlags) load(in IO) (*settings, error) {
	if f.timeout < 0 {
		return nil, usagef("--timeout %v is negative: give a duration such as 10s, or 0 for no bound", f.timeout)
	}
	return loadSettings(f.file, f.props, in.Stderr)
}

// admin opens a session whose whole life is bounded by --timeout.
func (f *connFlags) admin(ctx context.Context, in IO) (*session, error) {
	s, err := f.load(in)
	if err != nil {
		return nil, err
	}
	return f.open(ctx, in, s, true)
}

// open probes the bootstrap addresses and makes a client for the one that
// answered. Close must be called.
func (f *connFlags) open(ctx context.Context, in IO, s *settings, bounded bool, opts ...kgo.Opt) (*session, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	addrs, err := parseServers(strings.Join(f.servers, ","))
	if err != nil {
		return nil, usagef("%w", err)
	}
	conf, err := s.security.config()
	if err != nil {
		return nil, err
	}
	mech, err := s.sasl.build()
	if err != nil {
		return nil, err
	}
	wait := f.timeout
	if wait == 0 {
		wait = 30 * time.Second // for one try; without a bound it is tried again
	}
	good, err := probe(ctx, addrs, conf, wait)
	for err != nil && f.timeout == 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		good, err = probe(ctx, addrs, conf, wait)
	}
	if ctx.Err() != nil {
		return nil, interrupted()
	}
	if err != nil {
		return nil, err
	}

	ss := &session{seeds: good, timeout: f.timeout}
	ss.ctx, ss.cancel = context.WithCancelCause(ctx)
	if bounded && f.timeout > 0 {
		bctx, stop := context.WithTimeout(ss.ctx, f.timeout)
		ss.ctx, ss.release = bctx, append(ss.release, stop)
	}
	ss.w = &watch{seed: good[0], sasl: mech != nil, timeout: f.timeout, cancel: ss.cancel, known: map[string]*dials{}}
	all := []kgo.Opt{
		kgo.ClientID("weir"),
		kgo.SoftwareNameAndVersion("weir", "1"),
		kgo.SeedBrokers(good...),
		kgo.DialTimeout(min(wait, 10*time.Second)),
		kgo.RetryTimeout(wait),
		kgo.RequestTimeoutOverhead(max(100*time.Millisecond, min(wait, 10*time.Second))),
		kgo.WithHooks(ss.w),
		kgo.DisableClientMetrics(),
		kgo.Dialer(dialer(conf, min(wait, 10*time.Second))),
	}
	if mech != nil {
		all = append(all, kgo.SASL(mech))
	}
	if f.debug {
		all = append(all, kgo.WithLogger(f.logger(in)))
	}
	all = append(all, s.common...)
	all = append(all, opts...)
	cl, err := kgo.NewClient(all...)
	if err != nil {
		ss.Close()
		return nil, usagef("the client properties do not fit together: %w", err)
	}
	ss.cl, ss.adm, ss.opts = cl, kadm.NewClient(cl), all
	ms := wait.Milliseconds()
	ss.adm.SetTimeoutMillis(int32(min(ms, 1<<30)))
	return ss, nil
}

// logger is what --debug prints.
func (f *connFlags) logger(in IO) kgo.Logger {
	return kgo.BasicLogger(in.Stderr, kgo.LogLevelDebug, nil)
}

func dialer(conf *tls.Config, timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if conf == nil {
			return d.DialContext(ctx, network, addr)
		}
		td := tls.Dialer{NetDialer: &d, Config: named(conf, addr)}
		return td.DialContext(ctx, network, addr)
	}
}

// Close ends the client and waits for its goroutines.
func (s *session) Close() {
	if s.cl != nil {
		s.cl.CloseAllowingRebalance()
	}
	for _, f := range s.release {
		f()
	}
	s.cancel(nil)
}

// explain turns what the client returned into a sentence. doing says what was
// asked for ("describe topic x"); empty when the error says it.
func (s *session) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if parts, ok := errors.AsType[*kadm.ShardErrors](err); ok && len(parts.Errs) > 0 {
		err = parts.Errs[0].Err // the sentence is for people: one reason of several
	}
	if f, ok := errors.AsType[*Failure](context.Cause(s.ctx)); ok {
		return f
	}
	if doing != "" {
		doing = "cannot " + doing + ": "
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return failf("%s%s", doing, protocolError(ke, ""))
	}
	if errors.Is(err, context.Canceled) && s.ctx.Err() != nil {
		return interrupted()
	}
	if f := s.w.blame(); f != nil {
		return f
	}
	if _, ok := errors.AsType[*kgo.ErrFirstReadEOF](err); ok {
		return failf("%sthe broker closed the connection: it may want SASL or TLS on this port; set -X security.protocol", doing)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failf("%sno answer from %s within %v: look at the broker's log, or give a longer --timeout", doing, s.seeds[0], s.timeout)
	}
	return failf("%s%w", doing, err)
}

func interrupted() error { return failf("interrupted") }

// protocolError is a broker's error by its name, with the broker's own
// sentence when it sent one.
func protocolError(ke *kerr.Error, message string) string {
	if message == "" {
		message = hint(ke)
	}
	return ke.Message + ": " + strings.TrimSuffix(message, ".")
}

// describeError is protocolError for any error of a reply.
func describeError(err error, message string) string {
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return protocolError(ke, message)
	}
	if message != "" {
		return message
	}
	return err.Error()
}

// errorName is the protocol's name of err, for JSON.
func errorName(err error) string {
	if err == nil {
		return ""
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke.Message
	}
	return err.Error()
}

func hint(ke *kerr.Error) string {
	switch ke {
	case kerr.UnknownTopicOrPartition, kerr.UnknownTopicID:
		return "there is no such topic or partition; weir topic list shows what there is"
	case kerr.TopicAlreadyExists:
		return "the topic exists already; --if-not-exists accepts that"
	case kerr.InvalidReplicationFactor:
		return "there are not that many brokers; try a smaller --replicas"
	case kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed:
		return "this user may not do it; ask for an ACL, or give another user with -X sasl.username"
	case kerr.SaslAuthenticationFailed:
		return "the broker refused user or password; check sasl.username, sasl.password and sasl.mechanism"
	case kerr.MessageTooLarge:
		return "the record is larger than the topic's max.message.bytes; raise that and -X message.max.bytes"
	case kerr.NonEmptyGroup:
		return "the group has members; stop them first"
	case kerr.GroupIDNotFound:
		return "there is no such group; weir group list shows what there is"
	case kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend:
		return "fewer replicas are in sync than min.insync.replicas; weir topic describe shows them"
	case kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress:
		return "the group's coordinator is not there yet; try again shortly"
	case kerr.KafkaStorageError:
		return "the partition's log dir failed or is full, or the partition is damaged; look at the broker's log"
	case kerr.UnsupportedVersion:
		return "this broker does not support the request"
	}
	return ke.Description
}

// watch sees every connection attempt of the client. Metadata that names an
// address nobody can reach is the most common mistake in a cluster's
// configuration, and the client alone would retry it without a word.
type watch struct {
	seed    string
	sasl    bool
	timeout time.Duration
	cancel  context.CancelCauseFunc
	note    func(string) // told once for each address that stops answering; nil: nobody

	mu    sync.Mutex
	known map[string]*dials
}

// forgetAfter is when a failure no longer counts as one of a row: longer than
// one try and the pause before it take.
const forgetAfter = 20 * time.Second

type dials struct {
	node        int32
	reached     bool // at least once
	failed      int  // in a row
	since, last time.Time
	err         error
}

// OnBrokerConnect is called by the client for each attempt.
func (w *watch) OnBrokerConnect(m kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	addr := net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port)))
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.known[addr]
	if d == nil {
		d = &dials{node: m.NodeID}
		w.known[addr] = d
	}
	if m.NodeID >= 0 {
		d.node = m.NodeID
	}
	if err == nil {
		d.reached, d.failed, d.err = true, 0, nil
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if _, ok := errors.AsType[*kerr.Error](err); ok {
		return // reached, and refused by name: the request's error says it
	}
	if d.failed == 0 || now.Sub(d.last) > w.timeout+forgetAfter {
		d.failed, d.since = 0, now
	}
	d.failed++
	d.last, d.err = now, err
	var dns *net.DNSError
	noName := errors.As(err, &dns) && dns.IsNotFound
	if d.failed == 1 && d.reached && w.note != nil {
		w.note(fmt.Sprintf("lost the broker at %s (%s), trying again", addr, dialReason(err, w.timeout)))
	}
	if (noName && !d.reached && d.failed >= 2) || (w.timeout > 0 && now.Sub(d.since) >= w.timeout) {
		w.cancel(w.sentence(addr, d))
	}
}

// blame returns the failure of an address that does not answer now, if any.
func (w *watch) blame() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for addr, d := range w.known {
		if d.failed > 0 && d.node >= 0 {
			return w.sentence(addr, d)
		}
	}
	for addr, d := range w.known {
		if d.failed > 0 {
			return w.sentence(addr, d)
		}
	}
	return nil
}

func (w *watch) sentence(addr string, d *dials) error {
	why := dialReason(d.err, w.timeout)
	switch {
	case errors.Is(d.err, io.EOF) && w.sasl:
		return failf("the broker at %s closed the connection during the login: check sasl.username, sasl.password and sasl.mechanism, and that this port wants SASL", addr)
	case errors.Is(d.err, io.EOF):
		return failf("the broker at %s closed the connection before it answered: it may want SASL or TLS on this port; set -X security.protocol", addr)
	case d.reached:
		return failf("lost the broker at %s (%s) for longer than --timeout %v: check that it runs", addr, why, w.timeout)
	case d.node < 0:
		return failf("cannot connect to %s (%s): check the address, and that the broker runs", addr, why)
	}
	return failf("broker %d advertises the address %s, which cannot be reached from here (%s), while %s answers: set advertised.listeners on broker %d to an address that its clients can reach",
		d.node, addr, why, w.seed, d.node)
}
