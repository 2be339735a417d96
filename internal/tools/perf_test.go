package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/lab"
)

// Shows: the lab's commands measure a cluster, write what they say into their
// folder, and end with the right code when records fail, a condition holds or
// they are interrupted. How: command lines against franz-go's fake cluster.

func out(t *testing.T) []string {
	t.Helper()
	return []string{"--out", filepath.Join(t.TempDir(), "run")}
}

func TestPerfProduce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	args := out(t)
	r := w.line(ExitOK, "", "perf produce -t load --partitions 3 --rate 2000 --duration 3s --producers 2 --payload json --keys zipf:100 -X linger.ms=1 -X compression.type=lz4", args...)
	w.has("text", r.out, "throughput", "records/s", "of 2,000 offered", "6,000 acknowledged, 0 failed, 0 owed", "latency ", " service", " queue", "wire ", "results ")
	got, err := lab.ReadRun(args[1])
	if err != nil {
		t.Fatal(err)
	}
	if got.Produce.All.Records != 6000 || got.Environment.Partitions != 3 || got.Spec["linger.ms"] != 1.0 || got.Wire.Records != 6000 || got.Wire.Packed >= got.Wire.Plain {
		t.Errorf("%+v\n%+v\n%v", got.Environment, got.Wire, got.Spec)
	}
	if _, err := os.Stat(filepath.Join(args[1], "windows.csv")); err != nil {
		t.Error(err)
	}

	// What was sent can be read, and JSON goes to stdout alone.
	r = w.line(ExitOK, "", "perf consume -t load --consumers 2 --out none -o json")
	var read lab.Run
	w.json(r, &read)
	if read.Consume.Records != 6000 || read.Consume.WentIdle {
		t.Errorf("%+v", read.Consume)
	}
	r = w.line(ExitOK, "", "perf consume -t load -n 1000 --group g --out none -q")
	w.has("text", r.out, "throughput", "records     ")
	if strings.Contains(r.out, "results") {
		t.Errorf("results were written: %s", r.out)
	}
}

func TestPerfProduceClosedLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.line(ExitOK, "", "perf produce -t load --partitions 1 -n 20000 --record-size 100 --out none -q")
	w.has("text", r.out, "20,000 acknowledged", "full queue", "closed loop: latency is that of a full client queue")
	r = w.line(ExitOK, "", "perf produce -t load -n 50 --window 1 --record-size 10000 -X batch.size=100 -X linger.ms=0 --out none -q -o json")
	var run lab.Run
	w.json(r, &run)
	if run.Produce.All.Records != 50 || run.Wire.RecordsBatch != 1 {
		t.Errorf("%+v, %+v", run.Produce.All, run.Wire)
	}
}

func TestPerfLatency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	args := out(t)
	r := w.line(ExitOK, "", "perf latency -t probe --partitions 2 --rate 500 --duration 3s --consumers 2 -X linger.ms=0", args...)
	w.has("text", r.out, "end to end", " from send", "arrived     1,500 of 1,500 acknowledged")
	run, err := lab.ReadRun(args[1])
	if err != nil || run.Latency.Lost != 0 || run.Latency.All.EndToEnd.N != 1500 || run.Latency.All.EndToEnd.MeanUs < run.Latency.All.FromSend.MeanUs {
		t.Errorf("%v, %+v", err, run.Latency)
	}
	// A topic with other people's records: those are not measured.
	r = w.line(ExitOK, "", "perf latency -t probe --rate 100 --duration 1s --out none -q -o json")
	var again lab.Run
	w.json(r, &again)
	if again.Latency.Arrived != 100 || again.Latency.Lost != 0 {
		t.Errorf("%d arrived", again.Latency.Arrived)
	}
}

// Kafka's tool prints a good line and ends with 0.
func TestPerfRefusedRecordsFailTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.(*kmsg.ProduceRequest).Topics {
			st := kmsg.NewProduceResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition, sp.ErrorCode = rp.Partition, kerr.TopicAuthorizationFailed.Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	args := out(t)
	r := w.line(ExitFailed, "", "perf produce -t load --partitions 1 --rate 100 --duration 1s", args...)
	w.has("text", r.out, "100 failed", "TOPIC_AUTHORIZATION_FAILED", "and failed")
	w.has("stderr", r.err, "100 records failed")
	if run, err := lab.ReadRun(args[1]); err != nil || run.Produce.All.Errors["TOPIC_AUTHORIZATION_FAILED"] != 100 {
		t.Errorf("what was measured was not kept: %v", err)
	}
}

func TestPerfConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.line(ExitFailed, "", "perf produce -t load --partitions 1 --rate 500 --duration 2s --out none -q", "--fail-if", "rate < 100000", "--fail-if", "errors > 0")
	w.has("text", r.out, "failed      rate < 100000: it is 5")
	w.line(ExitOK, "", "perf produce -t load --rate 500 --duration 2s --out none -q", "--fail-if", "rate < 100", "--fail-if", "p50 > 60s")
}

func TestPerfInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "run")
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(2500*time.Millisecond, stop)
	r := runIn(ctx, strings.NewReader(""), "perf", "produce", "-t", "load", "--partitions", "1", "--rate", "200", "--duration", "1h", "--out", dir, "-b", w.servers)
	if r.code != ExitPartly || !strings.Contains(r.err, "interrupted") {
		t.Fatalf("code %d\n%s\n%s", r.code, r.out, r.err)
	}
	run, err := lab.ReadRun(dir)
	if err != nil || !run.Produce.Interrupted || run.Produce.All.Failed > 0 || run.Produce.All.Records < 200 {
		t.Errorf("kept: %v, %+v", err, run)
	}
}

func TestPerfUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := func(code int, say, line string, more ...string) {
		t.Helper()
		w.has(line, w.line(code, "", line+" --out none", more...).err, say)
	}
	f(ExitUsage, "say which topic", "perf produce")
	f(ExitFailed, "there is no topic nothing: give --partitions N", "perf produce -t nothing")
	f(ExitUsage, "--rate \"fast\"", "perf produce -t x --rate fast")
	f(ExitUsage, "want random, text", "perf produce -t x --payload noise")
	f(ExitUsage, "--record-size", "perf produce -t x --record-size big")
	f(ExitUsage, "--keys", "perf produce -t x --keys many")
	f(ExitUsage, "--arrivals", "perf produce -t x --rate 5 --arrivals often")
	f(ExitUsage, "needs a --rate", "perf produce -t x --arrivals poisson")
	f(ExitUsage, "--producers 0", "perf produce -t x --producers 0")
	f(ExitUsage, "--warmup", "perf produce -t x --warmup later")
	f(ExitUsage, "--fail-if", "perf produce -t x --fail-if slow")
	f(ExitUsage, "needs a --rate", "perf latency -t x --rate max")
	f(ExitUsage, "property acks", "perf produce -t x -X acks=2")
	f(ExitUsage, "enable.idempotence=true needs acks=all", "perf produce -t x --partitions 1 -X acks=1 -X enable.idempotence=true")
	f(ExitUsage, "cannot read --payload-file", "perf produce -t x --payload-file /nowhere")
	f(ExitFailed, "is empty", "perf consume -t x")
	f(ExitUsage, "--from-latest needs", "perf consume -t x --from-latest")
	f(ExitUsage, "unknown command", "perf prodcue")
}

// A run folder is never written over, and a place that cannot be written costs no run.
func TestPerfFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.has("stderr", w.line(ExitFailed, "", "perf produce -t load --partitions 1 -n 10", "--out", dir).err, "has files already")
	w.has("stderr", w.line(ExitFailed, "", "perf produce -t load --partitions 1 -n 10", "--out", filepath.Join(dir, "mine", "x")).err, "cannot make the run folder")
	// Nothing stays behind of a run that never began.
	at := filepath.Join(dir, "new")
	w.line(ExitFailed, "", "perf produce -t missing -n 10", "--out", at)
	if _, err := os.Stat(at); err == nil {
		t.Error("an empty run folder was left")
	}
}

func TestPerfKeepsNoSecrets(t *testing.T) {
	t.Parallel()
	got, _ := json.Marshal(safeProperties([]string{"sasl.password=hunter2", "sasl.jaas.config=x password=\"hunter2\";", "acks=1"}))
	if s := string(got); strings.Contains(s, "hunter2") || !strings.Contains(s, "acks=1") {
		t.Error(s)
	}
}

