package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Step is what one step of a ramp showed. A pointer that is nil was not
// measured, and its rule says so instead of passing in silence.
type Step struct {
	Offered  float64          `json:"offered"` // records per second
	Achieved float64          `json:"achieved"`
	Windows  []float64        `json:"achieved_windows,omitempty"` // achieved in each second of the hold
	Records  int64            `json:"records"`                    // acknowledged and failed
	Errors   map[string]int64 `json:"errors,omitempty"`
	AcksAll  bool             `json:"acks_all"`
	P99Us    float64          `json:"p99_us,omitempty"` // intended; 0: not carried
	Hold     float64          `json:"hold_s"`

	UnderReplicated *float64 `json:"under_replicated_s,omitempty"` // seconds with a partition short of replicas
	Softirq         *float64 `json:"softirq_core_max,omitempty"`   // share of the busiest core, from 0 to 1
	CoreBusy        *float64 `json:"core_busy_max,omitempty"`      // share of the busiest core
	AwaitMs         *float64 `json:"disk_await_ms,omitempty"`
	Rotational      bool     `json:"disk_rotational,omitempty"`
	Lag             []int64  `json:"lag,omitempty"`               // of the consumers, each second; empty: none take part
	Retransmits     *float64 `json:"retransmit_share,omitempty"`  // of segments sent
	SwapPages       *float64 `json:"swap_pages_per_s,omitempty"`  // in and out
	PauseMs         *float64 `json:"gc_pause_ms,omitempty"`       // the longest, of a JVM
	GCShare         *float64 `json:"gc_cpu_share,omitempty"`      // of a Go process
	DiskFree        *float64 `json:"disk_free_share,omitempty"`   // of the fullest disk
	FullIn          *float64 `json:"disk_full_in_s,omitempty"`    // at this step's rate
	Limited         string   `json:"generator_limited,omitempty"` // why the generator itself was the limit
}

// Finding is a rule that spoke.
type Finding struct {
	Rule      string  `json:"rule"`
	Stop      bool    `json:"stop"` // false: caution
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Evidence  string  `json:"evidence"`
}

// Limits are the thresholds of the rules; zero fields stand for the defaults.
type Limits struct {
	UnderReplicated float64 // seconds, 60
	ErrorShare      float64 // of records, without acks=all, 0.0001
	AchievedShare   float64 // 0.98
	P99Factor       float64 // over the median of the lower steps, 3
	P99FloorUs      float64 // and above this, 20,000
	SoftirqCaution  float64 // 0.2
	SoftirqStop     float64 // 0.5
	AwaitMs         float64 // 10; 30 on rotational disks
	Retransmits     float64 // 0.001
	PauseMs         float64 // 200
	GCShare         float64 // 0.25
	DiskFree        float64 // 0.1
}

func (l Limits) withDefaults() Limits {
	set := func(p *float64, v float64) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.UnderReplicated, 60)
	set(&l.ErrorShare, 0.0001)
	set(&l.AchievedShare, 0.98)
	set(&l.P99Factor, 3)
	set(&l.P99FloorUs, 20_000)
	set(&l.SoftirqCaution, 0.2)
	set(&l.SoftirqStop, 0.5)
	set(&l.AwaitMs, 10)
	set(&l.Retransmits, 0.001)
	set(&l.PauseMs, 200)
	set(&l.GCShare, 0.25)
	set(&l.DiskFree, 0.1)
	return l
}

// rules in the order of the gates: errors, replicas, achieved, latency, resources.
var rules = []func(s Step, lower []Step, l Limits) (Finding, bool){
	errorRule, replicaRule, achievedRule, latencyRule, lagRule, softirqRule, coreRule, awaitRule, retransmitRule,
	swapRule, pauseRule, gcRule, diskRule, fullRule,
}

// Judge asks every rule about a step; lower are the steps of lower rates. The
// first finding that stops is the one to name.
func Judge(s Step, lower []Step, l Limits) []Finding {
	l = l.withDefaults()
	var out []Finding
	for _, rule := range rules {
		if f, spoke := rule(s, lower, l); spoke {
			out = append(out, f)
		}
	}
	return out
}

