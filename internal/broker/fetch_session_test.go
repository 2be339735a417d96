package broker

// A session's fetch against partitions of a Manager: it looks at what changed and
// nothing else, and its client learns the same as from a look at everything. B046,
// B048: every partition gets its turn, changes alone are told.

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

type oneImage struct{ img *metadata.Image }

func (q *oneImage) Image() *metadata.Image { return q.img }
func (*oneImage) Submit(any, func(any))    { panic("BUG: not in these tests") }

// fetching is a broker with one topic "t" and a client with a session.
type fetching struct {
	testing.TB
	b    *Broker
	m    *partition.Manager
	q    *oneImage
	n    int
	id   int32 // the session's
	next int32
}

func newFetching(tb testing.TB, n int) *fetching {
	static, _, err := config.Load(config.Source{})
	if err != nil {
		tb.Fatal(err)
	}
	s := &partition.Settings{Log: commitlog.DefaultOptions(), Rules: batch.NewRules(0), MinISR: 1, FlushMessages: math.MaxInt64, FlushMs: math.MaxInt64}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	m, err := partition.OpenManager(partition.Options{FS: disk.NewMem(1), Dirs: []string{"/data"}, Self: 1, Log: log,
		Settings: func(*metadata.Image, string) *partition.Settings { return s }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { m.Close() })
	t := &metadata.TopicRecord{Name: "t", ID: kafka.TopicID{7}}
	for range n {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: 1, Replicas: []kafka.BrokerID{1}, ISR: []kafka.BrokerID{1}})
	}
	d := metadata.NewImage("c").Edit()
	d.Apply(t)
	img, delta := d.Done(1)
	m.Apply(img, delta)
	q := &oneImage{img}
	return &fetching{TB: tb, b: New(Options{Self: 1, Quorum: q, Partitions: m, Config: static.View, Log: log}), m: m, q: q, n: n}
}

func (f *fetching) part(n int32) *partition.Partition { return f.m.Get(kafka.TopicID{7}, n) }

func (f *fetching) append(n int32) { f.appendSize(n, 5) }

func (f *fetching) appendSize(n int32, size int) {
	b := batch.NewBuilder(batch.BuilderOptions{NowMs: 1, ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1})
	b.Add(1, nil, make([]byte, size))
	if _, err := f.part(n).Append(time.Now(), b.Bytes(), -1); err != nil {
		f.Fatal(err)
	}
}

// request makes the session's next; all names every partition at offset 0.
func (f *fetching) request(all bool, asks ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MinBytes, req.MaxBytes, req.ReplicaID = 13, 1, 1<<20, -1
	req.SessionID, req.SessionEpoch = f.id, f.next
	if all {
		for n := range f.n {
			asks = append(asks, ask(int32(n), 0))
		}
	}
	if len(asks) > 0 {
		t := kmsg.NewFetchRequestTopic()
		t.TopicID, t.Partitions = kafka.TopicID{7}, asks
		req.Topics = append(req.Topics, t)
	}
	f.next++
	return req
}

func ask(n int32, offset int64) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = n, offset, 1<<20
	return p
}

// answer decodes a response that is ready.
func (f *fetching) answer(r wire.Response) map[int32]kmsg.FetchResponseTopicPartition {
	f.Helper()
	if r.Raw == nil {
		f.Fatalf("no answer: %+v", r)
	}
	var body []byte
	for _, p := range r.Raw.Parts {
		if p.Bytes != nil {
			body = append(body, p.Bytes...)
			continue
		}
		b, err := p.Region.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		body = append(body, b...)
	}
	r.Raw.Release()
	resp := &kmsg.FetchResponse{Version: 13}
	if err := resp.ReadFrom(body); err != nil || resp.ErrorCode != 0 {
		f.Fatal(err, resp.ErrorCode)
	}
	f.id = resp.SessionID
	out := make(map[int32]kmsg.FetchResponseTopicPartition)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out[p.Partition] = p
		}
	}
	return out
}

func (f *fetching) fetch(req *kmsg.FetchRequest) map[int32]kmsg.FetchResponseTopicPartition {
	f.Helper()
	return f.answer(f.b.fetch(nil, req))
}

func (f *fetching) hot() int { return len(f.b.sessions.byID[f.id].hot) }

