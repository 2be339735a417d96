package tools

import (
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/internal/config"
)

// settings are the client properties of one invocation, by librdkafka's or the
// Java client's names, already checked.
type settings struct {
	security tlsSettings
	sasl     saslSettings

	common   []kgo.Opt
	producer []kgo.Opt
	consumer []kgo.Opt

	group       string
	reset       string // auto.offset.reset as given
	committed   bool   // isolation.level=read_committed
	codec       string
	level       int // compression level; 0: the codec's default
	acks        string
	idempotence *bool
	delivery    time.Duration
	batch       int // batch.size; 0: not given
	partitioner kgo.Partitioner
	noCommit    bool // enable.auto.commit=false
}

type property struct {
	names string // separated by spaces; the first is what help would print
	set   func(s *settings, v string) error
}

// common, producer and consumer properties that mean something here. What the
// Java client and librdkafka know and this client decides itself is in
// ignoredProperties.
var clientProperties = []property{
	{"security.protocol", func(s *settings, v string) error {
		v = strings.ToUpper(v)
		switch v {
		case "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL":
		default:
			return fmt.Errorf("want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
		}
		s.security.on = strings.HasSuffix(v, "SSL")
		s.sasl.on = strings.HasPrefix(v, "SASL")
		return nil
	}},
	{"sasl.mechanism sasl.mechanisms", func(s *settings, v string) error { return s.sasl.setMechanism(v) }},
	{"sasl.username", func(s *settings, v string) error { s.sasl.user = v; return nil }},
	{"sasl.password", func(s *settings, v string) error { s.sasl.password = v; return nil }},
	{"sasl.jaas.config", func(s *settings, v string) error { return s.sasl.setJAAS(v) }},
	{"ssl.ca.location ssl.truststore.location", func(s *settings, v string) error { s.security.caFile = v; return nil }},
	{"ssl.ca.pem ssl.truststore.certificates", func(s *settings, v string) error { s.security.caPEM = v; return nil }},
	{"ssl.certificate.location ssl.keystore.location", func(s *settings, v string) error { s.security.certFile = v; return nil }},
	{"ssl.certificate.pem ssl.keystore.certificate.chain", func(s *settings, v string) error { s.security.certPEM = v; return nil }},
	{"ssl.key.location", func(s *settings, v string) error { s.security.keyFile = v; return nil }},
	{"ssl.key.pem ssl.keystore.key", func(s *settings, v string) error { s.security.keyPEM = v; return nil }},
	{"ssl.truststore.type ssl.keystore.type", func(s *settings, v string) error {
		if !strings.EqualFold(v, "PEM") {
			return fmt.Errorf("want PEM: Java key stores and PKCS12 files are not read, convert them with keytool and openssl")
		}
		return nil
	}},
	{"enable.ssl.certificate.verification", func(s *settings, v string) error {
		on, err := boolean(v)
		s.security.insecure = !on
		return err
	}},
	{"ssl.endpoint.identification.algorithm", func(s *settings, v string) error {
		s.security.anyName = v == "" || strings.EqualFold(v, "none")
		return nil
	}},
	{"client.id", func(s *settings, v string) error { return s.add(&s.common, kgo.ClientID(v)) }},
	{"client.rack", func(s *settings, v string) error { return s.add(&s.consumer, kgo.Rack(v)) }},
	{"metadata.max.age.ms topic.metadata.refresh.interval.ms", func(s *settings, v string) error {
		d, err := millis(v, 100, math.MaxInt32)
		return s.addIf(err, &s.common, kgo.MetadataMaxAge(d), kgo.MetadataMinAge(min(d, 5*time.Second)))
	}},
	{"connections.max.idle.ms", func(s *settings, v string) error {
		d, err := millis(v, 1000, math.MaxInt32)
		return s.addIf(err, &s.common, kgo.ConnIdleTimeout(d))
	}},
	{"request.timeout.ms socket.timeout.ms", func(s *settings, v string) error {
		d, err := millis(v, 100, math.MaxInt32)
		if err != nil {
			return err
		}
		return s.addIf(nil, &s.producer, kgo.ProduceRequestTimeout(d))
	}},
	{"receive.message.max.bytes", func(s *settings, v string) error {
		n, err := integer(v, 1000, math.MaxInt32)
		return s.addIf(err, &s.common, kgo.BrokerMaxReadBytes(int32(n)))
	}},

	{"acks request.required.acks", func(s *settings, v string) error {
		switch v {
		case "all", "-1":
			s.acks = "all"
		case "0", "1":
			s.acks = v
		default:
			return fmt.Errorf("want all, 1 or 0")
		}
		return nil
	}},
	{"enable.idempotence", func(s *settings, v string) error {
		on, err := boolean(v)
		s.idempotence = &on
		return err
	}},
	{"compression.type compression.codec", func(s *settings, v string) error {
		_, err := codec(v, 0)
		s.codec = v
		return err
	}},
	{"compression.level compression.gzip.level compression.lz4.level compression.zstd.level", func(s *settings, v string) error {
		n, err := integer(v, -131072, 22)
		s.level = int(n)
		return err
	}},
	{"linger.ms queue.buffering.max.ms", func(s *settings, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 || f > 900000 {
			return fmt.Errorf("want milliseconds from 0 to 900000")
		}
		return s.add(&s.producer, kgo.ProducerLinger(time.Duration(f*float64(time.Millisecond))))
	}},
	{"message.max.bytes max.request.size", func(s *settings, v string) error {
		n, err := integer(v, 1<<10, 1<<30)
		return s.addIf(err, &s.producer, kgo.ProducerBatchMaxBytes(int32(n)))
	}},
	{"batch.size", func(s *settings, v string) error {
		// The client knows one bound for batch and record. A small batch.size
		// must not refuse a record that max.request.size would let through.
		n, err := integer(v, 0, 1<<30)
		s.batch = int(n)
		if err == nil && n > 1000012 {
			s.producer = append(s.producer, kgo.ProducerBatchMaxBytes(int32(n)))
		}
		return err
	}},
	{"queue.buffering.max.messages", func(s *settings, v string) error {
		n, err := integer(v, 1, 10_000_000)
		return s.addIf(err, &s.producer, kgo.MaxBufferedRecords(int(n)))
	}},
	{"buffer.memory", func(s *settings, v string) error {
		n, err := integer(v, 1<<10, math.MaxInt32)
		return s.addIf(err, &s.producer, kgo.MaxBufferedBytes(int(n)))
	}},
	{"queue.buffering.max.kbytes", func(s *settings, v string) error {
		n, err := integer(v, 1, math.MaxInt32)
		return s.addIf(err, &s.producer, kgo.MaxBufferedBytes(int(n)<<10))
	}},
	{"delivery.timeout.ms message.timeout.ms", func(s *settings, v string) error {
		d, err := millis(v, 1000, math.MaxInt32)
		s.delivery = d
		return err
	}},
	{"retries message.send.max.retries", func(s *settings, v string) error {
		n, err := integer(v, 0, math.MaxInt32)
		return s.addIf(err, &s.producer, kgo.RecordRetries(int(n)))
	}},
	{"partitioner partitioner.class", func(s *settings, v string) error {
		p, err := partitioner(v)
		s.partitioner = p
		return err
	}},

	{"group.id", func(s *settings, v string) error { s.group = v; return nil }},
	{"group.instance.id", func(s *settings, v string) error { return s.add(&s.consumer, kgo.InstanceID(v)) }},
	{"auto.offset.reset", func(s *settings, v string) error {
		switch v {
		case "earliest", "smallest", "beginning":
			s.reset = "beginning"
		case "latest", "largest", "end":
			s.reset = "end"
		case "none", "error":
			s.reset = "none"
		default:
			return fmt.Errorf("want earliest, latest or none")
		}
		return nil
	}},
	{"isolation.level", func(s *settings, v string) error {
		switch v {
		case "read_committed":
			s.committed = true
		case "read_uncommitted":
			s.committed = false
		default:
			return fmt.Errorf("want read_committed or read_uncommitted")
		}
		return nil
	}},
	{"session.timeout.ms", func(s *settings, v string) error {
		d, err := millis(v, 1, math.MaxInt32)
		return s.addIf(err, &s.consumer, kgo.SessionTimeout(d))
	}},
	{"heartbeat.interval.ms", func(s *settings, v string) error {
		d, err := millis(v, 1, math.MaxInt32)
		return s.addIf(err, &s.consumer, kgo.HeartbeatInterval(d))
	}},
	{"max.poll.interval.ms", func(s *settings, v string) error {
		d, err := millis(v, 1, math.MaxInt32)
		return s.addIf(err, &s.consumer, kgo.RebalanceTimeout(d))
	}},
	{"auto.commit.interval.ms", func(s *settings, v string) error {
		d, err := millis(v, 100, math.MaxInt32)
		return s.addIf(err, &s.consumer, kgo.AutoCommitInterval(d))
	}},
	{"enable.auto.commit", func(s *settings, v string) error {
		on, err := boolean(v)
		s.noCommit = !on
		return err
	}},
	{"partition.assignment.strategy", func(s *settings, v string) error {
		var bs []kgo.GroupBalancer
		for name := range strings.SplitSeq(v, ",") {
			switch strings.TrimSpace(name) {
			case "range", "org.apache.kafka.clients.consumer.RangeAssignor":
				bs = append(bs, kgo.RangeBalancer())
			case "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor":
				bs = append(bs, kgo.RoundRobinBalancer())
			case "sticky", "org.apache.kafka.clients.consumer.StickyAssignor":
				bs = append(bs, kgo.StickyBalancer())
			case "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor":
				bs = append(bs, kgo.CooperativeStickyBalancer())
			default:
				return fmt.Errorf("want range, roundrobin, sticky or cooperative-sticky")
			}
		}
		return s.add(&s.consumer, kgo.Balancers(bs...))
	}},
	{"fetch.min.bytes", func(s *settings, v string) error {
		n, err := integer(v, 1, math.MaxInt32)
		return s.addIf(err, &s.consumer, kgo.FetchMinBytes(int32(n)))
	}},
	{"fetch.max.bytes", func(s *settings, v string) error {
		n, err := integer(v, 1, 1<<30)
		return s.addIf(err, &s.consumer, kgo.FetchMaxBytes(int32(n)), kgo.BrokerMaxReadBytes(int32(max(n, 32<<20)*2)))
	}},
	{"max.partition.fetch.bytes fetch.message.max.bytes", func(s *settings, v string) error {
		n, err := integer(v, 1, 1<<30)
		return s.addIf(err, &s.consumer, kgo.FetchMaxPartitionBytes(int32(n)))
	}},
	{"fetch.max.wait.ms fetch.wait.max.ms", func(s *settings, v string) error {
		d, err := millis(v, 1, math.MaxInt32)
		return s.addIf(err, &s.consumer, kgo.FetchMaxWait(d))
	}},
	{"check.crcs", func(s *settings, v string) error {
		on, err := boolean(v)
		if err == nil && !on {
			s.consumer = append(s.consumer, kgo.DisableFetchCRCValidation())
		}
		return err
	}},
}

// ignoredProperties are accepted in silence: the client decides them itself,
// or they have no effect in a command that runs once.
const ignoredProperties = `bootstrap.servers metadata.broker.list key.serializer value.serializer key.deserializer value.deserializer
max.poll.records max.in.flight.requests.per.connection max.in.flight retry.backoff.ms reconnect.backoff.ms reconnect.backoff.max.ms
retry.backoff.max.ms send.buffer.bytes receive.buffer.bytes socket.send.buffer.bytes socket.receive.buffer.bytes api.version.request
api.version.request.timeout.ms broker.version.fallback broker.address.family socket.keepalive.enable socket.nagle.disable
client.dns.lookup allow.auto.create.topics queued.min.messages queued.max.messages.kbytes enable.partition.eof statistics.interval.ms
log.connection.close debug batch.num.messages enable.auto.offset.store sticky.partitioning.linger.ms max.block.ms
metadata.max.idle.ms interceptor.classes metric.reporters enable.metrics.push socket.connection.setup.timeout.ms
socket.connection.setup.timeout.max.ms default.api.timeout.ms group.protocol exclude.internal.topics ssl.protocol ssl.enabled.protocols
ssl.cipher.suites partitioner.ignore.keys partitioner.adaptive.partitioning.enable enable.gapless.guarantee log_level`

func propertyTable() (map[string]*property, map[string]bool) {
	known := map[string]*property{}
	for i := range clientProperties {
		for n := range strings.FieldsSeq(clientProperties[i].names) {
			known[n] = &clientProperties[i]
		}
	}
	ignored := map[string]bool{}
	for n := range strings.FieldsSeq(ignoredProperties) {
		ignored[n] = true
	}
	return known, ignored
}

// loadSettings reads the property file, if any, and then the key=value pairs,
// which win. An unknown key is an error in a pair and a warning in a file,
// because files are shared with other clients.
func loadSettings(file string, pairs []string, warn io.Writer) (*settings, error) {
	type given struct{ key, value, from string }
	var all []given
	if file != "" {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("cannot read --command-config: %w", err)
		}
		ps, err := config.ParseProperties(body)
		if err != nil {
			return nil, usagef("%s is no properties file: %w", file, err)
		}
		for _, p := range ps {
			all = append(all, given{p.Key, p.Value, fmt.Sprintf("%s line %d", file, p.Line)})
		}
	}
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usagef("property %q has no value: write key=value", pair)
		}
		all = append(all, given{strings.TrimSpace(k), strings.TrimSpace(v), ""})
	}
	known, ignored := propertyTable()
	s := &settings{}
	for _, g := range all {
		key := strings.TrimPrefix(g.key, "topic.")
		if known[g.key] != nil || ignored[g.key] {
			key = g.key
		}
		if g.key == "transactional.id" {
			return nil, usagef("transactional.id is not for this command, which has no transactions: leave it out")
		}
		if p := known[key]; p != nil {
			if err := p.set(s, g.value); err != nil {
				shown := g.value
				if isSecret(key) {
					shown = "[hidden]"
				}
				return nil, usagef("property %s=%s: %w", g.key, shown, err)
			}
			continue
		}
		if ignored[key] {
			continue
		}
		hint := ""
		if near := nearest(key, slices.Sorted(maps.Keys(known))); near != "" {
			hint = "; the nearest is " + near
		}
		if g.from != "" {
			fmt.Fprintf(warn, "weir: %s: property %s is not known and has no effect%s\n", g.from, g.key, hint)
			continue
		}
		if hint == "" {
			hint = ": give a client property by librdkafka's or the Java client's name"
		}
		return nil, usagef("property %s is not known%s", g.key, hint)
	}
	return s, nil
}

