package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Shows: the generator is honest. A target that stalls on command shows its stall
// in the percentiles of the open loop and hides it from a closed one; a known
// latency and a known rate come back within 1 %; failures are counted by code
// and never make a percentile better; what is not reached is told.
//
// How: a target in process whose latency is set, under a clock of testing/synctest.

// fake acknowledges each record after latency, in order; while it stalls nothing
// is acknowledged. Everything due by then is acknowledged when the stall ends.
type fake struct {
	latency time.Duration
	stall   func(since time.Duration) (until time.Duration) // 0: no stall now
	fail    func(n int64) error
	buffer  int // records it holds before Produce blocks; 0: no bound
	slow    time.Duration

	start time.Time
	queue chan queued
	room  chan struct{}
	ended sync.WaitGroup
	n     int64
}

type queued struct {
	r    *kgo.Record
	at   time.Duration
	done func(*kgo.Record, error)
	err  error
	ctx  context.Context
}

func (f *fake) begin() *fake {
	f.start = time.Now()
	f.queue = make(chan queued, 1<<20)
	if f.buffer > 0 {
		f.room = make(chan struct{}, f.buffer)
	}
	f.ended.Go(func() {
		for q := range f.queue {
			ready := q.at + f.latency
			if f.stall != nil {
				if until := f.stall(ready); until > 0 {
					ready = until
				}
			}
			if wait := ready - time.Since(f.start); wait > 0 {
				select {
				case <-time.After(wait):
				case <-q.ctx.Done():
					q.err = context.Cause(q.ctx)
				}
			}
			if f.room != nil {
				<-f.room
			}
			q.done(q.r, q.err)
		}
	})
	return f
}

func (f *fake) end() {
	close(f.queue)
	f.ended.Wait()
}

func (f *fake) Produce(ctx context.Context, r *kgo.Record, done func(*kgo.Record, error)) {
	if f.room != nil {
		f.room <- struct{}{}
	}
	if f.slow > 0 {
		time.Sleep(f.slow)
	}
	f.n++
	var err error
	if f.fail != nil {
		err = f.fail(f.n)
	}
	f.queue <- queued{r, time.Since(f.start), done, err, ctx}
}

func load(t testing.TB, l Load) Load {
	t.Helper()
	l.Payload = mustPool(t, "zero", "100")
	l.plainSleep = true
	return l
}

func constant(rate float64) *Arrivals { return &Arrivals{Kind: "constant", Rate: rate} }

func run(t *testing.T, f *fake, l Load) *Produced {
	t.Helper()
	var p *Produced
	l = load(t, l)
	synctest.Test(t, func(t *testing.T) {
		f.begin()
		defer f.end()
		var err error
		if p, err = Produce(t.Context(), l, []Sender{f}); err != nil {
			t.Error(err)
		}
	})
	if p == nil {
		t.FailNow()
	}
	return p
}

func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s is %v, want %v within %v %%", what, got, want, 100*share)
	}
}

// stallAt5 stalls for a second in the middle of ten.
func stallAt5(since time.Duration) time.Duration {
	if since >= 5*time.Second && since < 6*time.Second {
		return 6 * time.Second
	}
	return 0
}

