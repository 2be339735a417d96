package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/internal/lab"
)

func perfCommand(in IO) *cobra.Command {
	return family("perf", "Measure what a cluster carries: load, latency, limits, comparisons",
		perfProduceCommand(in), perfConsumeCommand(in), perfLatencyCommand(in), perfRampCommand(in), perfCompareCommand(in),
		perfReportCommand(in))
}

// perfFlags are the flags of the commands of the lab. Each command adds those it
// has a use for.
type perfFlags struct {
	conn       connFlags
	out        output
	topic      string
	partitions int32
	replicas   int16
	rate       string
	duration   time.Duration
	records    int64
	size       string
	payload    string
	file       string
	keys       string
	arrivals   string
	producers  int
	consumers  int
	window     int
	drain      time.Duration
	failIf     []string
	dir        string
	warmup     string
	quiet      bool
}

const perfHelp = `
Results go to a run folder (--out, default ./weir-perf/TIME-NAME; --out none: nowhere):
report.json, summary.txt, windows.csv. -o json prints report.json on stdout. Latencies in
JSON are microseconds (..._us). Ctrl-C ends the run in order and keeps what was measured.
` + exitHelp + ` Here 1 also means that records
failed or that a condition of --fail-if holds, 3 that the run was cut short or its results
could not be written.`

func (f *perfFlags) common(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.topic, "topic", "t", "", "topic")
	fs.StringArrayVar(&f.failIf, "fail-if", nil, "condition under which the run counts as failed, such as 'p99 > 20ms'; repeated")
	fs.StringVar(&f.dir, "out", "", "run folder; none: write nothing")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no line for each second")
	f.out.flag(c)
	f.conn.flags(c)
}

func (f *perfFlags) make(c *cobra.Command) {
	c.Flags().Int32Var(&f.partitions, "partitions", 0, "make the topic with so many partitions if there is none; 0: it must exist")
	c.Flags().Int16Var(&f.replicas, "replicas", -1, "replicas of a topic that is made; -1: the cluster's default")
}

func (f *perfFlags) load(c *cobra.Command, size string) {
	fs := c.Flags()
	fs.Int64VarP(&f.records, "num-records", "n", 0, "end after this many records")
	fs.StringVar(&f.size, "record-size", size, "bytes of a value: N, a mix 200*80,4096*20 or lognormal:MEDIAN:SIGMA:MAX")
	fs.StringVar(&f.payload, "payload", "random", "what values hold: random, text, json, letters, zero or ratio:SHARE")
	fs.StringVar(&f.file, "payload-file", "", "take the lines of this file as values instead")
	fs.StringVar(&f.keys, "keys", "none", "none, uniform:N, zipf:N[:S], sequential[:N]")
	fs.IntVar(&f.producers, "producers", 1, "clients that send, each with connections of its own")
	fs.StringVar(&f.warmup, "warmup", "auto", "auto: leave out the seconds before the run is steady; none: leave out nothing")
	fs.DurationVar(&f.drain, "drain", 30*time.Second, "longest wait for acknowledgements after the last send")
}

// perfRun is a run of the lab from the first look at the cluster to its exit code.
type perfRun struct {
	*session
	f       *perfFlags
	in      IO
	ctx     context.Context // the command's own, to tell an interrupt
	props   *settings
	seen    *lab.Observer
	folder  *lab.Folder
	checks  []lab.Check
	run     *lab.Run
	topic   kadm.TopicDetail
	clients []*kgo.Client
}

// begin checks what can be checked before anything is sent: flags, the run
// folder, the cluster, the topic. Close must be called when there is no error.
func (f *perfFlags) begin(ctx context.Context, in IO, kind string, opts ...kgo.Opt) (*perfRun, error) {
	r, err := f.reach(ctx, in, kind, opts...)
	if err != nil {
		return nil, err
	}
	if err := r.look(); err != nil {
		r.Close()
		r.drop()
		return nil, err
	}
	return r, nil
}