// isSecret says whether a property's value must not be shown or kept.
func isSecret(key string) bool {
	return strings.Contains(key, "password") || strings.Contains(key, "jaas") || strings.HasSuffix(key, "key.pem") || strings.HasSuffix(key, "keystore.key")
}

// safeProperties are key=value pairs without secrets, as a result may keep them.
func safeProperties(pairs []string) []string {
	out := make([]string, 0, len(pairs))
	for _, p := range pairs {
		key, _, _ := strings.Cut(p, "=")
		if isSecret(strings.TrimSpace(key)) {
			p = key + "=[hidden]"
		}
		out = append(out, p)
	}
	return out
}

func (s *settings) add(to *[]kgo.Opt, o ...kgo.Opt) error {
	*to = append(*to, o...)
	return nil
}

func (s *settings) addIf(err error, to *[]kgo.Opt, o ...kgo.Opt) error {
	if err == nil {
		*to = append(*to, o...)
	}
	return err
}

func integer(v string, min, max int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < min || n > max {
		return 0, fmt.Errorf("want a number from %d to %d", min, max)
	}
	return n, nil
}

func millis(v string, min, max int64) (time.Duration, error) {
	n, err := integer(v, min, max)
	return time.Duration(n) * time.Millisecond, err
}

func boolean(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("want true or false")
}