// 1 s of stall in 10 s at 1,000/s: a tenth of the records wait 1 s to 0 s, so p99
// is 0.9 s of it. Kafka's way, which counts from the send and sends the next when
// a place is free, shows one window of records instead.
func TestStallShowsInTheOpenLoop(t *testing.T) {
	open := run(t, &fake{latency: time.Millisecond, stall: stallAt5}, Load{Arrivals: constant(1000), Duration: 10 * time.Second})
	if open.All.Intended.P99Us == nil {
		t.Fatalf("no p99 of %d records", open.All.Intended.N)
	}
	within(t, "p99 of the open loop", float64(*open.All.Intended.P99Us), 900_000, 0.01)
	within(t, "its maximum", float64(open.All.Intended.MaxUs), 1_000_000, 0.01)
	within(t, "p50", float64(*open.All.Intended.P50Us), 1000, 0.01)
	if open.DebtGrows || open.Owed > 0 || open.All.Records != 10_000 {
		t.Errorf("a stall that is made up for is no debt: %+v", open.All)
	}

	// The same stall with ten places in flight: what waits for a place waits in the
	// queue. Ten places clear 10,000/s, so the stall delays 1,111 records instead of
	// 1,000, and p99 is 1 - 100/1111 of it.
	narrow := run(t, &fake{latency: time.Millisecond, stall: stallAt5}, Load{Arrivals: constant(1000), Duration: 10 * time.Second, Window: 10})
	within(t, "p99 with a window of 10", float64(*narrow.All.Intended.P99Us), 910_000, 0.01)
	if s := *narrow.All.Service.P99Us; s > 2000 {
		t.Errorf("service p99 with a window of 10 is %d us: it should hide the stall", s)
	}
	if q := *narrow.All.Queue.P99Us; q < 880_000 {
		t.Errorf("queue p99 with a window of 10 is %d us: it should show the stall", q)
	}

	closed := run(t, &fake{latency: time.Millisecond, stall: stallAt5}, Load{Duration: 10 * time.Second, Window: 1})
	if p := *closed.All.Service.P99Us; p > 2000 {
		t.Errorf("closed loop p99 %d us: one record of 9,000 saw the stall", p)
	}
	if closed.OpenLoop {
		t.Error("a closed loop calls itself open")
	}
}

func TestKnownLatencyAndRate(t *testing.T) {
	for _, latency := range []time.Duration{50 * time.Microsecond, 3333 * time.Microsecond, 700 * time.Millisecond} {
		p := run(t, &fake{latency: latency}, Load{Arrivals: constant(2000), Duration: 5 * time.Second})
		within(t, "p50", float64(*p.All.Intended.P50Us), float64(latency.Microseconds()), 0.01)
		within(t, "p99", float64(*p.All.Service.P99Us), float64(latency.Microseconds()), 0.01)
		within(t, "rate", p.All.Rate, 2000, 0.01)
		within(t, "mean of the steady windows", p.Windows[3].Rate(), 2000, 0.01)
		if p.Sent != 10_000 || p.All.Records != 10_000 {
			t.Errorf("%d sent, %d acknowledged, want 10,000", p.Sent, p.All.Records)
		}
	}
	p := run(t, &fake{}, Load{Arrivals: &Arrivals{Kind: "poisson", Rate: 5000, Seed: 3}, Duration: 8 * time.Second})
	within(t, "Poisson rate", p.All.Rate, 5000, 0.02)
}

func TestSeveralSendersShareTheLoad(t *testing.T) {
	l := load(t, Load{Arrivals: constant(900), Records: 1000})
	synctest.Test(t, func(t *testing.T) {
		var fakes []*fake
		var all []Sender
		for range 3 {
			f := (&fake{latency: time.Millisecond}).begin()
			defer f.end()
			fakes = append(fakes, f)
			all = append(all, f)
		}
		p, err := Produce(t.Context(), l, all)
		if err != nil {
			t.Fatal(err)
		}
		if p.All.Records != 1000 || fakes[0].n != 334 || fakes[1].n != 333 || fakes[2].n != 333 {
			t.Errorf("%d records, of %d, %d and %d", p.All.Records, fakes[0].n, fakes[1].n, fakes[2].n)
		}
		within(t, "rate", p.All.Rate, 900, 0.01)
		within(t, "offered", p.Offered, 900, 0.01)
	})
}

// A target that takes 500/s of 1,000: the debt is told, and so is that the target holds up.
func TestOfferThatIsNotReached(t *testing.T) {
	p := run(t, &fake{slow: 2 * time.Millisecond}, Load{Arrivals: constant(1000), Duration: 20 * time.Second})
	if !p.DebtGrows || p.Owed < 9900 || p.Owed > 10_100 {
		t.Errorf("debt %v, owed %d of 20,000, want 10,000", p.DebtGrows, p.Owed)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool {
		return strings.HasPrefix(n, "the offered rate was not reached: 500 records/s of 1,000")
	}) {
		t.Errorf("notes: %q", p.Notes)
	}
	within(t, "blocked share", p.BufferFull, 1, 0.05)
	if p.Limited != "" {
		t.Errorf("the target was the limit, and the generator says: %s", p.Limited)
	}
}

