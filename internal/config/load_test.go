package config

import (
	"errors"
	"strings"
	"testing"
)

// Loading: the layers and their order, Kafka's synonym rules, what is refused
// (all of it at once) and what is only warned about.

func load(t *testing.T, in Source) (*Static, []Warning) {
	t.Helper()
	s, w, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func TestNothingAtAll(t *testing.T) {
	s, w := load(t, Source{})
	if len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
	if s.NodeID() != 1 || s.LogDirs()[0] != "./weir-data" || s.MetadataLogDir() != "./weir-data" || s.ClusterID() != "" {
		t.Errorf("got %d %v %s", s.NodeID(), s.LogDirs(), s.MetadataLogDir())
	}
	ls, _ := s.Listeners()
	as, _ := s.Advertised()
	if len(ls) != 1 || ls[0].String() != "PLAINTEXT://127.0.0.1:9092" || len(as) != 1 || as[0] != ls[0] {
		t.Errorf("got %v %v", ls, as)
	}
	if s.IsSet("listeners") || s.Str("weir.http.listener") != "127.0.0.1:9192" {
		t.Error("defaults")
	}
}

func TestPrecedence(t *testing.T) {
	f := func(file, env, flag string, want int, from Origin) {
		t.Helper()
		in := Source{}
		if file != "" {
			in.File = []byte("num.partitions=" + file)
		}
		if env != "" {
			in.Env = []string{"PATH=/bin", "KAFKA_NUM_PARTITIONS=" + env}
		}
		if flag != "" {
			in.Overrides = []string{"num.partitions=" + flag}
		}
		s, _ := load(t, in)
		if got := s.Int("num.partitions"); got != want || s.Source("num.partitions") != from {
			t.Errorf("got %d from %s, want %d from %s", got, s.Source("num.partitions"), want, from)
		}
	}
	f("", "", "", 1, FromDefault)
	f("2", "", "", 2, FromFile)
	f("2", "3", "", 3, FromEnv)
	f("2", "3", "4", 4, FromFlag)
	f("2", "", "4", 4, FromFlag)
	f("", "3", "", 3, FromEnv)
	f(" 5 ", "", "", 5, FromFile)
}

func TestSynonyms(t *testing.T) {
	retention := func(file string, want int64) {
		t.Helper()
		s, _ := load(t, Source{File: []byte(file)})
		if got := s.View().Topic(nil).RetentionMs; got != want {
			t.Errorf("%q: retention %d ms, want %d", file, got, want)
		}
	}
	retention("", 168*3600*1000)
	retention("log.retention.hours=1", 3600*1000)
	retention("log.retention.hours=1\nlog.retention.minutes=2", 2*60*1000)
	retention("log.retention.hours=1\nlog.retention.minutes=2\nlog.retention.ms=3", 3)
	retention("log.retention.ms=-1\nlog.retention.hours=1", -1)
	retention("log.retention.hours=-1", -1)
	retention("log.retention.minutes=-5", -1)
	retention("log.retention.hours=2147483647", 2147483647*3600*1000)

	s, _ := load(t, Source{File: []byte("log.roll.hours=2\nlog.roll.jitter.hours=1\nlog.flush.scheduler.interval.ms=500\nmessage.max.bytes=77\n" +
		"log.flush.interval.messages=9\nlog.index.size.max.bytes=4096\nlog.segment.delete.delay.ms=8\nlog.message.timestamp.type=LogAppendTime\nlog.cleanup.policy=compact, delete")})
	c := s.View().Topic(map[string]string{"max.message.bytes": "78", "segment.bytes": "1", "no.such": "x"})
	if c.SegmentMs != 2*3600*1000 || c.SegmentJitterMs != 3600*1000 || c.FlushMs != 500 || c.MaxMessageBytes != 78 || c.FlushMessages != 9 ||
		c.SegmentIndexBytes != 4096 || c.FileDeleteDelayMs != 8 || !c.AppendTime || !c.CleanupCompact || !c.CleanupDelete {
		t.Errorf("got %+v", c)
	}
	if c.SegmentBytes != 1<<30 {
		t.Errorf("an override that is out of range counts: %d", c.SegmentBytes)
	}

	id := func(file string, want int) {
		t.Helper()
		s, _ := load(t, Source{File: []byte(file)})
		if int(s.NodeID()) != want || s.Int("broker.id") != want {
			t.Errorf("%q: node %d, broker.id %d, want %d", file, s.NodeID(), s.Int("broker.id"), want)
		}
	}
	id("broker.id=7", 7)
	id("node.id=7", 7)
	id("node.id=7\nbroker.id=7", 7)
	id("node.id=7\nbroker.id=-1", 7)
	id("broker.id=-1", 1)
	id("broker.id=0", 0)

	s, _ = load(t, Source{File: []byte("log.dir=/a, /b"), DataDir: "/d"})
	if got := strings.Join(s.LogDirs(), " "); got != "/a /b" {
		t.Error(got)
	}
	s, _ = load(t, Source{File: []byte("log.dir=/a\nlog.dirs=/b,/c\nmetadata.log.dir=/m"), DataDir: "/d"})
	if got := strings.Join(s.LogDirs(), " "); got != "/b /c" || s.MetadataLogDir() != "/m" {
		t.Error(got)
	}
	s, _ = load(t, Source{DataDir: "/d"})
	if s.LogDirs()[0] != "/d" || s.IsSet("log.dir") {
		t.Error(s.LogDirs())
	}
	s, _ = load(t, Source{File: []byte("node.id=3"), Overrides: []string{"controller.quorum.voters=3@localhost:9093"}})
	if s.NodeID() != 3 {
		t.Error(s.NodeID())
	}
}

func TestRefused(t *testing.T) {
	f := func(file string, want ...string) {
		t.Helper()
		_, _, err := Load(Source{File: []byte(file), FileName: "server.properties"})
		if err == nil {
			t.Errorf("%q: accepted", file)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %q is not in:\n%s", file, w, err)
			}
		}
	}
	f("num.partitions=0", "Invalid value 0 for configuration num.partitions: must be at least 1", "line 1", "allowed: [1,...]", "try 1")
	f("num.partitions=many", "must be a whole number of type int")
	f("num.partitions=2147483648", "whole number")
	f("num.partitions=", "whole number")
	f("num.partitions=1.5", "whole number")
	f("delete.topic.enable=yes", "must be true or false")
	f("log.segment.bytes=1000", "at least 1048576")
	f("compression.gzip.level=0", "between 1 and 9, or -1")
	f("compression.type=none", "must be one of: uncompressed, zstd")
	f("log.cleanup.policy=compact,keep", `"keep" is none of: compact, delete`)
	f("log.dirs=/a,,/b", "empty member")
	f("log.dirs=/a,/a", "names /a twice")
	f("log.dirs=", "at least one directory")
	f("log.retention.ms=0", "-1 for without limit")
	f("log.cleaner.min.cleanable.ratio=1.5", "between 0 and 1")
	f("log.cleaner.min.cleanable.ratio=NaN", "number")
	f("node.id=-1", "at least 0")
	f("node.id=1\nbroker.id=2", "the same as node.id, which is 1", "line 2")
	f("broker.id=-2", "at least 0, or -1")
	f("process.roles=broker", "several nodes are not there yet")
	f("process.roles=zookeeper", "is none of: broker, controller")
	f("controller.quorum.voters=1@a:1,2@b:1,3@c:1", "names node 2 and 3; this is node 1", "name this node alone")
	f("num.io.threads=8num.partitions=3", "num.io.threads", "run together", "num.partitions=3")
	f("controller.quorum.voters=a:1", "not id@host:port")
	f("group.min.session.timeout.ms=10\ngroup.max.session.timeout.ms=9", "must not be above group.max.session.timeout.ms")
	f("queued.max.request.bytes=1000", "at least socket.request.max.bytes")
	f("max.connections.per.ip.overrides=a", "not host:count")
	f("weir.http.listener=:x", `port "x"`)
	f(`num.partitions=\u12`, "line 1", "hexadecimal")
	f("ssl.key.password=secret\nlisteners=SSL://:9093", "TLS is not served yet")
	// all of them at once, in the order of the file
	f("num.partitions=0\nlog.segment.bytes=x\nlisteners=BAD://:1", "num.partitions", "log.segment.bytes", "security protocol of BAD")

	_, _, err := Load(Source{Overrides: []string{"num.partitions", "=3", "delete.topic.enable=maybe"}, Env: []string{"KAFKA_LOG_SEGMENT_BYTES=1"}})
	for _, want := range []string{`"num.partitions" is not key=value`, `"=3"`, "--override delete.topic.enable", "environment KAFKA_LOG_SEGMENT_BYTES"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	var bad *ValueError
	if !errors.As(err, &bad) || bad.Key == "" || bad.Allowed == "" {
		t.Errorf("no ValueError in %v", err)
	}
	if err := brokerIndex["ssl.key.password"].refuse("secret", "x"); strings.Contains(err.Error(), "secret") {
		t.Error("a password is shown")
	}
}

func TestWarnings(t *testing.T) {
	f := func(in Source, kind Kind, want string) {
		t.Helper()
		in.FileName = "f"
		_, w := load(t, in)
		if len(w) != 1 || w[0].Kind != kind || !strings.Contains(w[0].String(), want) {
			t.Errorf("want %q (%s), got %v", want, kind, w)
		}
	}
	file := func(s string) Source { return Source{File: []byte(s)} }
	f(file("replica.fetch.max.wait.ms=500"), UnknownKey, "f line 1: replica.fetch.max.wait.ms is no key of Kafka 4.4 or Weir and has no effect; the nearest is replica.fetch.wait.max.ms.")
	f(file("retention.ms=5"), UnknownKey, "topic's key and has no effect for the broker; the broker's is log.retention.ms")
	f(file("zookeeper.connect=a:2181"), Ineffective, "Weir has no ZooKeeper")
	f(file("inter.broker.protocol.version=3.5"), Ineffective, "Kafka removed it in 4.0")
	f(file("port=9092"), Ineffective, "use listeners")
	f(file("num.io.threads=16"), Ineffective, "goroutines")
	f(file("transaction.state.log.min.isr=1"), Later, "transactions are not there yet")
	f(file("num.partitions=1\nnum.partitions=2"), Replaced, "f line 2: num.partitions is set twice; this line counts, the one at f line 1 does not.")
	f(file("log.retention.hours=1\nlog.retention.ms=2"), Advice, "log.retention.hours does not count, because log.retention.ms is set.")
	f(file("log.flush.interval.ms=1000"), Advice, "in the background. Kafka would not, without log.flush.scheduler.interval.ms")
	f(file("log.flush.interval.ms=1000\nlog.flush.scheduler.interval.ms=500"), Advice, "in the background.")
	f(file("log.flush.interval.messages=10000"), Advice, "wait for the disk every 10000 records")
	f(file("compression.type=lz4"), Advice, "unpack and pack again")
	f(file("socket.send.buffer.bytes=524288"), Advice, "-1 lets it")
	f(file("log.dirs=/tmp/x"), Advice, "/tmp")
	f(file("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://localhost:9092"), Advice, "which is their own machine")
	f(Source{Env: []string{"KAFKA_HEAP_OPTS=-Xmx4g"}}, Ineffective, "KAFKA_HEAP_OPTS has no effect: it is for a Java process")
	f(Source{Env: []string{"KAFKA_PORT=tcp://10.0.0.1:9092"}}, Ineffective, "Kubernetes")
	f(Source{Env: []string{"KAFKA_ZOOKEEPER_CONNECT=a:1"}}, Ineffective, "environment KAFKA_ZOOKEEPER_CONNECT")
	f(Source{Env: []string{"KAFKA_NUM_PARTITION=1"}}, UnknownKey, "nearest is num.partitions")
	for _, quiet := range []string{"num.io.threads=8", "transaction.state.log.replication.factor=3", "controller.quorum.voters=1@localhost:9093"} {
		if _, w := load(t, file(quiet)); len(w) > 0 {
			t.Errorf("%s warns: %v", quiet, w)
		}
	}
}

// The environment of the container guide, as it stands there.
func TestGuideEnvironment(t *testing.T) {
	s, w := load(t, Source{Env: []string{
		"KAFKA_BROKER_ID=3", "KAFKA_ZOOKEEPER_CONNECT=zookeeper1:2181,zookeeper2:2181", "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka3:9092",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=3", "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=3", "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=2",
		"KAFKA_LOG_RETENTION_HOURS=168", "KAFKA_LOG_SEGMENT_BYTES=1073741824", "KAFKA_LOG_RETENTION_CHECK_INTERVAL_MS=300000",
		"KAFKA_NUM_NETWORK_THREADS=8", "KAFKA_NUM_IO_THREADS=16", "KAFKA_NUM_PARTITIONS=12", "KAFKA_DEFAULT_REPLICATION_FACTOR=3",
		"KAFKA_MIN_INSYNC_REPLICAS=2", "KAFKA_COMPRESSION_TYPE=lz4", "KAFKA_SOCKET_SEND_BUFFER_BYTES=102400", "KAFKA_SOCKET_RECEIVE_BUFFER_BYTES=102400",
		"KAFKA_SOCKET_REQUEST_MAX_BYTES=104857600", "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES=10000", "KAFKA_LOG_FLUSH_INTERVAL_MS=1000",
		"KAFKA_HEAP_OPTS=-Xmx1G", "CLUSTER_ID=abc", "HOME=/root",
	}})
	ls, _ := s.Listeners()
	as, _ := s.Advertised()
	if s.NodeID() != 3 || s.Int("num.partitions") != 12 || s.ClusterID() != "abc" || ls[0].Address() != ":9092" || as[0].Address() != "kafka3:9092" {
		t.Errorf("got %d %d %v %v", s.NodeID(), s.Int("num.partitions"), ls, as)
	}
	for _, warning := range w {
		if warning.Kind == UnknownKey {
			t.Error(warning)
		}
	}
	if lines := Summary(w); len(lines) != 7 || !strings.Contains(lines[6], "KAFKA_HEAP_OPTS, zookeeper.connect, num.network.threads, num.io.threads") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

func TestEnvNames(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got, _, ok := fromEnv(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f("KAFKA_NUM_PARTITIONS", "num.partitions")
	f("KAFKA_CFG_NUM_PARTITIONS", "num.partitions")
	f("KAFKA_A__B___C_D", "a_b-c.d")
	f("KAFKA_LISTENER_NAME_PLAINTEXT_MAX_CONNECTIONS", "listener.name.plaintext.max.connections")
	f("WEIR_HTTP_LISTENER", "weir.http.listener")
	f("KAFKA_WEIR_HTTP_LISTENER", "weir.http.listener")
	for _, none := range []string{"KAFKA", "KAFKA_", "WEIR_", "PATH", "KAFKA_OPTS", "KAFKA_CFG_", "KAFKA_PORT_9092_TCP_ADDR", "KAFKA_SERVICE_HOST"} {
		f(none, "")
	}
	for _, k := range brokerKeys {
		f(EnvName(k.Name), k.Name)
	}
}

func TestCheck(t *testing.T) {
	r := Check(Source{FileName: "f", File: []byte("num.partitions=0\nnum.io.threads=9\nnum.partitons=1")})
	want := "error   f line 1: Invalid value 0 for configuration num.partitions: must be at least 1; allowed: [1,...]; try 1, the default\n" +
		"warning f line 3: num.partitons is no key of Kafka 4.4 or Weir and has no effect; the nearest is num.partitions.\n" +
		"note    f line 2: num.io.threads has no effect: Weir has goroutines where Kafka has a pool of threads; nothing needs a count.\n" +
		"3 settings: 1 error, 1 warning, 1 note. The broker would not start with this configuration.\n"
	if got := r.String(); got != want || r.OK() {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r = Check(Source{FileName: "f", File: []byte("num.partitions=1")})
	want = "note    f line 1: num.partitions=1 is the default.\n1 setting: 0 errors, 0 warnings, 1 note. The broker would start with this configuration.\n"
	if got := r.String(); got != want || !r.OK() {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
