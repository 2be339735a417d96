package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// sizeMax is the largest value: what a Kafka broker takes with the largest
// max.message.bytes people set.
const sizeMax = 64 << 20

// SizeSpec is how large values are: one size, or a mix.
type SizeSpec struct {
	Mix    []SizeShare `json:"mix,omitempty"`
	Median int         `json:"median,omitempty"` // lognormal
	Sigma  float64     `json:"sigma,omitempty"`  // lognormal, of the natural logarithm
	Max    int         `json:"max,omitempty"`    // lognormal: larger ones are cut to this
}

// SizeShare is one size of a mix and its weight.
type SizeShare struct {
	Size   int     `json:"size"`
	Weight float64 `json:"weight"`
}

// OneSize is records of n bytes.
func OneSize(n int) SizeSpec { return SizeSpec{Mix: []SizeShare{{n, 1}}} }

// ParseSizes reads N, a mix SIZE*WEIGHT,SIZE*WEIGHT… or lognormal:MEDIAN:SIGMA:MAX.
func ParseSizes(s string) (SizeSpec, error) {
	bad := func() (SizeSpec, error) {
		return SizeSpec{}, fmt.Errorf("record size %q: write bytes from 0 to %d, a mix such as 200*80,4096*20, or lognormal:MEDIAN:SIGMA:MAX", s, sizeMax)
	}
	if rest, ok := strings.CutPrefix(s, "lognormal:"); ok {
		f := strings.Split(rest, ":")
		if len(f) != 3 {
			return bad()
		}
		median, e1 := strconv.Atoi(f[0])
		sigma, e2 := strconv.ParseFloat(f[1], 64)
		most, e3 := strconv.Atoi(f[2])
		if e1 != nil || e2 != nil || e3 != nil || median < 1 || most < median || most > sizeMax || !(sigma >= 0 && sigma <= 5) {
			return bad()
		}
		return SizeSpec{Median: median, Sigma: sigma, Max: most}, nil
	}
	var out SizeSpec
	for part := range strings.SplitSeq(s, ",") {
		size, weight, has := strings.Cut(strings.TrimSpace(part), "*")
		n, err := strconv.Atoi(size)
		w := 1.0
		if has {
			var werr error
			if w, werr = strconv.ParseFloat(weight, 64); werr != nil || !(w > 0 && w < 1e9) {
				return bad()
			}
		}
		if err != nil || n < 0 || n > sizeMax {
			return bad()
		}
		out.Mix = append(out.Mix, SizeShare{n, w})
	}
	return out, nil
}

// table gives sizes to walk through, in random order, each as often as its weight says.
func (s SizeSpec) table(seed uint64) ([]int, error) {
	const rows = 4096
	if s.Median > 0 {
		r := rand.New(rand.NewPCG(seed, 0x512e5))
		out := make([]int, rows)
		for i := range out {
			out[i] = min(s.Max, max(1, int(math.Round(float64(s.Median)*math.Exp(r.NormFloat64()*s.Sigma)))))
		}
		return out, nil
	}
	if len(s.Mix) == 0 {
		return nil, fmt.Errorf("no record size is given")
	}
	if len(s.Mix) == 1 {
		return []int{s.Mix[0].Size}, nil
	}
	total := 0.0
	for _, m := range s.Mix {
		total += m.Weight
	}
	var out []int
	sum := 0.0
	for _, m := range s.Mix {
		sum += m.Weight
		for until := int(math.Round(sum / total * rows)); len(out) < until; {
			out = append(out, m.Size)
		}
	}
	rand.New(rand.NewPCG(seed, 0x512e5)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// Largest is an upper bound of a value's bytes.
func (s SizeSpec) Largest() int {
	most := s.Max
	for _, m := range s.Mix {
		most = max(most, m.Size)
	}
	return most
}

// String is what ParseSizes reads.
func (s SizeSpec) String() string {
	if s.Median > 0 {
		return fmt.Sprintf("lognormal:%d:%v:%d", s.Median, s.Sigma, s.Max)
	}
	var parts []string
	for _, m := range s.Mix {
		if len(s.Mix) == 1 {
			return strconv.Itoa(m.Size)
		}
		parts = append(parts, fmt.Sprintf("%d*%v", m.Size, m.Weight))
	}
	return strings.Join(parts, ",")
}
