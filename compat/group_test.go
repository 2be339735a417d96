//go:build compat

package compat

// Shows: classic groups and committed offsets, state by state. Cases B024,
// B085, B089, B091, B094 to B096, B100, B102, every version of the requests.

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestGroups(t *testing.T) {
	b := sharedBroker(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *rawConn)
	}{
		{"every version of a member's life", memberLife},
		{"B024 descriptions", descriptions},
		{"B085 checks of JoinGroup", joinChecks},
		{"B089 heartbeats", heartbeats},
		{"B091 static members", staticMembers},
		{"B094 leaving", leaving},
		{"B096 unknown groups", unknownGroups},
		{"B100 OffsetFetch", offsetFetch},
		{"B102 commits of nowhere", commitsOfNowhere},
		{"OffsetDelete", offsetDelete},
		{"B087 members come and go", comeAndGo},
		{"B087 a member dies", memberDies},
		{"groups listed by state and type", listedByState},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, dial(t, b.addr)) })
	}
}

func (r *rawConn) member(group string) *member {
	r.t.Helper()
	return &member{r: r, group: group}
}

func memberLife(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	for v := int16(0); v <= r.newest(kmsg.JoinGroup, 9); v++ {
		group := unique(t)
		r.coordinator(group)
		req := joinRequest(v, group, "", nil, "consumer", "range", "roundrobin")
		resp := ask[*kmsg.JoinGroupResponse](r, req)
		if v >= 4 {
			code(t, fmt.Sprintf("JoinGroup v%d without a member id", v), resp.ErrorCode, 79)
			req.MemberID = resp.MemberID
			resp = ask[*kmsg.JoinGroupResponse](r, req)
		}
		if resp.ErrorCode != 0 || resp.Generation != 1 || resp.LeaderID != resp.MemberID || len(resp.Members) != 1 || deref(resp.Protocol) != "range" {
			t.Errorf("JoinGroup v%d: %+v", v, resp)
			continue
		}
		if v >= 7 && deref(resp.ProtocolType) != "consumer" {
			t.Errorf("JoinGroup v%d: protocol type %s", v, deref(resp.ProtocolType))
		}
		id := resp.MemberID
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version = min(v, r.newest(kmsg.SyncGroup, 5))
		sync.Group, sync.Generation, sync.MemberID = group, 1, id
		sync.ProtocolType, sync.Protocol = ptr("consumer"), ptr("range")
		sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: id, MemberAssignment: []byte("mine")}}
		if got := ask[*kmsg.SyncGroupResponse](r, sync); got.ErrorCode != 0 || string(got.MemberAssignment) != "mine" || sync.Version >= 5 && deref(got.Protocol) != "range" {
			t.Errorf("SyncGroup v%d: %+v", sync.Version, got)
		}
		hb := kmsg.NewPtrHeartbeatRequest()
		hb.Version = min(v, r.newest(kmsg.Heartbeat, 4))
		hb.Group, hb.Generation, hb.MemberID = group, 1, id
		code(t, fmt.Sprintf("Heartbeat v%d", hb.Version), ask[*kmsg.HeartbeatResponse](r, hb).ErrorCode, 0)
		cv := max(2, min(v, r.newest(kmsg.OffsetCommit, 9)))
		cr := commitRequest(cv, &member{group: group, gen: 1, id: id}, commit{topic, 0, int64(v) + 40, -1, "note"})
		code(t, fmt.Sprintf("OffsetCommit v%d", cv), ask[*kmsg.OffsetCommitResponse](r, cr).Topics[0].Partitions[0].ErrorCode, 0)
		if got, _ := r.committed(group); got[topic+"-0"].offset != int64(v)+40 || got[topic+"-0"].metadata != "note" {
			t.Errorf("committed: %+v", got)
		}
		lv := kmsg.NewPtrLeaveGroupRequest()
		lv.Version = min(v, r.newest(kmsg.LeaveGroup, 5))
		lv.Group, lv.MemberID = group, id
		lv.Members = []kmsg.LeaveGroupRequestMember{{MemberID: id}}
		code(t, fmt.Sprintf("LeaveGroup v%d", lv.Version), ask[*kmsg.LeaveGroupResponse](r, lv).ErrorCode, 0)
	}
	for _, v := range r.upTo(kmsg.FindCoordinator, 0, 6) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version = v
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g", "h"}
		resp := ask[*kmsg.FindCoordinatorResponse](r, req)
		host, port := resp.Host, resp.Port
		if v >= 4 {
			if len(resp.Coordinators) != 2 {
				t.Fatalf("FindCoordinator v%d: %+v", v, resp)
			}
			host, port = resp.Coordinators[1].Host, resp.Coordinators[1].Port
			code(t, "FindCoordinator", resp.Coordinators[1].ErrorCode, 0)
		}
		if fmt.Sprintf("%s:%d", host, port) != r.c.RemoteAddr().String() {
			t.Errorf("FindCoordinator v%d: %s:%d", v, host, port)
		}
	}
}