// The sending goroutine itself is too slow (here: below the millisecond from
// which a wait counts as the client's), and nothing holds it up.
func TestGeneratorSaysItIsTheLimit(t *testing.T) {
	p := run(t, &fake{slow: 500 * time.Microsecond}, Load{Arrivals: constant(10_000), Duration: 10 * time.Second})
	if !p.DebtGrows || !strings.Contains(p.Limited, "more producers") {
		t.Errorf("debt %v, limited %q", p.DebtGrows, p.Limited)
	}
	l := Load{Arrivals: constant(10_000), Duration: 10 * time.Second, Cores: 2}
	begin := time.Time{}
	l.Busy = func() time.Duration {
		if begin.IsZero() {
			begin = time.Now()
		}
		return 19 * time.Since(begin) / 10
	}
	if p := run(t, &fake{slow: 500 * time.Microsecond}, l); !strings.Contains(p.Limited, "1.9 of the 2.0 cores") {
		t.Errorf("limited %q", p.Limited)
	}
}

// Failures are in the denominator, by code, and their time is in the view that counts them.
func TestFailuresCount(t *testing.T) {
	p := run(t, &fake{latency: 30 * time.Second, fail: func(n int64) error {
		switch n % 10 {
		case 0:
			return kerr.NotEnoughReplicas
		case 1:
			return fmt.Errorf("wrapped: %w", kgo.ErrRecordTimeout)
		}
		return nil
	}}, Load{Arrivals: constant(100), Duration: 10 * time.Second, Drain: time.Minute})
	if p.All.Records != 800 || p.All.Failed != 200 || p.All.Errors["NOT_ENOUGH_REPLICAS"] != 100 || p.All.Errors["RECORD_TIMEOUT"] != 100 {
		t.Errorf("%+v", p.All)
	}
	within(t, "error share", p.All.ErrorShare, 0.2, 1e-9)
	if p.All.WithFailed == nil || p.All.WithFailed.N != 1000 || p.All.Intended.N != 800 {
		t.Errorf("with failures: %+v", p.All.WithFailed)
	}
}

func TestManyKindsOfFailureAreBounded(t *testing.T) {
	p := run(t, &fake{fail: func(n int64) error { return fmt.Errorf("failure %d", n) }}, Load{Arrivals: constant(1000), Duration: time.Second})
	if len(p.All.Errors) > errorCodesMax+1 || p.All.Errors["OTHER"] < 1000-errorCodesMax || p.All.Failed != 1000 {
		t.Errorf("%d codes, %d other, %d failed", len(p.All.Errors), p.All.Errors["OTHER"], p.All.Failed)
	}
}

// A target that never answers again: the run ends after Drain, and what is open
// is counted.
func TestHalfDeadTarget(t *testing.T) {
	dead := func(since time.Duration) time.Duration {
		if since >= 5*time.Second {
			return time.Hour
		}
		return 0
	}
	p := run(t, &fake{latency: time.Millisecond, stall: dead}, Load{Arrivals: constant(100), Duration: 10 * time.Second, Drain: 3 * time.Second})
	if p.All.Failed < 495 || p.All.Errors["UNFINISHED"] != p.All.Failed || p.All.Records+p.All.Failed != 1000 {
		t.Errorf("%d acknowledged, errors %v", p.All.Records, p.All.Errors)
	}
	within(t, "seconds", p.All.Seconds, 10, 0.01)
}

// Ctrl-C keeps what was measured.
func TestInterrupt(t *testing.T) {
	for _, l := range []Load{{Arrivals: constant(100), Duration: time.Hour}, {Duration: time.Hour, Window: 4}, {Records: 1 << 40, Window: 4}} {
		l := load(t, l)
		synctest.Test(t, func(t *testing.T) {
			f := (&fake{latency: 10 * time.Millisecond}).begin()
			defer f.end()
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			p, err := Produce(ctx, l, []Sender{f})
			if err != nil {
				t.Fatal(err)
			}
			if !p.Interrupted || p.All.Failed != 0 || p.Unfinished != 0 || p.All.Records < 990 || p.Owed > 0 {
				t.Errorf("interrupted %v, %d records, %d failed, %d owed", p.Interrupted, p.All.Records, p.All.Failed, p.Owed)
			}
			if took := time.Since(f.start); took > 11*time.Second {
				t.Errorf("ended after %v", took)
			}
		})
	}
}

