package tools

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/lab"
)

type rampFlags struct {
	perfFlags
	steps   string
	settle  time.Duration
	hold    time.Duration
	confirm time.Duration
	factor  float64
	floor   time.Duration
}

func perfRampCommand(in IO) *cobra.Command {
	f := &rampFlags{}
	c := &cobra.Command{
		Use:   "ramp",
		Short: "Find the rate that a cluster carries",
		Long: `Load a topic at rising rates until a rule stops it, and tell the highest rate that passed.

--steps 1k,2k,5k tries those; 1k..100k climbs by two and then closes in on the limit until it
is known to 5 %; 1k..100k*1.5 climbs by 1.5. Each step settles, then holds, and is judged by
errors, in-sync replicas, achieved over offered (98 %), p99 (3 times the median of the lower
steps and above 20 ms), in this order. What was not measured is named.
With --confirm 80 % of the result is held for that long at the end.
` + perfHelp,
		Example: `  weir perf ramp -t load --partitions 12 --steps 10k..2m --hold 1m --confirm 5m
  weir perf ramp -t load --steps 50k,100k,200k,500k --hold 5m --producers 4 -X acks=1`,
		Args: WantArgs(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return f.ramp(c.Context(), in) },
	}
	fs := c.Flags()
	fs.StringVar(&f.steps, "steps", "1k..2m", "rates to try, of all producers together")
	fs.DurationVar(&f.settle, "settle", 5*time.Second, "begin of each step that is left out")
	fs.DurationVar(&f.hold, "hold", 30*time.Second, "how long each step is measured")
	fs.DurationVar(&f.confirm, "confirm", 0, "hold 80 % of the result for so long at the end")
	fs.Float64Var(&f.factor, "p99-factor", 3, "stop when p99 is so many times that of the lower steps")
	fs.DurationVar(&f.floor, "p99-floor", 20*time.Millisecond, "and above this")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "constant, poisson or burst:N (N due at once)")
	f.load(c, "1024")
	_ = fs.MarkHidden("num-records")
	f.make(c)
	f.common(c)
	return c
}

func (f *rampFlags) ramp(ctx context.Context, in IO) error {
	plan, err := lab.ParsePlan(f.steps)
	switch {
	case err != nil:
		return usagef("--steps: %w", err)
	case f.records != 0:
		return usagef("--num-records is not for a ramp: give --hold")
	case f.hold < time.Second || f.settle < 0 || f.confirm < 0:
		return usagef("--hold wants at least 1s, --settle and --confirm no less than 0")
	case !(f.factor > 1) || f.floor <= 0:
		return usagef("--p99-factor wants more than 1 and --p99-floor more than 0")
	}
	f.rate, f.duration = "1", time.Second
	l, largest, err := f.loadOf()
	if err != nil {
		return err
	}
	r, err := f.begin(ctx, in, "ramp")
	if err != nil {
		return err
	}
	defer r.Close()
	senders, err := r.senders(f.producers, largest)
	if err != nil {
		r.drop()
		return err
	}
	f.spec(r, l)
	s := r.run.Spec
	s["steps"], s["settle_s"], s["hold_s"] = f.steps, f.settle.Seconds(), f.hold.Seconds()
	delete(s, "arrivals")
	if f.hold < 5*time.Minute {
		r.run.Notes = append(r.run.Notes, fmt.Sprintf("steps of %v do not see what takes minutes (flushes, compaction, a disk's cache that fills): --hold 5m and --confirm do", f.hold))
	}
	limits := lab.Limits{P99Factor: f.factor, P99FloorUs: float64(f.floor.Microseconds())}
	step := func(ctx context.Context, rate float64, hold time.Duration) (lab.Step, error) {
		a, err := lab.ParseArrivals(f.arrivals, rate, f.settle+hold)
		if err != nil {
			return lab.Step{}, usagef("--arrivals: %w", err)
		}
		l := l
		l.Arrivals, l.Duration = &a, f.settle+hold
		short, stop := r.watchReplicas(ctx)
		p, err := lab.Produce(ctx, l, senders)
		seconds := stop()
		if err != nil {
			return lab.Step{}, err
		}
		st := lab.StepOf(p, f.settle)
		st.AcksAll = s["acks"] == "all"
		if short {
			st.UnderReplicated = &seconds
		}
		return st, nil
	}
	res, err := lab.Ramp(r.session.ctx, plan, limits, f.hold, f.confirm, step, r.stepLine)
	if err != nil {
		r.drop()
		return err
	}
	r.run.Ramp = res
	err = r.finish(0, ctx.Err() != nil)
	if err == nil && res.Outcome.Sustainable == 0 {
		return &Failure{Code: ExitFailed}
	}
	return err
}

func (r *perfRun) stepLine(s lab.Step, fs []lab.Finding) {
	verdict := "passed"
	for _, f := range fs {
		if f.Stop {
			verdict = "STOP " + f.Rule + ": " + f.Evidence
			break
		}
		verdict = "passed with caution, " + f.Rule + ": " + f.Evidence
	}
	p99 := "-"
	if s.P99Us > 0 {
		p99 = lab.Millis(s.P99Us)
	}
	r.say("offered %s  achieved %s  p99 %s  %s", lab.Count(s.Offered), lab.Count(s.Achieved), p99, verdict)
}

// watchReplicas looks each second whether a partition of the topic is short of
// in-sync replicas. measured is false when the topic has no second replica.
func (r *perfRun) watchReplicas(ctx context.Context) (measured bool, stop func() (seconds float64)) {
	if r.run.Environment.Replicas < 2 {
		return false, func() float64 { return 0 }
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	short := 0.0
	watching.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			ts, err := r.adm.ListTopicsWithInternal(ctx, r.f.topic)
			now := time.Now()
			if err == nil {
				for _, p := range ts[r.f.topic].Partitions {
					if len(p.ISR) < len(p.Replicas) {
						short += now.Sub(last).Seconds()
						break
					}
				}
			}
			last = now
		}
	})
	return true, func() float64 {
		cancel()
		watching.Wait()
		return short
	}
}
