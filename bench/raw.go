package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
)

// rawLoad is a closed loop without a client library, whose own work would be most
// of what small requests cost: each connection sends one prepared request with one
// record to partition 0, acks=1, and the next when it has the answer.
type rawLoad struct {
	clients int
	size    int // bytes of a record's value
	records int64
}

// request is a Produce of version 7, and where in its answer the error code lies.
func (l rawLoad) request(topic string) (frame []byte, code int) {
	b := batch.NewBuilder(batch.Plain(batch.NoCodec))
	b.Add(time.Now().UnixMilli(), nil, make([]byte, l.size))
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = b.Bytes()
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.ProduceRequestTopicPartition{part}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = 1, 30_000, []kmsg.ProduceRequestTopic{t}
	req.SetVersion(7)
	return kmsg.NewRequestFormatter().AppendRequest(nil, req, 1), 4 + 4 + 2 + len(topic) + 4 + 4
}

func (l rawLoad) run(ctx context.Context, boot, topic string) (produced, error) {
	out := produced{records: l.records, latency: newHistogram()}
	frame, code := l.request(topic)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var left atomic.Int64
	left.Store(l.records)
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for range l.clients {
		wg.Go(func() {
			h, err := rawLoop(ctx, boot, frame, code, &left)
			if err != nil {
				stop(err)
			}
			mu.Lock()
			defer mu.Unlock()
			out.latency.Merge(h)
		})
	}
	wg.Wait()
	out.took = time.Since(began)
	return out, context.Cause(ctx)
}

func rawLoop(ctx context.Context, boot string, frame []byte, code int, left *atomic.Int64) (*hdrhistogram.Histogram, error) {
	h := newHistogram()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", boot)
	if err != nil {
		return h, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	in, answer := bufio.NewReader(c), make([]byte, 256)
	for left.Add(-1) >= 0 {
		sent := time.Now()
		if _, err := c.Write(frame); err != nil {
			return h, err
		}
		if _, err := io.ReadFull(in, answer[:4]); err != nil {
			return h, err
		}
		n := int(binary.BigEndian.Uint32(answer))
		if n < code+2 || n > len(answer) {
			return h, fmt.Errorf("an answer of %d bytes to a produce of one partition", n)
		}
		if _, err := io.ReadFull(in, answer[:n]); err != nil {
			return h, err
		}
		if e := int16(binary.BigEndian.Uint16(answer[code:])); e != 0 {
			return h, fmt.Errorf("produce refused with error code %d", e)
		}
		_ = h.RecordValue(max(1, time.Since(sent).Microseconds()))
	}
	return h, nil
}
