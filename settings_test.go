package weir_test

// Shows: what a key says is what the broker does. Each line of the tables sets one
// key and looks from outside, over the protocol or at the files, at what it
// changes. Keys of a log are set in four ways: in the file, for a topic, while the
// broker runs, and as found again after a restart.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	kmsgs "github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// node is a broker with what it takes to look at it.
type node struct {
	*testing.T
	s   *weir.Server
	dir string
	c   *kgo.Client
	a   *kadm.Client
}

// quick makes the background work of a broker fast enough to watch.
var quick = []string{
	"log.initial.task.delay.ms=0", "log.retention.check.interval.ms=20", "producer.id.expiration.check.interval.ms=20",
	"log.flush.offset.checkpoint.interval.ms=20", "log.flush.start.offset.checkpoint.interval.ms=20",
	"offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=0",
}

func run(t *testing.T, dir string, overrides ...string) *node {
	t.Helper()
	s := start(t, weir.Options{DataDir: dir, Overrides: append(quick[:len(quick):len(quick)], overrides...)})
	c := client(t, s)
	return &node{t, s, dir, c, kadm.NewClient(c)}
}

func (n *node) stop() {
	n.c.Close()
	if err := n.s.Close(); err != nil {
		n.Fatal(err)
	}
}

func (n *node) create(topic string, partitions int32, config map[string]*string) {
	n.Helper()
	if _, err := n.a.CreateTopic(n.Context(), partitions, 1, config, topic); err != nil {
		n.Fatal(err)
	}
}

func (n *node) set(key, value string, brokers ...int32) {
	n.Helper()
	r, err := n.a.AlterBrokerConfigs(n.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, brokers...)
	if err == nil {
		err = r[0].Err
	}
	if err != nil {
		n.Fatalf("%s=%s: %v", key, value, err)
	}
}

func ask[T kmsgs.Response](n *node, req kmsgs.Request) T {
	n.Helper()
	resp, err := n.c.Request(n.Context(), req)
	if err != nil {
		n.Fatalf("%s: %v", kmsgs.NameForKey(req.Key()), err)
	}
	return resp.(T)
}

func code(c int16) string { return strings.Fields(kafka.Error(c).Error() + " ")[0] }

// send writes one batch and gives the answer's code.
func (n *node) send(topic string, v batch.View) string {
	n.Helper()
	t := kmsgs.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsgs.NewProduceRequestTopicPartition()
	p.Records = v
	t.Partitions = append(t.Partitions, p)
	req := kmsgs.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 5000, append(req.Topics, t)
	m := kmsgs.NewPtrMetadataRequest()
	mt := kmsgs.NewMetadataRequestTopic()
	mt.Topic = &topic
	m.Topics = append(m.Topics, mt)
	req.Topics[0].TopicID = ask[*kmsgs.MetadataResponse](n, m).Topics[0].TopicID
	return code(ask[*kmsgs.ProduceResponse](n, req).Topics[0].Partitions[0].ErrorCode)
}

// records makes a batch of one record of size bytes, which pack well, stamped age
// before now.
func records(size int, codec batch.Codec, age time.Duration) batch.View {
	b := batch.NewBuilder(batch.Plain(codec))
	value := []byte(strings.Repeat("every key says what it does and does what it says. ", size/51+1))[:size]
	for i := range value { // packs better the harder one tries
		if i%7 == 0 {
			value[i] = byte('a' + i*i%23)
		}
	}
	b.Add(time.Now().Add(-age).UnixMilli(), []byte("k"), value)
	return b.Bytes()
}

// files lists a partition's files with a suffix.
func (n *node) files(topic, suffix string) []string {
	var all []string
	for _, d := range n.s.DataDirs() {
		got, _ := filepath.Glob(filepath.Join(d, topic+"-0", "*"+suffix))
		all = append(all, got...)
	}
	return all
}

func (n *node) stored(topic string) batch.View {
	n.Helper()
	data, err := os.ReadFile(n.files(topic, ".log")[0])
	if err != nil {
		n.Fatal(err)
	}
	v, _, err := batch.Next(data)
	if err != nil {
		n.Fatal(err)
	}
	return v
}

