package broker

import (
	"encoding/binary"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// Produce, versions 0 to 13. 0-2 carry message sets of magic 0 and 1, which are
// turned into one v2 batch each (Kafka 4 only advertises them; see
// docs/decisions). 3: record batches, transactional id. 5: log start offset. 8:
// record errors (KIP-467). 9: flexible. 10: current leader tags (KIP-951). 12:
// KIP-890. 13: topic ids.
//
// Sketch, 1 KiB records in 16 KiB batches: per batch one frame read, 2 us of CRC
// and walk, one pwrite of 16 KiB (5 us), a few hundred ns here, and its share of
// one write of the response. Nothing is copied between frame and file.

// produceWait is a produce whose records are appended and wait for the watermark.
type produceWait struct {
	b        *Broker
	resp     *kmsg.ProduceResponse
	w        *partition.Waiter
	deadline time.Time
	waits    []ackWait
}

type ackWait struct {
	p        *partition.Partition
	last     kafka.Offset
	topic, n int // place in resp
}

func (b *Broker) produce(r *wire.Request, req *kmsg.ProduceRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	// A topic without partitions is not answered.
	req.Topics = slices.DeleteFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool { return len(t.Partitions) == 0 })
	resp.Topics = make([]kmsg.ProduceResponseTopic, len(req.Topics))
	img := b.o.Quorum.Image()
	now := time.Now()
	var waits []ackWait
	failed := false
	for i := range req.Topics {
		in, out := &req.Topics[i], &resp.Topics[i]
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(in.Partitions))
		t, code := produceTopic(img, req.Version, in)
		for j := range in.Partitions {
			pin, pout := &in.Partitions[j], &out.Partitions[j]
			pout.Default()
			pout.Partition, pout.BaseOffset, pout.LogAppendTime, pout.LogStartOffset = pin.Partition, -1, -1, -1
			if code != kafka.NoError {
				pout.ErrorCode = int16(code)
				failed = true
				continue
			}
			p, ticket := b.producePartition(req, t, pin, pout, now)
			if pout.ErrorCode != 0 {
				failed = true
			} else if !ticket.Done && (req.Acks == -1 || p.Settings().FlushesByCount()) {
				waits = append(waits, ackWait{p, ticket.Last, i, j}) // acks=1 waits for the leader's own flush
			}
		}
	}
	if req.Acks == 0 {
		// Nobody reads an answer; a failure is told by closing (as Kafka does).
		return wire.Response{None: true, Close: failed}
	}
	if len(waits) == 0 {
		return respond(resp)
	}
	w := partition.NewWaiter(int64(len(waits)))
	for _, a := range waits {
		if !a.p.Await(a.last, w) {
			w.Advance(1)
		}
	}
	return wire.Response{Pending: &produceWait{b: b, resp: resp, w: w, waits: waits,
		deadline: now.Add(time.Duration(req.TimeoutMillis) * time.Millisecond)}}
}

func produceTopic(img *metadata.Image, version int16, in *kmsg.ProduceRequestTopic) (*metadata.Topic, kafka.Error) {
	if version >= 13 {
		t, ok := img.TopicByID(in.TopicID)
		if !ok {
			return nil, kafka.ErrUnknownTopicID
		}
		return t, kafka.NoError
	}
	t, ok := img.Topic(in.Topic)
	if !ok {
		return nil, kafka.ErrUnknownTopicOrPartition
	}
	return t, kafka.NoError
}

