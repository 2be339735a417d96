//go:build compat

package compat

// Shows: kafka-producer-perf-test and kafka-consumer-perf-test at the sizes of
// the guides, 100 B to 100 KiB, run to their end and lose nothing, by the
// clients of Kafka 4.4 and by those of 2.8.2 and 3.5.1 that the guides had,
// with the guides' own settings.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var perfDone = regexp.MustCompile(`(?m)^(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\.?$`)

func TestPerfTools(t *testing.T) {
	kafka, b := filepath.Join(peers(t), "kafka"), sharedBroker(t)
	for _, c := range []struct {
		guide   string
		records int
		size    int
		props   []string
	}{
		{"1: 100 B, snappy", 200_000, 100, []string{"acks=1", "compression.type=snappy", "linger.ms=20"}},
		{"3: 200 B, lz4", 200_000, 200, []string{"batch.size=65536", "linger.ms=10", "buffer.memory=67108864", "compression.type=lz4", "acks=1"}},
		{"0: 1 KiB, lz4", 100_000, 1024, []string{"acks=1", "linger.ms=10", "batch.size=32768", "compression.type=lz4"}},
		{"0: 10 KiB, acks=all", 10_000, 10240, []string{"acks=all", "batch.size=65536", "compression.type=none"}},
		{"4: 100 KiB", 2_000, 102400, nil},
	} {
		for _, version := range []string{"", "2.8.2", "3.5.1"} {
			name := version
			if name == "" {
				name = "4.4"
			}
			t.Run(c.guide+", Kafka "+name, func(t *testing.T) {
				r := dial(t, b.addr)
				topic := r.topic(3)
				client := func(tool string, args ...string) string {
					t.Helper()
					cmd := exec.Command(kafka, append([]string{tool}, args...)...)
					cmd.Env = os.Environ()
					if version != "" {
						cmd.Env = append(cmd.Env, "KAFKA_VERSION="+version)
					}
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Fatalf("%s %v: %v\n%s", tool, args, err, out)
					}
					return string(out)
				}
				args := append([]string{"--topic", topic, "--num-records", fmt.Sprint(c.records), "--record-size", fmt.Sprint(c.size), "--throughput", "-1", "--producer-props", "bootstrap.servers=" + b.addr}, c.props...)
				out := client("kafka-producer-perf-test", args...)
				found := perfDone.FindAllStringSubmatch(out, -1)
				if len(found) == 0 || found[len(found)-1][1] != fmt.Sprint(c.records) || strings.Contains(out, "Exception") {
					t.Errorf("producer:\n%s", out)
				} else {
					t.Log(found[len(found)-1][0])
				}
				sum := int64(0)
				for p := range int32(3) {
					sum += r.list(5, topic, p, -1).Offset
				}
				if sum != int64(c.records) {
					t.Errorf("%d records in the log, want %d", sum, c.records)
				}
				out = client("kafka-consumer-perf-test", "--bootstrap-server", b.addr, "--topic", topic, "--messages", fmt.Sprint(c.records), "--group", unique(t), "--timeout", "30000")
				rows := strings.Split(strings.TrimSpace(out), "\n")
				row := strings.Split(rows[len(rows)-1], ", ")
				if len(row) < 10 || row[4] != fmt.Sprint(c.records) {
					t.Errorf("consumer:\n%s", out)
				} else {
					t.Log(rows[len(rows)-1])
				}
				code(t, "delete", r.delete(topic), 0)
			})
		}
	}
}
