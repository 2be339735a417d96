//go:build compat

package compat

// Short ways to the requests the raw cases make again and again.

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	nameCount atomic.Int64
	runID     = strconv.FormatInt(time.Now().Unix()%1e6, 36)
)

// unique makes a topic or group name from the running test's.
func unique(t testing.TB) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%s-%s-%d", clean, runID, nameCount.Add(1))
}

// topic creates a topic of the test's own and gives its name. Configs are
// key=value.
func (r *rawConn) topic(partitions int32, configs ...string) string {
	r.t.Helper()
	name := unique(r.t)
	if got := r.create(name, partitions, 1, configs...); got.ErrorCode != 0 {
		r.t.Fatalf("create topic %s: error %d %s", name, got.ErrorCode, deref(got.ErrorMessage))
	}
	r.settle(name, partitions)
	return name
}

// settle waits until a new topic is led everywhere. Weir has it so when it
// answers CreateTopics; Kafka a little later.
func (r *rawConn) settle(name string, partitions int32) {
	r.t.Helper()
	if !onKafka {
		return
	}
	for p := range partitions {
		eventually(r.t, 10*time.Second, "leader of "+name, func() (string, bool) {
			got := r.list(5, name, p, -1).ErrorCode
			return fmt.Sprintf("ListOffsets: error %d", got), got == 0
		})
	}
}

