package kafkatools

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const nudge = "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to try it out. See https://kafka.apache.org/documentation/#consumer_rebalance_protocol\n"

// consoleConsumer is kafka-console-consumer.
func consoleConsumer(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The brokers to start from.")
	topic := o.value("topic", "String", "topic", "The topic to read.")
	include := o.value("include", "String", "Java regex (String)", "A regular expression of the topics to read.")
	whitelist := o.value("whitelist", "String", "Java regex (String)", "DEPRECATED, use --include instead.")
	partition := o.value("partition", "Integer", "partition", "The partition to read, from the end unless --offset is given.")
	offset := o.value("offset", "String", "consume offset", "Where to begin: a number, earliest or latest.").withDefault("latest")
	oldProps := o.value("consumer-property", "String", "consumer_prop", "(DEPRECATED) Use --command-property.")
	props := o.value("command-property", "String", "consumer_prop", "A consumer property, key=value.")
	oldConfig := o.value("consumer.config", "String", "config file", "(DEPRECATED) Use --command-config.")
	config := o.value("command-config", "String", "config file", "A file with consumer properties.")
	formatter := o.value("formatter", "String", "class", "How records are shown.").withDefault("org.apache.kafka.tools.consumer.DefaultMessageFormatter")
	oldShow := o.value("property", "String", "prop", "(DEPRECATED) Use --formatter-property.")
	show := o.value("formatter-property", "String", "prop", "print.timestamp, print.key, print.offset, print.epoch, print.partition, print.delivery, print.headers, print.value: true or false; key.separator, line.separator, headers.separator, null.literal; key.deserializer, value.deserializer.")
	showFile := o.value("formatter-config", "String", "config file", "A file with formatter properties.")
	begin := o.flag("from-beginning", "Begin at the beginning where the group has no offset.")
	most := o.value("max-messages", "Integer", "num_messages", "End after so many records.")
	timeout := o.value("timeout-ms", "Long", "timeout_ms", "End when no record came for so long.")
	skip := o.flag("skip-message-on-error", "Go on after a record that cannot be shown.")
	keyType := o.value("key-deserializer", "String", "deserializer for key", "The key's type, by the Java class.")
	valueType := o.value("value-deserializer", "String", "deserializer for values", "The value's type, by the Java class.")
	csi := o.flag("enable-systest-events", "Print the events of Kafka's system tests; without effect here.")
	isolation := o.value("isolation-level", "String", "", "read_committed or read_uncommitted.").withDefault("read_uncommitted")
	group := o.value("group", "String", "consumer group id", "The group to read as.")
	common(o)
	_, _ = skip, csi
	if err := o.parse(c.args); err != nil {
		return usage(o, err.Error())
	}
	if err := helpOrVersion(c, o, "This tool helps to read data from Kafka topics and outputs it to standard output."); err != nil {
		return err
	}
	if whitelist.given && !include.given {
		include.given, include.values = true, whitelist.values
	}
	if m := missing(server); m != "" {
		return usage(o, m)
	}
	if m := exactlyOne(topic, include); m != "" {
		return usage(o, m)
	}
	for _, m := range []string{refused(oldProps, props), refused(oldConfig, config), refused(oldShow, show)} {
		if m != "" {
			return usage(o, m)
		}
	}
	for _, w := range []struct {
		old *option
		now string
	}{{oldShow, "--formatter-property"}, {oldProps, "--command-property"}, {oldConfig, "--command-config"}} {
		if w.old.given {
			c.printf("Option --%s is deprecated and will be removed in a future version. Use %s instead.\n", w.old.names[0], w.now)
		}
	}
	if partition.given {
		if !topic.given {
			return usage(o, "The topic is required when partition is specified.")
		}
		if begin.given && offset.given {
			return usage(o, "Options from-beginning and offset cannot be specified together.")
		}
	} else if offset.given {
		return usage(o, "The partition is required when offset is specified.")
	}
	if begin.given && offset.given {
		return usage(o, "Options from-beginning and offset cannot be specified together.")
	}
	var at kgo.Offset
	word, err := offset.one()
	if err != nil {
		return err
	}
	switch {
	case begin.given || word == "earliest":
		at = kgo.NewOffset().AtStart()
	case word == "latest":
		at = kgo.NewOffset().AtEnd()
	default:
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 {
			return usage(o, fmt.Sprintf("The provided offset value '%s' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long.", word))
		}
		at = kgo.NewOffset().At(n)
	}
	run := func() error {
		one := func(f *option) string {
			v, oerr := f.one()
			if err == nil {
				err = oerr
			}
			return v
		}
		file := one(config)
		if oldConfig.given {
			file = one(oldConfig)
		}
		servers, name, pattern, class, level := one(server), one(topic), one(include), one(formatter), one(isolation)
		shown, keyClass, valueClass, gid := one(showFile), one(keyType), one(valueType), one(group)
		if err != nil {
			return err
		}
		limit, wait := int64(math.MaxInt64), int64(-1)
		if most.given {
			if limit, err = most.integer(32); err != nil {
				return err
			}
		}
		if timeout.given {
			if wait, err = timeout.integer(64); err != nil {
				return err
			}
		}
		p, err := readProperties(file)
		if err != nil {
			return err
		}
		fromFile := p["group.id"]
		given := properties{}
		given.merge(oldProps.values)
		given.merge(props.values)
		ids := map[string]bool{}
		var idList []string
		for _, id := range []string{gid, given["group.id"], fromFile} {
			if id != "" && !ids[id] {
				ids[id] = true
				idList = append(idList, "'"+id+"'")
			}
		}
		if len(idList) > 1 {
			return usage(o, "The group ids provided in different places (directly using '--group', via '--consumer-property', or via '--consumer.config') do not match. Detected group ids: "+strings.Join(idList, ", "))
		}
		for k, v := range given {
			p[k] = v
		}
		ownGroup := len(idList) == 0
		if gid != "" {
			p["group.id"] = gid
		}
		if r := p["auto.offset.reset"]; begin.given && r != "" && r != "earliest" {
			return &exit{code: 1, stderr: fmt.Sprintf("Can't simultaneously specify --from-beginning and 'auto.offset.reset=%s', please remove one option\n", r)}
		}
		reset := "latest"
		if begin.given {
			reset = "earliest"
		}
		p["isolation.level"] = level
		if p["client.id"] == "" {
			p["client.id"] = "console-consumer"
		}
		if partition.given {
			delete(p, "group.id")
		} else if ownGroup {
			p["group.id"] = fmt.Sprintf("console-consumer-%d", rand.IntN(100000))
			// Kafka's leaves no offsets of a group that nobody named.
			if p["enable.auto.commit"] == "" {
				p["enable.auto.commit"] = "false"
			}
		}
		s, err := p.consumer(reset)
		if err != nil {
			return err
		}
		switch {
		case partition.given:
			n, err := partition.integer(32)
			if err != nil {
				return err
			}
			s.opts = append(s.opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {int32(n): at}}))
		case include.given:
			s.opts = append(s.opts, kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:"+pattern+")$"))
		default:
			s.opts = append(s.opts, kgo.ConsumeTopics(name))
		}
		fp, err := readProperties(shown)
		if err != nil {
			return err
		}
		fp.merge(oldShow.values)
		fp.merge(show.values)
		if keyClass != "" {
			fp["key.deserializer"] = keyClass
		}
		if valueClass != "" {
			fp["value.deserializer"] = valueClass
		}
		f, err := newFormatter(class, fp)
		if err != nil {
			return err
		}
		k, err := c.connect(consumerKind, servers, p, s.opts...)
		if err != nil {
			return err
		}
		defer k.close()
		if !partition.given {
			c.errorf("%s", nudge)
		}
		return printRecords(c, k, f, s.poll, limit, wait)
	}
	if err := run(); err != nil {
		if e, ok := err.(*exit); ok {
			return e
		}
		e := java("", err)
		if e.class == "java.lang.ClassNotFoundException" {
			return usage(o, e.message)
		}
		return &exit{code: 1, stderr: "Unknown error when running consumer: \n" + e.line() + "\n"}
	}
	return nil
}