// Stops says whether a finding stops the ramp.
func Stops(fs []Finding) bool { return slices.ContainsFunc(fs, func(f Finding) bool { return f.Stop }) }

// NotMeasured names the rules that had nothing to look at.
func NotMeasured(s Step) []string {
	var out []string
	for _, r := range []struct {
		name string
		v    *float64
	}{{"replicas", s.UnderReplicated}, {"softirq", s.Softirq}, {"core", s.CoreBusy}, {"disk await", s.AwaitMs}, {"retransmits", s.Retransmits},
		{"swap", s.SwapPages}, {"pauses", s.PauseMs}, {"gc", s.GCShare}, {"free disk", s.DiskFree}, {"time to full", s.FullIn}} {
		if r.v == nil {
			out = append(out, r.name)
		}
	}
	if s.P99Us == 0 {
		out = append(out, "latency")
	}
	return out
}

func errorRule(s Step, _ []Step, l Limits) (Finding, bool) {
	var n int64
	var names []string
	for _, code := range slices.Sorted(maps.Keys(s.Errors)) {
		n += s.Errors[code]
		names = append(names, fmt.Sprintf("%s %d", code, s.Errors[code]))
	}
	if n == 0 {
		return Finding{}, false
	}
	share, limit := float64(n)/float64(max(s.Records, n)), l.ErrorShare
	if s.AcksAll {
		limit = 0
	}
	return Finding{"errors", share > limit, share, limit,
		fmt.Sprintf("%d of %d records were not acknowledged: %s", n, max(s.Records, n), strings.Join(names, ", "))}, true
}

func replicaRule(s Step, _ []Step, l Limits) (Finding, bool) {
	if s.UnderReplicated == nil || *s.UnderReplicated <= 0 {
		return Finding{}, false
	}
	v := *s.UnderReplicated
	return Finding{"replicas", v > l.UnderReplicated, v, l.UnderReplicated,
		fmt.Sprintf("partitions were short of in-sync replicas for %.0f s", v)}, true
}

// achievedRule: two windows in a row below the share, or the whole step.
func achievedRule(s Step, _ []Step, l Limits) (Finding, bool) {
	want := l.AchievedShare * s.Offered
	missed, row, low := 0, 0, math.Inf(1)
	for _, w := range s.Windows {
		if w < want {
			missed++
			low = min(low, w)
		} else {
			missed = 0
		}
		row = max(row, missed)
	}
	share := s.Achieved / s.Offered
	generator := ""
	if s.Limited != "" {
		generator = "; the generator itself was the limit: " + s.Limited
	}
	switch {
	case share < l.AchievedShare:
		return Finding{"achieved", true, share, l.AchievedShare,
			fmt.Sprintf("%s of %s records/s were reached%s", Count(s.Achieved), Count(s.Offered), generator)}, true
	case row >= 2:
		return Finding{"achieved", false, low / s.Offered, l.AchievedShare,
			fmt.Sprintf("%d windows in a row stayed below, the lowest at %s records/s, and were made up for%s", row, Count(low), generator)}, true
	}
	return Finding{}, false
}

func latencyRule(s Step, lower []Step, l Limits) (Finding, bool) {
	var base []float64
	for _, b := range lower {
		if b.P99Us > 0 && b.Offered < s.Offered {
			base = append(base, b.P99Us)
		}
	}
	if s.P99Us == 0 || len(base) == 0 {
		return Finding{}, false
	}
	m := Median(base)
	limit := max(l.P99Factor*m, l.P99FloorUs)
	if s.P99Us < limit {
		return Finding{}, false
	}
	return Finding{"latency", true, s.P99Us, limit,
		fmt.Sprintf("p99 is %.1f ms, %.1f times the %.1f ms of the lower steps", s.P99Us/1000, s.P99Us/m, m/1000)}, true
}

