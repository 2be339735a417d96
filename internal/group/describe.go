package group

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// DescribeGroups 0-6. Protocol and subscriptions are told of a Stable group only;
// assignments are those of the last generation that had any. v4 instance ids; v6 an error with a message for an
// unknown group (KIP-1043), which before is one in state Dead.

func (s *Shard) describeGroup(q DescribeGroup) kmsg.DescribeGroupsResponseGroup {
	d := kmsg.NewDescribeGroupsResponseGroup()
	d.Group = q.Group
	d.AuthorizedOperations = math.MinInt32
	g := s.groups[q.Group]
	if g == nil {
		d.State = dead.String()
		if q.Version >= 6 {
			d.ErrorCode = code(kafka.ErrGroupIDNotFound)
			d.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("Group %s not found.", q.Group))
		}
		return d
	}
	d.State = g.state.String()
	d.ProtocolType = g.protocolType
	stable := g.state == Stable
	if stable && g.protocol != nil {
		d.Protocol = *g.protocol
	}
	for _, m := range g.members {
		x := kmsg.DescribeGroupsResponseGroupMember{
			MemberID: m.id, InstanceID: m.instance, ClientID: m.clientID, ClientHost: m.clientHost,
			ProtocolMetadata: []byte{}, MemberAssignment: m.assignment,
		}
		if stable {
			x.ProtocolMetadata = m.metadata(g.protocol)
		}
		d.Members = append(d.Members, x)
	}
	return d
}

// ListGroups 0-5. v4 states, v5 types (KIP-848).

const classicType = "classic"

func (s *Shard) listGroups(tok machine.Token, q *kmsg.ListGroupsRequest) {
	p := kmsg.NewPtrListGroupsResponse()
	p.Version = q.Version
	p.Groups = []kmsg.ListGroupsResponseGroup{}
	for _, name := range s.names() {
		g := s.groups[name]
		if !matches(q.StatesFilter, g.state.String()) || !matches(q.TypesFilter, classicType) {
			continue
		}
		p.Groups = append(p.Groups, kmsg.ListGroupsResponseGroup{
			Group: name, ProtocolType: g.protocolType, GroupState: g.state.String(), GroupType: classicType,
		})
	}
	s.reply(tok, p)
}

func matches(filter []string, v string) bool {
	for _, f := range filter {
		if strings.EqualFold(f, v) {
			return true
		}
	}
	return len(filter) == 0
}

// DeleteGroups 0-3. Its commits go with the group.

func (s *Shard) deleteGroup(q DeleteGroup) kmsg.DeleteGroupsResponseGroup {
	d := kmsg.NewDeleteGroupsResponseGroup()
	d.Group = q.Group
	g := s.groups[q.Group]
	switch {
	case g == nil:
		d.ErrorCode = code(kafka.ErrGroupIDNotFound)
	case g.state != Empty:
		d.ErrorCode = code(kafka.ErrNonEmptyGroup)
	default:
		s.erase(g)
	}
	return d
}

// erase writes the tombstones of a group and all its commits.
func (s *Shard) erase(g *group) {
	for _, t := range sortedTopics(g.offsets) {
		for _, p := range sortedPartitions(g.offsets[t]) {
			s.write(Record{Key: commitKey(g.name, t, p)})
		}
	}
	s.write(Record{Key: groupKey(g.name)})
}