// eventually waits for got to be want and gives what it last was.
func eventually(want string, got func() string) string {
	last := ""
	for range 400 {
		if last = got(); last == want {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return last
}

// after gives what got is once time has passed in which it could have changed.
func after(got func() string) string {
	time.Sleep(100 * time.Millisecond)
	return got()
}

func (n *node) logStart(topic string) string {
	l, err := n.a.ListStartOffsets(n.Context(), topic)
	if err != nil {
		return err.Error()
	}
	o, _ := l.Lookup(topic, 0)
	return strconv.FormatInt(o.Offset, 10)
}

// checkpoint is what a checkpoint file says of a topic's partition 0.
func (n *node) checkpoint(file, topic string) string {
	data, _ := os.ReadFile(filepath.Join(n.s.DataDirs()[0], file))
	for line := range strings.Lines(string(data)) {
		if offset, ok := strings.CutPrefix(strings.TrimSpace(line), topic+" 0 "); ok {
			return offset
		}
	}
	return "none"
}

// Observers: what a topic does.
type look func(n *node, topic string) string

func sends(size int, codec batch.Codec, age time.Duration) look {
	return func(n *node, topic string) string { return n.send(topic, records(size, codec, age)) }
}

func codec(n *node, topic string) string {
	n.send(topic, records(1000, batch.LZ4, 0))
	return n.stored(topic).Codec().String()
}

func stamps(n *node, topic string) string {
	n.send(topic, records(10, batch.NoCodec, time.Minute))
	return fmt.Sprintf("append time %t", n.stored(topic).AppendTime())
}

// packs says whether the stored batch is smaller than the first level makes it.
func packs(c batch.Codec, level int) look {
	return func(n *node, topic string) string {
		n.send(topic, records(50_000, batch.NoCodec, 0))
		data, err := batch.Decompress(n.stored(topic).Codec(), n.stored(topic).Records(), 1<<20)
		if err != nil || n.stored(topic).Codec() != c {
			return fmt.Sprintf("codec %v, %v", n.stored(topic).Codec(), err)
		}
		packed, err := batch.Compress(c, level, data)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("as level %d: %t", level, bytes.Equal(packed, n.stored(topic).Records()))
	}
}

func segments(size, batches int, apart time.Duration) look {
	return func(n *node, topic string) string {
		for i := range batches {
			if c := n.send(topic, records(size, batch.NoCodec, time.Duration(batches-i)*apart)); c != "NONE" {
				return c
			}
		}
		return fmt.Sprintf("%d segments", len(n.files(topic, ".log")))
	}
}

// retention says where the log starts after three batches of the age and size.
func retention(size int, age time.Duration, want string) look {
	return func(n *node, topic string) string {
		for range 3 {
			n.send(topic, records(size, batch.NoCodec, age))
		}
		if want == "0" {
			return after(func() string { return n.logStart(topic) })
		}
		return eventually(want, func() string { return n.logStart(topic) })
	}
}

// flushed is the recovery point, which moves with a sync alone.
func flushed(want string) look {
	return func(n *node, topic string) string {
		n.send(topic, records(10, batch.NoCodec, 0))
		got := func() string { return n.checkpoint("recovery-point-offset-checkpoint", topic) }
		if want == "0" {
			eventually("0", got)
			return after(got)
		}
		return eventually(want, got)
	}
}

// compacts says whether segments of one key become fewer.
func compacts(want bool) look {
	return func(n *node, topic string) string {
		for range 4 {
			n.send(topic, records(600_000, batch.NoCodec, time.Minute))
		}
		got := func() string {
			size := int64(0)
			for _, f := range n.files(topic, ".log") {
				if st, err := os.Stat(f); err == nil {
					size += st.Size()
				}
			}
			return strconv.FormatBool(size < 2_000_000)
		}
		if !want {
			return after(got)
		}
		return eventually("true", got)
	}
}

func nullKey(n *node, topic string) string {
	b := batch.NewBuilder(batch.Plain(batch.NoCodec))
	b.Add(time.Now().UnixMilli(), nil, []byte("v"))
	return n.send(topic, b.Bytes())
}

func TestLogKeys(t *testing.T) {
	t.Parallel()
	type line struct {
		key, topicKey, value string
		with                 []string // other settings the observation needs
		see                  look
		plain                look // where it differs without the key; nil: the same
		without, want        string
	}
	mib := "1048576"
	compacted := []string{"log.cleanup.policy=compact", "log.segment.bytes=" + mib, "log.cleaner.backoff.ms=10"}
	lines := []line{
		{"log.cleaner.min.compaction.lag.ms", "min.compaction.lag.ms", "3600000", compacted, compacts(false), compacts(true), "true", "false"},
		{"log.cleaner.min.cleanable.ratio", "min.cleanable.dirty.ratio", "1", compacted, compacts(false), compacts(true), "true", "false"},
		{"log.cleaner.max.compaction.lag.ms", "max.compaction.lag.ms", "1", append(compacted, "log.cleaner.min.cleanable.ratio=1"), compacts(true), compacts(false), "false", "true"},
		{"message.max.bytes", "max.message.bytes", "1000", nil, sends(2000, batch.NoCodec, 0), nil, "NONE", "MESSAGE_TOO_LARGE"},
		{"max.decompressed.message.bytes", "", "10000", nil, sends(20_000, batch.Gzip, 0), nil, "NONE", "MESSAGE_TOO_LARGE"},
		{"compression.type", "", "zstd", nil, codec, nil, "lz4", "zstd"},
		{"compression.type", "", "uncompressed", nil, codec, nil, "lz4", "none"},
		{"compression.gzip.level", "", "1", []string{"compression.type=gzip"}, packs(batch.Gzip, 1), nil, "as level 1: false", "as level 1: true"},
		{"compression.lz4.level", "", "1", []string{"compression.type=lz4"}, packs(batch.LZ4, 1), nil, "as level 1: false", "as level 1: true"},
		{"compression.zstd.level", "", "19", []string{"compression.type=zstd"}, packs(batch.Zstd, 19), nil, "as level 19: false", "as level 19: true"},
		{"log.cleanup.policy", "cleanup.policy", "compact", nil, nullKey, nil, "NONE", "INVALID_RECORD"},
		{"log.message.timestamp.type", "message.timestamp.type", "LogAppendTime", nil, stamps, nil, "append time false", "append time true"},
		{"log.message.timestamp.before.max.ms", "message.timestamp.before.max.ms", "1000", nil, sends(10, batch.NoCodec, time.Minute), nil, "NONE", "INVALID_TIMESTAMP"},
		{"log.message.timestamp.after.max.ms", "message.timestamp.after.max.ms", "1000", nil, sends(10, batch.NoCodec, -time.Minute), nil, "NONE", "INVALID_TIMESTAMP"},
		{"log.segment.bytes", "segment.bytes", mib, nil, segments(600_000, 3, 0), nil, "1 segments", "3 segments"},
		{"log.roll.ms", "segment.ms", "60000", nil, segments(10, 3, 2*time.Minute), nil, "1 segments", "3 segments"},
		{"log.roll.hours", "", "1", nil, segments(10, 3, 2*time.Hour), nil, "1 segments", "3 segments"},
		{"log.index.size.max.bytes", "segment.index.bytes", "24", []string{"log.index.interval.bytes=0"}, segments(10, 6, 0), nil, "1 segments", "3 segments"},
		{"log.index.interval.bytes", "index.interval.bytes", "0", []string{"log.index.size.max.bytes=24"}, segments(10, 6, 0), nil, "1 segments", "3 segments"},
		{"log.retention.ms", "retention.ms", "60000", nil, retention(10, time.Hour, "3"), retention(10, time.Hour, "0"), "0", "3"},
		{"log.retention.minutes", "", "1", nil, retention(10, time.Hour, "3"), nil, "", "3"},
		{"log.retention.hours", "", "1", nil, retention(10, 2*time.Hour, "3"), nil, "", "3"},
		{"log.retention.bytes", "retention.bytes", "700000", []string{"log.segment.bytes=" + mib}, retention(600_000, 0, "1"), retention(600_000, 0, "0"), "0", "1"},
		{"log.flush.interval.messages", "flush.messages", "1", nil, flushed("1"), flushed("0"), "0", "1"},
		{"log.flush.interval.ms", "flush.ms", "10", nil, flushed("1"), nil, "", "1"},
		{"log.flush.scheduler.interval.ms", "", "10", nil, flushed("1"), nil, "", "1"},
	}
	for _, l := range lines {
		t.Run(l.key+"="+l.value, func(t *testing.T) {
			t.Parallel()
			check := func(n *node, how, topic, want string, see look) {
				t.Helper()
				if got := see(n, topic); got != want {
					t.Errorf("%s: %s, want %s", how, got, want)
				}
			}
			readOnly := l.key == "log.flush.scheduler.interval.ms" || strings.HasSuffix(l.key, ".hours") || strings.HasSuffix(l.key, ".minutes")
			if l.topicKey == "" && !readOnly {
				l.topicKey = l.key
			}
			if l.plain == nil {
				l.plain = l.see
			}
			n := run(t, t.TempDir(), append(l.with, l.key+"="+l.value)...)
			n.create("t", 1, nil)
			check(n, "in the file", "t", l.want, l.see)
			n.stop()
			if readOnly {
				return
			}
			n = run(t, t.TempDir(), l.with...)
			if l.without != "" {
				n.create("plain", 1, nil)
				check(n, "not set", "plain", l.without, l.plain)
			}
			n.create("own", 1, map[string]*string{l.topicKey: &l.value})
			check(n, "of the topic", "own", l.want, l.see)
			n.create("live", 1, nil)
			n.set(l.key, l.value, 1) // of this broker; TestConnectionKeys sets the default of all
			check(n, "while running", "live", l.want, l.see)
			n.stop()
			n = run(t, n.dir, l.with...)
			n.create("later", 1, nil)
			check(n, "after a restart", "later", l.want, l.see)
		})
	}
}

// The cleaner's bounds hold, and a change of them does at once: to a run under way too.
func TestCleanerKeys(t *testing.T) {
	t.Parallel()
	for _, l := range []struct{ key, none, some string }{
		{"log.cleaner.io.max.bytes.per.second", "1", "1e9"},
		{"log.cleaner.threads", "0", "1"},
	} {
		t.Run(l.key, func(t *testing.T) {
			t.Parallel()
			n := run(t, t.TempDir(), "log.cleanup.policy=compact", "log.segment.bytes=1048576", "log.cleaner.backoff.ms=10", l.key+"="+l.none)
			n.create("t", 1, nil)
			if got := compacts(false)(n, "t"); got != "false" {
				t.Fatalf("%s=%s: compacted %s", l.key, l.none, got)
			}
			n.set(l.key, l.some)
			if got := compacts(true)(n, "t"); got != "true" {
				t.Fatalf("%s=%s: compacted %s", l.key, l.some, got)
			}
			n.set(l.key, l.none) // and a stop waits for no one
			n.stop()
		})
	}
}

func TestDeleteDelay(t *testing.T) {
	t.Parallel()
	see := func(overrides ...string) (left func() string) {
		n := run(t, t.TempDir(), append(overrides, "log.segment.bytes=1048576")...)
		n.create("t", 1, nil)
		for range 3 {
			n.send("t", records(600_000, batch.NoCodec, 0))
		}
		if _, err := n.a.DeleteRecords(n.Context(), kadm.Offsets{"t": {0: {Topic: "t", At: 3}}}); err != nil {
			t.Fatal(err)
		}
		return func() string { return fmt.Sprint(len(n.files("t", ".deleted"))) }
	}
	soon, late := see("log.segment.delete.delay.ms=0"), see()
	if got := eventually("0", soon); got != "0" {
		t.Errorf("log.segment.delete.delay.ms=0: %s files are left", got)
	}
	if late() == "0" {
		t.Error("log.segment.delete.delay.ms=60000: the files are gone at once")
	}
}

func TestProducerExpiration(t *testing.T) {
	t.Parallel()
	n := run(t, t.TempDir())
	n.create("t", 1, nil)
	at := func(sequence int32) batch.View {
		b := batch.NewBuilder(batch.BuilderOptions{ProducerID: 7, BaseSequence: sequence})
		b.Add(time.Now().UnixMilli(), nil, []byte("v"))
		return b.Bytes()
	}
	n.send("t", at(0))
	if got := n.send("t", at(9)); got != "OUT_OF_ORDER_SEQUENCE_NUMBER" {
		t.Fatalf("a sequence with a gap: %s", got)
	}
	n.set("producer.id.expiration.ms", "1") // the check interval is in quick
	if got := eventually("NONE", func() string { return n.send("t", at(9)) }); got != "NONE" {
		t.Errorf("producer.id.expiration.ms=1: a forgotten producer's sequence: %s", got)
	}
}

// frame sends bytes as one request and gives what comes back, or the error.
func frame(c net.Conn, body []byte) ([]byte, error) {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return nil, err
	}
	return reply(c)
}

func reply(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}

// hello is ApiVersions 0.
var hello = []byte{0, 18, 0, 0, 0, 0, 0, 1, 255, 255}

// alive dials and says whether the broker takes the connection.
func (n *node) alive(addr string) (net.Conn, bool) {
	n.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = c.Close() })
	_, err = frame(c, hello)
	return c, err == nil
}

