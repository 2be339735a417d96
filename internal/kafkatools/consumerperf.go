package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type consumerPerfFlags struct {
	options
	server, oldServer, topic, include, group, fetch, latest, socket, oldConfig, config, property *option
	metrics, detailed, timeout, messages, records, interval, date, noHeader, threads, fetchers   *option
}

func newConsumerPerfFlags() *consumerPerfFlags {
	f := &consumerPerfFlags{}
	f.server = f.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The brokers to start from.")
	f.oldServer = f.value("broker-list", "String", "broker-list", "DEPRECATED, use --bootstrap-server instead.")
	f.topic = f.value("topic", "String", "topic", "The topic to read.")
	f.include = f.value("include", "String", "Java regex (String)", "A regular expression of the topics to read.")
	f.group = f.value("group", "String", "gid", "The group to read as.").withDefault(fmt.Sprintf("perf-consumer-%d", rand.IntN(100_000)))
	f.fetch = f.value("fetch-size", "Integer", "size", "How much one request may bring of one partition.").withDefault("1048576")
	f.latest = f.flag("from-latest", "Begin at the end where the group has no offset, not at the beginning.")
	f.socket = f.value("socket-buffer-size", "Integer", "size", "The size of the TCP receive buffer; without effect here.").withDefault("2097152")
	f.oldConfig = f.value("consumer.config", "String", "config file", "(DEPRECATED) Use --command-config.")
	f.config = f.value("command-config", "String", "config file", "A file with consumer properties.")
	f.property = f.value("command-property", "String", "prop1=val1", "A consumer property; wins over the file's.")
	f.metrics = f.flag("print-metrics", "Print what the client counted at the end.")
	f.detailed = f.flag("show-detailed-stats", "Print a row for each reporting interval.")
	f.timeout = f.value("timeout", "Long", "milliseconds", "The longest time between two records.").optional().withDefault("10000")
	f.messages = f.value("messages", "Long", "count", "(DEPRECATED) Use --num-records.")
	f.records = f.value("num-records", "Long", "count", "REQUIRED: How many records to read.")
	f.interval = f.value("reporting-interval", "Long", "interval_ms", "Milliseconds between rows of --show-detailed-stats.").withDefault("5000")
	f.date = f.value("date-format", "String", "date format", "The form of times, as Java's SimpleDateFormat has it.").withDefault("yyyy-MM-dd HH:mm:ss:SSS")
	f.noHeader = f.flag("hide-header", "Leave out the header.")
	f.threads = f.value("threads", "Integer", "count", "DEPRECATED AND IGNORED.")
	f.fetchers = f.value("num-fetch-threads", "Integer", "count", "DEPRECATED AND IGNORED.")
	common(&f.options)
	return f
}

// thrown is how the perf tools tell what no check caught: the message and the exception.
func thrown(err error) error {
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	e := java("", err)
	return &exit{code: 1, stderr: e.message + "\n" + e.line() + "\n\n"}
}

func (f *consumerPerfFlags) check(c *call) error {
	if err := f.parse(c.args); err != nil {
		return usage(&f.options, err.Error())
	}
	if err := helpOrVersion(c, &f.options, "This tool is used to verify the consumer performance."); err != nil {
		return err
	}
	if f.oldServer.given && !f.server.given {
		f.server.given, f.server.values = true, f.oldServer.values
	}
	if m := missing(f.server); m != "" {
		return usage(&f.options, m)
	}
	for _, m := range []string{exactlyOne(f.topic, f.include), exactlyOne(f.messages, f.records)} {
		if m != "" {
			return usage(&f.options, m)
		}
	}
	if m := refused(f.oldConfig, f.config); m != "" {
		return usage(&f.options, m)
	}
	if f.threads.given || f.fetchers.given {
		c.printf("WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test\n")
	}
	if f.messages.given {
		c.printf("Warning: --messages is deprecated. Use --num-records instead.\n")
		f.records.given, f.records.values = true, f.messages.values
		f.records.names = f.messages.names
	}
	if f.oldConfig.given {
		c.printf("Warning: --consumer.config is deprecated. Use --command-config instead.\n")
		f.config.given, f.config.values = true, f.oldConfig.values
	}
	return nil
}

