package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type produceFlags struct {
	conn      connFlags
	out       output
	topic     string
	partition int32
	delim     string
	keyDelim  string
	key       string
	headers   []string
	null      string
	codec     string
	acks      string
	count     int64
	lines     bool
	envelope  bool
	tee       bool
	quiet     bool
	verbose   bool
}

func produceCommand(in IO) *cobra.Command {
	var f produceFlags
	c := &cobra.Command{
		Use:   "produce TOPIC [FILE...]",
		Short: "Send records read from stdin or files to a topic",
		Long: `Send records read from stdin to a topic, one for each line. With files, each file
is one record; with -l, each line of the files is. - is stdin. With -t TOPIC, all
arguments are files.

-K TEXT cuts each line at the first TEXT into key and value; a line without it has a
null key. -Z sends an empty key or value as null; -Z=TEXT or --null=TEXT sends one
that equals TEXT as null, so that what consume printed can be sent again.
-J reads the JSON lines that consume -J prints: key, payload, headers and ts are
kept, the partition is chosen anew.

At the end it says on stderr how many records were acknowledged; with -q only if some
were not. -o json prints that on stdout:
{"topic","acknowledged","failed","bytes","duration_ms","errors":{"NAME":count},"first_error"}.
` + exitHelp + ` Here 3 means that
some records were acknowledged and some not, or that it was interrupted.`,
		Example: `  seq 1000 | weir produce orders
  weir produce orders -K: -z zstd -l customers.txt
  weir consume orders -e -J | weir produce orders-copy -J`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if f.topic == "" {
				if len(args) == 0 {
					return usagef("say which topic: weir produce TOPIC; see weir produce --help")
				}
				f.topic, args = args[0], args[1:]
			}
			changed := c.Flags().Changed
			p := &producer{f: &f, in: in}
			if changed("key-delim") {
				d, err := unescape(f.keyDelim)
				if err != nil || d == "" {
					return usagef("--key-delim %q: want a text to cut at", f.keyDelim)
				}
				p.keyDelim = []byte(d)
			}
			if changed("key") {
				p.key = []byte(f.key)
			}
			if changed("null") {
				p.null = []byte(f.null)
			}
			return p.run(c.Context(), args)
		},
	}
	fs := c.Flags()
	fs.StringVarP(&f.topic, "topic", "t", "", "topic; the same as naming it as first argument")
	fs.Int32VarP(&f.partition, "partition", "p", -1, "send all to this partition; -1: by key, or spread")
	fs.StringVarP(&f.delim, "delim", "D", `\n`, "text between records")
	fs.StringVarP(&f.keyDelim, "key-delim", "K", "", "text between key and value")
	fs.StringVarP(&f.key, "key", "k", "", "key of all records")
	fs.StringArrayVarP(&f.headers, "header", "H", nil, "header name=value of all records, repeated; without = its value is null")
	fs.StringVarP(&f.null, "null", "Z", "", "send an empty key or value (or, =TEXT, one that equals TEXT) as null")
	fs.Lookup("null").NoOptDefVal = emptyNull
	fs.StringVarP(&f.codec, "compression", "z", "", "none, gzip, snappy, lz4 or zstd (default none)")
	fs.StringVarP(&f.acks, "acks", "a", "", "all, 1 or 0 (default all)")
	fs.Int64VarP(&f.count, "count", "c", 0, "end after this many records")
	fs.BoolVarP(&f.lines, "lines", "l", false, "each line of the files is a record")
	fs.BoolVarP(&f.envelope, "json", "J", false, "the input is JSON, as consume -J prints it")
	fs.BoolVarP(&f.tee, "tee", "T", false, "copy the records to stdout")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing when all went well")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "where each record went, on stderr")
	f.out.flag(c)
	f.conn.flags(c)
	return c
}

// emptyNull is what a bare -Z stands for, in the form that help shows.
const emptyNull = "(empty)"

