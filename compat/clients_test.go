//go:build compat

package compat

// Shows: sarama, segmentio/kafka-go, kafkajs, aiokafka, kafka-python and
// rdkafka (Rust), through the judges under clients/. Each is a program:
//
//	JUDGE BOOTSTRAP PREFIX                 everything it can show, one line each: ok, skip or FAIL NAME | WHY; then done
//	JUDGE BOOTSTRAP member GROUP TOPIC     a group member that prints each value it reads and leaves on SIGTERM
//
// A judge finds the topics PREFIX-nulls (one partition) and PREFIX-CODEC (two)
// made, writes the matrix of null and empty to the first, and 60 records with
// each of acks 0, 1 and all, and idempotent where it can, to each of the
// others; where its language allows, one-record batches of its own base offset
// (B011) and a topic made by its first write (B065). What is stored is then read here as bytes: codec bits, counts, nulls.
// The group dance is one for all clients: members join, leave and are killed.
// Field cases in the judges' lines: B002, B011, B022, B024, B038, B065; here B004.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// client is one foreign client and what it can do.
type client struct {
	name       string
	command    func(t *testing.T, c *client) []string // skips when something is missing
	codecs     []string
	rounds     int      // of 60 records: three, four with an idempotent producer
	nullsFrom  int      // the first record of the matrix that it writes
	headers    [][]byte // header values it writes, when not all three
	strategies []string // each its own group dance; given to members as JUDGE_STRATEGY
}

var everyCodec = []string{"none", "gzip", "snappy", "lz4", "zstd"}

func TestClients(t *testing.T) {
	sharedBroker(t)
	list := []client{
		{name: "kafka-go", command: goJudge, codecs: everyCodec, rounds: 3, strategies: []string{""}},
		// its headers are an object of arrays, which may not hold a null
		{name: "kafkajs", command: nodeJudge, codecs: everyCodec, rounds: 4, strategies: []string{""}, headers: [][]byte{{}, []byte("x")}},
		// the two Pythons refuse a record whose key and value are both null
		{name: "aiokafka", command: pythonJudge, codecs: everyCodec, rounds: 4, nullsFrom: 1, strategies: []string{"range", "sticky"}},
		{name: "kafka-python", command: pythonJudge, codecs: everyCodec, rounds: 4, nullsFrom: 1, headers: [][]byte{{}, []byte("x")}, strategies: []string{"range", "cooperative-sticky"}},
		{name: "rdkafka", command: rustJudge, codecs: everyCodec, rounds: 4, strategies: []string{"range", "cooperative-sticky"}},
	}
	for _, version := range []string{"2.1.0", "2.8.0", "3.6.0", "4.0.0", "max"} { // B022
		list = append(list, client{name: "sarama B022 " + version, command: goJudge, codecs: everyCodec, rounds: 4, strategies: []string{""}})
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they mostly wait for sessions to end
			c.judge(t)
		})
	}
}

func (c *client) judge(t *testing.T) {
	argv := c.command(t, c)
	b := sharedBroker(t)
	adm := kadm.NewClient(franz(t))
	prefix := unique(t)
	topics := map[string]int32{prefix + "-nulls": 1}
	for _, codec := range c.codecs {
		topics[prefix+"-"+codec] = 2
	}
	for name, partitions := range topics {
		if got, err := adm.CreateTopic(t.Context(), partitions, 1, nil, name); err != nil || got.Err != nil {
			t.Fatalf("create %s: %v %v", name, err, got.Err)
		}
	}
	argv = append(argv, b.addr)
	t.Run("report", func(t *testing.T) {
		t.Parallel()
		c.report(t, append(argv[:len(argv):len(argv)], prefix))
		t.Run("B038 stored nulls", func(t *testing.T) { c.storedNulls(t, prefix+"-nulls") })
		for i, codec := range everyCodec {
			if _, made := topics[prefix+"-"+codec]; made {
				t.Run("B004 stored "+codec, func(t *testing.T) { c.storedCodec(t, prefix+"-"+codec, int16(i)) })
			}
		}
	})
	for _, s := range c.strategies {
		t.Run("group "+s, func(t *testing.T) {
			t.Parallel()
			dance(t, adm, s, argv)
		})
	}
}

// report makes a test of each line that a judge prints.
func (c *client) report(t *testing.T, argv []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	seen, done := 0, false
	for line := range strings.Lines(string(out)) {
		verdict, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verdict {
		case "ok", "FAIL", "skip":
			seen++
			name, why, _ := strings.Cut(name, " | ")
			t.Run(name, func(t *testing.T) {
				switch verdict {
				case "FAIL":
					t.Error(why)
				case "skip":
					t.Skip(why)
				}
			})
		case "done":
			done = true
		}
	}
	if err != nil || !done {
		t.Errorf("%v after %d checks", err, seen)
	}
	if t.Failed() {
		t.Logf("%s says:\n%s", c.name, out)
	}
}

