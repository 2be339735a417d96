//go:build compat

package compat

// Shows: what may be appended and what the broker does to it. Cases B030 to
// B036, B108, B011, B121 to B123, and every Produce version.

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestProduce(t *testing.T) {
	b := sharedBroker(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *rawConn)
	}{
		{"every version", produceAll},
		{"acks", produceAcks},
		{"B011 header fields of the client", clientHeader},
		{"B030 batch length", batchLength},
		{"damaged batches", damagedBatches},
		{"B031 control bit", controlBit},
		{"B032 compacted topic, no key", noKey},
		{"B034 size limit", sizeLimit},
		{"B036 append time", appendTime},
		{"B108 InitProducerId", initProducerID},
		{"B122 resends", resends},
		{"B123 producer epochs", producerEpochs},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, dial(t, b.addr)) })
	}
}

func produceAll(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	id := r.topicID(topic)
	for v := int16(0); v <= r.newest(kmsg.Produce, 13); v++ {
		batch := batchSpec{recs: values(3, 10)}.bytes()
		if v < 3 {
			if onKafka { // B004: lists them, refuses them: FINDINGS.md
				c := dial(t, r.c.RemoteAddr().String())
				c.send(produceRequest(v, 1, topic, oldMessage(0, 0, nil, []byte("old"))))
				if got, err := c.readFrame(); err == nil {
					resp := c.decode(produceRequest(v, 1, topic), got[4:]).(*kmsg.ProduceResponse)
					code(t, fmt.Sprintf("v%d", v), resp.Topics[0].Partitions[0].ErrorCode, 35)
				}
				continue
			}
			magic := int8(0)
			if v == 2 {
				magic = 1
			}
			batch = nil
			for i := range 3 {
				batch = append(batch, oldMessage(magic, int64(1000+i), nil, []byte(fmt.Sprint("old ", v, i)))...)
			}
		}
		want := r.latest(topic)
		req := produceRequest(v, 1, topic, batch, batch)
		req.Topics[0].TopicID = id
		resp := ask[*kmsg.ProduceResponse](r, req)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
			t.Fatalf("v%d: %+v", v, resp)
		}
		if resp.ThrottleMillis != 0 {
			t.Errorf("v%d: throttle %d ms", v, resp.ThrottleMillis)
		}
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != want || v >= 2 && p.LogAppendTime != -1 || v >= 5 && p.LogStartOffset != 0 {
			t.Errorf("v%d: %+v, want base offset %d", v, p, want)
		}
		if got := r.latest(topic); got != want+3 {
			t.Errorf("v%d: end offset %d, want %d", v, got, want+3)
		}
	}
	for _, s := range readBatches(t, r.fetch(topic, 0).RecordBatches) {
		if len(s.records) == 0 {
			t.Errorf("no records in %v", s)
		}
	}
	if v := r.newest(kmsg.Produce, 13); v >= 13 {
		req := produceRequest(13, 1, "", batchSpec{recs: values(1, 1)}.bytes())
		req.Topics[0].TopicID = [16]byte{9}
		code(t, "v13, unknown topic id", ask[*kmsg.ProduceResponse](r, req).Topics[0].Partitions[0].ErrorCode, 100)
	}
	req := produceRequest(8, 1, topic, batchSpec{recs: values(1, 1)}.bytes())
	req.Topics[0].Partitions[0].Partition = 77
	code(t, "unknown partition", ask[*kmsg.ProduceResponse](r, req).Topics[0].Partitions[0].ErrorCode, 3)
}

func produceAcks(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	batch := batchSpec{recs: values(1, 10)}.bytes()
	for _, bad := range []int16{2, -2} {
		code(t, fmt.Sprintf("B035 acks=%d", bad), ask[*kmsg.ProduceResponse](r, produceRequest(8, bad, topic, batch)).Topics[0].Partitions[0].ErrorCode, 21)
	}
	if got := r.latest(topic); got != 0 {
		t.Errorf("B035: end offset %d after refused acks", got)
	}
	for range 3 {
		r.send(produceRequest(8, 0, topic, batch)) // no reply must come: the next frame is the one asked for
	}
	eventually(t, 5*time.Second, "acks=0 appends", func() (string, bool) {
		n := r.latest(topic)
		return fmt.Sprint(n), n == 3
	})
	code(t, "acks=-1", ask[*kmsg.ProduceResponse](r, produceRequest(8, -1, topic, batch)).Topics[0].Partitions[0].ErrorCode, 0)
	// An error with acks=0 has no reply to carry it: the connection is closed.
	zero := dial(t, r.c.RemoteAddr().String())
	zero.send(produceRequest(8, 0, unique(t), batch))
	if got, err := zero.closed(5 * time.Second); err != nil || len(got) > 0 {
		t.Errorf("acks=0 to an unknown topic: %d bytes, %v; want a closed connection", len(got), err)
	}
}