type producer struct {
	*session
	f        *produceFlags
	in       IO
	keyDelim []byte
	key      []byte
	null     []byte // nil: nothing is null
	headers  []kgo.RecordHeader
	stdout   []byte
	slab     []kgo.Record

	read int64 // records taken from the input

	mu      sync.Mutex
	acked   int64
	bytes   int64
	failed  int64
	errors  map[string]int64
	first   string // the first failure, as a sentence
	firstNo int64
	fatal   context.CancelFunc // stops reading: nothing more can succeed
	wait    *patience
	gaveUp  bool // wait is over
	refused *refusals
}

func (p *producer) run(ctx context.Context, files []string) error {
	f := p.f
	props, err := f.conn.load(p.in)
	if err != nil {
		return err
	}
	delim, err := unescape(f.delim)
	if err != nil || delim == "" {
		return usagef("--delim %q: want a text between records", f.delim)
	}
	if f.count < 0 {
		return usagef("--count %d: want at least 1, or leave it out", f.count)
	}
	if bytes.Equal(p.null, []byte(emptyNull)) {
		p.null = []byte{}
	}
	if f.envelope && (p.keyDelim != nil || p.key != nil) {
		return usagef("-J takes the keys from the input, so it cannot go with -K or -k")
	}
	for _, h := range f.headers {
		k, v, ok := strings.Cut(h, "=")
		if k == "" {
			return usagef("header %q has no name: write name=value", h)
		}
		rh := kgo.RecordHeader{Key: k}
		if ok {
			rh.Value = []byte(v)
		}
		p.headers = append(p.headers, rh)
	}
	opts, max, err := p.options(props)
	if err != nil {
		return err
	}
	p.refused = &refusals{}
	if f.conn.debug {
		p.refused.next = f.conn.logger(p.in)
	}
	opts = append(opts, kgo.WithLogger(p.refused))
	if p.session, err = f.conn.open(ctx, p.in, props, false, opts...); err != nil {
		return err
	}
	defer p.Close()
	if err := p.checkTopic(); err != nil {
		return err
	}

	started := time.Now()
	p.wait = p.patience(props, started)
	p.errors = map[string]int64{}
	// Reading ends with SIGINT or a fatal error; sending goes on for what was
	// read, as long as the broker answers.
	rctx, stop := context.WithCancel(p.ctx)
	defer stop()
	p.fatal = stop
	sctx, giveUp := context.WithCancel(context.WithoutCancel(p.ctx))
	defer giveUp()
	unwatch := p.watchOver(giveUp)
	rerr := p.readAll(rctx, sctx, files, delim, max)
	interrupted := p.ctx.Err() != nil
	p.cl.Flush(sctx)
	unwatch()
	p.settleRest()
	return p.report(rerr, interrupted, time.Since(started))
}

// options turns flags and properties into the client's options, and says how
// long a record may be.
func (p *producer) options(props *settings) ([]kgo.Opt, int, error) {
	name, acks := props.codec, props.acks
	if p.f.codec != "" {
		name = p.f.codec
	}
	if p.f.acks != "" {
		acks = p.f.acks
	}
	comp, err := codec(name, props.level)
	if err != nil {
		return nil, 0, usagef("%w", err)
	}
	opts := []kgo.Opt{
		kgo.DefaultProduceTopic(p.f.topic),
		kgo.ProducerBatchCompression(comp),
		kgo.AllowAutoTopicCreation(),
		kgo.AllowIdempotentProduceCancellation(),
		kgo.UnknownTopicRetries(4),
		kgo.MaxBufferedRecords(200_000),
		kgo.MaxBufferedBytes(64 << 20),
		kgo.ProducerLinger(5 * time.Millisecond),
	}
	idempotent := true
	switch acks {
	case "", "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.LeaderAck())), false
	case "0":
		opts, idempotent = append(opts, kgo.RequiredAcks(kgo.NoAck())), false
	default:
		return nil, 0, usagef("--acks %s: want all, 1 or 0", acks)
	}
	if props.idempotence != nil {
		if *props.idempotence && !idempotent {
			return nil, 0, usagef("enable.idempotence=true needs acks=all")
		}
		idempotent = *props.idempotence
	}
	if !idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if p.f.partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	} else if p.f.partition != -1 {
		return nil, 0, usagef("--partition %d: want a partition's number, or -1", p.f.partition)
	} else if props.partitioner != nil {
		opts = append(opts, kgo.RecordPartitioner(props.partitioner))
	}
	opts = append(opts, props.producer...)
	p.f.acks = acks
	return opts, 128 << 20, nil
}

