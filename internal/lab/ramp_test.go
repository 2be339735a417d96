package lab

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Shows: which rates a ramp tries, each rule on a series made for it, the order
// of the gates, the knee, and the sentence at the end.

// climb runs a plan against a system that stops above limit.
func climb(p Plan, limit float64) (rates []float64, pass, stop float64) {
	var done []Tried
	for range 100 {
		r, more := p.Next(done)
		if !more {
			break
		}
		rates = append(rates, math.Round(r))
		done = append(done, Tried{r, r > limit})
	}
	pass, stop = limits(done)
	return rates, pass, stop
}

func TestPlans(t *testing.T) {
	f := func(plan string, limit float64, want ...float64) {
		t.Helper()
		p, err := ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := climb(p, limit); !slices.Equal(got, want) {
			t.Errorf("%s with a limit of %v: %v, want %v", plan, limit, got, want)
		}
	}
	f("50k,100k,200k", 1e9, 50e3, 100e3, 200e3)
	f("50k,100k,200k", 60e3, 50e3, 100e3)
	f("50k,100k", 0, 50e3)
	f("1k..5k*2", 1e9, 1000, 2000, 4000, 5000)
	f("1k..5k*2", 2500, 1000, 2000, 4000)
	f("1000..8k", 0, 1000)
	f("1000..1000", 2000, 1000)
	f("1k..4k", 1e9, 1000, 2000, 4000)
	for _, limit := range []float64{1100, 3333, 7999, 63_000} {
		p, _ := ParsePlan("1k..64k")
		rates, pass, stop := climb(p, limit)
		if pass > limit || stop <= limit || stop/pass > 1.05 || len(rates) > 13 {
			t.Errorf("bisecting for %v: between %v and %v after %d steps", limit, pass, stop, len(rates))
		}
	}
	for _, bad := range []string{"", "x", "2k,1k", "0", "-5", "2k..1k", "1k..2k*1", "1k..2k*x", "1..", "1e99"} {
		if _, err := ParsePlan(bad); err == nil {
			t.Errorf("steps %q were taken", bad)
		}
	}
}

func num(v float64) *float64 { return &v }

