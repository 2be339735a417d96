package tools

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/internal/lab"
)

// What a producer of the lab is set to unless a property says otherwise: the
// Java client's defaults, so that a run speaks of what people run.
const (
	perfBatch    = 16384
	perfLinger   = 5 * time.Millisecond
	perfBuffer   = 32 << 20
	perfDelivery = 2 * time.Minute
)

func perfProduceCommand(in IO) *cobra.Command {
	f := &perfFlags{}
	c := &cobra.Command{
		Use:   "produce",
		Short: "Load a topic, at a rate or as fast as it takes",
		Long: `Send records to a topic and measure throughput and acknowledgement latency.

With --rate the load is an open loop: record k is due at k/rate, latency counts from that
time, and a record that is late is sent late and never skipped. Three latencies are told:
service (from the send), queue (from the due time to the send) and the sum of both.
Without --rate it is a closed loop: the client's buffer is kept full, and the latency is that
of this queue (--window 1: one record in flight, which is the cluster's own).

Values: --payload is one of
` + lab.PayloadKinds + `

Client properties (-X) have the Java client's defaults: acks=all, batch.size=16384,
linger.ms=5, buffer.memory=33554432, delivery.timeout.ms=120000, no compression.
` + perfHelp,
		Example: `  weir perf produce -t load --partitions 6 --rate 20k --duration 1m
  weir perf produce -t load --duration 30s --record-size 200 --producers 4 -X compression.type=lz4 --payload json
  weir perf produce -t load --rate 5k --duration 2m --arrivals poisson --fail-if 'p99 > 20ms' -o json`,
		Args: WantArgs(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return f.produce(c.Context(), in) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.rate, "rate", "r", "max", "records per second of all producers together, such as 20k; max: closed loop")
	fs.DurationVar(&f.duration, "duration", 0, "how long to send (default 30s, when there is no --num-records)")
	fs.StringVar(&f.arrivals, "arrivals", "constant", "constant, poisson, burst:N (N due at once) or ramp:RATE (climbs from --rate to RATE)")
	fs.IntVar(&f.window, "window", 0, "records in flight at most for each producer; 0: 32 MiB of them")
	f.load(c, "1024")
	f.make(c)
	f.common(c)
	return c
}

// loadOf reads the flags of a load; nothing is sent and nobody asked.
func (f *perfFlags) loadOf() (l lab.Load, largest int, err error) {
	rate, err := parsePerfRate(f.rate)
	if err != nil {
		return l, 0, err
	}
	switch {
	case f.duration < 0 || f.records < 0:
		return l, 0, usagef("--duration and --num-records must not be negative")
	case f.duration == 0 && f.records == 0:
		f.duration = 30 * time.Second
	}
	if f.producers < 1 || f.producers > 1000 {
		return l, 0, usagef("--producers %d: want 1 to 1000", f.producers)
	}
	if f.window < 0 || f.window > 1_000_000 {
		return l, 0, usagef("--window %d: want 1 to 1000000, or 0", f.window)
	}
	if f.warmup != "auto" && f.warmup != "none" {
		return l, 0, usagef("--warmup %q: want auto or none", f.warmup)
	}
	l.KeepAll = f.warmup == "none"
	if rate > 0 {
		over := f.duration
		if over == 0 {
			over = time.Duration(float64(f.records) / rate * float64(time.Second))
		}
		a, err := lab.ParseArrivals(f.arrivals, rate, over)
		if err != nil {
			return l, 0, usagef("--arrivals: %w", err)
		}
		l.Arrivals = &a
	} else if f.arrivals != "" && f.arrivals != "constant" {
		return l, 0, usagef("--arrivals %s needs a --rate", f.arrivals)
	}
	keys, err := lab.ParseKeys(f.keys)
	if err != nil {
		return l, 0, usagef("--keys: %w", err)
	}
	l.Keys = lab.NewKeyTable(keys)
	if l.Payload, largest, err = f.payloadOf(); err != nil {
		return l, 0, err
	}
	l.Duration, l.Records, l.Topic, l.Window, l.Drain = f.duration, f.records, f.topic, f.window, f.drain
	if lab.Busy() > 0 {
		l.Busy, l.Cores = lab.Busy, float64(runtime.GOMAXPROCS(0))
	}
	return l, largest, nil
}

// senders makes the producing clients, with the Java client's defaults.
func (r *perfRun) senders(n, largest int) ([]lab.Sender, error) {
	comp, err := codec(r.props.codec, r.props.level)
	if err != nil {
		return nil, usagef("%w", err)
	}
	batch := perfBatch
	if r.props.batch > 0 {
		batch = r.props.batch
	}
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(comp),
		kgo.ProducerLinger(perfLinger),
		// The client knows one bound for batch and record, so a batch takes a record at least.
		kgo.ProducerBatchMaxBytes(int32(max(batch, largest+512))),
		kgo.MaxBufferedBytes(perfBuffer),
		kgo.MaxBufferedRecords(1_000_000),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(batch, false, true, nil)),
		kgo.AllowIdempotentProduceCancellation(),
		kgo.UnknownTopicRetries(4),
	}
	if r.props.partitioner != nil {
		opts = append(opts, kgo.RecordPartitioner(r.props.partitioner))
	}
	acks, idempotent := r.props.acks, true
	switch acks {
	case "", "all":
		acks = "all"
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.LeaderAck())), false
	case "0":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.NoAck())), false
	}
	if want := r.props.idempotence; want != nil {
		if *want && !idempotent {
			return nil, usagef("enable.idempotence=true needs acks=all")
		}
		idempotent = *want
	}
	if !idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5))
	}
	delivery := perfDelivery
	if r.props.delivery > 0 {
		delivery = r.props.delivery
	}
	opts = append(opts, kgo.RecordDeliveryTimeout(delivery))
	opts = append(opts, r.props.producer...)
	var out []lab.Sender
	for range n {
		cl, err := r.client(opts...)
		if err != nil {
			return nil, err
		}
		out = append(out, cl)
	}
	s := r.run.Spec
	s["acks"], s["batch.size"], s["compression.type"] = acks, batch, r.props.codec
	s["enable.idempotence"], s["delivery.timeout.ms"], s["producers"] = idempotent, delivery.Milliseconds(), n
	if d, ok := r.clients[0].OptValue(kgo.ProducerLinger).(time.Duration); ok {
		s["linger.ms"] = d.Milliseconds()
	}
	s["properties"] = safeProperties(r.f.conn.props)
	return out, nil
}

