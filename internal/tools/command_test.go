package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// Shows: the commands do what their help says, print what scripts rely on, and
// end with the right exit code. How: whole command lines against franz-go's
// fake cluster in this process.

type world struct {
	t       *testing.T
	cluster *kfake.Cluster
	servers string
}

func newWorld(t *testing.T, opts ...kfake.Opt) *world {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.DefaultNumPartitions(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &world{t, c, strings.Join(c.ListenAddrs(), ",")}
}

// buffer can be read while a command writes it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type result struct {
	code     int
	out, err string
}

func runIn(ctx context.Context, in io.Reader, args ...string) result {
	var out, errs buffer
	root := &cobra.Command{Use: "weir"}
	streams := IO{Stdin: in, Stdout: &out, Stderr: &errs}
	root.AddCommand(Commands(streams)...)
	root.SetArgs(args)
	code := Execute(ctx, root, streams)
	return result{code, out.String(), errs.String()}
}

func (w *world) run(in string, args ...string) result {
	w.t.Helper()
	return runIn(context.Background(), strings.NewReader(in), append(args, "-b", w.servers, "--timeout", "30s")...)
}

// line runs a command line, whose words are parted by blanks, and wants its
// exit code.
func (w *world) line(code int, in, line string, more ...string) result {
	w.t.Helper()
	r := w.run(in, append(strings.Fields(line), more...)...)
	if r.code != code {
		w.t.Fatalf("weir %s: exit code %d, want %d\nstdout: %s\nstderr: %s", line, r.code, code, r.out, r.err)
	}
	return r
}

func (w *world) has(what, s string, parts ...string) {
	w.t.Helper()
	for _, p := range parts {
		if !strings.Contains(s, p) {
			w.t.Errorf("%s: %q is not in:\n%s", what, p, s)
		}
	}
}

func (w *world) json(r result, v any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(r.out), v); err != nil {
		w.t.Fatalf("no JSON: %v\n%s", err, r.out)
	}
}

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(w.cluster.ListenAddrs()...))...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cl.CloseAllowingRebalance)
	return cl
}

func TestTopics(t *testing.T) {
	w := newWorld(t)
	r := w.line(0, "", "topic create a b -p 3 -r 1 -c retention.ms=1000")
	w.has("create", r.out, "created topic a with 3 partitions, replication factor 1\n", "created topic b")
	r = w.line(1, "", "topic create a")
	w.has("again", r.err, "cannot create topic a: TOPIC_ALREADY_EXISTS")
	w.line(0, "", "topic create a --if-not-exists")
	r = w.line(3, "", "topic create a c -o json")
	var created struct{ Topics []topicResult }
	w.json(r, &created)
	if ts := created.Topics; len(ts) != 2 || ts[0].OK || ts[0].Error != "TOPIC_ALREADY_EXISTS" || !ts[1].OK || len(ts[1].ID) != 22 {
		t.Errorf("create as JSON: %s", r.out)
	}
	w.line(2, "", "topic create")
	w.line(2, "", "topic create x -p 0")
	w.line(2, "", "topic create x -c retention.ms")
	w.line(2, "", "topic create x -o yaml")
	w.line(2, "", "topic destroy x")
	w.line(2, "", "topic list --no-such-flag")

	r = w.line(0, "", "topic list")
	w.has("list", r.out, "TOPIC  PARTITIONS  REPLICAS\n", "a               3         1\n", "c               1         1\n")
	if r = w.line(0, "", "topic list -q a"); r.out != "a\n" {
		t.Errorf("list -q: %q", r.out)
	}

	w.line(0, "one\ntwo\n", "produce a -p 1 -q")
	r = w.line(3, "", "topic describe a nope -o json")
	var described struct{ Topics []topicView }
	w.json(r, &described)
	if ts := described.Topics; len(ts) != 1 || len(ts[0].Partitions) != 3 || ts[0].Configs["retention.ms"] != "1000" ||
		*ts[0].Partitions[1].End != 2 || *ts[0].Partitions[0].End != 0 || *ts[0].Partitions[1].Start != 0 {
		t.Errorf("describe as JSON: %s", r.out)
	}
	w.has("describe", r.err, "cannot describe topic nope: UNKNOWN_TOPIC_OR_PARTITION")
	w.has("describe", w.line(0, "", "topic describe a").out, "retention.ms=1000", "PARTITION  LEADER")

	w.has("alter", w.line(0, "", "topic alter a -p 5 -c cleanup.policy=compact --delete-config retention.ms").out, "altered topic a")
	described.Topics = nil
	w.json(w.line(0, "", "topic describe a -o json"), &described)
	if v := described.Topics[0]; len(v.Partitions) != 5 || v.Configs["cleanup.policy"] != "compact" || v.Configs["retention.ms"] != "" {
		t.Errorf("altered: %+v", v)
	}
	w.line(1, "", "topic alter a -p 2")
	w.line(2, "", "topic alter a")
	w.line(2, "", "topic alter a -c x=1 --delete-config x")

	w.has("delete", w.line(3, "", "topic delete a nope").out, "deleted topic a")
	w.line(0, "", "topic delete nope --if-exists")
	w.line(1, "", "topic delete nope")
}

