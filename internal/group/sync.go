package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// SyncGroup 0-5. v3 instance id (KIP-345); v5 protocol type and name, which
// must then be there (KIP-559).

func (s *Shard) syncGroup(now time.Time, tok machine.Token, q *kmsg.SyncGroupRequest) {
	w := &waiting{tok: tok, version: q.Version}
	if q.Version >= 5 && (q.ProtocolType == nil || q.Protocol == nil) {
		s.refuseSync(w, kafka.ErrInconsistentGroupProtocol)
		return
	}
	if q.Group == "" {
		s.refuseSync(w, kafka.ErrInvalidGroupID)
		return
	}
	g := s.groups[q.Group]
	if g == nil {
		s.refuseSync(w, kafka.ErrUnknownMemberID)
		return
	}
	m, e := g.check(q.MemberID, q.InstanceID)
	switch {
	case e != kafka.NoError:
		s.refuseSync(w, e)
	case q.Generation != g.generation:
		s.refuseSync(w, kafka.ErrIllegalGeneration)
	case q.ProtocolType != nil && *q.ProtocolType != g.protocolType,
		q.Protocol != nil && (g.protocol == nil || *q.Protocol != *g.protocol):
		s.refuseSync(w, kafka.ErrInconsistentGroupProtocol)
	case g.state == Empty:
		s.refuseSync(w, kafka.ErrUnknownMemberID)
	case g.state == PreparingRebalance:
		s.refuseSync(w, kafka.ErrRebalanceInProgress)
	case g.state == Stable:
		s.synced(g, m)
		s.answerSync(g, m, w)
		s.armSession(now, g, m)
	default:
		if m.sync != nil {
			s.refuseSync(m.sync, kafka.ErrRebalanceInProgress)
		}
		m.sync = w
		s.synced(g, m)
		if m.id == g.leader {
			s.assign(now, g, q.GroupAssignment)
		}
	}
}

// assign takes the leader's word: the generation is written down and everybody
// who waits gets a share. Answers leave with the record.
func (s *Shard) assign(now time.Time, g *group, as []kmsg.SyncGroupRequestGroupAssignment) {
	for _, m := range g.members {
		m.assignment = []byte{}
	}
	for _, a := range as {
		if m := g.byID[a.MemberID]; m != nil && a.MemberAssignment != nil {
			m.assignment = a.MemberAssignment
		}
	}
	// Dated by the state before, as Kafka's are.
	rec := g.metadataRecord()
	if !s.fits(rec) {
		for _, m := range g.members {
			m.assignment = []byte{}
			if m.sync != nil {
				s.refuseSync(m.sync, kafka.ErrUnknownServerError)
				m.sync = nil
				s.armSession(now, g, m)
			}
		}
		s.prepareRebalance(now, g)
		return
	}
	s.write(rec)
	g.enter(Stable, now)
	for _, m := range g.members {
		if m.sync != nil {
			s.answerSync(g, m, m.sync)
			m.sync = nil
			s.armSession(now, g, m)
		}
	}
}

// synced notes that a member no longer owes its SyncGroup.
func (s *Shard) synced(g *group, m *member) {
	delete(g.pendingSync, m.id)
	if len(g.pendingSync) == 0 {
		s.stopSync(g)
	}
}

// armSync waits for everybody's SyncGroup as long as for their JoinGroup.
func (s *Shard) armSync(now time.Time, g *group) {
	g.syncTimer = newTimer(func(now time.Time) { s.syncExpired(now, g) })
	s.timers.set(g.syncTimer, now.Add(ms(g.rebalanceMs())))
}

func (s *Shard) stopSync(g *group) {
	s.timers.stop(g.syncTimer)
	g.syncTimer = nil
}

// syncExpired puts out the members that never asked for their assignment.
func (s *Shard) syncExpired(now time.Time, g *group) {
	g.syncTimer = nil
	if g.state != CompletingRebalance && g.state != Stable || len(g.pendingSync) == 0 {
		return
	}
	for i := 0; i < len(g.members); {
		if m := g.members[i]; !in(g.pendingSync, m.id) {
			i++
		} else {
			s.remove(g, m)
		}
	}
	s.prepareRebalance(now, g)
}

func in[K comparable](set map[K]struct{}, k K) bool { _, ok := set[k]; return ok }

func (s *Shard) answerSync(g *group, m *member, w *waiting) {
	p := kmsg.NewPtrSyncGroupResponse()
	p.Version = w.version
	p.ProtocolType = kmsg.StringPtr(g.protocolType)
	p.Protocol = g.protocol
	p.MemberAssignment = m.assignment
	s.reply(w.tok, p)
}

func (s *Shard) refuseSync(w *waiting, e kafka.Error) {
	p := kmsg.NewPtrSyncGroupResponse()
	p.Version = w.version
	p.ErrorCode = code(e)
	p.MemberAssignment = []byte{}
	s.reply(w.tok, p)
}
