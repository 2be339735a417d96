package kafkatools

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type producerPerfFlags struct {
	arguments
	topic, records, size, file, monotonic, delimiter, throughput, props, property, oldConfig, config *argument
	metrics, txn, txnMs, warmup, interval, keyRange, keys, seed, server                              *argument
}

func newProducerPerfFlags() *producerPerfFlags {
	const payload, group = "Exactly one of --record-size, --payload-file and --payload-monotonic is wanted.", "payload"
	f := &producerPerfFlags{arguments: arguments{prog: "kafka-producer-perf-test", about: "Writes records as fast as it can or at a rate, and tells rate and latency. " +
		"A transactional id or a duration of transactions makes it write in transactions."}}
	f.server = f.add(argument{name: "--bootstrap-server", metavar: "BOOTSTRAP-SERVER", kind: "String", help: "The brokers to start from; wins over the properties' bootstrap.servers."})
	f.topic = f.add(argument{name: "--topic", metavar: "TOPIC", kind: "String", need: true, help: "The topic to write to."})
	f.records = f.add(argument{name: "--num-records", metavar: "NUM-RECORDS", kind: "Long", need: true, help: "How many records to write."})
	f.delimiter = f.add(argument{name: "--payload-delimiter", metavar: "PAYLOAD-DELIMITER", kind: "String", def: `\n`, help: "What stands between the payloads in --payload-file: a regular expression."})
	f.throughput = f.add(argument{name: "--throughput", metavar: "THROUGHPUT", kind: "Double", need: true, help: "The most records a second, about; -1 for no bound."})
	f.props = f.add(argument{name: "--producer-props", metavar: "PROP-NAME=PROP-VALUE", kind: "String", many: true, help: "(DEPRECATED) Use --command-property."})
	f.property = f.add(argument{name: "--command-property", metavar: "PROP-NAME=PROP-VALUE", kind: "String", many: true, help: "Producer properties, as in linger.ms=10 batch.size=32768; they win over the file's."})
	f.oldConfig = f.add(argument{name: "--producer.config", metavar: "CONFIG-FILE", kind: "String", help: "(DEPRECATED) Use --command-config."})
	f.config = f.add(argument{name: "--command-config", metavar: "CONFIG-FILE", kind: "String", help: "A file with producer properties."})
	f.metrics = f.add(argument{name: "--print-metrics", help: "Print what the client counted at the end."})
	f.txn = f.add(argument{name: "--transactional-id", metavar: "TRANSACTIONAL-ID", kind: "String", help: "Write in transactions under this id."})
	f.txnMs = f.add(argument{name: "--transaction-duration-ms", metavar: "TRANSACTION-DURATION", kind: "Long", help: "Commit when a transaction is this old; 3000 when only an id is given."})
	f.warmup = f.add(argument{name: "--warmup-records", metavar: "WARMUP-RECORDS", kind: "Long", def: "0", help: "How many records at the beginning do not count in the steady state, which gets a line of its own at the end."})
	f.interval = f.add(argument{name: "--reporting-interval", metavar: "INTERVAL-MS", kind: "Long", def: "5000", help: "Milliseconds between the lines of progress."})
	f.keyRange = f.add(argument{name: "--record-key-range", metavar: "KEY-RANGE", kind: "Integer", help: "Keys are numbers from 0 up to this; for --key-distribution range and random."})
	f.keys = f.add(argument{name: "--key-distribution", metavar: "KEY-DISTRIBUTION", kind: "String", def: "none", choices: []string{"none", "range", "random"}, help: "none: no keys; range: one after another; random."})
	f.seed = f.add(argument{name: "--random-seed", metavar: "RANDOM-SEED", kind: "Long", def: "0", help: "Of the random keys and payloads."})
	f.size = f.add(argument{name: "--record-size", metavar: "RECORD-SIZE", kind: "Integer", oneOf: group, help: "Bytes of a record. " + payload})
	f.file = f.add(argument{name: "--payload-file", metavar: "PAYLOAD-FILE", kind: "String", oneOf: group, help: "A UTF-8 file whose parts are the payloads, drawn at random. " + payload})
	f.monotonic = f.add(argument{name: "--payload-monotonic", oneOf: group, help: "The payloads are numbers that count up. " + payload})
	return f
}

// check is what argparse4j does not check, in the order of Kafka's tool.
func (f *producerPerfFlags) check() error {
	positive := func(a *argument, least int64) error {
		if a.given && a.long() < least {
			return f.fail("%s should be greater than zero.", a.name)
		}
		return nil
	}
	for _, a := range []*argument{f.records, f.size, f.txnMs, f.interval, f.keyRange} {
		if err := positive(a, 1); err != nil {
			return err
		}
	}
	switch {
	case f.warmup.long() < 0:
		return f.fail("The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.")
	case f.warmup.long() >= f.records.long():
		return f.fail("The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.")
	case !f.server.given && !f.property.given && !f.props.given && !f.oldConfig.given && !f.config.given:
		return f.fail("At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or --command-config must be specified.")
	case f.config.given && f.oldConfig.given:
		return f.fail("--command-config and --producer.config cannot be specified together.")
	case f.property.given && f.props.given:
		return f.fail("--command-property and --producer-props cannot be specified together.")
	case f.keys.text() != "none" && !f.keyRange.given:
		return f.fail("--record-key-range is required when --key-distribution is 'range' or 'random'.")
	case f.keys.text() == "none" && f.keyRange.given:
		return f.fail("--key-distribution must be 'range' or 'random' when --record-key-range is specified.")
	}
	return nil
}