func TestConfigs(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	w.line(0, "", "config set topic t retention.ms=5 cleanup.policy=compact,delete")
	w.has("get", w.line(0, "", "config get topic t").out, "retention.ms", "5", "compact,delete", "DYNAMIC_TOPIC_CONFIG")
	if r := w.line(0, "", "config get topic/t retention.ms -o json"); !strings.Contains(r.out, `"value": "5"`) {
		t.Errorf("get as JSON: %s", r.out)
	}
	w.line(0, "", "config delete topic t retention.ms")
	if r := w.line(0, "", "config get topic t"); strings.Contains(r.out, "retention.ms") {
		t.Errorf("after delete: %s", r.out)
	}
	w.has("all", w.line(0, "", "config get topic t --all").out, "retention.ms")
	w.line(1, "", "config get topic t no.such.key")
	w.line(1, "", "config get topic nope")
	w.line(0, "", "config set broker default log.retention.ms=7")
	w.has("default", w.line(0, "", "config get broker default").out, "log.retention.ms", "7")
	w.line(2, "", "config get broker x")
	w.line(2, "", "config get planet x")
	w.line(2, "", "config set topic t retention.ms")
	w.line(2, "", "config get")

	for _, line := range []string{"config get broker 7", "config set broker 7 log.retention.ms=7", "config delete broker 7 log.retention.ms"} {
		r := w.line(1, "", line)
		want := "weir: broker 7 does not exist: the cluster has broker 0\n"
		if r.err != want {
			t.Errorf("%s: %s", line, r.err)
		}
	}
	two := newWorld(t, kfake.NumBrokers(2))
	two.has("two brokers", two.line(1, "", "config get broker 7").err, "broker 7 does not exist: the cluster has brokers 0,1")

	r := runIn(context.Background(), strings.NewReader("num.partitions=x\n"), "config", "check", "-")
	if r.code != ExitUsage || !strings.Contains(r.out, "num.partitions") {
		t.Errorf("check of a bad value: %+v", r)
	}
	r = runIn(context.Background(), strings.NewReader("num.partitions=3\n"), "config", "check", "-", "-o", "json")
	if r.code != 0 || !strings.Contains(r.out, `"ok": true`) {
		t.Errorf("check of a good value: %+v", r)
	}
	if r = runIn(context.Background(), nil, "config", "check", "/no/such/file"); r.code != ExitUsage {
		t.Errorf("check of no file: %+v", r)
	}
	if r = runIn(context.Background(), nil, "config", "explain", "num.partitions"); r.code != 0 || !strings.Contains(r.out, "num.partitions") {
		t.Errorf("explain: %+v", r)
	}
	if r = runIn(context.Background(), nil, "config", "explain", "num.partition"); r.code != ExitUsage || r.out != "" || !strings.Contains(r.err, "num.partitions") {
		t.Errorf("explain of an unknown key: %+v", r)
	}
	// A key that is known to have no effect is explained as others are.
	for key, want := range map[string]string{
		"zookeeper.connect":                "zookeeper.connect has no effect: Weir has no ZooKeeper",
		"log.message.format.version":       "log.message.format.version has no effect: Kafka removed it in 4.0",
		"config.providers.x":               "config.providers.x has no effect: it is for a Java plug-in",
		"listener.name.a.ssl.key.password": "listener.name.a.ssl.key.password (broker key)",
	} {
		if r = runIn(context.Background(), nil, "config", "explain", key); r.code != 0 || r.err != "" || !strings.HasPrefix(r.out, want) {
			t.Errorf("explain %s: %+v", key, r)
		}
		r = runIn(context.Background(), nil, "config", "explain", key, "-o", "json")
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, `"name": "`+key+`"`) || !strings.Contains(r.out, `"why": "`) {
			t.Errorf("explain %s as JSON: %+v", key, r)
		}
	}
}

