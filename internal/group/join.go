package group

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// JoinGroup 0-9. v1 rebalance timeout; v4 MEMBER_ID_REQUIRED (KIP-394); v5
// instance id (KIP-345); v7 protocol type in the answer; v8 reason; v9 skip
// assignment for a leader that came back (KIP-814).

const (
	memberIDRequiredFrom = 4
	skipAssignmentFrom   = 9
)

func (s *Shard) joinGroup(now time.Time, tok machine.Token, r *Request, q *kmsg.JoinGroupRequest) {
	w := &waiting{tok: tok, version: q.Version}
	if q.Version == 0 || q.RebalanceTimeoutMillis < 0 {
		q.RebalanceTimeoutMillis = q.SessionTimeoutMillis
	}
	g := s.groups[q.Group]
	switch {
	case q.Group == "":
		s.refuseJoin(w, q.MemberID, kafka.ErrInvalidGroupID)
	case tooLong(q, r.ClientID):
		s.refuseJoin(w, "", kafka.ErrInvalidRequest)
	case q.SessionTimeoutMillis < s.cfg.MinSessionMs, q.SessionTimeoutMillis > s.cfg.MaxSessionMs:
		s.refuseJoin(w, q.MemberID, kafka.ErrInvalidSessionTimeout)
	case g == nil && q.MemberID != "":
		s.refuseJoin(w, q.MemberID, kafka.ErrUnknownMemberID)
	case g != nil && !s.hasRoom(g, q.MemberID):
		s.refuseJoin(w, "", kafka.ErrGroupMaxSizeReached)
		if m := g.byID[q.MemberID]; m != nil {
			s.remove(g, m)
			s.lost(now, g) // perhaps it was the last one waited for
		}
	case q.MemberID == "":
		s.joinNew(now, w, g, r, q)
	default:
		s.joinAgain(now, w, g, r, q)
	}
}

// tooLong says whether a string would not fit the records, whose strings have
// 16-bit lengths; requests of flexible versions can carry longer ones. A member
// id is a client or instance id and about forty bytes.
func tooLong(q *kmsg.JoinGroupRequest, clientID string) bool {
	const most, prefix = math.MaxInt16, math.MaxInt16 - 128
	long := len(q.Group) > most || len(q.MemberID) > most || len(q.ProtocolType) > most || len(clientID) > prefix ||
		q.InstanceID != nil && len(*q.InstanceID) > prefix
	for i := range q.Protocols {
		long = long || len(q.Protocols[i].Name) > most
	}
	return long
}

// hasRoom keeps a group within group.max.size. While members join, those who
// already wait count, so that a group above a lowered bound loses its latest.
func (s *Shard) hasRoom(g *group, id string) bool {
	m := g.byID[id]
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.join != nil || g.awaitingJoin() < s.cfg.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < s.cfg.MaxSize
	}
	return true
}

func (s *Shard) joinNew(now time.Time, w *waiting, g *group, r *Request, q *kmsg.JoinGroupRequest) {
	fresh := g == nil
	if fresh {
		g = newGroup(q.Group)
		g.enter(Empty, now)
	}
	if !g.supports(q.ProtocolType, q.Protocols) {
		s.refuseJoin(w, "", kafka.ErrInconsistentGroupProtocol)
		return
	}
	if fresh {
		s.groups[g.name] = g
		s.write(g.metadataRecord())
	}
	switch {
	case q.InstanceID != nil:
		id := s.newMemberID(*q.InstanceID)
		if old := g.byStatic[*q.InstanceID]; old != nil {
			s.replaceStatic(now, w, g, old, id, r, q)
			return
		}
		s.addMember(now, w, g, id, r, q)
	case q.Version >= memberIDRequiredFrom:
		id := s.newMemberID(r.ClientID)
		t := newTimer(func(now time.Time) { s.pendingExpired(now, g, id) })
		g.pendingJoin[id] = t
		s.timers.set(t, now.Add(ms(q.SessionTimeoutMillis)))
		s.refuseJoin(w, id, kafka.ErrMemberIDRequired)
	default:
		s.addMember(now, w, g, s.newMemberID(r.ClientID), r, q)
	}
}

