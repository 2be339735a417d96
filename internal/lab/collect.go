package lab

import (
	"fmt"
	"maps"
	"time"
)

// Window is one second of a run (more in runs of over an hour).
type Window struct {
	AtS        float64          `json:"at_s"` // begin, seconds since the start
	Seconds    float64          `json:"seconds"`
	Acked      int64            `json:"acked"`
	Bytes      int64            `json:"bytes"`
	Failed     int64            `json:"failed,omitempty"`
	Errors     map[string]int64 `json:"errors,omitempty"`
	InFlight   int64            `json:"in_flight"` // at its end
	P50Us      int64            `json:"p50_us"`    // intended; not held to what n carries: windows are for the eye
	P99Us      int64            `json:"p99_us"`
	MaxUs      int64            `json:"max_us"`
	ServiceP99 int64            `json:"service_p99_us"`
	LateUs     int64            `json:"late_us"` // the longest wait between due time and send
	Cores      float64          `json:"cores,omitempty"`
	Intended   Summary          `json:"intended"`
	Service    Summary          `json:"service"`
	Queue      Summary          `json:"queue"`
	EndToEnd   *Summary         `json:"end_to_end,omitempty"` // of a probe, from the due time
	FromSend   *Summary         `json:"end_to_end_from_send,omitempty"`
}

// Rate is its acknowledged records per second.
func (w Window) Rate() float64 { return float64(w.Acked) / max(w.Seconds, 1e-9) }

// Part is what was measured over some windows together.
type Part struct {
	Seconds    float64          `json:"seconds"`
	Records    int64            `json:"records"` // acknowledged
	Failed     int64            `json:"failed"`
	Errors     map[string]int64 `json:"errors,omitempty"`
	Bytes      int64            `json:"bytes"` // keys and values of acknowledged records
	Rate       float64          `json:"rate"`  // acknowledged records per second
	MBs        float64          `json:"mb_per_s"`
	ErrorShare float64          `json:"error_share"` // failed of all that ended
	Service    Summary          `json:"service"`
	Queue      Summary          `json:"queue"`
	Intended   Summary          `json:"intended"`
	WithFailed *Summary         `json:"intended_with_failed,omitempty"` // failed records at the time they took to fail
	EndToEnd   *Summary         `json:"end_to_end,omitempty"`           // of a probe: from the due time to the arrival at a consumer
	FromSend   *Summary         `json:"end_to_end_from_send,omitempty"`
}

// Produced is the result of a load.
type Produced struct {
	OpenLoop    bool     `json:"open_loop"`
	Offered     float64  `json:"offered_rate,omitempty"` // open loop: in the mean
	Sent        int64    `json:"sent"`
	Owed        int64    `json:"owed"`       // due by the end and never sent
	Unfinished  int64    `json:"unfinished"` // sent, and nobody ever said what became of them
	LateUs      int64    `json:"late_max_us"`
	DebtGrows   bool     `json:"debt_grows"` // the offered rate was not reached: latency is that of a growing queue
	Limited     string   `json:"generator_limited,omitempty"`
	BufferFull  float64  `json:"blocked_share"` // of the senders' time that they waited for a place in window or buffer
	Cores       float64  `json:"cores,omitempty"`
	Window      int      `json:"window"`
	Interrupted bool     `json:"interrupted,omitempty"`
	Cut         Cut      `json:"warm_up"`
	All         Part     `json:"all"`      // the whole run
	Measured    Part     `json:"measured"` // after the warm-up
	Notes       []string `json:"notes,omitempty"`
	Windows     []Window `json:"windows"`
}

// collector swaps the senders' tallies once a window.
type collector struct {
	l       Load
	senders []*sender
	begin   time.Time
	stop    chan struct{}
	windows []Window
	all     *tally
	busy    time.Duration
	busy0   time.Duration
	at      time.Duration
}

func newCollector(l Load, senders []*sender, begin time.Time) *collector {
	c := &collector{l: l, senders: senders, begin: begin, stop: make(chan struct{}), all: newTally()}
	if l.Busy != nil {
		c.busy = l.Busy()
		c.busy0 = c.busy
	}
	return c
}

// start runs the collector until stop; the channel closes when it has ended.
func (c *collector) start() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(c.l.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.window(time.Since(c.begin))
			case <-c.stop:
				// What is left is a window of its own unless it is too short to have a rate.
				c.window(time.Since(c.begin))
				return
			}
		}
	}()
	return ended
}

