package weir_test

// Shows: what a broker as a whole makes of its disks. Acknowledged means durable where
// flush.messages=1 says so, on a disk that forgets everything unsynced at a moment of
// its choice; one log dir that fails leaves the others serving; a slow disk delays and
// loses nothing. Field cases B095 (committed offsets after a kill), B136 (full disk).

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	kmsgs "github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
)

// TestAcknowledgedSurvivesPowerCut: idempotent producers write numbers and a group
// commits, all with flush.messages=1, while clones are taken of what a power cut would
// leave. Each clone must hold every acknowledged number once and in order, and the
// committed offset, and take more.
func TestAcknowledgedSurvivesPowerCut(t *testing.T) {
	t.Parallel()
	mem := disk.NewMem(uint64(time.Now().UnixNano()))
	if err := mem.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	opts := weir.Options{DataDir: "/data", Overrides: append(quick[:len(quick):len(quick)], "log.flush.interval.messages=1", "log.segment.bytes=1048576", "log.cleaner.backoff.ms=50")}
	s := start(t, opts.OnDisk(mem))
	const partitions = 3
	c := client(t, s, kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(20))
	a := kadm.NewClient(c)
	if _, err := a.CreateTopic(t.Context(), partitions, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	var acked [partitions]atomic.Int64
	var committed atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for p := range partitions {
		wg.Go(func() {
			for n := int64(0); ctx.Err() == nil; n++ {
				c.Produce(ctx, &kgo.Record{Partition: int32(p), Value: append(strconv.AppendInt(nil, n, 10), make([]byte, 1+n%1000)...)}, func(_ *kgo.Record, err error) {
					if err == nil {
						acked[p].Store(n + 1)
					} else if ctx.Err() == nil {
						t.Error(err)
					}
				})
			}
		})
	}
	wg.Go(func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			os := kadm.Offsets{}
			os.Add(kadm.Offset{Topic: "t", Partition: 0, At: n, LeaderEpoch: -1})
			if r, err := a.CommitOffsets(ctx, "g", os); err == nil && r.Ok() {
				committed.Store(n)
			}
		}
	})
	type cut struct {
		fs        *disk.Mem
		acked     [partitions]int64
		committed int64
		how       disk.Crash
	}
	var cuts []cut
	for i := range 12 {
		time.Sleep(time.Duration(20+i*5%30) * time.Millisecond)
		k := cut{committed: committed.Load(), how: []disk.Crash{disk.CrashLost, disk.CrashTorn, disk.CrashAny}[i%3]}
		for p := range partitions {
			k.acked[p] = acked[p].Load() // before the cut
		}
		k.fs = mem.CrashCloneAs(k.how)
		cuts = append(cuts, k)
	}
	cancel()
	wg.Wait()
	c.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i, k := range cuts {
		s, err := weir.Start(t.Context(), opts.OnDisk(k.fs))
		if err != nil {
			t.Fatalf("cut %d (%d): %v", i, k.how, err)
		}
		c := client(t, s)
		n := &node{t, s, "/data", c, kadm.NewClient(c)}
		for p := range int32(partitions) {
			got := readNumbers(n, "t", p)
			for at, v := range got {
				if v != at {
					t.Fatalf("cut %d (%d): partition %d holds %d at %d", i, k.how, p, v, at)
				}
			}
			if int64(len(got)) < k.acked[p] {
				t.Errorf("cut %d (%d): partition %d holds %d records, %d were acknowledged", i, k.how, p, len(got), k.acked[p])
			}
			total += k.acked[p]
		}
		if k.committed > 0 {
			o, err := n.a.FetchOffsets(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			if at, _ := o.Lookup("t", 0); at.At < k.committed {
				t.Errorf("cut %d (%d): offset %d is committed, %d was acknowledged", i, k.how, at.At, k.committed)
			}
		}
		if got := n.send("t", records(10, batch.NoCodec, 0)); got != "NONE" {
			t.Errorf("cut %d: the broker does not take records: %s", i, got)
		}
		c.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if total == 0 {
		t.Error("nothing was acknowledged before any cut")
	}
	t.Logf("%d cuts, %d acknowledged records looked for", len(cuts), total)
}

// readNumbers reads a partition from start to end.
func readNumbers(n *node, topic string, p int32) (out []int) {
	n.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(n.s.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().AtStart()}}))
	if err != nil {
		n.Fatal(err)
	}
	defer c.Close()
	ends, err := n.a.ListEndOffsets(n.Context(), topic)
	if err != nil {
		n.Fatal(err)
	}
	end, _ := ends.Lookup(topic, p)
	ctx, cancel := context.WithTimeout(n.Context(), 30*time.Second)
	defer cancel()
	for next := int64(0); next < end.Offset; {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			n.Fatalf("%s-%d at %d of %d: %v", topic, p, next, end.Offset, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			text := r.Value
			for i, b := range text {
				if b == 0 {
					text = text[:i]
					break
				}
			}
			v, _ := strconv.Atoi(string(text))
			out = append(out, v)
			next = r.Offset + 1
		})
	}
	return out
}

