//go:build compat

package compat

// Shows: clients of older times against the broker of today. Kafka's own tools of
// 0.10.2.2, 0.11.0.3, 1.1.1, 2.8.2 and 3.5.1: producer-perf, consumer-perf, console
// producer and consumer with each codec, groups, offsets by time, topics where the
// tool can do without ZooKeeper. Sarama 1.19 as Kafka 0.8.2 to 1.0 (oldsarama/) and
// kafka-python 1.4.7 as 0.8.0 to 1.0 (oldpython.py). What today's client wrote is
// read by each of them, and the other way round.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// oldCodecs are those there were before zstd.
var oldCodecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression()}

// oldTool runs a tool of that version of Kafka.
func oldTool(t *testing.T, version, stdin, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(peers(t), "kafka"), append([]string{name}, args...)...)
	cmd.Env = append(os.Environ(), "KAFKA_VERSION="+version, "KAFKA_OPTS=-XX:TieredStopAtLevel=1 "+os.Getenv("KAFKA_OPTS"))
	cmd.Stdin, cmd.WaitDelay = strings.NewReader(stdin), 2*time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.New("did not end in two minutes")
	}
	if err != nil {
		t.Fatalf("%s of %s %v: %v\n%s", name, version, args, err, out)
	}
	return string(out)
}

// fillOld writes n records with each codec as a client of today does, with headers
// that old clients cannot be given, and gives their values.
func fillOld(t *testing.T, topic string, n int) []string {
	t.Helper()
	var values []string
	for name, codec := range oldCodecs {
		f := franz(t, kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(20*time.Millisecond))
		var recs []*kgo.Record
		for i := range n {
			v := fmt.Sprintf("today-%s-%d", name, i)
			values = append(values, v)
			recs = append(recs, &kgo.Record{Key: []byte(v), Value: []byte(v), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}}})
		}
		if err := f.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// readValues reads a topic's n values as a client of today does.
func readValues(t *testing.T, topic string, n int) []string {
	t.Helper()
	f := franz(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out []string
	for len(out) < n && ctx.Err() == nil {
		f.PollFetches(ctx).EachRecord(func(r *kgo.Record) { out = append(out, string(r.Value)) })
	}
	return out
}

func sameValues(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d values, want %d\n got  %.400v\n want %.400v", what, len(got), len(want), got, want)
	}
}

func TestOldTools(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve these clients")
	}
	addr := sharedBroker(t).addr
	peers(t)
	for _, c := range []struct {
		version string
		codecs  []string // of the console producer; each is a JVM
		perf    bool     // 2.8.2 and 3.5.1 are in perf_test.go
		topics  bool     // kafka-topics without ZooKeeper
		broker  string   // the console producer's name for the address
	}{
		{"0.10.2.2", []string{"none", "gzip", "snappy", "lz4"}, true, false, "--broker-list"},
		{"0.11.0.3", []string{"gzip", "snappy"}, true, false, "--broker-list"},
		{"1.1.1", []string{"lz4"}, true, false, "--broker-list"},
		{"2.8.2", []string{"snappy"}, false, true, "--bootstrap-server"},
		{"3.5.1", []string{"zstd"}, false, true, "--bootstrap-server"},
	} {
		t.Run(c.version, func(t *testing.T) {
			t.Parallel() // they mostly wait for JVMs
			r := dial(t, addr)
			if c.perf {
				oldPerf(t, r, c.version)
			}
			topic := unique(t)
			if c.topics {
				oldTool(t, c.version, "", "kafka-topics", "--bootstrap-server", addr, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=86400000")
				wants(t, "kafka-topics", oldTool(t, c.version, "", "kafka-topics", "--bootstrap-server", addr, "--describe", "--topic", topic), "PartitionCount: 2", `retention\.ms=86400000`)
			} else {
				code(t, "create", r.create(topic, 2, 1).ErrorCode, 0)
				r.settle(topic, 2)
			}
			values := fillOld(t, topic, 30)
			for _, codec := range c.codecs {
				var lines []string
				for i := range 40 {
					lines = append(lines, fmt.Sprintf("%s-%s-%d", c.version, codec, i))
				}
				values = append(values, lines...)
				oldTool(t, c.version, strings.Join(lines, "\n")+"\n", "kafka-console-producer", c.broker, addr, "--topic", topic, "--compression-codec", codec)
			}
			sameValues(t, "franz-go reads", readValues(t, topic, len(values)), values)
			group := unique(t)
			out := oldTool(t, c.version, "", "kafka-console-consumer", "--bootstrap-server", addr, "--topic", topic, "--from-beginning",
				"--max-messages", fmt.Sprint(len(values)), "--consumer-property", "group.id="+group, "--timeout-ms", "30000")
			var got []string
			for line := range strings.Lines(out) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "today-") || strings.HasPrefix(line, c.version+"-") {
					got = append(got, line)
				}
			}
			sameValues(t, "the console consumer reads", got, values)
			committed, _ := r.committed(group)
			if sum := committed[topic+"-0"].offset + committed[topic+"-1"].offset; sum != int64(len(values)) {
				t.Errorf("the console consumer committed %v, want %d in all", committed, len(values))
			}
			out = oldTool(t, c.version, "", "kafka-consumer-groups", "--bootstrap-server", addr, "--describe", "--group", group)
			if c.version != "0.10.2.2" { // that one shows only groups with members
				wants(t, "kafka-consumer-groups", out, topic+`\s+1\s+\d+\s+\d+\s+0`)
			}
			wants(t, "kafka-consumer-groups", out, "has no active members")
			if !c.topics { // by ListOffsets 0
				out = oldTool(t, c.version, "", "kafka.tools.GetOffsetShell", "--broker-list", addr, "--topic", topic, "--time", "-1")
				sum := int64(0)
				for _, m := range regexp.MustCompile(`(?m)^`+topic+`:\d+:(\d+)$`).FindAllStringSubmatch(out, -1) {
					var n int64
					fmt.Sscan(m[1], &n)
					sum += n
				}
				if sum != int64(len(values)) {
					t.Errorf("GetOffsetShell: %d in all, want %d\n%s", sum, len(values), out)
				}
			}
			if c.topics {
				oldTool(t, c.version, "", "kafka-topics", "--bootstrap-server", addr, "--delete", "--topic", topic)
			}
		})
	}
}