func (c *collector) window(now time.Duration) {
	sum := newTally()
	var open int64
	for _, s := range c.senders {
		t := s.book.swap()
		sum.merge(t)
		s.book.back(t)
		open += s.inFlight()
	}
	if c.l.arrivals != nil {
		sum.due, sum.sent = NewLatency(), NewLatency()
		c.l.arrivals.window(sum.due, sum.sent)
	}
	if c.l.Arrivals == nil { // a record is due when it is sent
		sum.book.Intended.Merge(sum.book.Service)
	}
	if now-c.at < c.l.Every/10 && sum.acked+sum.failed == 0 && (sum.due == nil || sum.due.N() == 0) {
		return
	}
	w := Window{AtS: c.at.Seconds(), Seconds: (now - c.at).Seconds(), Acked: sum.acked, Bytes: sum.bytes, Failed: sum.failed, Errors: sum.errors,
		InFlight: open, MaxUs: sum.book.Intended.Max(), LateUs: sum.late.Microseconds(),
		Intended: sum.book.Intended.Summary(true), Service: sum.book.Service.Summary(true), Queue: sum.book.Queue.Summary(true)}
	w.P50Us, _ = sum.book.Intended.Quantile(0.5)
	w.P99Us, _ = sum.book.Intended.Quantile(0.99)
	w.ServiceP99, _ = sum.book.Service.Quantile(0.99)
	w.EndToEnd, w.FromSend = sum.ends()
	if c.l.Busy != nil {
		busy := c.l.Busy()
		w.Cores = (busy - c.busy).Seconds() / w.Seconds
		c.busy = busy
	}
	c.at = now
	c.all.merge(sum)
	c.windows = append(c.windows, w)
	if c.l.Live != nil && 2*w.Seconds >= c.l.Every.Seconds() {
		c.l.Live(w)
	}
}

func (c *collector) result(interrupted bool, sent, end time.Duration, unfinished int64) *Produced {
	p := &Produced{OpenLoop: c.l.Arrivals != nil, Window: c.l.Window, Unfinished: unfinished, Interrupted: interrupted, Windows: c.windows}
	var awake, blocked, idle time.Duration
	for _, s := range c.senders {
		p.Sent += s.sent.Load()
		p.Owed += s.owed
		awake += s.awake
		blocked += s.blocked
		idle += s.idle
	}
	if unfinished > 0 {
		c.all.fail("UNFINISHED", unfinished)
	}
	p.LateUs = c.all.late.Microseconds()
	if awake > 0 {
		p.BufferFull = min(1, float64(blocked)/float64(awake))
	}
	if c.l.Busy != nil && end > 0 {
		p.Cores = (c.l.Busy() - c.busy0).Seconds() / end.Seconds()
	}
	p.All = part(c.all, sent.Seconds())
	// The windows in which records were still sent; the drain has none of its own rate.
	whole := 0
	for whole < len(c.windows) && c.windows[whole].AtS+c.windows[whole].Seconds <= sent.Seconds()+1e-3 {
		whole++
	}
	p.measure(whole, c.l.KeepAll)
	if p.OpenLoop {
		p.Offered = c.l.Arrivals.MeanRate(sent)
		if c.l.Records > 0 && p.Offered*sent.Seconds() > float64(p.Sent+p.Owed) {
			p.Offered = float64(p.Sent+p.Owed) / max(sent.Seconds(), 1e-9)
		}
		p.DebtGrows = debtGrows(p.Windows[:whole], p.Owed, p.Sent)
	}
	p.Limited = limited(p, float64(idle)/max(1, float64(awake)), c.l)
	p.note(c.l)
	return p
}

// ends are the summaries of a probe, or nil.
func (t *tally) ends() (due, sent *Summary) {
	if t.due == nil {
		return nil, nil
	}
	d, s := t.due.Summary(true), t.sent.Summary(true)
	return &d, &s
}

func part(t *tally, seconds float64) Part {
	seconds = max(seconds, 1e-9)
	out := Part{Seconds: seconds, Records: t.acked, Failed: t.failed, Errors: maps.Clone(t.errors), Bytes: t.bytes,
		Rate: float64(t.acked) / seconds, MBs: float64(t.bytes) / seconds / (1 << 20),
		Service: t.book.Service.Summary(true), Queue: t.book.Queue.Summary(true), Intended: t.book.Intended.Summary(true)}
	out.EndToEnd, out.FromSend = t.ends()
	if t.acked+t.failed > 0 {
		out.ErrorShare = float64(t.failed) / float64(t.acked+t.failed)
	}
	if t.failed > 0 {
		s := t.book.WithFailed().Summary(true)
		out.WithFailed = &s
	}
	return out
}

