package broker

import (
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// The group APIs: JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5,
// OffsetCommit 0-10, OffsetFetch 0-10, OffsetDelete 0, DescribeGroups 0-6,
// ListGroups 0-5, DeleteGroups 0-2. The group machine decides; here a request
// finds its shard, and requests for several groups are split and joined.

// topics is group.Topics over an image.
type topics struct{ *metadata.Image }

func (t topics) TopicExists(name string, id kafka.TopicID, p int32) bool {
	topic, ok := t.Topic(name)
	if name == "" {
		topic, ok = t.TopicByID(id)
	}
	return ok && p >= 0 && int(p) < len(topic.Partitions)
}

func (t topics) TopicName(id kafka.TopicID) (string, bool) {
	topic, ok := t.TopicByID(id)
	if !ok {
		return "", false
	}
	return topic.Name, true
}

func (t topics) TopicID(name string) (kafka.TopicID, bool) {
	topic, ok := t.Topic(name)
	if !ok {
		return kafka.TopicID{}, false
	}
	return topic.ID, true
}

func (b *Broker) groupRequest(r *wire.Request, req any) *group.Request {
	return &group.Request{Req: req, ClientID: r.ClientID, ClientHost: clientHost(r.Conn.RemoteAddr()), Topics: topics{b.o.Quorum.Image()}}
}

// clientHost is a peer as Java prints an InetAddress: "/127.0.0.1".
func clientHost(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return "/" + t.IP.String()
	}
	return "/" + a.String()
}

// oneGroup sends a request to its group's shard; refuse fills an empty response when
// the machine gave none: the shard is elsewhere, loading, or gone.
func oneGroup[R kmsg.Response](b *Broker, r *wire.Request, name string, req kmsg.Request, refuse func(out R, code kafka.Error)) wire.Response {
	refused := func(code kafka.Error) wire.Response {
		out := req.ResponseKind().(R)
		refuse(out, code)
		return respond(out)
	}
	l := newLater()
	submit := func(s *partition.Shard) {
		s.Submit(b.groupRequest(r, req), func(resp any) {
			if code, ok := resp.(kafka.Error); ok {
				l.finish(refused(code))
				return
			}
			l.finish(respond(resp.(kmsg.Response)))
		})
	}
	if s, code := b.shard(name); code == kafka.NoError {
		submit(s)
	} else if !b.firstOfItsTime(r) {
		return refused(code)
	} else {
		b.createAll([]string{OffsetsTopic}, func(map[string]kafka.Error) {
			if s, code := b.shard(name); code == kafka.NoError {
				submit(s)
			} else {
				l.finish(refused(code))
			}
		})
	}
	return wire.Response{Pending: l}
}

// firstOfItsTime says whether a request is OffsetCommit or OffsetFetch of version
// 0 and there is no offsets topic yet. Their clients knew no coordinator, since
// Kafka kept these offsets in ZooKeeper: nothing else makes the topic for them.
func (b *Broker) firstOfItsTime(r *wire.Request) bool {
	if r.Version != 0 || r.Key != 8 && r.Key != 9 {
		return false
	}
	_, ok := b.o.Quorum.Image().Topic(OffsetsTopic)
	return !ok
}

func (b *Broker) joinGroup(r *wire.Request, req *kmsg.JoinGroupRequest) wire.Response {
	return oneGroup(b, r, req.Group, req, func(resp *kmsg.JoinGroupResponse, code kafka.Error) {
		resp.ErrorCode, resp.Generation, resp.MemberID = int16(code), -1, req.MemberID
		if req.Version < 7 {
			resp.Protocol = ptr("") // nullable only from 7 on
		}
	})
}

func (b *Broker) syncGroup(r *wire.Request, req *kmsg.SyncGroupRequest) wire.Response {
	return oneGroup(b, r, req.Group, req, func(resp *kmsg.SyncGroupResponse, code kafka.Error) {
		resp.ErrorCode, resp.MemberAssignment = int16(code), []byte{}
	})
}

func (b *Broker) heartbeat(r *wire.Request, req *kmsg.HeartbeatRequest) wire.Response {
	return oneGroup(b, r, req.Group, req, func(resp *kmsg.HeartbeatResponse, code kafka.Error) {
		resp.ErrorCode = int16(code)
	})
}

func (b *Broker) leaveGroup(r *wire.Request, req *kmsg.LeaveGroupRequest) wire.Response {
	return oneGroup(b, r, req.Group, req, func(resp *kmsg.LeaveGroupResponse, code kafka.Error) {
		resp.ErrorCode = int16(code)
	})
}

func (b *Broker) offsetCommit(r *wire.Request, req *kmsg.OffsetCommitRequest) wire.Response {
	return oneGroup(b, r, req.Group, req, func(resp *kmsg.OffsetCommitResponse, code kafka.Error) {
		for _, t := range req.Topics {
			out := kmsg.NewOffsetCommitResponseTopic()
			out.Topic, out.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				pout := kmsg.NewOffsetCommitResponseTopicPartition()
				pout.Partition, pout.ErrorCode = p.Partition, int16(code)
				out.Partitions = append(out.Partitions, pout)
			}
			resp.Topics = append(resp.Topics, out)
		}
	})
}

func (b *Broker) offsetDelete(r *wire.Request, req *kmsg.OffsetDeleteRequest) wire.Response {
	return oneGroup(b, r, req.Group, req, func(resp *kmsg.OffsetDeleteResponse, code kafka.Error) {
		resp.ErrorCode = int16(code)
	})
}