// printRecords prints records until there were enough or none came for wait ms (below 0: for ever).
func printRecords(c *call, k *cluster, f *formatter, poll int, limit, wait int64) error {
	out := bufio.NewWriterSize(c.in.Stdout, 1<<16)
	var n int64
	last := time.Now()
	var failure error
	for n < limit && c.ctx.Err() == nil && failure == nil {
		if wait >= 0 && time.Since(last).Milliseconds() > wait {
			break
		}
		// No more than are wanted: what was polled counts as read for the group.
		fetches, err := k.poll(int(min(int64(poll), limit-n)), 100*time.Millisecond)
		if err != nil {
			return err
		}
		if fetches.NumRecords() > 0 {
			last = time.Now()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			if failure == nil {
				failure = f.write(out, r)
			}
		})
		if err := out.Flush(); err != nil {
			c.errorf("Unable to write to standard out, closing consumer.\n")
			break
		}
	}
	c.errorf("Processed a total of %d messages\n", n)
	if failure != nil {
		return failure
	}
	return nil
}

// formatter prints records as Kafka's DefaultMessageFormatter.
type formatter struct {
	none                                                     bool // NoOpMessageFormatter
	timestamp, key, value, partition, offset, epoch, headers bool
	keySep, lineSep, headersSep, null                        string
	keyOf, valueOf                                           func([]byte) (string, error)
}

