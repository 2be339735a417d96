package group_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/group"
)

// The records of every version Kafka ever wrote are taken; what is broken or of
// other kinds is left alone and counted.
func TestReplayVersions(t *testing.T) {
	s := group.NewShard(group.Config{}, nil)
	ck := func(v int16, p int32) []byte {
		return (&kmsg.OffsetCommitKey{Version: v, Group: "g", Topic: "t", Partition: p}).AppendTo(nil)
	}
	at := time.UnixMilli(1_700_000_000_000)
	for v := range int16(5) {
		val := kmsg.OffsetCommitValue{Version: v, Offset: 10 + int64(v), LeaderEpoch: 3, Metadata: "m", CommitTimestamp: at.UnixMilli(), ExpireTimestamp: -1}
		if v == 4 {
			val.TopicID = topicID("t")
		}
		s.Replay(int64(v), group.Record{Key: ck(min(v, 1), int32(v)), Value: val.AppendTo(nil)})
		gv := kmsg.NewGroupMetadataValue()
		gv.Version, gv.ProtocolType, gv.Generation = v, "consumer", int32(v)
		gv.Protocol, gv.Leader = kmsg.StringPtr("range"), kmsg.StringPtr("m")
		gv.Members = []kmsg.GroupMetadataValueMember{{MemberID: "m", ClientID: "c", ClientHost: "/h", SessionTimeoutMillis: 5000, RebalanceTimeoutMillis: 7000, Subscription: []byte{}, Assignment: []byte("x")}}
		key := (&kmsg.GroupMetadataKey{Version: 2, Group: fmt.Sprint("g", v)}).AppendTo(nil)
		s.Replay(100+int64(v), group.Record{Key: key, Value: gv.AppendTo(nil)})
	}
	if s.Skipped() != 0 {
		t.Fatalf("%d skipped", s.Skipped())
	}
	bad := []group.Record{
		{}, {Key: []byte{0}}, {Key: []byte{0, 1}}, {Key: []byte{0, 2}}, {Key: []byte{0, 2, 0, 9, 'x'}},
		{Key: ck(1, 0), Value: []byte{0, 3, 1}}, {Key: ck(1, 0), Value: []byte{}}, {Key: ck(1, 0), Value: []byte{0, 9, 0}},
		{Key: []byte{0, 3, 0, 1, 'g'}, Value: []byte{0, 0, 0, 0, 0, 1}}, // a consumer group's epoch (KIP-848)
		{Key: []byte{0xff, 0xff}, Value: []byte{1}},
		{Key: (&kmsg.GroupMetadataKey{Version: 2, Group: "g"}).AppendTo(nil), Value: []byte{0, 3}},
	}
	for i, r := range bad {
		s.Replay(200, r)
		if s.Skipped() != i+1 {
			t.Errorf("record %d was taken", i)
		}
	}
	// tombstones of what is not there
	s.Replay(300, group.Record{Key: ck(1, 77)})
	s.Replay(301, group.Record{Key: (&kmsg.OffsetCommitKey{Version: 1, Group: "no"}).AppendTo(nil)})
	s.Replay(302, group.Record{Key: (&kmsg.GroupMetadataKey{Version: 2, Group: "no"}).AppendTo(nil)})
	s.Loaded(at)
	got := view(s, at, fetchAll("g"))
	for i, want := range []string{`"Offset":10,"LeaderEpoch":-1`, `"Offset":11,"LeaderEpoch":-1`, `"Offset":12,"LeaderEpoch":-1`, `"Offset":13,"LeaderEpoch":3`, `"Offset":14,"LeaderEpoch":3`} {
		if !strings.Contains(got, want) {
			t.Errorf("version %d: no %s in %s", i, want, got)
		}
	}
	for v := range 5 {
		if got := view(s, at, group.DescribeGroup{Group: fmt.Sprint("g", v)}); !strings.Contains(got, `"State":"Stable"`) {
			t.Errorf("version %d: %s", v, got)
		}
	}
	if s.NextDeadline() != at.Add(5*time.Second) {
		t.Errorf("sessions end at %v", s.NextDeadline().Sub(at))
	}
}

