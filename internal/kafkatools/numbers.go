package kafkatools

import (
	"math"
	"strconv"
	"strings"
)

// fixed is v with digits behind the point as Java's %.Nf gives it: the shortest
// decimal that is v, with a half rounded up. Go's rounds the binary value.
func fixed(v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) > digits {
		up := frac[digits] >= '5'
		n := []byte(whole + frac[:digits])
		for i := len(n) - 1; up && i >= 0; i-- {
			if n[i]++; n[i] <= '9' {
				up = false
			} else {
				n[i] = '0'
			}
		}
		if up {
			n = append([]byte{'1'}, n...)
		}
		whole, frac = string(n[:len(n)-digits]), string(n[len(n)-digits:])
	}
	frac += strings.Repeat("0", digits-len(frac))
	if digits > 0 {
		whole += "." + frac
	}
	if math.Signbit(v) {
		return "-" + whole
	}
	return whole
}

// splitMix is Java's SplittableRandom, so that payloads are those of Kafka's tool.
type splitMix struct{ seed uint64 }

const goldenGamma = 0x9e3779b97f4a7c15

func (r *splitMix) next() uint32 {
	r.seed += goldenGamma
	z := r.seed
	z = (z ^ z>>33) * 0x62a9d9ed799705f5
	return uint32((z ^ z>>28) * 0xcb24d0a5c88c35b3 >> 32)
}

// below gives a number from 0 to bound-1; bound > 0.
func (r *splitMix) below(bound int32) int32 {
	n := r.next()
	m := bound - 1
	if bound&m == 0 {
		return int32(n) & m
	}
	for {
		u := int32(n >> 1)
		v := u % bound
		if u+m-v >= 0 {
			return v
		}
		n = r.next()
	}
}

// letters fills b with letters from A to Z, one number for each.
func (r *splitMix) letters(b []byte) {
	for i := range b {
		b[i] = 'A' + byte(r.below(26))
	}
}