func (r *rawConn) describe(version int16, groups ...string) []kmsg.DescribeGroupsResponseGroup {
	r.t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = version, groups
	return ask[*kmsg.DescribeGroupsResponse](r, req).Groups
}

func descriptions(t *testing.T, r *rawConn) {
	empty, stable, unknown := unique(t), unique(t), unique(t)
	topic := r.topic(1)
	r.coordinator(empty)
	r.coordinator(stable)
	outsider(r, empty).commit(commit{topic, 0, 1, -1, ""})
	a := r.member(stable)
	a.instance = ptr("static-a")
	a.stable()
	other := dial(t, r.c.RemoteAddr().String())
	bm := other.member(stable)
	done := make(chan struct{})
	go func() { bm.join(); close(done) }()
	eventually(t, 5*time.Second, "rebalance", func() (string, bool) { c := a.heartbeat(); return fmt.Sprint(c), c == 27 })
	unsettled := func(state string) {
		t.Helper()
		for _, v := range r.upTo(kmsg.DescribeGroups, 0, 6) {
			g := r.describe(v, stable)[0]
			if g.ErrorCode != 0 || g.State != state || g.Protocol != "" || len(g.Members) != 2 {
				t.Errorf("v%d, want %s: %+v", v, state, g)
			}
			for _, m := range g.Members {
				// The assignment is the last one made, on Kafka too.
				if got := string(m.MemberAssignment); len(m.ProtocolMetadata) > 0 || got != "" && got != "for "+m.MemberID {
					t.Errorf("v%d, %s: data of a protocol not chosen yet: %q, assignment %q", v, state, m.ProtocolMetadata, got)
				}
			}
		}
	}
	unsettled("PreparingRebalance")
	a.join()
	<-done
	unsettled("CompletingRebalance")
	leader, follower := a, bm
	if bm.leader {
		leader, follower = bm, a
	}
	leader.sync(a.id, bm.id)
	follower.sync()
	for _, v := range r.upTo(kmsg.DescribeGroups, 0, 6) {
		got := r.describe(v, empty, stable, unknown)
		if len(got) != 3 {
			t.Fatalf("v%d: %d groups", v, len(got))
		}
		for _, g := range got {
			switch g.Group {
			case empty:
				if g.ErrorCode != 0 || g.State != "Empty" || len(g.Members) != 0 {
					t.Errorf("v%d empty: %+v", v, g)
				}
			case unknown:
				want := int16(0)
				if v >= 6 {
					want = 69
				}
				if g.ErrorCode != want || g.State != "Dead" || len(g.Members) != 0 {
					t.Errorf("v%d unknown: %+v, want Dead and error %d", v, g, want)
				}
			case stable:
				if g.ErrorCode != 0 || g.State != "Stable" || g.ProtocolType != "consumer" || g.Protocol != "range" || len(g.Members) != 2 {
					t.Errorf("v%d stable: %+v", v, g)
				}
				for _, m := range g.Members {
					if string(m.MemberAssignment) != "for "+m.MemberID || len(m.ProtocolMetadata) == 0 || m.ClientID != "compat" || m.ClientHost == "" {
						t.Errorf("v%d member: %+v", v, m)
					}
					wantInstance := v >= 4 && m.MemberID == a.id
					if (m.InstanceID != nil) != wantInstance {
						t.Errorf("v%d member %s: instance id %s", v, m.MemberID, deref(m.InstanceID))
					}
				}
			}
		}
	}
}