func (s *Shard) joinAgain(now time.Time, w *waiting, g *group, r *Request, q *kmsg.JoinGroupRequest) {
	if !g.supports(q.ProtocolType, q.Protocols) {
		s.refuseJoin(w, q.MemberID, kafka.ErrInconsistentGroupProtocol)
		return
	}
	if t := g.pendingJoin[q.MemberID]; t != nil && q.InstanceID == nil {
		s.timers.stop(t)
		delete(g.pendingJoin, q.MemberID)
		s.addMember(now, w, g, q.MemberID, r, q)
		return
	}
	m, e := g.check(q.MemberID, q.InstanceID)
	if e != kafka.NoError {
		s.refuseJoin(w, q.MemberID, e)
		return
	}
	switch {
	case g.state == Empty:
		s.refuseJoin(w, q.MemberID, kafka.ErrUnknownMemberID)
	case g.state == PreparingRebalance,
		!m.offers(q.Protocols),
		g.state == Stable && g.leader == m.id: // a leader joins to make a rebalance
		s.updateMember(g, m, w, q)
		s.rebalanceOrComplete(now, g)
	default: // the answer got lost: the same one again
		s.answerJoin(g, m, w, g.leader, false)
		s.armSession(now, g, m)
	}
}

func (s *Shard) addMember(now time.Time, w *waiting, g *group, id string, r *Request, q *kmsg.JoinGroupRequest) {
	m := &member{
		id: id, instance: q.InstanceID, clientID: r.ClientID, clientHost: r.ClientHost,
		sessionMs: q.SessionTimeoutMillis, rebalanceMs: q.RebalanceTimeoutMillis,
		assignment: []byte{}, isNew: true, join: w,
	}
	if g.state == PreparingRebalance && g.previous == Empty {
		g.newMember = true
	}
	g.add(m, q.ProtocolType, q.Protocols)
	s.sessionTimer(g, m)
	s.timers.set(m.session, now.Add(newMemberJoinMs*time.Millisecond))
	s.rebalanceOrComplete(now, g)
}

// updateMember takes over what a member says when it joins again. An answer it
// still waited for elsewhere is given up.
func (s *Shard) updateMember(g *group, m *member, w *waiting, q *kmsg.JoinGroupRequest) {
	g.offer(m, q.Protocols)
	m.sessionMs, m.rebalanceMs = q.SessionTimeoutMillis, q.RebalanceTimeoutMillis
	if m.join != nil {
		s.refuseJoin(m.join, m.id, kafka.ErrRebalanceInProgress)
	}
	m.join = w
}

// replaceStatic lets a restarted static member take the place of its former
// self (KIP-345). In a Stable group that goes without a rebalance as long as
// the same protocol is elected: the member syncs into its old assignment.
func (s *Shard) replaceStatic(now time.Time, w *waiting, g *group, old *member, id string, r *Request, q *kmsg.JoinGroupRequest) {
	if old.join != nil {
		s.refuseJoin(old.join, old.id, kafka.ErrFencedInstanceID)
	}
	if old.sync != nil {
		s.refuseSync(old.sync, kafka.ErrFencedInstanceID)
	}
	s.timers.stop(old.session)
	formerLeader := g.leader
	m := &member{
		id: id, instance: q.InstanceID, clientID: r.ClientID, clientHost: r.ClientHost,
		sessionMs: q.SessionTimeoutMillis, rebalanceMs: q.RebalanceTimeoutMillis,
		assignment: old.assignment, join: w,
	}
	g.members[slices.Index(g.members, old)] = m
	g.offer(old, nil)
	g.offer(m, q.Protocols)
	delete(g.byID, old.id)
	g.byID[id], g.byStatic[*q.InstanceID] = m, m
	if g.leader == old.id {
		g.leader = id
	}
	if _, owes := g.pendingSync[old.id]; owes {
		delete(g.pendingSync, old.id)
		g.pendingSync[id] = struct{}{}
	}
	s.armSession(now, g, m)

	switch g.state {
	case Stable:
		rec := g.metadataRecord()
		if g.protocol == nil || g.elect() != *g.protocol || !s.fits(rec) {
			s.prepareRebalance(now, g)
			return
		}
		m.join = nil
		s.write(rec)
		if q.Version >= skipAssignmentFrom {
			s.answerJoin(g, m, w, g.leader, g.leader == id)
		} else {
			// Told that the leader is its former self, it does not assign.
			s.answerJoin(g, m, w, formerLeader, false)
		}
	case CompletingRebalance:
		s.prepareRebalance(now, g)
	case PreparingRebalance:
		s.maybeCompleteJoin(now, g)
	}
}

// rebalanceOrComplete starts a rebalance, or ends the join phase of the one at
// work if that is all it waited for.
func (s *Shard) rebalanceOrComplete(now time.Time, g *group) {
	if g.state == PreparingRebalance {
		s.maybeCompleteJoin(now, g)
		return
	}
	s.prepareRebalance(now, g)
}

