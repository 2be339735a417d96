//go:build compat

package compat

// Shows: committed offsets go when their time is up, and only then (B104), and
// a member that dies or waits without end does not hold a group (B087, B098).

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestCommitsExpire is B104, in little over a minute: the shortest retention
// there is.
func TestCommitsExpire(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	b := startBroker(t, "offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000")
	r := dial(t, b.addr)
	topic := r.topic(2)
	groups := map[string]*member{}
	begin := time.Now()
	for _, what := range []string{"live", "read no more", "emptied", "simple", "minus one", "five seconds", "rebalancing"} {
		m := dial(t, b.addr).member(unique(t))
		m.r.timeout = 150 * time.Second
		r.coordinator(m.group)
		groups[what] = m
	}
	one := commit{topic, 0, 7, -1, "m"}
	for _, what := range []string{"live", "read no more", "emptied", "rebalancing"} {
		m := groups[what]
		reads := topic
		if what == "read no more" {
			reads = "another"
		}
		// A subscription of a version yet to come: the topics are read all the same.
		m.meta = append([]byte{0, 9, 0, 0, 0, 1, 0, byte(len(reads))}, reads...)
		m.meta = append(m.meta, 0xff, 0xff, 0xff, 0xff, 1, 2, 3)
		m.stable()
		code(t, what, m.commit(one)[0], 0)
	}
	code(t, "leave", groups["emptied"].leave(), 0)
	code(t, "simple", outsider(r, groups["simple"].group).commit(one)[0], 0)
	asked := r.offers(kmsg.OffsetCommit, 2)
	if asked {
		for what, ms := range map[string]int64{"minus one": -1, "five seconds": 5000} {
			req := commitRequest(2, outsider(r, groups[what].group), one)
			req.RetentionTimeMillis = ms
			code(t, what, ask[*kmsg.OffsetCommitResponse](r, req).Topics[0].Partitions[0].ErrorCode, 0)
		}
	} else {
		t.Log("OffsetCommit v2 is not offered: its retention time is not tried")
	}
	// One group never gets out of its rebalance: a second member asks to join,
	// the first heartbeats and does not join again.
	second := dial(t, b.addr)
	second.timeout = 150 * time.Second
	req := joinRequest(3, groups["rebalancing"].group, "", nil, "consumer", "range")
	req.RebalanceTimeoutMillis = 300_000
	second.send(req)

	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, what := range []string{"live", "read no more", "rebalancing"} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Second):
				}
				want := []int16{0}
				if what == "rebalancing" {
					want = []int16{27}
				}
				if !code(t, "heartbeat of "+what, groups[what].heartbeat(), want...) {
					return
				}
			}
		})
	}
	defer func() { close(stop); wg.Wait() }()
	there := func(what string) bool {
		got, top := r.committed(groups[what].group)
		if top != 0 {
			t.Fatalf("%s: error %d", what, top)
		}
		return got[topic+"-0"].offset == 7
	}
	sleepUntil := func(d time.Duration) { time.Sleep(time.Until(begin.Add(d))) }
	if asked {
		eventually(t, 20*time.Second, "five seconds", func() (string, bool) { return "still there", !there("five seconds") })
		if took := time.Since(begin); took < 5*time.Second {
			t.Errorf("five seconds: gone after %v", took)
		}
	}
	sleepUntil(50 * time.Second)
	for what := range groups {
		if what == "five seconds" || what == "minus one" && !asked {
			continue
		}
		if !there(what) {
			t.Errorf("%s: gone after 50 s", what)
		}
	}
	for _, what := range []string{"emptied", "read no more", "simple", "minus one"} {
		if what == "minus one" && !asked {
			continue
		}
		eventually(t, 40*time.Second, what, func() (string, bool) { return "still there", !there(what) })
		if what == "read no more" {
			continue
		}
		eventually(t, 10*time.Second, what+", the group", func() (string, bool) {
			s := r.describe(4, groups[what].group)[0].State
			return s, s == "Dead"
		})
	}
	sleepUntil(75 * time.Second)
	for _, what := range []string{"live", "rebalancing"} {
		if !there(what) {
			t.Errorf("%s: its commit is gone", what)
		}
	}
	if got := r.describe(4, groups["rebalancing"].group)[0].State; got != "PreparingRebalance" {
		t.Errorf("rebalancing: %s", got)
	}
}

