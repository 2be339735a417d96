package lab

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// RunFormat is the version of report.json: a reader refuses another major.
const RunFormat = "weir-perf/1"

// Run is one run with all that is needed to read it later: report.json.
type Run struct {
	Format      string         `json:"format"`
	Kind        string         `json:"kind"` // produce, consume, latency, ramp, compare
	Started     time.Time      `json:"started"`
	Command     []string       `json:"command,omitempty"` // without secrets
	Spec        map[string]any `json:"spec"`              // what was asked for, with defaults
	Environment Environment    `json:"environment"`
	Produce     *Produced      `json:"produce,omitempty"`
	Consume     *Consumed      `json:"consume,omitempty"`
	Latency     *Probed        `json:"latency,omitempty"`
	Ramp        *RampResult    `json:"ramp,omitempty"`
	Compare     *CompareResult `json:"compare,omitempty"`
	Wire        *Wire          `json:"wire,omitempty"`
	Broken      []string       `json:"broken,omitempty"` // conditions of --fail-if that the run fails
	Notes       []string       `json:"notes,omitempty"`
}

// Environment is where a run took place.
type Environment struct {
	Version    string            `json:"version,omitempty"` // of weir
	Go         string            `json:"go"`
	OS         string            `json:"os"`
	Host       string            `json:"host,omitempty"`
	Cores      int               `json:"cores"`
	Bootstrap  []string          `json:"bootstrap"`
	ClusterID  string            `json:"cluster_id,omitempty"`
	Brokers    int               `json:"brokers,omitempty"`
	Topic      string            `json:"topic,omitempty"`
	Partitions int               `json:"partitions,omitempty"`
	Replicas   int               `json:"replicas,omitempty"`
	TopicSets  map[string]string `json:"topic_configs,omitempty"` // those set on the topic
	SameHost   bool              `json:"same_host"`               // a broker runs on this host and shares its cores
}

// RampResult is a ramp with its steps.
type RampResult struct {
	Plan     Plan        `json:"plan"`
	Steps    []Step      `json:"steps"`
	Findings [][]Finding `json:"findings"`
	Outcome  Outcome     `json:"outcome"`
	Missing  []string    `json:"not_measured,omitempty"`
	Confirm  *Step       `json:"confirm,omitempty"` // at 80 % of the sustainable rate
}

// CompareResult is a comparison with its runs.
type CompareResult struct {
	A        string                `json:"a"`
	B        string                `json:"b"`
	Verdicts map[string]Comparison `json:"verdicts"`
	RunsA    []Figures             `json:"runs_a"`
	RunsB    []Figures             `json:"runs_b"`
}

// Figures are what --fail-if looks at.
func (r *Run) Figures() Figures {
	switch {
	case r.Latency != nil:
		return r.Latency.Figures()
	case r.Produce != nil:
		return r.Produce.Figures()
	case r.Consume != nil:
		return r.Consume.Figures()
	case r.Ramp != nil:
		return Figures{"rate": r.Ramp.Outcome.Sustainable}
	}
	return Figures{}
}