// Null, empty and text for key, value and header value all come back apart,
// in every output, and through -J they can be sent again.
func TestNullAndEmpty(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t", "u"))
	cl := w.client()
	values := [][]byte{nil, {}, []byte("x")}
	var rs []*kgo.Record
	for _, k := range values {
		for _, v := range values {
			for _, h := range values {
				rs = append(rs, &kgo.Record{Topic: "t", Key: k, Value: v, Headers: []kgo.RecordHeader{{Key: "h", Value: h}, {Key: "h", Value: []byte("2")}}})
			}
		}
	}
	if err := cl.ProduceSync(context.Background(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	text := func(b []byte) string {
		if b == nil {
			return "NULL"
		}
		return string(b)
	}
	var want strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&want, "%s|%s|h=%s,h=2\n", text(r.Key), text(r.Value), text(r.Headers[0].Value))
	}
	const format = `%k|%s|%h\n`
	if r := w.line(0, "", "consume t -e -q -f", format); r.out != want.String() {
		t.Errorf("got\n%swant\n%s", r.out, want.String())
	}
	envelopes := w.line(0, "", "consume t -e -q -J").out
	w.line(0, envelopes, "produce u -J -q")
	if r := w.line(0, "", "consume u -e -q -f", format); r.out != want.String() {
		t.Errorf("after -J and back: got\n%swant\n%s", r.out, want.String())
	}
	// The plain form can be sent again too, with one text for null.
	plain := w.line(0, "", "consume t -e -q -K: -Z=~").out
	w.line(0, "", "topic create v")
	w.line(0, plain, "produce v -K: -Z=~ -q")
	if r := w.line(0, "", "consume v -e -q -K: -Z=~"); r.out != plain {
		t.Errorf("after -K and back: got\n%swant\n%s", r.out, plain)
	}
	w.line(0, ":a\nb:\n:\nplain\n", "produce v -K: -Z -q")
	if r := w.line(0, "", "consume v -e -q -o -4 -f", `%k|%s\n`); r.out != "NULL|a\nb|NULL\nNULL|NULL\nNULL|plain\n" {
		t.Errorf("bare -Z: %q", r.out)
	}
}