// storedNulls reads the matrix back as bytes that no client has touched.
func (c *client) storedNulls(t *testing.T, topic string) {
	var got []rec
	r := dial(t, sharedBroker(t).addr)
	for end := r.latest(topic); int64(len(got)) < end; {
		for _, s := range readBatches(t, r.fetch(topic, int64(len(got))).RecordBatches) {
			got = append(got, s.records...)
		}
	}
	three := [][]byte{nil, {}, []byte("x")}
	headers := three
	if c.headers != nil {
		headers = c.headers
	}
	if len(got) != 9-c.nullsFrom {
		t.Fatalf("%d records of %d", len(got), 9-c.nullsFrom)
	}
	for i, g := range got {
		i += c.nullsFrom
		if k, v := three[i/3], three[i%3]; !same(g.key, k) || !same(g.value, v) {
			t.Errorf("record %d: key %#v value %#v, want %#v %#v", i, g.key, g.value, k, v)
		}
		if len(g.headers) != len(headers) {
			t.Fatalf("record %d: %d headers", i, len(g.headers))
		}
		for j, h := range g.headers {
			if h.name != "h" || !same(h.value, headers[j]) {
				t.Errorf("record %d header %d: %q %#v, want %#v", i, j, h.name, h.value, headers[j])
			}
		}
	}
}

func same(got, want []byte) bool {
	return string(got) == string(want) && (got == nil) == (want == nil)
}

// storedCodec wants every batch of more than one record to carry the codec.
func (c *client) storedCodec(t *testing.T, topic string, codec int16) {
	r := dial(t, sharedBroker(t).addr)
	total, compressed := int64(0), 0
	for p := range int32(2) {
		end := r.list(5, topic, p, -1).Offset
		total += end
		for next := int64(0); next < end; {
			req := fetchRequest(4, 500, 1, 1<<20, at(topic, p, next))
			resp := ask[*kmsg.FetchResponse](r, req)
			got := readBatches(t, resp.Topics[0].Partitions[0].RecordBatches)
			if len(got) == 0 {
				t.Fatalf("partition %d: nothing at %d of %d", p, next, end)
			}
			for _, s := range got {
				if s.codec() == codec {
					compressed++
				} else if s.count > 1 {
					t.Errorf("partition %d at %d: %d records with codec %d", p, s.base, s.count, s.codec())
				}
				next = s.last + 1
			}
		}
	}
	if want := int64(60 * c.rounds); total != want || compressed == 0 {
		t.Errorf("%d records of %d, %d batches with the codec", total, want, compressed)
	}
}

// dancer is one member of the group, a process.
type dancer struct {
	cmd  *exec.Cmd
	said *strings.Builder // stderr
	done chan struct{}    // closed when its output has ended
}

// dance lets members join, leave and die; every record must be seen, and every
// one be committed when the last has left.
func dance(t *testing.T, adm *kadm.Client, strategy string, argv []string) {
	topic, group := franzTopic(t, adm, 6, nil), unique(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	start := func() *dancer {
		d := &dancer{cmd: exec.Command(argv[0], append(argv[1:len(argv):len(argv)], "member", group, topic)...), said: &strings.Builder{}, done: make(chan struct{})}
		d.cmd.Env = append(os.Environ(), "JUDGE_STRATEGY="+strategy)
		d.cmd.Stderr = d.said
		out, err := d.cmd.StdoutPipe()
		if err == nil {
			err = d.cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(d.done)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				value, _, _ := strings.Cut(lines.Text(), "-")
				mu.Lock()
				seen[value] = true
				mu.Unlock()
			}
		}()
		t.Cleanup(func() {
			d.cmd.Process.Kill()
			if d.cmd.ProcessState == nil {
				<-d.done
				d.cmd.Wait()
			}
			if strings.Contains(d.said.String(), "Request timed out after") {
				t.Error("a member waited in vain for an answer")
			}
			if t.Failed() {
				t.Logf("a member says:\n%s", d.said)
			}
		})
		return d
	}
	stop := func(d *dancer) { // an orderly leave
		d.cmd.Process.Signal(syscall.SIGTERM)
		patience := time.AfterFunc(20*time.Second, func() { d.cmd.Process.Kill() })
		defer patience.Stop()
		<-d.done
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("a member that was to leave: %v", err)
		}
	}
	alive := map[*dancer]bool{}
	members := func(n int) {
		t.Helper()
		eventually(t, 2*time.Minute, fmt.Sprint(n, " members"), func() (string, bool) { // a judge may begin anew
			for d := range alive {
				select {
				case <-d.done:
					t.Fatal("a member ended by itself")
				default:
				}
			}
			got, err := adm.DescribeGroups(t.Context(), group)
			g := got[group]
			return fmt.Sprintf("%v %s %d", err, g.State, len(g.Members)), err == nil && g.State == "Stable" && len(g.Members) == n
		})
	}
	a := start()
	alive[a] = true
	franzProduce(t, topic, 300, "one", kgo.ClientID("dance"))
	members(1)
	b, c := start(), start()
	alive[b], alive[c] = true, true
	franzProduce(t, topic, 300, "two")
	members(3)
	delete(alive, b)
	stop(b)
	members(2)
	franzProduce(t, topic, 300, "three")
	delete(alive, c)
	c.cmd.Process.Kill()
	d := start()
	alive[d] = true
	franzProduce(t, topic, 300, "four")
	members(2)
	eventually(t, 60*time.Second, "every record", func() (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(len(seen)), len(seen) == 1200
	})
	stop(a)
	stop(d)
	got, err := adm.FetchOffsets(t.Context(), group)
	sum := int64(0)
	got.Each(func(o kadm.OffsetResponse) { sum += o.At })
	if err != nil || sum != 1200 {
		t.Errorf("committed %d of 1200, %v", sum, err)
	}
	if _, err := adm.DeleteGroup(t.Context(), group); err != nil {
		t.Errorf("delete group: %v", err)
	}
}