func clientHeader(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	for i, epoch := range []int32{-1, 0, 77} {
		if got := r.put(topic, batchSpec{base: 0, epoch: epoch, recs: values(1, 5)}); got != int64(i) {
			t.Errorf("leader epoch %d: base offset %d, want %d", epoch, got, i)
		}
	}
	current := r.metadata(topic).Topics[0].Partitions[0].LeaderEpoch
	for i := range 3 {
		got := readBatches(t, r.fetch(topic, int64(i)).RecordBatches)
		if len(got) != 3-i || got[0].base != int64(i) || got[0].epoch != current {
			t.Errorf("stored from %d: %v, want epoch %d", i, got, current)
		}
	}
	code(t, "base offset 4711 of the client", r.produce(8, topic, batchSpec{base: 4711, recs: values(2, 5)}.bytes()).ErrorCode, 87)
}

func batchLength(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	for _, n := range []int32{-1, -100, 2147483647, 48, 0} {
		c := dial(t, r.c.RemoteAddr().String())
		bad := batchSpec{recs: values(1, 10), length: ptr(n)}.bytes()
		c.send(produceRequest(7, 1, topic, bad, batchSpec{recs: values(1, 10)}.bytes()))
		b, err := c.readFrame()
		if err != nil {
			t.Logf("batch_length %d: connection closed", n)
			continue
		}
		resp := c.decode(produceRequest(7, 1, topic), b[4:]).(*kmsg.ProduceResponse)
		for _, p := range resp.Topics[0].Partitions {
			if p.Partition == 0 {
				code(t, fmt.Sprintf("batch_length %d", n), p.ErrorCode, 2, 87, onlyKafka(-1))
			} else {
				// Kafka fails the whole request with the bad one's error.
				code(t, "the other partition", p.ErrorCode, 0, onlyKafka(2), onlyKafka(-1))
			}
		}
	}
	if got := r.latest(topic); got != 0 {
		t.Errorf("%d records appended", got)
	}
}

func damagedBatches(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	good := batchSpec{recs: values(2, 10)}.bytes()
	magic := bytes.Clone(good)
	magic[16] = 3
	f := func(what string, batch []byte, want ...int16) {
		t.Helper()
		c := dial(t, r.c.RemoteAddr().String())
		c.timeout = 3 * time.Second
		c.send(produceRequest(8, 1, topic, batch))
		b, err := c.readFrame()
		if ne, ok := err.(net.Error); ok && ne.Timeout() && !onKafka { // Kafka forgets to answer null records
			t.Errorf("%s: neither a reply nor a closed connection", what)
			return
		}
		if err != nil {
			t.Logf("%s: connection closed", what)
			return
		}
		resp := c.decode(produceRequest(8, 1, topic), b[4:]).(*kmsg.ProduceResponse)
		code(t, what, resp.Topics[0].Partitions[0].ErrorCode, want...)
	}
	f("wrong CRC", batchSpec{recs: values(2, 10), badCRC: true}.bytes(), 2)
	f("unknown magic", magic, 2, 87, 35)
	f("cut short", good[:len(good)-5], 2, 87)
	f("cut in the header", good[:40], 2, 87)
	f("two batches", append(bytes.Clone(good), good...), 87, 42)
	f("no batch", []byte{}, 87, 42, 2)
	f("null records", nil, 87, 42, 2)
	f("more records promised than there", batchSpec{recs: values(2, 10), count: ptr(int32(3))}.bytes(), 87, 2)
	f("fewer records promised than there", batchSpec{recs: values(2, 10), count: ptr(int32(1))}.bytes(), 87, 2)
	f("negative count", batchSpec{recs: values(2, 10), count: ptr(int32(-1))}.bytes(), 87, 2)
	f("no records", batchSpec{}.bytes(), 87, 2)
	f("gzip bit on plain records", func() []byte { s := batchSpec{recs: values(2, 10), attrs: 1}; return s.bytes() }(), 2, 87, onlyKafka(-1))
	f("codec 7", batchSpec{recs: values(2, 10), attrs: 7}.bytes(), 2, 87, 76, onlyKafka(-1))
	if got := r.latest(topic); got != 0 {
		t.Errorf("%d records appended", got)
	}
	f("a good one after all that", good, 0)
}

