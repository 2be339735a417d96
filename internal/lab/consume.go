package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Reading is what Consume reads. One of Duration and Records, or both, must be set.
type Reading struct {
	Duration time.Duration // from the start; 0: until Records
	Records  int64         // of all consumers together; 0: until Duration is over
	Idle     time.Duration // ends when nothing arrived for so long; 0: 10 s
	Every    time.Duration // window; 0: 1 s, more in long runs
	Live     func(ReadWindow)
}

// ReadWindow is one second of reading.
type ReadWindow struct {
	AtS     float64 `json:"at_s"`
	Seconds float64 `json:"seconds"`
	Records int64   `json:"records"`
	Bytes   int64   `json:"bytes"`
	Polls   int64   `json:"polls"`
}

// Rate is its records per second.
func (w ReadWindow) Rate() float64 { return float64(w.Records) / max(w.Seconds, 1e-9) }

// Consumed is the result of a reading.
type Consumed struct {
	Records     int64            `json:"records"`
	Bytes       int64            `json:"bytes"`         // keys and values
	FirstAfterS float64          `json:"first_after_s"` // until the first record: connecting, joining, seeking
	Seconds     float64          `json:"seconds"`       // from the first record to the last
	Rate        float64          `json:"rate"`          // records per second between the two
	MBs         float64          `json:"mb_per_s"`
	Errors      map[string]int64 `json:"errors,omitempty"`
	Interrupted bool             `json:"interrupted,omitempty"`
	WentIdle    bool             `json:"went_idle,omitempty"` // the topic had no more
	Cut         Cut              `json:"warm_up"`
	Measured    ReadWindow       `json:"measured"` // the windows after the warm-up, joined
	Notes       []string         `json:"notes,omitempty"`
	Windows     []ReadWindow     `json:"windows"`
}

// readCount is what all readers write.
type readCount struct {
	mu      sync.Mutex
	records int64
	bytes   int64
	polls   int64
	first   time.Duration
	last    time.Duration
	errs    map[string]int64
}

// Consume polls with every reader until the reading is over and returns what
// arrived. When ctx ends it returns what was measured, with Interrupted set.
func Consume(ctx context.Context, r Reading, readers []Poller) (*Consumed, error) {
	if r.Duration < 0 || r.Records < 0 || r.Duration == 0 && r.Records == 0 {
		return nil, errors.New("a reading needs a duration or a number of records, above 0")
	}
	if len(readers) == 0 {
		return nil, errors.New("a reading needs at least one consumer")
	}
	if r.Idle == 0 {
		r.Idle = 10 * time.Second
	}
	if r.Every == 0 {
		r.Every = max(time.Second, r.Duration/maxWindows)
	}
	start := time.Now()
	rctx, stop := context.WithCancel(ctx)
	defer stop()
	c := &readCount{errs: map[string]int64{}}
	var reading sync.WaitGroup
	for _, p := range readers {
		reading.Go(func() {
			for rctx.Err() == nil {
				fs := p.PollRecords(rctx, pollMost)
				if fs.IsClientClosed() {
					return
				}
				if c.take(time.Since(start), fs) >= r.Records && r.Records > 0 {
					stop()
				}
			}
		})
	}
	out := &Consumed{}
	out.watch(rctx, stop, r, c, start)
	reading.Wait()
	out.finish(r, c, ctx.Err() != nil)
	return out, nil
}

func (c *readCount) take(now time.Duration, fs kgo.Fetches) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	fs.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.Canceled) && len(c.errs) < errorCodesMax {
			c.errs[errorName(err)]++
		}
	})
	n := int64(0)
	fs.EachRecord(func(r *kgo.Record) {
		n++
		c.bytes += int64(len(r.Key) + len(r.Value))
	})
	if n > 0 {
		if c.records == 0 {
			c.first = now
		}
		c.last = now
		c.polls++
		c.records += n
	}
	return c.records
}

// watch closes windows and ends the reading when its time is up or nothing comes.
func (out *Consumed) watch(ctx context.Context, stop func(), r Reading, c *readCount, start time.Time) {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	var over <-chan time.Time
	if r.Duration > 0 {
		t := time.NewTimer(r.Duration)
		defer t.Stop()
		over = t.C
	}
	var at time.Duration
	var before ReadWindow
	window := func() (idle time.Duration) {
		now := time.Since(start)
		c.mu.Lock()
		w := ReadWindow{AtS: at.Seconds(), Seconds: (now - at).Seconds(), Records: c.records - before.Records, Bytes: c.bytes - before.Bytes, Polls: c.polls - before.Polls}
		before = ReadWindow{Records: c.records, Bytes: c.bytes, Polls: c.polls}
		idle = now - c.last
		c.mu.Unlock()
		at = now
		out.Windows = append(out.Windows, w)
		if r.Live != nil {
			r.Live(w)
		}
		return idle
	}
	for {
		select {
		case <-tick.C:
			if window() >= r.Idle {
				out.WentIdle = true
				stop()
				return
			}
		case <-over:
			stop()
			window()
			return
		case <-ctx.Done():
			window()
			return
		}
	}
}

func (out *Consumed) finish(r Reading, c *readCount, interrupted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out.Records, out.Bytes, out.Errors = c.records, c.bytes, c.errs
	out.Interrupted = interrupted
	out.FirstAfterS, out.Seconds = c.first.Seconds(), (c.last - c.first).Seconds()
	if out.Seconds > 0 {
		out.Rate, out.MBs = float64(c.records)/out.Seconds, float64(c.bytes)/out.Seconds/(1<<20)
	}
	// Whole windows in which records came without a gap at either end.
	lo, hi := 0, len(out.Windows)-1
	for lo < hi && out.Windows[lo].AtS < c.first.Seconds() {
		lo++
	}
	for hi > lo && out.Windows[hi-1].AtS+out.Windows[hi-1].Seconds > c.last.Seconds() {
		hi--
	}
	var points []Point
	for _, w := range out.Windows[lo:max(lo, hi)] {
		points = append(points, Point{Rate: w.Rate()})
	}
	out.Cut = FindCut(points)
	for _, w := range out.Windows[lo+out.Cut.Drop : max(lo+out.Cut.Drop, hi)] {
		out.Measured.Seconds += w.Seconds
		out.Measured.Records += w.Records
		out.Measured.Bytes += w.Bytes
		out.Measured.Polls += w.Polls
	}
	add := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	if out.Records == 0 {
		add("no record arrived")
	}
	if out.WentIdle && r.Records > 0 && out.Records < r.Records {
		add("nothing came for %v: %s of %s records were read", r.Idle, Count(float64(out.Records)), Count(float64(r.Records)))
	}
	if !out.Cut.Stable {
		add("warm-up: %s", out.Cut.Why)
	}
	for code, n := range c.errs {
		add("%s fetch errors: %s", Count(float64(n)), code)
	}
}
