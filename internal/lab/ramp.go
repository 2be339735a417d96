package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plan says which rates a ramp tries.
type Plan struct {
	Kind   string    `json:"kind"`             // list, geometric, bisect
	Rates  []float64 `json:"rates,omitempty"`  // list: ascending
	From   float64   `json:"from,omitempty"`   // geometric, bisect: the first
	To     float64   `json:"to,omitempty"`     // geometric, bisect: the largest
	Factor float64   `json:"factor,omitempty"` // geometric; bisect climbs by it until a step stops
	Within float64   `json:"within,omitempty"` // bisect: ends when the limit is known to this share, such as 0.05
}

// ParsePlan reads 1000,2000,5000 or FROM..TO (bisect) or FROM..TO*FACTOR
// (geometric). Numbers may end in k or m.
func ParsePlan(s string) (Plan, error) {
	from, to, is := strings.Cut(s, "..")
	if !is {
		var p Plan
		p.Kind = "list"
		for part := range strings.SplitSeq(s, ",") {
			r, err := parseRate(part)
			if err != nil {
				return p, fmt.Errorf("steps %q: %w", s, err)
			}
			p.Rates = append(p.Rates, r)
		}
		if !slices.IsSorted(p.Rates) {
			return p, fmt.Errorf("steps %q: write the rates in ascending order", s)
		}
		return p, nil
	}
	to, factor, geometric := strings.Cut(to, "*")
	p := Plan{Kind: "bisect", Factor: 2, Within: 0.05}
	var err error
	if p.From, err = parseRate(from); err == nil {
		p.To, err = parseRate(to)
	}
	if err == nil && geometric {
		p.Kind, p.Within = "geometric", 0
		if p.Factor, err = strconv.ParseFloat(factor, 64); err == nil && !(p.Factor >= 1.01 && p.Factor <= 100) {
			err = fmt.Errorf("a factor from 1.01 to 100 is wanted")
		}
	}
	if err == nil && p.To < p.From {
		err = fmt.Errorf("the second rate is below the first")
	}
	if err != nil {
		return p, fmt.Errorf("steps %q: %w; write 1k,2k,5k or 1k..100k or 1k..100k*2", s, err)
	}
	return p, nil
}

func parseRate(s string) (float64, error) {
	s = strings.TrimSpace(s)
	unit := 1.0
	switch {
	case strings.HasSuffix(s, "k"):
		s, unit = strings.TrimSuffix(s, "k"), 1e3
	case strings.HasSuffix(s, "m"), strings.HasSuffix(s, "M"):
		s, unit = s[:len(s)-1], 1e6
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0 && f*unit <= 1e9) {
		return 0, fmt.Errorf("%q is no rate: want records per second above 0", s)
	}
	return f * unit, nil
}

// Tried is a rate and whether a rule stopped it.
type Tried struct {
	Rate    float64
	Stopped bool
}

// Next is the rate to try after those done, in their order; false: the ramp is over.
func (p Plan) Next(done []Tried) (float64, bool) {
	stopped := slices.ContainsFunc(done, func(t Tried) bool { return t.Stopped })
	switch p.Kind {
	case "list":
		if stopped || len(done) >= len(p.Rates) {
			return 0, false
		}
		return p.Rates[len(done)], true
	case "geometric", "bisect":
		if len(done) == 0 {
			return p.From, true
		}
		pass, stop := limits(done)
		if !stopped {
			if pass >= p.To {
				return 0, false
			}
			return min(pass*p.Factor, p.To), true
		}
		if p.Kind == "geometric" || pass == 0 || stop/pass-1 <= p.Within {
			return 0, false
		}
		return math.Sqrt(pass * stop), true // equal shares on either side
	}
	panic("BUG: plan of kind " + p.Kind)
}

// limits are the highest rate that passed below the lowest that stopped, and that one; 0: none.
func limits(done []Tried) (pass, stop float64) {
	for _, t := range done {
		if t.Stopped && (stop == 0 || t.Rate < stop) {
			stop = t.Rate
		}
	}
	for _, t := range done {
		if !t.Stopped && t.Rate > pass && (stop == 0 || t.Rate < stop) {
			pass = t.Rate
		}
	}
	return pass, stop
}

// Outcome is what a ramp found.
type Outcome struct {
	Sustainable float64   `json:"sustainable_rate"` // records per second; 0: even the first step stopped
	StoppedAt   float64   `json:"stopped_at,omitempty"`
	Why         []Finding `json:"why,omitempty"`       // the rules that stopped it
	Knee        float64   `json:"knee_rate,omitempty"` // where latency begins to bend; 0: no bend seen
	Text        string    `json:"text"`
}

// Conclude looks at all steps of a ramp.
func Conclude(steps []Step, findings [][]Finding) Outcome {
	var done []Tried
	var xs, ys []float64
	for i, s := range steps {
		done = append(done, Tried{s.Offered, Stops(findings[i])})
		if s.P99Us > 0 {
			xs = append(xs, s.Offered)
			ys = append(ys, s.P99Us)
		}
	}
	var o Outcome
	o.Sustainable, o.StoppedAt = limits(done)
	for i, s := range steps {
		if s.Offered == o.StoppedAt {
			for _, f := range findings[i] {
				if f.Stop {
					o.Why = append(o.Why, f)
				}
			}
		}
	}
	o.Knee, _ = Knee(xs, ys)
	switch {
	case len(steps) == 0:
		o.Text = "no step was run"
	case o.StoppedAt == 0:
		o.Text = fmt.Sprintf("every step passed: the limit lies above %s records/s; offer more", Count(o.Sustainable))
	case o.Sustainable == 0:
		o.Text = fmt.Sprintf("even %s records/s did not pass (%s); offer less", Count(o.StoppedAt), o.Why[0].Rule)
	default:
		o.Text = fmt.Sprintf("sustainable: %s records/s; %s did not pass (%s)", Count(o.Sustainable), Count(o.StoppedAt), o.Why[0].Rule)
	}
	return o
}

// Count prints a large number with its digits in threes.
func Count(x float64) string {
	if math.Abs(x) < 100 && x != math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	s := strconv.FormatFloat(math.Abs(math.Round(x)), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if x < 0 {
		return "-" + s
	}
	return s
}
