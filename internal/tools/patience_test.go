package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
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

// The reason that a broker gives again and again is told, not only that it took
// too long.
func TestProduceTellsWhy(t *testing.T) {
	w := newWorld(t, kfake.SeedTopics(2, "t"))
	w.cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.(*kmsg.ProduceRequest).Topics {
			st := kmsg.NewProduceResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition, sp.BaseOffset, sp.ErrorCode = rp.Partition, -1, kerr.KafkaStorageError.Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	r := runIn(context.Background(), strings.NewReader("a\nb\n"), "produce", "t", "-p", "1", "-b", w.servers, "--timeout", "1s")
	if r.code != ExitFailed {
		t.Errorf("exit code %d", r.code)
	}
	w.has("storage", r.err, "0 of 2 records acknowledged", "(KAFKA_STORAGE_ERROR 2)", "record 1: KAFKA_STORAGE_ERROR: ")
}

func TestRefusals(t *testing.T) {
	f := func(want string, to ...string) {
		t.Helper()
		var r refusals
		for _, s := range to {
			r.Log(kgo.LogLevelDebug, "produced", "broker", "0", "to", s)
		}
		r.Log(kgo.LogLevelDebug, "wrote", "to", "t[0{retrying@-1,1(NOT_ENOUGH_REPLICAS: x)}]")
		got := errorName(r.of(0))
		if got != want {
			t.Errorf("%q: got %q, want %q", to, got, want)
		}
	}
	f("")
	f("KAFKA_STORAGE_ERROR", "t[0{retrying@-1,1(KAFKA_STORAGE_ERROR: Disk error.)}, 1{0=>1}]")
	f("", "t[1{retrying@-1,1(KAFKA_STORAGE_ERROR: Disk error.)}, 0{0=>1}]")
	f("", "t[0{retrying@-1,1(KAFKA_STORAGE_ERROR: Disk error.)}]", "t[0{7=>8}]")
	f("NOT_ENOUGH_REPLICAS", "t[0{7=>8}, 1{7=>9}]", "t[1{1=>2}, 0{retrying@-1,12(NOT_ENOUGH_REPLICAS: few)}]")
	f("", "t[0{retrying@-1,1(NO_SUCH_NAME: x)}]", "t[0{", "", "t[0{skipped@1}]")
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
	now := 0.0
	until := func(p *patience, s float64, want bool) { // looks every 0.1 s until then
		t.Helper()
		got := false
		for ; now < s; now += 0.1 {
			got = got || p.over(t0.Add(time.Duration(now*float64(time.Second))))
		}
		if got != want {
			t.Errorf("until %v s: over is %v", s, got)
		}
	}
	p := newPatience(10*time.Second, 60*time.Second, t0)
	until(p, 100, false) // nothing waits
	one := p.send()
	until(p, 105, false)
	two := p.send()
	until(p, 108, false)
	p.settle(one)
	until(p, 117, false) // something came at 108
	until(p, 119, true)
	p.settle(two)
	until(p, 1000, false)

	hung := p.send()
	for s := 1000.0; s < 1054; s += 5 { // others go on
		c := p.send()
		until(p, s+3, false)
		p.settle(c)
		until(p, s+5, false)
	}
	until(p, 1061, true)
	p.settle(hung)
	until(p, 1100, false)
	if n := len(p.cohorts); n > 3 {
		t.Errorf("%d cohorts are kept", n)
	}

	p, now = newPatience(0, 0, t0), 0
	p.send()
	until(p, 1000, false)
}
