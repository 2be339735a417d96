package lab

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Shows: due times are the ones stated, from the record's number and not from
// the time before; shares make up the whole; Poisson has Poisson's spread.

func dues(a Arrivals, share, of, n int) []time.Duration {
	s := a.Schedule(share, of)
	var out []time.Duration
	for range n {
		d, ok := s.Next()
		if !ok {
			break
		}
		out = append(out, d)
	}
	return out
}

func TestSchedule(t *testing.T) {
	const ms = time.Millisecond
	f := func(a Arrivals, want ...time.Duration) {
		t.Helper()
		if got := dues(a, 0, 1, len(want)); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", a, got, want)
		}
	}
	f(Arrivals{Kind: "constant", Rate: 1000}, 0, ms, 2*ms, 3*ms)
	f(Arrivals{Kind: "burst", Rate: 1000, Burst: 3}, 0, 0, 0, 3*ms, 3*ms, 3*ms, 6*ms)
	// From 0+ to 100/s in 2 s: record k at sqrt(k/25) s.
	f(Arrivals{Kind: "ramp", Rate: 1e-9, To: 100, Over: 2 * time.Second}, 0)
	if d := dues(Arrivals{Kind: "ramp", Rate: 1e-9, To: 100, Over: 2 * time.Second}, 0, 1, 126); d[25].Round(ms) != time.Second ||
		d[100].Round(ms) != 2*time.Second || d[125].Round(ms) != 2250*ms {
		t.Errorf("ramp: %v %v %v, want 1s, 2s and 2.25s", d[25], d[100], d[125])
	}
	// A flat ramp is constant.
	f(Arrivals{Kind: "ramp", Rate: 10, To: 10, Over: time.Second}, 0, 100*ms, 200*ms)
	// A ramp may fall: 100 to 50 in 1 s has 75 records.
	if d := dues(Arrivals{Kind: "ramp", Rate: 100, To: 50, Over: time.Second}, 0, 1, 77); d[75] != time.Second || d[76] != 1020*ms {
		t.Errorf("falling ramp: %v, %v", d[75], d[76])
	}
	f(Arrivals{Kind: "replay", Times: []time.Duration{1, 1, 5}}, 1, 1, 5)
	if d := dues(Arrivals{Kind: "replay", Times: []time.Duration{1, 1, 5}}, 0, 1, 9); len(d) != 3 {
		t.Errorf("replay does not end: %v", d)
	}
}

// Rounding must not add up: a million records at 3/s end at the right nanosecond.
func TestScheduleNeverDrifts(t *testing.T) {
	s := Arrivals{Kind: "constant", Rate: 3}.Schedule(0, 1)
	var last time.Duration
	for range 3_000_001 {
		last, _ = s.Next()
	}
	if last != 1_000_000*time.Second {
		t.Errorf("record 3,000,000 at 3/s is due at %v", last)
	}
}

func TestSharesMakeTheWhole(t *testing.T) {
	for _, a := range []Arrivals{
		{Kind: "constant", Rate: 700},
		{Kind: "burst", Rate: 700, Burst: 4},
		{Kind: "ramp", Rate: 10, To: 700, Over: time.Second},
	} {
		whole := dues(a, 0, 1, 300)
		var parts []time.Duration
		for share := range 3 {
			parts = append(parts, dues(a, share, 3, 100)...)
		}
		slices.Sort(parts)
		if !slices.Equal(parts, whole) {
			t.Errorf("%s: three shares are not the whole", a.Kind)
		}
	}
}

// The gaps of a Poisson stream are exponential: mean and standard deviation are
// 1/rate. Four shares together have the same.
func TestPoisson(t *testing.T) {
	a := Arrivals{Kind: "poisson", Rate: 1000, Seed: 7}
	for _, of := range []int{1, 4} {
		var all []time.Duration
		for share := range of {
			all = append(all, dues(a, share, of, 100_000/of)...)
		}
		slices.Sort(all)
		all = all[:90_000]
		var sum, square float64
		for i := 1; i < len(all); i++ {
			gap := (all[i] - all[i-1]).Seconds() * 1000
			sum += gap
			square += gap * gap
		}
		n := float64(len(all) - 1)
		mean := sum / n
		deviation := math.Sqrt(square/n - mean*mean)
		if math.Abs(mean-1) > 0.02 || math.Abs(deviation-1) > 0.02 {
			t.Errorf("%d shares: gaps of %.3f ms, deviation %.3f ms, want 1 and 1", of, mean, deviation)
		}
	}
	if !slices.Equal(dues(a, 1, 4, 50), dues(a, 1, 4, 50)) {
		t.Error("the same seed gave other times")
	}
}

func TestParseArrivals(t *testing.T) {
	f := func(s string, rate float64, wantErr bool) {
		t.Helper()
		if _, err := ParseArrivals(s, rate, time.Second); (err != nil) != wantErr {
			t.Errorf("%s at %v: error %v, want one: %v", s, rate, err, wantErr)
		}
	}
	f("constant", 1, false)
	f("constant:3", 1, true)
	f("poisson", 0, true)
	f("poisson", math.NaN(), true)
	f("poisson", math.Inf(1), true)
	f("burst:10", 1, false)
	f("burst:0", 1, true)
	f("burst", 1, true)
	f("ramp:100", 1, false)
	f("ramp:x", 1, true)
	f("ramp:-1", 1, true)
	f("sometimes", 1, true)
}

func TestMeanRate(t *testing.T) {
	a := Arrivals{Kind: "ramp", Rate: 100, To: 300, Over: 10 * time.Second}
	for d, want := range map[time.Duration]float64{10 * time.Second: 200, 5 * time.Second: 150, 20 * time.Second: 250} {
		if got := a.MeanRate(d); math.Abs(got-want) > 1e-9 {
			t.Errorf("ramp over %v: %v, want %v", d, got, want)
		}
	}
}
