package lab

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Shows: the words of the comparison, that two runs of the same thing are told
// apart no oftener than stated, that a change is seen when it is as large as
// the comparison says it could see, and that drift does not decide.

// simulate gives pairs of lognormal noise and a drift of so much per run; b is B's factor.
func simulate(r *rand.Rand, pairs int, b, noise, drift float64) Paired {
	p := Paired{A: make([]float64, pairs), B: make([]float64, pairs), MoreBetter: true}
	for i := range 2 * pairs {
		v := 1000 * math.Exp(noise*r.NormFloat64()+drift*float64(i))
		if ABBA(i) {
			p.B[i/2] = v * b
		} else {
			p.A[i/2] = v
		}
	}
	return p
}

// 5 % of 200 are 10; more than 20 come by chance less than once in a thousand.
func TestSameIsNoDifference(t *testing.T) {
	for _, c := range []struct {
		pairs        int
		noise, drift float64
	}{{4, 0.03, 0}, {6, 0.03, 0}, {6, 0.1, 0}, {6, 0.03, 0.05}, {20, 0.2, -0.02}} {
		r := rand.New(rand.NewPCG(uint64(c.pairs), 17))
		seen := 0
		for range 200 {
			if v := Compare(simulate(r, c.pairs, 1, c.noise, c.drift), 0.95).Verdict; v != NoDifference {
				seen++
			}
		}
		if seen > 20 {
			t.Errorf("%+v: a difference in %d of 200 comparisons of the same thing, stated 5 %%", c, seen)
		}
	}
}

// What it says it could see, it sees in about four of five.
func TestCouldSeeIsTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 42))
	const pairs, noise = 8, 0.05
	total := 0.0
	for range 200 {
		total += Compare(simulate(r, pairs, 1, noise, 0), 0.95).CouldSee
	}
	could := total / 200 / 100
	seen := 0
	for range 200 {
		c := Compare(simulate(r, pairs, 1+could, noise, 0), 0.95)
		if c.Verdict == Better {
			seen++
		}
		if c.Verdict == Worse {
			t.Errorf("better by %.0f %% was told as %v", 100*could, c)
		}
	}
	if seen < 140 || seen > 185 {
		t.Errorf("a change of %.1f %% was seen in %d of 200, want about 160", 100*could, seen)
	}
}

func TestDriftDoesNotDecide(t *testing.T) {
	// Every run is 3 % slower than the one before; B is 10 % faster.
	c := Compare(simulate(rand.New(rand.NewPCG(1, 1)), 6, 1.1, 0.001, -0.03), 0.95)
	if c.Verdict != Better || math.Abs(c.Percent-10) > 0.5 || math.Abs(c.DriftPct+3) > 0.5 {
		t.Errorf("%+v", c)
	}
}

func TestCompareWords(t *testing.T) {
	f := func(p Paired, want string) {
		t.Helper()
		if got := Compare(p, 0.95).String(); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
	rate := func(a, b []float64) Paired { return Paired{a, b, true} }
	latency := func(a, b []float64) Paired { return Paired{a, b, false} }
	a := []float64{100, 101, 99, 100}
	f(rate(a, []float64{120, 122, 119, 120}), "better by 20.")
	f(rate(a, []float64{80, 81, 79, 80}), "worse by 20.")
	f(latency(a, []float64{80, 81, 79, 80}), "better by 20.")
	f(latency(a, []float64{150, 151, 149, 150}), "worse by 50.")
	f(rate(a, []float64{101, 99, 100, 100}), "no difference seen (could see >= ")
	f(rate(a, []float64{10, 10, 1000, 1000}), "no difference seen (could see a factor of ")
	f(rate(a[:3], a[:3]), "no verdict: 3 pairs of runs: a verdict needs at least 4")
	f(rate(a, []float64{1, 0, 1, 1}), "no verdict: pair 2 has the figures 101 and 0")
	c := Compare(latency(a, []float64{150, 151, 149, 150}), 0.95)
	if !(c.Lo < c.Percent && c.Percent < c.Hi && c.Hi < 0) {
		t.Errorf("bounds %+v", c)
	}
}