// exactlyOne refuses both and none; empty when all is well.
func exactlyOne(a, b *option) string {
	if a.given == b.given {
		return "Exactly one of the following arguments is required: [" + a.label() + "], [" + b.label() + "]"
	}
	return ""
}

// consumerPerf is kafka-consumer-perf-test.
func consumerPerf(c *call) error {
	f := newConsumerPerfFlags()
	if err := f.check(c); err != nil {
		return err
	}
	return thrownIf(f.run(c))
}

func thrownIf(err error) error {
	if err == nil {
		return nil
	}
	return thrown(err)
}

// perfCount is what was read so far.
type perfCount struct{ records, bytes int64 }

func (f *consumerPerfFlags) run(c *call) error {
	if !f.noHeader.given {
		first := "start.time, end.time"
		if f.detailed.given {
			first = "time, threadId"
		}
		c.printf("%s, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n", first)
	}
	var want, timeout, interval, fetch int64
	for _, n := range []struct {
		of   *option
		bits int
		into *int64
	}{{f.records, 64, &want}, {f.timeout, 64, &timeout}, {f.interval, 64, &interval}, {f.fetch, 32, &fetch}} {
		v, err := n.of.integer(n.bits)
		if err != nil {
			return err
		}
		*n.into = v
	}
	if interval <= 0 {
		return illegalArgument("Reporting interval must be greater than 0.")
	}
	p, server, err := f.properties(fetch)
	if err != nil {
		return err
	}
	pattern, err := f.date.one()
	if err != nil {
		return err
	}
	if _, err := javaDate(pattern, time.Now()); err != nil {
		return err
	}
	date := func(t time.Time) string { s, _ := javaDate(pattern, t); return s }

	s, err := p.consumer("earliest")
	if err != nil {
		return err
	}
	// joined tells how long the group took to give partitions, in all and in this interval.
	var mu sync.Mutex
	var joined, joinedNow int64
	begun := time.Now()
	waiting := begun
	has := map[string]map[int32]bool{}
	held := func() (n int) {
		for _, ps := range has {
			n += len(ps)
		}
		return n
	}
	opts := append(s.opts,
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, added map[string][]int32) {
			mu.Lock()
			defer mu.Unlock()
			if held() == 0 {
				ms := time.Since(waiting).Milliseconds()
				joined, joinedNow = joined+ms, joinedNow+ms
			}
			for t, ps := range added {
				if has[t] == nil {
					has[t] = map[int32]bool{}
				}
				for _, p := range ps {
					has[t][p] = true
				}
			}
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, gone map[string][]int32) {
			if commits(p) {
				cl.CommitUncommittedOffsets(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			for t, ps := range gone {
				for _, p := range ps {
					delete(has[t], p)
				}
			}
			if held() == 0 {
				waiting = time.Now()
			}
		}),
	)
	if f.topic.given {
		topic, err := f.topic.one()
		if err != nil {
			return err
		}
		opts = append(opts, kgo.ConsumeTopics(topic))
	} else {
		re, err := f.include.one()
		if err != nil {
			return err
		}
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:"+re+")$"))
	}
	k, err := c.connect(consumerKind, server, p, opts...)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			k.close()
		}
	}()

	start := time.Now()
	mu.Lock()
	waiting = start
	mu.Unlock()
	now, last, reported := start, start, start
	var all, before perfCount
	for all.records < want && now.Sub(last).Milliseconds() <= timeout && c.ctx.Err() == nil {
		fetches, err := k.poll(s.poll, 100*time.Millisecond)
		if err != nil {
			return err
		}
		now = time.Now()
		if fetches.NumRecords() > 0 {
			last = now
		}
		fetches.EachRecord(func(r *kgo.Record) {
			all.records++
			all.bytes += int64(len(r.Key) + len(r.Value))
			if now.Sub(reported).Milliseconds() < interval {
				return
			}
			mu.Lock()
			join := joinedNow
			joinedNow = 0
			mu.Unlock()
			if f.detailed.given {
				c.printf("%s\n", perfRow(date(now), all, before, now.Sub(reported).Milliseconds(), join))
			}
			reported, before = now, all
		})
	}
	if all.records < want {
		c.printf("WARNING: Exiting before consuming the expected number of records: timeout (%d ms) exceeded. You can use the --timeout option to increase the timeout.\n", timeout)
	}
	end := time.Now()
	mu.Lock()
	join := joined
	mu.Unlock()
	k.leave(p)
	k.close()
	closed = true
	elapsed := max(1, end.UnixMilli()-start.UnixMilli()) // a rate of nothing in no time is none
	if !f.detailed.given {
		mb := float64(all.bytes) / (1024 * 1024)
		sec, fetchMs := float64(elapsed)/1000, elapsed-join
		fetchSec := float64(max(1, fetchMs)) / 1000
		c.printf("%s, %s, %s, %s, %d, %s, %d, %d, %s, %s\n", date(start), date(end), fixed(mb, 4), fixed(mb/sec, 4),
			all.records, fixed(float64(all.records)/sec, 4), join, fetchMs, fixed(mb/fetchSec, 4), fixed(float64(all.records)/fetchSec, 4))
	}
	if f.metrics.given {
		printMetrics(c, []metric{
			{"consumer-fetch-manager-metrics", "bytes-consumed-total", float64(all.bytes)},
			{"consumer-fetch-manager-metrics", "records-consumed-total", float64(all.records)},
		}, p["client.id"])
	}
	if c.ctx.Err() != nil {
		return &exit{code: 130}
	}
	return nil
}

