//go:build compat

package compat

// Shows: under load with retention, compaction, rebalances, topics that come and
// go, new producers and connections, and restarts of both kinds, nothing grows:
// not memory, goroutines, descriptors, files or bytes on disk. WEIR_SOAK says for
// how long (30m at night; 40s if not set). The first fifth is three short lives
// of the process; the rest is one life, of which the medians of the second and
// the last quarter are compared.

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// sample is what the broker holds at one moment.
type sample struct{ residentKiB, goroutines, descriptors, files, diskKiB int }

var soakValues = []struct {
	name        string
	of          func(s sample) int
	factor      float64 // of growth that is no trend
	slack, most int     // added to it; and an absolute bound
}{
	{"resident KiB", func(s sample) int { return s.residentKiB }, 1.15, 24 << 10, 400 << 10},
	{"goroutines", func(s sample) int { return s.goroutines }, 1.1, 25, 500},
	{"descriptors", func(s sample) int { return s.descriptors }, 1.1, 25, 600},
	{"files", func(s sample) int { return s.files }, 1.1, 60, 1000},
	{"KiB on disk", func(s sample) int { return s.diskKiB }, 1.2, 8 << 10, 200 << 10},
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

func (b *broker) sample(t *testing.T, http string) sample {
	s := sample{residentKiB: b.residentKiB(t), descriptors: b.openFiles(t)}
	if m := goroutinesLine.FindStringSubmatch(metricsPage(http)); m != nil {
		s.goroutines, _ = strconv.Atoi(m[1])
	}
	_ = filepath.WalkDir(b.logs, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				s.files++
				if st, ok := info.Sys().(*syscall.Stat_t); ok {
					s.diskKiB += int(st.Blocks / 2)
				}
			}
		}
		return nil
	})
	return s
}

func metricsPage(addr string) string {
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var page [1 << 20]byte
	n := 0
	for n < len(page) {
		m, err := resp.Body.Read(page[n:])
		if n += m; err != nil {
			break
		}
	}
	return string(page[:n])
}

// load is what goes on during the soak. Its counts only grow.
type load struct {
	t        *testing.T
	addr     string
	ctx      context.Context
	wg       sync.WaitGroup
	written  atomic.Int64
	read     atomic.Int64
	joins    atomic.Int64
	topics   atomic.Int64
	strange  atomic.Int64
	produces atomic.Int64 // producers that came and went
}

func (l *load) client(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(l.addr), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RecordDeliveryTimeout(2 * time.Minute), kgo.ProducerBatchCompression(kgo.NoCompression())}, opts...)...)
	if err != nil {
		l.t.Fatal(err)
	}
	return cl
}

func (l *load) over() bool { return l.ctx.Err() != nil }

// write sends records to a topic by one idempotent producer after another.
func (l *load) write(topic string, keys, size, perSecond int) {
	for !l.over() {
		cl := l.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(5*time.Millisecond))
		l.produces.Add(1)
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end) && !l.over(); time.Sleep(20 * time.Millisecond) {
			for i := range perSecond / 50 {
				key := fmt.Appendf(nil, "key-%d", (int(l.written.Load())+i)%keys)
				cl.Produce(context.Background(), &kgo.Record{Key: key, Value: make([]byte, size)}, func(_ *kgo.Record, err error) {
					if err != nil {
						l.t.Errorf("a record for %s was given up: %v", topic, err)
						return
					}
					l.written.Add(1)
				})
			}
		}
		if err := cl.Flush(context.Background()); err != nil {
			l.t.Error(err)
		}
		cl.Close()
	}
}

