package weir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirmq/weir/internal/broker"
	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/console"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/quorum"
	"github.com/weirmq/weir/internal/wire"
)

// Options say how a broker starts. The zero value is right for a test.
type Options struct {
	// DataDir is where data lies when the configuration names no log.dirs.
	// Empty: a temporary folder that Close removes.
	DataDir string
	// Properties is the text of a server.properties file, FileName its name for
	// messages.
	Properties []byte
	FileName   string
	// Env is searched for KAFKA_... settings, as container images have them.
	// Nil: none.
	Env []string
	// Overrides are "key=value", stronger than everything else.
	Overrides []string
	// StandardPorts takes 127.0.0.1:9092 for Kafka and 127.0.0.1:9192 for HTTP
	// where the configuration names no listeners. False: a free port on 127.0.0.1
	// and no HTTP.
	StandardPorts bool
	// Log receives what the broker has to say. Nil: nothing is logged.
	Log *slog.Logger

	fs disk.FS // of tests; nil: the system's
}

// Server is a running broker.
type Server struct {
	log      *slog.Logger
	static   *config.Static
	view     atomic.Pointer[config.View]
	quorum   *quorum.Node
	parts    *partition.Manager
	broker   *broker.Broker
	wire     *wire.Server
	http     *http.Server
	httpAddr string
	addrs    []Address
	tempDir  string

	files     openFiles
	following bool       // the first image was taken; the quorum's goroutine only
	limiting  sync.Mutex // no older limits on connections come after newer ones

	wg      sync.WaitGroup
	once    sync.Once
	failed  chan error
	closing chan struct{}
	err     error
}

// Address is one open listener.
type Address struct {
	Listener string // its name: PLAINTEXT
	Addr     string // host:port as bound
}

// Start starts a broker and returns when it serves. Errors name the thing and
// what to try. ctx bounds the start alone. The caller must Close the Server.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{log: o.Log, failed: make(chan error, 8), closing: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.start(ctx, o); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, o Options) error {
	file := o.Properties
	if !o.StandardPorts {
		file = append([]byte("listeners=PLAINTEXT://127.0.0.1:0\nweir.http.listener=\n"), file...)
	}
	if o.DataDir == "" {
		dir, err := os.MkdirTemp("", "weir-")
		if err != nil {
			return err
		}
		s.tempDir, o.DataDir = dir, dir
	}
	hostname, _ := os.Hostname()
	static, warnings, err := config.Load(config.Source{File: file, FileName: o.FileName, Env: o.Env, Overrides: o.Overrides, DataDir: o.DataDir, Hostname: hostname})
	if err != nil {
		return &ConfigError{err}
	}
	s.static = static
	s.view.Store(static.View())
	for _, w := range warnings {
		about := []any{"key", w.Key}
		if w.Where != "" {
			about = append(about, "where", w.Where)
		}
		s.log.Warn(w.Message, about...)
	}

	listeners, advertised, err := s.listen()
	if err != nil {
		return err
	}
	closeListeners := func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	if err := s.open(ctx, cmp.Or(o.fs, disk.OS), advertised); err != nil {
		closeListeners()
		return err
	}
	if err := s.serveHTTP(); err != nil {
		closeListeners()
		return err
	}
	for i, l := range listeners {
		name := s.addrs[i].Listener
		s.wg.Go(func() {
			if err := s.wire.Serve(l, name); err != nil {
				s.fail(err)
			}
		})
	}
	s.parts.Start()
	return nil
}

// ConfigError is a configuration that stops the start: exit code 2.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// listen binds every client listener, so that ports are known before anything is
// told about them.
func (s *Server) listen() (bound []net.Listener, advertised []metadata.Listener, err error) {
	want, err := s.static.Listeners()
	if err != nil {
		return nil, nil, &ConfigError{err}
	}
	adverts, err := s.static.Advertised()
	if err != nil {
		return nil, nil, &ConfigError{err}
	}
	for _, w := range want {
		if w.Controller {
			continue // a quorum of one talks to nobody
		}
		if w.Security != "PLAINTEXT" {
			return bound, nil, &ConfigError{fmt.Errorf("listener %s: %s is not served yet: use PLAINTEXT", w.Name, w.Security)}
		}
		l, err := net.Listen(network(w, want), net.JoinHostPort(w.Host, strconv.Itoa(int(w.Port))))
		if err != nil {
			for _, b := range bound {
				_ = b.Close()
			}
			return nil, nil, listenError(w, err)
		}
		bound = append(bound, l)
		if err := setBacklog(l, s.static.Int("socket.listen.backlog.size")); err != nil {
			s.log.Warn("the listener keeps the system's backlog", "key", "socket.listen.backlog.size", "listener", w.Name, "err", err)
		}
		port := int32(l.Addr().(*net.TCPAddr).Port)
		host := w.Host
		if host == "" || w.Wildcard() {
			host = "0.0.0.0"
		}
		s.addrs = append(s.addrs, Address{w.Name, net.JoinHostPort(host, strconv.Itoa(int(port)))})
		for _, a := range adverts {
			if a.Name == w.Name {
				if a.Port == 0 {
					a.Port = port
				}
				advertised = append(advertised, metadata.Listener{Name: a.Name, Host: a.Host, Port: a.Port, Security: a.Security})
			}
		}
	}
	if len(bound) == 0 {
		return nil, nil, &ConfigError{errors.New("listeners: no client listener: add one such as PLAINTEXT://127.0.0.1:9092")}
	}
	return bound, advertised, nil
}

