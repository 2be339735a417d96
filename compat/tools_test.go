//go:build compat

package compat

// Shows: Kafka 4.4's command line tools against Weir: topics, configs, groups,
// offsets, console producer and consumer, verifiable producer and consumer with
// members that join, leave and die, and the read-only tools people script.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// tool runs one of Kafka's tools to its end; it must succeed.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := tryTool(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// tryTool is tool where failing is part of what is looked at.
func tryTool(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	return tryRun("", filepath.Join(peers(t), "kafka"), append([]string{name, "--bootstrap-server", sharedBroker(t).addr}, args...)...)
}

// shortJVM makes JVMs that live a second start in half the time: no second
// compiler.
func shortJVM(t *testing.T) {
	t.Setenv("KAFKA_OPTS", "-XX:TieredStopAtLevel=1 "+os.Getenv("KAFKA_OPTS"))
}

func wants(t *testing.T, what, out string, want ...string) {
	t.Helper()
	for _, w := range want {
		if ok, err := regexp.MatchString(`(?m)`+w, out); err != nil || !ok {
			t.Errorf("%s: no %q in\n%s", what, w, out)
		}
	}
}

func TestTools(t *testing.T) {
	shortJVM(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"kafka-broker-api-versions", func(t *testing.T) {
			wants(t, "versions", tool(t, "kafka-broker-api-versions"), `Produce\(0\)`, `ApiVersions\(18\)`)
		}},
		{"topics", toolTopics},
		{"configs", toolConfigs},
		{"console and groups", toolConsole},
		{"verifiable consumers", toolVerifiable},
		{"read-only tools", toolReadOnly},
		{"delete records, elect, reassign", toolMoves},
		{"kafka-e2e-latency", func(t *testing.T) {
			out := run(t, "", filepath.Join(peers(t), "kafka"), "kafka-e2e-latency", "--bootstrap-server", sharedBroker(t).addr, "--topic", unique(t), "--num-records", "200", "--producer-acks", "all", "--record-size", "100")
			wants(t, "latency", out, `Avg latency: [\d.]+ ms`, `Percentiles: 50th = \d+`)
		}},
	} {
		t.Run(c.name, c.run)
	}
}