// reach is begin without a look at the topic.
func (f *perfFlags) reach(ctx context.Context, in IO, kind string, opts ...kgo.Opt) (*perfRun, error) {
	if f.topic == "" {
		return nil, usagef("say which topic: --topic NAME; with --partitions N it is made if there is none")
	}
	r := &perfRun{f: f, in: in, ctx: ctx, seen: &lab.Observer{}}
	for _, text := range f.failIf {
		c, err := lab.ParseCheck(text)
		if err != nil {
			return nil, usagef("--fail-if: %w", err)
		}
		r.checks = append(r.checks, c)
	}
	var err error
	if r.props, err = f.conn.load(in); err != nil {
		return nil, err
	}
	started := time.Now()
	if f.dir != "none" {
		if f.dir == "" {
			f.dir = filepath.Join("weir-perf", started.Format("20060102-150405.000")+"-"+kind)
		}
		if r.folder, err = lab.MakeFolder(f.dir); err != nil {
			return nil, failf("%w", err)
		}
	}
	if f.conn.debug {
		r.seen.Next = f.conn.logger(in)
	}
	// The client looks again for a leader no sooner than this; its own 5 s would
	// be told as the cluster's latency. The Java client waits 100 ms (retry.backoff.ms).
	opts = append(append(r.seen.Options(), kgo.MetadataMinAge(100*time.Millisecond)), opts...)
	if r.session, err = f.conn.open(ctx, in, r.props, false, opts...); err != nil {
		r.drop()
		return nil, err
	}
	r.run = &lab.Run{Format: lab.RunFormat, Kind: kind, Started: started, Spec: map[string]any{"topic": f.topic}}
	return r, nil
}

func (r *perfRun) drop() {
	if r.folder != nil {
		r.folder.Drop()
	}
}

// Close ends every client.
func (r *perfRun) Close() {
	for _, cl := range r.clients {
		cl.CloseAllowingRebalance()
	}
	r.session.Close()
}

// client makes one more client like the session's.
func (r *perfRun) client(opts ...kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(append(slices.Clone(r.opts), opts...)...)
	if err != nil {
		return nil, usagef("the client properties do not fit together: %w", err)
	}
	r.clients = append(r.clients, cl)
	return cl, nil
}

// look finds or makes the topic and notes where the run takes place.
func (r *perfRun) look() error {
	host, _ := os.Hostname()
	env := lab.Environment{Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, Host: host, Cores: runtime.GOMAXPROCS(0), Bootstrap: r.seeds, Topic: r.f.topic}
	if err := r.findTopic(); err != nil {
		return err
	}
	ctx, stop := r.within()
	defer stop()
	if m, err := r.adm.BrokerMetadata(ctx); err == nil {
		env.ClusterID, env.Brokers = m.Cluster, len(m.Brokers)
		for _, b := range m.Brokers {
			env.SameHost = env.SameHost || isHere(b.Host)
		}
	}
	env.Partitions = len(r.topic.Partitions)
	for _, p := range r.topic.Partitions {
		env.Replicas = max(env.Replicas, len(p.Replicas))
	}
	if cs, err := r.adm.DescribeTopicConfigs(ctx, r.f.topic); err == nil && len(cs) == 1 {
		for _, c := range cs[0].Configs {
			if c.Source.String() == "DYNAMIC_TOPIC_CONFIG" && c.Value != nil {
				if env.TopicSets == nil {
					env.TopicSets = map[string]string{}
				}
				env.TopicSets[c.Key] = *c.Value
			}
		}
	}
	r.run.Environment = env
	if env.SameHost {
		r.run.Notes = append(r.run.Notes, "a broker runs on this host: the load takes its cores, so the limit found is that of both together")
	}
	return nil
}

func isHere(host string) bool {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || host == "localhost" {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.String() == host
	})
}

// within bounds a request by --timeout.
func (r *perfRun) within() (context.Context, context.CancelFunc) {
	if r.timeout == 0 {
		return context.WithCancel(r.session.ctx)
	}
	return context.WithTimeout(r.session.ctx, r.timeout)
}

