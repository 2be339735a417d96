package group

import (
	"maps"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// OffsetFetch 0-10. v0 says UNKNOWN_TOPIC_OR_PARTITION of what was never
// committed (Kafka had these in ZooKeeper; here they are the group's own). v2 null topics ask for all; v5 leader epoch; v7 require
// stable; v8 several groups (split by the broker); v9 member and epoch, which
// classic groups do not check; v10 topic ids in place of names.

func (s *Shard) offsetFetch(tok machine.Token, r *Request, q *kmsg.OffsetFetchRequest) {
	p := kmsg.NewPtrOffsetFetchResponse()
	p.Version = q.Version
	if q.Version >= 8 {
		for _, g := range q.Groups {
			p.Groups = append(p.Groups, s.fetchGroup(r, FetchGroup{Version: q.Version, Group: g, RequireStable: q.RequireStable}))
		}
		s.reply(tok, p)
		return
	}
	one := kmsg.OffsetFetchRequestGroup{Group: q.Group, MemberEpoch: -1}
	if q.Topics != nil {
		one.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, 0, len(q.Topics))
	}
	for _, t := range q.Topics {
		one.Topics = append(one.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	g := s.fetchGroup(r, FetchGroup{Version: q.Version, Group: one, RequireStable: q.RequireStable})
	p.ErrorCode = g.ErrorCode
	for _, t := range g.Topics {
		rt := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, x := range t.Partitions {
			if q.Version == 0 && x.Offset < 0 {
				x.ErrorCode = code(kafka.ErrUnknownTopicOrPartition)
			}
			rt.Partitions = append(rt.Partitions, kmsg.OffsetFetchResponseTopicPartition(x))
		}
		p.Topics = append(p.Topics, rt)
	}
	s.reply(tok, p)
}

func (s *Shard) fetchGroup(r *Request, q FetchGroup) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = q.Group.Group
	var offsets map[string]map[int32]commit
	if g := s.groups[q.Group.Group]; g != nil {
		offsets = g.offsets
	}
	of := func(name string) map[int32]commit { return ofThisTopic(r.Topics, name, offsets[name]) }
	if q.Group.Topics == nil {
		for _, name := range sortedTopics(offsets) {
			t := kmsg.OffsetFetchResponseGroupTopic{Topic: name}
			if q.Version >= 10 {
				id, ok := r.Topics.TopicID(name)
				if !ok {
					continue // cannot be named any more
				}
				t.TopicID = id
			}
			commits := of(name)
			for _, p := range sortedPartitions(commits) {
				t.Partitions = append(t.Partitions, fetched(p, commits))
			}
			if len(t.Partitions) > 0 {
				out.Topics = append(out.Topics, t)
			}
		}
		return out
	}
	for _, ask := range q.Group.Topics {
		t := kmsg.OffsetFetchResponseGroupTopic{Topic: ask.Topic, TopicID: ask.TopicID}
		name, known := ask.Topic, true
		if q.Version >= 10 {
			name, known = r.Topics.TopicName(ask.TopicID)
		}
		commits := of(name)
		for _, p := range ask.Partitions {
			x := fetched(p, commits)
			if !known {
				x = fetched(p, nil)
				x.ErrorCode = code(kafka.ErrUnknownTopicID)
			}
			t.Partitions = append(t.Partitions, x)
		}
		out.Topics = append(out.Topics, t)
	}
	return out
}

// ofThisTopic leaves out commits made for an earlier topic of the same name: its
// deletion was acknowledged, but a kill came before the group heard of it.
func ofThisTopic(topics Topics, name string, commits map[int32]commit) map[int32]commit {
	if topics == nil || len(commits) == 0 {
		return commits
	}
	id, ok := topics.TopicID(name)
	if !ok {
		return commits
	}
	var out map[int32]commit
	for p, c := range commits {
		if c.topicID.IsZero() || c.topicID == id {
			continue
		}
		if out == nil {
			out = maps.Clone(commits)
		}
		delete(out, p)
	}
	if out == nil {
		return commits
	}
	return out
}

func fetched(p int32, from map[int32]commit) kmsg.OffsetFetchResponseGroupTopicPartition {
	x := kmsg.OffsetFetchResponseGroupTopicPartition{Partition: p, Offset: -1, LeaderEpoch: -1}
	c, ok := from[p]
	if ok {
		x.Offset, x.LeaderEpoch = c.offset, c.epoch
	}
	x.Metadata = &c.metadata
	return x
}
