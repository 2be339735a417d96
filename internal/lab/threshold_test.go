package lab

import (
	"strings"
	"testing"
)

// Shows: which conditions are read, and that one whose figure is missing fails the run.
func TestChecks(t *testing.T) {
	figures := Figures{"p99": 21_000, "service.p99.9": 500, "rate": 49_999, "errors": 0, "error_share": 0.02}
	f := func(text string, wantBroken bool, say string) {
		t.Helper()
		c, err := ParseCheck(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if got, broken := c.Broken(figures); broken != wantBroken || !strings.Contains(got, say) {
			t.Errorf("%s: %q, broken %v", text, got, broken)
		}
	}
	f("p99 > 20ms", true, "21.0 ms")
	f("p99>=21ms", true, "21.0 ms")
	f("p99 > 0.021s", false, "21.0 ms")
	f("service.p99.9 > 400us", true, "0.50 ms")
	f("rate < 50000", true, "49,999")
	f("errors > 0", false, "it is 0")
	f("error_share > 1%", true, "it is 0.0")
	f("p99.99 > 1s", true, "too few records")
	f("e2e.p99 > 1s", true, "too few records")
	f("lost > 0", true, "no such figure")
	for _, bad := range []string{"", "p99", "p99 > 20", "p99 > 20 parsecs", "p98 > 1ms", "rate < 5ms", "latency > 1ms", "p99 = 1ms", "rate < 1.2.3"} {
		if _, err := ParseCheck(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParseCheck(f *testing.F) {
	f.Add("p99 > 20ms")
	f.Add("error_share >= 1%")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCheck(s)
		if err != nil {
			return
		}
		again, err := ParseCheck(c.Text)
		if err != nil || again != c {
			t.Errorf("%q was read as %+v, and then as %+v (%v)", s, c, again, err)
		}
	})
}
