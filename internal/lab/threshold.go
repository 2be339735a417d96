package lab

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Check is a condition under which a run counts as failed, such as p99 > 20ms.
type Check struct {
	Text   string
	metric string
	op     string
	limit  float64
}

var checkForm = regexp.MustCompile(`^\s*([a-z0-9._]+)\s*(<=|>=|<|>)\s*([0-9.]+)\s*([a-zA-Zµ/%]*)\s*$`)

// ParseCheck reads METRIC OP VALUE: mean, p50 to p99.99 and max are of the
// intended latency, with service., queue. or e2e. in front of the others, and
// want a duration; rate, mb, errors, error_share, owed and lost are plain numbers.
func ParseCheck(s string) (Check, error) {
	c := Check{Text: strings.TrimSpace(s)}
	m := checkForm.FindStringSubmatch(s)
	if m == nil {
		return c, fmt.Errorf("condition %q: write for example 'p99 > 20ms', 'rate < 50000' or 'errors > 0'", s)
	}
	c.metric, c.op = m[1], m[2]
	if isLatency(c.metric) {
		d, err := time.ParseDuration(m[3] + m[4])
		if err != nil {
			return c, fmt.Errorf("condition %q: %s wants a duration such as 20ms", s, c.metric)
		}
		c.limit = float64(d.Microseconds())
		return c, nil
	}
	if !slices.Contains(plainMetrics, c.metric) {
		return c, fmt.Errorf("condition %q: no figure %s; there are mean, p50, p90, p95, p99, p99.9, p99.99, max (also service.p99, queue.p99, e2e.p99) and %s",
			s, c.metric, strings.Join(plainMetrics, ", "))
	}
	v, err := strconv.ParseFloat(m[3], 64)
	switch {
	case err != nil:
		return c, fmt.Errorf("condition %q: %q is no number", s, m[3])
	case m[4] == "%" && c.metric == "error_share":
		v /= 100
	case m[4] != "":
		return c, fmt.Errorf("condition %q: %s has no unit %q", s, c.metric, m[4])
	}
	c.limit = v
	return c, nil
}

var plainMetrics = []string{"rate", "mb", "errors", "error_share", "owed", "lost"}

func isLatency(metric string) bool {
	_, name, ok := cutFamily(metric)
	return ok && (name == "mean" || name == "max" || slices.ContainsFunc(Summary{}.Percentiles(), func(p Percentile) bool { return p.Name == name }))
}

// cutFamily splits service.p99 into service and p99; p99.9 has no family.
func cutFamily(metric string) (family, name string, ok bool) {
	for _, f := range []string{"service", "queue", "e2e"} {
		if rest, has := strings.CutPrefix(metric, f+"."); has {
			return f, rest, true
		}
	}
	return "", metric, true
}

// Figures are what checks may look at: latencies in microseconds.
type Figures map[string]float64

func (f Figures) summary(family string, s *Summary) {
	if s == nil || s.N == 0 {
		return
	}
	if family != "" {
		family += "."
	}
	f[family+"mean"], f[family+"max"] = s.MeanUs, float64(s.MaxUs)
	for _, p := range s.Percentiles() {
		if p.Us != nil {
			f[family+p.Name] = float64(*p.Us)
		}
	}
}

// Figures of a load, after its warm-up; failures and what is owed are those of
// the whole run.
func (p *Produced) Figures() Figures {
	f := Figures{"rate": p.Measured.Rate, "mb": p.Measured.MBs, "errors": float64(p.All.Failed), "error_share": p.All.ErrorShare, "owed": float64(p.Owed)}
	f.summary("", &p.Measured.Intended)
	f.summary("service", &p.Measured.Service)
	f.summary("queue", &p.Measured.Queue)
	f.summary("e2e", p.Measured.EndToEnd)
	return f
}

// Figures of a probe.
func (p *Probed) Figures() Figures {
	f := p.Produced.Figures()
	f["lost"] = float64(p.Lost)
	return f
}

// Figures of a reading.
func (c *Consumed) Figures() Figures {
	f := Figures{"rate": c.Rate, "mb": c.MBs}
	if c.Measured.Records > 0 {
		f["rate"], f["mb"] = c.Measured.Rate(), float64(c.Measured.Bytes)/c.Measured.Seconds/(1<<20)
	}
	for _, n := range c.Errors {
		f["errors"] += float64(n)
	}
	return f
}

// Broken says whether the condition holds, that is the run failed it, with a
// sentence. A figure the run does not have is a failure too: what was not
// measured was not shown to be good.
func (c Check) Broken(f Figures) (string, bool) {
	v, ok := f[c.metric]
	if !ok {
		if isLatency(c.metric) {
			return fmt.Sprintf("%s: the run has too few records for %s", c.Text, c.metric), true
		}
		return fmt.Sprintf("%s: the run has no such figure (it has %s)", c.Text, strings.Join(slices.Sorted(maps.Keys(f)), ", ")), true
	}
	broken := false
	switch c.op {
	case "<":
		broken = v < c.limit
	case "<=":
		broken = v <= c.limit
	case ">":
		broken = v > c.limit
	case ">=":
		broken = v >= c.limit
	}
	shown := Count(v)
	if isLatency(c.metric) {
		shown = Millis(v)
	}
	return fmt.Sprintf("%s: it is %s", c.Text, shown), broken
}

// Millis prints microseconds as milliseconds with the digits that matter.
func Millis(us float64) string {
	switch {
	case us < 10_000:
		return fmt.Sprintf("%.2f ms", us/1000)
	case us < 100_000:
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return Count(us/1000) + " ms"
}