// Text writes what people read at the end of a run.
func (r *Run) Text(w io.Writer) error {
	var b strings.Builder
	switch {
	case r.Latency != nil:
		r.Latency.Produced.text(&b)
		fmt.Fprintf(&b, "arrived     %s of %s acknowledged\n", Count(float64(r.Latency.Arrived)), Count(float64(r.Latency.All.Records)))
	case r.Produce != nil:
		r.Produce.text(&b)
	case r.Consume != nil:
		r.Consume.text(&b)
	case r.Ramp != nil:
		r.Ramp.text(&b)
	case r.Compare != nil:
		r.Compare.text(&b)
	}
	if x := r.Wire; x != nil && x.Batches > 0 {
		fmt.Fprintf(&b, "wire        %s batches of %.1f records and %s bytes", Count(float64(x.Batches)), x.RecordsBatch, Count(float64(x.Packed)/float64(x.Batches)))
		if x.Packed < x.Plain {
			fmt.Fprintf(&b, "; compressed to %.0f %%", 100*float64(x.Packed)/float64(x.Plain))
		}
		for code, n := range x.Retries {
			fmt.Fprintf(&b, "; %s retried for %s", Count(float64(n)), code)
		}
		if x.ThrottledMs > 0 {
			fmt.Fprintf(&b, "; throttled by quota for %s ms", Count(float64(x.ThrottledMs)))
		}
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note        %s\n", n)
	}
	for _, n := range r.Broken {
		fmt.Fprintf(&b, "failed      %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Produced) text(b *strings.Builder) {
	m := p.Measured
	fmt.Fprintf(b, "throughput  %s records/s, %.2f MB/s", Count(m.Rate), m.MBs)
	if p.OpenLoop {
		fmt.Fprintf(b, " of %s offered", Count(p.Offered))
	}
	fmt.Fprintf(b, ", over %.1f s", m.Seconds)
	if p.Cut.Drop > 0 {
		fmt.Fprintf(b, " after %d windows of warm-up", p.Cut.Drop)
	}
	fmt.Fprintf(b, "\nrecords     %s acknowledged, %s failed, %s owed, in %.1f s\n", Count(float64(p.All.Records)), Count(float64(p.All.Failed)), Count(float64(p.Owed)), p.All.Seconds)
	for code, n := range p.All.Errors {
		fmt.Fprintf(b, "error       %s %s\n", Count(float64(n)), code)
	}
	if m.EndToEnd != nil && m.FromSend != nil {
		latencyLine(b, "end to end", "from the due time to the arrival", *m.EndToEnd)
		latencyLine(b, " from send", "without the wait before the send", *m.FromSend)
	}
	if p.OpenLoop {
		latencyLine(b, "latency", "from the due time to the acknowledgement", m.Intended)
		latencyLine(b, " service", "from the send", m.Service)
		latencyLine(b, " queue", "from the due time to the send", m.Queue)
	} else {
		name := "latency"
		if p.Window > 1 {
			name = "full queue"
		}
		latencyLine(b, name, "from the send, closed loop", m.Service)
	}
	if p.All.WithFailed != nil {
		latencyLine(b, " and failed", "with failed records at the time they took", *p.All.WithFailed)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(b, "note        %s\n", n)
	}
}

func latencyLine(b *strings.Builder, name, what string, s Summary) {
	if s.N == 0 {
		return
	}
	fmt.Fprintf(b, "%-11s ", name)
	for _, p := range s.Percentiles() {
		if p.Us != nil {
			fmt.Fprintf(b, "%s %s  ", p.Name, Millis(float64(*p.Us)))
		}
	}
	fmt.Fprintf(b, "max %s  (%s)\n", Millis(float64(s.MaxUs)), what)
}

func (c *Consumed) text(b *strings.Builder) {
	f := c.Figures()
	fmt.Fprintf(b, "throughput  %s records/s, %.2f MB/s", Count(f["rate"]), f["mb"])
	if c.Cut.Drop > 0 {
		fmt.Fprintf(b, " after %d windows of warm-up", c.Cut.Drop)
	}
	fmt.Fprintf(b, "\nrecords     %s, %s bytes, in %.1f s from the first to the last; the first came after %.2f s\n",
		Count(float64(c.Records)), Count(float64(c.Bytes)), c.Seconds, c.FirstAfterS)
	for _, n := range c.Notes {
		fmt.Fprintf(b, "note        %s\n", n)
	}
}

func (r *RampResult) text(b *strings.Builder) {
	fmt.Fprintf(b, "%12s %12s %10s %10s  %s\n", "offered/s", "achieved/s", "p99", "failed", "finding")
	for i, s := range r.Steps {
		var said []string
		for _, f := range r.Findings[i] {
			word := "caution"
			if f.Stop {
				word = "STOP"
			}
			said = append(said, fmt.Sprintf("%s %s: %s", word, f.Rule, f.Evidence))
		}
		var failed int64
		for _, n := range s.Errors {
			failed += n
		}
		p99 := "-"
		if s.P99Us > 0 {
			p99 = Millis(s.P99Us)
		}
		fmt.Fprintf(b, "%12s %12s %10s %10d  %s\n", Count(s.Offered), Count(s.Achieved), p99, failed, strings.Join(said, "; "))
	}
	fmt.Fprintf(b, "result      %s\n", r.Outcome.Text)
	if r.Outcome.Knee > 0 {
		fmt.Fprintf(b, "knee        latency bends above %s records/s\n", Count(r.Outcome.Knee))
	}
	if r.Confirm != nil {
		fmt.Fprintf(b, "confirmed   %s records/s of %s offered, p99 %s, held %.0f s\n", Count(r.Confirm.Achieved), Count(r.Confirm.Offered), Millis(r.Confirm.P99Us), r.Confirm.Hold)
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(b, "unmeasured  %s\n", strings.Join(r.Missing, ", "))
	}
}

func (c *CompareResult) text(b *strings.Builder) {
	fmt.Fprintf(b, "A           %s\nB           %s\n", c.A, c.B)
	for _, name := range []string{"rate", "p50", "p99", "p99.9", "e2e.p50", "e2e.p99"} {
		v, ok := c.Verdicts[name]
		if !ok {
			continue
		}
		var as, bs []float64
		for i := range c.RunsA {
			as, bs = append(as, c.RunsA[i][name]), append(bs, c.RunsB[i][name])
		}
		a, z := RatioInterval(as, 0.95), RatioInterval(bs, 0.95)
		show := Count
		if isLatency(name) {
			show = Millis
		}
		fmt.Fprintf(b, "%-11s A %s [%s, %s]  B %s [%s, %s]  B: %s, %d pairs\n", name, show(a.Mid), show(a.Lo), show(a.Hi), show(z.Mid), show(z.Lo), show(z.Hi), v, v.Pairs)
	}
}