// lagRule: the slope must be significant and more than 1 % of what is offered.
func lagRule(s Step, _ []Step, _ Limits) (Finding, bool) {
	ys := make([]float64, len(s.Lag))
	for i, v := range s.Lag {
		ys[i] = float64(v)
	}
	if len(ys) < 5 {
		return Finding{}, false
	}
	perStep, t := slope(ys)
	if t <= tQuantile(0.975, float64(len(ys)-2)) || perStep <= 0.01*s.Offered {
		return Finding{}, false
	}
	return Finding{"lag", true, perStep, 0.01 * s.Offered,
		fmt.Sprintf("the consumers fell behind by %s records/s, from %d to %d", Count(perStep), s.Lag[0], s.Lag[len(s.Lag)-1])}, true
}

func softirqRule(s Step, _ []Step, l Limits) (Finding, bool) {
	if s.Softirq == nil || *s.Softirq <= l.SoftirqCaution {
		return Finding{}, false
	}
	v := *s.Softirq
	f := Finding{"softirq", v > l.SoftirqStop, v, l.SoftirqCaution, fmt.Sprintf("one core spent %.0f %% of its time in softirq", 100*v)}
	if f.Stop {
		f.Threshold = l.SoftirqStop
	}
	return f, true
}

func coreRule(s Step, _ []Step, _ Limits) (Finding, bool) {
	if s.CoreBusy == nil || *s.CoreBusy < 0.995 {
		return Finding{}, false
	}
	return Finding{"core", true, *s.CoreBusy, 0.995, "one core was busy all the time"}, true
}

func awaitRule(s Step, _ []Step, l Limits) (Finding, bool) {
	limit, kind := l.AwaitMs, "flash"
	if s.Rotational {
		limit, kind = 3*l.AwaitMs, "rotational"
	}
	if s.AwaitMs == nil || *s.AwaitMs <= limit {
		return Finding{}, false
	}
	return Finding{"disk await", true, *s.AwaitMs, limit, fmt.Sprintf("a request to the %s disk took %.1f ms in the mean", kind, *s.AwaitMs)}, true
}

func retransmitRule(s Step, _ []Step, l Limits) (Finding, bool) {
	if s.Retransmits == nil || *s.Retransmits <= l.Retransmits {
		return Finding{}, false
	}
	return Finding{"retransmits", true, *s.Retransmits, l.Retransmits, fmt.Sprintf("%.2f %% of TCP segments were sent again", 100**s.Retransmits)}, true
}

func swapRule(s Step, _ []Step, _ Limits) (Finding, bool) {
	if s.SwapPages == nil || *s.SwapPages <= 0 {
		return Finding{}, false
	}
	return Finding{"swap", true, *s.SwapPages, 0, fmt.Sprintf("%.0f pages/s were swapped", *s.SwapPages)}, true
}

func pauseRule(s Step, _ []Step, l Limits) (Finding, bool) {
	if s.PauseMs == nil || *s.PauseMs <= l.PauseMs {
		return Finding{}, false
	}
	return Finding{"pauses", true, *s.PauseMs, l.PauseMs, fmt.Sprintf("the garbage collector stopped the broker for %.0f ms", *s.PauseMs)}, true
}

func gcRule(s Step, _ []Step, l Limits) (Finding, bool) {
	if s.GCShare == nil || *s.GCShare <= l.GCShare {
		return Finding{}, false
	}
	return Finding{"gc", true, *s.GCShare, l.GCShare, fmt.Sprintf("%.0f %% of the broker's CPU went to garbage collection", 100**s.GCShare)}, true
}

func diskRule(s Step, _ []Step, l Limits) (Finding, bool) {
	if s.DiskFree == nil || *s.DiskFree >= l.DiskFree {
		return Finding{}, false
	}
	return Finding{"free disk", true, *s.DiskFree, l.DiskFree, fmt.Sprintf("%.1f %% of the disk are free", 100**s.DiskFree)}, true
}

func fullRule(s Step, _ []Step, _ Limits) (Finding, bool) {
	if s.FullIn == nil || *s.FullIn >= s.Hold {
		return Finding{}, false
	}
	return Finding{"time to full", true, *s.FullIn, s.Hold, fmt.Sprintf("at this rate the disk is full in %.0f s, before a step of %.0f s ends", *s.FullIn, s.Hold)}, true
}