// findTopic waits until every partition has a leader.
func (r *perfRun) findTopic() error {
	ctx, stop := r.within()
	defer stop()
	made := false
	for {
		ts, err := r.adm.ListTopicsWithInternal(ctx, r.f.topic)
		if err != nil {
			return r.explain("look up topic "+r.f.topic, err)
		}
		t := ts[r.f.topic]
		led := t.Err == nil && len(t.Partitions) > 0
		for _, p := range t.Partitions {
			led = led && p.Err == nil && p.Leader >= 0
		}
		switch {
		case led:
			r.topic = t
			return nil
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition) && !made:
			if r.f.partitions <= 0 {
				return failf("there is no topic %s: give --partitions N to have it made, or make it with weir topic create", r.f.topic)
			}
			if _, err := r.adm.CreateTopic(ctx, r.f.partitions, r.f.replicas, nil, r.f.topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
				return r.explain("make topic "+r.f.topic, err)
			}
			made = true
		case t.Err != nil && !kerr.IsRetriable(t.Err):
			return failf("cannot use topic %s: %s", r.f.topic, describeError(t.Err, ""))
		}
		select {
		case <-ctx.Done():
			if r.ctx.Err() != nil {
				return interrupted()
			}
			return failf("topic %s has partitions without a leader after %v: weir topic describe %s shows them", r.f.topic, r.timeout, r.f.topic)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// live is where lines go that are not the answer.
func (r *perfRun) live() io.Writer {
	if r.f.out.json {
		return r.in.Stderr
	}
	return r.in.Stdout
}

func (r *perfRun) say(format string, args ...any) {
	if !r.f.quiet {
		fmt.Fprintf(r.live(), format+"\n", args...)
	}
}

// finish prints and writes the run and gives its exit code.
func (r *perfRun) finish(failed int64, interrupted bool) error {
	w := r.seen.Wire()
	r.run.Wire = &w
	figures := r.run.Figures()
	for _, c := range r.checks {
		if say, broken := c.Broken(figures); broken {
			r.run.Broken = append(r.run.Broken, say)
		}
	}
	var unwritten error
	if r.folder != nil {
		unwritten = r.folder.Write(r.run)
	}
	var err error
	if r.f.out.json {
		err = writeJSON(r.in.Stdout, r.run)
	} else {
		err = r.run.Text(r.in.Stdout)
		if err == nil && r.folder != nil && unwritten == nil {
			_, err = fmt.Fprintf(r.in.Stdout, "results     %s\n", r.folder.Path)
		}
	}
	lost, _ := errors.AsType[*Failure](context.Cause(r.session.ctx))
	switch {
	case err != nil:
		return failf("cannot write the result: %w", err)
	case lost != nil:
		return lost
	case len(r.run.Broken) > 0:
		return &Failure{Code: ExitFailed}
	case failed > 0:
		return failf("%s", plural(failed, "record")+" failed: see the errors above")
	case unwritten != nil:
		return &Failure{ExitPartly, fmt.Errorf("the run is printed above, and its folder could not be written (%w): make room, or give another --out", unwritten)}
	case interrupted:
		return &Failure{ExitPartly, errors.New("interrupted: what was measured until then is above")}
	}
	return nil
}

// payloadOf makes the values of a run.
func (f *perfFlags) payloadOf() (*lab.Pool, int, error) {
	spec, err := lab.ParsePayload(f.payload)
	if err != nil {
		return nil, 0, usagef("--payload: %w", err)
	}
	if spec.Sizes, err = lab.ParseSizes(f.size); err != nil {
		return nil, 0, usagef("--record-size: %w", err)
	}
	largest := spec.Sizes.Largest()
	if f.file != "" {
		body, err := os.ReadFile(f.file)
		if err != nil {
			return nil, 0, usagef("cannot read --payload-file: %w", err)
		}
		spec.Kind, spec.Lines, largest = "lines", nil, 0
		for l := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n"), "\n") {
			if l != "" {
				spec.Lines = append(spec.Lines, []byte(l))
				largest = max(largest, len(l))
			}
		}
	}
	p, err := lab.NewPool(spec)
	if err != nil {
		return nil, 0, usagef("%w", err)
	}
	return p, largest, nil
}

// parsePerfRate reads --rate: 0 and "max" are a closed loop.
func parsePerfRate(s string) (float64, error) {
	if s == "" || s == "max" || s == "0" || s == "-1" {
		return 0, nil
	}
	p, err := lab.ParsePlan(s)
	if err != nil || p.Kind != "list" || len(p.Rates) != 1 {
		return 0, usagef("--rate %q: want records per second such as 5000, 20k or 1.5m, or max", s)
	}
	return p.Rates[0], nil
}
