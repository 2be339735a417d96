//go:build compat

package compat

// Shows: 10,000 partitions are made, filled, found again after kill -9, watched and
// stopped within generous bounds of time, memory and descriptors. The figures that
// count are in docs/performance.md.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestTenThousandPartitions(t *testing.T) {
	if onKafka {
		t.Skip("Kafka takes 22 s, 1,250 MiB, and 70 s after the kill")
	}
	const topics, each = 100, 100
	b := startBroker(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprint("wide-", i)
	}
	within := func(what string, begin time.Time, bound time.Duration) {
		t.Helper()
		took := time.Since(begin)
		t.Logf("%s: %v, %d MiB resident, %d files open", what, took.Round(time.Millisecond), b.residentKiB(t)>>10, b.openFiles(t))
		if took > bound {
			t.Errorf("%s took %v, want at most %v", what, took, bound)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeTopics(names...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()

	begin := time.Now()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 60_000
	for _, name := range names {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, each, 1
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range resp.Topics {
		code(t, "create "+topic.Topic, topic.ErrorCode, 0)
	}
	within("create", begin, 20*time.Second)
	if n := b.openFiles(t); n > 200 {
		t.Errorf("%d files open for partitions without records", n)
	}

	begin = time.Now()
	var wg sync.WaitGroup
	for i := range topics * each {
		wg.Add(1)
		cl.Produce(ctx, &kgo.Record{Topic: names[i%topics], Partition: int32(i / topics), Value: []byte("v")}, func(_ *kgo.Record, err error) {
			defer wg.Done()
			if err != nil {
				t.Error("produce:", err)
			}
		})
	}
	wg.Wait()
	within("one record each", begin, time.Minute)

	b.kill(t)
	begin = time.Now()
	b.start(t)
	within("start after kill -9", begin, 20*time.Second)
	if kib := b.residentKiB(t); kib > 300<<10 {
		t.Errorf("%d KiB resident", kib)
	}
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, names...)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err == nil && o.Offset == 1 {
			found++
		}
	})
	if found != topics*each {
		t.Errorf("%d partitions hold their record after the kill, want %d", found, topics*each)
	}

	begin = time.Now()
	got := 0
	for got < topics*each && ctx.Err() == nil {
		got += cl.PollFetches(ctx).NumRecords()
	}
	within("consume from all", begin, time.Minute)
	if got != topics*each {
		t.Errorf("consumed %d records", got)
	}
	begin = time.Now()
	b.signal(t, 15, 2*time.Minute)
	if took := time.Since(begin); took > time.Minute || b.err != nil {
		t.Errorf("stop took %v: %v", took, b.err)
	}
	begin = time.Now()
	b.start(t)
	within("start after a stop", begin, 20*time.Second)

	// kafka-dump-log reads what brokers leave, at the suite's end: a hundred folders of
	// these are enough.
	b.stop(t)
	for _, name := range names[1:] {
		for p := range each {
			os.RemoveAll(filepath.Join(b.logs, fmt.Sprint(name, "-", p)))
		}
	}
}