func TestProduceConsume(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(3, "t"), kfake.SeedTopics(1, "one"))
	var in strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&in, "k%d:value %d\n", i%50, i)
	}
	r := w.line(0, in.String(), "produce t -K: -z zstd -H h=1")
	w.has("produce", r.err, "5000 records acknowledged")
	r = w.line(0, "", "consume t -e -f", `%p %o %k:%s %h\n`)
	if n := strings.Count(r.out, "\n"); n != 5000 {
		t.Errorf("%d lines", n)
	}
	w.has("consume", r.out, ":value 4999 h=1\n")
	w.has("consume", r.err, "Reached end of topic t [0] at offset ")
	if r = w.line(0, "", "consume t -c 7 -q"); strings.Count(r.out, "\n") != 7 {
		t.Errorf("-c 7: %q", r.out)
	}

	w.line(0, "a--b--c", "produce -t one -D -- -q")
	w.line(0, "d\ne\n", "produce one -q -o json")
	f := func(flags, want string) {
		t.Helper()
		if r := w.line(0, "", "consume one -e -q -D , "+flags); r.out != want {
			t.Errorf("%s: got %q, want %q", flags, r.out, want)
		}
	}
	f("", "a,b,c,d,e,")
	f("-o 3", "d,e,")
	f("-o -2", "d,e,")
	f("-o -99", "a,b,c,d,e,")
	f("-o end", "")
	f("-o 5", "")
	f("-p 0 -o 1 -c 2", "b,c,")
	f("-o s@0", "a,b,c,d,e,")
	f("-o s@4000000000000", "")
	f("-o e@0", "")
	f("-o e@4000000000000", "a,b,c,d,e,")
	f("-X auto.offset.reset=latest", "")
	w.has("beyond", w.line(1, "", "consume one -e -o 6").err, "offset 6 is beyond the end of one [0], which has 0 to 5")
	w.has("when", w.line(0, "", "consume one -e -o s@1700000000").err, "time understood as 1970-01-20T16:13:20.000Z", "if it is seconds, write 1700000000000")
	w.has("no topic", w.line(1, "", "consume nope -e").err, "topic nope does not exist", "weir topic create nope")
	w.has("no partition", w.line(1, "", "consume one -p 4").err, "no partition 4: it has 0 to 0")
	w.has("no partition", w.line(1, "x\n", "produce one -p 4").err, "no partition 4: it has 0 to 0")
	for _, bad := range []string{"consume", "consume t -o middle", "consume t -f %z", "consume t -f x -J", "consume t -o stored", "consume t -G g -p 0",
		"consume t -G g -o 5", "consume t -c -1", "produce", "produce t --delim=", "produce t -a 2", "produce t -z brotli", "produce t -J -K:",
		"produce t -X enable.idempotence=true -a 1", "consume t -X no.such=1", "consume t -b ::1:x"} {
		w.line(2, "", bad)
	}

	r = w.line(0, "x\n", "produce one -a 0")
	w.has("acks=0", r.err, "nobody says whether they arrived")
	r = w.line(0, "x\ny\n", "produce one -a 1 -c 1 -o json")
	var sum produceSummary
	if w.json(r, &sum); sum.Acked != 1 || sum.Failed != 0 || sum.Bytes != 1 {
		t.Errorf("summary: %s", r.out)
	}
	if r = w.line(0, "x\ny\n", "produce one -T -q -p 0"); r.out != "x\ny\n" {
		t.Errorf("tee: %q", r.out)
	}
	w.has("bad JSON", w.line(1, "{\n", "produce one -J").err, "line 1 is no record")
	w.has("no file", w.line(1, "", "produce one /no/such/file").err, "/no/such/file")
}

// What was not acknowledged is counted apart, by the broker's name for it.
func TestProduceFailures(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	big := strings.Repeat("x", 2<<20)
	r := w.line(3, "a\nb\n"+big+"\nc\n", "produce t")
	w.has("too large", r.err, "3 of 4 records acknowledged, 1 not (MESSAGE_TOO_LARGE 1); the first, record 3: MESSAGE_TOO_LARGE")
	r = w.line(1, big, "produce t -o json")
	var sum produceSummary
	if w.json(r, &sum); sum.Acked != 0 || sum.Failed != 1 || sum.Errors["MESSAGE_TOO_LARGE"] != 1 {
		t.Errorf("summary: %s", r.out)
	}
	r = w.line(1, "a\nb\n", "produce nope")
	w.has("no topic", r.err, "0 of ", "UNKNOWN_TOPIC_OR_PARTITION: topic nope does not exist", "weir topic create nope")

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
	w.has("refused", w.line(1, "a\n", "produce t").err, "TOPIC_AUTHORIZATION_FAILED 1", "ask for an ACL")
}

