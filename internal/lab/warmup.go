package lab

import (
	"fmt"
	"math"
)

// Point is one second of a run, as the warm-up sees it.
type Point struct {
	Rate float64 // acknowledged records per second
	P50  float64 // microseconds; 0: no records
	P99  float64
}

// Cut is where the measured part begins.
type Cut struct {
	Drop   int    `json:"dropped_windows"`
	Stable bool   `json:"stable"`
	Why    string `json:"why"`
}

const (
	steadyWindows   = 5    // windows in a row that must be steady where the measured part begins
	trendWindows    = 30   // windows that must not go on warming up, when the run has as many
	steadyVariation = 0.05 // of the rate, as a share of its mean
	steadyDrift     = 0.05 // a slope that changes less than this share over the windows is no slope
)

// FindCut drops the windows before the first five in a row that are steady: the
// rate varies by less than 5 %, and neither rate nor p50 nor p99 has a slope
// that is both significant and above 5 %; and after which the run does not go on
// warming up (rate rising or latency falling over 30 windows). It drops at most
// half. What is unsteady later is no warm-up: a stall in the middle of a run is
// never dropped. When nothing is steady nothing is dropped, and Stable is false.
func FindCut(points []Point) Cut {
	n := len(points)
	if n < 6 {
		return Cut{Why: fmt.Sprintf("only %d windows: too short to tell the warm-up from the rest", n)}
	}
	why := ""
	for at := 0; at <= n/2 && at+steadyWindows <= n; at++ {
		reason := unsteady(points[at : at+steadyWindows])
		if reason == "" {
			reason = warming(points[at:min(n, at+trendWindows)])
		}
		if reason == "" {
			if at == 0 {
				return Cut{Stable: true, Why: "steady from the first window"}
			}
			return Cut{Drop: at, Stable: true, Why: fmt.Sprintf("steady after %d windows; before that %s", at, why)}
		}
		why = reason
	}
	return Cut{Why: fmt.Sprintf("the first half of %d windows was never steady (%s): nothing is dropped", n, why)}
}

// unsteady says what is not steady, or "".
func unsteady(w []Point) string {
	mean, dev := moments(column(w, rateOf))
	if mean == 0 {
		return "nothing was acknowledged"
	}
	if dev/mean >= steadyVariation {
		return fmt.Sprintf("the rate varied by %.0f %%", 100*dev/mean)
	}
	for _, c := range []struct {
		name string
		of   func(Point) float64
	}{{"rate", rateOf}, {"p50", p50Of}, {"p99", p99Of}} {
		if change := trend(column(w, c.of)); math.Abs(change) > steadyDrift {
			return fmt.Sprintf("%s changed by %+.0f %%", c.name, 100*change)
		}
	}
	return ""
}

// warming says what still gets better, or "".
func warming(w []Point) string {
	if change := trend(column(w, rateOf)); change > steadyDrift {
		return fmt.Sprintf("the rate rose by %.0f %%", 100*change)
	}
	if change := trend(column(w, p50Of)); change < -steadyDrift {
		return fmt.Sprintf("p50 fell by %.0f %%", -100*change)
	}
	if change := trend(column(w, p99Of)); change < -steadyDrift {
		return fmt.Sprintf("p99 fell by %.0f %%", -100*change)
	}
	return ""
}

// trend is the change over all values as a share of their mean, 0 when it is not
// significant. One outlier, wherever it lies, never makes it so.
func trend(ys []float64) float64 {
	mean, _ := moments(ys)
	step, t := slope(ys)
	if mean == 0 || math.Abs(t) <= tQuantile(0.975, float64(len(ys)-2)) {
		return 0
	}
	return step * float64(len(ys)-1) / mean
}

func rateOf(p Point) float64 { return p.Rate }
func p50Of(p Point) float64  { return p.P50 }
func p99Of(p Point) float64  { return p.P99 }

func column(w []Point, of func(Point) float64) []float64 {
	out := make([]float64, len(w))
	for i, p := range w {
		out[i] = of(p)
	}
	return out
}
