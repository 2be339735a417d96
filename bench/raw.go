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

// rawLoad is load without a client library, whose own work would be most of what is
// measured: each connection sends prepared requests with one batch each, to the
// partitions in turn, acks=1.
type rawLoad struct {
	clients    int
	size       int   // bytes of a record's value
	records    int64 // in all, a multiple of perBatch
	perBatch   int64
	partitions int
	window     int // requests under way on a connection; 1 is a closed loop
}

// requests are Produces of version 7, one for each partition, and where in the
// answer the error code lies.
func (l rawLoad) requests(topic string) (frames [][]byte, code int) {
	b := batch.NewBuilder(batch.Plain(batch.NoCodec))
	for range l.perBatch {
		b.Add(time.Now().UnixMilli(), nil, make([]byte, l.size))
	}
	for p := range l.partitions {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = int32(p), b.Bytes()
		t := kmsg.NewProduceRequestTopic()
		t.Topic, t.Partitions = topic, []kmsg.ProduceRequestTopicPartition{part}
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis, req.Topics = 1, 30_000, []kmsg.ProduceRequestTopic{t}
		req.SetVersion(7)
		frames = append(frames, kmsg.NewRequestFormatter().AppendRequest(nil, req, 1))
	}
	return frames, 4 + 4 + 2 + len(topic) + 4 + 4
}

func (l rawLoad) run(ctx context.Context, boot, topic string) (produced, error) {
	out := produced{records: l.records, latency: newHistogram()}
	frames, code := l.requests(topic)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := l.settle(ctx, boot, frames, code); err != nil {
		return out, err
	}
	var left atomic.Int64
	left.Store(l.records / l.perBatch)
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for i := range l.clients {
		wg.Go(func() {
			h, err := l.loop(ctx, boot, frames, i, code, &left)
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

// settle sends each request once: a broker may name a leader that does not lead yet.
func (l rawLoad) settle(ctx context.Context, boot string, frames [][]byte, code int) error {
	for i := range frames {
		one := rawLoad{window: 1}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			var left atomic.Int64
			left.Store(1)
			_, err := one.loop(ctx, boot, frames[i:i+1], 0, code, &left)
			if err == nil {
				break
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}

// loop is one connection. Latency counts from the write of a request.
func (l rawLoad) loop(ctx context.Context, boot string, frames [][]byte, at, code int, left *atomic.Int64) (*hdrhistogram.Histogram, error) {
	h := newHistogram()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", boot)
	if err != nil {
		return h, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	in, answer := bufio.NewReader(c), make([]byte, 256)
	sent := make([]time.Time, 0, l.window)
	for {
		for len(sent) < l.window && left.Add(-1) >= 0 {
			sent = append(sent, time.Now())
			if _, err := c.Write(frames[at%len(frames)]); err != nil {
				return h, err
			}
			at++
		}
		if len(sent) == 0 {
			return h, nil
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
		_ = h.RecordValue(max(1, time.Since(sent[0]).Microseconds()))
		sent = append(sent[:0], sent[1:]...)
	}
}