func TestSessionLooksAtWhatChanged(t *testing.T) {
	f := newFetching(t, 20)
	if got := f.fetch(f.request(true)); len(got) != 20 || f.hot() != 0 {
		t.Fatalf("first: %d told, %d to be looked at again", len(got), f.hot())
	}
	if got := f.fetch(f.request(false)); len(got) != 0 {
		t.Fatalf("nothing changed, told %v", got)
	}
	f.append(3)
	f.append(5)
	for range 2 { // as often as the client asks without moving on
		if got := f.fetch(f.request(false)); len(got) != 2 || len(got[3].RecordBatches) == 0 || len(got[5].RecordBatches) == 0 || f.hot() != 2 {
			t.Fatalf("told %d, %d hot", len(got), f.hot())
		}
	}
	if got := f.fetch(f.request(false, ask(3, 1))); len(got) != 1 || got[5].HighWatermark != 1 || f.hot() != 1 {
		t.Fatalf("one moved on: told %v, %d hot", got, f.hot())
	}
	if got := f.fetch(f.request(false, ask(5, 1))); len(got) != 0 || f.hot() != 0 {
		t.Fatalf("both moved on: told %v, %d hot", got, f.hot())
	}
	// A log start that moves is told, and an offset that it passed is an error until
	// the client moves on.
	f.append(5)
	if _, err := f.part(3).DeleteRecords(1); err != nil {
		t.Fatal(err)
	}
	if got := f.fetch(f.request(false)); got[3].LogStartOffset != 1 || len(got) != 2 {
		t.Fatalf("after DeleteRecords: %v", got)
	}
	if got := f.fetch(f.request(false, ask(5, 2), ask(3, 0))); got[3].ErrorCode != int16(kafka.ErrOffsetOutOfRange) || f.hot() != 1 {
		t.Fatalf("below the log start: %v, %d hot", got, f.hot())
	}
	if got := f.fetch(f.request(false)); got[3].ErrorCode != int16(kafka.ErrOffsetOutOfRange) {
		t.Fatalf("told once only: %v", got)
	}
	if got := f.fetch(f.request(false, ask(3, 1))); got[3].ErrorCode != 0 || len(got) != 1 || f.hot() != 0 {
		t.Fatalf("mended: %v", got)
	}
}

func TestSessionWaitsForChanges(t *testing.T) {
	f := newFetching(t, 5)
	f.fetch(f.request(true))
	wait := func() *fetch {
		req := f.request(false)
		req.MaxWaitMillis = 60_000
		r := f.b.fetch(nil, req)
		if r.Pending == nil {
			t.Fatalf("did not wait: %+v", r)
		}
		return r.Pending.(*fetch)
	}
	fired := func(p *fetch) bool {
		select {
		case <-p.Ready():
			return true
		default:
			return false
		}
	}
	p := wait()
	if fired(p) {
		t.Fatal("woken by nothing")
	}
	f.append(2)
	if !fired(p) {
		t.Fatal("not woken by a record")
	}
	if got := f.answer(p.Response(time.Now())); len(got) != 1 || len(got[2].RecordBatches) == 0 {
		t.Fatal(got)
	}
	f.fetch(f.request(false, ask(2, 1)))
	p = wait()
	d := f.q.img.Edit()
	d.Apply(&metadata.TopicRemovedRecord{ID: kafka.TopicID{7}})
	img, delta := d.Done(2)
	f.m.Apply(img, delta)
	f.q.img = img
	if !fired(p) {
		t.Fatal("not woken by the topic's end")
	}
	if got := f.answer(p.Response(time.Now())); len(got) != 5 || got[0].ErrorCode != int16(kafka.ErrUnknownTopicID) {
		t.Fatalf("%v", got)
	}
}