func TestGroups(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(3, "t"), kfake.SeedTopics(1, "empty"))
	for p := range 2 {
		w.line(0, "1\n2\n3\n4\n5\n", fmt.Sprintf("produce t -q -p %d", p))
	}
	r := w.line(0, "", "consume -G g t -e -q")
	if strings.Count(r.out, "\n") != 10 {
		t.Errorf("consume -G: %q", r.out)
	}
	if r = w.line(0, "", "consume -G g t -e -q"); r.out != "" {
		t.Errorf("consume -G again: %q", r.out)
	}
	w.line(0, "6\n", "produce t -q -p 1")
	if r = w.line(0, "", "consume t -o stored -X group.id=g -e -q"); r.out != "6\n" {
		t.Errorf("-o stored: %q", r.out)
	}

	w.has("list", w.line(0, "", "group list").out, "g", "Empty")
	var d struct{ Groups []groupView }
	w.json(w.line(0, "", "group describe g -o json"), &d)
	g := d.Groups[0]
	if g.TotalLag != 1 || len(g.Partitions) != 2 || *g.Partitions[1].Lag != 1 || *g.Partitions[1].Committed != 5 || *g.Partitions[1].End != 6 {
		t.Errorf("describe: %+v", g)
	}
	w.has("no group", w.line(1, "", "group describe nope").err, "group nope does not exist")
	w.line(3, "", "group describe nope g")

	// A plan, and only with --execute more than that.
	r = w.line(0, "", "group reset g -t t:1 --to-earliest")
	w.has("plan", r.out, "GROUP  TOPIC  PARTITION  CURRENT-OFFSET  NEW-OFFSET", "g      t              1               5           0")
	w.has("plan", r.err, "--execute")
	f := func(line, want string) {
		t.Helper()
		var p struct {
			Partitions []planned
		}
		r := w.line(0, "", "group reset g -o json "+line)
		w.json(r, &p)
		var got []string
		for _, x := range p.Partitions {
			note := ""
			if x.Note != "" {
				note = "!"
			}
			got = append(got, fmt.Sprintf("%s[%d]=%d%s", x.Topic, x.Partition, *x.New, note))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("reset %s: got %s, want %s", line, s, want)
		}
	}
	f("--all-topics --to-latest", "t[0]=5 t[1]=6")
	f("--topic t --to-offset 2", "t[0]=2 t[1]=2 t[2]=0!")
	f("--all-topics --shift-by -2", "t[0]=3 t[1]=3")
	f("--all-topics --shift-by -200", "t[0]=0! t[1]=0!")
	f("--all-topics --shift-by 9223372036854775807", "t[0]=5 t[1]=6")
	f("--topic t:0-1 --to-current", "t[0]=5 t[1]=5")
	// B062: nothing is that late: the end, and a note says so.
	f("--topic empty --topic t:0 --to-datetime 2099-01-01T00:00:00Z", "empty[0]=0! t[0]=5!")
	f("--topic t:0,1 --by-duration 1h", "t[0]=0 t[1]=0")
	f("--topic t:0 --to-datetime 2001-01-01T00:00:00Z", "t[0]=0")
	f("--topic t:1 --to-offset 4 --execute", "t[1]=4")
	w.json(w.line(0, "", "group describe g -o json"), &d)
	if g = d.Groups[0]; *g.Partitions[0].Committed != 5 || *g.Partitions[1].Committed != 4 {
		t.Errorf("after reset: %+v", g)
	}
	w.has("when", w.line(0, "", "group reset g -t t --to-datetime 1700000000").err, "understood as 1970-01-20", "write 1700000000000")
	w.line(3, "", "group reset g -t t:0,9 --to-earliest")
	w.line(3, "", "group reset g -t t --shift-by 1") // partition 2 has no commit
	r = w.line(1, "", "group reset g -t nope --to-earliest")
	if r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "topic nope: UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("reset of an unknown topic alone: %+v", r)
	}
	for _, bad := range []string{"group reset g", "group reset g -t t", "group reset g --to-earliest", "group reset g -t t --to-earliest --to-latest",
		"group reset g -t t --all-topics --to-latest", "group reset g -t t:x --to-latest", "group reset g -t t --to-offset -1",
		"group reset g -t t --to-datetime soon", "group reset g -t t --by-duration soon", "group reset g h -t t --to-latest"} {
		w.line(2, "", bad)
	}

	// With a member: no reset, no delete, and describe names it.
	cl := w.client(kgo.ConsumerGroup("live"), kgo.ConsumeTopics("t"), kgo.ClientID("me"), kgo.DisableAutoCommit())
	cl.PollFetches(context.Background())
	w.has("members", w.line(0, "", "group describe live -m").out, "me", "t:0,1,2")
	w.json(w.line(0, "", "group describe live -o json"), &d)
	g = d.Groups[0]
	if g.TotalLag != 0 || len(g.Partitions) != 3 || g.Partitions[0].Lag != nil || g.Partitions[0].Committed != nil || g.Partitions[0].ClientID != "me" || *g.Partitions[0].End != 5 {
		t.Errorf("a group without commits: %+v", g)
	}
	w.has("reset", w.line(1, "", "group reset live -t t --to-latest --execute").err, "with 1 member", "stop its consumers first")
	w.has("delete", w.line(1, "", "group delete live").err, "NON_EMPTY_GROUP")
	w.has("delete", w.line(3, "", "group delete g live nope").out, "deleted group g")
	w.line(0, "", "group delete nope --if-exists")
}