func joinChecks(t *testing.T, r *rawConn) {
	group := unique(t)
	r.coordinator(group)
	f := func(what string, want int16, edit func(*kmsg.JoinGroupRequest)) {
		t.Helper()
		req := joinRequest(3, unique(t), "", nil, "consumer", "range")
		edit(req)
		resp := ask[*kmsg.JoinGroupResponse](r, req)
		code(t, what, resp.ErrorCode, want)
	}
	f("empty group id", 24, func(j *kmsg.JoinGroupRequest) { j.Group = "" })
	f("session of 1 ms", 26, func(j *kmsg.JoinGroupRequest) { j.SessionTimeoutMillis = 1 })
	f("session of 10 h", 26, func(j *kmsg.JoinGroupRequest) { j.SessionTimeoutMillis = 36_000_000 })
	f("session of 5999 ms", 26, func(j *kmsg.JoinGroupRequest) { j.SessionTimeoutMillis = 5999 })
	f("session of 6 s", 0, func(j *kmsg.JoinGroupRequest) { j.SessionTimeoutMillis = 6000 })
	f("session of 30 min", 0, func(j *kmsg.JoinGroupRequest) { j.SessionTimeoutMillis = 1_800_000 })
	f("session of 30 min and 1 ms", 26, func(j *kmsg.JoinGroupRequest) { j.SessionTimeoutMillis = 1_800_001 })
	f("unknown member", 25, func(j *kmsg.JoinGroupRequest) { j.MemberID = "nobody" })
	f("no protocol", 23, func(j *kmsg.JoinGroupRequest) { j.Protocols = nil })
	f("no protocol type", 23, func(j *kmsg.JoinGroupRequest) { j.ProtocolType = "" })
	m := r.member(group)
	m.stable()
	f("another type into the group", 23, func(j *kmsg.JoinGroupRequest) { j.Group, j.ProtocolType = group, "connect" })
	f("no common protocol", 23, func(j *kmsg.JoinGroupRequest) { j.Group, j.Protocols[0].Name = group, "sticky" })
	f("unknown member of a group", 25, func(j *kmsg.JoinGroupRequest) { j.Group, j.MemberID = group, "nobody" })
	code(t, "the group is untouched", m.heartbeat(), 0)
	connect := dial(t, r.c.RemoteAddr().String())
	resp := ask[*kmsg.JoinGroupResponse](connect, joinRequest(3, unique(t), "", nil, "connect", "sessioned", "compatible"))
	if resp.ErrorCode != 0 || deref(resp.Protocol) != "sessioned" {
		t.Errorf("a group of type connect: error %d, protocol %s", resp.ErrorCode, deref(resp.Protocol))
	}
	r.coordinator("x")
	req := joinRequest(3, unique(t), "", nil, "consumer", "range")
	req.RebalanceTimeoutMillis = 2147483647 // B098
	if got := ask[*kmsg.JoinGroupResponse](r, req); got.ErrorCode != 0 {
		t.Errorf("rebalance timeout without end: error %d", got.ErrorCode)
	}
}

