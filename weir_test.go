package weir_test

// The embeddable broker from outside, through franz-go: many at once, a walk
// through write, group, read, a restart on the same folder, bad configurations.

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/weirmq/weir"
)

func start(t *testing.T, o weir.Options) *weir.Server {
	t.Helper()
	s, err := weir.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func client(t *testing.T, s *weir.Server, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.Addr()), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func consume(t *testing.T, c *kgo.Client, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	for len(got) < n {
		fs := c.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(got), n, err)
		}
		fs.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	return got
}

func produce(t *testing.T, c *kgo.Client, topic string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		c.Produce(t.Context(), &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "v%d", i)}, func(r *kgo.Record, err error) {
			if err != nil {
				t.Errorf("record %s: %v", r.Value, err)
			}
		})
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWriteReadRestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, weir.Options{DataDir: dir, Overrides: []string{"group.initial.rebalance.delay.ms=0"}})
	cluster := s.ClusterID()
	c := client(t, s, kgo.AllowAutoTopicCreation())
	produce(t, c, "orders", 0, 100)
	g := client(t, s, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	consume(t, g, 100)
	if err := g.CommitUncommittedOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Close()
	c.Close()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}

	s = start(t, weir.Options{DataDir: dir, Overrides: []string{"group.initial.rebalance.delay.ms=0"}})
	if s.ClusterID() != cluster {
		t.Errorf("cluster id changed from %s to %s over a restart", cluster, s.ClusterID())
	}
	produce(t, client(t, s), "orders", 100, 110)
	g = client(t, s, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"))
	if got := consume(t, g, 10); len(got) != 10 || got[0] != "v100" {
		t.Errorf("the group went on with %v, want v100 to v109", got)
	}
}

func TestManyAtOnceLeaveNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var servers []*weir.Server
	for range 5 {
		s, err := weir.Start(t.Context(), weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	for _, s := range servers {
		c, err := kgo.NewClient(kgo.SeedBrokers(s.Addr()), kgo.AllowAutoTopicCreation())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ProduceSync(t.Context(), kgo.StringRecord("x"), &kgo.Record{Topic: "a", Value: []byte("y")}).FirstErr(); err == nil {
			t.Error("a record without a topic was taken")
		}
		if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Value: []byte("y")}).FirstErr(); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	for _, s := range servers {
		dirs := s.DataDirs()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dirs[0]); !os.IsNotExist(err) {
			t.Errorf("temporary folder %s is still there", dirs[0])
		}
	}
}

func TestAdminWalk(t *testing.T) {
	s := start(t, weir.Options{})
	a := kadm.NewClient(client(t, s))
	ctx := t.Context()
	if _, err := a.CreateTopic(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("60000")}, "t"); err != nil {
		t.Fatal(err)
	}
	cfg, err := a.DescribeTopicConfigs(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range cfg[0].Configs {
		found = found || c.Key == "retention.ms" && c.MaybeValue() == "60000" && len(c.Synonyms) > 0
	}
	if !found {
		t.Error("retention.ms=60000 is not described with its own value as synonym")
	}
	if _, err := a.CreatePartitions(ctx, 2, "t"); err != nil {
		t.Fatal(err)
	}
	d, err := a.ListTopics(ctx, "t")
	if err != nil || len(d["t"].Partitions) != 5 {
		t.Fatalf("%d partitions after growing to 5, %v", len(d["t"].Partitions), err)
	}
	if _, err := a.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.retention.ms", Value: kadm.StringPtr("12345")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DeleteTopics(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	if d, err = a.ListTopics(ctx); err != nil || d.Has("t") {
		t.Errorf("the deleted topic is listed, %v", err)
	}
}

// What a start refuses, and what it says then; B167 among them.
func TestStartRefusals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	used := t.TempDir()
	s := start(t, weir.Options{DataDir: used})
	foreign, orphan, newer := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(foreign, "meta.properties"), "version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=x\n")
	if err := os.Mkdir(filepath.Join(orphan, "orders-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(newer, "meta.properties"), "version=1\ncluster.id=abc\nnode.id=1\nweir.format=99\n")
	headless := closedFolder(t)
	if err := os.RemoveAll(filepath.Join(headless, "__weir_metadata")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(headless, "orders-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	emptied := closedFolder(t)
	files, err := filepath.Glob(filepath.Join(emptied, "__weir_metadata", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no metadata log: %v", err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(emptied, "orders-0"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		o    weir.Options
		want []string
	}{
		{"port taken", weir.Options{Overrides: []string{"listeners=PLAINTEXT://" + taken.Addr().String()}}, []string{"is taken", "listeners"}},
		{"folder in use", weir.Options{DataDir: used}, []string{"in use", used, "--data-dir"}},
		{"Kafka's folder", weir.Options{DataDir: foreign}, []string{"Apache Kafka", foreign}},
		{"folder without a name", weir.Options{DataDir: orphan}, []string{"orders-0", "meta.properties"}},
		{"metadata gone", weir.Options{DataDir: headless}, []string{"orders-0", "__weir_metadata", "put that folder back"}},
		{"metadata log's files gone", weir.Options{DataDir: emptied}, []string{"orders-0", "__weir_metadata", "put that folder back"}},
		{"newer folder", weir.Options{DataDir: newer}, []string{"99", "newer"}},
		{"bad value", weir.Options{Overrides: []string{"num.partitions=none"}}, []string{"num.partitions", "none"}},
		{"other node id", weir.Options{DataDir: closedFolder(t), Overrides: []string{"node.id=7"}}, []string{"node 1", "7"}},
	} {
		got, err := weir.Start(t.Context(), c.o)
		if err == nil {
			_ = got.Close()
			t.Errorf("%s: it started", c.what)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.what, err, w)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func closedFolder(t *testing.T) string {
	dir := t.TempDir()
	if err := start(t, weir.Options{DataDir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
