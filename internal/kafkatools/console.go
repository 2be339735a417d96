package kafkatools

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consoleProducer is kafka-console-producer.
func consoleProducer(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The brokers to start from.")
	oldServer := o.value("broker-list", "String", "broker-list", "DEPRECATED, use --bootstrap-server instead.")
	topic := o.value("topic", "String", "topic", "REQUIRED: The topic to write to.")
	sync := o.flag("sync", "Wait for each record before the next is sent.")
	codec := o.value("compression-codec", "String", "compression-codec", "none, gzip, snappy, lz4 or zstd; gzip without a value.").optional()
	batch := o.value("batch-size", "Integer", "size", "The bytes of a batch.").withDefault("16384")
	retries := o.value("message-send-max-retries", "Integer", "", "How often a record is sent again.").withDefault("3")
	backoff := o.value("retry-backoff-ms", "Long", "", "Without effect here.").withDefault("100")
	linger := o.value("timeout", "Long", "timeout_ms", "How long a record waits for others.").withDefault("1000")
	acks := o.value("request-required-acks", "String", "request required acks", "0, 1 or all.").withDefault("-1")
	request := o.value("request-timeout-ms", "Integer", "request timeout ms", "How long to wait for an acknowledgement.").withDefault("1500")
	expire := o.value("metadata-expiry-ms", "Long", "metadata expiration interval", "Without effect here.").withDefault("300000")
	block := o.value("max-block-ms", "Long", "max block on send", "How long a send may wait.").withDefault("60000")
	memory := o.value("max-memory-bytes", "Long", "total memory in bytes", "How much may wait to be sent.").withDefault("33554432")
	part := o.value("max-partition-memory-bytes", "Integer", "memory in bytes per partition", "The bytes of a batch.").withDefault("16384")
	reader := o.value("line-reader", "String", "reader_class", "Without effect: lines are read.").withDefault("org.apache.kafka.tools.LineMessageReader")
	buffer := o.value("socket-buffer-size", "Integer", "size", "Without effect here.").withDefault("102400")
	oldReader := o.value("property", "String", "prop", "(DEPRECATED) Use --reader-property.")
	readerProps := o.value("reader-property", "String", "prop", "How lines are read: parse.key, parse.headers, key.separator, headers.delimiter, headers.separator, headers.key.separator, ignore.error, null.marker.")
	readerFile := o.value("reader-config", "String", "config file", "A file with reader properties.")
	oldProps := o.value("producer-property", "String", "producer_prop", "(DEPRECATED) Use --command-property.")
	props := o.value("command-property", "String", "producer_prop", "A producer property, key=value.")
	oldConfig := o.value("producer.config", "String", "config file", "(DEPRECATED) Use --command-config.")
	config := o.value("command-config", "String", "config file", "A file with producer properties.")
	common(o)
	_, _, _, _ = backoff, expire, reader, buffer
	if err := o.parse(c.args); err != nil {
		return usage(o, err.Error())
	}
	if err := helpOrVersion(c, o, "This tool helps to read data from standard input and publish it to Kafka."); err != nil {
		return err
	}
	if m := missing(topic); m != "" {
		return usage(o, m)
	}
	for _, m := range []string{refused(oldProps, props), refused(oldConfig, config), refused(oldReader, readerProps)} {
		if m != "" {
			return usage(o, m)
		}
	}
	for _, w := range []struct {
		old *option
		now string
	}{{oldReader, "--reader-property"}, {oldProps, "--command-property"}, {oldConfig, "--command-config"}} {
		if w.old.given {
			c.printf("Warning: --%s is deprecated and will be removed in a future version. Use %s instead.\n", w.old.names[0], w.now)
		}
	}
	if oldServer.given && !server.given {
		server.given, server.values = true, oldServer.values
	}
	if !server.given {
		return usage(o, "Error while validating the bootstrap address\n")
	}
	run := func() error {
		servers, err := server.one()
		if err != nil {
			return err
		}
		name, err := topic.one()
		if err != nil {
			return err
		}
		file, err := config.one()
		if err != nil {
			return err
		}
		if oldConfig.given {
			file, err = oldConfig.one()
			if err != nil {
				return err
			}
		}
		p, err := readProperties(file)
		if err != nil {
			return err
		}
		p.merge(oldProps.values)
		p.merge(props.values)
		// A flag that was given wins, one that was not only fills in.
		for key, f := range map[string]*option{"acks": acks, "linger.ms": linger, "retries": retries, "request.timeout.ms": request,
			"max.block.ms": block, "buffer.memory": memory, "batch.size": batch} {
			v, err := f.one()
			if err != nil {
				return err
			}
			if _, has := p[key]; f.given || !has {
				p[key] = v
			}
		}
		if part.given {
			p["batch.size"], _ = part.one()
		}
		if codec.given {
			p["compression.type"] = "gzip"
			if len(codec.values) > 0 && codec.values[0] != "" {
				p["compression.type"] = codec.values[0]
			}
		}
		if p["client.id"] == "" {
			p["client.id"] = "console-producer"
		}
		readFile, err := readerFile.one()
		if err != nil {
			return err
		}
		rp, err := readProperties(readFile)
		if err != nil {
			return err
		}
		rp.merge(oldReader.values)
		rp.merge(readerProps.values)
		return produceLines(c, name, servers, p, newLineReader(c.in.Stdin, rp), sync.given)
	}
	if err := run(); err != nil {
		if e, ok := err.(*exit); ok {
			return e
		}
		return &exit{code: 1, stderr: java("", err).line() + "\n"}
	}
	return nil
}