func (s *Shard) maybeCompleteJoin(now time.Time, g *group) {
	// A first join phase always waits for its delay.
	if g.state == PreparingRebalance && g.previous != Empty && g.allJoined() {
		s.completeJoin(now, g)
	}
}

func (s *Shard) prepareRebalance(now time.Time, g *group) {
	if g.state == CompletingRebalance {
		for _, m := range g.members {
			m.assignment = []byte{}
			if m.sync != nil {
				s.refuseSync(m.sync, kafka.ErrRebalanceInProgress)
				m.sync = nil
				s.armSession(now, g, m)
			}
		}
	}
	s.stopSync(g)
	first := g.state == Empty
	g.enter(PreparingRebalance, now)
	if g.joinTimer != nil {
		s.timers.stop(g.joinTimer)
	}
	switch {
	case first:
		delay := s.cfg.InitialRebalanceDelayMs
		s.initialDelay(now, g, delay, max(g.rebalanceMs()-delay, 0))
	case g.allJoined():
		s.completeJoin(now, g)
	default:
		s.armJoin(now, g)
	}
}

// initialDelay waits for more members of a new group. As long as some come it
// waits on, up to the rebalance timeout in all.
func (s *Shard) initialDelay(now time.Time, g *group, delayMs, leftMs int32) {
	g.newMember = false
	g.joinTimer = newTimer(func(now time.Time) {
		if g.newMember && leftMs > 0 {
			next := min(s.cfg.InitialRebalanceDelayMs, leftMs)
			s.initialDelay(now, g, next, max(leftMs-delayMs, 0))
			return
		}
		s.completeJoin(now, g)
	})
	s.timers.set(g.joinTimer, now.Add(ms(delayMs)))
}

func (s *Shard) armJoin(now time.Time, g *group) {
	g.joinTimer = newTimer(func(now time.Time) { s.completeJoin(now, g) })
	s.timers.set(g.joinTimer, now.Add(ms(g.rebalanceMs())))
}

// completeJoin ends the join phase: who has not joined is out, static members
// excepted, and the rest is a new generation.
func (s *Shard) completeJoin(now time.Time, g *group) {
	s.timers.stop(g.joinTimer)
	g.joinTimer = nil
	for _, m := range slices.Clone(g.members) {
		if m.join == nil && m.instance == nil {
			s.remove(g, m)
		}
	}
	if len(g.members) > 0 && !g.electLeader() {
		s.armJoin(now, g) // only static members that are away: wait on
		return
	}
	g.generation++
	clear(g.pendingSync)
	if len(g.members) == 0 {
		g.protocol, g.leader = nil, ""
		g.enter(Empty, now)
		g.subscriptions()
		s.write(g.metadataRecord())
		return
	}
	g.protocol = kmsg.StringPtr(g.elect())
	g.enter(CompletingRebalance, now)
	g.subscriptions()
	for _, m := range g.members {
		if m.join != nil {
			s.answerJoin(g, m, m.join, g.leader, false)
			m.join = nil
		}
		m.isNew = false
		s.armSession(now, g, m)
		g.pendingSync[m.id] = struct{}{}
	}
	s.armSync(now, g)
}

// electLeader keeps the leader if it has joined, else takes the oldest member
// that has; false: nobody has.
func (g *group) electLeader() bool {
	if m := g.byID[g.leader]; m != nil && m.join != nil {
		return true
	}
	for _, m := range g.members {
		if m.join != nil {
			g.leader = m.id
			return true
		}
	}
	return false
}

// answerJoin tells a member its generation. The leader, or one that is let to
// skip the assignment, also gets everybody's metadata.
func (s *Shard) answerJoin(g *group, m *member, w *waiting, leader string, skip bool) {
	p := kmsg.NewPtrJoinGroupResponse()
	p.Version = w.version
	p.Generation = g.generation
	p.ProtocolType = kmsg.StringPtr(g.protocolType)
	p.Protocol = g.protocol
	p.LeaderID = leader
	p.MemberID = m.id
	p.SkipAssignment = skip
	if leader == m.id {
		for _, o := range g.members {
			p.Members = append(p.Members, kmsg.JoinGroupResponseMember{
				MemberID: o.id, InstanceID: o.instance, ProtocolMetadata: o.metadata(g.protocol),
			})
		}
	}
	s.reply(w.tok, p)
}

func (s *Shard) refuseJoin(w *waiting, memberID string, e kafka.Error) {
	p := kmsg.NewPtrJoinGroupResponse()
	p.Version = w.version
	p.ErrorCode = code(e)
	p.Generation = -1
	p.MemberID = memberID
	s.reply(w.tok, p)
}
