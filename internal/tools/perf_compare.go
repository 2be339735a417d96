package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/lab"
)

type compareFlags struct {
	perfFlags
	pairs  int
	a, b   []string // client properties of one side
	ta, tb []string // topic configs of one side
	server string   // of B, when it is another cluster
	keep   bool
}

func perfCompareCommand(in IO) *cobra.Command {
	f := &compareFlags{}
	c := &cobra.Command{
		Use:   "compare",
		Short: "Say whether a change helped, and how sure that is",
		Long: `Run a load turn about with two settings, A and B, and say of each figure whether B is
better, worse, or no difference was seen, with the interval that holds the true change in
95 of 100 cases, and how large a change these runs could have seen.

The runs are A B B A A B B A …, so that what drifts falls on both; each has a new topic, and
one run of each side goes before and is thrown away. Change one thing at a time: what differs
between the sides is --a and --b (client properties), --a-topic and --b-topic (topic
configs), or --b-bootstrap-server (another cluster).
` + perfHelp,
		Example: `  weir perf compare -t cmp --a linger.ms=5 --b linger.ms=20 --rate 20k
  weir perf compare -t cmp --a compression.type=none --b compression.type=lz4 --payload json --duration 1m --pairs 10
  weir perf compare -t cmp -b kafka:9092 --b-bootstrap-server weir:9092 --rate 50k`,
		Args: WantArgs(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return f.compare(c.Context(), in) },
	}
	fs := c.Flags()
	fs.StringArrayVar(&f.a, "a", nil, "client property key=value of A; repeated")
	fs.StringArrayVar(&f.b, "b", nil, "client property key=value of B; repeated")
	fs.StringArrayVar(&f.ta, "a-topic", nil, "topic config key=value of A; repeated")
	fs.StringArrayVar(&f.tb, "b-topic", nil, "topic config key=value of B; repeated")
	fs.StringVar(&f.server, "b-bootstrap-server", "", "cluster of B, when it is another one")
	fs.IntVar(&f.pairs, "pairs", 6, "pairs of runs; even, 4 at least")
	fs.StringVarP(&f.rate, "rate", "r", "max", "records per second of all producers together, such as 20k; max: closed loop, where only throughput is compared")
	fs.DurationVar(&f.duration, "duration", 20*time.Second, "length of each run")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "constant, poisson or burst:N (N due at once)")
	fs.IntVar(&f.window, "window", 0, "records in flight at most for each producer; 0: 32 MiB of them")
	fs.BoolVar(&f.keep, "keep-topics", false, "do not delete the topics of the runs")
	f.load(c, "1024")
	fs.Int32Var(&f.partitions, "partitions", 6, "partitions of each run's topic")
	fs.Int16Var(&f.replicas, "replicas", -1, "replicas of each run's topic; -1: the cluster's default")
	f.common(c)
	return c
}

// side is A or B.
type side struct {
	*perfRun
	name    string
	configs map[string]*string
	senders []lab.Sender
	runs    []lab.Figures
	behind  int // runs that did not reach the offered rate
}

func topicConfigs(pairs []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, usagef("topic config %q: write key=value", p)
		}
		out[k] = &v
	}
	return out, nil
}

