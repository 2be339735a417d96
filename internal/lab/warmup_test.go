package lab

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Shows: a warm-up is cut where it ends, a steady run is kept whole (nearly
// always), and a run that never settles says so.

func series(seed uint64, n int, f func(i int, noise float64) Point) []Point {
	r := rand.New(rand.NewPCG(seed, 9))
	out := make([]Point, n)
	for i := range out {
		out[i] = f(i, r.NormFloat64())
	}
	return out
}

func TestFindCut(t *testing.T) {
	steady := func(noise float64) Point {
		return Point{10_000 * (1 + 0.01*noise), 2000 * (1 + 0.02*noise), 9000 * (1 + 0.1*noise)}
	}
	kept, late := 0, 0
	for seed := range uint64(200) {
		if c := FindCut(series(seed, 60, func(_ int, x float64) Point { return steady(x) })); c.Stable && c.Drop <= 3 {
			kept++
		}
		// p50 falls from ten times its final value over the first 12 windows.
		c := FindCut(series(seed, 60, func(i int, x float64) Point {
			p := steady(x)
			p.P50 *= 1 + 9*math.Exp(-float64(i)/3)
			return p
		}))
		if c.Stable && c.Drop >= 8 && c.Drop <= 20 {
			late++
		}
	}
	if kept < 190 {
		t.Errorf("%d of 200 steady runs were kept", kept)
	}
	if late < 190 {
		t.Errorf("in %d of 200 runs a warm-up of 12 windows was cut after 8 to 20", late)
	}
}

// A stall is what a run is made to find: only the warm-up is dropped.
func TestStallsAreNeverCut(t *testing.T) {
	for _, n := range []int{10, 20, 60, 120} {
		for at := steadyWindows; at < n; at++ {
			c := FindCut(series(uint64(at), n, func(i int, x float64) Point {
				p := Point{10_000 * (1 + 0.01*x), 2000 * (1 + 0.001*x), 9000 * (1 + 0.001*x)}
				if i == at {
					p = Point{100, 900_000, 990_000}
				}
				return p
			}))
			if c.Drop > 2 {
				t.Errorf("a stall in window %d of %d was cut: %+v", at, n, c)
			}
		}
	}
}

func TestFindCutOfRunsThatNeverSettle(t *testing.T) {
	f := func(points []Point, wantDrop int, want string) {
		t.Helper()
		c := FindCut(points)
		if c.Stable || c.Drop != wantDrop || !strings.Contains(c.Why, want) {
			t.Errorf("%+v, want %d dropped and %q", c, wantDrop, want)
		}
	}
	f(series(1, 3, func(int, float64) Point { return Point{1, 1, 1} }), 0, "only 3 windows")
	f(series(1, 40, func(int, float64) Point { return Point{} }), 0, "nothing was acknowledged")
	f(series(1, 40, func(i int, _ float64) Point { return Point{1000 * float64(1+i%2), 5, 5} }), 0, "the rate varied")
	// Latency grows all the time: the offered rate is too high, not a warm-up.
	c := FindCut(series(1, 60, func(i int, x float64) Point { return Point{1000, 1000 * float64(1+i), 5000 * float64(1+i)} }))
	if c.Stable || c.Drop > 0 || !strings.Contains(c.Why, "p50 changed by +") {
		t.Errorf("growing: %+v", c)
	}
}