// Any bytes may stand in the log; loading them and going on must not panic.
func FuzzReplay(f *testing.F) {
	l := newLocal(f)
	for _, line := range []string{"join a instance=i", "tick 3s", "sync a instance=i assign=a:x", "commit a instance=i t:0=5@3/m", "commit b group=h v=2 retention=1000 t:0=1"} {
		l.play(parse(line))
	}
	for _, r := range l.log.records {
		f.Add(r.Key, r.Value, false)
	}
	f.Add([]byte{0, 2, 0, 1, 'g'}, []byte{}, true)
	f.Fuzz(func(t *testing.T, key, value []byte, tombstone bool) {
		s := group.NewShard(group.Config{}, func(p string) string { return p })
		r := group.Record{Key: key, Value: value}
		if tombstone {
			r.Value = nil
		} else if value == nil {
			r.Value = []byte{}
		}
		s.Replay(0, r)
		now := time.UnixMilli(1_700_000_000_000)
		s.Loaded(now)
		first := s.HardState()
		s.Replay(1, r)
		if second := s.HardState(); first != second {
			t.Errorf("replayed twice: %s then %s", first, second)
		}
		for range 50 {
			d := s.NextDeadline()
			if d.IsZero() || d.After(now.Add(24*time.Hour)) {
				break
			}
			for _, rec := range s.Expire(d).Records {
				s.Replay(-1, rec)
			}
		}
		if s.Skipped() == 0 && !tombstone {
			s.Handle(now, 1, &group.Request{Req: kmsg.NewPtrListGroupsRequest()})
		}
	})
}

// TestLoadsKafkasLog loads a real Kafka's __consumer_offsets, that of
// WEIR_KAFKA after TestAgainstKafka, and wants every group to look as Kafka
// shows it.
func TestLoadsKafkasLog(t *testing.T) {
	addr := os.Getenv("WEIR_KAFKA")
	if addr == "" {
		t.Skip("WEIR_KAFKA is not set")
	}
	s := group.NewShard(group.Config{}, nil)
	for i, r := range kafkaRecords(t, addr) {
		s.Replay(int64(i), r)
	}
	s.Loaded(time.Now())
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 5
	resp, err := ask(addr, "t", list)
	must(t, err)
	settled := map[string]bool{}
	for _, g := range s.Settled() {
		settled[g] = true
	}
	n := newNames()
	for _, g := range resp.(*kmsg.ListGroupsResponse).Groups {
		if !settled[g.Group] {
			t.Errorf("%s (%s) is not there", g.Group, g.GroupState)
			continue
		}
		delete(settled, g.Group)
		if g.GroupState != "Stable" && g.GroupState != "Empty" {
			continue // the log knows the generation before
		}
		d := kmsg.NewPtrDescribeGroupsRequest()
		d.Version, d.Groups = 6, []string{g.Group}
		resp, err := ask(addr, "t", d)
		must(t, err)
		mine := kmsg.NewPtrDescribeGroupsResponse()
		mine.Groups = append(mine.Groups, s.Handle(time.Now(), 1, &group.Request{Req: group.DescribeGroup{Version: 6, Group: g.Group}}).Replies[0].Resp.(kmsg.DescribeGroupsResponseGroup))
		if k, w := n.render("", resp), n.render("", mine); k != w {
			t.Errorf("kafka %s\nweir  %s", k, w)
		}
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version, q.Groups = 8, []kmsg.OffsetFetchRequestGroup{fetchAll(g.Group).Group}
		resp, err = ask(addr, "t", q)
		must(t, err)
		o := kmsg.NewPtrOffsetFetchResponse()
		o.Groups = append(o.Groups, s.Handle(time.Now(), 1, &group.Request{Req: fetchAll(g.Group)}).Replies[0].Resp.(kmsg.OffsetFetchResponseGroup))
		if k, w := n.render("", resp), n.render("", o); k != w {
			t.Errorf("kafka %s\nweir  %s", k, w)
		}
	}
	for g := range settled {
		t.Errorf("%s is not in Kafka", g)
	}
	t.Logf("%d groups compared, %d records of other kinds", len(resp.(*kmsg.ListGroupsResponse).Groups), s.Skipped())
}

// B104: of a subscription only the topics matter, whichever version wrote it.
func TestSubscribedTopics(t *testing.T) {
	topics := "\x00\x00\x00\x02\x00\x01t\x00\x01u"
	for _, c := range []struct {
		name, in string
		want     string
	}{
		{"v0", "\x00\x00" + topics + "\xff\xff\xff\xff", "[t u] true"},
		{"v0 with user data", "\x00\x00" + topics + "\x00\x00\x00\x01x", "[t u] true"},
		{"v1 without owned partitions", "\x00\x01" + topics + "\xff\xff\xff\xff", "[t u] true"},
		{"v1", "\x00\x01" + topics + "\xff\xff\xff\xff\x00\x00\x00\x00", "[t u] true"},
		{"v9 with more behind", "\x00\x09" + topics + "\xff\xff\xff\xff\x07what is this", "[t u] true"},
		{"no topics", "\x00\x03\x00\x00\x00\x00\xff\xff\xff\xff", "[] true"},
		{"negative version", "\xff\xff" + topics + "\xff\xff\xff\xff", "[] false"},
		{"cut", "\x00\x00\x00\x00\x00\x02\x00\x01t", "[] false"},
		{"nothing", "", "[] false"},
	} {
		topics, ok := group.SubscribedTopics([]byte(c.in))
		if got := fmt.Sprint(topics, ok); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