func createRequest(version int16, name string, partitions int32, replicas int16, configs ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = version
	req.TimeoutMillis = 15000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, replicas
	for _, kv := range configs {
		k, v, _ := strings.Cut(kv, "=")
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		rc.Name, rc.Value = k, &v
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

func (r *rawConn) create(name string, partitions int32, replicas int16, configs ...string) kmsg.CreateTopicsResponseTopic {
	r.t.Helper()
	req := createRequest(r.newest(kmsg.CreateTopics, 7), name, partitions, replicas, configs...)
	return ask[*kmsg.CreateTopicsResponse](r, req).Topics[0]
}

func (r *rawConn) delete(name string) int16 {
	r.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version = min(r.newest(kmsg.DeleteTopics, 6), 5)
	req.TopicNames = []string{name}
	req.TimeoutMillis = 15000
	return ask[*kmsg.DeleteTopicsResponse](r, req).Topics[0].ErrorCode
}

func metadataRequest(version int16, allowCreate bool, topics ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = version
	req.AllowAutoTopicCreation = allowCreate
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = &name
		req.Topics = append(req.Topics, rt)
	}
	return req
}

func (r *rawConn) metadata(topics ...string) *kmsg.MetadataResponse {
	r.t.Helper()
	return ask[*kmsg.MetadataResponse](r, metadataRequest(r.newest(kmsg.Metadata, 12), false, topics...))
}

// exists says whether the topic is in the full list.
func (r *rawConn) exists(name string) bool {
	r.t.Helper()
	req := metadataRequest(r.newest(kmsg.Metadata, 12), false)
	req.Topics = nil
	for _, rt := range ask[*kmsg.MetadataResponse](r, req).Topics {
		if deref(rt.Topic) == name {
			return true
		}
	}
	return false
}

func (r *rawConn) topicID(name string) [16]byte {
	r.t.Helper()
	resp := r.metadata(name)
	if resp.Topics[0].ErrorCode != 0 || resp.Topics[0].TopicID == [16]byte{} {
		r.t.Fatalf("topic id of %s: error %d", name, resp.Topics[0].ErrorCode)
	}
	return resp.Topics[0].TopicID
}

func produceRequest(version, acks int16, topic string, batches ...[]byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, acks, 10000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	for i, b := range batches {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = int32(i), b
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

// produce sends one batch to partition 0 with acks=1.
func (r *rawConn) produce(version int16, topic string, batch []byte) kmsg.ProduceResponseTopicPartition {
	r.t.Helper()
	return ask[*kmsg.ProduceResponse](r, produceRequest(version, 1, topic, batch)).Topics[0].Partitions[0]
}

// put produces and insists on success; it gives the base offset.
func (r *rawConn) put(topic string, s batchSpec) int64 {
	r.t.Helper()
	p := r.produce(8, topic, s.bytes())
	if p.ErrorCode != 0 {
		r.t.Fatalf("produce to %s: error %d %s", topic, p.ErrorCode, deref(p.ErrorMessage))
	}
	return p.BaseOffset
}

type part struct {
	topic  string
	id     [16]byte
	p      int32
	offset int64
	max    int32
	epoch  int32
}

func at(topic string, p int32, offset int64) part {
	return part{topic: topic, p: p, offset: offset, max: 1 << 20, epoch: -1}
}

func fetchRequest(version int16, maxWait, minBytes, maxBytes int32, parts ...part) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = version, maxWait, minBytes, maxBytes
	req.SessionID, req.SessionEpoch = 0, -1
	for _, p := range parts {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = p.p, p.offset, p.max, p.epoch
		rp.LastFetchedEpoch, rp.LogStartOffset = -1, -1
		if n := len(req.Topics); n > 0 && req.Topics[n-1].Topic == p.topic {
			req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, rp)
			continue
		}
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic, rt.TopicID, rt.Partitions = p.topic, p.id, []kmsg.FetchRequestTopicPartition{rp}
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// fetch reads partition 0 from an offset, v11, not waiting.
func (r *rawConn) fetch(topic string, offset int64) kmsg.FetchResponseTopicPartition {
	r.t.Helper()
	resp := ask[*kmsg.FetchResponse](r, fetchRequest(11, 0, 0, 50<<20, part{topic: topic, offset: offset, max: 50 << 20, epoch: -1}))
	return resp.Topics[0].Partitions[0]
}

func listRequest(version int16, topic string, p int32, ts int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = version, -1
	req.TimeoutMillis = 5000
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = p, ts, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func (r *rawConn) list(version int16, topic string, p int32, ts int64) kmsg.ListOffsetsResponseTopicPartition {
	r.t.Helper()
	return ask[*kmsg.ListOffsetsResponse](r, listRequest(version, topic, p, ts)).Topics[0].Partitions[0]
}

func (r *rawConn) earliest(topic string) int64 { r.t.Helper(); return r.list(5, topic, 0, -2).Offset }
func (r *rawConn) latest(topic string) int64   { r.t.Helper(); return r.list(5, topic, 0, -1).Offset }

// coordinator makes sure the group coordinator answers for the group.
func (r *rawConn) coordinator(group string) {
	r.t.Helper()
	eventually(r.t, 30*time.Second, "coordinator of "+group, func() (string, bool) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version = 2
		req.CoordinatorKey = group
		if resp := ask[*kmsg.FindCoordinatorResponse](r, req); resp.ErrorCode != 0 {
			return fmt.Sprintf("FindCoordinator: error %d", resp.ErrorCode), false
		}
		_, got := r.committed(group) // a Heartbeat is answered with 0 while the group loads
		return fmt.Sprintf("OffsetFetch: error %d", got), got == 0
	})
}

// member is a consumer made by hand.
type member struct {
	r        *rawConn
	group    string
	id       string
	instance *string
	gen      int32
	leader   bool
	meta     []byte // subscription; nil: one of topic t
}

func joinRequest(version int16, group, id string, instance *string, protoType string, protos ...string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = version
	req.Group, req.MemberID, req.InstanceID = group, id, instance
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10000, 10000
	req.ProtocolType = protoType
	for _, p := range protos {
		rp := kmsg.NewJoinGroupRequestProtocol()
		rp.Name, rp.Metadata = p, []byte{0, 1, 0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff}
		req.Protocols = append(req.Protocols, rp)
	}
	return req
}

// join joins alone, or as one more of a group whose other members rejoin.
func (m *member) join() *kmsg.JoinGroupResponse {
	m.r.t.Helper()
	once := func() *kmsg.JoinGroupResponse {
		req := joinRequest(5, m.group, m.id, m.instance, "consumer", "range")
		if m.meta != nil {
			req.Protocols[0].Metadata = m.meta
		}
		return ask[*kmsg.JoinGroupResponse](m.r, req)
	}
	resp := once()
	if resp.ErrorCode == 79 {
		m.id = resp.MemberID
		resp = once()
	}
	if resp.ErrorCode == 0 {
		m.id, m.gen, m.leader = resp.MemberID, resp.Generation, resp.MemberID == resp.LeaderID
	}
	return resp
}

// sync sends the assignment when this is the leader: each member its own id.
func (m *member) sync(ids ...string) *kmsg.SyncGroupResponse {
	m.r.t.Helper()
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 3
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.group, m.gen, m.id, m.instance
	for _, id := range ids {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, []byte("for "+id)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return ask[*kmsg.SyncGroupResponse](m.r, req)
}

func (m *member) heartbeat() int16 {
	m.r.t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = 3
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.group, m.gen, m.id, m.instance
	return ask[*kmsg.HeartbeatResponse](m.r, req).ErrorCode
}

func (m *member) leave() int16 {
	m.r.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = 1
	req.Group, req.MemberID = m.group, m.id
	return ask[*kmsg.LeaveGroupResponse](m.r, req).ErrorCode
}

// stable joins and syncs alone.
func (m *member) stable() *member {
	m.r.t.Helper()
	if resp := m.join(); resp.ErrorCode != 0 {
		m.r.t.Fatalf("join %s: error %d", m.group, resp.ErrorCode)
	}
	if resp := m.sync(m.id); resp.ErrorCode != 0 {
		m.r.t.Fatalf("sync %s: error %d", m.group, resp.ErrorCode)
	}
	return m
}

type commit struct {
	topic    string
	p        int32
	offset   int64
	epoch    int32
	metadata string
}

func commitRequest(version int16, m *member, commits ...commit) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = version
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.group, m.gen, m.id, m.instance
	req.RetentionTimeMillis = -1
	for _, c := range commits {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = c.p, c.offset, c.epoch, ptr(c.metadata)
		if n := len(req.Topics); n > 0 && req.Topics[n-1].Topic == c.topic {
			req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, rp)
			continue
		}
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic, rt.Partitions = c.topic, []kmsg.OffsetCommitRequestTopicPartition{rp}
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// commit commits as a member (zero member: no group membership).
func (m *member) commit(commits ...commit) []int16 {
	m.r.t.Helper()
	resp := ask[*kmsg.OffsetCommitResponse](m.r, commitRequest(7, m, commits...))
	var out []int16
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			out = append(out, rp.ErrorCode)
		}
	}
	return out
}

// outsider commits without being a member.
func outsider(r *rawConn, group string) *member { return &member{r: r, group: group, gen: -1} }

// committed is OffsetFetch v5 for all topics.
func (r *rawConn) committed(group string) (map[string]commit, int16) {
	r.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 5, group
	resp := ask[*kmsg.OffsetFetchResponse](r, req)
	out := map[string]commit{}
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			out[fmt.Sprintf("%s-%d", rt.Topic, rp.Partition)] = commit{rt.Topic, rp.Partition, rp.Offset, rp.LeaderEpoch, deref(rp.Metadata)}
		}
	}
	return out, resp.ErrorCode
}
