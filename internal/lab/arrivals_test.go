package lab

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Shows: end-to-end latency is that of a known path within 1 %, from the due
// time and from the send; other people's records are left out; lost ones are
// counted; and reading is measured between its first and last record.

// path is a target that acknowledges at once and hands each record to a reader after delay.
type path struct {
	delay  time.Duration
	stall  func(since time.Duration) (until time.Duration)
	lose   func(n int) bool
	start  time.Time
	mu     sync.Mutex
	n      int
	arrive []arrival
}

type arrival struct {
	at    time.Duration
	value []byte
}

func (p *path) Produce(_ context.Context, r *kgo.Record, done func(*kgo.Record, error)) {
	p.mu.Lock()
	p.n++
	at := time.Since(p.start) + p.delay
	if p.stall != nil {
		if until := p.stall(at); until > 0 {
			at = until
		}
	}
	if p.lose == nil || !p.lose(p.n) {
		p.arrive = append(p.arrive, arrival{at, append([]byte(nil), r.Value...)})
	}
	p.mu.Unlock()
	done(r, nil)
}

func fetches(values ...[]byte) kgo.Fetches {
	var recs []*kgo.Record
	for _, v := range values {
		recs = append(recs, &kgo.Record{Value: v})
	}
	return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "t", Partitions: []kgo.FetchPartition{{Records: recs}}}}}}
}

func (p *path) PollRecords(ctx context.Context, _ int) kgo.Fetches {
	for ctx.Err() == nil {
		p.mu.Lock()
		if len(p.arrive) > 0 && time.Since(p.start) >= p.arrive[0].at {
			v := p.arrive[0].value
			p.arrive = p.arrive[1:]
			p.mu.Unlock()
			return fetches(v)
		}
		wait := 10 * time.Millisecond
		if len(p.arrive) > 0 {
			wait = p.arrive[0].at - time.Since(p.start)
		}
		p.mu.Unlock()
		select {
		case <-time.After(min(wait, 10*time.Millisecond)):
		case <-ctx.Done():
		}
	}
	return nil
}

