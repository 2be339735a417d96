package kafkatools

// Shows: numbers are rounded and drawn as Java does. The expectations are Java's.

import (
	"testing"
	"time"
)

func TestFixed(t *testing.T) {
	f := func(v float64, digits int, want string) {
		t.Helper()
		if got := fixed(v, digits); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	f(0.125, 2, "0.13")
	f(0.375, 2, "0.38")
	f(1.005, 2, "1.01") // the shortest decimal counts, not the binary value
	f(99.995, 2, "100.00")
	f(0, 2, "0.00")
	f(-1.5, 0, "-2")
	f(12345678.9, 1, "12345678.9")
	f(1e21, 1, "1000000000000000000000.0")
	f(2, 6, "2.000000")
}

func TestSplitMix(t *testing.T) {
	r := &splitMix{}
	b := make([]byte, 60)
	if r.letters(b); string(b) != "YQHHNEBSEPDNSEIFGAMSUJXKOLTXSPLGHDIOYZJFNIDSPWHZMKVJAXDBZFCO" {
		t.Errorf("%s", b)
	}
	r = &splitMix{7}
	for i, want := range []int32{696, 553, 53, 521, 205, 107, 191, 569, 684, 844} {
		if got := r.below(1000); got != want {
			t.Errorf("%d: %d, want %d", i, got, want)
		}
	}
	if got := r.below(64); got != 3 {
		t.Errorf("of 64: %d, want 3", got)
	}
}

func TestJavaDate(t *testing.T) {
	at := time.Date(2026, 2, 3, 16, 5, 6, 78e6, time.UTC)
	f := func(pattern, want string) {
		t.Helper()
		if got, err := javaDate(pattern, at); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q %v, want %q", pattern, got, err, want)
		}
	}
	f("yyyy-MM-dd HH:mm:ss:SSS", "2026-02-03 16:05:06:078")
	f("HH:mm", "16:05")
	f("yy/M/d h:mm a", "26/2/3 4:05 PM")
	f("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-02-03T16:05:06Z")
	f("EEE, MMM d ''yy", "Tue, Feb 3 '26")
	f("b", "")
}
