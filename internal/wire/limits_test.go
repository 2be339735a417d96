package wire

// The pace of new connections, as a table over a clock of its own.

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	begin := time.Unix(1000, 0)
	// f asks for n connections at once at each second and tells how many get in.
	f := func(rate, n int, want ...int) {
		t.Helper()
		p := newPace(rate)
		for second, w := range want {
			got := 0
			for range n {
				if p.take(begin.Add(time.Duration(second)*time.Second)) == 0 {
					got++
				}
			}
			if got != w {
				t.Errorf("rate %d, %d asked in second %d: %d got in, want %d", rate, n, second, got, w)
			}
		}
	}
	f(5, 20, 5, 5, 5)
	f(5, 3, 3, 3, 3)
	f(1, 2, 1, 1)
	f(0, 2, 0, 0)
	f(NoLimit, 100, 100, 100)

	p := newPace(2)
	now := begin
	for range 10 { // whoever waits as told gets in, at the rate
		if wait := p.take(now); wait > 0 {
			now = now.Add(wait)
		}
	}
	p.set(0)
	if p.take(now.Add(time.Hour)) == 0 {
		t.Error("a pace set to 0 lets a connection in")
	}
	p.set(10)
	if p.take(now.Add(time.Hour)) != 0 {
		t.Error("a pace raised from 0 lets no connection in")
	}
}