func heartbeats(t *testing.T, r *rawConn) {
	group := unique(t)
	r.coordinator(group)
	m := r.member(group)
	m.join()
	code(t, "joined, not synced", m.heartbeat(), 0)
	m.sync(m.id)
	code(t, "stable", m.heartbeat(), 0)
	m.gen++
	code(t, "a generation too new", m.heartbeat(), 22)
	m.gen -= 2
	code(t, "old generation", m.heartbeat(), 22)
	m.gen++
	id := m.id
	m.id = "nobody"
	code(t, "unknown member", m.heartbeat(), 25)
	m.id = id
	none := &member{r: r, group: unique(t), id: "nobody", gen: 1}
	code(t, "unknown group", none.heartbeat(), 25)

	other := dial(t, r.c.RemoteAddr().String())
	o := other.member(group)
	done := make(chan struct{})
	go func() { o.join(); close(done) }()
	eventually(t, 5*time.Second, "join phase", func() (string, bool) { c := m.heartbeat(); return fmt.Sprint(c), c == 27 })
	code(t, "SyncGroup in the join phase", m.sync().ErrorCode, 27)
	m.join()
	<-done
	code(t, "leader waits for sync", m.heartbeat(), 0)
	leader, follower := m, o
	if o.leader {
		leader, follower = o, m
	}
	code(t, "sync of the leader", leader.sync(m.id, o.id).ErrorCode, 0)
	got := follower.sync()
	if got.ErrorCode != 0 || string(got.MemberAssignment) != "for "+follower.id {
		t.Errorf("sync of the follower: %+v", got)
	}
	code(t, "stable again", o.heartbeat(), 0)
	old := commitRequest(7, &member{group: group, gen: m.gen - 1, id: m.id}, commit{r.topic(1), 0, 1, -1, ""})
	code(t, "commit of an old generation", ask[*kmsg.OffsetCommitResponse](r, old).Topics[0].Partitions[0].ErrorCode, 22)
}

func staticMembers(t *testing.T, r *rawConn) {
	group := unique(t)
	topic := r.topic(1)
	r.coordinator(group)
	addr := r.c.RemoteAddr().String()
	var ms []*member
	for i := range 3 {
		m := dial(t, addr).member(group)
		m.instance = ptr(fmt.Sprint("m", i))
		ms = append(ms, m)
	}
	rebalance(t, ms...)
	gen, old := ms[0].gen, *ms[1]
	if ms[1].leader {
		old, ms[1], ms[2] = *ms[2], ms[2], ms[1]
	}
	again := dial(t, addr).member(group)
	again.instance = old.instance
	resp := again.join()
	if resp.ErrorCode != 0 || resp.Generation != gen || resp.MemberID == old.id {
		t.Errorf("restart of %s: error %d, generation %d (was %d), same id %v", deref(old.instance), resp.ErrorCode, resp.Generation, gen, resp.MemberID == old.id)
	}
	if got := again.sync(); got.ErrorCode != 0 || string(got.MemberAssignment) != "for "+old.id {
		t.Errorf("assignment after the restart: error %d, %q; want the old one", got.ErrorCode, got.MemberAssignment)
	}
	code(t, "the others notice nothing", ms[0].heartbeat(), 0)
	code(t, "heartbeat of the old copy", old.heartbeat(), 82)
	code(t, "commit of the old copy", old.commit(commit{topic, 0, 1, -1, ""})[0], 82)
	code(t, "commit of the new copy", again.commit(commit{topic, 0, 2, -1, ""})[0], 0)
}

// rebalance brings all members into one generation and syncs them: each joins,
// and joins again when its heartbeat says so, until all share one.
func rebalance(t *testing.T, ms ...*member) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	gens := map[*member]int32{}
	deadline := time.Now().Add(20 * time.Second)
	settled := func(m *member, gen int32) bool {
		mu.Lock()
		defer mu.Unlock()
		gens[m] = gen
		for _, o := range ms {
			if gens[o] != gen {
				return false
			}
		}
		return true
	}
	for _, m := range ms {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				if resp := m.join(); resp.ErrorCode != 0 && resp.ErrorCode != 27 {
					t.Errorf("join: error %d", resp.ErrorCode)
					return
				}
				for time.Now().Before(deadline) {
					if settled(m, m.gen) {
						return
					}
					if m.heartbeat() == 27 {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			t.Error("no common generation in 20 s")
		})
	}
	wg.Wait()
	all := make([]string, 0, len(ms))
	for _, m := range ms {
		all = append(all, m.id)
	}
	for _, m := range ms {
		wg.Go(func() {
			var resp *kmsg.SyncGroupResponse
			if m.leader {
				resp = m.sync(all...)
			} else {
				resp = m.sync()
			}
			if resp.ErrorCode != 0 || string(resp.MemberAssignment) != "for "+m.id {
				t.Errorf("sync of %s: error %d, %q", m.id, resp.ErrorCode, resp.MemberAssignment)
			}
		})
	}
	wg.Wait()
}

