package lab

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMax is the largest latency with a place in the histogram, 10 minutes
// in microseconds. Larger ones are counted apart and are never cut to this.
const latencyMax = 600_000_000

// Latency is an HDR histogram of microseconds, three digits, with what the
// histogram does not hold: the exact maximum, the exact sum, and how many
// values lay above its range. About 170 KiB. Not for several goroutines.
type Latency struct {
	h    *hdrhistogram.Histogram
	over int64
	most int64
	sum  int64
}

// NewLatency makes an empty one.
func NewLatency() *Latency { return &Latency{h: hdrhistogram.New(1, latencyMax, 3)} }

// Record adds one value; less than a microsecond counts as one.
func (l *Latency) Record(d time.Duration) { l.RecordUs(d.Microseconds()) }

// RecordUs adds one value in microseconds.
func (l *Latency) RecordUs(us int64) {
	us = max(us, 1)
	l.most = max(l.most, us)
	l.sum += us
	if us > latencyMax || l.h.RecordValue(us) != nil {
		l.over++
	}
}

// N is how many values were recorded, those over the range included.
func (l *Latency) N() int64 { return l.h.TotalCount() + l.over }

// Max is the largest value, exact, in microseconds; 0 without values.
func (l *Latency) Max() int64 { return l.most }

// Mean is exact, in microseconds; 0 without values.
func (l *Latency) Mean() float64 {
	if l.N() == 0 {
		return 0
	}
	return float64(l.sum) / float64(l.N())
}

// Merge adds the values of o, which is left as it is.
func (l *Latency) Merge(o *Latency) {
	l.over += o.over + l.h.Merge(o.h)
	l.most = max(l.most, o.most)
	l.sum += o.sum
}

// Reset empties it.
func (l *Latency) Reset() {
	l.h.Reset()
	l.over, l.most, l.sum = 0, 0, 0
}

// Quantile is the value in microseconds that a share q of all values does not
// exceed, to three digits. Values over the range stand at the exact maximum. ok
// is false when fewer than ten values lie beyond q: so few carry no such
// percentile.
func (l *Latency) Quantile(q float64) (us int64, ok bool) {
	n := l.N()
	if n == 0 {
		return 0, false
	}
	in := l.h.TotalCount()
	if rank := q * float64(n); rank > float64(in) {
		us = l.most
	} else {
		us = min(l.most, l.h.ValueAtQuantile(100*rank/float64(in)))
	}
	return us, carries(n, q)
}

// carries says whether n values carry the percentile q: n >= 10 / (1-q). The
// small slack lets 1,000 values carry 99 % in floating point.
func carries(n int64, q float64) bool { return float64(n)*(1-q) >= 10-1e-6 }

// Summary is what a report shows of a histogram, with the histogram itself so
// that results can be merged later. Percentiles that n does not carry are nil.
type Summary struct {
	N       int64   `json:"n"`
	MeanUs  float64 `json:"mean_us"`
	P50Us   *int64  `json:"p50_us,omitempty"`
	P90Us   *int64  `json:"p90_us,omitempty"`
	P95Us   *int64  `json:"p95_us,omitempty"`
	P99Us   *int64  `json:"p99_us,omitempty"`
	P999Us  *int64  `json:"p999_us,omitempty"`
	P9999Us *int64  `json:"p9999_us,omitempty"`
	MaxUs   int64   `json:"max_us"`
	Over    int64   `json:"over_range,omitempty"` // values above 10 minutes
	Hdr     string  `json:"hdr,omitempty"`        // HDR histogram, V2 compressed, base64
}

// Percentile is one of Summary's with its name.
type Percentile struct {
	Name string
	Q    float64
	Us   *int64
}

// Percentiles are the ones of the summary in ascending order, those it does not carry with nil.
func (s Summary) Percentiles() []Percentile {
	return []Percentile{{"p50", 0.5, s.P50Us}, {"p90", 0.9, s.P90Us}, {"p95", 0.95, s.P95Us}, {"p99", 0.99, s.P99Us},
		{"p99.9", 0.999, s.P999Us}, {"p99.99", 0.9999, s.P9999Us}}
}

// Summary of what was recorded, with the histogram encoded when encode is set.
func (l *Latency) Summary(encode bool) Summary {
	s := Summary{N: l.N(), MeanUs: l.Mean(), MaxUs: l.most, Over: l.over}
	for q, to := range map[float64]**int64{0.5: &s.P50Us, 0.9: &s.P90Us, 0.95: &s.P95Us, 0.99: &s.P99Us, 0.999: &s.P999Us, 0.9999: &s.P9999Us} {
		if v, ok := l.Quantile(q); ok {
			*to = &v
		}
	}
	if encode && s.N > 0 {
		b, err := l.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			panic(fmt.Sprintf("BUG: a histogram cannot be encoded: %v", err))
		}
		s.Hdr = string(b)
	}
	return s
}

// MergeSummaries joins runs by their histograms; percentiles are never averaged.
// It fails when one has values and no histogram, or a broken one.
func MergeSummaries(all ...Summary) (*Latency, error) {
	out := NewLatency()
	for i, s := range all {
		if s.N == 0 {
			continue
		}
		if s.Hdr == "" {
			return nil, fmt.Errorf("result %d has percentiles and no histogram: they cannot be merged, and their mean would be wrong", i+1)
		}
		if _, err := base64.StdEncoding.DecodeString(s.Hdr); err != nil {
			return nil, fmt.Errorf("result %d: the histogram is not base64: %w", i+1, err)
		}
		h, err := hdrhistogram.Decode([]byte(s.Hdr))
		if err != nil {
			return nil, fmt.Errorf("result %d: the histogram cannot be read: %w", i+1, err)
		}
		if h.TotalCount()+s.Over != s.N {
			return nil, fmt.Errorf("result %d says it has %d values, and its histogram has %d", i+1, s.N, h.TotalCount()+s.Over)
		}
		out.Merge(&Latency{h: h, over: s.Over, most: s.MaxUs, sum: int64(s.MeanUs * float64(s.N))})
	}
	return out, nil
}

// Book is the latency of one producer's records from three beginnings.
type Book struct {
	Service  *Latency // from the send to the acknowledgement
	Queue    *Latency // from the due time to the send: the generator's or the client's own queue
	Intended *Latency // from the due time to the acknowledgement: what a user waited
	Failed   *Latency // of records that were not acknowledged, from the due time to the refusal
}

// NewBook makes an empty one, about 700 KiB.
func NewBook() *Book { return &Book{NewLatency(), NewLatency(), NewLatency(), NewLatency()} }

func (b *Book) merge(o *Book) {
	b.Service.Merge(o.Service)
	b.Queue.Merge(o.Queue)
	b.Intended.Merge(o.Intended)
	if o.Failed.N() > 0 {
		b.Failed.Merge(o.Failed)
	}
}

func (b *Book) reset() {
	b.Service.Reset()
	b.Queue.Reset()
	b.Intended.Reset()
	if b.Failed.N() > 0 {
		b.Failed.Reset()
	}
}

// WithFailed is Intended with the failed records at the time they took to fail,
// so that a refusal never makes a percentile better.
func (b *Book) WithFailed() *Latency {
	l := NewLatency()
	l.Merge(b.Intended)
	l.Merge(b.Failed)
	return l
}
