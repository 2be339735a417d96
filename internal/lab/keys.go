package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
)

// KeySpec says which keys records have.
type KeySpec struct {
	Kind string  `json:"kind"`        // none, uniform, zipf, sequential
	N    int64   `json:"n,omitempty"` // how many different keys; sequential: 0 never begins anew
	S    float64 `json:"s,omitempty"` // zipf: key number k is 1/k^S as frequent as the first
	Seed uint64  `json:"seed,omitempty"`
}

// zipfMax bounds the table of a Zipf distribution (8 bytes a key).
const zipfMax = 1 << 22

// ParseKeys reads none, uniform:N, zipf:N, zipf:N:S, sequential or sequential:N.
func ParseKeys(s string) (KeySpec, error) {
	f := strings.Split(s, ":")
	k := KeySpec{Kind: f[0], Seed: 1}
	bad := func() (KeySpec, error) {
		return k, fmt.Errorf("keys %q: want none, uniform:N, zipf:N, zipf:N:S (N at most %d, S from 0 to 5), sequential or sequential:N", s, zipfMax)
	}
	if len(f) > 1 {
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 1 {
			return bad()
		}
		k.N = n
	}
	switch {
	case k.Kind == "none" && len(f) == 1, k.Kind == "uniform" && len(f) == 2, k.Kind == "sequential" && len(f) <= 2:
		return k, nil
	case k.Kind == "zipf" && (len(f) == 2 || len(f) == 3) && k.N <= zipfMax:
		k.S = 1
		if len(f) == 3 {
			var err error
			if k.S, err = strconv.ParseFloat(f[2], 64); err != nil || !(k.S >= 0 && k.S <= 5) {
				return bad()
			}
		}
		return k, nil
	}
	return bad()
}

// KeyTable is what the keys of all producers share; only read.
type KeyTable struct {
	spec KeySpec
	zipf *zipf
}

// NewKeyTable makes the table.
func NewKeyTable(spec KeySpec) *KeyTable {
	t := &KeyTable{spec: spec}
	if spec.Kind == "zipf" {
		t.zipf = newZipf(int(spec.N), spec.S)
	}
	return t
}

// KeyWalk gives one producer's keys. Not for several goroutines.
type KeyWalk struct {
	t      *KeyTable
	random *rand.Rand
	k      int64
	step   int64
}

// Walk begins share number share of of.
func (t *KeyTable) Walk(share, of int) *KeyWalk {
	return &KeyWalk{t: t, random: rand.New(rand.NewPCG(t.spec.Seed, uint64(share))), k: int64(share), step: int64(of)}
}

// KeyBytes is the length of every key: the number in decimal, so that people can read it.
const KeyBytes = 12

// Next writes the next key over dst, which has room for KeyBytes, and gives it; nil: no key.
func (w *KeyWalk) Next(dst []byte) []byte {
	var n int64
	switch w.t.spec.Kind {
	case "none", "":
		return nil
	case "uniform":
		n = w.random.Int64N(w.t.spec.N)
	case "zipf":
		n = int64(w.t.zipf.index(w.random.Float64()))
	case "sequential":
		n = w.k
		w.k += w.step
		if w.t.spec.N > 0 {
			n %= w.t.spec.N
		}
	}
	dst = dst[:KeyBytes]
	for i := KeyBytes - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

// zipf is the distribution as running sums.
type zipf struct{ sums []float64 }

func newZipf(n int, s float64) *zipf {
	z := &zipf{sums: make([]float64, n)}
	total := 0.0
	for i := range z.sums {
		total += math.Pow(float64(i+1), -s)
		z.sums[i] = total
	}
	for i := range z.sums {
		z.sums[i] /= total
	}
	return z
}

// index of a u from [0, 1).
func (z *zipf) index(u float64) int {
	return min(len(z.sums)-1, sort.Search(len(z.sums), func(i int) bool { return z.sums[i] > u }))
}