// Only what was printed is committed.
func TestGroupCount(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	w.line(0, "1\n2\n3\n4\n5\n", "produce t -q")
	got := ""
	for range 3 {
		got += w.line(0, "", "consume -G g t -c 2 -e -q").out + "|"
	}
	if got != "1\n2\n|3\n4\n|5\n|" {
		t.Errorf("got %q", got)
	}
}

// An end that no record announces: empty batches after compaction, markers,
// aborted records.
func TestPastInvisible(t *testing.T) {
	batch := func(base int64, last, count int32, attrs uint16, producer int64) []byte {
		b := kmsg.RecordBatch{FirstOffset: base, Length: 49, Magic: 2, Attributes: int16(attrs), LastOffsetDelta: last, NumRecords: count, ProducerID: producer}
		return b.AppendTo(nil)
	}
	f := func(pos, want int64, aborted map[int64]int64, batches ...[]byte) {
		t.Helper()
		if got := pastInvisible(bytes.Join(batches, nil), pos, aborted); got != want {
			t.Errorf("from %d: got %d, want %d", pos, got, want)
		}
	}
	f(5, 5, nil)
	f(5, 5, nil, batch(5, 0, 1, 0, -1))
	f(5, 10, nil, batch(5, 4, 0, 0, -1))
	f(5, 10, nil, batch(3, 1, 2, 0, -1), batch(5, 4, 0, 0, -1)) // the first lies before
	f(5, 6, nil, batch(5, 0, 1, 0x30, 1), batch(6, 0, 1, 0, -1))
	f(5, 9, map[int64]int64{1: 5}, batch(5, 2, 3, 0x10, 1), batch(8, 0, 1, 0x30, 1))
	f(5, 5, map[int64]int64{2: 5}, batch(5, 2, 3, 0x10, 1))
	f(5, 5, nil, batch(5, 4, 0, 0, -1)[:60])
}

func TestExitAtInvisibleEnd(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	cl := w.client(kgo.TransactionalID("x"), kgo.DefaultProduceTopic("t"))
	ctx := context.Background()
	for _, commit := range []bool{true, false} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(commit))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
			t.Fatal(err)
		}
	}
	if r := w.line(0, "", "consume t -e -q -X isolation.level=read_committed"); r.out != "true\n" {
		t.Errorf("committed: %q", r.out)
	}
	if r := w.line(0, "", "consume t -e -q"); r.out != "true\nfalse\n" {
		t.Errorf("uncommitted: %q", r.out)
	}
}