func newFormatter(class string, p properties) (*formatter, error) {
	f := &formatter{}
	switch class {
	case "org.apache.kafka.tools.consumer.DefaultMessageFormatter", "kafka.tools.DefaultMessageFormatter",
		"org.apache.kafka.tools.consumer.LoggingMessageFormatter", "kafka.tools.LoggingMessageFormatter":
	case "org.apache.kafka.tools.consumer.NoOpMessageFormatter", "kafka.tools.NoOpMessageFormatter":
		f.none = true
	default:
		return nil, &javaError{class: "java.lang.ClassNotFoundException", message: class}
	}
	yes := func(key string, def bool) bool {
		if v, ok := p[key]; ok {
			return strings.EqualFold(strings.TrimSpace(v), "true")
		}
		return def
	}
	or := func(key, def string) string {
		if v, ok := p[key]; ok {
			return v
		}
		return def
	}
	f.timestamp, f.key, f.value = yes("print.timestamp", false), yes("print.key", false), yes("print.value", true)
	f.partition, f.offset, f.epoch, f.headers = yes("print.partition", false), yes("print.offset", false), yes("print.epoch", false), yes("print.headers", false)
	f.keySep, f.lineSep, f.headersSep, f.null = or("key.separator", "\t"), or("line.separator", "\n"), or("headers.separator", ","), or("null.literal", "null")
	var err error
	if f.keyOf, err = deserializer(p["key.deserializer"]); err != nil {
		return nil, err
	}
	if f.valueOf, err = deserializer(p["value.deserializer"]); err != nil {
		return nil, err
	}
	return f, nil
}

// deserializer is a value's text by the Java class of its type.
func deserializer(class string) (func([]byte) (string, error), error) {
	number := func(size int, text func([]byte) string) func([]byte) (string, error) {
		return func(b []byte) (string, error) {
			if len(b) != size {
				return "", &javaError{class: apiErrors + "SerializationException", message: fmt.Sprintf("Size of data received by deserializer is not %d", size)}
			}
			return text(b), nil
		}
	}
	switch strings.TrimPrefix(class, "org.apache.kafka.common.serialization.") {
	case "", "StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer", "ByteBufferDeserializer":
		return func(b []byte) (string, error) { return string(b), nil }, nil
	case "LongDeserializer":
		return number(8, func(b []byte) string { return itoa(int64(binary.BigEndian.Uint64(b))) }), nil
	case "IntegerDeserializer":
		return number(4, func(b []byte) string { return itoa(int64(int32(binary.BigEndian.Uint32(b)))) }), nil
	case "ShortDeserializer":
		return number(2, func(b []byte) string { return itoa(int64(int16(binary.BigEndian.Uint16(b)))) }), nil
	case "DoubleDeserializer":
		return number(8, func(b []byte) string { return javaDouble(math.Float64frombits(binary.BigEndian.Uint64(b))) }), nil
	case "FloatDeserializer":
		return number(4, func(b []byte) string {
			return javaDouble(float64(math.Float32frombits(binary.BigEndian.Uint32(b))))
		}), nil
	case "UUIDDeserializer":
		return func(b []byte) (string, error) { return string(b), nil }, nil
	}
	return nil, &javaError{class: "java.lang.ClassNotFoundException", message: class}
}

// javaDouble is Java's Double.toString for the numbers people print.
func javaDouble(v float64) string {
	if a := math.Abs(v); a != 0 && (a < 1e-3 || a >= 1e7) && !math.IsInf(v, 0) {
		m, e, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, 64), "E")
		if !strings.Contains(m, ".") {
			m += ".0"
		}
		n, _ := strconv.Atoi(e)
		return m + "E" + strconv.Itoa(n)
	}
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return fixed(v, 1)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func (f *formatter) write(w *bufio.Writer, r *kgo.Record) error {
	if f.none {
		return nil
	}
	first := true
	field := func(s string) {
		if !first {
			w.WriteString(f.keySep)
		}
		first = false
		w.WriteString(s)
	}
	text := func(b []byte, of func([]byte) (string, error)) (string, error) {
		if b == nil {
			return f.null, nil
		}
		return of(b)
	}
	if f.timestamp {
		switch r.Attrs.TimestampType() {
		case 0:
			field("CreateTime:" + itoa(r.Timestamp.UnixMilli()))
		case 1:
			field("LogAppendTime:" + itoa(r.Timestamp.UnixMilli()))
		default:
			field("NO_TIMESTAMP")
		}
	}
	if f.partition {
		field("Partition:" + itoa(int64(r.Partition)))
	}
	if f.offset {
		field("Offset:" + itoa(r.Offset))
	}
	if f.epoch {
		// Kafka's consumer gives it with the batch.
		if r.LeaderEpoch >= 0 {
			field("Epoch:" + itoa(int64(r.LeaderEpoch)))
		} else {
			field("Epoch:NOT_PRESENT")
		}
	}
	if f.headers {
		if len(r.Headers) == 0 {
			field("NO_HEADERS")
		} else {
			var hs []string
			for _, h := range r.Headers {
				v := f.null
				if h.Value != nil {
					v = string(h.Value)
				}
				hs = append(hs, h.Key+":"+v)
			}
			field(strings.Join(hs, f.headersSep))
		}
	}
	if f.key {
		s, err := text(r.Key, f.keyOf)
		if err != nil {
			return err
		}
		field(s)
	}
	if f.value {
		s, err := text(r.Value, f.valueOf)
		if err != nil {
			return err
		}
		field(s)
	}
	_, err := w.WriteString(f.lineSep)
	return err
}