// network is tcp, which on a wildcard takes the port of both families, or the one
// family meant where another listener asks for that port in the other.
func network(w config.Listener, all []config.Listener) string {
	six := func(l config.Listener) bool { return strings.Contains(l.Host, ":") }
	for _, o := range all {
		if o.Controller || o.Port != w.Port || w.Port == 0 || six(o) == six(w) || net.ParseIP(o.Host) == nil || net.ParseIP(w.Host) == nil {
			continue
		}
		if six(w) {
			return "tcp6"
		}
		return "tcp4"
	}
	return "tcp"
}

func listenError(w config.Listener, err error) error {
	addr := net.JoinHostPort(w.Host, strconv.Itoa(int(w.Port)))
	if isAddrInUse(err) {
		return fmt.Errorf("listener %s: port %d is taken: stop what listens on %s, or start with --override listeners=%s://%s",
			w.Name, w.Port, addr, w.Name, net.JoinHostPort(w.Host, strconv.Itoa(int(w.Port)+1)))
	}
	return fmt.Errorf("listener %s: cannot listen on %s: %w: name an address of this machine in listeners", w.Name, addr, err)
}

// open brings up storage, quorum and broker, in the order in which they need each
// other.
func (s *Server) open(ctx context.Context, fs disk.FS, advertised []metadata.Listener) error {
	s.files = divideOpenFiles(openFilesLimit())
	if s.files.limit > 0 && s.files.limit < fewOpenFiles {
		s.log.Warn("few files may be open at once: raise the limit (ulimit -n, LimitNOFILE) for many connections or many partitions written at once",
			"limit", s.files.limit, "for_logs", s.files.logs, "for_connections", s.files.connections)
	}
	c := s.static
	self := kafka.BrokerID(c.NodeID())
	reg := prometheus.NewRegistry()
	set := metrics.New(reg)

	ms := func(key string) time.Duration { return millis(c.Long(key)) }
	parts, err := partition.OpenManager(partition.Options{
		FS: fs, Dirs: c.LogDirs(), Self: self, Log: s.log, Settings: s.settings, Metrics: set,
		Shards:               map[string]partition.ShardFactory{broker.OffsetsTopic: s.groupShard},
		Cleaner:              s.cleaner(),
		RecoveryWorkers:      c.Int("num.recovery.threads.per.data.dir"),
		CheckpointEvery:      notZero(ms("log.flush.offset.checkpoint.interval.ms"), never),
		StartCheckpointEvery: notZero(ms("log.flush.start.offset.checkpoint.interval.ms"), never),
		RetentionEvery:       ms("log.retention.check.interval.ms"),
		ExpireEvery:          ms("producer.id.expiration.check.interval.ms"),
		MaxLogFiles:          s.logFiles,
		InitialDelay:         notZero(ms("log.initial.task.delay.ms"), 1),
	})
	if err != nil {
		return err
	}
	s.parts = parts
	fs = parts.FS()
	id, gone, err := identify(fs, parts.Dirs(), c)
	if err != nil {
		return err
	}
	if gone.err != nil {
		s.log.Error("a log dir is missing: partitions that are found nowhere stay offline", "err", gone.err)
		for _, dir := range gone.empty {
			parts.LeaveOut(dir, fmt.Errorf("it is empty, perhaps a disk is not mounted: %w", gone.err))
		}
		parts.SetLost(gone.err)
	}
	metaDir := c.MetadataLogDir()
	if err := metadataThere(fs, metaDir, parts.Dirs()); err != nil {
		return err
	}
	q, err := quorum.Open(ctx, quorum.Options{
		FS: fs, Dir: metaDir, Self: self, ClusterID: id.cluster, Log: s.log,
		Controller: metadata.Config{
			Rules: configRules{s}, Defaults: s.topicDefaults, NewID: newTopicID,
			Rand: mrand.New(mrand.NewPCG(mrand.Uint64(), mrand.Uint64())),
		},
	})
	if err != nil {
		return err
	}
	s.quorum = q
	s.wg.Go(func() {
		select {
		case <-q.Failed():
			s.fail(fmt.Errorf("metadata quorum: %w", q.Err()))
		case <-s.closing:
		}
	})
	if got := q.Image().ClusterID(); got != id.cluster {
		return fmt.Errorf("metadata in %s is of cluster %s, but %s says %s: put the folders of one cluster together again", metaDir, got, id.file, id.cluster)
	}
	var incarnation [16]byte
	_, _ = rand.Read(incarnation[:])
	reply, err := q.Call(ctx, &metadata.RegisterBroker{ClusterID: id.cluster, Unclean: parts.Unclean(), Broker: metadata.Broker{
		ID: self, Incarnation: incarnation, Listeners: advertised, Rack: rack(c),
	}})
	if err != nil {
		return fmt.Errorf("cannot register with the metadata quorum: %w", err)
	}
	if r := reply.(*metadata.RegisterBrokerReply); r.Err != kafka.NoError {
		return fmt.Errorf("cannot register with the metadata quorum: %w", r.Err)
	}

	s.broker = broker.New(broker.Options{
		Self: self, Quorum: q, Partitions: parts, Config: s.view.Load, Log: s.log, Metrics: set,
		Fixed: s.fixedAddress,
		QuorumStatus: func() broker.QuorumStatus {
			st := q.Status()
			return broker.QuorumStatus{Leader: int32(self), Epoch: st.Epoch, HighWatermark: st.HighWatermark}
		},
	})
	s.wire = wire.NewServer(s.broker, s.broker.Table(), s.wireOptions(set))
	sources := s.broker.Sources()
	sources.LogFiles = func() (open, max int) { return s.parts.LogFiles(), s.logFiles() }
	sources.FrameBytes, sources.Clients = s.wire.FrameBytes, s.wire.EachSoftware
	set.Attach(sources)
	q.Watch(s.follow)
	s.prepareHTTP(reg)
	return nil
}