// SIGINT ends following a topic without an error, and produce after what was
// read is acknowledged.
func TestInterrupt(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	ctx, cancel := context.WithCancel(context.Background())
	pr, pw := io.Pipe()
	defer pw.Close()
	done := make(chan result, 1)
	go func() { done <- runIn(ctx, pr, "produce", "t", "-b", w.servers) }()
	io.WriteString(pw, "one\ntwo\nthr")
	adm := kadm.NewClient(w.client())
	for end := int64(0); end < 2; {
		ends, err := adm.ListEndOffsets(context.Background(), "t")
		if err != nil {
			t.Fatal(err)
		}
		o, _ := ends.Lookup("t", 0)
		end = o.Offset
	}
	cancel()
	if r := <-done; r.code != ExitPartly || !strings.Contains(r.err, "interrupted: 2 records acknowledged") {
		t.Errorf("produce: %+v", r)
	}

	ctx, cancel = context.WithCancel(context.Background())
	var out buffer
	streams := IO{Stdout: io.MultiWriter(&out, writerFunc(func([]byte) { cancel() })), Stderr: io.Discard}
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(Commands(streams)...)
	root.SetArgs([]string{"consume", "t", "-b", w.servers})
	if code := Execute(ctx, root, streams); code != 0 || out.String() != "one\ntwo\n" {
		t.Errorf("consume: exit code %d, %q", code, out.String())
	}
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if r := runIn(ctx, nil, "topic", "list", "-b", w.servers); r.code != ExitFailed || !strings.Contains(r.err, "interrupted") {
		t.Errorf("list: %+v", r)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// A broker that advertises an address nobody reaches is named, with its id and
// the setting, by every command.
// B191: the address that cannot be reached is named, and what to set.
func TestAdvertisedUnreachable(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, refused, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	host, port := "nowhere.invalid", int32(9092)
	w.cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 7, host, port
		resp.Brokers, resp.ControllerID = append(resp.Brokers, b), 7
		rt := kmsg.NewMetadataResponseTopic()
		rt.Topic, rt.TopicID = kmsg.StringPtr("t"), [16]byte{1}
		rp := kmsg.NewMetadataResponseTopicPartition()
		rp.Leader, rp.Replicas, rp.ISR = 7, []int32{7}, []int32{7}
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	f := func(timeout, why string, code int, lines ...string) {
		t.Helper()
		for _, line := range lines {
			began := time.Now()
			args := append(strings.Fields(line), "-b", w.servers, "--timeout", timeout)
			r := runIn(context.Background(), strings.NewReader("x\n"), args...)
			if r.code != code {
				t.Errorf("%s: exit code %d", line, r.code)
			}
			w.has(line, r.err, fmt.Sprintf("broker 7 advertises the address %s:%d", host, port), why, "set advertised.listeners on broker 7")
			if d := time.Since(began); d > 25*time.Second {
				t.Errorf("%s took %v", line, d)
			}
		}
	}
	f("20s", "", ExitPartly, "topic describe t")
	f("20s", "", ExitFailed, "topic delete t", "consume t -e", "produce t", "group describe g", "config get broker 7")
	host = "127.0.0.1"
	fmt.Sscan(refused, &port)
	f("600ms", "connection refused", ExitFailed, "topic create x", "consume t", "produce t")
}

func TestSecurity(t *testing.T) {
	w := newWorld(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "u", "p"), kfake.SeedTopics(1, "t"))
	const sasl = "-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=SCRAM-SHA-256 -X sasl.username=u -X sasl.password="
	w.has("right", w.line(0, "", "topic list "+sasl+"p").out, "t ")
	// The fake cluster hangs up on a wrong password; Kafka names the error.
	w.has("wrong", w.line(1, "", "topic list "+sasl+"q").err, "closed the connection during the login", "check sasl.username")
	r := runIn(context.Background(), nil, "topic", "list", "-b", w.servers, "--timeout", "2s")
	if r.code != ExitFailed || !strings.Contains(r.err, "security.protocol") {
		t.Errorf("without SASL: %+v", r)
	}
	w.line(2, "", "topic list -X sasl.username=u -X sasl.password=p")
	w.line(2, "", "topic list -X security.protocol=SASL_PLAINTEXT")
}

// The lines of a dump become objects with the same names.
func TestDumpJSON(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		d := &dumpLines{file: "f"}
		got := strings.TrimPrefix(string(d.object(line)), `{"file":"f",`)
		if got != want {
			t.Errorf("%q:\ngot  %swant %s", line, got, want)
		}
	}
	f("Log starting offset: 0", `"kind":"note","text":"Log starting offset: 0"}`+"\n")
	f("offset: 46589 position: 326263", `"kind":"entry","offset":46589,"position":326263}`+"\n")
	f("baseOffset: 0 isControl: false deleteHorizonMs: OptionalLong.empty compresscodec: none", `"kind":"batch","baseOffset":0,"isControl":false,"deleteHorizonMs":null,"compresscodec":"none"}`+"\n")
	f("baseOffset: 0 deleteHorizonMs: OptionalLong[7]", `"kind":"batch","baseOffset":0,"deleteHorizonMs":7}`+"\n")
	f("| offset: 3 keySize: -1 headerKeys: [a b,c]\x00,\"key\":null", `"kind":"record","offset":3,"keySize":-1,"headerKeys":"[a b,c]","key":null}`+"\n")
	r := runIn(context.Background(), nil, "log", "dump", "/no/such.log")
	if r.code != ExitFailed || !strings.Contains(r.err, "cannot dump /no/such.log: no such file") {
		t.Errorf("no file: %+v", r)
	}
	if r = runIn(context.Background(), nil, "log", "dump", t.TempDir()); r.code != ExitUsage {
		t.Errorf("a directory: %+v", r)
	}
}