func TestConnectionKeys(t *testing.T) {
	t.Parallel()
	// open opens six and tells how many are taken.
	open := func(n *node, addr string) string {
		taken := 0
		var all []net.Conn
		for range 6 {
			c, ok := n.alive(addr)
			if all = append(all, c); ok {
				taken++
			}
		}
		for _, c := range all {
			_ = c.Close()
		}
		return strconv.Itoa(taken)
	}
	listeners := []string{"listeners=PLAINTEXT://127.0.0.1:0,ADMIN://127.0.0.1:0", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,ADMIN:PLAINTEXT"}
	for _, l := range []struct{ key, value, want string }{
		{"listener.name.plaintext.max.connections", "3", "3"},
		{"max.connections.per.ip.overrides", "127.0.0.1:5", "5"},
		{"max.connections.per.ip.overrides", "localhost:4", "4"},
		{"max.connections.per.ip", "4", "4"},
		{"max.connections", "3", "3"},
		{"max.connections", "0", "0"},
	} {
		t.Run(l.key+"="+l.value, func(t *testing.T) {
			t.Parallel()
			see := func(n *node, how string) {
				t.Helper()
				n.c.Close() // the bounds count it too
				if got := eventually(l.want, func() string { return open(n, n.s.Addr()) }); got != l.want {
					t.Errorf("%s: %s of 6 connections are taken, want %s", how, got, l.want)
				}
			}
			see(run(t, t.TempDir(), append(listeners, l.key+"="+l.value)...), "in the file")
			n := run(t, t.TempDir(), listeners...)
			if got := open(n, n.s.Addr()); got != "6" {
				t.Errorf("not set: %s of 6 are taken", got)
			}
			n.set(l.key, l.value)
			see(n, "while running")
			n.stop()
			n = run(t, n.dir, listeners...)
			see(n, "after a restart")
		})
	}
	t.Run("max.connection.creation.rate=20", func(t *testing.T) {
		t.Parallel()
		took := func(n *node) time.Duration {
			begun := time.Now()
			for range 26 { // 20 at once, then one each 50 ms
				if _, ok := n.alive(n.s.Addr()); !ok {
					t.Fatal("a connection was refused, not held back")
				}
			}
			return time.Since(begun)
		}
		n := run(t, t.TempDir())
		if d := took(n); d > 200*time.Millisecond {
			t.Errorf("not set: 26 connections took %v", d)
		}
		n.set("max.connection.creation.rate", "20")
		if d := took(n); d < 200*time.Millisecond {
			t.Errorf("while running: 26 connections took %v, want 250 ms", d)
		}
	})
	t.Run("connections.max.idle.ms=200", func(t *testing.T) {
		t.Parallel()
		n := run(t, t.TempDir(), "connections.max.idle.ms=200")
		c, _ := n.alive(n.s.Addr())
		begun := time.Now()
		_ = c.SetDeadline(begun.Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err != io.EOF || time.Since(begun) < 150*time.Millisecond {
			t.Errorf("an idle connection ended with %v after %v", err, time.Since(begun))
		}
	})
	t.Run("socket.request.max.bytes=1000", func(t *testing.T) {
		t.Parallel()
		n := run(t, t.TempDir(), "socket.request.max.bytes=1000")
		for size, want := range map[int]bool{1000: true, 1001: false} {
			c, _ := n.alive(n.s.Addr())
			if _, err := frame(c, append(hello, make([]byte, size-len(hello))...)); (err == nil) != want {
				t.Errorf("a request of %d bytes: %v", size, err)
			}
		}
	})
	t.Run("queued.max.requests=1", func(t *testing.T) {
		t.Parallel()
		made := func(overrides ...string) bool {
			n := run(t, t.TempDir(), overrides...)
			n.create("t", 1, nil)
			// A fetch that waits for long, then two topics on the same connection.
			c, err := net.Dial("tcp", n.s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			f := kmsgs.NewPtrFetchRequest()
			f.Version, f.MaxWaitMillis, f.MinBytes, f.MaxBytes = 4, 800, 1, 1000
			ft := kmsgs.NewFetchRequestTopic()
			ft.Topic = "t"
			fp := kmsgs.NewFetchRequestTopicPartition()
			fp.PartitionMaxBytes = 1000
			ft.Partitions = append(ft.Partitions, fp)
			f.Topics = append(f.Topics, ft)
			var out []byte
			add := func(r kmsgs.Request) { out = append(out, kmsgs.NewRequestFormatter().AppendRequest(nil, r, 1)...) }
			add(f)
			for _, name := range []string{"a", "b", "c"} {
				m := kmsgs.NewPtrMetadataRequest()
				m.Version, m.AllowAutoTopicCreation = 4, true
				mt := kmsgs.NewMetadataRequestTopic()
				mt.Topic = &name
				m.Topics = append(m.Topics, mt)
				add(m)
			}
			if _, err := c.Write(out); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			l, err := n.a.ListTopics(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return l.Has("c")
		}
		if !made() {
			t.Error("not set: the third request behind a waiting fetch was not worked on")
		}
		if made("queued.max.requests=1") {
			t.Error("the third request behind a waiting fetch was worked on")
		}
	})
}

// What the rest of the keys do, each seen once.
func TestBrokerKeys(t *testing.T) {
	t.Parallel()
	metadata := func(n *node, topic string) *kmsgs.MetadataResponse {
		m := kmsgs.NewPtrMetadataRequest()
		m.AllowAutoTopicCreation = true
		mt := kmsgs.NewMetadataRequestTopic()
		mt.Topic = &topic
		m.Topics = append(m.Topics, mt)
		return ask[*kmsgs.MetadataResponse](n, m)
	}
	made := func(n *node) string { // what asking for a topic makes
		r := metadata(n, "auto").Topics[0]
		return fmt.Sprintf("%d partitions, %s", len(r.Partitions), code(r.ErrorCode))
	}
	broker := func(n *node) string {
		b := metadata(n, "auto").Brokers[0]
		rack := "none"
		if b.Rack != nil {
			rack = *b.Rack
		}
		return fmt.Sprintf("node %d at %s, rack %s", b.NodeID, b.Host, rack)
	}
	topicValue := func(key string) func(n *node) string {
		return func(n *node) string {
			n.create("t", 1, nil)
			all, err := n.a.DescribeTopicConfigs(n.Context(), "t")
			if err != nil {
				return err.Error()
			}
			for _, c := range all[0].Configs {
				if c.Key == key {
					return fmt.Sprintf("%s from %s", c.MaybeValue(), c.Source)
				}
			}
			return "not there"
		}
	}
	offsets := func(n *node) string { // makes __consumer_offsets and describes it
		join(n, "g", 10_000, "")
		d, err := n.a.ListTopicsWithInternal(n.Context(), "__consumer_offsets")
		if err != nil {
			return err.Error()
		}
		all, err := n.a.DescribeTopicConfigs(n.Context(), "__consumer_offsets")
		size := "1048576"
		for _, c := range all[0].Configs {
			if c.Source.String() == "DYNAMIC_TOPIC_CONFIG" && strings.HasSuffix(c.Key, "segment.bytes") {
				size = c.MaybeValue()
			}
		}
		ps := d["__consumer_offsets"].Partitions
		return fmt.Sprintf("%d partitions of %d replicas, segments of %s, %v", len(ps), len(ps[0].Replicas), size, err)
	}
	fetched := func(n *node) string { // records of the first fetch of three batches of 1,000 bytes
		n.create("t", 1, nil)
		for range 3 {
			n.send("t", records(1000, batch.NoCodec, 0))
		}
		r := fetch(n, "t")
		return fmt.Sprintf("%d KB, session %t", len(r.Topics[0].Partitions[0].RecordBatches)/1000, r.SessionID != 0)
	}
	for _, l := range []struct {
		set       string // separated by blanks
		see       func(n *node) string
		not, want string // without and with the settings; an empty not is not looked at
	}{
		{"num.partitions=3", made, "1 partitions, NONE", "3 partitions, NONE"},
		{"auto.create.topics.enable=false", made, "", "0 partitions, UNKNOWN_TOPIC_OR_PARTITION"},
		{"default.replication.factor=2", made, "", "0 partitions, INVALID_REPLICATION_FACTOR"},
		{"node.id=7 broker.rack=r1", broker, "node 1 at 127.0.0.1, rack none", "node 7 at 127.0.0.1, rack r1"},
		{"broker.id=7", broker, "", "node 7 at 127.0.0.1, rack none"},
		{"delete.topic.enable=false", func(n *node) string {
			n.create("t", 1, nil)
			r, err := n.a.DeleteTopics(n.Context(), "t")
			return fmt.Sprint(err, " ", code0(r["t"].Err))
		}, "<nil> NONE", "<nil> TOPIC_DELETION_DISABLED"},
		{"min.insync.replicas=2", func(n *node) string {
			n.create("t", 1, nil)
			return n.send("t", records(10, batch.NoCodec, 0))
		}, "", "NONE"}, // never more than the topic has replicas
		{"log.retention.minutes=3", topicValue("retention.ms"), "604800000 from DEFAULT_CONFIG", "180000 from DEFAULT_CONFIG"},
		{"log.roll.hours=2", topicValue("segment.ms"), "", "7200000 from DEFAULT_CONFIG"},
		{"log.roll.jitter.hours=1", topicValue("segment.jitter.ms"), "0 from DEFAULT_CONFIG", "3600000 from DEFAULT_CONFIG"},
		{"log.roll.jitter.ms=5", topicValue("segment.jitter.ms"), "", "5 from STATIC_BROKER_CONFIG"},
		{"offsets.topic.num.partitions=4 offsets.topic.segment.bytes=2097152", offsets, "1 partitions of 1 replicas, segments of 104857600, <nil>",
			"4 partitions of 1 replicas, segments of 2097152, <nil>"},
		{"offsets.topic.segment.bytes=1000", offsets, "", "1 partitions of 1 replicas, segments of 1000, <nil>"},
		{"group.max.session.timeout.ms=10000", func(n *node) string { return join(n, "g", 10_001, "") }, "MEMBER_ID_REQUIRED", "INVALID_SESSION_TIMEOUT"},
		{"group.min.session.timeout.ms=9000", func(n *node) string { return join(n, "g", 8999, "") }, "MEMBER_ID_REQUIRED", "INVALID_SESSION_TIMEOUT"},
		{"group.max.size=1", func(n *node) string {
			join(n, "g", 10_000, "i1")
			return join(n, "g", 10_000, "i2")
		}, "", "GROUP_MAX_SIZE_REACHED"},
		{"group.initial.rebalance.delay.ms=300", func(n *node) string {
			begun := time.Now()
			join(n, "g", 10_000, "i1")
			return fmt.Sprintf("waited %t", time.Since(begun) >= 300*time.Millisecond)
		}, "waited false", "waited true"},
		{"offset.metadata.max.bytes=3", func(n *node) string {
			join(n, "g", 10_000, "")
			n.create("t", 1, nil)
			r, err := n.a.CommitOffsets(n.Context(), "g", kadm.Offsets{"t": {0: {Topic: "t", At: 1, Metadata: "four"}}})
			return fmt.Sprint(err, " ", code0(r["t"][0].Err))
		}, "<nil> NONE", "<nil> OFFSET_METADATA_TOO_LARGE"},
		{"log.cleaner.enable=false log.cleanup.policy=compact log.segment.bytes=1048576 log.cleaner.backoff.ms=10", func(n *node) string {
			n.create("t", 1, nil)
			return compacts(false)(n, "t")
		}, "", "false"},
		{"fetch.max.bytes=2200", fetched, "3 KB, session true", "2 KB, session true"},
		{"max.incremental.fetch.session.cache.slots=0", fetched, "", "3 KB, session false"},
		{"max.request.partition.size.limit=2", func(n *node) string {
			n.create("t", 5, nil)
			req := kmsgs.NewPtrDescribeTopicPartitionsRequest()
			rt := kmsgs.NewDescribeTopicPartitionsRequestTopic()
			rt.Topic = "t"
			req.Topics = append(req.Topics, rt)
			return fmt.Sprint(len(ask[*kmsgs.DescribeTopicPartitionsResponse](n, req).Topics[0].Partitions))
		}, "5", "2"},
		{"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0 controller.listener.names=CONTROLLER listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
			func(n *node) string { return fmt.Sprint(len(n.s.Addrs())) }, "1", "1"},
		{"advertised.listeners=PLAINTEXT://localhost:0", broker, "", "node 1 at localhost, rack none"},
		{"weir.http.listener=127.0.0.1:0", func(n *node) string { return fmt.Sprint(n.s.HTTPAddr() != "") }, "false", "true"},
	} {
		t.Run(l.set, func(t *testing.T) {
			t.Parallel()
			if l.not != "" {
				if got := l.see(run(t, t.TempDir())); got != l.not {
					t.Errorf("not set: %s, want %s", got, l.not)
				}
			}
			if got := l.see(run(t, t.TempDir(), strings.Fields(l.set)...)); got != l.want {
				t.Errorf("%s, want %s", got, l.want)
			}
		})
	}
	t.Run("log.dirs and metadata.log.dir", func(t *testing.T) {
		t.Parallel()
		a, b, meta := t.TempDir(), t.TempDir(), t.TempDir()
		n := run(t, t.TempDir(), "log.dirs="+a+","+b, "metadata.log.dir="+meta)
		n.create("t", 4, nil)
		for _, d := range []string{a, b} {
			if got, _ := filepath.Glob(filepath.Join(d, "t-*")); len(got) != 2 {
				t.Errorf("%s has %v, want 2 of 4 partitions", d, got)
			}
		}
		if got, _ := os.ReadDir(meta); len(got) == 0 {
			t.Error("metadata.log.dir is empty")
		}
	})
}

// join asks to join a group and gives the answer's code. With an instance name the
// member is a static one, who is not asked to come again with an id.
func join(n *node, group string, sessionMs int32, instance string) string {
	n.Helper()
	req := kmsgs.NewPtrJoinGroupRequest()
	req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType = group, sessionMs, 100, "consumer"
	if instance != "" {
		req.InstanceID = &instance
	}
	p := kmsgs.NewJoinGroupRequestProtocol()
	p.Name = "range"
	req.Protocols = append(req.Protocols, p)
	return code(ask[*kmsgs.JoinGroupResponse](n, req).ErrorCode)
}

func code0(err error) string {
	if err == nil {
		return "NONE"
	}
	return strings.TrimSuffix(strings.Fields(err.Error())[0], ":")
}

// fetch is the first of a session, from the beginning of a topic.
func fetch(n *node, topic string) *kmsgs.FetchResponse {
	n.Helper()
	f := kmsgs.NewPtrFetchRequest()
	f.MaxWaitMillis, f.MinBytes, f.MaxBytes, f.SessionEpoch = 1000, 1, 1<<20, 0
	ft := kmsgs.NewFetchRequestTopic()
	ft.Topic = topic
	d, err := n.a.ListTopics(n.Context(), topic)
	if err != nil {
		n.Fatal(err)
	}
	ft.TopicID = d[topic].ID
	fp := kmsgs.NewFetchRequestTopicPartition()
	fp.PartitionMaxBytes = 1 << 20
	ft.Partitions = append(ft.Partitions, fp)
	f.Topics = append(f.Topics, ft)
	return ask[*kmsgs.FetchResponse](n, f)
}

// Values that do not go together are refused, at the making of a topic and later.
func TestTopicKeysTogether(t *testing.T) {
	t.Parallel()
	n := run(t, t.TempDir())
	create := func(config ...string) string {
		m := map[string]*string{}
		for i := 0; i < len(config); i += 2 {
			m[config[i]] = &config[i+1]
		}
		r, err := n.a.CreateTopic(t.Context(), 1, 1, m, "t")
		return code0(err) + " " + r.ErrMessage
	}
	f := func(got, want string) {
		t.Helper()
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	lags := "INVALID_CONFIG conflict topic config setting min.compaction.lag.ms (20) > max.compaction.lag.ms (10)"
	f(create("min.compaction.lag.ms", "20", "max.compaction.lag.ms", "10"), lags)
	f(create("remote.storage.enable", "true"), "INVALID_CONFIG")
	f(create("internal.segment.bytes", "-5"), "INVALID_CONFIG")
	f(create("max.compaction.lag.ms", "10"), "NONE")
	value := "20"
	r, err := n.a.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.compaction.lag.ms", Value: &value}}, "t")
	if err != nil {
		t.Fatal(err)
	}
	f(code0(r[0].Err)+" "+r[0].ErrMessage, lags)
}

// The guides' configurations start a node, as far as one node goes.
func TestGuidesStart(t *testing.T) {
	t.Parallel()
	env, err := os.ReadFile("internal/config/testdata/guides/compose.env")
	if err != nil {
		t.Fatal(err)
	}
	one := []string{"log.dirs=" + t.TempDir(), "listeners=PLAINTEXT://127.0.0.1:0", "default.replication.factor=1", "group.initial.rebalance.delay.ms=0"}
	for _, l := range []struct {
		file       string
		env        []string
		with       []string
		partitions int
		codec      string
	}{
		{"", strings.Fields(string(env)), []string{"advertised.listeners=PLAINTEXT://127.0.0.1:0"}, 12, "lz4"},
		{"broker.properties", nil, nil, 12, "none"},
		{"kraft.properties", nil, []string{"controller.quorum.voters=1@broker1:9093", "controller.listener.names=CONTROLLER",
			"listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "advertised.listeners=PLAINTEXT://127.0.0.1:0"}, 24, "none"},
	} {
		o := weir.Options{FileName: l.file, Env: l.env, Overrides: append(append(one, "log.dirs="+t.TempDir()), l.with...)}
		if l.file != "" {
			if o.Properties, err = os.ReadFile("internal/config/testdata/guides/" + l.file); err != nil {
				t.Fatal(err)
			}
		}
		s, err := weir.Start(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", l.file, err)
			continue
		}
		c := client(t, s, kgo.AllowAutoTopicCreation())
		n := &node{t, s, "", c, kadm.NewClient(c)}
		produce(t, c, "t", 0, 3)
		d, err := n.a.ListTopics(t.Context(), "t")
		if err != nil || len(d["t"].Partitions) != l.partitions {
			t.Errorf("%s: %d partitions, want %d, %v", l.file, len(d["t"].Partitions), l.partitions, err)
		}
		files, _ := filepath.Glob(filepath.Join(s.DataDirs()[0], "t-*", "*.log"))
		for _, f := range files {
			if data, _ := os.ReadFile(f); len(data) > 0 {
				if v, _, err := batch.Next(data); err != nil || v.Codec().String() != l.codec {
					t.Errorf("%s: stored with %v, want %s, %v", l.file, v.Codec(), l.codec, err)
				}
			}
		}
		n.stop()
	}
}