// producePartition validates and appends one partition's records.
func (b *Broker) producePartition(req *kmsg.ProduceRequest, t *metadata.Topic, in *kmsg.ProduceRequestTopicPartition,
	out *kmsg.ProduceResponseTopicPartition, now time.Time) (*partition.Partition, partition.Ticket) {
	fail := func(code kafka.Error, message string) (*partition.Partition, partition.Ticket) {
		out.ErrorCode = int16(code)
		if message != "" {
			out.ErrorMessage = &message
		}
		return nil, partition.Ticket{}
	}
	if req.Acks < -1 || req.Acks > 1 {
		return fail(kafka.ErrInvalidRequiredAcks, "")
	}
	p, code := b.replica(t, in.Partition)
	if code != kafka.NoError {
		return fail(code, "")
	}
	if isInternal(t.Name) {
		// Kafka lets only its own clients write there; ours come through shards.
		return fail(kafka.ErrInvalidTopicException, "the topic is internal: its records are the broker's own")
	}
	if req.TransactionID == nil && req.Version >= 3 && len(in.Records) >= batch.HeaderLen && batch.View(in.Records).Transactional() {
		return fail(kafka.ErrTransactionalIDAuthorizationFailed, "a transactional batch needs a transactional id in the request")
	}
	rules := p.Settings().Rules
	rules.NowMs, rules.NoZstd = now.UnixMilli(), req.Version < 7
	checked, err := b.validate(req.Version, in.Records, &rules)
	if err == nil && checked.Batch.Transactional() {
		return fail(kafka.ErrTransactionalIDAuthorizationFailed, "transactions are not served yet: send without transactional.id")
	}
	if err != nil {
		code := b.code(err, "produce", "partition", p.TP.String())
		if inv, ok := err.(*batch.Invalid); ok {
			if (inv.Code == kafka.ErrInvalidRecord || inv.Code == kafka.ErrInvalidTimestamp) && oneBatch(in.Records) {
				out.LogStartOffset = int64(logStart(p)) // Kafka tells it with what it finds within a batch
			}
			for _, re := range inv.Records {
				er := kmsg.NewProduceResponseTopicPartitionErrorRecord()
				er.RelativeOffset, er.ErrorMessage = re.Index, ptr(re.Message)
				out.ErrorRecords = append(out.ErrorRecords, er)
			}
			return fail(code, inv.Message)
		}
		return fail(code, "")
	}
	ticket, err := p.Append(now, checked.Batch, req.Acks)
	if err != nil {
		out.LogStartOffset = int64(logStart(p))
		return fail(b.code(err, "produce", "partition", p.TP.String()), "")
	}
	out.BaseOffset, out.LogStartOffset = int64(ticket.Base), int64(ticket.LogStart)
	out.LogAppendTime = -1
	if rules.AppendTime {
		out.LogAppendTime = checked.AppendTimeMs
		if ticket.Duplicate {
			out.LogAppendTime = ticket.AppendTimeMs
		}
	}
	if !ticket.Duplicate {
		p.Meter.Produced(int(checked.Count), len(checked.Batch))
	}
	return p, ticket
}

// oneBatch says whether records are one whole batch of magic 2, whatever is in it.
func oneBatch(records []byte) bool {
	return len(records) >= batch.HeaderLen && batch.View(records).Magic() == 2 &&
		12+int(int32(binary.BigEndian.Uint32(records[8:]))) == len(records)
}

// unpacking is how many batches are unpacked at once, more than the cores can work on
// only cost memory. Each may grow to unpackSmall; what grows further, up to
// max.decompressed.message.bytes, is unpacked anew and one at a time, so that bombs
// wait for each other and nobody for them.
var unpacking = max(runtime.GOMAXPROCS(0), 2)

const unpackSmall = 16 << 20

func (b *Broker) validate(version int16, records []byte, rules *batch.Rules) (batch.Checked, error) {
	check := batch.Validate
	if version < 3 {
		check = batch.UpConvert
	} else if len(records) >= batch.HeaderLen && batch.View(records).Codec() == batch.NoCodec {
		return check(records, rules)
	}
	small := *rules
	small.MaxDecompressed = unpackSmall
	if rules.MaxDecompressed > 0 {
		small.MaxDecompressed = min(unpackSmall, rules.MaxDecompressed)
	}
	b.unpack <- struct{}{}
	checked, err := check(records, &small)
	<-b.unpack
	inv, _ := err.(*batch.Invalid)
	if inv == nil || inv.Code != kafka.ErrMessageTooLarge || rules.MaxBytes > 0 && len(records) > rules.MaxBytes ||
		small.MaxDecompressed == rules.MaxDecompressed {
		return checked, err
	}
	b.unpackLarge <- struct{}{}
	defer func() { <-b.unpackLarge }()
	return check(records, rules)
}

func logStart(p *partition.Partition) kafka.Offset {
	if l := p.Log(); l != nil {
		return l.LogStart()
	}
	return kafka.NoOffset
}

func (w *produceWait) Ready() <-chan struct{} { return w.w.Ready() }
func (w *produceWait) Deadline() time.Time    { return w.deadline }

func (w *produceWait) Cancel() {
	for _, a := range w.waits {
		a.p.Unwatch(w.w)
	}
}

// Response says of each partition whether its records are safe by now. Records
// that are not stay in the log: the client does not know, and sends again.
func (w *produceWait) Response(time.Time) wire.Response {
	w.Cancel()
	for _, a := range w.waits {
		out := &w.resp.Topics[a.topic].Partitions[a.n]
		switch {
		case a.p.HighWatermark() > a.last:
		case a.p.Failed() != nil:
			out.ErrorCode = int16(w.b.code(a.p.Failed(), "produce", "partition", a.p.TP.String()))
		default:
			out.ErrorCode = int16(kafka.ErrRequestTimedOut)
		}
		if out.ErrorCode != 0 {
			out.BaseOffset = -1
		}
	}
	return respond(w.resp)
}