// patience is how long acknowledgements may take.
func (p *producer) patience(props *settings, now time.Time) *patience {
	if d := props.delivery; d > 0 {
		return newPatience(d, d, now)
	}
	if t := p.f.conn.timeout; t > 0 {
		t = max(t, time.Second)
		return newPatience(t, max(t, 2*time.Minute), now) // as the Java client's delivery.timeout.ms
	}
	return newPatience(0, 0, now)
}

// checkTopic refuses a partition that does not exist before anything is sent.
// A topic that does not exist is left to the broker, which may make it.
func (p *producer) checkTopic() error {
	s, cancel := p.bound()
	defer cancel()
	topics, err := s.adm.ListTopicsWithInternal(s.ctx, p.f.topic)
	if err != nil {
		return s.explain("look up topic "+p.f.topic, err)
	}
	t := topics[p.f.topic]
	if t.Err != nil && !kerr.IsRetriable(t.Err) {
		return failf("cannot send to topic %s: %s", p.f.topic, describeError(t.Err, ""))
	}
	if n := len(t.Partitions); t.Err == nil && n > 0 && int(p.f.partition) >= n {
		return failf("topic %s has no partition %d: it has 0 to %d", p.f.topic, p.f.partition, n-1)
	}
	return nil
}

// take sends one record; false: no more are wanted.
func (p *producer) take(rctx, sctx context.Context, r *kgo.Record) bool {
	p.read++
	no := p.read
	if p.f.tee {
		if r.Key != nil && p.keyDelim != nil {
			p.stdout = append(append(p.stdout, r.Key...), p.keyDelim...)
		}
		p.stdout = append(append(p.stdout, r.Value...), '\n')
		if len(p.stdout) > 64<<10 {
			p.in.Stdout.Write(p.stdout)
			p.stdout = p.stdout[:0]
		}
	}
	c := p.wait.send()
	p.cl.Produce(sctx, r, func(r *kgo.Record, err error) {
		p.wait.settle(c)
		p.settled(no, r, err)
	})
	return rctx.Err() == nil && p.read != p.f.count
}

// settled is called by the client once for each record.
func (p *producer) settled(no int64, r *kgo.Record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.acked++
		p.bytes += int64(len(r.Key) + len(r.Value))
		if p.f.verbose {
			fmt.Fprintf(p.in.Stderr, "%% record %d: %s [%d] at offset %d\n", no, r.Topic, r.Partition, r.Offset)
		}
		return
	}
	p.failed++
	if why := p.refused.of(r.Partition); why != nil && produceErrorName(err) == tooLate {
		err = why // more than that it took too long
	}
	name := produceErrorName(err)
	p.errors[name]++
	if p.first == "" || no < p.firstNo {
		p.firstNo, p.first = no, p.sentence(err)
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InvalidTopicException),
		errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed),
		errors.Is(err, kerr.UnsupportedVersion), errors.Is(err, kerr.SaslAuthenticationFailed):
		p.fatal()
	}
}

// tooLate is the name of what was given up, as no broker names it.
const tooLate = "DELIVERY_TIMEOUT"

func produceErrorName(err error) string {
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke.Message
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return tooLate
	case errors.Is(err, kgo.ErrRecordRetries):
		return "RETRIES_EXHAUSTED"
	}
	return "NETWORK_ERROR"
}

func (p *producer) sentence(err error) string {
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return "UNKNOWN_TOPIC_OR_PARTITION: topic " + p.f.topic + " does not exist and the broker does not create it; weir topic create " + p.f.topic
	}
	if _, ok := errors.AsType[*kerr.Error](err); ok {
		return describeError(err, "")
	}
	if f, ok := errors.AsType[*Failure](context.Cause(p.ctx)); ok {
		return f.Error()
	}
	if f := p.w.blame(); f != nil {
		return f.Error()
	}
	if produceErrorName(err) == tooLate {
		return "the broker did not acknowledge it in time; look at its log, or give a longer --timeout"
	}
	return err.Error()
}