// A full buffer in the client is told by the closed loop's law: in flight = rate x latency.
func TestClosedLoopNamesItsQueue(t *testing.T) {
	p := run(t, &fake{slow: time.Millisecond / 2, latency: 100 * time.Millisecond, buffer: 50}, Load{Duration: 20 * time.Second})
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "full client queue (50.") }) {
		t.Errorf("notes: %q", p.Notes)
	}
}

func TestLoadsThatCannotRun(t *testing.T) {
	for want, l := range map[string]Load{
		"duration or a number": {},
		"want at least 1":      {Records: 1, Window: -1},
		"above 0":              {Records: 1, Arrivals: constant(0)},
	} {
		l.Payload = mustPool(t, "zero", "1")
		if _, err := Produce(t.Context(), l, []Sender{&fake{}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Produce(t.Context(), load(t, Load{Records: 1}), nil); err == nil {
		t.Error("a load without producers")
	}
}

func TestErrorName(t *testing.T) {
	for want, err := range map[string]error{
		"MESSAGE_TOO_LARGE": fmt.Errorf("x: %w", kerr.MessageTooLarge),
		"RETRIES_EXHAUSTED": kgo.ErrRecordRetries,
		"UNFINISHED":        context.Canceled,
		`"what"`:            errors.New("what"),
	} {
		if got := errorName(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// instant acknowledges at once on the caller's goroutine.
type instant struct{}

func (instant) Produce(_ context.Context, r *kgo.Record, done func(*kgo.Record, error)) { done(r, nil) }

func TestGeneratorAllocatesNothingPerRecord(t *testing.T) {
	k, _ := ParseKeys("uniform:100")
	l := Load{Records: 200_000, Payload: mustPool(t, "zero", "100"), Keys: NewKeyTable(k), Window: 16, Stamp: &Stamp{Run: 1}}
	allocs := testing.AllocsPerRun(1, func() {
		if _, err := Produce(t.Context(), l, []Sender{instant{}}); err != nil {
			t.Error(err)
		}
	})
	if allocs > 5000 {
		t.Errorf("%v allocations for 200,000 records", allocs)
	}
}

func BenchmarkGenerator(b *testing.B) {
	l := Load{Records: int64(b.N), Payload: mustPool(b, "random", "1024"), Window: 1024}
	if _, err := Produce(b.Context(), l, []Sender{instant{}}); err != nil {
		b.Error(err)
	}
}

// By the system's clock: never early, and late by less than a tick of the
// runtime's timer in the mean. The bound is wide, for the machine may be busy.
func TestSendsAreOnTime(t *testing.T) {
	p, err := Produce(t.Context(), Load{Arrivals: constant(200), Duration: time.Second, Payload: mustPool(t, "zero", "10")}, []Sender{instant{}})
	if err != nil {
		t.Fatal(err)
	}
	if m := *p.All.Queue.P50Us; m > 1000 {
		t.Errorf("a send is %d us late in the median", m)
	}
	if p.All.Records != 200 {
		t.Errorf("%d records of 200", p.All.Records)
	}
}

// A slow begin is dropped, told, and kept when asked for.
func TestWarmUpIsToldAndCanBeKept(t *testing.T) {
	slow := func(since time.Duration) time.Duration {
		if since < 3*time.Second {
			return since + 200*time.Millisecond
		}
		return 0
	}
	l := Load{Arrivals: constant(1000), Duration: 20 * time.Second}
	p := run(t, &fake{latency: time.Millisecond, stall: slow}, l)
	if p.Cut.Drop < 3 || p.Cut.Drop > 5 || *p.Measured.Intended.P99Us > 2000 || *p.All.Intended.P99Us < 150_000 {
		t.Errorf("%+v, measured p99 %d", p.Cut, *p.Measured.Intended.P99Us)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "left out of these figures") }) {
		t.Errorf("notes: %q", p.Notes)
	}
	l.KeepAll = true
	if p = run(t, &fake{latency: time.Millisecond, stall: slow}, l); *p.Measured.Intended.P99Us < 150_000 {
		t.Errorf("kept all, and p99 is %d us", *p.Measured.Intended.P99Us)
	}
}
