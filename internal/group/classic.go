package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// State is where a classic group stands. The names are Kafka's, shown by
// DescribeGroups and ListGroups.
type State uint8

// The states. A group is Empty without members, then goes around
// PreparingRebalance (members join), CompletingRebalance (the leader assigns)
// and Stable.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	dead // only told of groups that do not exist
)

func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}[s]
}

// consumerType is the protocol type whose subscriptions the coordinator reads.
const consumerType = "consumer"

// group is one classic group. Hard state is saved and offsets: the last record
// of the group and its commits. The rest is the running group, which a new
// coordinator takes up again from saved.
type group struct {
	name string

	saved   []byte // value of the last group record; nil: none (simple group)
	offsets map[string]map[int32]commit

	state        State
	previous     State
	sinceMs      int64 // when the state was entered; -1: not known
	protocolType string
	generation   int32
	protocol     *string // of the generation
	leader       string

	members  []*member // in order of joining
	byID     map[string]*member
	byStatic map[string]*member // by instance id
	offering map[string]int     // how many members offer a protocol

	pendingJoin map[string]*timer   // ids handed out by MEMBER_ID_REQUIRED
	pendingSync map[string]struct{} // members of the generation that owe a SyncGroup

	// subscribed is the union of the generation's subscriptions; nil while
	// they cannot be known (another protocol type, or bytes that do not parse).
	subscribed map[string]struct{}

	// newMember says that somebody joined since the initial delay was last
	// extended.
	newMember bool
	joinTimer *timer
	syncTimer *timer
}

type member struct {
	id          string
	instance    *string
	clientID    string
	clientHost  string
	sessionMs   int32
	rebalanceMs int32
	protocols   []kmsg.JoinGroupRequestProtocol
	assignment  []byte

	isNew   bool // waits in its first join phase
	session *timer

	join, sync *waiting
}

// waiting is a request that is answered by a later step.
type waiting struct {
	tok     machine.Token
	version int16
}

func newGroup(name string) *group {
	return &group{
		name:        name,
		sinceMs:     -1,
		byID:        map[string]*member{},
		byStatic:    map[string]*member{},
		offering:    map[string]int{},
		pendingJoin: map[string]*timer{},
		pendingSync: map[string]struct{}{},
	}
}

// metadata is the member's bytes for a protocol.
func (m *member) metadata(protocol *string) []byte {
	if protocol != nil {
		for _, p := range m.protocols {
			if p.Name == *protocol {
				return p.Metadata
			}
		}
	}
	return []byte{}
}

// offers says whether the member's protocols are exactly these.
func (m *member) offers(ps []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(m.protocols, ps, func(a, b kmsg.JoinGroupRequestProtocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

func (g *group) enter(s State, now time.Time) {
	g.previous, g.state, g.sinceMs = g.state, s, now.UnixMilli()
}

// supports says whether a member with these protocols fits in.
func (g *group) supports(protocolType string, ps []kmsg.JoinGroupRequestProtocol) bool {
	if protocolType == "" || len(ps) == 0 {
		return false
	}
	if len(g.members) == 0 {
		return true
	}
	if protocolType != g.protocolType {
		return false
	}
	for _, p := range ps {
		if g.common(p.Name) {
			return true
		}
	}
	return false
}

// common says whether every member offers the protocol.
func (g *group) common(protocol string) bool { return g.offering[protocol] == len(g.members) }

// offer gives a member of the group other protocols.
func (g *group) offer(m *member, ps []kmsg.JoinGroupRequestProtocol) {
	count := func(by int) {
		for i, p := range m.protocols {
			if slices.ContainsFunc(m.protocols[:i], func(o kmsg.JoinGroupRequestProtocol) bool { return o.Name == p.Name }) {
				continue // named twice
			}
			g.offering[p.Name] += by
			if g.offering[p.Name] == 0 {
				delete(g.offering, p.Name)
			}
		}
	}
	count(-1)
	m.protocols = ps
	count(+1)
}

// elect takes the protocol with most votes. A member votes for the first of its
// own list that all offer; among equals the oldest member's order decides.
func (g *group) elect() string {
	votes := map[string]int{}
	for _, m := range g.members {
		for _, p := range m.protocols {
			if g.common(p.Name) {
				votes[p.Name]++
				break
			}
		}
	}
	best := ""
	for _, p := range g.members[0].protocols {
		if votes[p.Name] > votes[best] {
			best = p.Name
		}
	}
	return best
}

// rebalanceMs is the longest any member wants to be waited for.
func (g *group) rebalanceMs() int32 {
	var most int32
	for _, m := range g.members {
		most = max(most, m.rebalanceMs)
	}
	return most
}

func (g *group) awaitingJoin() int {
	n := 0
	for _, m := range g.members {
		if m.join != nil {
			n++
		}
	}
	return n
}

func (g *group) allJoined() bool {
	return len(g.pendingJoin) == 0 && g.awaitingJoin() == len(g.members)
}

func (g *group) add(m *member, protocolType string, ps []kmsg.JoinGroupRequestProtocol) {
	if len(g.members) == 0 {
		g.protocolType = protocolType
	}
	if g.leader == "" {
		g.leader = m.id
	}
	g.members = append(g.members, m)
	g.offer(m, ps)
	g.byID[m.id] = m
	if m.instance != nil {
		g.byStatic[*m.instance] = m
	}
}

func (g *group) drop(m *member) {
	i := slices.Index(g.members, m)
	g.members = slices.Delete(g.members, i, i+1)
	g.offer(m, nil)
	delete(g.byID, m.id)
	delete(g.pendingSync, m.id)
	if m.instance != nil {
		delete(g.byStatic, *m.instance)
	}
	if g.leader == m.id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
}

// check finds the member a request speaks for: its id must be known, and an
// instance id must belong to it (KIP-345).
func (g *group) check(id string, instance *string) (*member, kafka.Error) {
	if instance != nil {
		switch s := g.byStatic[*instance]; {
		case s == nil:
			return nil, kafka.ErrUnknownMemberID
		case s.id != id:
			return nil, kafka.ErrFencedInstanceID
		}
	}
	if m := g.byID[id]; m != nil {
		return m, kafka.NoError
	}
	return nil, kafka.ErrUnknownMemberID
}

// subscriptions works out subscribed for the current members and protocol.
func (g *group) subscriptions() {
	g.subscribed = nil
	if g.protocolType != consumerType {
		return
	}
	all := map[string]struct{}{}
	if g.protocol == nil && len(g.members) > 0 {
		return
	}
	for _, m := range g.members {
		topics, ok := subscribedTopics(m.metadata(g.protocol))
		if !ok {
			return
		}
		for _, t := range topics {
			all[t] = struct{}{}
		}
	}
	g.subscribed = all
}

// reads says whether the group counts as subscribed to the topic.
func (g *group) reads(topic string) bool {
	if g.subscribed == nil {
		return g.protocolType == consumerType && len(g.members) > 0
	}
	_, ok := g.subscribed[topic]
	return ok
}
