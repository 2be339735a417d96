package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Shows: a record may be of any time and is still sent, and produce gives up on
// a broker that acknowledges nothing, not on one that is only slow.

func TestProduceOldTimestamps(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t", "u"))
	lines := `{"key":null,"payload":"a","ts":1000}
{"key":null,"payload":"b","ts":1700000000000}
{"key":null,"payload":"c","ts":0}
`
	w.line(0, lines, "produce t -J --timeout 2s")
	again := w.line(0, "", "consume t -e -q -J").out
	w.line(0, again, "produce u -J --timeout 2s")
	var got []int64
	for line := range strings.Lines(w.line(0, "", "consume u -e -q -J").out) {
		var e envelope
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, *e.TS)
	}
	if len(got) != 3 || got[0] != 1000 || got[1] != 1700000000000 || got[2] != 0 {
		t.Errorf("timestamps after two trips: %v", got)
	}
}

func TestProduceGivesUp(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(1, "t"))
	w.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		return nil, errors.New("no answer today"), true
	})
	for _, flags := range []string{"--timeout 1s", "--timeout 1m -X delivery.timeout.ms=1000"} {
		began := time.Now()
		args := append([]string{"produce", "t", "-b", w.servers}, strings.Fields(flags)...)
		// The input does not end by itself: a record that waits ends it.
		r := runIn(context.Background(), &endless{first: "a\nb\n", stop: t.Context().Done()}, args...)
		if took := time.Since(began); r.code != ExitFailed || took > 20*time.Second {
			t.Errorf("%s: exit code %d after %v", flags, r.code, took)
		}
		w.has(flags, r.err, "0 of 2 records acknowledged", "2 not")
	}
}

type endless struct {
	first string
	stop  <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.first != "" {
		n := copy(p, e.first)
		e.first = e.first[n:]
		return n, nil
	}
	<-e.stop
	return 0, context.Canceled
}

func TestPatience(t *testing.T) {
	t0 := time.UnixMilli(1_700_000_000_000)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	over := func(p *patience, s float64, want bool) {
		t.Helper()
		if got := p.over(at(s)); got != want {
			t.Errorf("at %v s: over is %v", s, got)
		}
	}
	p := &patience{quiet: 10 * time.Second, each: 60 * time.Second}
	over(p, 100, false) // nothing waits
	one := p.sent(at(100))
	over(p, 109, false)
	over(p, 110, true)
	two := p.sent(at(105))
	p.settled(at(108), one)
	over(p, 117, false) // something came at 108
	over(p, 118, true)
	p.settled(at(118), two)
	over(p, 1000, false)

	hung := p.sent(at(1000))
	for s := 1000.0; s < 1059; s += 5 { // others go on
		p.settled(at(s+1), p.sent(at(s)))
		over(p, s+2, false)
	}
	p.settled(at(1059), p.sent(at(1058)))
	over(p, 1060, true)
	p.settled(at(1060), hung)
	over(p, 1060, false)

	p = &patience{}
	p.sent(at(0))
	over(p, 1e6, false)
}
