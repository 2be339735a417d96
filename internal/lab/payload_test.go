package lab

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// Shows: each kind compresses as stated; sizes and keys have the stated
// distribution; nothing is allocated per record; records of one batch differ.

func mustPool(t testing.TB, kind, sizes string) *Pool {
	t.Helper()
	spec, err := ParsePayload(kind)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Sizes, err = ParseSizes(sizes); err != nil {
		t.Fatal(err)
	}
	p, err := newPool(spec, 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPayloadRatio(t *testing.T) {
	f := func(kind, codec string, low, high float64) {
		t.Helper()
		for _, sizes := range []string{"1024", "200"} {
			got, err := mustPool(t, kind, sizes).Ratio(codec, 1<<20)
			if err != nil || got < low || got > high {
				t.Errorf("%s of %s bytes under %s: %.3f (%v), want %v to %v", kind, sizes, codec, got, err, low, high)
			}
		}
	}
	f("random", "lz4", 0.999, 1.01)
	f("random", "zstd", 0.999, 1.01) // E-16: a repeated buffer would look absurdly good
	f("letters", "gzip", 0.57, 0.92) // the client's gzip and zstd leave more of letters than zlib does
	f("letters", "lz4", 0.95, 1.01)
	f("text", "zstd", 0.2, 0.5)
	f("text", "lz4", 0.3, 0.8)
	f("json", "zstd", 0.15, 0.45)
	f("zero", "lz4", 0, 0.01)
	f("ratio:0.5", "zstd", 0.48, 0.58)
	f("ratio:0.25", "zstd", 0.23, 0.35)
	f("ratio:1", "zstd", 0.999, 1.01)
	f("text", "none", 1, 1)
	if _, err := mustPool(t, "text", "10").Ratio("lzma", 100); err == nil {
		t.Error("an unknown codec was taken")
	}
}

// 26 letters, equally often: 4.70 bits a byte.
func TestLettersAreEven(t *testing.T) {
	count := map[byte]float64{}
	p := mustPool(t, "letters", "100")
	for _, b := range p.bytes {
		count[b]++
	}
	bits := 0.0
	for _, c := range count {
		share := c / float64(len(p.bytes))
		bits -= share * math.Log2(share)
	}
	if len(count) != 26 || math.Abs(bits-4.70) > 0.01 {
		t.Errorf("%d letters, %.3f bits a byte", len(count), bits)
	}
}

// 200 records of 8,000 bytes are less than the pool: all differ, over its end too.
func TestRecordsOfABatchDiffer(t *testing.T) {
	w := mustPool(t, "random", "8000").Walk(1, 2)
	seen := map[string]bool{}
	for range 200 {
		seen[string(w.Next())] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d of 200 records differ", len(seen))
	}
}

func TestSizes(t *testing.T) {
	w := mustPool(t, "zero", "200*80,4096*20").Walk(0, 1)
	count := map[int]int{}
	for range 40960 {
		count[len(w.Next())]++
	}
	if len(count) != 2 || count[200] < 32700 || count[200] > 32800 {
		t.Errorf("a mix of 80:20 gave %v", count)
	}
	w = mustPool(t, "zero", "lognormal:1000:1:100000").Walk(0, 1)
	var sizes []int
	for range 4096 {
		sizes = append(sizes, len(w.Next()))
	}
	slices.Sort(sizes)
	if m := sizes[2048]; m < 900 || m > 1100 {
		t.Errorf("median of lognormal is %d, want 1000", m)
	}
	if d := math.Log(float64(sizes[3445]) / float64(sizes[2048])); d < 0.9 || d > 1.1 { // 84.1 %: one sigma
		t.Errorf("sigma of lognormal is %.2f, want 1", d)
	}
	for _, bad := range []string{"", "x", "-1", "1*0", "1*x", "99999999999", "lognormal:1", "lognormal:10:1:5", "lognormal:0:1:5", "lognormal:1:9:5", "1,"} {
		if _, err := ParseSizes(bad); err == nil {
			t.Errorf("size %q was taken", bad)
		}
	}
	for _, good := range []string{"0", "100", "100*2,7*1", "lognormal:10:0.5:50"} {
		if s, err := ParseSizes(good); err != nil || s.String() != good {
			t.Errorf("size %q: %q, %v", good, s, err)
		}
	}
}

func TestKeys(t *testing.T) {
	f := func(spec string, n int) map[string]int {
		t.Helper()
		k, err := ParseKeys(spec)
		if err != nil {
			t.Fatal(err)
		}
		table := NewKeyTable(k)
		count := map[string]int{}
		for share := range 2 {
			w := table.Walk(share, 2)
			buf := make([]byte, KeyBytes)
			for range n / 2 {
				count[string(w.Next(buf))]++
			}
		}
		return count
	}
	if c := f("none", 10); c[""] != 10 {
		t.Errorf("none: %v", c)
	}
	if c := f("sequential", 10); len(c) != 10 || c["000000000009"] != 1 {
		t.Errorf("sequential: %v", c)
	}
	if c := f("sequential:5", 10); len(c) != 5 || c["000000000004"] != 2 {
		t.Errorf("sequential:5: %v", c)
	}
	if c := f("uniform:10", 100_000); len(c) != 10 || c["000000000003"] < 9500 || c["000000000003"] > 10500 {
		t.Errorf("uniform:10: %v", c)
	}
	// S=1 over three keys: 6/11, 3/11, 2/11.
	if c := f("zipf:3", 110_000); c["000000000000"] < 59_000 || c["000000000000"] > 61_000 || c["000000000002"] < 19_300 || c["000000000002"] > 20_700 {
		t.Errorf("zipf:3: %v", c)
	}
	for _, bad := range []string{"", "some", "none:1", "uniform", "uniform:0", "uniform:1:2", "zipf:99999999", "zipf:3:9", "zipf:3:x", "sequential:x"} {
		if _, err := ParseKeys(bad); err == nil {
			t.Errorf("keys %q were taken", bad)
		}
	}
}

func TestRecordsAllocateNothing(t *testing.T) {
	w := mustPool(t, "json", "100*1,300*2").Walk(0, 1)
	k, _ := ParseKeys("zipf:1000")
	keys := NewKeyTable(k).Walk(0, 1)
	s := Arrivals{Kind: "poisson", Rate: 1000}.Schedule(0, 1)
	buf := make([]byte, KeyBytes)
	if n := testing.AllocsPerRun(1000, func() {
		_ = w.Next()
		_ = keys.Next(buf)
		_, _ = s.Next()
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func TestLines(t *testing.T) {
	p, err := NewPool(PayloadSpec{Kind: "lines", Lines: [][]byte{[]byte("a"), []byte("bcd")}})
	if err != nil || p.MeanSize() != 2 {
		t.Fatal(p, err)
	}
	w := p.Walk(0, 1)
	if got := [][]byte{w.Next(), w.Next(), w.Next()}; !bytes.Equal(got[1], []byte("bcd")) || !bytes.Equal(got[2], []byte("a")) {
		t.Errorf("%q", got)
	}
	if _, err := NewPool(PayloadSpec{Kind: "lines"}); err == nil {
		t.Error("no lines were taken")
	}
}
