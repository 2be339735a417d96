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
	steadyWindows   = 30   // windows that must be steady, when the run has as many
	steadyVariation = 0.05 // of the rate, as a share of its mean
	steadyDrift     = 0.05 // a slope that changes less than this share over the windows is no slope
)

// FindCut drops windows until those that follow are steady: the rate varies by
// less than 5 %, and neither rate nor p50 nor p99 has a slope that is both
// significant and above 5 % over the windows looked at. It drops at most half.
// When no such point is found it falls back on MSER: the cut after which the
// p50 is known best; Stable is then false, and the result carries a warning.
func FindCut(points []Point) Cut {
	n := len(points)
	if n < 6 {
		return Cut{Why: fmt.Sprintf("only %d windows: too short to tell the warm-up from the rest", n)}
	}
	width := min(steadyWindows, max(5, n/3))
	most := n / 2
	why := ""
	for at := 0; at <= most && at+width <= n; at++ {
		reason := unsteady(points[at : at+width])
		if reason == "" {
			if at == 0 {
				return Cut{Stable: true, Why: fmt.Sprintf("steady from the first window (looked at %d)", width)}
			}
			return Cut{Drop: at, Stable: true, Why: fmt.Sprintf("steady over %d windows after %d; before that %s", width, at, why)}
		}
		why = reason
	}
	at := mser(points[:n], most)
	return Cut{Drop: at, Why: fmt.Sprintf("never steady over %d windows (%s); %d are dropped, after which p50 is known best", width, why, at)}
}

// unsteady says what is not steady, or "".
func unsteady(w []Point) string {
	rate, p50, p99 := make([]float64, len(w)), make([]float64, len(w)), make([]float64, len(w))
	for i, p := range w {
		rate[i], p50[i], p99[i] = p.Rate, p.P50, p.P99
	}
	mean, dev := moments(rate)
	if mean == 0 {
		return "nothing was acknowledged"
	}
	if dev/mean >= steadyVariation {
		return fmt.Sprintf("the rate varied by %.0f %%", 100*dev/mean)
	}
	limit := tQuantile(0.975, float64(len(w)-2))
	for _, s := range []struct {
		name string
		ys   []float64
	}{{"rate", rate}, {"p50", p50}, {"p99", p99}} {
		mean, _ := moments(s.ys)
		if mean == 0 {
			continue
		}
		step, t := slope(s.ys)
		if change := step * float64(len(w)-1) / mean; math.Abs(t) > limit && math.Abs(change) > steadyDrift {
			return fmt.Sprintf("%s changed by %+.0f %%", s.name, 100*change)
		}
	}
	return ""
}

// mser is the cut that makes the standard error of the rest's p50 smallest.
func mser(points []Point, most int) int {
	best, at := math.Inf(1), 0
	for d := 0; d <= most; d++ {
		rest := make([]float64, 0, len(points)-d)
		for _, p := range points[d:] {
			rest = append(rest, p.P50)
		}
		_, dev := moments(rest)
		if e := dev / math.Sqrt(float64(len(rest))); e < best {
			best, at = e, d
		}
	}
	return at
}