func leaving(t *testing.T, r *rawConn) {
	addr := r.c.RemoteAddr().String()
	for _, v := range r.upTo(kmsg.LeaveGroup, 3, 5) {
		group := unique(t)
		r.coordinator(group)
		a, s := dial(t, addr).member(group), dial(t, addr).member(group)
		s.instance = ptr("inst")
		rebalance(t, a, s)
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Version, req.Group = v, group
		req.Members = []kmsg.LeaveGroupRequestMember{
			{MemberID: a.id}, {MemberID: "nobody"}, {InstanceID: ptr("inst"), MemberID: "wrong"}, {InstanceID: ptr("inst")},
		}
		resp := ask[*kmsg.LeaveGroupResponse](r, req)
		code(t, fmt.Sprintf("v%d", v), resp.ErrorCode, 0)
		if len(resp.Members) != 4 {
			t.Fatalf("v%d: %+v", v, resp.Members)
		}
		for i, want := range []int16{0, 25, 82, 0} {
			m := resp.Members[i]
			code(t, fmt.Sprintf("v%d, entry %d", v, i), m.ErrorCode, want)
			if m.MemberID != req.Members[i].MemberID || deref(m.InstanceID) != deref(req.Members[i].InstanceID) {
				t.Errorf("v%d, entry %d: echoes %q %s", v, i, m.MemberID, deref(m.InstanceID))
			}
		}
	}
	one := r.member(unique(t))
	r.coordinator(one.group)
	one.stable()
	code(t, "v1", one.leave(), 0)
	code(t, "v1 again", one.leave(), 25)
}

func unknownGroups(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	live, empty := r.member(unique(t)), unique(t)
	r.coordinator(live.group)
	r.coordinator(empty)
	live.stable()
	code(t, "commit", outsider(r, empty).commit(commit{topic, 0, 5, -1, ""})[0], 0)
	for _, v := range r.upTo(kmsg.DeleteGroups, 0, 3) {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Version, req.Groups = v, []string{"no-such-group", live.group}
		for _, g := range ask[*kmsg.DeleteGroupsResponse](r, req).Groups {
			if g.Group == live.group {
				code(t, fmt.Sprintf("delete v%d, live", v), g.ErrorCode, 68)
			} else {
				code(t, fmt.Sprintf("delete v%d, unknown", v), g.ErrorCode, 69)
			}
		}
	}
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 1, []string{empty}
	code(t, "delete, empty", ask[*kmsg.DeleteGroupsResponse](r, req).Groups[0].ErrorCode, 0)
	if got, _ := r.committed(empty); len(got) != 0 {
		t.Errorf("commits of a deleted group: %v", got)
	}
	if got := r.describe(4, empty)[0]; got.State != "Dead" {
		t.Errorf("a deleted group is %s", got.State)
	}
}

