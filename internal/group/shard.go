package group

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// Shard holds the groups of one partition of __consumer_offsets. It is a
// machine.Machine[Record].
type Shard struct {
	cfg         Config
	newMemberID func(prefix string) string
	groups      map[string]*group
	timers      timers
	sweep       *timer
	sweepFrom   string // group before the one where a divided sweep goes on
	skipped     int

	out machine.Step[Record] // of the running call
}

var _ machine.Machine[Record] = (*Shard)(nil)

// NewShard makes an empty shard. newMemberID makes a member id that is unique
// in the cluster from a prefix: the client id, or the instance id of a static
// member; Kafka's is prefix, "-", a random UUID.
func NewShard(cfg Config, newMemberID func(prefix string) string) *Shard {
	s := &Shard{cfg: cfg.withDefaults(), newMemberID: newMemberID, groups: map[string]*group{}}
	s.sweep = newTimer(s.expireOffsets)
	return s
}

// Handle decides one request. req is a *Request or a TopicDeleted.
func (s *Shard) Handle(now time.Time, from machine.Token, req any) machine.Step[Record] {
	if d, ok := req.(TopicDeleted); ok {
		req = &Request{Req: d}
	}
	r, ok := req.(*Request)
	if !ok {
		panic(fmt.Sprintf("BUG: group: input %T", req))
	}
	switch q := r.Req.(type) {
	case *kmsg.JoinGroupRequest:
		s.joinGroup(now, from, r, q)
	case *kmsg.SyncGroupRequest:
		s.syncGroup(now, from, q)
	case *kmsg.HeartbeatRequest:
		s.heartbeat(now, from, q)
	case *kmsg.LeaveGroupRequest:
		s.leaveGroup(now, from, q)
	case *kmsg.OffsetCommitRequest:
		s.offsetCommit(now, from, r, q)
	case *kmsg.OffsetFetchRequest:
		s.offsetFetch(from, r, q)
	case FetchGroup:
		s.reply(from, s.fetchGroup(r, q))
	case *kmsg.OffsetDeleteRequest:
		s.offsetDelete(from, r, q)
	case *kmsg.ListGroupsRequest:
		s.listGroups(from, q)
	case DescribeGroup:
		s.reply(from, s.describeGroup(q))
	case DeleteGroup:
		s.reply(from, s.deleteGroup(q))
	case TopicDeleted:
		s.topicDeleted(q)
		s.reply(from, q)
	default:
		panic(fmt.Sprintf("BUG: group: request %T", r.Req))
	}
	return s.take()
}

// Expire fires the deadlines up to now.
func (s *Shard) Expire(now time.Time) machine.Step[Record] {
	s.timers.run(now)
	return s.take()
}

// NextDeadline is when Expire is next wanted; it may be early, never late.
func (s *Shard) NextDeadline() time.Time { return s.timers.next() }

func (s *Shard) take() machine.Step[Record] {
	out := s.out
	s.out = machine.Step[Record]{}
	return out
}

func (s *Shard) reply(tok machine.Token, resp any) {
	if tok != 0 {
		s.out.Reply(tok, resp)
	}
}

func (s *Shard) write(r Record) { s.out.Records = append(s.out.Records, r) }

// Replay takes one record of the log. What it cannot read, and kinds of records
// it does not know, it leaves alone and counts.
func (s *Shard) Replay(_ int64, r Record) {
	v, ok := keyVersion(r.Key)
	switch {
	case ok && (v == 0 || v == 1):
		ok = s.replayCommit(r)
	case ok && v == groupKeyVersion:
		ok = s.replayGroup(r)
	default:
		ok = false
	}
	if !ok {
		s.skipped++
	}
}

// Skipped is how many replayed records were not understood.
func (s *Shard) Skipped() int { return s.skipped }

