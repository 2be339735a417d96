package lab

import (
	"fmt"
	"math"
)

// Paired is a series of pairs of runs, A the base and B the change, whose order
// turns round: A B, B A, A B … (ABBA). What drifts over the session, such as a
// disk that fills or a machine that warms up, then falls on both alike.
type Paired struct {
	A, B       []float64 // one figure of each pair, above 0; same length
	MoreBetter bool      // throughput; false for latency
}

// Verdicts of a comparison.
const (
	Better       = "better"
	Worse        = "worse"
	NoDifference = "no difference"
	TooFew       = "too few runs"
)

// Comparison is what the pairs say, in percent of the base. Positive is better.
type Comparison struct {
	Verdict     string  `json:"verdict"`
	Percent     float64 `json:"percent"`
	Lo          float64 `json:"lo"`        // of the interval that holds the true change with Confidence
	Hi          float64 `json:"hi"`        //
	CouldSee    float64 `json:"could_see"` // the change that this many pairs of this noise show in four of five tries
	DriftPct    float64 `json:"drift_pct"` // how much the second run of a pair was off the first by its place alone
	Pairs       int     `json:"pairs"`
	Confidence  float64 `json:"confidence"`
	Unsatisfied string  `json:"too_few,omitempty"` // why there is no verdict
}

// comparePairs is the fewest that give an interval: four pairs, two of each order.
const comparePairs = 4

// ABBA is which side runs at place i: pairs A B and B A in turn.
func ABBA(i int) (isB bool) { return i%4 == 1 || i%4 == 2 }

// Compare works on the logarithm of B/A, so that twice and half weigh the same.
// The place within the pair is an effect of its own and is taken out, as in a
// crossover trial; what is left over between pairs of the same order is the noise.
func Compare(p Paired, confidence float64) Comparison {
	n := len(p.A)
	if len(p.B) != n {
		panic(fmt.Sprintf("BUG: %d runs of A and %d of B", n, len(p.B)))
	}
	n -= n % 2
	c := Comparison{Verdict: TooFew, Pairs: n, Confidence: confidence}
	if n < comparePairs {
		c.Unsatisfied = fmt.Sprintf("%d pairs of runs: a verdict needs at least %d", len(p.A), comparePairs)
		return c
	}
	var first, second []float64 // AB pairs, BA pairs
	for i := range n {
		if !(p.A[i] > 0 && p.B[i] > 0) || math.IsInf(p.A[i], 0) || math.IsInf(p.B[i], 0) {
			c.Unsatisfied = fmt.Sprintf("pair %d has the figures %v and %v: both must be above 0", i+1, p.A[i], p.B[i])
			return c
		}
		d := math.Log(p.B[i] / p.A[i])
		if i%2 == 0 {
			first = append(first, d)
		} else {
			second = append(second, d)
		}
	}
	m1, dev1 := moments(first)
	m2, dev2 := moments(second)
	df := float64(n - 2)
	pooled := math.Sqrt((dev1*dev1 + dev2*dev2) / 2)
	mid := (m1 + m2) / 2
	se := pooled / math.Sqrt(float64(n))
	t := tQuantile(0.5+confidence/2, df)
	percent := func(log float64) float64 {
		if p.MoreBetter {
			return 100 * math.Expm1(log)
		}
		return -100 * math.Expm1(log)
	}
	c.Percent, c.Lo, c.Hi = percent(mid), percent(mid-t*se), percent(mid+t*se)
	c.Lo, c.Hi = min(c.Lo, c.Hi), max(c.Lo, c.Hi)
	c.DriftPct = 100 * math.Expm1((m1-m2)/2)
	c.CouldSee = 100 * math.Expm1((t+tQuantile(0.8, df))*se)
	switch {
	case c.Lo > 0:
		c.Verdict = Better
	case c.Hi < 0:
		c.Verdict = Worse
	default:
		c.Verdict = NoDifference
	}
	return c
}

// String is the verdict in words.
func (c Comparison) String() string {
	switch c.Verdict {
	case Better:
		return fmt.Sprintf("better by %.1f %% [%.1f, %.1f]", c.Percent, c.Lo, c.Hi)
	case Worse:
		return fmt.Sprintf("worse by %.1f %% [%.1f, %.1f]", -c.Percent, -c.Hi, -c.Lo)
	case NoDifference:
		if c.CouldSee > 200 {
			return fmt.Sprintf("no difference seen (could see a factor of %.1f)", 1+c.CouldSee/100)
		}
		return fmt.Sprintf("no difference seen (could see >= %.1f %%)", c.CouldSee)
	}
	return "no verdict: " + c.Unsatisfied
}