func offsetFetch(t *testing.T, r *rawConn) {
	group := unique(t)
	topic := r.topic(2)
	r.coordinator(group)
	code(t, "commit", outsider(r, group).commit(commit{topic, 0, 5, 3, "m"})[0], 0)
	type answer struct {
		offset int64
		epoch  int32
		meta   string
		code   int16
	}
	fetch := func(v int16, group string, topics []kmsg.OffsetFetchRequestTopic) (map[string]answer, int16) {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group, req.Topics = v, group, topics
		if v >= 8 {
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group, g.MemberEpoch = group, -1
			if topics != nil {
				g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
			}
			for _, rt := range topics {
				g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: rt.Topic, Partitions: rt.Partitions})
			}
			req.Groups = append(req.Groups, g)
		}
		resp := ask[*kmsg.OffsetFetchResponse](r, req)
		out := map[string]answer{}
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				out[fmt.Sprint(rt.Topic, "-", p.Partition)] = answer{p.Offset, p.LeaderEpoch, deref(p.Metadata), p.ErrorCode}
			}
		}
		top := resp.ErrorCode
		for _, g := range resp.Groups {
			top = g.ErrorCode
			for _, rt := range g.Topics {
				for _, p := range rt.Partitions {
					out[fmt.Sprint(rt.Topic, "-", p.Partition)] = answer{p.Offset, p.LeaderEpoch, deref(p.Metadata), p.ErrorCode}
				}
			}
		}
		return out, top
	}
	named := []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0, 1}}}
	for _, v := range r.upTo(kmsg.OffsetFetch, 1, 9) {
		epoch := int32(3)
		if v < 5 {
			epoch = -1
		}
		f := func(what string, got map[string]answer, top int16, want map[string]answer) {
			t.Helper()
			for k, a := range got {
				if v < 5 {
					a.epoch = -1
					got[k] = a
				}
			}
			if top != 0 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("v%d, %s: error %d, %v; want %v", v, what, top, got, want)
			}
		}
		p0, p1 := topic+"-0", topic+"-1"
		none := answer{-1, -1, "", 0}
		got, top := fetch(v, group, named)
		f("named", got, top, map[string]answer{p0: {5, epoch, "m", 0}, p1: none})
		if v >= 2 {
			got, top = fetch(v, group, nil)
			f("all", got, top, map[string]answer{p0: {5, epoch, "m", 0}})
		}
		got, top = fetch(v, group, []kmsg.OffsetFetchRequestTopic{})
		f("none", got, top, map[string]answer{})
		got, top = fetch(v, "no-such-group", named)
		f("unknown group", got, top, map[string]answer{p0: none, p1: none})
	}
	if v := r.newest(kmsg.OffsetFetch, 10); v >= 8 { // several groups at once
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = 8
		for _, name := range []string{group, "no-such-group"} {
			req.Groups = append(req.Groups, kmsg.OffsetFetchRequestGroup{Group: name, MemberEpoch: -1})
		}
		resp := ask[*kmsg.OffsetFetchResponse](r, req)
		if len(resp.Groups) != 2 || resp.Groups[0].Group != group || len(resp.Groups[0].Topics) != 1 || len(resp.Groups[1].Topics) != 0 {
			t.Errorf("v8, two groups: %+v", resp.Groups)
		}
	}
	if r.offers(kmsg.OffsetFetch, 10) { // by topic id
		id := r.topicID(topic)
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = 10
		req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group, MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{
			{TopicID: id, Partitions: []int32{0}}, {TopicID: [16]byte{1}, Partitions: []int32{0}}}}}
		resp := ask[*kmsg.OffsetFetchResponse](r, req)
		for _, rt := range resp.Groups[0].Topics {
			p := rt.Partitions[0]
			if rt.TopicID == id && (p.ErrorCode != 0 || p.Offset != 5) || rt.TopicID != id && p.ErrorCode != 100 {
				t.Errorf("v10: %+v", rt)
			}
		}
		cr := commitRequest(10, outsider(r, group), commit{"", 0, 9, -1, ""})
		cr.Topics[0].TopicID = id
		code(t, "OffsetCommit v10", ask[*kmsg.OffsetCommitResponse](r, cr).Topics[0].Partitions[0].ErrorCode, 0)
		if got, _ := r.committed(group); got[topic+"-0"].offset != 9 {
			t.Errorf("after OffsetCommit v10: %v", got)
		}
	}
}

func commitsOfNowhere(t *testing.T, r *rawConn) {
	group := unique(t)
	topic := r.topic(1)
	r.coordinator(group)
	req := commitRequest(7, outsider(r, group), commit{topic, 0, 1, -1, ""}, commit{topic, 99, 1, -1, ""}, commit{"no-such-topic", 0, 1, -1, ""})
	for _, rt := range ask[*kmsg.OffsetCommitResponse](r, req).Topics {
		for _, p := range rt.Partitions {
			want := int16(3)
			if rt.Topic == topic && p.Partition == 0 {
				want = 0
			}
			code(t, fmt.Sprintf("%s-%d", rt.Topic, p.Partition), p.ErrorCode, want)
		}
	}
	if all, _ := r.committed(group); len(all) != 1 || all[topic+"-0"].offset != 1 {
		t.Errorf("stored: %v", all)
	}
	long := string(make([]byte, 5000))
	code(t, "metadata of 5000 bytes", outsider(r, group).commit(commit{topic, 0, 2, -1, long})[0], 12)
	m := &member{r: r, group: unique(t), id: "ghost", gen: 3}
	code(t, "a member of an unknown group", m.commit(commit{topic, 0, 2, -1, ""})[0], 22, 25, 69)
}

