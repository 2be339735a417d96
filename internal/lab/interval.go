package lab

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate and the range that holds the true value with the
// stated confidence. Lo and Hi are NaN when there are too few values to say.
type Interval struct {
	Mid, Lo, Hi float64
	N           int
}

// MeanInterval is the mean of repeats with Student's interval. The values are
// runs or blocks of time, never records: records of one run depend on each other.
func MeanInterval(xs []float64, confidence float64) Interval {
	m, dev := moments(xs)
	out := Interval{Mid: m, Lo: math.NaN(), Hi: math.NaN(), N: len(xs)}
	if len(xs) >= 2 {
		half := tQuantile(0.5+confidence/2, float64(len(xs)-1)) * dev / math.Sqrt(float64(len(xs)))
		out.Lo, out.Hi = m-half, m+half
	}
	return out
}

// RatioInterval is the geometric mean of repeats above 0 with Student's interval
// of their logarithms: for figures such as latency and throughput, whose noise
// is a factor, and which are never below 0.
func RatioInterval(xs []float64, confidence float64) Interval {
	logs := make([]float64, len(xs))
	for i, x := range xs {
		logs[i] = math.Log(x)
	}
	in := MeanInterval(logs, confidence)
	return Interval{Mid: math.Exp(in.Mid), Lo: math.Exp(in.Lo), Hi: math.Exp(in.Hi), N: in.N}
}

// Bootstrap is stat of the repeats with a percentile interval over 2,000
// resamples: for medians and percentiles, whose repeats are not normal. It is
// narrow below ten repeats; MeanInterval is the honest one there.
func Bootstrap(xs []float64, stat func([]float64) float64, confidence float64, seed uint64) Interval {
	out := Interval{Mid: stat(xs), Lo: math.NaN(), Hi: math.NaN(), N: len(xs)}
	if len(xs) < 3 {
		return out
	}
	r := rand.New(rand.NewPCG(seed, 0xb007))
	const rounds = 2000
	all := make([]float64, rounds)
	sample := make([]float64, len(xs))
	for i := range all {
		for j := range sample {
			sample[j] = xs[r.IntN(len(xs))]
		}
		all[i] = stat(sample)
	}
	slices.Sort(all)
	tail := (1 - confidence) / 2
	out.Lo = all[int(tail*(rounds-1)+0.5)]
	out.Hi = all[int((1-tail)*(rounds-1)+0.5)]
	return out
}

// Median of values; NaN without any.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// moments are the mean and the standard deviation (n-1).
func moments(xs []float64) (mean, deviation float64) {
	if len(xs) == 0 {
		return math.NaN(), math.NaN()
	}
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	if len(xs) < 2 {
		return mean, math.NaN()
	}
	for _, x := range xs {
		deviation += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(xs)-1))
}

// slope is the least-squares change of ys per step, and its t value: beyond
// about 2 it is not chance. Fewer than three values have none.
func slope(ys []float64) (perStep, t float64) {
	n := float64(len(ys))
	if n < 3 {
		return 0, 0
	}
	mid := (n - 1) / 2
	mean, _ := moments(ys)
	var xx, xy float64
	for i, y := range ys {
		dx := float64(i) - mid
		xx += dx * dx
		xy += dx * (y - mean)
	}
	perStep = xy / xx
	var rest float64
	for i, y := range ys {
		e := y - mean - perStep*(float64(i)-mid)
		rest += e * e
	}
	if rest == 0 {
		if perStep == 0 {
			return 0, 0
		}
		return perStep, math.Inf(int(math.Copysign(1, perStep)))
	}
	return perStep, perStep / math.Sqrt(rest/(n-2)/xx)
}

// tQuantile is the p-quantile of Student's t with df degrees of freedom, by
// bisection of its distribution.
func tQuantile(p, df float64) float64 {
	if p < 0.5 {
		return -tQuantile(1-p, df)
	}
	lo, hi := 0.0, 1.0
	for tCDF(hi, df) < p && hi < 1e9 {
		hi *= 2
	}
	for hi-lo > 1e-10*hi {
		if mid := (lo + hi) / 2; tCDF(mid, df) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

func tCDF(t, df float64) float64 {
	x := df / (df + t*t)
	tail := 0.5 * betaInc(df/2, 0.5, x)
	if t < 0 {
		return tail
	}
	return 1 - tail
}

// betaInc is the regularised incomplete beta function, by its continued
// fraction (Abramowitz and Stegun 26.5.8) with Lentz's method.
func betaInc(a, b, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	if x > (a+1)/(a+b+2) {
		return 1 - betaInc(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log(1-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 300 {
		m := float64(i / 2)
		var num float64
		switch {
		case i == 0:
			num = 1
		case i%2 == 0:
			num = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 + num*d
		if math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		c = 1 + num/c
		if math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(c*d-1) < 1e-14 {
			break
		}
	}
	return front * (f - 1)
}