func produceLines(c *call, topic, servers string, p properties, lines *lineReader, wait bool) error {
	s, err := p.producer(int(1 << 20))
	if err != nil {
		return err
	}
	k, err := c.connect(producerKind, servers, p, s.opts...)
	if err != nil {
		return err
	}
	defer k.close()
	gone := newRefusals(c)
	readied := false
	for c.ctx.Err() == nil {
		var r *kgo.Record
		// Reading may block for as long as nobody types; an interrupt must end it.
		type read struct {
			r   *kgo.Record
			err error
		}
		came := make(chan read, 1)
		go func() { r, err := lines.next(); came <- read{r, err} }()
		select {
		case got := <-came:
			r, err = got.r, got.err
		case <-c.ctx.Done():
			err = io.EOF
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			k.cl.Flush(k.ctx)
			return err
		}
		r.Topic = topic
		if !readied {
			if err := k.ready(topic, s.block); err != nil {
				gone.add(java("", err), 1)
				break
			}
			readied = true
		}
		if e := s.tooLarge(r); e != nil {
			gone.add(e, 1)
			continue
		}
		if wait {
			if err := k.cl.ProduceSync(k.ctx, r).FirstErr(); err != nil {
				gone.add(refusal(err, p), 1)
			}
			continue
		}
		k.cl.Produce(k.ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				gone.add(refusal(err, p), 1)
			}
		})
	}
	k.cl.Flush(k.ctx)
	return gone.end()
}

// lineReader makes records of lines, as Kafka's LineMessageReader.
type lineReader struct {
	mu   sync.Mutex
	in   *bufio.Reader
	line int

	key, headers             bool
	keySep, headersDelimiter string
	headersSep, headerKeySep string
	ignore                   bool
	null                     *string
}

func newLineReader(in io.Reader, p properties) *lineReader {
	yes := func(key string) bool { return strings.EqualFold(strings.TrimSpace(p[key]), "true") }
	or := func(key, def string) string {
		if v, ok := p[key]; ok {
			return v
		}
		return def
	}
	r := &lineReader{in: bufio.NewReaderSize(in, 1<<16), key: yes("parse.key"), headers: yes("parse.headers"), ignore: yes("ignore.error"),
		keySep: or("key.separator", "\t"), headersDelimiter: or("headers.delimiter", "\t"),
		headersSep: or("headers.separator", ","), headerKeySep: or("headers.key.separator", ":")}
	if v, ok := p["null.marker"]; ok {
		r.null = &v
	}
	return r
}

func (r *lineReader) value(b []byte) []byte {
	if r.null != nil && string(b) == *r.null {
		return nil
	}
	return b
}

// next reads one record; io.EOF at the end.
func (r *lineReader) next() (*kgo.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line, err := r.in.ReadBytes('\n')
	if err != nil && len(line) == 0 {
		return nil, io.EOF
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	r.line++
	whole := line
	out := &kgo.Record{}
	cut := func(sep, what string) ([]byte, bool, error) {
		before, after, ok := bytes.Cut(line, []byte(sep))
		if !ok && r.ignore {
			return nil, false, nil
		}
		if !ok {
			return nil, false, &javaError{class: "org.apache.kafka.common.KafkaException",
				message: fmt.Sprintf("No %s found on line number %d: '%s'", what, r.line, whole)}
		}
		line = after
		return before, true, nil
	}
	if r.headers && r.null != nil && bytes.HasPrefix(line, []byte(*r.null+r.headersDelimiter)) {
		line = line[len(*r.null)+len(r.headersDelimiter):]
	} else if r.headers {
		text, ok, err := cut(r.headersDelimiter, "headers delimiter")
		if err != nil {
			return nil, err
		}
		if ok {
			for pair := range bytes.SplitSeq(text, []byte(r.headersSep)) {
				k, v, ok := bytes.Cut(pair, []byte(r.headerKeySep))
				if !ok && !r.ignore {
					return nil, &javaError{class: "org.apache.kafka.common.KafkaException",
						message: fmt.Sprintf("No header key separator found in pair '%s' on line number %d", pair, r.line)}
				}
				h := kgo.RecordHeader{Key: string(k)}
				if ok {
					h.Value = r.value(v)
				}
				out.Headers = append(out.Headers, h)
			}
		}
	}
	if r.key {
		key, ok, err := cut(r.keySep, "key separator")
		if err != nil {
			return nil, err
		}
		if ok {
			out.Key = r.value(key)
		}
	}
	out.Value = r.value(line)
	return out, nil
}
