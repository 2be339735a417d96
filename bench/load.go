package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// producing is a load of records without keys, from clients that share it.
type producing struct {
	clients    int
	size       int   // bytes of a record's value
	records    int64 // in all
	batch      int32 // most bytes of a batch
	linger     time.Duration
	acks       kgo.Acks
	perSecond  float64 // in all; 0: as fast as they go
	closedLoop bool    // one record in flight per client
}

// produced is what a load saw. latency is in microseconds, from the time a
// record was due to its acknowledgement.
type produced struct {
	records int64
	took    time.Duration
	latency *hdrhistogram.Histogram
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 120_000_000, 3) }

// slot is one record that is used again when it was acknowledged.
type slot struct {
	rec  kgo.Record
	due  time.Time
	done func(*kgo.Record, error)
}

// run sends the load to topic and returns when every record is acknowledged.
// Any failed record fails the run.
func (p producing) run(ctx context.Context, boot, topic string) (produced, error) {
	out := produced{latency: newHistogram()}
	var mu sync.Mutex
	var firstErr error
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(p.records)
	began := time.Now()
	for range p.clients {
		cl, err := kgo.NewClient(kgo.SeedBrokers(boot), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(p.acks),
			kgo.DisableIdempotentWrite(), kgo.ProducerLinger(p.linger), kgo.ProducerBatchMaxBytes(p.batch),
			kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(p.window()),
			kgo.MaxProduceRequestsInflightPerBroker(5), kgo.RecordPartitioner(kgo.StickyPartitioner()))
		if err != nil {
			return out, err
		}
		defer cl.Close()
		wg.Go(func() {
			h, err := p.client(ctx, cl, &left, began)
			mu.Lock()
			defer mu.Unlock()
			out.latency.Merge(h)
			if firstErr == nil {
				firstErr = err
			}
		})
	}
	wg.Wait()
	out.took = time.Since(began)
	out.records = p.records
	return out, firstErr
}

// window is how many records a client has in flight.
func (p producing) window() int {
	if p.closedLoop {
		return 1
	}
	return max(64, 32<<20/(p.clients*(p.size+64)))
}

func (p producing) client(ctx context.Context, cl *kgo.Client, left *atomic.Int64, began time.Time) (*hdrhistogram.Histogram, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h := newHistogram() // promises of one client are called one at a time
	free := make(chan *slot, p.window())
	for range p.window() {
		s := &slot{}
		s.rec.Value = make([]byte, p.size)
		for i := range s.rec.Value {
			s.rec.Value[i] = byte('A' + rand.N(26))
		}
		value := s.rec.Value
		s.done = func(_ *kgo.Record, err error) {
			if err != nil {
				stop(err)
			}
			_ = h.RecordValue(max(1, time.Since(s.due).Microseconds()))
			s.rec = kgo.Record{Value: value}
			free <- s
		}
		free <- s
	}
	every := time.Duration(0)
	if p.perSecond > 0 {
		every = time.Duration(float64(time.Second) * float64(p.clients) / p.perSecond)
	}
	due := began
	now := time.Now()
	for n := 0; left.Add(-1) >= 0; n++ {
		if every > 0 {
			due = due.Add(every)
			if now = time.Now(); due.After(now) {
				time.Sleep(due.Sub(now))
			}
		} else {
			if n%16 == 0 || p.closedLoop {
				now = time.Now()
			}
			due = now
		}
		select {
		case s := <-free:
			s.due = due
			cl.Produce(ctx, &s.rec, s.done)
		case <-ctx.Done():
			return h, context.Cause(ctx)
		}
	}
	for range p.window() {
		select {
		case <-free:
		case <-ctx.Done():
			return h, context.Cause(ctx)
		}
	}
	return h, context.Cause(ctx)
}

// endToEnd measures from a record's due time to its arrival at a consumer, in
// one process and so by one clock. perSecond 0: the next leaves when the last arrived.
func endToEnd(ctx context.Context, boot, topic string, records, size int, perSecond float64, acks kgo.Acks) (*hdrhistogram.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	reader, err := kgo.NewClient(kgo.SeedBrokers(boot), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	writer, err := kgo.NewClient(kgo.SeedBrokers(boot), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(acks),
		kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	h := newHistogram()
	warm := records / 10
	arrived := make(chan struct{}, records+warm)
	failed := make(chan error, 2)
	began := time.Now()
	go func() {
		for seen := 0; seen < records+warm; {
			fs := reader.PollFetches(ctx)
			if err := fs.Err0(); err != nil {
				failed <- fmt.Errorf("consuming: %w", err)
				return
			}
			now := time.Since(began)
			fs.EachRecord(func(r *kgo.Record) {
				if seen++; seen > warm {
					_ = h.RecordValue(max(1, (now - time.Duration(binary.BigEndian.Uint64(r.Value))).Microseconds()))
				}
				arrived <- struct{}{}
			})
		}
	}()
	due := began
	for range records + warm {
		value := make([]byte, size)
		if perSecond > 0 {
			due = due.Add(time.Duration(float64(time.Second) / perSecond))
			time.Sleep(time.Until(due))
		} else {
			due = time.Now()
		}
		binary.BigEndian.PutUint64(value, uint64(due.Sub(began)))
		writer.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- fmt.Errorf("producing: %w", err):
				default:
				}
			}
		})
		if perSecond == 0 {
			select {
			case <-arrived:
			case err := <-failed:
				return nil, err
			}
		}
	}
	if perSecond > 0 {
		for range records + warm {
			select {
			case <-arrived:
			case err := <-failed:
				return nil, err
			}
		}
	}
	return h, nil
}

// fanOut lets readers consume what writers produce, all at once: each reader
// reads one partition from its start. It returns the seconds until every reader
// has everything of its partition.
func fanOut(ctx context.Context, boot, topic string, load producing, readers, partitions int) (time.Duration, int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, fmt.Errorf("readers did not get all records within 5 minutes"))
	defer cancel()
	began := time.Now()
	var delivered atomic.Int64
	want := load.records * int64(readers/partitions)
	all := make(chan struct{}, 1)
	var wg sync.WaitGroup
	for i := range readers {
		cl, err := kgo.NewClient(kgo.SeedBrokers(boot), kgo.FetchMaxWait(500*time.Millisecond),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {int32(i % partitions): kgo.NewOffset().AtStart()}}))
		if err != nil {
			return 0, 0, err
		}
		wg.Go(func() {
			defer cl.Close()
			for {
				fs := cl.PollFetches(ctx)
				if fs.IsClientClosed() || ctx.Err() != nil {
					return
				}
				if delivered.Add(int64(fs.NumRecords())) >= want {
					select {
					case all <- struct{}{}:
					default:
					}
					return
				}
			}
		})
	}
	_, err := load.run(ctx, boot, topic)
	if err == nil {
		select {
		case <-all:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	took := time.Since(began)
	cancel()
	wg.Wait()
	return took, delivered.Load(), err
}