// TestDeathWhileJoining is B087 where it hurts most: a member that asked to
// join is killed before it is answered, again and again.
func TestDeathWhileJoining(t *testing.T) {
	b := sharedBroker(t)
	r := dial(t, b.addr)
	group := unique(t)
	r.coordinator(group)
	a := dial(t, b.addr).member(group)
	a.r.timeout = 40 * time.Second
	a.stable()
	for round := range 3 {
		dying := dial(t, b.addr)
		req := joinRequest(3, group, "", nil, "consumer", "range")
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 6000, 60_000
		dying.send(req)
		eventually(t, 5*time.Second, "join phase", func() (string, bool) { c := a.heartbeat(); return fmt.Sprint(c), c == 27 })
		dying.c.Close()
		begin := time.Now()
		for { // the dead one may still be counted in once, at most for its session
			if resp := a.join(); resp.ErrorCode != 0 {
				t.Fatalf("round %d: join: error %d", round, resp.ErrorCode)
			}
			if g := r.describe(4, group)[0]; len(g.Members) == 1 {
				break
			}
			if !a.leader {
				t.Fatalf("round %d: the dead one leads", round)
			}
			code(t, "sync", a.sync(a.id).ErrorCode, 0)
			eventually(t, 15*time.Second, "the dead one is given up", func() (string, bool) { c := a.heartbeat(); return fmt.Sprint(c), c == 27 })
		}
		if took := time.Since(begin); took > 12*time.Second {
			t.Errorf("round %d: alone again after %v", round, took)
		}
		code(t, "sync", a.sync(a.id).ErrorCode, 0)
		code(t, "stable", a.heartbeat(), 0)
	}
	code(t, "leave", a.leave(), 0)
	eventually(t, 5*time.Second, "Empty", func() (string, bool) {
		s := r.describe(4, group)[0].State
		return s, s == "Empty"
	})
}

// TestTimeoutsWithoutEnd is B098: the largest timeout there is means to wait,
// not that a sum turns negative and a timer fires at once.
func TestTimeoutsWithoutEnd(t *testing.T) {
	const forever = 2147483647
	b := sharedBroker(t)
	r := dial(t, b.addr)
	group, topic := unique(t), r.topic(1)
	r.coordinator(group)
	join := func(m *member) *kmsg.JoinGroupResponse {
		req := joinRequest(3, group, m.id, nil, "consumer", "range")
		req.RebalanceTimeoutMillis = forever
		resp := ask[*kmsg.JoinGroupResponse](m.r, req)
		m.id, m.gen, m.leader = resp.MemberID, resp.Generation, resp.MemberID == resp.LeaderID
		return resp
	}
	a, c := dial(t, b.addr).member(group), dial(t, b.addr).member(group)
	code(t, "join", join(a).ErrorCode, 0)
	code(t, "sync", a.sync(a.id).ErrorCode, 0)
	joined := make(chan int16, 1)
	go func() { joined <- join(c).ErrorCode }()
	eventually(t, 5*time.Second, "join phase", func() (string, bool) { x := a.heartbeat(); return fmt.Sprint(x), x == 27 })
	for range 6 { // the group waits for the member that does not come back yet
		select {
		case x := <-joined:
			t.Fatalf("the rebalance ended without the first member: error %d", x)
		case <-time.After(300 * time.Millisecond):
		}
		code(t, "heartbeat while waiting", a.heartbeat(), 27)
	}
	code(t, "join again", join(a).ErrorCode, 0)
	code(t, "the second", <-joined, 0)
	if a.gen != c.gen {
		t.Errorf("generations %d and %d", a.gen, c.gen)
	}

	waiting := dial(t, b.addr)
	req := fetchRequest(11, forever, 1, 1<<20, at(topic, 0, 0))
	corr := waiting.send(req)
	waiting.c.SetReadDeadline(time.Now().Add(2 * time.Second))
	if n, err := waiting.c.Read(make([]byte, 1)); err == nil {
		t.Fatalf("a fetch that waits without end was answered: %d bytes", n)
	}
	r.put(topic, batchSpec{recs: values(1, 10)})
	if got := waiting.recv(req, corr).(*kmsg.FetchResponse).Topics[0].Partitions[0]; len(readBatches(t, got.RecordBatches)) != 1 {
		t.Errorf("the waiting fetch: error %d, %d bytes", got.ErrorCode, len(got.RecordBatches))
	}
	begin := time.Now()
	noEnd := fetchRequest(11, forever, forever, forever, at(topic, 0, 0))
	far := dial(t, b.addr)
	far.send(noEnd)
	far.c.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := far.c.Read(make([]byte, 1)); err == nil {
		t.Errorf("a fetch of 2 GiB at least was answered after %v", time.Since(begin))
	}

	pid := kmsg.NewPtrInitProducerIDRequest()
	pid.Version = 3
	pid.TransactionTimeoutMillis, pid.ProducerID, pid.ProducerEpoch = forever, -1, -1
	code(t, "InitProducerId without a transaction", ask[*kmsg.InitProducerIDResponse](r, pid).ErrorCode, 0)
	if onKafka {
		pid.TransactionalID = ptr(unique(t))
		eventually(t, 20*time.Second, "InitProducerId of a transaction", func() (string, bool) {
			c := ask[*kmsg.InitProducerIDResponse](r, pid).ErrorCode
			return fmt.Sprint("error ", c), c == 50
		})
	}
}