func TestRules(t *testing.T) {
	lower := []Step{{Offered: 100, P99Us: 4000}, {Offered: 200, P99Us: 5000}, {Offered: 500, P99Us: 6000}}
	good := Step{Offered: 1000, Achieved: 1000, Records: 60_000, P99Us: 6000, Hold: 60, AcksAll: true}
	f := func(change func(*Step), want string) {
		t.Helper()
		s := good
		change(&s)
		var got []string
		for _, x := range Judge(s, lower, Limits{}) {
			if x.Evidence == "" {
				t.Errorf("%s has no evidence", x.Rule)
			}
			word := x.Rule
			if x.Stop {
				word += "!"
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	f(func(*Step) {}, "")
	f(func(s *Step) { s.Errors = map[string]int64{"REQUEST_TIMED_OUT": 1} }, "errors!")
	f(func(s *Step) { s.AcksAll, s.Errors = false, map[string]int64{"REQUEST_TIMED_OUT": 6} }, "errors")
	f(func(s *Step) { s.AcksAll, s.Errors = false, map[string]int64{"REQUEST_TIMED_OUT": 7} }, "errors!")
	f(func(s *Step) { s.UnderReplicated = num(1) }, "replicas")
	f(func(s *Step) { s.UnderReplicated = num(61) }, "replicas!")
	f(func(s *Step) { s.Achieved = 981 }, "")
	f(func(s *Step) { s.Achieved = 979 }, "achieved!") // E-11: not jitter
	f(func(s *Step) { s.Windows = []float64{1000, 970, 1030, 970, 1030} }, "")
	f(func(s *Step) { s.Windows = []float64{1000, 970, 900, 1130, 1000} }, "achieved")
	f(func(s *Step) { s.P99Us = 19_999 }, "") // four times the median, and below 20 ms
	f(func(s *Step) { s.P99Us = 20_000 }, "latency!")
	f(func(s *Step) { s.Lag = []int64{5, 3, 6, 4, 5, 2, 7} }, "")
	f(func(s *Step) { s.Lag = []int64{0, 110, 190, 310, 420, 480} }, "lag!")
	f(func(s *Step) { s.Lag = []int64{0, 1, 2, 3, 4, 5} }, "") // below 1 % of what is offered
	f(func(s *Step) { s.Softirq = num(0.2) }, "")
	f(func(s *Step) { s.Softirq = num(0.21) }, "softirq")
	f(func(s *Step) { s.Softirq = num(0.51) }, "softirq!")
	f(func(s *Step) { s.CoreBusy = num(0.98) }, "")
	f(func(s *Step) { s.CoreBusy = num(1) }, "core!")
	f(func(s *Step) { s.AwaitMs = num(10) }, "")
	f(func(s *Step) { s.AwaitMs = num(11) }, "disk await!")
	f(func(s *Step) { s.AwaitMs, s.Rotational = num(29), true }, "")
	f(func(s *Step) { s.AwaitMs, s.Rotational = num(31), true }, "disk await!")
	f(func(s *Step) { s.Retransmits = num(0.0011) }, "retransmits!")
	f(func(s *Step) { s.SwapPages = num(1) }, "swap!")
	f(func(s *Step) { s.PauseMs = num(201) }, "pauses!")
	f(func(s *Step) { s.GCShare = num(0.26) }, "gc!")
	f(func(s *Step) { s.DiskFree = num(0.09) }, "free disk!")
	f(func(s *Step) { s.FullIn = num(59) }, "time to full!")
	f(func(s *Step) { s.FullIn = num(61) }, "")
	// The order of the gates: errors before replicas before achieved before latency before resources.
	f(func(s *Step) {
		s.SwapPages, s.P99Us, s.Achieved, s.UnderReplicated = num(1), 30_000, 900, num(100)
		s.Errors = map[string]int64{"X": 5}
	}, "errors! replicas! achieved! latency! swap!")
	// Without lower steps there is nothing to compare latency with.
	s := good
	s.P99Us = 1e6
	if got := Judge(s, nil, Limits{}); len(got) != 0 {
		t.Errorf("the first step was judged by latency: %v", got)
	}
	if got := NotMeasured(good); len(got) != 10 {
		t.Errorf("not measured: %v", got)
	}
}

func TestKnee(t *testing.T) {
	rates := []float64{50, 100, 200, 500, 800, 1200, 1500, 2000}
	f := func(ys []float64, want float64) {
		t.Helper()
		got, ok := Knee(rates[:len(ys)], ys)
		if got != want || ok != (want > 0) {
			t.Errorf("%v: knee at %v (%v), want %v", ys, got, ok, want)
		}
	}
	f([]float64{4, 4, 4, 5, 5, 6, 9, 60}, 1500)
	f([]float64{4, 4, 4, 5, 30, 60, 90, 140}, 500)
	f([]float64{4, 4.1, 4, 4.2, 4.1, 4, 4.3, 4.2}, 0)   // flat
	f([]float64{5, 10, 20, 50, 80, 120, 150, 200}, 0)   // a straight line
	f([]float64{5, 60, 90, 110, 120, 125, 130, 132}, 0) // bends the other way
	f([]float64{4, 4, 50}, 0)                           // too few
}

func TestConclude(t *testing.T) {
	steps := []Step{{Offered: 100, Achieved: 100, P99Us: 4000}, {Offered: 200, Achieved: 200, P99Us: 4200},
		{Offered: 400, Achieved: 400, P99Us: 5000}, {Offered: 800, Achieved: 700, P99Us: 90_000}}
	judge := func(steps []Step) [][]Finding {
		var out [][]Finding
		for i, s := range steps {
			out = append(out, Judge(s, steps[:i], Limits{}))
		}
		return out
	}
	o := Conclude(steps, judge(steps))
	if o.Sustainable != 400 || o.StoppedAt != 800 || o.Knee != 400 || len(o.Why) != 2 || o.Text != "sustainable: 400 records/s; 800 did not pass (achieved)" {
		t.Errorf("%+v", o)
	}
	if o := Conclude(steps[:2], judge(steps[:2])); !strings.HasPrefix(o.Text, "every step passed: the limit lies above 200") {
		t.Errorf("%+v", o)
	}
	if o := Conclude(steps[3:], judge(steps[3:])); o.Sustainable != 0 || !strings.HasPrefix(o.Text, "even 800") {
		t.Errorf("%+v", o)
	}
}

func TestCount(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 12.34: "12.3", 999: "999", 1000: "1,000", 1234567.8: "1,234,568", -1500: "-1,500"} {
		if got := Count(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