// TestLogDirFails: a log dir whose fdatasync fails is offline. Its partitions say so,
// those of the other go on, new topics avoid it, and a failed sync is not tried again.
func TestLogDirFails(t *testing.T) {
	t.Parallel()
	mem := disk.NewMem(1)
	for _, d := range []string{"/one", "/two"} {
		if err := mem.MkdirAll(d); err != nil {
			t.Fatal(err)
		}
	}
	f := disk.NewFaulty(mem)
	opts := weir.Options{DataDir: "/one", Overrides: append(quick[:len(quick):len(quick)], "log.dirs=/one,/two", "metadata.log.dir=/one")}
	s := start(t, opts.OnDisk(f))
	c := client(t, s, kgo.MaxVersions(kversion.V3_8_0())) // topics by name
	n := &node{t, s, "/one", c, kadm.NewClient(c)}
	one := "1"
	n.create("t", 4, map[string]*string{"flush.messages": &one})
	dirOf := func(topic string) map[int32]string {
		t.Helper()
		d, err := n.a.DescribeAllLogDirs(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[int32]string{}
		d.Each(func(l kadm.DescribedLogDir) {
			l.Topics.Each(func(p kadm.DescribedLogDirPartition) {
				if p.Topic == topic {
					out[p.Partition] = l.Dir
				}
			})
		})
		return out
	}
	dirs := dirOf("t")
	if len(dirs) != 4 {
		t.Fatalf("partitions lie in %v", dirs)
	}
	send := func(topic string, p int32) string {
		r := kmsgs.NewPtrProduceRequest()
		r.Acks, r.TimeoutMillis = -1, 2000
		rt := kmsgs.NewProduceRequestTopic()
		rt.Topic = topic
		rp := kmsgs.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p, records(10, batch.NoCodec, 0)
		rt.Partitions = append(rt.Partitions, rp)
		r.Topics = append(r.Topics, rt)
		resp, err := n.c.Broker(1).Request(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return code(resp.(*kmsgs.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	}
	for p := range int32(4) {
		if got := send("t", p); got != "NONE" {
			t.Fatalf("partition %d: %s", p, got)
		}
	}
	hits := f.Inject(disk.Fault{Op: disk.OpSync, Path: "/two/t-", Err: syscall.EIO, Times: 1})
	for p, d := range dirs {
		want := "NONE"
		if d == "/two" {
			want = "KAFKA_STORAGE_ERROR"
		}
		for range 2 { // the second time the disk would sync: the dir stays offline
			if got := send("t", p); got != want {
				t.Errorf("partition %d in %s: %s, want %s", p, d, got, want)
			}
		}
	}
	if hits(false) != 1 {
		t.Errorf("%d failed syncs", hits(false))
	}
	m, err := n.a.Metadata(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for p, d := range dirs {
		got := m.Topics["t"].Partitions[p]
		if offline := d == "/two"; (got.Leader == -1) != offline || (len(got.OfflineReplicas) == 1) != offline || (got.Err != nil) != offline {
			t.Errorf("metadata of partition %d in %s: %+v", p, d, got)
		}
	}
	all, err := n.a.DescribeAllLogDirs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all.Each(func(l kadm.DescribedLogDir) {
		if (l.Err != nil) != (l.Dir == "/two") {
			t.Errorf("log dir %s: %v", l.Dir, l.Err)
		}
	})
	if got := s.FailedDirs(); len(got) != 1 || got[0] != "/two" {
		t.Errorf("failed dirs: %v", got)
	}
	n.create("later", 6, nil)
	for p, d := range dirOf("later") {
		if d != "/one" {
			t.Errorf("later-%d was made in %s", p, d)
		}
		if got := send("later", p); got != "NONE" {
			t.Errorf("later-%d: %s", p, got)
		}
	}
	if got := len(dirOf("later")); got != 6 {
		t.Errorf("%d of 6 partitions of a new topic", got)
	}
	// After a restart on a mended disk all is back.
	f.Clear()
	c.Close()
	_ = s.Close()
	s = start(t, opts.OnDisk(f))
	c = client(t, s, kgo.MaxVersions(kversion.V3_8_0()))
	n = &node{t, s, "/one", c, kadm.NewClient(c)}
	for p := range int32(4) {
		if got := send("t", p); got != "NONE" {
			t.Errorf("after a restart, partition %d: %s", p, got)
		}
	}
}

// TestSlowDisk: while a sync hangs, the other partitions and topics answer, and a
// produce that waits for it ends with its own timeout, not with the disk.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	mem := disk.NewMem(1)
	if err := mem.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	f := disk.NewFaulty(mem)
	s := start(t, weir.Options{DataDir: "/data", Overrides: quick}.OnDisk(f))
	c := client(t, s)
	n := &node{t, s, "/data", c, kadm.NewClient(c)}
	one := "1"
	n.create("slow", 1, map[string]*string{"flush.messages": &one})
	n.create("quick", 1, map[string]*string{"flush.messages": &one})
	release := make(chan struct{})
	f.Inject(disk.Fault{Op: disk.OpSync, Path: "/data/slow-0/", Wait: func() { <-release }})
	r := kmsgs.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = -1, 300
	rt := kmsgs.NewProduceRequestTopic()
	rt.Topic = "slow"
	rp := kmsgs.NewProduceRequestTopicPartition()
	rp.Records = records(10, batch.NoCodec, 0)
	rt.Partitions = append(rt.Partitions, rp)
	r.Topics = append(r.Topics, rt)
	other := client(t, s, kgo.MaxVersions(kversion.V3_8_0())) // a connection of its own: answers come in order
	begun := time.Now()
	resp, err := other.Broker(1).Request(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := code(resp.(*kmsgs.ProduceResponse).Topics[0].Partitions[0].ErrorCode); got != "REQUEST_TIMED_OUT" || time.Since(begun) > 5*time.Second {
		t.Errorf("a produce to a hanging disk: %s after %v", got, time.Since(begun))
	}
	if got := n.send("quick", records(10, batch.NoCodec, 0)); got != "NONE" {
		t.Errorf("beside a hanging sync: %s", got)
	}
	if _, err := n.a.CreateTopic(t.Context(), 1, 1, nil, "made"); err != nil {
		t.Errorf("beside a hanging sync: %v", err)
	}
	close(release)
	if got := eventually("1", func() string { return fmt.Sprint(len(readNumbers(n, "slow", 0))) }); got != "1" {
		t.Errorf("%s records after the disk came back", got)
	}
}
