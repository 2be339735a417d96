package broker

// What sessions hold together: measured, bounded, given back; and whose place a new
// one takes (KIP-227).

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// numbered names n partitions of a topic that does not exist.
func numbered(id, epoch int32, topic string, n int) *kmsg.FetchRequest {
	req := fetchRequest(id, epoch)
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, make([]kmsg.FetchRequestTopicPartition, n)
	for i := range t.Partitions {
		t.Partitions[i] = ask(int32(i), 0)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// Twelve fetches that each name 20,000 partitions of nothing.
func TestSessionsHoldABoundedAmount(t *testing.T) {
	f := newFetching(t, 1)
	f.b.sessions.most = sessionsMost / 8
	before := heap()
	with := 0
	for range 12 {
		r := f.b.fetch(nil, numbered(0, sessionInitial, "nosuch", 20_000))
		resp := &kmsg.FetchResponse{Version: 12}
		if err := resp.ReadFrom(r.Raw.Parts[0].Bytes); err != nil || len(resp.Topics[0].Partitions) != 20_000 {
			t.Fatal(err)
		}
		if resp.SessionID != 0 {
			with++
		}
	}
	held := heap() - before
	if with != sessionsMost/8/(20_000*partCost) || held > sessionsMost/8 {
		t.Errorf("%d sessions hold %d MiB", with, held>>20)
	}
	runtime.KeepAlive(f)
}

// The costs cover what is held, with a subscription for every partition, with a name
// of full length for every partition, and in sessions of one partition.
func TestSessionCosts(t *testing.T) {
	for _, c := range []struct {
		what  string
		n     int
		fetch func(f *fetching, i int)
	}{
		{"many partitions", 1, func(f *fetching, _ int) { f.fetch(f.request(true)) }},
		{"many topics", 1, func(f *fetching, _ int) {
			req := fetchRequest(0, sessionInitial)
			for i := range 20_000 {
				top := kmsg.NewFetchRequestTopic()
				top.Topic, top.Partitions = fmt.Sprint(strings.Repeat("n", 244), i), []kmsg.FetchRequestTopicPartition{ask(0, 0)}
				req.Topics = append(req.Topics, top)
			}
			f.b.fetch(nil, req)
		}},
		{"many sessions", 900, func(f *fetching, i int) {
			f.b.fetch(nil, numbered(0, sessionInitial, fmt.Sprint("t", i), 1))
		}},
	} {
		f := newFetching(t, 2000)
		before := heap()
		for i := range c.n {
			c.fetch(f, i)
		}
		held, cost := heap()-before, f.b.sessions.used.Load()
		if t.Logf("%s: %d bytes held, %d charged", c.what, held, cost); held > cost || cost == 0 {
			t.Errorf("%s: %d bytes held, %d charged", c.what, held, cost)
		}
		runtime.KeepAlive(f)
	}
}

func TestSessionBudget(t *testing.T) {
	now := time.Unix(1, 0)
	next := int32(0)
	s := newSessions(100, func() int32 { next++; return next })
	s.most = 2*(sessionCost+topicCost+1) + 10*partCost
	begin := func(req *kmsg.FetchRequest) *session { ses, _ := s.begin(req, now); return ses }
	a, b := begin(numbered(0, sessionInitial, "a", 6)), begin(numbered(0, sessionInitial, "b", 4))
	if a == nil || b == nil || s.used.Load() != s.most {
		t.Fatalf("two that fill it: %v, %v, %d of %d", a, b, s.used.Load(), s.most)
	}
	if ses, code := s.begin(numbered(0, sessionInitial, "c", 1), now); ses != nil || code != kafka.NoError {
		t.Errorf("a third is a fetch without a session: %v, %v", ses, code)
	}
	// What is named again costs nothing, what is forgotten makes room, what does not
	// fit ends the session.
	if begin(numbered(b.id, 1, "b", 4)) == nil {
		t.Error("nothing new, refused")
	}
	forget := fetchRequest(a.id, 1)
	g := kmsg.NewFetchRequestForgottenTopic()
	g.Topic, g.Partitions = "a", []int32{0, 1, 2, 3, 4, 5}
	forget.ForgottenTopics = append(forget.ForgottenTopics, g)
	if begin(forget) == nil || len(a.topics) != 0 || s.used.Load() != s.most-topicCost-1-6*partCost {
		t.Errorf("after forgetting: %d topics, %d of %d", len(a.topics), s.used.Load(), s.most)
	}
	if begin(numbered(b.id, 2, "b", 10)) == nil {
		t.Error("it fits")
	}
	if _, code := s.begin(numbered(b.id, 3, "b", 20), now); code != kafka.ErrFetchSessionIDNotFound || s.used.Load() != sessionCost || s.count() != 1 {
		t.Errorf("beyond the bound: %v, %d sessions, %d used", code, s.count(), s.used.Load())
	}
	// Idle ones give way to who fits then, and to nobody else.
	now = now.Add(sessionIdle)
	if begin(numbered(0, sessionInitial, "c", 100)); s.count() != 1 {
		t.Error("ended for one that does not fit")
	}
	if begin(numbered(0, sessionInitial, "c", 15)) == nil || s.byID[a.id] != nil {
		t.Error("the idle session should have made room")
	}
	s.begin(fetchRequest(s.byID[next].id, sessionFinal), now)
	if s.used.Load() != 0 {
		t.Errorf("%d used by nothing", s.used.Load())
	}
}

// Where slots are lacking, a session with more partitions takes the place of the
// smallest that has lived its time, used or not.
func TestLargerSessionTakesASlot(t *testing.T) {
	now := time.Unix(1, 0)
	next := int32(0)
	s := newSessions(2, func() int32 { next++; return next })
	s.begin(numbered(0, sessionInitial, "t", 5), now)
	s.begin(numbered(0, sessionInitial, "t", 3), now)
	now = now.Add(sessionIdle - 1)
	for id := range int32(2) {
		s.begin(fetchRequest(id+1, 1), now)
	}
	if ses, _ := s.begin(numbered(0, sessionInitial, "t", 9), now); ses != nil {
		t.Error("took the place of a young one")
	}
	now = now.Add(1)
	if ses, _ := s.begin(numbered(0, sessionInitial, "t", 3), now); ses != nil {
		t.Error("took the place of one as large")
	}
	if ses, _ := s.begin(numbered(0, sessionInitial, "t", 4), now); ses == nil || s.byID[1] == nil || s.byID[2] != nil {
		t.Error("should have taken the smallest's place")
	}
}
