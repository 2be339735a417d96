package group

import (
	"encoding/binary"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// Versions written. Readers take every version Kafka ever wrote: keys 0 and 1
// are offset commits, 2 is a group's metadata, higher ones belong to group types
// this shard does not hold and are left alone.
const (
	commitKeyVersion   = 1
	commitValueVersion = 3 // read by every Kafka since 2.1
	commitValueExpires = 1 // the last version with an expire timestamp of its own
	commitValueTopicID = 4 // the first with a topic id
	groupKeyVersion    = 2
	groupValueVersion  = 3
)

// Record is one record of __consumer_offsets. A nil Value is a tombstone. The
// pump writes it with the timestamp of its append.
type Record struct {
	Key, Value []byte
}

// commit is one committed offset.
type commit struct {
	offset   int64
	epoch    int32 // -1: not known
	metadata string
	commitMs int64
	expireMs int64 // -1: by the retention rules
	topicID  kafka.TopicID
}

func commitKey(group, topic string, p int32) []byte {
	k := kmsg.OffsetCommitKey{Version: commitKeyVersion, Group: group, Topic: topic, Partition: p}
	return k.AppendTo(make([]byte, 0, 2+2+len(group)+2+len(topic)+4))
}

func commitRecord(group, topic string, p int32, c commit) Record {
	v := kmsg.OffsetCommitValue{
		Version:         commitValueVersion,
		Offset:          c.offset,
		LeaderEpoch:     c.epoch,
		Metadata:        c.metadata,
		CommitTimestamp: c.commitMs,
	}
	switch {
	case c.expireMs >= 0:
		v.Version, v.ExpireTimestamp = commitValueExpires, c.expireMs
	case !c.topicID.IsZero():
		v.Version, v.TopicID = commitValueTopicID, c.topicID
	}
	return Record{Key: commitKey(group, topic, p), Value: v.AppendTo(make([]byte, 0, 48+len(c.metadata)))}
}

func groupKey(group string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: group}
	return k.AppendTo(make([]byte, 0, 4+len(group)))
}

// parseCommit reads an offset commit value of any version.
func parseCommit(b []byte) (commit, bool) {
	var v kmsg.OffsetCommitValue
	if err := v.UnsafeReadFrom(b); err != nil || v.Version < 0 || v.Version > commitValueTopicID {
		return commit{}, false
	}
	c := commit{offset: v.Offset, epoch: -1, metadata: strings.Clone(v.Metadata), commitMs: v.CommitTimestamp, expireMs: -1}
	if v.Version >= 3 {
		c.epoch = v.LeaderEpoch
	}
	if v.Version == commitValueExpires {
		c.expireMs = v.ExpireTimestamp
	}
	c.topicID = v.TopicID
	return c, true
}

// parseGroup reads a group metadata value of any version.
func parseGroup(b []byte) (*kmsg.GroupMetadataValue, bool) {
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(b); err != nil || v.Version < 0 || v.Version > 4 {
		return nil, false
	}
	if v.Version < 2 {
		v.CurrentStateTimestamp = -1
	}
	if v.Version == 0 {
		for i := range v.Members {
			v.Members[i].RebalanceTimeoutMillis = v.Members[i].SessionTimeoutMillis
		}
	}
	return &v, true
}

// keyVersion is the leading int16 of a record's key, which tells its kind.
func keyVersion(key []byte) (int16, bool) {
	if len(key) < 2 {
		return 0, false
	}
	return int16(binary.BigEndian.Uint16(key)), true
}

// metadataRecord is the group as a new coordinator must find it: its generation
// with the members' subscriptions and assignments.
func (g *group) metadataRecord() Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupValueVersion
	v.ProtocolType = g.protocolType
	v.Generation = g.generation
	v.Protocol = g.protocol
	if g.leader != "" {
		v.Leader = kmsg.StringPtr(g.leader)
	}
	v.CurrentStateTimestamp = g.sinceMs
	for _, m := range g.members {
		v.Members = append(v.Members, kmsg.GroupMetadataValueMember{
			MemberID:               m.id,
			InstanceID:             m.instance,
			ClientID:               m.clientID,
			ClientHost:             m.clientHost,
			RebalanceTimeoutMillis: m.rebalanceMs,
			SessionTimeoutMillis:   m.sessionMs,
			Subscription:           m.metadata(g.protocol),
			Assignment:             m.assignment,
		})
	}
	return Record{Key: groupKey(g.name), Value: v.AppendTo(nil)}
}

// subscribedTopics reads the topics of a consumer's subscription, of whatever
// version it says it is: they come first in all, and what follows them is
// between the members.
func subscribedTopics(b []byte) ([]string, bool) {
	if len(b) < 2 || b[0]&0x80 != 0 {
		return nil, false
	}
	b = append([]byte{0, 0}, b[2:]...)
	var m kmsg.ConsumerMemberMetadata
	if err := m.ReadFrom(b); err != nil {
		return nil, false
	}
	return m.Topics, true
}
