package weir_test

// Whose folder is it: B167. A folder of another cluster or node is refused with
// both names, one that lost its name is refused, several that agree start.

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir"
)

func TestIdentity(t *testing.T) {
	home := func() (dirs []string, cluster string) {
		dirs = []string{t.TempDir(), t.TempDir()}
		s := start(t, weir.Options{Overrides: []string{"log.dirs=" + strings.Join(dirs, ",")}})
		cluster = s.ClusterID()
		if _, err := kadm.NewClient(client(t, s)).CreateTopics(t.Context(), 4, 1, nil, "t"); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return dirs, cluster
	}
	var env []string
	refused := func(what string, overrides []string, want ...string) {
		t.Helper()
		s, err := weir.Start(t.Context(), weir.Options{Overrides: overrides, Env: env})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: it started", what)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", what, err, w)
			}
		}
	}
	logDirs := func(dirs ...string) string { return "log.dirs=" + strings.Join(dirs, ",") }
	a, clusterA := home()
	b, clusterB := home()

	env = []string{"CLUSTER_ID=" + clusterB}
	refused("a cluster id that is another's", []string{logDirs(a...)}, clusterA, clusterB)
	env = nil
	refused("folders of two clusters", []string{logDirs(a[0], b[0])}, clusterA, clusterB, a[0], b[0])
	refused("another node", []string{logDirs(a...), "node.id=5"}, "node 1", "node is 5", a[0])
	meta := filepath.Join(a[1], "meta.properties")
	kept, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(meta); err != nil {
		t.Fatal(err)
	}
	refused("the id file of one folder is missing", []string{logDirs(a...)}, a[1], "meta.properties", "put that file back")
	if _, err := os.Stat(meta); err == nil {
		t.Error("a folder with data was given a new identity")
	}
	write(t, meta, string(kept))
	s := start(t, weir.Options{Overrides: []string{logDirs(a...)}})
	if s.ClusterID() != clusterA {
		t.Errorf("cluster %s, want %s", s.ClusterID(), clusterA)
	}
	if d, err := kadm.NewClient(client(t, s)).ListTopics(t.Context()); err != nil || len(d["t"].Partitions) != 4 {
		t.Errorf("the topic has %d partitions, %v", len(d["t"].Partitions), err)
	}
}

// TestListenersBound is B189 and B190 as clients see them: what Metadata says
// for each way to listen.
func TestListenersBound(t *testing.T) {
	free := func() string {
		l, err := net.Listen("tcp", "[::1]:0")
		if err != nil {
			t.Skipf("no IPv6 here: %v", err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	told := func(dial string, overrides ...string) string {
		t.Helper()
		s := start(t, weir.Options{DataDir: t.TempDir(), Overrides: overrides})
		defer s.Close()
		if dial == "" {
			dial = s.Addr()
		}
		c, err := kgo.NewClient(kgo.SeedBrokers(dial))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m, err := kadm.NewClient(c).BrokerMetadata(t.Context())
		if err != nil || len(m.Brokers) != 1 {
			t.Fatalf("%v: %v, %v", overrides, m.Brokers, err)
		}
		_, bound, _ := net.SplitHostPort(s.Addrs()[0].Addr)
		if got := fmt.Sprint(m.Brokers[0].Port); got != bound {
			t.Errorf("%v: told port %s, bound is %s", overrides, got, bound)
		}
		return m.Brokers[0].Host
	}
	if host := told("", "listeners=PLAINTEXT://127.0.0.1:0", "advertised.listeners=PLAINTEXT://localhost:0"); host != "localhost" {
		t.Errorf("told %s", host)
	}
	port := free()
	protocols := "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT"
	for _, both := range []string{"PLAINTEXT://0.0.0.0:%s,SIX://[::]:%s", "SIX://[::]:%s,PLAINTEXT://127.0.0.1:%s", "PLAINTEXT://0.0.0.0:%s,PLAINTEXT://[::]:%s"} {
		for _, dial := range []string{"127.0.0.1:" + port, "[::1]:" + port} {
			host := told(dial, "listeners="+fmt.Sprintf(both, port, port), protocols)
			if want, _, _ := net.SplitHostPort(dial); host != want {
				t.Errorf("%s: dialled %s, told %s", both, dial, host)
			}
		}
	}
	port = free()
	if host := told("[::1]:"+port, "listeners=PLAINTEXT://[::1]:"+port); host != "::1" {
		t.Errorf("listener [::1]: told %s, want ::1 without brackets", host)
	}
}