// An answer holds few files, however many partitions have news, and the others come
// with the next.
func TestAnswerHoldsFewFiles(t *testing.T) {
	const n = 200
	f := newFetching(t, n)
	look := func(req *kmsg.FetchRequest) (files, told int) {
		req.MaxBytes = 50 << 20
		r := f.b.fetch(nil, req)
		for _, p := range r.Raw.Parts {
			if p.Region.Len > 0 && p.Region.File.Name() != "memory" {
				files++
			}

		}
		for _, p := range f.answer(r) {
			if len(p.RecordBatches) > 0 {
				told++
			}
		}
		return files, told
	}
	for i := range int32(n) {
		f.append(i)
	}
	if files, told := look(f.request(true)); files != answerFiles || told != n {
		t.Errorf("small records: %d files, %d partitions told", files, told)
	}
	for i := range int32(n) {
		f.appendSize(i, 100<<10)
	}
	seen := 0
	var asks []kmsg.FetchRequestTopicPartition
	for i := range int32(n) {
		asks = append(asks, ask(i, 1))
	}
	for round := 0; seen < n && round < 10; round++ {
		req := f.request(false, asks...)
		req.MaxBytes = 50 << 20
		asks = nil
		r := f.b.fetch(nil, req)
		held := 0
		for _, p := range r.Raw.Parts {
			if p.Region.Len > 0 && p.Region.File.Name() != "memory" {
				held++
			}
		}
		if held > answerFiles {
			t.Fatalf("round %d: %d files held", round, held)
		}
		for i, p := range f.answer(r) {
			if len(p.RecordBatches) > 0 {
				seen++
				asks = append(asks, ask(i, 2))
			}
		}
	}
	if seen != n {
		t.Errorf("large records of %d of %d partitions", seen, n)
	}
}

// A client that keeps up learns of every record, whatever the order of appends,
// looks, waits, forgetting and small limits.
func TestSessionMissesNothing(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			f := newFetching(t, 8)
			var have, ends [8]int64
			in := [8]bool{}
			for n := range in {
				in[n] = true
			}
			req := f.request(true)
			for step := range 400 {
				if step > 0 {
					var asks []kmsg.FetchRequestTopicPartition
					for n := range in {
						if in[n] {
							asks = append(asks, ask(int32(n), have[n])) // those that did not move change nothing
						}
					}
					rng.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
					if rng.IntN(3) > 0 {
						kept := asks[:0]
						for _, a := range asks { // as clients do: what moved
							if have[a.Partition] > 0 && rng.IntN(2) == 0 {
								kept = append(kept, a)
							}
						}
						asks = kept
					}
					req = f.request(false, asks...)
					if n := rng.IntN(8); rng.IntN(10) == 0 && in[n] && step < 350 {
						forget := kmsg.NewFetchRequestForgottenTopic()
						forget.TopicID, forget.Partitions = kafka.TopicID{7}, []int32{int32(n)}
						req.ForgottenTopics = append(req.ForgottenTopics, forget)
						req.Topics = nil
						in[n] = false
					} else if !in[n] && (rng.IntN(5) == 0 || step >= 350) {
						req.Topics = nil
						t := kmsg.NewFetchRequestTopic()
						t.TopicID, t.Partitions = kafka.TopicID{7}, []kmsg.FetchRequestTopicPartition{ask(int32(n), have[n])}
						req.Topics = append(req.Topics, t)
						in[n] = true
					}
				}
				if rng.IntN(3) == 0 {
					req.MaxBytes = 1 // one partition at a time
				}
				if rng.IntN(4) == 0 {
					req.IsolationLevel = 1
				}
				if rng.IntN(2) == 0 {
					req.MaxWaitMillis = 1000
				}
				for step < 300 && rng.IntN(2) == 0 {
					n := rng.IntN(8)
					f.append(int32(n))
					ends[n]++
				}
				r := f.b.fetch(nil, req)
				if r.Pending != nil {
					if n := rng.IntN(8); step < 300 && rng.IntN(2) == 0 {
						f.append(int32(n))
						ends[n]++
					}
					r = r.Pending.Response(time.Now())
				}
				for n, p := range f.answer(r) {
					if p.ErrorCode != 0 {
						t.Fatalf("step %d, partition %d: %d", step, n, p.ErrorCode)
					}
					if len(p.RecordBatches) > 0 {
						rest := p.RecordBatches
						for len(rest) > 0 {
							b, more, err := batch.Next(rest)
							if err != nil {
								break
							}
							have[n] = max(have[n], int64(b.LastOffset())+1)
							rest = more
						}
					}
				}
			}
			for n := range have {
				if in[n] && have[n] != ends[n] {
					t.Errorf("partition %d: %d of %d records", n, have[n], ends[n])
				}
			}
		})
	}
}

// An incremental fetch of which one partition has news: the cost does not grow with
// the session.
func BenchmarkSessionFetch(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(n, " partitions"), func(b *testing.B) {
			f := newFetching(b, n)
			f.fetch(f.request(true))
			b.ReportAllocs()
			for at := int64(0); b.Loop(); at++ {
				f.append(0)
				f.fetch(f.request(false))
				f.fetch(f.request(false, ask(0, at+1)))
			}
		})
	}
}