func controlBit(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	pid, epoch := r.producerID()
	code(t, "control bit", r.produce(8, topic, batchSpec{attrs: 0x20, recs: values(1, 6)}.bytes()).ErrorCode, 87)
	code(t, "control bit, producer id", r.produce(8, topic, batchSpec{attrs: 0x20, idem: true, pid: pid, pepoch: epoch, recs: values(1, 6)}.bytes()).ErrorCode, 87)
	code(t, "control and transaction bits", r.produce(8, topic, batchSpec{attrs: 0x30, idem: true, pid: pid, pepoch: epoch, recs: values(1, 6)}.bytes()).ErrorCode, 87, 53)
	if got := r.latest(topic); got != 0 {
		t.Errorf("%d records appended", got)
	}
}

func noKey(t *testing.T, r *rawConn) {
	topic := r.topic(1, "cleanup.policy=compact")
	batch := batchSpec{recs: []rec{{key: []byte("a"), value: []byte("1")}, {value: []byte("2")}, {key: []byte("c"), value: []byte("3")}}}
	for _, s := range []batchSpec{batch, {codec: 1, recs: batch.recs}} {
		for _, v := range []int16{3, 8} {
			p := r.produce(v, topic, s.bytes())
			code(t, fmt.Sprintf("v%d, codec %d", v, s.codec), p.ErrorCode, 87)
			if v >= 8 && (len(p.ErrorRecords) != 1 || p.ErrorRecords[0].RelativeOffset != 1 || p.ErrorMessage == nil) {
				t.Errorf("v8: record errors %+v, message %s; want index 1 and a message", p.ErrorRecords, deref(p.ErrorMessage))
			}
		}
	}
	if got := r.latest(topic); got != 0 {
		t.Errorf("%d records appended", got)
	}
}

func sizeLimit(t *testing.T, r *rawConn) {
	topic := r.topic(1, "max.message.bytes=1000")
	code(t, "one record of 900", r.produce(8, topic, batchSpec{recs: values(1, 900)}.bytes()).ErrorCode, 0)
	code(t, "3 x 400", r.produce(8, topic, batchSpec{recs: values(3, 400)}.bytes()).ErrorCode, 10)
	zeros := batchSpec{codec: 4, recs: []rec{{value: make([]byte, 50_000)}}}
	code(t, "50 KB of zeros, zstd", r.produce(8, topic, zeros.bytes()).ErrorCode, 0)
	plain := r.topic(1, "max.message.bytes=1000", "compression.type=uncompressed")
	code(t, "the same, stored uncompressed", r.produce(8, plain, zeros.bytes()).ErrorCode, 10)
	exact := r.topic(1, "max.message.bytes=161")
	if n := len(batchSpec{recs: values(1, 91)}.bytes()); n != 161 {
		t.Fatalf("own batch is %d bytes", n)
	}
	code(t, "exactly the limit", r.produce(8, exact, batchSpec{recs: values(1, 91)}.bytes()).ErrorCode, 0)
	code(t, "one byte more", r.produce(8, exact, batchSpec{recs: values(1, 92)}.bytes()).ErrorCode, 10)
	code(t, "broker default, 2 MB", r.produce(8, r.topic(1), batchSpec{recs: values(1, 2<<20)}.bytes()).ErrorCode, 10)
	code(t, "topic above the broker, 2 MB", r.produce(8, r.topic(1, "max.message.bytes=4000000"), batchSpec{recs: values(1, 2<<20)}.bytes()).ErrorCode, 0)
	gz := r.topic(1, "compression.type=gzip")
	r.put(gz, batchSpec{recs: values(5, 200)})
	if got := readBatches(t, r.fetch(gz, 0).RecordBatches); len(got) != 1 || got[0].codec() != 1 || len(got[0].records) != 5 || !bytes.Equal(got[0].records[4].value, values(5, 200)[4].value) {
		t.Errorf("compression.type=gzip stored %v", got)
	}
}