func (f *perfFlags) spec(r *perfRun, l lab.Load) {
	s := r.run.Spec
	s["record_size"], s["payload"], s["keys"], s["window"] = f.size, f.payload, f.keys, f.window
	s["duration_s"], s["num_records"] = l.Duration.Seconds(), l.Records
	if f.file != "" {
		s["payload_file"] = f.file
	}
	if l.Arrivals != nil {
		s["arrivals"] = l.Arrivals
	}
}

func (f *perfFlags) produce(ctx context.Context, in IO) error {
	l, largest, err := f.loadOf()
	if err != nil {
		return err
	}
	r, err := f.begin(ctx, in, "produce")
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
	if err := r.payloadNotes(l.Payload); err != nil {
		r.drop()
		return err
	}
	l.Live = r.line
	p, err := lab.Produce(r.session.ctx, l, senders)
	if err != nil {
		r.drop()
		return usagef("%w", err)
	}
	r.run.Produce = p
	return r.finish(p.All.Failed, p.Interrupted)
}

// line is what is shown of one second of a load.
func (r *perfRun) line(w lab.Window) {
	failed := ""
	if w.Failed > 0 {
		failed = fmt.Sprintf("  %d FAILED", w.Failed)
	}
	late := ""
	if w.LateUs > 100_000 {
		late = "  sends late by " + lab.Millis(float64(w.LateUs))
	}
	r.say("%6.1f s  %10s records/s  %8.2f MB/s  p50 %s  p99 %s  max %s%s%s", w.AtS+w.Seconds, lab.Count(w.Rate()),
		float64(w.Bytes)/w.Seconds/(1<<20), lab.Millis(float64(w.P50Us)), lab.Millis(float64(w.P99Us)), lab.Millis(float64(w.MaxUs)), late, failed)
}

// payloadNotes says what a codec gets to work on (E-16).
func (r *perfRun) payloadNotes(p *lab.Pool) error {
	name := r.props.codec
	if name == "" || name == "none" {
		return nil
	}
	ratio, err := p.Ratio(name, 1<<20)
	if err != nil {
		return usagef("%w", err)
	}
	r.run.Spec["payload_ratio"] = ratio
	switch {
	case ratio > 0.95:
		r.run.Notes = append(r.run.Notes, fmt.Sprintf("%s makes these values no smaller (%.0f %% remain): the codec costs CPU and shows nothing; take --payload json or text", name, 100*ratio))
	case ratio < 0.02:
		r.run.Notes = append(r.run.Notes, fmt.Sprintf("%s leaves %.1f %% of these values: no real data is like that; take --payload json or text", name, 100*ratio))
	}
	return nil
}
