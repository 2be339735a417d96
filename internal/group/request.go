package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// Request is one input of a Shard. Req is one of
//
//	*kmsg.JoinGroupRequest     0-9   answered by *kmsg.JoinGroupResponse
//	*kmsg.SyncGroupRequest     0-5   answered by *kmsg.SyncGroupResponse
//	*kmsg.HeartbeatRequest     0-4   answered by *kmsg.HeartbeatResponse
//	*kmsg.LeaveGroupRequest    0-5   answered by *kmsg.LeaveGroupResponse
//	*kmsg.OffsetCommitRequest  0-10  answered by *kmsg.OffsetCommitResponse
//	*kmsg.OffsetFetchRequest   0-10  answered by *kmsg.OffsetFetchResponse; from
//	                                 v8 with exactly one group, see FetchGroup
//	*kmsg.OffsetDeleteRequest  0     answered by *kmsg.OffsetDeleteResponse
//	*kmsg.ListGroupsRequest    0-5   answered by *kmsg.ListGroupsResponse (the
//	                                 groups of this shard, sorted by name)
//	FetchGroup                       answered by kmsg.OffsetFetchResponseGroup
//	DescribeGroup                    answered by kmsg.DescribeGroupsResponseGroup
//	DeleteGroup                      answered by kmsg.DeleteGroupsResponseGroup
//	TopicDeleted                     answered by TopicDeleted, if a token is given
//
// Responses carry the request's version. The shard keeps request slices and
// strings for as long as the member lives: the caller hands over ownership, so
// requests must not be decoded in place over a buffer that is used again.
type Request struct {
	Req      any
	ClientID string // "" when the client sent null
	// ClientHost is the peer's address as Kafka shows it: "/127.0.0.1".
	ClientHost string
	// Topics is what the broker knew of topics when the request came in. It
	// is asked during Handle only. Needed by OffsetCommit, OffsetDelete and,
	// from v10, OffsetFetch.
	Topics Topics
}

// Topics answers what a shard wants to know of the cluster's metadata.
type Topics interface {
	// TopicExists says whether partition p of the topic exists. The topic is
	// named by name, or by id when name is empty.
	TopicExists(name string, id kafka.TopicID, p int32) bool
	// TopicName gives the name of the topic with this id.
	TopicName(id kafka.TopicID) (string, bool)
	// TopicID gives the id of the topic with this name.
	TopicID(name string) (kafka.TopicID, bool)
}

// FetchGroup is one group of an OffsetFetch request of v8 or later: the groups
// of one request may live on different shards. The broker splits and joins.
type FetchGroup struct {
	Version       int16
	Group         kmsg.OffsetFetchRequestGroup
	RequireStable bool
}

// DescribeGroup asks for one group of a DescribeGroups request.
type DescribeGroup struct {
	Version int16
	Group   string
}

// DeleteGroup asks for the end of one group of a DeleteGroups request.
type DeleteGroup struct {
	Version int16
	Group   string
}

// TopicDeleted tells that a topic is gone: its commits go too. A zero ID stands
// for any; otherwise commits known to be of another topic with the same name
// stay.
type TopicDeleted struct {
	Topic string
	ID    kafka.TopicID
}