// argparsed reads a command line and answers -h, a wrong line and an empty one.
func argparsed(c *call, a *arguments, check func() error) error {
	if len(c.args) == 0 {
		return &exit{stdout: a.helpText()}
	}
	err := a.parse(c.args)
	if err == nil && check != nil {
		err = check()
	}
	if h, ok := errors.AsType[*helpAsked](err); ok {
		return &exit{code: 1, stdout: h.of.helpText()}
	}
	if e, ok := errors.AsType[*argError](err); ok {
		return &exit{code: 1, stderr: e.text()}
	}
	return err
}

const (
	oldProps  = "Option --producer-props has been deprecated and will be removed in a future version. Use --command-property instead.\n"
	oldConfig = "Option --producer.config has been deprecated and will be removed in a future version. Use --command-config instead.\n"
)

// producerPerf is kafka-producer-perf-test.
func producerPerf(c *call) error {
	f := newProducerPerfFlags()
	if err := argparsed(c, &f.arguments, f.check); err != nil {
		return err
	}
	if f.props.given {
		c.printf("%s", oldProps)
	}
	if f.oldConfig.given {
		c.printf("%s", oldConfig)
	}
	payloads, err := f.payloads(c)
	if err != nil {
		return err
	}
	p, err := f.properties()
	if err != nil {
		return err
	}
	largest := int(f.size.long())
	for _, b := range payloads {
		largest = max(largest, len(b))
	}
	s, err := p.producer(largest)
	if err != nil {
		return err
	}
	if f.server.text() == "" && p.get("bootstrap.servers", "") == "" {
		return configError(`Missing required configuration "bootstrap.servers" which has no default value.`)
	}
	k, err := c.connect(producerKind, f.server.text(), p, s.opts...)
	if err != nil {
		return err
	}
	defer k.close()
	return f.run(c, k, s, p, payloads)
}

func (f *producerPerfFlags) properties() (properties, error) {
	file := f.config.text()
	if f.oldConfig.given {
		file = f.oldConfig.text()
	}
	p, err := readProperties(file)
	if err != nil {
		return nil, err
	}
	for _, kv := range slices.Concat(f.props.values, f.property.values) {
		// A value may hold a =, as in a JAAS line: Kafka's tool refuses that.
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" || value == "" {
			return nil, illegalArgument("Invalid property: %s", kv)
		}
		p[key] = value
	}
	if p["client.id"] == "" {
		p["client.id"] = "perf-producer-client"
	}
	if f.txn.given {
		p["transactional.id"] = f.txn.text()
	} else if f.txnMs.given && p["transactional.id"] == "" {
		p["transactional.id"] = "performance-producer-" + uuidText()
	}
	return p, nil
}

// uuidText is a random id with hyphens.
func uuidText() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// payloads reads --payload-file.
func (f *producerPerfFlags) payloads(c *call) ([][]byte, error) {
	if !f.file.given {
		return nil, nil
	}
	path, err := filepath.Abs(f.file.text())
	if err != nil {
		path = f.file.text()
	}
	c.printf("Reading payloads from: %s\n", path)
	body, err := os.ReadFile(path)
	if err != nil || len(body) == 0 {
		return nil, illegalArgument("File does not exist or empty file provided.")
	}
	re, err := regexp.Compile(f.delimiter.text())
	if err != nil {
		return nil, illegalArgument("--payload-delimiter: %v", err)
	}
	var out [][]byte
	parts := re.Split(string(body), -1)
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	for _, part := range parts {
		out = append(out, []byte(part))
	}
	if len(out) == 0 {
		return nil, illegalArgument("File does not exist or empty file provided.")
	}
	c.printf("Number of records read: %d\n", len(out))
	return out, nil
}