func offsetDelete(t *testing.T, r *rawConn) {
	r.need(kmsg.OffsetDelete, 0)
	group := unique(t)
	topic := r.topic(3)
	r.coordinator(group)
	outsider(r, group).commit(commit{topic, 0, 1, -1, ""}, commit{topic, 1, 1, -1, ""})
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 77}}}}
	resp := ask[*kmsg.OffsetDeleteResponse](r, req)
	code(t, "top", resp.ErrorCode, 0)
	for _, p := range resp.Topics[0].Partitions {
		if p.Partition == 0 {
			code(t, "committed", p.ErrorCode, 0)
		} else {
			code(t, "no such partition", p.ErrorCode, 3)
		}
	}
	if got, _ := r.committed(group); len(got) != 1 || got[topic+"-1"].offset != 1 {
		t.Errorf("left: %v", got)
	}
	req.Group = "no-such-group"
	code(t, "unknown group", ask[*kmsg.OffsetDeleteResponse](r, req).ErrorCode, 69)
}

func comeAndGo(t *testing.T, r *rawConn) {
	group := unique(t)
	r.coordinator(group)
	addr := r.c.RemoteAddr().String()
	a, b := dial(t, addr).member(group), dial(t, addr).member(group)
	rebalance(t, a, b)
	for round := range 10 {
		c := dial(t, addr).member(group)
		done := make(chan struct{})
		go func() { c.join(); close(done) }()
		eventually(t, 5*time.Second, "join phase", func() (string, bool) { x := a.heartbeat(); return fmt.Sprint(x), x == 27 })
		if round%2 == 0 { // leaves while the group prepares to rebalance
			lv := kmsg.NewPtrLeaveGroupRequest()
			lv.Version, lv.Group, lv.Members = 3, group, []kmsg.LeaveGroupRequestMember{{MemberID: b.id}}
			ask[*kmsg.LeaveGroupResponse](b.r, lv)
			b.id = ""
			a.join()
			<-done
			if a.gen != c.gen {
				t.Fatalf("round %d: generations %d and %d", round, a.gen, c.gen)
			}
			lead, follow := a, c
			if c.leader {
				lead, follow = c, a
			}
			lead.sync(a.id, c.id)
			follow.sync()
			b = c
			continue
		}
		var wg sync.WaitGroup
		for _, m := range []*member{a, b} {
			wg.Go(func() { m.join() })
		}
		wg.Wait()
		<-done
		c.leave()
		eventually(t, 5*time.Second, "rebalance after a leave", func() (string, bool) { x := a.heartbeat(); return fmt.Sprint(x), x == 27 })
		rebalance(t, a, b)
	}
	a.leave()
	b.leave()
	eventually(t, 5*time.Second, "an empty group is Empty", func() (string, bool) {
		s := r.describe(4, group)[0].State
		return s, s == "Empty"
	})
}