// follow takes each change of the metadata into force. It runs on the quorum's
// goroutine; when it returns, the change's own request is answered.
func (s *Server) follow(img *metadata.Image, d *metadata.Delta) {
	first := !s.following
	s.following = true
	if first || slices.ContainsFunc(d.ConfigsChanged, func(k metadata.ConfigKey) bool { return k.Kind == metadata.BrokerConfig }) {
		view := s.static.With(img.Config(metadata.BrokerConfig, ""), img.Config(metadata.BrokerConfig, strconv.Itoa(int(s.static.NodeID()))))
		s.view.Store(view)
		s.parts.SetRecoveryWorkers(view.Int("num.recovery.threads.per.data.dir"))
		s.limitConnections(view)
	}
	s.parts.Apply(img, d)
	for _, t := range d.Deleted {
		s.broker.TopicDeleted(t)
	}
}

func rack(c *config.Static) *string {
	if r := c.Str("broker.rack"); r != "" {
		return &r
	}
	return nil
}

// fixedAddress says whether the configuration names the address clients are told
// for a listener: in advertised.listeners, or as a listener bound to one address.
func (s *Server) fixedAddress(listener string) bool {
	if s.static.IsSet("advertised.listeners") {
		return true
	}
	ls, _ := s.static.Listeners()
	for _, l := range ls {
		if l.Name == listener {
			return l.Host != "" && !l.Wildcard()
		}
	}
	return true
}

func newTopicID() kafka.TopicID {
	var id kafka.TopicID
	for {
		_, _ = rand.Read(id[:])
		if !strings.HasPrefix(id.String(), "-") { // as Kafka: no id looks like a flag
			return id
		}
	}
}

func (s *Server) wireOptions(set *metrics.Set) wire.Options {
	c := s.static
	o := wire.Options{
		MaxRequestBytes: c.Int("socket.request.max.bytes"),
		QueueMax:        c.Int("queued.max.requests"),
		IdleTimeout:     notZero(millis(c.Long("connections.max.idle.ms")), time.Millisecond),
		SendBuf:         c.Int("socket.send.buffer.bytes"),
		RecvBuf:         c.Int("socket.receive.buffer.bytes"),
		Log:             s.log,
		Metrics:         set,
	}
	if n := c.Long("queued.max.request.bytes"); n > 0 {
		o.InflightBytes = n
	}
	return o
}

