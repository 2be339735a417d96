package lab

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Shows: Student's quantiles are those of printed tables, intervals cover the
// truth as often as they say, and a slope is told from noise.

func TestStudent(t *testing.T) {
	f := func(p, df, want float64) {
		t.Helper()
		if got := tQuantile(p, df); math.Abs(got-want) > 0.001 {
			t.Errorf("t(%v, %v) = %.4f, want %v", p, df, got, want)
		}
	}
	f(0.975, 1, 12.706)
	f(0.975, 2, 4.303)
	f(0.975, 4, 2.776)
	f(0.975, 9, 2.262)
	f(0.975, 30, 2.042)
	f(0.975, 1000, 1.962)
	f(0.8, 4, 0.941)
	f(0.5, 4, 0)
	f(0.025, 9, -2.262)
	f(0.995, 5, 4.032)
}

func TestIntervalsCover(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const rounds = 500
	for _, n := range []int{3, 5, 20} {
		hit := 0
		for range rounds {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 100 + 5*r.NormFloat64()
			}
			if in := MeanInterval(xs, 0.95); in.Lo <= 100 && 100 <= in.Hi {
				hit++
			}
		}
		if share := float64(hit) / rounds; share < 0.92 || share > 0.98 {
			t.Errorf("the 95 %% interval of %d repeats covers %.1f %%", n, 100*share)
		}
	}
	hit := 0
	for round := range 100 {
		xs := make([]float64, 25)
		for i := range xs {
			xs[i] = 100 * math.Exp(0.2*r.NormFloat64())
		}
		if in := Bootstrap(xs, Median, 0.95, uint64(round)); in.Lo <= 100 && 100 <= in.Hi {
			hit++
		}
	}
	if hit < 88 {
		t.Errorf("the bootstrap of the median covers %d of 100", hit)
	}
}

func TestIntervalOfTooFew(t *testing.T) {
	if in := MeanInterval([]float64{5}, 0.95); in.Mid != 5 || !math.IsNaN(in.Lo) {
		t.Errorf("one repeat: %+v", in)
	}
	if in := Bootstrap([]float64{5, 6}, Median, 0.95, 1); !math.IsNaN(in.Lo) {
		t.Errorf("two repeats: %+v", in)
	}
}

// A latency is never below 0, however much it varies.
func TestRatioInterval(t *testing.T) {
	in := RatioInterval([]float64{10, 12, 9, 46}, 0.95)
	if in.Lo <= 0 || in.Lo >= in.Mid || in.Hi <= in.Mid || math.Abs(in.Mid-math.Pow(10*12*9*46, 0.25)) > 1e-9 {
		t.Errorf("%+v", in)
	}
	if in := MeanInterval([]float64{10, 12, 9, 46}, 0.95); in.Lo >= 0 {
		t.Errorf("the plain interval %+v shows no reason for this one", in)
	}
}

func TestSlope(t *testing.T) {
	if s, v := slope([]float64{1, 2, 3, 4}); s != 1 || !math.IsInf(v, 1) {
		t.Errorf("a line: %v, %v", s, v)
	}
	if s, v := slope([]float64{2, 2, 2}); s != 0 || v != 0 {
		t.Errorf("flat: %v, %v", s, v)
	}
	r := rand.New(rand.NewPCG(5, 6))
	seen := 0
	for range 500 {
		ys := make([]float64, 30)
		for i := range ys {
			ys[i] = r.NormFloat64()
		}
		if _, v := slope(ys); math.Abs(v) > tQuantile(0.975, 28) {
			seen++
		}
	}
	if seen < 10 || seen > 42 {
		t.Errorf("a slope was seen in %d of 500 series of noise, want about 25", seen)
	}
}