// A damaged file is shown as far as it goes and ends with 1, also where only a
// checksum is wrong. What looks like damage in a record's text is none.
func TestDumpDamage(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var sound []byte
	for i := range 3 {
		b := batch.NewBuilder(batch.Plain(batch.NoCodec))
		b.Add(1000, nil, []byte("x\nbaseOffset: 7 isvalid: false\nRecords at position 0 cannot be read: no"))
		v := b.Bytes()
		v.Stamp(kafka.Offset(i), 0)
		sound = append(sound, v...)
	}
	one := len(sound) / 3
	bad := slices.Clone(sound)
	bad[one+one-1] ^= 1

	f := func(code int, wantErr string, args ...string) result {
		t.Helper()
		r := runIn(context.Background(), nil, append([]string{"log", "dump"}, args...)...)
		if r.code != code || r.err != wantErr {
			t.Errorf("dump %s: exit code %d, %q\n%s", args, r.code, r.err, r.out)
		}
		return r
	}
	good, broken := file("t-0/00000000000000000000.log", sound), file("t-1/00000000000000000000.log", bad)
	f(0, "", good)
	f(0, "", good, "--data")
	f(0, "", good, "--data", "-o", "json")
	for _, flags := range [][]string{{}, {"--records"}, {"--data"}, {"-o", "json"}, {"--data", "-o", "json"}} {
		want := fmt.Sprintf("weir: %s is damaged at byte %d: the checksum of the batch does not match\n", broken, one)
		r := f(1, want, append([]string{broken}, flags...)...)
		if !strings.Contains(r.out, "baseOffset: 2 ") && !strings.Contains(r.out, `"baseOffset":2,`) {
			t.Errorf("%s: what follows is not shown:\n%s", flags, r.out)
		}
	}
	f(3, fmt.Sprintf("weir: %s is damaged at byte %d: the checksum of the batch does not match\n", broken, one), broken, good)

	// The metadata log has a form of its own, known by what the file begins with.
	meta := append([]byte("weirmeta\x00\x00\x00\x01\x00\x00\x00\x00"), make([]byte, 64)...)
	for _, name := range []string{"__weir_metadata/00000000000000000002.log", "saved.log"} {
		if r := f(0, "", file(name, meta)); !strings.Contains(r.out, "log version 1\n16 end\n") {
			t.Errorf("metadata log: %s", r.out)
		}
	}
	meta[16] = 1
	cut := file("__weir_metadata/00000000000000000003.log", meta)
	f(1, fmt.Sprintf("weir: %s is damaged at byte 16: broken frame\n", cut), cut)
	cut = file("__weir_metadata/00000000000000000004.log", []byte("?"))
	f(1, fmt.Sprintf("weir: %s is damaged at byte 0: neither a metadata log nor a metadata snapshot\n", cut), cut)
}