func appendTime(t *testing.T, r *rawConn) {
	at := r.topic(1, "message.timestamp.type=LogAppendTime")
	ct := r.topic(1, "retention.ms=-1")
	for _, codec := range []int16{0, 1} {
		old := batchSpec{codec: codec, recs: []rec{{value: []byte("x"), ts: 5}, {value: []byte("y"), ts: 5}}}
		from := time.Now().UnixMilli() - 1
		p := r.produce(8, at, old.bytes())
		until := time.Now().UnixMilli() + 1
		if p.ErrorCode != 0 || p.LogAppendTime < from || p.LogAppendTime > until {
			t.Errorf("append time topic: %+v, want a time in [%d, %d]", p, from, until)
		}
		got := readBatches(t, r.fetch(at, p.BaseOffset).RecordBatches)
		if len(got) != 1 || got[0].attrs&8 == 0 || got[0].top != p.LogAppendTime || got[0].codec() != codec {
			t.Errorf("append time topic stored %v, max timestamp %d, want type bit and %d", got, got[0].top, p.LogAppendTime)
		}
		p = r.produce(8, ct, old.bytes())
		if p.ErrorCode != 0 || p.LogAppendTime != -1 {
			t.Errorf("create time topic: %+v, want -1", p)
		}
		got = readBatches(t, r.fetch(ct, p.BaseOffset).RecordBatches)
		if len(got) != 1 || got[0].attrs&8 != 0 || got[0].top != 5 || got[0].records[1].ts != 5 {
			t.Errorf("create time topic stored %v, timestamps %d %d", got, got[0].top, got[0].records[1].ts)
		}
	}
	limit := r.topic(1, "message.timestamp.after.max.ms=60000", "message.timestamp.before.max.ms=60000")
	now := time.Now().UnixMilli()
	f := func(what string, ts int64, want int16) {
		t.Helper()
		p := r.produce(8, limit, batchSpec{recs: []rec{{value: []byte("a"), ts: now}, {value: []byte("b"), ts: ts}}}.bytes())
		code(t, what, p.ErrorCode, want)
		if want == 32 && (len(p.ErrorRecords) != 1 || p.ErrorRecords[0].RelativeOffset != 1) {
			t.Errorf("%s: record errors %+v, want index 1", what, p.ErrorRecords)
		}
	}
	f("an hour ahead", now+3_600_000, 32)
	f("an hour ago", now-3_600_000, 32)
	f("now", now, 0)
}

func (r *rawConn) producerID() (int64, int16) {
	r.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = 3
	req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 60000, -1, -1
	var resp *kmsg.InitProducerIDResponse
	eventually(r.t, 20*time.Second, "InitProducerId", func() (string, bool) {
		resp = ask[*kmsg.InitProducerIDResponse](r, req)
		return fmt.Sprintf("error %d", resp.ErrorCode), resp.ErrorCode == 0
	})
	return resp.ProducerID, resp.ProducerEpoch
}

func initProducerID(t *testing.T, r *rawConn) {
	p1, e1 := r.producerID()
	p2, e2 := r.producerID()
	if p1 == p2 || e1 != 0 || e2 != 0 || p1 < 0 {
		t.Errorf("two producers got (%d, %d) and (%d, %d)", p1, e1, p2, e2)
	}
	for _, v := range r.upTo(kmsg.InitProducerID, 0, 5) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version = v
		req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 60000, -1, -1
		code(t, fmt.Sprintf("v%d", v), ask[*kmsg.InitProducerIDResponse](r, req).ErrorCode, 0)
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID = 2, ptr("")
	req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 60000, -1, -1
	code(t, "empty transactional id", ask[*kmsg.InitProducerIDResponse](r, req).ErrorCode, 42)
}

func resends(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	pid, epoch := r.producerID()
	send := func(seq int32, n int) kmsg.ProduceResponseTopicPartition {
		return r.produce(8, topic, batchSpec{idem: true, pid: pid, pepoch: epoch, seq: seq, recs: values(n, 10)}.bytes())
	}
	f := func(what string, seq int32, want int16, offset int64) {
		t.Helper()
		p := send(seq, 1)
		if code(t, what, p.ErrorCode, want) && want == 0 && p.BaseOffset != offset {
			t.Errorf("%s: offset %d, want %d", what, p.BaseOffset, offset)
		}
	}
	for i := range 5 {
		f("first", int32(i), 0, int64(i))
	}
	for _, i := range []int32{0, 2, 4} {
		f(fmt.Sprintf("resend of %d", i), i, 0, int64(i))
	}
	f("a gap", 7, 45, 0)
	if got := r.latest(topic); got != 5 {
		t.Errorf("end offset %d, want 5", got)
	}
	for i := 5; i < 10; i++ {
		f("next", int32(i), 0, int64(i))
	}
	p := send(0, 1)
	code(t, "resend from before the window", p.ErrorCode, 45, 46)
	if got := r.latest(topic); got != 10 {
		t.Errorf("end offset %d, want 10", got)
	}
	if p := send(10, 5); p.ErrorCode != 0 || p.BaseOffset != 10 {
		t.Errorf("batch of five: %+v", p)
	}
	f("overlap with the last batch", 12, 45, 0)
	f("after the batch of five", 15, 0, 15)
}

func producerEpochs(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	pid, _ := r.producerID()
	f := func(what string, epoch int16, seq int32, want int16) {
		t.Helper()
		p := r.produce(8, topic, batchSpec{idem: true, pid: pid, pepoch: epoch, seq: seq, recs: values(1, 10)}.bytes())
		code(t, what, p.ErrorCode, want)
	}
	f("epoch 0", 0, 0, 0)
	f("new epoch from sequence 5", 1, 5, 45)
	f("new epoch from sequence 0", 1, 0, 0)
	f("old epoch", 0, 1, 47)
	f("new epoch goes on", 1, 1, 0)
}
