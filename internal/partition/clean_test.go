package partition

// Compaction through the Manager: what survives, and that a shard loads over the gaps.

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metrics"
)

func keyed(key, value string) batch.View {
	b := batch.NewBuilder(batch.BuilderOptions{NowMs: time.Now().UnixMilli(), ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1})
	b.Add(time.Now().UnixMilli(), []byte(key), []byte(value))
	return b.Bytes()
}

func TestCompaction(t *testing.T) {
	mem := disk.NewMem(1)
	s := plain()
	s.Log.Compact, s.Log.Delete, s.Log.SegmentBytes, s.Log.MinDirtyRatio, s.Log.MaxCompactionLagMs = true, false, 2000, 0.1, 1<<62
	m := open(t, mem, s, topic("a", topicA, 1))
	p := m.Get(topicA, 0)
	const n = 300
	for i := range n {
		if _, err := p.Append(time.Now(), keyed(fmt.Sprintf("k%d", i%7), fmt.Sprint(i)), -1); err != nil {
			t.Fatal(err)
		}
	}
	before := p.log.Size()
	cleanAll(m)
	if p.log.Size() >= before/2 {
		t.Errorf("%d bytes before, %d after", before, p.log.Size())
	}
	check := func(p *Partition) {
		t.Helper()
		last := make(map[string]string)
		count := 0
		if err := p.Scan(func(b batch.View) error {
			return b.Each(func(r *batch.Record) error {
				last[string(r.Key)] = string(r.Value)
				count++
				return nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		if len(last) != 7 || last["k5"] != "299" || last["k6"] != "293" || count >= n {
			t.Errorf("%d records left, newest values %v", count, last)
		}
		if p.log.LogStart() != 0 || p.log.End() != n {
			t.Errorf("log %d..%d, want 0..%d: compaction moves neither end", p.log.LogStart(), p.log.End(), n)
		}
	}
	check(p)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = open(t, mem, s, topic("a", topicA, 1))
	defer m.Close()
	check(m.Get(topicA, 0))
	if m.Get(topicA, 0).log.Cleaned() == 0 {
		t.Error("the next life begins compaction from the start")
	}
}

// cleanAll compacts until nothing is due.
func cleanAll(m *Manager) {
	if m.o.Cleaner == nil {
		m.o.Cleaner = func() CleanerSettings { return CleanerSettings{Threads: 1, BytesPerSecond: math.MaxFloat64} }
	}
	c := m.newCleaner()
	for c.begin(time.Now(), m.o.Cleaner()) {
		c.finished(<-c.done)
	}
}

// TestCleanerPace: reading and writing keep to the rate over all threads, a new rate
// holds at once, and a stop does not wait.
func TestCleanerPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rate atomic.Int64
		rate.Store(1000)
		stop := make(chan struct{})
		p := &pacer{rate: func() float64 { return float64(rate.Load()) }, stop: stop}
		begin := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if err := p.wait(250); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if d := time.Since(begin).Seconds(); d < 9.7 || d > 10.5 {
			t.Errorf("10,000 bytes at 1,000 a second took %v s", d)
		}
		time.Sleep(time.Second) // nothing is owed
		begin = time.Now()
		rate.Store(1)
		p.wait(1000) // owed from now on
		wg.Go(func() { p.wait(1) })
		time.Sleep(time.Second)
		rate.Store(math.MaxInt64)
		wg.Wait()
		if d := time.Since(begin); d > 1500*time.Millisecond+time.Second {
			t.Errorf("a raised rate was seen after %v", d)
		}
		time.Sleep(time.Second)
		rate.Store(1)
		p.wait(1000)
		wg.Go(func() {
			if err := p.wait(1); err != errStopped {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		close(stop)
		wg.Wait()
	})
}

// TestCleanerThreads: as many runs at once as there are threads, each on a partition
// of its own, and one that fails keeps nobody else waiting.
func TestCleanerThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := disk.NewFaulty(disk.NewMem(1))
		s := plain()
		s.Log.Compact, s.Log.Delete, s.Log.SegmentBytes, s.Log.MinDirtyRatio, s.Log.MaxCompactionLagMs = true, false, 2000, 0.1, 1<<62
		m := open(t, f, s, topic("a", topicA, 5))
		var threads atomic.Int64
		threads.Store(2)
		m.o.InitialDelay = time.Second
		m.o.CheckpointEvery, m.o.StartCheckpointEvery, m.o.RetentionEvery, m.o.ExpireEvery = time.Hour, time.Hour, time.Hour, time.Hour
		m.o.Cleaner = func() CleanerSettings {
			return CleanerSettings{Threads: int(threads.Load()), Backoff: time.Second, BytesPerSecond: math.MaxFloat64}
		}
		for n := range int32(5) {
			p := m.Get(topicA, n)
			for i := range 100 {
				if _, err := p.Append(time.Now(), keyed(fmt.Sprintf("k%d", i%7), fmt.Sprint(i)), -1); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.Inject(disk.Fault{Op: disk.OpRead, Path: "a-3/", Err: syscall.EIO})
		var mu sync.Mutex
		at, most := 0, 0
		f.Inject(disk.Fault{Op: disk.OpOpen, Path: ".log.cleaned", Wait: func() {
			mu.Lock()
			at++
			most = max(most, at)
			mu.Unlock()
			time.Sleep(time.Minute) // every run takes a minute
			mu.Lock()
			at--
			mu.Unlock()
		}})
		m.Start()
		time.Sleep(30 * time.Second)
		mu.Lock()
		if at != 2 {
			t.Errorf("%d runs at once, want 2", at)
		}
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		threads.Store(4)
		time.Sleep(10 * time.Minute)
		if most > 4 {
			t.Errorf("%d runs at once", most)
		}
		for n := range int32(5) {
			p := m.Get(topicA, n)
			if cleaned := p.log.Cleaned() > 0; cleaned == (n == 3) {
				t.Errorf("partition %d: cleaned %v", n, cleaned)
			}
			if p.Failed() != nil {
				t.Error(p.Failed())
			}
		}
		f.Clear()
		time.Sleep(20 * time.Minute)
		if m.Get(topicA, 3).log.Cleaned() == 0 {
			t.Error("a partition that failed once was given up for good")
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCleanSoon: a log whose dirty part is to stay small is compacted when a segment
// is full, not when the cleaner's rest is over.
func TestCleanSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plain()
		s.Log.Compact, s.Log.Delete, s.Log.MinDirtyRatio, s.Log.MaxCompactionLagMs, s.Log.RollDirtyBytes = true, false, 0.1, 1<<62, 2000
		m := open(t, disk.NewMem(1), s, topic("a", topicA, 1))
		m.o.InitialDelay, m.o.CheckpointEvery, m.o.StartCheckpointEvery, m.o.RetentionEvery, m.o.ExpireEvery = time.Hour, time.Hour, time.Hour, time.Hour, time.Hour
		m.o.Cleaner = func() CleanerSettings {
			return CleanerSettings{Threads: 1, Backoff: time.Hour, BytesPerSecond: math.MaxFloat64}
		}
		m.Start()
		p := m.Get(topicA, 0)
		for i := range 2000 {
			if _, err := p.Append(time.Now(), keyed(fmt.Sprintf("k%d", i%7), fmt.Sprint(i)), -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if size := p.log.Size(); size > 6000 {
			t.Errorf("%d bytes after 20 s, of which 7 records count", size)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCleanerEnds: a batch that lost its tombstone keeps no cleaner busy, over a
// restart neither.
func TestCleanerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disk.NewMem(1)
		s := plain()
		s.Log.Compact, s.Log.Delete, s.Log.SegmentMs, s.Log.MaxCompactionLagMs, s.Log.DeleteRetentionMs = true, false, 1000, 1<<62, 1000
		mixed := func() batch.View {
			b := batch.NewBuilder(batch.BuilderOptions{ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1})
			b.Add(time.Now().UnixMilli(), []byte("k"), []byte("v"))
			b.Add(time.Now().UnixMilli(), []byte("x"), nil)
			return b.Bytes()
		}
		runs := func(m *Manager) (n int) {
			m.o.Cleaner = func() CleanerSettings { return CleanerSettings{Threads: 1, BytesPerSecond: math.MaxFloat64} }
			c := m.newCleaner()
			for ; n < 20 && c.begin(time.Now(), m.o.Cleaner()); n++ {
				c.finished(<-c.done)
			}
			return n
		}
		m := open(t, mem, s, topic("a", topicA, 1))
		for range 2 {
			if _, err := m.Get(topicA, 0).Append(time.Now(), mixed(), -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second) // the second closes the first one's segment
		}
		for i := range 4 {
			if n := runs(m); n > 2 {
				t.Errorf("round %d: %d runs and no end", i, n)
			}
			if n := runs(m); n > 0 {
				t.Errorf("round %d: %d runs at once after", i, n)
			}
			time.Sleep(time.Minute)
			if i == 2 {
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				m = open(t, mem, s, topic("a", topicA, 1))
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUncleanable: a damaged batch that stops a partition's compaction is seen in the
// metrics until it is whole again.
func TestUncleanable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disk.NewMem(1)
		s := plain()
		s.Log.Compact, s.Log.Delete, s.Log.SegmentBytes, s.Log.MinDirtyRatio, s.Log.MaxCompactionLagMs = true, false, 2000, 0.1, 1<<62
		m := open(t, mem, s, topic("a", topicA, 2))
		reg := prometheus.NewRegistry()
		m.o.Metrics = metrics.New(reg)
		m.o.Cleaner = func() CleanerSettings { return CleanerSettings{Threads: 1, BytesPerSecond: math.MaxFloat64} }
		for n := range int32(2) {
			for i := range 300 {
				if _, err := m.Get(topicA, n).Append(time.Now(), keyed(fmt.Sprintf("k%d", i%7), fmt.Sprint(i)), -1); err != nil {
					t.Fatal(err)
				}
			}
		}
		flip := func() {
			const name = "/data/a-1/00000000000000000000.log"
			b, err := mem.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := mem.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte{b[len(b)-2] ^ 1}, int64(len(b)-2)); err != nil {
				t.Fatal(err)
			}
		}
		c := m.newCleaner()
		shown := func() map[string]float64 {
			for c.begin(time.Now(), m.o.Cleaner()) {
				c.finished(<-c.done)
			}
			fams, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			out := make(map[string]float64)
			for _, f := range fams {
				if name, ok := strings.CutPrefix(f.GetName(), "kafka_log_logcleaner"); ok && len(f.Metric) == 1 {
					out[name] = f.Metric[0].GetGauge().GetValue()
				}
			}
			return out
		}
		flip()
		got := shown()
		if got["manager_uncleanable_partitions_count"] != 1 || got["manager_uncleanable_bytes"] < 10_000 || got["_cleaner_recopy_percent"] > 50 ||
			got["manager_max_dirty_percent"] != 0 { // what cannot be cleaned is not looked at
			t.Errorf("damaged: %v", got)
		}
		flip()
		time.Sleep(time.Hour)
		if got = shown(); got["manager_uncleanable_partitions_count"] != 0 || got["manager_uncleanable_bytes"] != 0 {
			t.Errorf("whole again: %v", got)
		}
		time.Sleep(time.Minute)
		if ms := shown(); ms["manager_time_since_last_run_ms"] != 0 {
			t.Errorf("just looked: %v", ms)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