func codec(name string, level int) (kgo.CompressionCodec, error) {
	var c kgo.CompressionCodec
	switch name {
	case "none", "uncompressed", "":
		return kgo.NoCompression(), nil
	case "gzip":
		c = kgo.GzipCompression()
	case "snappy":
		c = kgo.SnappyCompression()
	case "lz4":
		c = kgo.Lz4Compression()
	case "zstd":
		c = kgo.ZstdCompression()
	default:
		return c, fmt.Errorf("codec %q: want none, gzip, snappy, lz4 or zstd", name)
	}
	if level != 0 {
		c = c.WithLevel(level)
	}
	return c, nil
}

func partitioner(name string) (kgo.Partitioner, error) {
	crc := func(key []byte, n int) int { return int(crc32.ChecksumIEEE(key) % uint32(n)) }
	switch name {
	case "murmur2", "murmur2_random", "org.apache.kafka.clients.producer.internals.DefaultPartitioner":
		return kgo.StickyKeyPartitioner(nil), nil
	case "consistent", "consistent_random":
		return kgo.StickyKeyPartitioner(crc), nil
	case "random", "org.apache.kafka.clients.producer.UniformStickyPartitioner":
		return kgo.StickyPartitioner(), nil
	case "roundrobin", "org.apache.kafka.clients.producer.RoundRobinPartitioner":
		return kgo.RoundRobinPartitioner(), nil
	}
	return nil, fmt.Errorf("want murmur2, consistent, random or roundrobin")
}
