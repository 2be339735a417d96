package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// Heartbeat 0-4. v3 instance id (KIP-345).

func (s *Shard) heartbeat(now time.Time, tok machine.Token, q *kmsg.HeartbeatRequest) {
	p := kmsg.NewPtrHeartbeatResponse()
	p.Version = q.Version
	p.ErrorCode = code(s.beat(now, q))
	s.reply(tok, p)
}

func (s *Shard) beat(now time.Time, q *kmsg.HeartbeatRequest) kafka.Error {
	if q.Group == "" {
		return kafka.ErrInvalidGroupID
	}
	g := s.groups[q.Group]
	if g == nil {
		return kafka.ErrUnknownMemberID
	}
	m, e := g.check(q.MemberID, q.InstanceID)
	switch {
	case e != kafka.NoError:
		return e
	case q.Generation != g.generation:
		return kafka.ErrIllegalGeneration
	}
	s.armSession(now, g, m)
	if g.state == PreparingRebalance {
		return kafka.ErrRebalanceInProgress
	}
	return kafka.NoError
}

func (s *Shard) sessionTimer(g *group, m *member) {
	if m.session == nil {
		m.session = newTimer(func(now time.Time) { s.sessionExpired(now, g, m) })
	}
}

// armSession gives a member a whole session timeout from now.
func (s *Shard) armSession(now time.Time, g *group, m *member) {
	s.sessionTimer(g, m)
	s.timers.set(m.session, now.Add(ms(m.sessionMs)))
}

func (s *Shard) sessionExpired(now time.Time, g *group, m *member) {
	// Who waits for the group cannot send heartbeats; the answer arms the
	// session again. Only a new member's first join is bounded.
	if !m.isNew && (m.join != nil || m.sync != nil) {
		return
	}
	s.remove(g, m)
	s.lost(now, g)
}

func (s *Shard) pendingExpired(now time.Time, g *group, id string) {
	delete(g.pendingJoin, id)
	s.maybeCompleteJoin(now, g)
}

// remove takes a member out and answers what it waited for. The caller goes on
// with lost, unless a rebalance is decided anyway.
func (s *Shard) remove(g *group, m *member) {
	s.timers.stop(m.session)
	if m.join != nil {
		s.refuseJoin(m.join, "", kafka.ErrUnknownMemberID)
		m.join = nil
	}
	if m.sync != nil {
		s.refuseSync(m.sync, kafka.ErrUnknownMemberID)
		m.sync = nil
	}
	g.drop(m)
}

// lost goes on after members are gone.
func (s *Shard) lost(now time.Time, g *group) {
	switch g.state {
	case Stable, CompletingRebalance:
		s.prepareRebalance(now, g)
	case PreparingRebalance:
		s.maybeCompleteJoin(now, g)
	}
}

// LeaveGroup 0-5. v3 several members, also by instance id alone (KIP-345); v5
// reason.

func (s *Shard) leaveGroup(now time.Time, tok machine.Token, q *kmsg.LeaveGroupRequest) {
	p := kmsg.NewPtrLeaveGroupResponse()
	p.Version = q.Version
	g := s.groups[q.Group]
	switch {
	case q.Group == "":
		p.ErrorCode = code(kafka.ErrInvalidGroupID)
	case g == nil && q.Version < 3:
		p.ErrorCode = code(kafka.ErrUnknownMemberID)
	case g == nil:
		for _, l := range q.Members {
			p.Members = append(p.Members, kmsg.LeaveGroupResponseMember{
				MemberID: l.MemberID, InstanceID: l.InstanceID, ErrorCode: code(kafka.ErrUnknownMemberID),
			})
		}
	case q.Version < 3:
		e, gone := s.leave(now, g, q.MemberID, nil)
		p.ErrorCode = code(e)
		if gone {
			s.lost(now, g)
		}
	default:
		some := false
		for _, l := range q.Members {
			e, gone := s.leave(now, g, l.MemberID, l.InstanceID)
			some = some || gone
			p.Members = append(p.Members, kmsg.LeaveGroupResponseMember{
				MemberID: l.MemberID, InstanceID: l.InstanceID, ErrorCode: code(e),
			})
		}
		if some {
			s.lost(now, g)
		}
	}
	s.reply(tok, p)
}

func (s *Shard) leave(now time.Time, g *group, id string, instance *string) (e kafka.Error, gone bool) {
	if t := g.pendingJoin[id]; t != nil {
		s.timers.stop(t)
		delete(g.pendingJoin, id)
		s.maybeCompleteJoin(now, g)
		return kafka.NoError, false
	}
	if id == "" && instance != nil {
		if m := g.byStatic[*instance]; m != nil {
			s.remove(g, m)
			return kafka.NoError, true
		}
		return kafka.ErrUnknownMemberID, false
	}
	m, e := g.check(id, instance)
	if e != kafka.NoError {
		return e, false
	}
	s.remove(g, m)
	return kafka.NoError, true
}
