package tools

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/lab"
)

func perfLatencyCommand(in IO) *cobra.Command {
	f := &perfFlags{}
	c := &cobra.Command{
		Use:   "latency",
		Short: "Measure from the due time of a record to its arrival at a consumer",
		Long: `Send records at a rate and read them back in the same process, so that one clock tells
how long each took from the time it was due to its arrival at a consumer. Acknowledgement
latency is told beside it.

The rate must be one the cluster carries easily: near its limit this measures a queue. As in
the Java client linger.ms is 5 by default; -X linger.ms=0 shows the path alone.
` + perfHelp,
		Example: `  weir perf latency -t probe --partitions 1
  weir perf latency -t probe --rate 5k --duration 1m -X acks=1 -X linger.ms=0 --fail-if 'e2e.p99 > 10ms'`,
		Args: WantArgs(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return f.latency(c.Context(), in) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.rate, "rate", "r", "200", "records per second of all producers together")
	fs.DurationVar(&f.duration, "duration", 0, "how long to send (default 30s, when there is no --num-records)")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "constant, poisson, burst:N (N due at once) or ramp:RATE (climbs from --rate to RATE)")
	fs.IntVar(&f.consumers, "consumers", 1, "clients that read, each with connections of its own")
	f.load(c, "100")
	f.make(c)
	f.common(c)
	return c
}

func (f *perfFlags) latency(ctx context.Context, in IO) error {
	l, largest, err := f.loadOf()
	switch {
	case err != nil:
		return err
	case l.Arrivals == nil:
		return usagef("weir perf latency needs a --rate: as fast as possible measures the client's own queue")
	case f.consumers < 1 || f.consumers > 1000:
		return usagef("--consumers %d: want 1 to 1000", f.consumers)
	}
	r, err := f.begin(ctx, in, "latency")
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := r.probe(l, largest)
	if err != nil {
		r.drop()
		return err
	}
	r.run.Latency = p
	return r.finish(p.All.Failed+p.Lost, p.Interrupted)
}

func (r *perfRun) probe(l lab.Load, largest int) (*lab.Probed, error) {
	// Where the topic ends now, so that no record is sent before its reader stands there.
	offsets, _, err := r.positions(true)
	if err != nil {
		return nil, err
	}
	senders, err := r.senders(r.f.producers, max(largest, lab.StampBytes))
	if err != nil {
		return nil, err
	}
	readers, err := r.readers(r.f.consumers, "", true, offsets)
	if err != nil {
		return nil, err
	}
	r.f.spec(r, l)
	r.run.Spec["consumers"] = r.f.consumers
	l.Live = r.arrivalLine
	p, err := lab.Probe(r.session.ctx, l, senders, readers, rand.Uint64(), 5*time.Second)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return p, nil
}

func (r *perfRun) arrivalLine(w lab.Window) {
	e := "-"
	if w.EndToEnd != nil && w.EndToEnd.P50Us != nil {
		e = lab.Millis(float64(*w.EndToEnd.P50Us))
	}
	most := "-"
	if w.EndToEnd != nil {
		most = lab.Millis(float64(w.EndToEnd.MaxUs))
	}
	r.say("%6.1f s  %10s records/s  acknowledged p50 %s max %s  arrived p50 %s max %s", w.AtS+w.Seconds, lab.Count(w.Rate()),
		lab.Millis(float64(w.P50Us)), lab.Millis(float64(w.MaxUs)), e, most)
}