func (f *producerPerfFlags) run(c *call, k *cluster, s *producerSettings, p properties, payloads [][]byte) error {
	records, warmup := f.records.long(), f.warmup.long()
	interval := f.interval.long()
	transactional := p["transactional.id"] != ""
	txnMs := int64(3000)
	if f.txnMs.given {
		txnMs = f.txnMs.long()
	}
	// What is new to the client is done before the clock starts only as far as
	// Kafka's producer does it there: nothing but the transactional id.
	if transactional {
		if _, _, err := k.cl.ProducerID(k.ctx); err != nil {
			return java("initProducerId", err)
		}
	}
	if warmup > 0 {
		c.printf("Warmup first %d records. Steady state results will print after the complete test summary.\n", warmup)
	}
	random := &splitMix{uint64(f.seed.long())}
	keyRandom := &splitMix{uint64(f.seed.long())}
	gone := newRefusals(c)
	stats := newPerfStats(c, records, interval, false)
	var steady *perfStats
	var mu sync.Mutex
	throttle := newThrottle(f.throughput.double(), time.Now())
	topicReady := false
	var open, begun int64 // records of the open transaction, and when it began
	free := make(chan *perfRecord, 1<<14)
	for i := int64(0); i < records && c.ctx.Err() == nil; i++ {
		var r *perfRecord
		select {
		case r = <-free:
		default:
			r = &perfRecord{}
		}
		r.Record = kgo.Record{Topic: f.topic.text(), Value: r.buf}
		switch {
		case payloads != nil:
			r.Value = payloads[random.below(int32(len(payloads)))]
		case f.size.given:
			if r.buf == nil {
				r.buf = make([]byte, f.size.long())
			}
			r.Value = r.buf
			random.letters(r.Value)
		default:
			r.Value = strconv.AppendInt(nil, i, 10)
		}
		switch n := int32(f.keyRange.long()); f.keys.text() {
		case "range":
			r.Key = strconv.AppendInt(nil, i%int64(n), 10)
		case "random":
			r.Key = strconv.AppendInt(nil, int64(keyRandom.below(n)), 10)
		}
		if transactional && open == 0 {
			if err := k.cl.BeginTransaction(); err != nil {
				return java("", err)
			}
			begun = time.Now().UnixMilli()
		}
		start := time.Now()
		if warmup > 0 && i == warmup {
			mu.Lock()
			steady = newPerfStats(c, records-warmup, interval, true)
			stats.quiet = true
			mu.Unlock()
		}
		if !topicReady {
			// A topic that cannot be written to ends the run: Kafka's tool waits
			// max.block.ms for each record of it, and then prints rates of nothing.
			if err := k.ready(f.topic.text(), s.block); err != nil {
				gone.add(java("", err), records)
				break
			}
			topicReady = true
		}
		if e := s.tooLarge(&r.Record); e != nil {
			gone.add(e, 1)
		} else {
			size, mine := len(r.Value), steady
			k.cl.Produce(k.ctx, &r.Record, func(_ *kgo.Record, err error) {
				if err != nil {
					gone.add(refusal(err, p), 1)
				} else {
					now := time.Now()
					mu.Lock()
					stats.record(now.UnixMilli()-start.UnixMilli(), size, now)
					if mine != nil {
						mine.record(now.UnixMilli()-start.UnixMilli(), size, now)
					}
					mu.Unlock()
				}
				select {
				case free <- r:
				default:
				}
			})
		}
		open++
		if transactional && txnMs <= start.UnixMilli()-begun {
			if err := endTransaction(k); err != nil {
				return err
			}
			open = 0
		}
		if throttle.should(i, start) && !throttle.wait(c) {
			break
		}
	}
	if transactional && open > 0 {
		if err := endTransaction(k); err != nil {
			return err
		}
	}
	k.cl.Flush(k.ctx)
	mu.Lock()
	defer mu.Unlock()
	stats.total()
	if steady != nil {
		steady.total()
	}
	if f.metrics.given {
		printMetrics(c, []metric{
			{"producer-metrics", "record-error-total", float64(gone.count)},
			{"producer-metrics", "record-send-total", float64(stats.count)},
		}, p["client.id"])
	}
	if c.ctx.Err() != nil {
		return &exit{code: 130}
	}
	return gone.end()
}

// perfRecord is a record and the buffer of its value, used again.
type perfRecord struct {
	kgo.Record
	buf []byte
}

func endTransaction(k *cluster) error {
	if err := k.cl.Flush(k.ctx); err != nil {
		return java("", err)
	}
	if err := k.cl.EndTransaction(k.ctx, kgo.TryCommit); err != nil {
		return java("endTransaction", err)
	}
	return nil
}

// refusals counts records that were not written and tells of them on stderr, the
// first of each kind; a run with any ends with exit code 1.
type refusals struct {
	c     *call
	mu    sync.Mutex
	count int64
	kinds map[string]int64
	order []string
}

const refusalsTold = 10 // of one kind

func newRefusals(c *call) *refusals { return &refusals{c: c, kinds: map[string]int64{}} }

func (r *refusals) add(e *javaError, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count += n
	if r.kinds[e.class] == 0 {
		r.order = append(r.order, e.class)
	}
	if r.kinds[e.class] < refusalsTold {
		r.c.errorf("%s\n", e.line())
	}
	r.kinds[e.class] += n
}

// end is nil when every record was written.
func (r *refusals) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		return nil
	}
	var why []string
	for _, class := range r.order {
		why = append(why, fmt.Sprintf("%d %s", r.kinds[class], strings.TrimPrefix(class, apiErrors)))
	}
	return &exit{code: 1, stderr: fmt.Sprintf("%d records were not written: %s\n", r.count, strings.Join(why, ", "))}
}