func toolTopics(t *testing.T) {
	topic := unique(t)
	wants(t, "create", tool(t, "kafka-topics", "--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=777000"), "Created topic "+topic)
	if out, err := tryTool(t, "kafka-topics", "--create", "--topic", topic); err == nil || !strings.Contains(out, "already exists") {
		t.Errorf("create again: %v\n%s", err, out)
	}
	tool(t, "kafka-topics", "--create", "--if-not-exists", "--topic", topic)
	wants(t, "list", tool(t, "kafka-topics", "--list"), "^"+topic+"$")
	wants(t, "describe", tool(t, "kafka-topics", "--describe", "--topic", topic), "Topic: "+topic, "TopicId: \\S+", "PartitionCount: 3", "ReplicationFactor: 1", "retention.ms=777000", "Partition: 2\\s+Leader: \\d+\\s+Replicas: \\d+\\s+Isr: \\d+")
	tool(t, "kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
	eventually(t, 20*time.Second, "five partitions", func() (string, bool) {
		out := tool(t, "kafka-topics", "--describe", "--topic", topic)
		return out, strings.Contains(out, "PartitionCount: 5")
	})
	for _, flag := range []string{"--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"} {
		if out := tool(t, "kafka-topics", "--describe", "--topic", topic, flag); strings.Contains(out, "Topic:") {
			t.Errorf("%s: %s", flag, out)
		}
	}
	tool(t, "kafka-topics", "--delete", "--topic", topic)
	eventually(t, 20*time.Second, "deleted", func() (string, bool) {
		out := tool(t, "kafka-topics", "--list")
		return out, !strings.Contains(out, topic)
	})
}

func toolConfigs(t *testing.T) {
	topic := dial(t, sharedBroker(t).addr).topic(1)
	tool(t, "kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "retention.ms=888000,cleanup.policy=[compact,delete]")
	eventually(t, 20*time.Second, "described", func() (string, bool) {
		out := tool(t, "kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
		return out, strings.Contains(out, "retention.ms=888000") && strings.Contains(out, "cleanup.policy=compact,delete")
	})
	tool(t, "kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--delete-config", "retention.ms")
	wants(t, "describe all", tool(t, "kafka-configs", "--describe", "--all", "--entity-type", "topics", "--entity-name", topic), "segment.bytes=1073741824.*DEFAULT_CONFIG:log.segment.bytes=1073741824")
	node := fmt.Sprint(dial(t, sharedBroker(t).addr).metadata().Brokers[0].NodeID)
	tool(t, "kafka-configs", "--alter", "--entity-type", "brokers", "--entity-name", node, "--add-config", "log.cleaner.threads=2")
	eventually(t, 20*time.Second, "described", func() (string, bool) {
		out := tool(t, "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", node)
		return out, strings.Contains(out, "log.cleaner.threads=2") && strings.Contains(out, "DYNAMIC_BROKER_CONFIG")
	})
	tool(t, "kafka-configs", "--alter", "--entity-type", "brokers", "--entity-name", node, "--delete-config", "log.cleaner.threads")
	tool(t, "kafka-configs", "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.cleaner.threads=1")
	tool(t, "kafka-configs", "--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", "log.cleaner.threads")
	wants(t, "all of a broker", tool(t, "kafka-configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", node), "num.network.threads=", "log.retention.hours=168")
	if out, err := tryTool(t, "kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "no.such.key=1"); err == nil || !strings.Contains(out, "InvalidConfiguration") {
		t.Errorf("unknown key: %v\n%s", err, out)
	}
}

func toolConsole(t *testing.T) {
	r := dial(t, sharedBroker(t).addr)
	topic, group := r.topic(2), unique(t)
	kafka, addr := filepath.Join(peers(t), "kafka"), sharedBroker(t).addr
	for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		acks := []string{"0", "1", "all"}[i%3]
		run(t, strings.ReplaceAll(lines(codec, 20), ":", "\t"), kafka, "kafka-console-producer", "--bootstrap-server", addr, "--topic", topic,
			"--compression-codec", codec, "--command-property", "acks="+acks, "--reader-property", "parse.key=true")
	}
	out := tool(t, "kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "60", "--timeout-ms", "20000", "--formatter-property", "print.key=true")
	if got := strings.Count(out, "\tnone") + strings.Count(out, "\tgzip") + strings.Count(out, "\tsnappy") + strings.Count(out, "\tlz4") + strings.Count(out, "\tzstd"); got != 60 {
		t.Errorf("first consumer: %d records of 60\n%.2000s", got, out)
	}
	rest := tool(t, "kafka-console-consumer", "--topic", topic, "--group", group, "--max-messages", "40", "--timeout-ms", "20000")
	if n := strings.Count(rest, "text "); n != 40*20 {
		t.Errorf("resumed consumer: %d records of 40\n%.2000s", n/20, rest)
	}
	wants(t, "list", tool(t, "kafka-consumer-groups", "--list"), "^"+group+"$")
	desc := tool(t, "kafka-consumer-groups", "--describe", "--group", group)
	wants(t, "describe", desc, group+`\s+`+topic+`\s+[01]\s+\d+\s+\d+\s+0\s`)
	wants(t, "state", tool(t, "kafka-consumer-groups", "--describe", "--group", group, "--state"), "Empty")
	wants(t, "to earliest", tool(t, "kafka-consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"), topic+`\s+0\s+0`)
	mid := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000")
	out = tool(t, "kafka-consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, "--to-datetime", mid, "--execute")
	wants(t, "to a time to come: the end", out, topic+`\s+0\s+[1-9]`)
	wants(t, "shift", tool(t, "kafka-consumer-groups", "--reset-offsets", "--group", group, "--topic", topic+":0", "--shift-by", "-5", "--dry-run"), topic+`\s+0\s+\d+`)
	wants(t, "delete offsets", tool(t, "kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", topic), topic)
	wants(t, "delete", tool(t, "kafka-consumer-groups", "--delete", "--group", group), "successful")
	wants(t, "kafka-groups", tool(t, "kafka-groups", "--list"), "GROUP")
}

// verifiable is one kafka-verifiable-consumer process and what it said.
type verifiable struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	next map[string]int64 // partition -> offset after the last one seen
	seen int64
	has  int // partitions now
	wg   sync.WaitGroup
}

func startVerifiable(t *testing.T, topic, group string) *verifiable {
	t.Helper()
	v := &verifiable{next: map[string]int64{}}
	v.cmd = exec.Command(filepath.Join(peers(t), "kafka"), "kafka-verifiable-consumer", "--bootstrap-server", sharedBroker(t).addr, "--topic", topic,
		"--group-id", group, "--reset-policy", "earliest", "--session-timeout", "6000")
	v.cmd.Env = append(os.Environ(), "TOOL_HEAP=128m")
	pipe, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.end(syscall.SIGKILL) })
	v.wg.Go(func() {
		for sc := bufio.NewScanner(pipe); sc.Scan(); {
			var ev struct {
				Name       string
				Count      int64
				Partitions []struct {
					Topic     string
					Partition int
					MinOffset int64
					MaxOffset int64
				}
			}
			if json.Unmarshal(sc.Bytes(), &ev) != nil {
				continue
			}
			v.mu.Lock()
			switch ev.Name {
			case "partitions_assigned":
				v.has = len(ev.Partitions)
			case "partitions_revoked":
				v.has = 0
			case "records_consumed":
				v.seen += ev.Count
				for _, p := range ev.Partitions {
					v.next[fmt.Sprint(p.Partition)] = p.MaxOffset + 1
				}
			}
			v.mu.Unlock()
		}
	})
	return v
}

func (v *verifiable) end(sig syscall.Signal) {
	if v.cmd.ProcessState == nil {
		v.cmd.Process.Signal(sig)
		v.wg.Wait()
		v.cmd.Wait()
	}
}

func (v *verifiable) partitions() int { v.mu.Lock(); defer v.mu.Unlock(); return v.has }

func toolVerifiable(t *testing.T) {
	r := dial(t, sharedBroker(t).addr)
	topic, group := r.topic(6), unique(t)
	write := func(n int) {
		t.Helper()
		out := tool(t, "kafka-verifiable-producer", "--topic", topic, "--max-messages", fmt.Sprint(n), "--acks", "-1")
		wants(t, "verifiable producer", out, fmt.Sprintf(`"acked":%d`, n))
	}
	total := func() (sum int64) {
		got, _ := r.committed(group)
		for _, c := range got {
			sum += c.offset
		}
		return sum
	}
	shares := func(what string, vs ...*verifiable) {
		t.Helper()
		eventually(t, 60*time.Second, what, func() (string, bool) {
			sum, said := 0, ""
			for _, v := range vs {
				n := v.partitions()
				if n == 0 {
					sum = -100
				}
				sum += n
				said += fmt.Sprint(n, " ")
			}
			return said, sum == 6
		})
	}
	a := startVerifiable(t, topic, group)
	shares("one member", a)
	write(500)
	b := startVerifiable(t, topic, group)
	c := startVerifiable(t, topic, group)
	shares("three members", a, b, c)
	write(500)
	b.end(syscall.SIGTERM)
	shares("one left", a, c)
	write(500)
	c.end(syscall.SIGKILL)
	shares("one died", a)
	write(500)
	eventually(t, 30*time.Second, "everything committed", func() (string, bool) {
		n := total()
		return fmt.Sprint(n), n == 2000
	})
	wants(t, "members", tool(t, "kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose"), group+`\s+\S+`)
	a.end(syscall.SIGTERM)
}

func toolReadOnly(t *testing.T) {
	r := dial(t, sharedBroker(t).addr)
	topic := r.topic(2)
	r.put(topic, batchSpec{recs: values(10, 100)})
	wants(t, "kafka-get-offsets", tool(t, "kafka-get-offsets", "--topic", topic), topic+":0:10", topic+":1:0")
	wants(t, "kafka-get-offsets earliest", tool(t, "kafka-get-offsets", "--topic", topic, "--time", "earliest"), topic+":0:0")
	wants(t, "kafka-get-offsets max-timestamp", tool(t, "kafka-get-offsets", "--topic", topic, "--time", "max-timestamp"), topic+":0:9")
	wants(t, "kafka-log-dirs", tool(t, "kafka-log-dirs", "--describe", "--topic-list", topic), `"partition":"`+topic+`-0","size":[1-9]`)
	wants(t, "kafka-cluster", run(t, "", filepath.Join(peers(t), "kafka"), "kafka-cluster", "cluster-id", "--bootstrap-server", sharedBroker(t).addr), "Cluster ID: ")
	wants(t, "kafka-cluster endpoints", run(t, "", filepath.Join(peers(t), "kafka"), "kafka-cluster", "list-endpoints", "--bootstrap-server", sharedBroker(t).addr), "127.0.0.1")
	wants(t, "kafka-features", tool(t, "kafka-features", "describe"), "Feature: ")
	wants(t, "kafka-metadata-quorum", tool(t, "kafka-metadata-quorum", "describe", "--status"), `LeaderId:\s+\d+`, "ClusterId:")
	wants(t, "kafka-metadata-quorum replication", tool(t, "kafka-metadata-quorum", "describe", "--replication"), "Leader")
	if r.offers(kmsg.ListTransactions, 0) {
		wants(t, "kafka-transactions", tool(t, "kafka-transactions", "list"), "TransactionalId")
	} else {
		t.Log("ListTransactions is not advertised: kafka-transactions list is left out")
	}
	wants(t, "kafka-transactions producers", tool(t, "kafka-transactions", "describe-producers", "--topic", topic, "--partition", "0"), "ProducerId")
}

func toolMoves(t *testing.T) {
	r := dial(t, sharedBroker(t).addr)
	topic := r.topic(1)
	for range 10 {
		r.put(topic, batchSpec{recs: values(1, 10)})
	}
	file := filepath.Join(t.TempDir(), "offsets.json")
	os.WriteFile(file, fmt.Appendf(nil, `{"partitions":[{"topic":%q,"partition":0,"offset":4}],"version":1}`, topic), 0o644)
	wants(t, "kafka-delete-records", tool(t, "kafka-delete-records", "--offset-json-file", file), "low_watermark: 4")
	wants(t, "kafka-leader-election", tool(t, "kafka-leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0"), "already elected|Valid replica already elected|Successfully")
	node := r.metadata().Brokers[0].NodeID
	os.WriteFile(file, fmt.Appendf(nil, `{"version":1,"partitions":[{"topic":%q,"partition":0,"replicas":[%d]}]}`, topic, node), 0o644)
	wants(t, "kafka-reassign-partitions", tool(t, "kafka-reassign-partitions", "--reassignment-json-file", file, "--execute"), "Successfully started partition reassignment")
	wants(t, "kafka-reassign-partitions", tool(t, "kafka-reassign-partitions", "--reassignment-json-file", file, "--verify"), "is complete")
	wants(t, "kafka-reassign-partitions", tool(t, "kafka-reassign-partitions", "--list"), "No partition reassignments found")
}