// oldPerf is the guides' two tools, 200 B records in lz4.
func oldPerf(t *testing.T, r *rawConn, version string) {
	const n = 100_000
	topic, addr := r.topic(3), sharedBroker(t).addr
	out := oldTool(t, version, "", "kafka-producer-perf-test", "--topic", topic, "--num-records", fmt.Sprint(n), "--record-size", "200", "--throughput", "-1",
		"--producer-props", "bootstrap.servers="+addr, "acks=1", "linger.ms=10", "compression.type=lz4")
	found := perfDone.FindAllStringSubmatch(out, -1)
	if len(found) == 0 || found[len(found)-1][1] != fmt.Sprint(n) || strings.Contains(out, "Exception") {
		t.Errorf("producer:\n%s", out)
	} else {
		t.Log(found[len(found)-1][0])
	}
	sum := int64(0)
	for p := range int32(3) {
		sum += r.list(5, topic, p, -1).Offset
	}
	if sum != n {
		t.Errorf("%d records in the log, want %d", sum, n)
	}
	out = oldTool(t, version, "", "kafka-consumer-perf-test", "--new-consumer", "--broker-list", addr, "--topic", topic, "--messages", fmt.Sprint(n), "--group", unique(t))
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if row := strings.Split(rows[len(rows)-1], ", "); len(row) < 6 || row[4] != fmt.Sprint(n) {
		t.Errorf("consumer:\n%s", out)
	} else {
		t.Log(rows[len(rows)-1])
	}
	code(t, "delete", r.delete(topic), 0)
}

func TestOldSarama(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve these clients")
	}
	bin := filepath.Join(suite.dir, "oldsarama")
	run(t, "", "go", "build", "-C", "oldsarama", "-o", bin, ".")
	for _, version := range []string{"0.8.2.0", "0.9.0.0", "0.10.0.0", "0.10.2.0", "0.11.0.0", "1.0.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			oldJudge(t, nil, bin, version)
		})
	}
}

func TestOldPython(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve these clients")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		missing(t, "python3 is not installed")
	}
	const how = "pip install --target DIR kafka-python==1.4.7 lz4 python-snappy xxhash, and WEIR_OLD_PYTHON=DIR"
	dir := os.Getenv("WEIR_OLD_PYTHON")
	if dir == "" {
		missing(t, "no kafka-python of that time: %s", how)
	}
	env := append(os.Environ(), "PYTHONPATH="+dir)
	cmd := exec.Command(python, "-c", "import kafka, lz4, snappy, xxhash; assert kafka.__version__ == '1.4.7', kafka.__version__")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, "kafka-python 1.4.7 does not load (%s): %s", how, out)
	}
	for _, version := range []string{"0.8.0", "0.8.1", "0.8.2", "0.9", "0.10.2", "1.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			oldJudge(t, env, python, "oldpython.py", version)
		})
	}
}

// oldJudge runs a judge on a topic filled by today's client, makes a test of each
// line it prints, and reads with today's client what it wrote.
func oldJudge(t *testing.T, env []string, argv ...string) {
	r := dial(t, sharedBroker(t).addr)
	topic := r.topic(1)
	values := fillOld(t, topic, 40)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], sharedBroker(t).addr, topic, fmt.Sprint(len(values)))...)
	cmd.Env, cmd.WaitDelay = env, 2*time.Second
	out, err := cmd.CombinedOutput()
	seen, done := 0, false
	for line := range strings.Lines(string(out)) {
		verdict, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verdict {
		case "ok", "FAIL":
			seen++
			name, why, _ := strings.Cut(name, " | ")
			t.Run(name, func(t *testing.T) {
				if verdict == "FAIL" {
					t.Error(why)
				}
			})
		case "done":
			done = true
		}
	}
	if err != nil || !done || seen == 0 {
		t.Errorf("%v after %d checks", err, seen)
	}
	end := int(r.latest(topic))
	all := readValues(t, topic, end)
	wrote := slices.DeleteFunc(slices.Clone(all), func(v string) bool { return strings.HasPrefix(v, "today-") })
	if len(all) != end || len(wrote) != end-len(values) || len(wrote) == 0 || len(wrote)%50 != 0 {
		t.Errorf("today's client reads %d records of %d, %d of them the judge's", len(all), end, len(wrote))
	}
	if t.Failed() {
		t.Logf("it says:\n%s", out)
	}
}
