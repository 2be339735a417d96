package lab

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Shows: percentiles are within the three digits of the exact ones and are
// given only as far as n carries; merging encoded histograms is the same as
// recording into one; what is over the range is told and not cut.

func TestLatencyIsExactToThreeDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := NewLatency()
	var exact []int64
	for range 100_000 {
		us := int64(math.Exp(r.NormFloat64()*1.5 + 7))
		exact = append(exact, max(us, 1))
		l.RecordUs(us)
	}
	slices.Sort(exact)
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999, 0.9999} {
		got, ok := l.Quantile(q)
		want := exact[int(math.Ceil(q*100_000))-1]
		if !ok || math.Abs(float64(got-want)) > 0.001*float64(want)+1 {
			t.Errorf("%v: %d us, want %d us", q, got, want)
		}
	}
	if l.Max() != exact[len(exact)-1] {
		t.Errorf("max %d, want %d exactly", l.Max(), exact[len(exact)-1])
	}
}

// E-06: p99.9 of 100 records is no percentile.
func TestPercentilesGoAsFarAsNCarries(t *testing.T) {
	f := func(n int, want ...string) {
		t.Helper()
		l := NewLatency()
		for i := range n {
			l.RecordUs(int64(i + 1))
		}
		var got []string
		for _, p := range l.Summary(false).Percentiles() {
			if p.Us != nil {
				got = append(got, p.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d records: %v, want %v", n, got, want)
		}
	}
	f(0)
	f(19)
	f(20, "p50")
	f(100, "p50", "p90")
	f(999, "p50", "p90", "p95")
	f(1000, "p50", "p90", "p95", "p99")
	f(10_000, "p50", "p90", "p95", "p99", "p99.9")
	f(100_000, "p50", "p90", "p95", "p99", "p99.9", "p99.99")
}

func TestLatencyOverRange(t *testing.T) {
	l := NewLatency()
	for range 80 {
		l.Record(time.Millisecond)
	}
	for range 20 {
		l.Record(time.Hour)
	}
	s := l.Summary(true)
	if s.N != 100 || s.Over != 20 || s.MaxUs != 3_600_000_000 {
		t.Errorf("%+v", s)
	}
	if *s.P50Us != 1000 || *s.P90Us != 3_600_000_000 {
		t.Errorf("p50 %d, p90 %d: what is over the range must stand in the percentiles", *s.P50Us, *s.P90Us)
	}
	back, err := MergeSummaries(s, s)
	if err != nil || back.N() != 200 || back.over != 40 || back.Max() != l.Max() {
		t.Errorf("merged: %d values, %d over, %v", back.N(), back.over, err)
	}
}

// E-25: agents' percentiles are merged by their histograms. A fast and a slow
// half have a p90 that no mean of theirs is.
func TestMergeIsNotAverage(t *testing.T) {
	fast, slow, both := NewLatency(), NewLatency(), NewLatency()
	for i := range 1000 {
		fast.RecordUs(int64(100 + i%10))
		slow.RecordUs(int64(90_000 + i*10))
		both.RecordUs(int64(100 + i%10))
		both.RecordUs(int64(90_000 + i*10))
	}
	merged, err := MergeSummaries(fast.Summary(true), slow.Summary(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []float64{0.5, 0.75, 0.9, 0.99} {
		a, _ := merged.Quantile(q)
		if b, _ := both.Quantile(q); a != b {
			t.Errorf("%v: merged %d, recorded together %d", q, a, b)
		}
	}
	if math.Abs(merged.Mean()-both.Mean()) > 1 {
		t.Errorf("mean %v, want %v", merged.Mean(), both.Mean())
	}
	s := fast.Summary(false)
	if _, err := MergeSummaries(s, slow.Summary(true)); err == nil || !strings.Contains(err.Error(), "no histogram") {
		t.Errorf("percentiles without a histogram were merged: %v", err)
	}
	s.Hdr = "HISTFAAA"
	if _, err := MergeSummaries(s); err == nil {
		t.Error("a broken histogram was merged")
	}
	s = fast.Summary(true)
	s.N++
	if _, err := MergeSummaries(s); err == nil {
		t.Error("a wrong count was merged")
	}
}

func TestFailedRecordsStandInTheirView(t *testing.T) {
	b := NewBook()
	for range 900 {
		b.Intended.Record(time.Millisecond)
	}
	for range 100 {
		b.Failed.Record(30 * time.Second)
	}
	if p, _ := b.Intended.Quantile(0.95); p != 1000 {
		t.Errorf("p95 of what succeeded: %d us", p)
	}
	if p, _ := b.WithFailed().Quantile(0.95); p < 29_900_000 {
		t.Errorf("p95 with what failed: %d us, want 30 s", p)
	}
}