// watchOver stops reading and sending when acknowledgements take too long or
// the broker is lost. The returned function ends the watch.
func (p *producer) watchOver(giveUp context.CancelFunc) (end func()) {
	// Only a lost broker ends p.ctx with a Failure; SIGINT lets what was read be
	// acknowledged first.
	unhook := context.AfterFunc(p.ctx, func() {
		if _, ok := errors.AsType[*Failure](context.Cause(p.ctx)); ok {
			giveUp()
		}
	})
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(step)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if p.wait.over(time.Now()) {
				p.mu.Lock()
				p.gaveUp = true
				p.mu.Unlock()
				p.fatal()
				giveUp()
				return
			}
		}
	})
	return func() {
		unhook()
		close(done)
		wg.Wait()
	}
}

// settleRest fails what flush gave up on, so that every record read is
// accounted for.
func (p *producer) settleRest() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.cl.AbortBufferedRecords(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if rest := p.read - p.acked - p.failed; rest > 0 {
		err := p.refused.any()
		if err == nil {
			err = context.DeadlineExceeded
		}
		p.failed += rest
		p.errors[produceErrorName(err)] += rest
		if p.first == "" {
			p.firstNo, p.first = p.acked+1, p.sentence(err)
		}
	}
}

type produceSummary struct {
	Topic      string           `json:"topic"`
	Acked      int64            `json:"acknowledged"`
	Failed     int64            `json:"failed"`
	Bytes      int64            `json:"bytes"`
	DurationMs int64            `json:"duration_ms"`
	Errors     map[string]int64 `json:"errors"`
	First      string           `json:"first_error,omitempty"`
}

// report says what became of the records and chooses the exit code.
func (p *producer) report(rerr error, interrupted bool, took time.Duration) error {
	p.in.Stdout.Write(p.stdout)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f.out.json {
		s := produceSummary{p.f.topic, p.acked, p.failed, p.bytes, took.Milliseconds(), p.errors, p.first}
		if err := writeJSON(p.in.Stdout, s); err != nil {
			return err
		}
	}
	what := "acknowledged"
	if p.f.acks == "0" {
		what = "sent, and with acks=0 nobody says whether they arrived"
	}
	code := ExitFailed
	if p.acked > 0 {
		code = ExitPartly
	}
	switch {
	case p.failed > 0:
		var names []string
		for _, n := range slices.Sorted(maps.Keys(p.errors)) {
			names = append(names, fmt.Sprintf("%s %d", n, p.errors[n]))
		}
		tail := ""
		if rerr != nil {
			tail = "; then " + rerr.Error()
		}
		return &Failure{code, fmt.Errorf("%d of %s acknowledged, %d not (%s); the first, record %d: %s%s",
			p.acked, plural(p.read, "record"), p.failed, strings.Join(names, ", "), p.firstNo, p.first, tail)}
	case p.gaveUp && rerr == nil: // and then the last acknowledgements came after all
		rerr = errors.New("the broker took too long; look at its log, or give a longer --timeout")
		fallthrough
	case rerr != nil:
		return &Failure{code, fmt.Errorf("%s %s, then: %w", plural(p.acked, "record"), what, rerr)}
	case interrupted:
		if f, ok := errors.AsType[*Failure](context.Cause(p.ctx)); ok {
			return &Failure{code, fmt.Errorf("%s %s, then: %w", plural(p.acked, "record"), what, f)}
		}
		return &Failure{ExitPartly, fmt.Errorf("interrupted: %s %s", plural(p.acked, "record"), what)}
	}
	if !p.f.quiet {
		rate := ""
		if s := took.Seconds(); s > 0.05 && p.acked > 1 {
			rate = fmt.Sprintf(", %.0f records/s, %.1f MB/s", float64(p.acked)/s, float64(p.bytes)/s/1e6)
		}
		fmt.Fprintf(p.in.Stderr, "%% %s %s (%d bytes%s)\n", plural(p.acked, "record"), what, p.bytes, rate)
	}
	return nil
}