func (f *compareFlags) compare(ctx context.Context, in IO) error {
	if f.pairs < 4 || f.pairs%2 != 0 || f.pairs > 1000 {
		return usagef("--pairs %d: want an even number from 4", f.pairs)
	}
	if f.partitions < 1 {
		return usagef("--partitions %d: want at least 1", f.partitions)
	}
	if slices.Equal(f.a, f.b) && slices.Equal(f.ta, f.tb) && f.server == "" {
		fmt.Fprintln(in.Stderr, "weir: A and B are the same: this shows what noise looks like here")
	}
	l, largest, err := f.loadOf()
	if err != nil {
		return err
	}
	var sides [2]*side
	for i, s := range []struct {
		name          string
		props, topics []string
	}{{"A", f.a, f.ta}, {"B", f.b, f.tb}} {
		pf := f.perfFlags
		pf.conn.props = append(slices.Clone(f.conn.props), s.props...)
		if i == 1 {
			pf.dir = "none"
			if f.server != "" {
				pf.conn.servers = []string{f.server}
			}
		}
		configs, err := topicConfigs(s.topics)
		if err != nil {
			return err
		}
		r, err := pf.reach(ctx, in, "compare")
		if err != nil {
			if i == 1 {
				sides[0].drop()
			}
			return err
		}
		defer r.Close()
		words := append(safeProperties(s.props), s.topics...)
		if i == 1 && f.server != "" {
			words = append(words, "at "+f.server)
		}
		sides[i] = &side{perfRun: r, name: cmp.Or(strings.Join(words, " "), "as it is"), configs: configs}
	}
	r := sides[0].perfRun
	result := &lab.CompareResult{A: sides[0].name, B: sides[1].name, Verdicts: map[string]lab.Comparison{}}
	r.run.Compare = result
	if n := differing(f.a, f.b) + differing(f.ta, f.tb); n > 1 {
		r.run.Notes = append(r.run.Notes, fmt.Sprintf("%d settings differ between A and B: a difference cannot be laid to one of them", n))
	}
	var failed int64
	stamp := time.Now().UnixMilli()
	run := func(s *side, no int, length time.Duration) (*lab.Produced, error) {
		p, err := s.once(fmt.Sprintf("%s-%d-%d", f.topic, stamp, no), l, largest, length, f.keep)
		if err != nil {
			return nil, err
		}
		failed += p.All.Failed
		return p, nil
	}
	broken := func(err error) error {
		if ctx.Err() == nil {
			r.drop()
			return err
		}
		return nil
	}
	for i, s := range sides {
		if _, err := run(s, i, max(f.duration/2, time.Second)); err != nil && broken(err) != nil {
			return err
		}
	}
	failed = 0
	for i := 0; i < 2*f.pairs && ctx.Err() == nil; i++ {
		s := sides[0]
		if lab.ABBA(i) {
			s = sides[1]
		}
		p, err := run(s, i+2, f.duration)
		if err != nil {
			if broken(err) != nil {
				return err
			}
			break
		}
		if p.Interrupted {
			break
		}
		figures := p.Figures()
		s.runs = append(s.runs, figures)
		if p.DebtGrows {
			s.behind++
		}
		latency := ""
		if p.OpenLoop {
			latency = fmt.Sprintf("  p50 %s  p99 %s", lab.Millis(figures["p50"]), lab.Millis(figures["p99"]))
		}
		r.say("run %2d of %d  %s  %10s records/s%s", i+1, 2*f.pairs, map[bool]string{false: "A", true: "B"}[lab.ABBA(i)], lab.Count(figures["rate"]), latency)
	}
	n := min(len(sides[0].runs), len(sides[1].runs))
	result.RunsA, result.RunsB = sides[0].runs[:n], sides[1].runs[:n]
	behind := sides[0].behind + sides[1].behind
	f.judge(result, l.Arrivals != nil, behind > 0)
	if behind > 0 {
		r.run.Notes = append(r.run.Notes, fmt.Sprintf("the offered rate was not reached in %d runs of A and %d of B: their latency is that of a growing queue; compare at a lower --rate",
			sides[0].behind, sides[1].behind))
	}
	f.spec(r, l)
	r.run.Spec["pairs"] = f.pairs
	return r.finish(failed, ctx.Err() != nil)
}

// differing counts keys that the sides set to different values.
func differing(a, b []string) int {
	keys := map[string]bool{}
	for _, p := range append(slices.Clone(a), b...) {
		if !slices.Contains(a, p) || !slices.Contains(b, p) {
			k, _, _ := strings.Cut(p, "=")
			keys[k] = true
		}
	}
	return len(keys)
}

// judge compares the figures that the kind of load carries. The latency of a
// closed loop is that of its queue, and the rate of an open one that is reached
// is the offer: neither says anything of the change.
func (f *compareFlags) judge(c *lab.CompareResult, open, behind bool) {
	names := []string{"rate"}
	switch {
	case open && !behind:
		names = []string{"p50", "p99", "p99.9"}
	case open || f.window == 1:
		names = []string{"rate", "p50", "p99", "p99.9"}
	}
	for _, name := range names {
		p := lab.Paired{MoreBetter: name == "rate"}
		for i := range c.RunsA {
			a, okA := c.RunsA[i][name]
			b, okB := c.RunsB[i][name]
			if okA && okB {
				p.A, p.B = append(p.A, a), append(p.B, b)
			}
		}
		if len(p.A) == len(c.RunsA) && len(p.A) > 0 {
			c.Verdicts[name] = lab.Compare(p, 0.95)
		}
	}
}

// once runs the load on a topic of its own.
func (s *side) once(topic string, l lab.Load, largest int, length time.Duration, keep bool) (*lab.Produced, error) {
	s.f.topic = topic
	ctx, stop := s.within()
	_, err := s.adm.CreateTopic(ctx, s.f.partitions, s.f.replicas, s.configs, topic)
	stop()
	if err != nil {
		return nil, s.explain("make topic "+topic, err)
	}
	if !keep {
		defer func() {
			// Also when the run was interrupted: the topic is ours.
			ctx, stop := context.WithTimeout(context.WithoutCancel(s.session.ctx), 10*time.Second)
			defer stop()
			_, _ = s.adm.DeleteTopic(ctx, topic)
		}()
	}
	notes := s.run.Notes
	if err := s.look(); err != nil {
		return nil, err
	}
	if len(notes) > 0 {
		s.run.Notes = notes // the same each time
	}
	if s.senders == nil {
		if s.senders, err = s.perfRun.senders(s.f.producers, largest); err != nil {
			return nil, err
		}
	}
	l.Topic, l.Duration = topic, length
	p, err := lab.Produce(s.session.ctx, l, s.senders)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return p, nil
}