func memberDies(t *testing.T, r *rawConn) {
	group := unique(t)
	r.coordinator(group)
	addr := r.c.RemoteAddr().String()
	a, b := dial(t, addr).member(group), dial(t, addr).member(group)
	for _, m := range []*member{a, b} {
		m.r.timeout = 30 * time.Second
	}
	short := func(m *member) {
		req := joinRequest(3, group, m.id, nil, "consumer", "range")
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 6000, 10000
		resp := ask[*kmsg.JoinGroupResponse](m.r, req)
		m.id, m.gen, m.leader = resp.MemberID, resp.Generation, resp.MemberID == resp.LeaderID
	}
	var wg sync.WaitGroup
	short(a)
	wg.Go(func() { short(b) })
	eventually(t, 5*time.Second, "join phase", func() (string, bool) { x := a.heartbeat(); return fmt.Sprint(x), x == 27 })
	short(a)
	wg.Wait()
	lead, follow := a, b
	if b.leader {
		lead, follow = b, a
	}
	lead.sync(a.id, b.id)
	follow.sync()
	begin := time.Now()
	b.r.c.Close() // and never a word again
	eventually(t, 12*time.Second, "the group notices", func() (string, bool) {
		time.Sleep(200 * time.Millisecond)
		x := a.heartbeat()
		return fmt.Sprint(x), x == 27
	})
	if took := time.Since(begin); took < 5*time.Second {
		t.Errorf("noticed after %v, session is 6 s", took)
	}
	short(a)
	if got := r.describe(4, group)[0]; len(got.Members) != 1 || !a.leader {
		t.Errorf("%d members, leader %v", len(got.Members), a.leader)
	}
}

func listedByState(t *testing.T, r *rawConn) {
	live, empty := r.member(unique(t)), unique(t)
	r.coordinator(live.group)
	r.coordinator(empty)
	live.stable()
	outsider(r, empty).commit(commit{r.topic(1), 0, 5, -1, ""})
	for _, v := range r.upTo(kmsg.ListGroups, 0, 5) {
		list := func(states, types []string) map[string]kmsg.ListGroupsResponseGroup {
			req := kmsg.NewPtrListGroupsRequest()
			req.Version, req.StatesFilter, req.TypesFilter = v, states, types
			resp := ask[*kmsg.ListGroupsResponse](r, req)
			code(t, fmt.Sprintf("v%d", v), resp.ErrorCode, 0)
			out := map[string]kmsg.ListGroupsResponseGroup{}
			for _, g := range resp.Groups {
				out[g.Group] = g
			}
			return out
		}
		all := list(nil, nil)
		l, e := all[live.group], all[empty]
		if l.Group == "" || e.Group == "" || l.ProtocolType != "consumer" || e.ProtocolType != "" {
			t.Errorf("v%d: %+v %+v", v, l, e)
		}
		if v >= 4 {
			if l.GroupState != "Stable" || e.GroupState != "Empty" {
				t.Errorf("v%d: states %s, %s", v, l.GroupState, e.GroupState)
			}
			only := list([]string{"Stable"}, nil)
			if only[live.group].Group == "" || only[empty].Group != "" {
				t.Errorf("v%d: filtered by Stable: %v", v, only)
			}
		}
		if v >= 5 {
			if l.GroupType != "classic" {
				t.Errorf("v%d: type %s", v, l.GroupType)
			}
			if only := list(nil, []string{"consumer"}); only[live.group].Group != "" {
				t.Errorf("v%d: filtered by type consumer: %v", v, only)
			}
			if only := list(nil, []string{"classic"}); only[live.group].Group == "" {
				t.Errorf("v%d: filtered by type classic: %v", v, only)
			}
		}
	}
}

// B095: commits outlive a clean restart and a kill right after the
// acknowledgement; while the coordinator loads it says so.
func TestCommitsSurvive(t *testing.T) {
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	group := unique(t)
	r.coordinator(group)
	for round := range 4 {
		want := int64(1000 * (round + 1))
		code(t, "commit", outsider(r, group).commit(commit{topic, 0, want, 2, "x"})[0], 0)
		if round%2 == 0 {
			b.kill(t)
		} else {
			b.stop(t)
		}
		b.start(t)
		r = dial(t, b.addr)
		eventually(t, 30*time.Second, "the commit is back", func() (string, bool) {
			got, top := r.committed(group)
			c, there := got[topic+"-0"]
			if top == 0 && (!there || c.offset != want || c.metadata != "x" || c.epoch != 2) {
				t.Fatalf("round %d: error 0 and %v, want %d", round, got, want)
			}
			if top != 0 && top != 14 && top != 15 && top != 16 {
				t.Fatalf("round %d: error %d while loading", round, top)
			}
			return fmt.Sprintf("error %d", top), top == 0
		})
	}
}
