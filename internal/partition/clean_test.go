package partition

// Compaction through the Manager: what survives, and that a shard loads over the gaps.

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
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
	for m.cleanOne(time.Now()) {
	}
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