var goJudges struct {
	sync.Mutex
	built map[string]error
}

// goJudge builds a judge of the module clients/, whose first word in the
// client's name is the program and whose last, where there are more, its first
// argument.
func goJudge(t *testing.T, c *client) []string {
	words := strings.Fields(c.name)
	pkg := strings.ReplaceAll(words[0], "-", "")
	bin := filepath.Join(suite.dir, "judge-"+pkg)
	goJudges.Lock()
	defer goJudges.Unlock()
	err, built := goJudges.built[pkg]
	if !built {
		var out string
		if out, err = tryRun("", "go", "build", "-C", "clients", "-o", bin, "./"+pkg); err != nil {
			err = fmt.Errorf("go build ./clients/%s: %w\n%s", pkg, err, out)
		}
		if goJudges.built == nil {
			goJudges.built = map[string]error{}
		}
		goJudges.built[pkg] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(words) > 1 {
		return []string{bin, words[len(words)-1]}
	}
	return []string{bin}
}

// pythonJudge wants the packages of clients/python/requirements.txt, at these versions
// or newer ones; clients/install puts them where PYTHONPATH can point to.
func pythonJudge(t *testing.T, c *client) []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		missing(t, "python3 is not installed")
	}
	module := map[string]string{"aiokafka": "aiokafka", "kafka-python": "kafka"}[c.name]
	out, err := tryRun("", python, "-c", "import lz4, snappy, zstandard, "+module+" as m; print(m.__version__); assert m.__version__ != '0' and int(m.__version__.split('.')[0]) >= "+
		map[string]string{"aiokafka": "0", "kafka-python": "3"}[c.name])
	if err != nil {
		missing(t, "Python has no new %s (pip install -r clients/python/requirements.txt): %s", c.name, out)
	}
	t.Logf("%s %s", c.name, strings.TrimSpace(out))
	return []string{python, filepath.Join("clients", "python", strings.ReplaceAll(c.name, "-", "_")+"_judge.py")}
}

func nodeJudge(t *testing.T, c *client) []string {
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not installed")
	}
	if out, err := tryRun("", node, "-e", "require('kafkajs')"); err != nil {
		missing(t, "node finds no kafkajs (npm ci in a copy of clients/kafkajs, its node_modules in NODE_PATH): %.200s", out)
	}
	return []string{node, filepath.Join("clients", "kafkajs", "judge.js")}
}

// rustJudge builds clients/rdkafka; librdkafka itself takes minutes, and only
// once, when CARGO_TARGET_DIR is kept.
func rustJudge(t *testing.T, c *client) []string {
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		missing(t, "cargo is not installed")
	}
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		target = filepath.Join(cache, "weir-compat", "rdkafka")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, cargo, "build", "--locked", "-q", "-j1", "--manifest-path", filepath.Join("clients", "rdkafka", "Cargo.toml"), "--target-dir", target)
	cmd.Env = append(os.Environ(), "CFLAGS=-O0", "CXXFLAGS=-O0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cargo build: %v\n%s", errors.Join(err, ctx.Err()), out)
	}
	return []string{filepath.Join(target, "debug", "judge")}
}
