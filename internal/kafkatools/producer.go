package kafkatools

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/tools"
)

// producerSettings are a Java producer's properties, checked.
type producerSettings struct {
	opts       []kgo.Opt
	requestMax int64         // max.request.size
	block      time.Duration // max.block.ms
}

// producer checks p as a Java producer and gives what the client makes of it.
// recordBytes is the size of the largest record to be sent, where it is known: the
// client has one bound for a batch and a record, and a small batch.size must not
// refuse a larger record.
func (p properties) producer(recordBytes int) (*producerSettings, error) {
	var s producerSettings
	num := func(key string, bits int, def, least int64, into *int64) error {
		n, err := p.number(key, bits, def, least)
		*into = n
		return err
	}
	var linger, batch, memory, flight, retries, delivery, request, block, level int64
	for _, err := range []error{
		num("linger.ms", 64, 5, 0, &linger),
		num("batch.size", 32, 16384, 0, &batch),
		num("buffer.memory", 64, 32<<20, 0, &memory),
		num("max.in.flight.requests.per.connection", 32, 5, 1, &flight),
		num("retries", 32, math.MaxInt32, 0, &retries),
		num("delivery.timeout.ms", 32, 120000, 0, &delivery),
		num("request.timeout.ms", 32, 30000, 0, &request),
		num("max.block.ms", 64, 60000, 0, &block),
		num("max.request.size", 32, 1<<20, 0, &s.requestMax),
	} {
		if err != nil {
			return nil, err
		}
	}
	s.block = time.Duration(block) * time.Millisecond
	acks, err := p.word("acks", "all", "all", "-1", "0", "1")
	if err != nil {
		return nil, err
	}
	idempotent, err := p.boolean("enable.idempotence", true)
	if err != nil {
		return nil, err
	}
	compression := p.get("compression.type", "none")
	switch compression {
	case "none", "gzip", "snappy", "lz4", "zstd":
	default:
		return nil, configError("Invalid value %s for configuration compression.type: String must be one of: none, gzip, snappy, lz4, zstd", compression)
	}
	if key := "compression." + compression + ".level"; p[key] != "" {
		if err := num(key, 32, 0, -131072, &level); err != nil {
			return nil, err
		}
	}
	codec, err := tools.Codec(compression, int(level))
	if err != nil {
		return nil, configError("%s", err.Error())
	}
	_, said := p["enable.idempotence"]
	full := acks == "all" || acks == "-1"
	if idempotent && !full {
		if said {
			return nil, configError("Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.")
		}
		idempotent = false
	}
	if idempotent && flight > 5 {
		if said {
			return nil, configError("Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer.")
		}
		idempotent = false
	}
	if idempotent && retries == 0 {
		if said {
			return nil, configError("Must set retries to non-zero when using the idempotent producer.")
		}
		idempotent = false
	}
	ack := kgo.AllISRAcks()
	switch acks {
	case "0":
		ack = kgo.NoAck()
	case "1":
		ack = kgo.LeaderAck()
	}
	s.opts = []kgo.Opt{
		kgo.RequiredAcks(ack),
		kgo.ProducerLinger(time.Duration(linger) * time.Millisecond),
		kgo.ProducerBatchMaxBytes(int32(min(max(batch, int64(recordBytes)+512, 1<<10), 1<<30))),
		kgo.ProducerBatchCompression(codec),
		kgo.MaxBufferedBytes(int(max(memory, 1<<10))),
		kgo.MaxBufferedRecords(math.MaxInt32),
		kgo.RecordDeliveryTimeout(max(time.Duration(delivery)*time.Millisecond, time.Second)),
		kgo.ProduceRequestTimeout(max(time.Duration(request)*time.Millisecond, 100*time.Millisecond)),
		kgo.RecordRetries(int(min(retries, math.MaxInt32))),
		kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(int(max(batch, 1)), false, true, nil)),
	}
	if !idempotent {
		s.opts = append(s.opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(int(min(flight, 1<<10))))
	}
	if id := p.get("transactional.id", ""); id != "" {
		n, err := p.number("transaction.timeout.ms", 32, 60000, 0)
		if err != nil {
			return nil, err
		}
		s.opts = append(s.opts, kgo.TransactionalID(id), kgo.TransactionTimeout(time.Duration(n)*time.Millisecond))
	}
	return &s, nil
}

// ready waits until the topic can be written to, for as long as a Java producer's
// first send blocks; a topic that is not there is made where the cluster allows.
func (k *cluster) ready(topic string, block time.Duration) error {
	ctx, stop := context.WithTimeout(k.ctx, block)
	defer stop()
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	for {
		resp, err := k.cl.Request(ctx, req)
		if err == nil {
			topics := resp.(*kmsg.MetadataResponse).Topics
			if len(topics) == 1 {
				switch code := topics[0].ErrorCode; {
				case code == 0:
					return nil
				case code == kerr.InvalidTopicException.Code:
					return &javaError{class: exceptionClass(code), message: "Invalid topics: [" + topic + "]"}
				case code == kerr.TopicAuthorizationFailed.Code:
					return &javaError{class: exceptionClass(code), message: "Not authorized to access topics: [" + topic + "]"}
				case !kerr.IsRetriable(kerr.ErrorForCode(code)):
					return answered(code, nil)
				}
			}
		} else if k.ctx.Err() != nil {
			return java("", k.ctx.Err())
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		if ctx.Err() != nil {
			if k.ctx.Err() != nil {
				return java("", k.ctx.Err())
			}
			return &javaError{class: apiErrors + "TimeoutException", message: "Topic " + topic + " not present in metadata after " + millis(block) + " ms."}
		}
	}
}

// tooLarge refuses a record as the Java producer does, before it is sent; nil
// when it fits.
func (s *producerSettings) tooLarge(r *kgo.Record) *javaError {
	n := int64(61 + 21 + varintBytes(r.Key) + varintBytes(r.Value) + uvarintLen(len(r.Headers)))
	for _, h := range r.Headers {
		n += int64(uvarintLen(len(h.Key)) + len(h.Key) + varintBytes(h.Value))
	}
	if n <= s.requestMax {
		return nil
	}
	return &javaError{class: apiErrors + "RecordTooLargeException",
		message: "The message is " + itoa(n) + " bytes when serialized which is larger than " + itoa(s.requestMax) + ", which is the value of the max.request.size configuration."}
}

func varintBytes(b []byte) int {
	if b == nil {
		return 1
	}
	return uvarintLen(len(b)) + len(b)
}

// uvarintLen is the length of n as a zigzag varint.
func uvarintLen(n int) int {
	l := 1
	for u := uint(n) << 1; u >= 0x80; u >>= 7 {
		l++
	}
	return l
}

// refusal is why a record was not written, as a Java producer's callback gets it.
func refusal(err error, p properties) *javaError {
	switch {
	case errors.Is(err, kgo.ErrRecordTimeout):
		return &javaError{class: apiErrors + "TimeoutException", message: "Expiring record: " + p.get("delivery.timeout.ms", "120000") + " ms has passed since batch creation"}
	case errors.Is(err, kerr.InvalidTopicException):
		return answered(kerr.InvalidTopicException.Code, nil).(*javaError)
	}
	e := java("", err)
	if e.class == apiErrors+"TimeoutException" && e.message == "" {
		e.message = err.Error()
	}
	return e
}
