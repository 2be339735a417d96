package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/wire"
)

// keyProduce is the one API whose request bytes are not copied.
const keyProduce = 0

// apis is the one table of what is served: API, versions, handler. It is what
// ApiVersions advertises; docs/compat.md is generated from it. Kafka 4.4's own
// ranges, and below them the older versions that cost nothing to keep (KIP-896
// took them away; clients in the field still send them).
var apis = []struct {
	key, min, max int16
	handle        handler
	note          string // for docs/compat.md
}{
	{0, 0, 13, on((*Broker).produce), "0-2: message sets become v2 batches. No transactional batches yet"},
	{1, 0, 18, on((*Broker).fetch), "0-3: batches become message sets. Sessions, topic ids; followers not yet"},
	{2, 0, 11, on((*Broker).listOffsets), "nothing is tiered"},
	{3, 0, 13, on((*Broker).metadata), ""},
	{8, 0, 10, on((*Broker).offsetCommit), ""},
	{9, 0, 10, on((*Broker).offsetFetch), ""},
	{10, 0, 6, on((*Broker).findCoordinator), "groups; transactional ids are refused"},
	{11, 0, 9, on((*Broker).joinGroup), ""},
	{12, 0, 4, on((*Broker).heartbeat), ""},
	{13, 0, 5, on((*Broker).leaveGroup), ""},
	{14, 0, 5, on((*Broker).syncGroup), ""},
	{15, 0, 6, on((*Broker).describeGroups), ""},
	{16, 0, 5, on((*Broker).listGroups), ""},
	{17, 0, 1, on((*Broker).saslHandshake), "no SASL listener yet: refused"},
	{18, 0, 5, on((*Broker).apiVersions), ""},
	{19, 0, 7, on((*Broker).createTopics), ""},
	{20, 0, 6, on((*Broker).deleteTopics), ""},
	{21, 0, 2, on((*Broker).deleteRecords), ""},
	{22, 0, 5, on((*Broker).initProducerID), "idempotence; transactional ids are refused"},
	{23, 0, 4, on((*Broker).offsetForLeaderEpoch), ""},
	{29, 0, 3, on((*Broker).describeACLs), "no authorizer yet: SECURITY_DISABLED"},
	{30, 0, 3, on((*Broker).createACLs), "no authorizer yet: SECURITY_DISABLED"},
	{31, 0, 3, on((*Broker).deleteACLs), "no authorizer yet: SECURITY_DISABLED"},
	{32, 0, 4, on((*Broker).describeConfigs), ""},
	{33, 0, 2, on((*Broker).alterConfigs), ""},
	{35, 0, 5, on((*Broker).describeLogDirs), ""},
	{36, 0, 2, on((*Broker).saslAuthenticate), "no SASL listener yet: refused"},
	{37, 0, 3, on((*Broker).createPartitions), ""},
	{42, 0, 3, on((*Broker).deleteGroups), ""},
	{43, 0, 2, on((*Broker).electLeaders), "one replica: the leader is the preferred one"},
	{44, 0, 1, on((*Broker).incrementalAlterConfigs), ""},
	{45, 0, 1, on((*Broker).alterReassignments), "one node: nowhere to move to"},
	{46, 0, 0, on((*Broker).listReassignments), ""},
	{47, 0, 0, on((*Broker).offsetDelete), ""},
	{48, 0, 1, on((*Broker).describeClientQuotas), "no quotas yet: always empty"},
	{55, 0, 2, on((*Broker).describeQuorum), "a quorum of one"},
	{60, 0, 2, on((*Broker).describeCluster), ""},
	{61, 0, 0, on((*Broker).describeProducers), ""},
	{74, 0, 1, on((*Broker).listConfigResources), ""},
	{75, 0, 0, on((*Broker).describeTopicPartitions), ""},
}

// on adapts a typed handler to the table.
func on[R kmsg.Request](fn func(*Broker, *wire.Request, R) wire.Response) handler {
	return func(b *Broker, r *wire.Request, req kmsg.Request) wire.Response { return fn(b, r, req.(R)) }
}