func TestPerfMakesTopics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kfake.NumBrokers(3))
	r := w.line(ExitOK, "", "perf produce -t wide --partitions 5 --replicas 3 -n 10 --window 1 -q -o json --out none")
	var run lab.Run
	w.json(r, &run)
	if run.Environment.Partitions != 5 || run.Environment.Replicas != 3 || run.Environment.Brokers != 3 || !run.Environment.SameHost {
		t.Errorf("%+v", run.Environment)
	}
}

func TestPerfRamp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	args := out(t)
	r := w.line(ExitOK, "", "perf ramp -t load --partitions 2 --steps 100,200 --settle 0s --hold 1s --confirm 1s --record-size 100 -X linger.ms=0", args...)
	w.has("text", r.out, "offered 100  achieved ", "every step passed: the limit lies above 200 records/s", "confirmed", "unmeasured  replicas, softirq")
	run, err := lab.ReadRun(args[1])
	if err != nil || len(run.Ramp.Steps) != 2 || run.Ramp.Outcome.Sustainable != 200 {
		t.Errorf("%v, %+v", err, run.Ramp)
	}
	for line, say := range map[string]string{
		"--steps 5..1":              "--steps",
		"--hold 1ms":                "--hold",
		"-n 10":                     "not for a ramp",
		"--p99-factor 1":            "--p99-factor",
		"--arrivals burst:0":        "--arrivals",
		"--steps 10 --payload loud": "--payload",
	} {
		w.has(line, w.line(ExitUsage, "", "perf ramp -t load --out none "+line).err, say)
	}
}

func TestPerfCompareAndReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	args := out(t)
	r := w.line(ExitOK, "", "perf compare -t cmp --a linger.ms=0 --b linger.ms=100 --rate 300 --duration 1s --pairs 4 --record-size 100 --partitions 1", args...)
	w.has("text", r.out, "A           linger.ms=0\n", "B           linger.ms=100\n", "run  8 of 8  A", "p50         A", "B: worse by ")
	if strings.Contains(r.out, "rate        A") {
		t.Errorf("the offered rate was compared: %s", r.out)
	}
	run, err := lab.ReadRun(args[1])
	if err != nil || len(run.Compare.RunsA) != 4 || run.Compare.Verdicts["p50"].Verdict != lab.Worse || run.Compare.Verdicts["p50"].Pairs != 4 {
		t.Errorf("%v, %+v", err, run.Compare)
	}
	if topics := w.line(ExitOK, "", "topic list").out; strings.Contains(topics, "cmp-") {
		t.Errorf("topics were left: %s", topics)
	}

	one := out(t)
	w.line(ExitOK, "", "perf produce -t load --partitions 1 --rate 100 -n 100 -q", one...)
	r = runIn(t.Context(), nil, "perf", "report", one[1], args[1])
	w.has("report", r.out, "RECORDS/S", one[1], "produce", "compare")
	r = runIn(t.Context(), nil, "perf", "report", one[1])
	w.has("report of one", r.out, "throughput", "100 acknowledged")
	if r := runIn(t.Context(), nil, "perf", "report", filepath.Join(one[1], "no")); r.code != ExitFailed || !strings.Contains(r.err, "no such result") {
		t.Errorf("%+v", r)
	}
	for line, say := range map[string]string{
		"--pairs 5":        "even number",
		"--a linger.ms":    "has no value",
		"--a-topic x":      "write key=value",
		"--b acks=9":       "property acks",
		"--a 1=1 --rate 1": "is not known",
	} {
		r := w.run("", append(strings.Fields("perf compare -t cmp --duration 1s --pairs 4 --out none"), strings.Fields(line)...)...)
		if r.code == ExitOK || !strings.Contains(r.err, say) {
			t.Errorf("%s: code %d, %s", line, r.code, r.err)
		}
	}
}

func TestDiffering(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"x=1", "x=2", 1}, {"x=1 y=1", "x=2 y=1", 1}, {"x=1", "y=1", 2}, {"", "", 0}, {"x=1", "", 1}} {
		if got := differing(strings.Fields(c.a), strings.Fields(c.b)); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