func (s *Server) prepareHTTP(reg *prometheus.Registry) {
	s.http = &http.Server{
		Handler: console.Handler(console.Options{
			Gatherer: reg,
			Ready:    s.ready,
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

func (s *Server) serveHTTP() error {
	addr := s.static.Str("weir.http.listener")
	if addr == "" {
		return nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		if isAddrInUse(err) {
			return fmt.Errorf("HTTP: port of %s is taken: stop what listens there, or start with --override weir.http.listener=127.0.0.1:0 (empty: no HTTP)", addr)
		}
		return fmt.Errorf("HTTP: cannot listen on weir.http.listener=%s: %w", addr, err)
	}
	s.httpAddr = l.Addr().String()
	s.wg.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(err)
		}
	})
	return nil
}

// ready says why the broker cannot serve, or nil.
func (s *Server) ready() error {
	for _, d := range s.parts.Dirs() {
		if d.Err != nil {
			return d.Err
		}
	}
	return nil
}

func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Failed gives an error that ended a part of the server, such as a listener. The
// caller should Close.
func (s *Server) Failed() <-chan error { return s.failed }

// Addr is host:port of the first listener, for bootstrap.servers.
func (s *Server) Addr() string {
	host, port, _ := net.SplitHostPort(s.addrs[0].Addr)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Addrs are all listeners, in the order of the configuration.
func (s *Server) Addrs() []Address { return s.addrs }

// HTTPAddr is where /metrics and /health are, or empty.
func (s *Server) HTTPAddr() string { return s.httpAddr }

// ClusterID is the id that Metadata answers carry.
func (s *Server) ClusterID() string { return s.quorum.Image().ClusterID() }

// NodeID is this broker's id.
func (s *Server) NodeID() int32 { return int32(s.static.NodeID()) }

// DataDirs are the log dirs in use, absolute where that can be found out.
func (s *Server) DataDirs() []string { return s.logDirs(true) }

// FailedDirs are the log dirs of the configuration that are not in use, because
// they could not be opened or failed since.
func (s *Server) FailedDirs() []string { return s.logDirs(false) }

func (s *Server) logDirs(wantSound bool) (out []string) {
	used := s.parts.Dirs()
	for _, d := range s.static.LogDirs() {
		sound := slices.ContainsFunc(used, func(i partition.DirInfo) bool { return i.Path == d && i.Err == nil })
		if sound != wantSound {
			continue
		}
		if abs, err := filepath.Abs(d); err == nil {
			d = abs
		}
		out = append(out, d)
	}
	return out
}

// Close stops the broker in order: no new connections, what is in flight is
// answered, logs are flushed and marked clean. It waits for every goroutine.
func (s *Server) Close() error {
	s.once.Do(func() {
		close(s.closing)
		var errs []error
		if s.http != nil {
			errs = append(errs, s.http.Close())
		}
		if s.wire != nil {
			errs = append(errs, s.wire.Close())
		}
		if s.parts != nil {
			errs = append(errs, s.parts.Close())
		}
		if s.quorum != nil {
			errs = append(errs, s.quorum.Close())
		}
		s.wg.Wait()
		if s.tempDir != "" {
			errs = append(errs, os.RemoveAll(s.tempDir))
		}
		s.err = errors.Join(errs...)
	})
	return s.err
}

// groupShard runs the group machine on a partition of the offsets topic.
func (s *Server) groupShard(p *partition.Partition, log *slog.Logger) *partition.Shard {
	c := s.static
	cfg := group.Config{
		MinSessionMs:            int32(c.Int("group.min.session.timeout.ms")),
		MaxSessionMs:            int32(c.Int("group.max.session.timeout.ms")),
		MaxSize:                 c.Int("group.max.size"),
		InitialRebalanceDelayMs: int32(c.Int("group.initial.rebalance.delay.ms")),
		OffsetsRetentionMs:      c.Long("offsets.retention.minutes") * 60000,
		RetentionCheckMs:        c.Long("offsets.retention.check.interval.ms"),
		OffsetMetadataMaxBytes:  c.Int("offset.metadata.max.bytes"),
	}
	if cfg.InitialRebalanceDelayMs == 0 {
		cfg.InitialRebalanceDelayMs = -1 // none
	}
	return partition.StartShard(p, func() groupMachine { return group.NewShard(cfg, newMemberID) }, groupCodec, log)
}

// cleaner is nil when log.cleaner.enable=false leaves compacted topics as they are.
func (s *Server) cleaner() func() partition.CleanerSettings {
	if !s.static.Bool("log.cleaner.enable") {
		return nil
	}
	return func() partition.CleanerSettings {
		v := s.view.Load()
		return partition.CleanerSettings{
			Threads: v.Int("log.cleaner.threads"),
			// Not less than this: at 0 it would look without a rest.
			Backoff:        max(millis(v.Long("log.cleaner.backoff.ms")), 10*time.Millisecond),
			KeyBytes:       v.Long("log.cleaner.dedupe.buffer.size"),
			KeyLoad:        v.Double("log.cleaner.io.buffer.load.factor"),
			BufferBytes:    v.Int("log.cleaner.io.buffer.size"),
			BytesPerSecond: v.Double("log.cleaner.io.max.bytes.per.second"),
		}
	}
}