// measure cuts the warm-up off the first whole windows and joins the rest.
func (p *Produced) measure(whole int, keep bool) {
	var points []Point
	for _, w := range p.Windows[:whole] {
		points = append(points, Point{w.Rate(), float64(w.P50Us), float64(w.P99Us)})
	}
	p.Cut = FindCut(points)
	if keep {
		p.Cut.Drop = 0
	}
	p.Measured = p.All
	if p.Cut.Drop == 0 {
		return
	}
	p.Measured = Join(p.Windows[p.Cut.Drop:whole])
}

// Join is several windows as one part. Failed records have no histogram of their
// own in a window, so WithFailed is not given.
func Join(ws []Window) Part {
	t := newTally()
	seconds := 0.0
	var intended, service, queue, due, sent []Summary
	for _, w := range ws {
		t.acked += w.Acked
		t.bytes += w.Bytes
		for code, n := range w.Errors {
			t.fail(code, n)
		}
		seconds += w.Seconds
		intended, service, queue = append(intended, w.Intended), append(service, w.Service), append(queue, w.Queue)
		if w.EndToEnd != nil {
			due, sent = append(due, *w.EndToEnd), append(sent, *w.FromSend)
		}
	}
	if due != nil {
		t.due, t.sent = NewLatency(), NewLatency()
	}
	for _, x := range []struct {
		to  **Latency
		all []Summary
	}{{&t.book.Intended, intended}, {&t.book.Service, service}, {&t.book.Queue, queue}, {&t.due, due}, {&t.sent, sent}} {
		if len(x.all) == 0 {
			continue
		}
		merged, err := MergeSummaries(x.all...)
		if err != nil {
			panic(fmt.Sprintf("BUG: a window's own histogram cannot be merged: %v", err))
		}
		*x.to = merged
	}
	out := part(t, seconds)
	out.WithFailed = nil
	return out
}

// debtGrows says whether sends fell behind for good: more than 1 % was never
// sent, or the lateness climbed over the run by more than chance and 100 ms.
func debtGrows(ws []Window, owed, sent int64) bool {
	if float64(owed) > 0.01*float64(owed+sent) {
		return true
	}
	late := make([]float64, len(ws))
	for i, w := range ws {
		late[i] = float64(w.LateUs)
	}
	if len(late) < 5 {
		return false
	}
	perWindow, t := slope(late)
	return t > tQuantile(0.975, float64(len(late)-2)) && perWindow*float64(len(late)-1) > 100_000 && late[len(late)-1] > 100_000
}

// limited says why the generator itself was the limit, or "": its goroutines had
// no time left although nothing held them up, or its process had no core left.
func limited(p *Produced, idle float64, l Load) string {
	behind := p.DebtGrows || !p.OpenLoop
	if l.Cores > 0 && p.Cores >= 0.9*l.Cores && behind {
		return fmt.Sprintf("this process used %.1f of the %.1f cores it may use", p.Cores, l.Cores)
	}
	if behind && p.BufferFull < 0.1 && idle < 0.1 {
		return fmt.Sprintf("the sending goroutines waited for the cluster only %.0f %% of their time: give more producers", 100*p.BufferFull)
	}
	return ""
}

// note says what a reader must know before the figures.
func (p *Produced) note(l Load) {
	add := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if p.All.Failed > 0 {
		add("%s of %s records were not acknowledged (%.3g %%)", Count(float64(p.All.Failed)), Count(float64(p.All.Failed+p.All.Records)), 100*p.All.ErrorShare)
	}
	if p.OpenLoop && p.DebtGrows {
		add("the offered rate was not reached: %s records/s of %s; latency is that of a growing queue, not the cluster's", Count(p.All.Rate), Count(p.Offered))
	}
	if p.Limited != "" {
		add("the generator itself was the limit: %s", p.Limited)
	}
	if !p.OpenLoop && l.Window > 1 {
		inFlight := p.Measured.Rate * p.Measured.Service.MeanUs / 1e6
		add("closed loop: latency is that of a full client queue (%s records in flight in the mean = rate x latency, window %s); give a rate to measure the cluster's",
			Count(inFlight), Count(float64(l.Window)))
	}
	if p.Cut.Drop > 0 && p.All.Intended.MaxUs > p.Measured.Intended.MaxUs {
		add("the %d windows of warm-up had a maximum of %s and are left out of these figures (--warmup none keeps them)", p.Cut.Drop, Millis(float64(p.All.Intended.MaxUs)))
	}
	if !p.Cut.Stable {
		add("warm-up: %s", p.Cut.Why)
	}
	if p.Measured.Records < 1000 && p.Measured.Records > 0 {
		add("%d records do not carry a p99: run longer", p.Measured.Records)
	}
	if p.All.Intended.Over > 0 {
		add("%d records took more than 10 minutes; percentiles count them at the largest", p.All.Intended.Over)
	}
}