// consume reads as a member of a group, which it leaves after a while (0: at the
// end) to join anew.
func (l *load) consume(group string, stay time.Duration, topics ...string) {
	for !l.over() {
		cl := l.client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.FetchMaxWait(200*time.Millisecond),
			kgo.AutoCommitInterval(300*time.Millisecond), kgo.SessionTimeout(6*time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
		l.joins.Add(1)
		for end := time.Now().Add(max(stay, time.Second)); (stay == 0 || time.Now().Before(end)) && !l.over(); {
			ctx, cancel := context.WithTimeout(l.ctx, time.Second)
			l.read.Add(int64(cl.PollFetches(ctx).NumRecords()))
			cancel()
		}
		cl.Close()
	}
}

// topicsComeAndGo makes a topic, writes to it and deletes it, over and over.
func (l *load) topicsComeAndGo() {
	for i := 0; !l.over(); i++ {
		cl := l.client()
		adm, name := kadm.NewClient(cl), fmt.Sprintf("passing-%d", i)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		_, err := adm.CreateTopic(ctx, 3, 1, nil, name)
		if err == nil {
			err = cl.ProduceSync(ctx, &kgo.Record{Topic: name, Value: make([]byte, 1000)}).FirstErr()
		}
		if _, derr := adm.DeleteTopics(ctx, name); err == nil && derr == nil {
			l.topics.Add(1)
		}
		cancel()
		cl.Close()
		time.Sleep(200 * time.Millisecond)
	}
}

// strangers connect, send something or nothing, and go in different ways.
func (l *load) strangers() {
	for i := 0; !l.over(); i++ {
		c, err := net.DialTimeout("tcp", l.addr, time.Second)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		l.strange.Add(1)
		switch i % 4 {
		case 0:
			_, _ = c.Write([]byte{6, 64, 0, 0, 1, 2, 3})
		case 1:
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		case 2:
			_ = c.(*net.TCPConn).SetLinger(0)
		}
		time.Sleep(10 * time.Millisecond)
		_ = c.Close()
	}
}

func TestSoak(t *testing.T) {
	if onKafka {
		t.Skip("it is Weir that may not grow")
	}
	length := 40 * time.Second
	if s := os.Getenv("WEIR_SOAK"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("WEIR_SOAK: %v: give a time such as 30m", err)
		}
	}
	web := "127.0.0.1:" + strconv.Itoa(freePort(t))
	b := startBroker(t, "weir.http.listener="+web, "log.retention.check.interval.ms=500", "log.initial.task.delay.ms=500",
		"log.cleaner.backoff.ms=500", "log.segment.delete.delay.ms=500", "log.cleaner.delete.retention.ms=1000",
		"producer.id.expiration.ms=5000", "producer.id.expiration.check.interval.ms=1000", "offsets.topic.num.partitions=4",
		"offsets.topic.segment.bytes=1048576")
	r := dial(t, b.addr)
	deleted := r.topic(4, "segment.bytes=1048576", "retention.bytes=3145728", "file.delete.delay.ms=500")
	compacted := r.topic(2, "cleanup.policy=compact", "segment.bytes=1048576", "min.cleanable.dirty.ratio=0.1", "file.delete.delay.ms=500")
	timed := r.topic(1, "segment.ms=1000", "retention.ms=3000", "file.delete.delay.ms=500")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &load{t: t, addr: b.addr, ctx: ctx}
	for range 2 {
		l.wg.Go(func() { l.write(deleted, 1000, 1000, 500) })
	}
	l.wg.Go(func() { l.write(compacted, 500, 500, 500) })
	l.wg.Go(func() { l.write(timed, 10, 100, 100) })
	l.wg.Go(func() { l.consume("steady", 0, deleted, timed) })
	l.wg.Go(func() { l.consume("steady", 0, deleted, timed) })
	l.wg.Go(func() { l.consume("steady", 3*time.Second, deleted, timed) })
	l.wg.Go(func() { l.consume("other", 2*time.Second, compacted) })
	l.wg.Go(l.topicsComeAndGo)
	l.wg.Go(l.strangers)

	for life := range 3 {
		time.Sleep(length / 15)
		if life%2 == 0 {
			b.kill(t)
		} else {
			b.stop(t)
		}
		b.start(t)
	}
	before := []int64{l.written.Load(), l.read.Load(), l.joins.Load(), l.topics.Load(), l.produces.Load()}
	var samples []sample
	for end := time.Now().Add(length * 4 / 5); time.Now().Before(end); {
		time.Sleep(length / 100)
		samples = append(samples, b.sample(t, web))
	}
	for i, what := range []string{"records written", "records read", "members that joined", "topics that came and went", "producers that came and went"} {
		now := []*atomic.Int64{&l.written, &l.read, &l.joins, &l.topics, &l.produces}[i].Load()
		t.Logf("%d %s, %d before the last life", now-before[i], what, before[i])
		if now-before[i] < 3 {
			t.Errorf("%d %s: the load has stopped", now-before[i], what)
		}
	}
	t.Logf("%d strangers", l.strange.Load())
	cancel()
	l.wg.Wait()

	quarter := len(samples) / 4
	for _, v := range soakValues {
		median := func(s []sample) int {
			var all []int
			for _, x := range s {
				all = append(all, v.of(x))
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		first, last := median(samples[quarter:2*quarter]), median(samples[3*quarter:])
		t.Logf("%-13s %d, at the end %d", v.name+":", first, last)
		if last > int(float64(first)*v.factor)+v.slack || last > v.most {
			t.Errorf("%s: %d in the second quarter, %d in the last; want no growth, and at most %d", v.name, first, last, v.most)
		}
		if first == 0 {
			t.Errorf("%s: not measured", v.name)
		}
	}
}