func (b *Broker) offsetFetch(r *wire.Request, req *kmsg.OffsetFetchRequest) wire.Response {
	if req.Version < 8 {
		return oneGroup(b, r, req.Group, req, func(resp *kmsg.OffsetFetchResponse, code kafka.Error) {
			resp.ErrorCode = int16(code)
			for _, t := range req.Topics { // versions 0 and 1 have no error but these
				out := kmsg.NewOffsetFetchResponseTopic()
				out.Topic = t.Topic
				for _, n := range t.Partitions {
					p := kmsg.NewOffsetFetchResponseTopicPartition()
					p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = n, -1, -1, ptr(""), int16(code)
					out.Partitions = append(out.Partitions, p)
				}
				resp.Topics = append(resp.Topics, out)
			}
		})
	}
	req.Groups = once(req.Groups, func(g kmsg.OffsetFetchRequestGroup) string { return g.Group })
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(req.Groups))
	return b.manyGroups(r, len(req.Groups), resp,
		func(i int) (string, any) {
			return req.Groups[i].Group, group.FetchGroup{Version: req.Version, Group: req.Groups[i], RequireStable: req.RequireStable}
		},
		func(i int, got any, code kafka.Error) {
			if g, ok := got.(kmsg.OffsetFetchResponseGroup); ok {
				resp.Groups[i] = g
				return
			}
			resp.Groups[i].Default()
			resp.Groups[i].Group, resp.Groups[i].ErrorCode = req.Groups[i].Group, int16(code)
		})
}

func (b *Broker) describeGroups(r *wire.Request, req *kmsg.DescribeGroupsRequest) wire.Response {
	req.Groups = once(req.Groups, func(g string) string { return g })
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(req.Groups))
	return b.manyGroups(r, len(req.Groups), resp,
		func(i int) (string, any) {
			return req.Groups[i], group.DescribeGroup{Version: req.Version, Group: req.Groups[i]}
		},
		func(i int, got any, code kafka.Error) {
			g, ok := got.(kmsg.DescribeGroupsResponseGroup)
			if !ok {
				g = kmsg.NewDescribeGroupsResponseGroup()
				g.Group, g.ErrorCode = req.Groups[i], int16(code)
			}
			g.AuthorizedOperations = noOperations
			if req.IncludeAuthorizedOperations && g.ErrorCode == 0 {
				g.AuthorizedOperations = groupOperations
			}
			resp.Groups[i] = g
		})
}

func (b *Broker) deleteGroups(r *wire.Request, req *kmsg.DeleteGroupsRequest) wire.Response {
	req.Groups = once(req.Groups, func(g string) string { return g })
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	return b.manyGroups(r, len(req.Groups), resp,
		func(i int) (string, any) {
			return req.Groups[i], group.DeleteGroup{Version: req.Version, Group: req.Groups[i]}
		},
		func(i int, got any, code kafka.Error) {
			g, ok := got.(kmsg.DeleteGroupsResponseGroup)
			if !ok {
				g = kmsg.NewDeleteGroupsResponseGroup()
				g.Group, g.ErrorCode = req.Groups[i], int16(code)
			}
			resp.Groups[i] = g
		})
}

// manyGroups asks the shard of each of n groups and answers when all did. set is
// called once for each, one call at a time.
func (b *Broker) manyGroups(r *wire.Request, n int, resp kmsg.Response, ask func(i int) (name string, req any), set func(i int, got any, code kafka.Error)) wire.Response {
	if n == 0 {
		return respond(resp)
	}
	l := newLater()
	var mu sync.Mutex
	left := n
	done := func(i int, got any) {
		mu.Lock()
		code, _ := got.(kafka.Error)
		set(i, got, code)
		left--
		last := left == 0
		mu.Unlock()
		if last {
			l.finish(respond(resp))
		}
	}
	for i := range n {
		name, req := ask(i)
		s, code := b.shard(name)
		if code != kafka.NoError {
			done(i, code)
			continue
		}
		s.Submit(b.groupRequest(r, req), func(got any) { done(i, got) })
	}
	return wire.Response{Pending: l}
}

// listGroups asks every shard. One that is loading makes the whole answer
// COORDINATOR_LOAD_IN_PROGRESS, as a list with holes would mislead.
func (b *Broker) listGroups(r *wire.Request, req *kmsg.ListGroupsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	shards := b.shards()
	if len(shards) == 0 {
		return respond(resp)
	}
	l := newLater()
	var mu sync.Mutex
	left := len(shards)
	for _, s := range shards {
		s.Submit(b.groupRequest(r, req), func(got any) {
			mu.Lock()
			defer mu.Unlock()
			switch v := got.(type) {
			case *kmsg.ListGroupsResponse:
				resp.Groups = append(resp.Groups, v.Groups...)
				if v.ErrorCode != 0 {
					resp.ErrorCode = v.ErrorCode
				}
			case kafka.Error:
				resp.ErrorCode = int16(v)
			}
			if left--; left == 0 {
				l.finish(respond(resp))
			}
		})
	}
	return wire.Response{Pending: l}
}

// TopicDeleted tells every shard that a topic is gone: its committed offsets go
// too, as Kafka's do. It does not wait for them.
func (b *Broker) TopicDeleted(t *metadata.Topic) {
	for _, s := range b.shards() {
		s.Submit(&group.Request{Req: group.TopicDeleted{Topic: t.Name, ID: t.ID}}, nil)
	}
}