func (s *Shard) replayCommit(r Record) bool {
	var k kmsg.OffsetCommitKey // its strings alias the record: a load sees the same few ten thousand times
	if k.UnsafeReadFrom(r.Key) != nil {
		return false
	}
	g := s.groups[k.Group]
	if r.Value == nil {
		if g != nil {
			delete(g.offsets[k.Topic], k.Partition)
			if len(g.offsets[k.Topic]) == 0 {
				delete(g.offsets, k.Topic)
			}
		}
		return true
	}
	c, ok := parseCommit(r.Value)
	if !ok {
		return false
	}
	if g == nil { // a group that only commits has no record of its own
		g = newGroup(strings.Clone(k.Group))
		s.groups[g.name] = g
	}
	if g.offsets == nil {
		g.offsets = map[string]map[int32]commit{}
	}
	ps := g.offsets[k.Topic]
	if ps == nil {
		ps = map[int32]commit{}
		g.offsets[strings.Clone(k.Topic)] = ps
	}
	ps[k.Partition] = c
	return true
}

func (s *Shard) replayGroup(r Record) bool {
	var k kmsg.GroupMetadataKey
	if k.ReadFrom(r.Key) != nil {
		return false
	}
	g := s.groups[k.Group]
	if r.Value == nil {
		if g == nil {
			return true
		}
		g.saved = nil
		if len(g.offsets) == 0 {
			s.forget(g)
		}
		return true
	}
	if _, ok := parseGroup(r.Value); !ok {
		return false
	}
	if g == nil {
		g = newGroup(k.Group)
		s.groups[k.Group] = g
	}
	g.saved = bytes.Clone(r.Value)
	return true
}

// forget takes a group out, with its deadlines.
func (s *Shard) forget(g *group) {
	delete(s.groups, g.name)
	for _, t := range g.pendingJoin {
		s.timers.stop(t)
	}
	for _, m := range g.members {
		s.timers.stop(m.session)
	}
	s.timers.stop(g.joinTimer)
	s.timers.stop(g.syncTimer)
}

// Loaded takes up the groups as the records left them: every member gets a
// whole session timeout to show up again.
func (s *Shard) Loaded(now time.Time) {
	for _, name := range s.names() {
		g := s.groups[name]
		if g.saved == nil {
			continue
		}
		v, _ := parseGroup(g.saved)
		s.adopt(now, g, v)
	}
	s.timers.set(s.sweep, now.Add(time.Duration(s.cfg.RetentionCheckMs)*time.Millisecond))
	s.take() // nobody was there to ask anything
}

func (s *Shard) adopt(now time.Time, g *group, v *kmsg.GroupMetadataValue) {
	g.protocolType = v.ProtocolType
	g.generation = v.Generation
	g.protocol = v.Protocol
	g.sinceMs = v.CurrentStateTimestamp
	for i := range v.Members {
		f := &v.Members[i]
		m := &member{
			id: f.MemberID, instance: f.InstanceID, clientID: f.ClientID, clientHost: f.ClientHost,
			sessionMs: f.SessionTimeoutMillis, rebalanceMs: f.RebalanceTimeoutMillis, assignment: f.Assignment,
		}
		var ps []kmsg.JoinGroupRequestProtocol
		if v.Protocol != nil {
			ps = []kmsg.JoinGroupRequestProtocol{{Name: *v.Protocol, Metadata: f.Subscription}}
		}
		g.add(m, v.ProtocolType, ps)
		s.armSession(now, g, m)
	}
	if v.Leader != nil {
		g.leader = *v.Leader
	}
	g.state = Empty
	if len(g.members) > 0 {
		g.state = Stable
	}
	g.subscriptions()
}

func (s *Shard) names() []string {
	names := make([]string, 0, len(s.groups))
	for n := range s.groups {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// fits says whether one request may write these records.
func (s *Shard) fits(records ...Record) bool {
	n := 0
	for _, r := range records {
		n += len(r.Key) + len(r.Value) + recordOverhead
	}
	return n <= s.cfg.RecordsBytesMax
}

// recordOverhead is about what a record costs in a batch besides key and value.
const recordOverhead = 16

// code is a response's error field.
func code(e kafka.Error) int16 { return int16(e) }