func (f *consumerPerfFlags) properties(fetch int64) (properties, string, error) {
	file, err := f.config.one()
	if err != nil {
		return nil, "", err
	}
	p, err := readProperties(file)
	if err != nil {
		return nil, "", err
	}
	p.merge(f.property.values)
	server, err := f.server.one()
	if err != nil {
		return nil, "", err
	}
	group, err := f.group.one()
	if err != nil {
		return nil, "", err
	}
	p["group.id"] = group
	p["max.partition.fetch.bytes"] = itoa(fetch)
	p["auto.offset.reset"] = "earliest"
	if f.latest.given {
		p["auto.offset.reset"] = "latest"
	}
	p["check.crcs"] = "false"
	if p["client.id"] == "" {
		p["client.id"] = "perf-consumer-client"
	}
	return p, server, nil
}

// perfRow is one row of --show-detailed-stats.
func perfRow(at string, all, before perfCount, elapsedMs, joinMs int64) string {
	mb := float64(all.bytes) / (1024 * 1024)
	part := float64(all.bytes-before.bytes) / (1024 * 1024)
	n := float64(all.records - before.records)
	fetchMs := elapsedMs - joinMs
	fetchMB, fetchN := 0.0, 0.0
	if fetchMs > 0 {
		fetchMB, fetchN = 1000*part/float64(fetchMs), 1000*n/float64(fetchMs)
	}
	return fmt.Sprintf("%s, 0, %s, %s, %d, %s, %d, %d, %s, %s", at, fixed(mb, 4), fixed(1000*part/float64(elapsedMs), 4), all.records,
		fixed(n/float64(elapsedMs)*1000, 4), joinMs, fetchMs, fixed(fetchMB, 4), fixed(fetchN, 4))
}

// poll gives what has come, at most n records, and waits no longer than wait. What
// the client mends itself is no error.
func (k *cluster) poll(n int, wait time.Duration) (kgo.Fetches, error) {
	ctx, stop := context.WithTimeout(k.ctx, wait)
	defer stop()
	fetches := k.cl.PollRecords(ctx, n)
	for _, e := range fetches.Errors() {
		if errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, kgo.ErrClientClosed) {
			continue
		}
		if lost, ok := errors.AsType[*kgo.ErrDataLoss](e.Err); ok {
			_ = lost // told by the offsets; Java's consumer resets as well
			continue
		}
		return fetches, java("", e.Err)
	}
	return fetches, nil
}

// commits says that what was read is committed without a word.
func commits(p properties) bool {
	auto, err := p.boolean("enable.auto.commit", true)
	return err == nil && auto && p["group.id"] != ""
}

// leave commits what was read before the client goes: with a callback of its own
// for revoked partitions the client leaves that to its user.
func (k *cluster) leave(p properties) {
	if commits(p) {
		ctx, stop := context.WithTimeout(k.ctx, 5*time.Second)
		defer stop()
		k.cl.CommitUncommittedOffsets(ctx)
	}
}

// sortedNames are the keys of a map in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
