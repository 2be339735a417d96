package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirmq/weir/internal/tools"
)

// IO is what a tool sees of the process it runs in.
type IO = tools.IO

// kafkaVersion is the release whose tools these are like.
const kafkaVersion = "4.4.0"

// call is one run of a tool.
type call struct {
	ctx  context.Context
	in   IO
	name string
	args []string
}

// exit ends a tool: what is said last, and its code.
type exit struct {
	code   int
	stdout string
	stderr string
}

func (e *exit) Error() string { return strings.TrimSpace(e.stdout + e.stderr) }

// toolTable are the tools by name. One with waits says why it cannot be run yet.
func toolTable() map[string]func(*call) error {
	return map[string]func(*call) error{
		"kafka-delete-records":      deleteRecords,
		"kafka-log-dirs":            logDirs,
		"kafka-groups":              allGroups,
		"kafka-configs":             configs,
		"kafka-topics":              topics,
		"kafka-producer-perf-test":  producerPerf,
		"kafka-consumer-perf-test":  consumerPerf,
		"kafka-broker-api-versions": apiVersions,
		"kafka-console-producer":    consoleProducer,
		"kafka-console-consumer":    consoleConsumer,
		"kafka-get-offsets":         getOffsets,
		"kafka-consumer-groups":     consumerGroups,
	}
}

// waiting are Kafka's tools whose capability Weir does not have yet.
var waiting = map[string]string{
	"kafka-acls":                      "access control lists",
	"kafka-delegation-tokens":         "delegation tokens",
	"kafka-transactions":              "transactions",
	"kafka-share-groups":              "share groups",
	"kafka-console-share-consumer":    "share groups",
	"kafka-share-consumer-perf-test":  "share groups",
	"kafka-verifiable-share-consumer": "share groups",
	"kafka-streams-groups":            "streams groups",
	"kafka-streams-application-reset": "Kafka Streams",
	"kafka-client-metrics":            "client metrics subscriptions",
	"connect-standalone":              "Kafka Connect",
	"connect-distributed":             "Kafka Connect",
	"connect-mirror-maker":            "Kafka Connect",
}

// later are tools that make sense on what Weir serves and are not written yet.
var later = []string{"kafka-cluster", "kafka-dump-log", "kafka-e2e-latency", "kafka-features", "kafka-leader-election", "kafka-metadata-quorum",
	"kafka-reassign-partitions", "kafka-replica-verification", "kafka-storage", "kafka-verifiable-consumer", "kafka-verifiable-producer"}

// Names are the tools that Run knows, sorted: those that are served and those
// that say what they wait for.
func Names() []string {
	all := slices.Collect(maps.Keys(toolTable()))
	all = append(slices.AppendSeq(all, maps.Keys(waiting)), later...)
	slices.Sort(all)
	return all
}

// Tool is the tool's name in what a process was called by: the last part of a
// path, .sh, .bat and .exe taken off. ok is false where it is no tool of Kafka's.
func Tool(arg0 string) (name string, ok bool) {
	name = filepath.Base(arg0)
	for _, ext := range []string{".exe", ".sh", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	if !strings.HasPrefix(name, "kafka-") && !strings.HasPrefix(name, "connect-") {
		return name, false
	}
	return name, slices.Contains(Names(), name)
}

// Run runs one tool to its end and returns the process's exit code. name is as
// Tool gives it.
func Run(ctx context.Context, name string, args []string, in IO) int {
	run := toolTable()[name]
	if slices.Contains(later, name) {
		fmt.Fprintf(in.Stderr, "%s is not in this binary yet; Kafka's own works against Weir.\n", name)
		return 1
	}
	if run == nil {
		fmt.Fprintf(in.Stderr, "%s waits for %s, which Weir does not serve yet; Kafka's own %s works against other clusters.\n", name, waiting[name], name)
		return 1
	}
	for _, a := range args {
		if a == "--zookeeper" || strings.HasPrefix(a, "--zookeeper=") {
			fmt.Fprintf(in.Stderr, "zookeeper is not a recognized option: there is no ZooKeeper since Kafka 4.0; give a broker instead, as in %s --bootstrap-server localhost:9092\n", name)
			return 1
		}
	}
	err := run(&call{ctx: ctx, in: in, name: name, args: args})
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*exit](err)
	if !ok {
		// What no tool caught is told as Java does.
		e = &exit{code: 1, stderr: "Exception in thread \"main\" " + java("", err).line() + "\n"}
	}
	io.WriteString(in.Stdout, e.stdout)
	io.WriteString(in.Stderr, e.stderr)
	return e.code
}

func (c *call) printf(format string, args ...any) { fmt.Fprintf(c.in.Stdout, format, args...) }
func (c *call) errorf(format string, args ...any) { fmt.Fprintf(c.in.Stderr, format, args...) }

// usage ends a tool whose command line is wrong: what is wrong and the help, on stderr.
func usage(o *options, message string) error {
	return &exit{code: 1, stderr: message + "\n" + o.table()}
}

// common are the two flags every tool has. helpOrVersion answers them.
func common(o *options) {
	o.flag("help", "Print usage information.")
	o.flag("version", "Display Kafka version.")
}

// helpOrVersion answers --help, --version and a command line without a word.
func helpOrVersion(c *call, o *options, about string) error {
	if len(c.args) == 0 || o.byName["help"].given {
		return usage(o, about)
	}
	if o.byName["version"].given {
		return &exit{stdout: kafkaVersion + "\n"}
	}
	return nil
}

// sleep waits for d; false when the tool is interrupted.
func (c *call) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}