func probe(t *testing.T, p *path, l Load) *Probed {
	t.Helper()
	l = load(t, l)
	var out *Probed
	synctest.Test(t, func(t *testing.T) {
		p.start = time.Now()
		var err error
		if out, err = Probe(t.Context(), l, []Sender{p}, []Poller{p}, 77, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
	if out == nil {
		t.FailNow()
	}
	return out
}

func TestEndToEndLatency(t *testing.T) {
	p := probe(t, &path{delay: 37 * time.Millisecond}, Load{Arrivals: constant(100), Duration: 20 * time.Second})
	within(t, "p50", float64(*p.All.EndToEnd.P50Us), 37_000, 0.01)
	within(t, "p99", float64(*p.All.EndToEnd.P99Us), 37_000, 0.01)
	within(t, "p99 after the warm-up", float64(*p.Measured.EndToEnd.P99Us), 37_000, 0.01)
	if p.Arrived != 2000 || p.Lost != 0 {
		t.Errorf("%d arrived, %d lost", p.Arrived, p.Lost)
	}
	// The stall of a second in ten, seen from the due time.
	p = probe(t, &path{delay: time.Millisecond, stall: stallAt5}, Load{Arrivals: constant(500), Duration: 10 * time.Second})
	within(t, "p99 with a stall", float64(*p.All.EndToEnd.P99Us), 900_000, 0.01)
	// Every hundredth record never arrives.
	p = probe(t, &path{lose: func(n int) bool { return n%100 == 0 }}, Load{Arrivals: constant(100), Duration: 10 * time.Second})
	if p.Arrived != 990 || p.Lost != 10 || len(p.Notes) == 0 {
		t.Errorf("%d arrived, %d lost, notes %q", p.Arrived, p.Lost, p.Notes)
	}
}

func TestStampsOfOtherRuns(t *testing.T) {
	a := newArrivals(1)
	a.begin(time.Now())
	mine, other := &Stamp{1}, &Stamp{2}
	a.take(fetches(mine.write(nil, 5, 6), other.write(nil, 5, 6), []byte("hello"), mine.write(make([]byte, 100), 1, 2)))
	if a.seen() != 2 {
		t.Errorf("%d of two records were seen", a.seen())
	}
	due, sent, ok := mine.read(mine.write([]byte("x"), 123456789, 223456789))
	if !ok || due != 123456789 || sent != 223456789 {
		t.Error(due, sent, ok)
	}
}

// steady gives 100 records of 10 bytes each 100 ms, from after until end.
type steady struct {
	start      time.Time
	after, end time.Duration
}

func (s *steady) PollRecords(ctx context.Context, _ int) kgo.Fetches {
	wait := 100 * time.Millisecond
	if since := time.Since(s.start); since < s.after {
		wait = s.after - since
	} else if since >= s.end {
		wait = time.Hour
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil
	}
	values := make([][]byte, 100)
	for i := range values {
		values[i] = make([]byte, 10)
	}
	return fetches(values...)
}

func TestConsume(t *testing.T) {
	read := func(s *steady, r Reading, stopAfter time.Duration) (c *Consumed, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s.start = time.Now()
			ctx, stop := context.WithTimeout(t.Context(), stopAfter)
			defer stop()
			var err error
			if c, err = Consume(ctx, r, []Poller{s}); err != nil {
				t.Error(err)
			}
			took = time.Since(s.start)
		})
		return c, took
	}
	// Three seconds of joining are no part of the rate.
	c, took := read(&steady{after: 3 * time.Second, end: time.Hour}, Reading{Duration: 30 * time.Second}, time.Hour)
	within(t, "rate", c.Rate, 1000, 0.01)
	within(t, "measured rate", c.Measured.Rate(), 1000, 0.01)
	within(t, "first after", c.FirstAfterS, 3, 0.01)
	if took != 30*time.Second || c.Interrupted || c.WentIdle {
		t.Errorf("%v, %+v", took, c)
	}
	c, took = read(&steady{end: time.Hour}, Reading{Records: 5000}, time.Hour)
	if c.Records != 5000 || took > 6*time.Second {
		t.Errorf("%d records in %v", c.Records, took)
	}
	// The topic has no more.
	c, took = read(&steady{end: 10 * time.Second}, Reading{Records: 1 << 40, Idle: 2 * time.Second}, time.Hour)
	if !c.WentIdle || c.Records < 9900 || took > 14*time.Second || len(c.Notes) == 0 {
		t.Errorf("%d records in %v, idle %v, %q", c.Records, took, c.WentIdle, c.Notes)
	}
	c, took = read(&steady{end: time.Hour}, Reading{Duration: time.Hour}, 8*time.Second)
	if !c.Interrupted || c.Records < 7800 || took != 8*time.Second {
		t.Errorf("%d records in %v, interrupted %v", c.Records, took, c.Interrupted)
	}
	c, _ = read(&steady{after: time.Hour}, Reading{Duration: time.Minute, Idle: 5 * time.Second}, time.Hour)
	if c.Records != 0 || !c.WentIdle || c.Rate != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := Consume(t.Context(), Reading{}, []Poller{&steady{}}); err == nil {
		t.Error("a reading without an end")
	}
}

func TestObserverReadsRetries(t *testing.T) {
	o := &Observer{}
	o.Log(kgo.LogLevelDebug, "produced", "broker", "1", "to", "t[0{retrying@-1,1(NOT_LEADER_FOR_PARTITION: x)}, 1{5=>6}, 2{retrying@4,9(NOT_ENOUGH_REPLICAS: y)}]")
	o.Log(kgo.LogLevelDebug, "produced", "to", "t[0{retrying@-1,1(NOT_LEADER_FOR_PARTITION: x)}]")
	o.OnProduceBatchWritten(kgo.BrokerMetadata{}, "t", 0, kgo.ProduceBatchMetrics{NumRecords: 6, UncompressedBytes: 10, CompressedBytes: 5})
	o.OnProduceBatchWritten(kgo.BrokerMetadata{}, "t", 0, kgo.ProduceBatchMetrics{NumRecords: 3, UncompressedBytes: 10, CompressedBytes: 5})
	w := o.Wire()
	if w.Retries["NOT_LEADER_FOR_PARTITION"] != 2 || w.Retries["NOT_ENOUGH_REPLICAS"] != 1 || w.RecordsBatch != 4.5 || w.Packed != 10 {
		t.Errorf("%+v", w)
	}
}
