package kafkatools

// Shows: the tools against a broker in this process: what they print, where, and
// with which exit code. What Kafka's own print is compared under compat.

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/weirmq/weir"
)

// broker starts one and gives its address.
func broker(t *testing.T) string {
	t.Helper()
	s, err := weir.Start(context.Background(), weir.Options{DataDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Overrides: []string{"group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr()
}

// tool runs one command line; $B in it is the broker's address.
func tool(t *testing.T, b, stdin, line string) (code int, out, errs string) {
	t.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "$B", b))
	var o, e bytes.Buffer
	code = Run(t.Context(), args[0], args[1:], IO{Stdin: strings.NewReader(stdin), Stdout: &o, Stderr: &e})
	return code, o.String(), e.String()
}

func TestToolsOnBroker(t *testing.T) {
	b := broker(t)
	// f wants stdout to match the whole regular expression, and stderr to hold errs.
	f := func(line, stdin string, wantCode int, want, wantErr string) {
		t.Helper()
		code, out, errs := tool(t, b, stdin, line)
		if ok, err := regexp.MatchString(`(?s)\A(?:`+want+`)\z`, out); err != nil || !ok || code != wantCode || !strings.Contains(errs, wantErr) {
			t.Errorf("%s: exit %d, want %d\nstdout %q\nwant   %q\nstderr %q\nwith   %q", line, code, wantCode, out, want, errs, wantErr)
		}
	}
	f("kafka-topics --bootstrap-server $B --create --topic t --partitions 2", "", 0, `Created topic t\.\n`, "")
	f("kafka-topics --bootstrap-server $B --create --topic t", "", 1, `Error while executing topic command : Topic 't' already exists\.\n`, "ERROR org.apache.kafka.common.errors.TopicExistsException: Topic 't' already exists.")
	f("kafka-topics --bootstrap-server $B --list", "", 0, `t\n`, "")
	f("kafka-topics --bootstrap-server $B --describe --topic t", "", 0, `Topic: t\tTopicId: \S{22}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: [^\n]*\n(?:\tTopic: t\tPartition: [01]\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: [^\t]*\tLastKnownElr: [^\t\n]*\n){2}`, "")
	f("kafka-topics --zookeeper z:2181 --list", "", 1, ``, "--bootstrap-server localhost:9092")

	f("kafka-producer-perf-test --topic t --num-records 100 --record-size 50 --throughput -1 --producer-props bootstrap.servers=$B acks=1", "", 0,
		`Option --producer-props has been deprecated[^\n]*\n100 records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, \d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.\n`, "")
	f("kafka-producer-perf-test --topic t --num-records 2 --record-size 2000000 --throughput -1 --bootstrap-server $B", "", 1,
		`0 records sent, 0\.000000 records/sec [^\n]*\n`, "2 records were not written: 2 RecordTooLargeException")
	f("kafka-get-offsets --bootstrap-server $B --topic t", "", 0, `t:0:\d+\nt:1:\d+\n`, "")
	f("kafka-consumer-perf-test --bootstrap-server $B --topic t --messages 100 --threads 1 --group g", "", 0,
		`WARNING: option \[threads\][^\n]*\nWarning: --messages is deprecated[^\n]*\nstart\.time, [^\n]*\n[^\n]*, 0\.0048, \d+\.\d{4}, 100, [^\n]*\n`, "")

	f("kafka-console-producer --bootstrap-server $B --topic c --reader-property parse.key=true", "k\tv\nk2\tv2\n", 0, ``, "")
	f("kafka-console-producer --bootstrap-server $B --topic bad/x", "v\n", 1, ``, "1 records were not written: 1 InvalidTopicException")
	f("kafka-console-consumer --bootstrap-server $B --topic c --from-beginning --max-messages 2 --formatter-property print.key=true", "", 0, `k\tv\nk2\tv2\n`, "Processed a total of 2 messages")

	f("kafka-consumer-groups --bootstrap-server $B --describe --group g", "", 0, `\nGROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID\n(?:g               t               [01]          \d+ +\d+ +0               -               -               -\n)+`, "Consumer group 'g' has no active members.")
	f("kafka-consumer-groups --bootstrap-server $B --reset-offsets --group g --topic t:0 --to-earliest --execute", "", 0, `\nGROUP           TOPIC           PARTITION  NEW-OFFSET\ng               t               0          0\n`, "")
	f("kafka-consumer-groups --bootstrap-server $B --delete --group g", "", 0, `Deletion of requested consumer groups \('g'\) was successful\.\n`, "")

	f("kafka-configs --bootstrap-server $B --alter --topic t --add-config retention.ms=1000,cleanup.policy=[compact,delete]", "", 0, `Completed updating config for topic t\.\n`, "")
	f("kafka-configs --bootstrap-server $B --describe --topic t", "", 0, `Dynamic configs for topic t are:\n  cleanup\.policy=compact,delete sensitive=false synonyms=\{[^\n]*\}\n  retention\.ms=1000 sensitive=false [^\n]*\n`, "")
	f("kafka-broker-api-versions --bootstrap-server $B", "", 0, `\S+ \(id: 1 rack: null isFenced: false\) -> \(\n\tProduce\(0\): 0 to \d+ \[usable: \d+\],\n.*\n\)\n`, "")
	f("kafka-log-dirs --bootstrap-server $B --describe --topic-list c", "", 0, `Querying[^\n]*\nReceived[^\n]* 1\n\{"brokers":\[\{"broker":1,"logDirs":\[\{"partitions":\[\{"partition":"c-0","size":\d+,[^\n]*\}\],"version":1\}\n`, "")
	f("kafka-groups --bootstrap-server $B --list", "", 0, `GROUP +TYPE +PROTOCOL +\n.*`, "")
}

// Every tool that is named answers, and those that wait say so.
func TestEveryTool(t *testing.T) {
	for _, name := range Names() {
		code, out, errs := tool(t, "", "", name+" --help")
		if out+errs == "" || code != 1 {
			t.Errorf("%s --help: exit %d, %q %q", name, code, out, errs)
		}
		if toolTable()[name] == nil && strings.Count(errs, "\n") != 1 {
			t.Errorf("%s waits, and says %q", name, errs)
		}
	}
}

// What is parsed does not panic; a flag that takes words takes them all.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"--topic t --num-records 1 --record-size 1 --throughput -1", "--producer-props a=b c=d --topic x", "--t", "-h", "--print-metrics=x", "--", "-1 -- x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := newProducerPerfFlags()
		if err := p.parse(strings.Split(line, " ")); err == nil && !(p.topic.given && p.records.given && p.throughput.given) {
			t.Errorf("%q: taken without what is required", line)
		} else if e, ok := err.(*argError); ok {
			e.text()
		}
	})
}
