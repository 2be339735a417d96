package group_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// TestChurn is B087: beside two steady members a third comes and goes a hundred
// times, by leaving or by dying in the join phase. A leave ends the rebalance as
// soon as the steady ones have joined, a death after the session at the latest.
func TestChurn(t *testing.T) {
	l := newLocal(t)
	play := func(line string) string { return strings.Join(l.play(parse(line)), "\n") }
	settle := func(who ...string) {
		t.Helper()
		assign := []string{}
		for _, w := range who {
			play("sync " + w)
			assign = append(assign, w+":"+w)
		}
		for _, w := range who {
			play("sync " + w + " assign=" + strings.Join(assign, ","))
		}
		if d := play("describe a"); !strings.Contains(d, "state=Stable") || strings.Count(d, "client=") != len(who) {
			t.Fatal(d)
		}
	}
	play("join a")
	play("join a")
	play("join b")
	play("join b")
	play("tick 3s")
	settle("a", "b")
	for i := range 100 {
		c := fmt.Sprint("c", i)
		play("join " + c)
		play("join " + c + " session=6000")
		play("join a")
		if out := play("join b"); strings.Count(out, "join NONE") != 3 {
			t.Fatalf("round %d: %s", i, out)
		}
		settle("a", "b", c)
		if i%2 == 0 {
			play("leave " + c)
			play("join a")
			if out := play("join b"); strings.Count(out, "join NONE") != 2 {
				t.Fatalf("round %d: %s", i, out)
			}
		} else {
			play("join a") // a rebalance, in which c dies
			play("join b")
			if out := play("tick 6s"); strings.Count(out, "join NONE") != 2 {
				t.Fatalf("round %d: %s", i, out)
			}
		}
		settle("a", "b")
	}
	play("leave a")
	play("leave b")
	if d := play("describe a"); !strings.Contains(d, "state=Empty") {
		t.Fatal(d)
	}
}

// A string that fits no record is refused, not cut.
func TestLongNames(t *testing.T) {
	s := group.NewShard(group.Config{}, func(p string) string { return p + "-1" })
	s.Loaded(time.Time{})
	long := strings.Repeat("x", 1<<16)
	join := func(change func(q *kmsg.JoinGroupRequest, r *group.Request)) int16 {
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version, q.Group, q.ProtocolType, q.Protocols = 9, "g", "consumer", protocols("range(t)")
		q.SessionTimeoutMillis = 10000
		r := &group.Request{Req: q}
		change(q, r)
		return s.Handle(time.Time{}, 1, r).Replies[0].Resp.(*kmsg.JoinGroupResponse).ErrorCode
	}
	for name, change := range map[string]func(*kmsg.JoinGroupRequest, *group.Request){
		"group":    func(q *kmsg.JoinGroupRequest, _ *group.Request) { q.Group = long },
		"member":   func(q *kmsg.JoinGroupRequest, _ *group.Request) { q.Group, q.MemberID = "", long },
		"instance": func(q *kmsg.JoinGroupRequest, _ *group.Request) { q.InstanceID = &long },
		"type":     func(q *kmsg.JoinGroupRequest, _ *group.Request) { q.ProtocolType = long },
		"protocol": func(q *kmsg.JoinGroupRequest, _ *group.Request) { q.Protocols[0].Name = long },
		"client":   func(_ *kmsg.JoinGroupRequest, r *group.Request) { r.ClientID = long[:32767] },
	} {
		got := kafka.Error(join(change))
		if got != kafka.ErrInvalidRequest && !(name == "member" && got == kafka.ErrInvalidGroupID) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := kafka.Error(join(func(_ *kmsg.JoinGroupRequest, r *group.Request) { r.ClientID = long[:300] })); got != kafka.ErrMemberIDRequired {
		t.Errorf("300 characters: %v", got)
	}
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation = 9, long, -1
	q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{}}}}
	step := s.Handle(time.Time{}, 1, &group.Request{Req: q, Topics: newNames()})
	if e := kafka.Error(step.Replies[0].Resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode); e != kafka.ErrInvalidGroupID || len(step.Records) != 0 {
		t.Errorf("commit: %v", e)
	}
}

// A sweep with much to do is divided into steps of about one batch.
func TestSweepIsDivided(t *testing.T) {
	l := newLocal(t)
	l.play(parse("config retention=1000 check=5000 recmax=2000"))
	for i := range 300 {
		l.play(parse(fmt.Sprintf("commit a group=group-%03d t:0=1 t:1=1", i)))
	}
	before, most := len(l.log.records), 0
	end := l.now.Add(6 * time.Second)
	for d := l.core.NextDeadline(); !d.After(end); d = l.core.NextDeadline() {
		l.now = d
		l.core.Expire(d)
		most = max(most, l.core.Pending())
		l.collect()
	}
	if gone := len(l.log.records) - before; gone != 900 || most > 100 {
		t.Errorf("%d records in all, want 900; %d in one step, want at most 100", gone, most)
	}
}

func benchCore(b *testing.B) (*local, *machine.Core[group.Record]) {
	l := newLocal(b)
	for _, line := range []string{"join a", "join a", "tick 3s", "sync a assign=a:x"} {
		l.play(parse(line))
	}
	return l, l.core
}

func BenchmarkHeartbeat(b *testing.B) {
	l, core := benchCore(b)
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version, q.Group, q.MemberID, q.Generation = 4, "g", l.member["a"], 1
	r := &group.Request{Req: q}
	b.ReportAllocs()
	for i := range b.N {
		core.Submit(l.now, machine.Token(1000+i), r)
		core.Drain(l.now)
	}
}

func BenchmarkCommit10(b *testing.B) {
	l, core := benchCore(b)
	l.topics["t"] = 10
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.MemberID, q.Generation = 9, "g", l.member["a"], 1
	t := kmsg.OffsetCommitRequestTopic{Topic: "t"}
	for p := range int32(10) {
		t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: 100, LeaderEpoch: -1})
	}
	q.Topics = append(q.Topics, t)
	r := &group.Request{Req: q, Topics: l.names}
	b.ReportAllocs()
	for i := range b.N {
		core.Submit(l.now, machine.Token(1000+i), r)
		core.Drain(l.now)
		core.Watermark(int64(len(l.log.records)) - 1)
	}
}
