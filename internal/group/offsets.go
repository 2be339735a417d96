package group

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// OffsetCommit 0-10. v1 generation, member, timestamp of the commit; v2-v4
// retention time; v6 leader epoch; v7 instance id; v9 error for an unknown
// group; v10 topic ids in place of names.

func (s *Shard) offsetCommit(now time.Time, tok machine.Token, r *Request, q *kmsg.OffsetCommitRequest) {
	p := kmsg.NewPtrOffsetCommitResponse()
	p.Version = q.Version
	g := s.groups[q.Group]
	e := s.mayCommit(now, g, q)
	p.Topics = make([]kmsg.OffsetCommitResponseTopic, 0, len(q.Topics))
	var recs []Record
	for i := range q.Topics {
		t := &q.Topics[i]
		name, id, topicErr := resolveTopic(r.Topics, q.Version >= 10, t.Topic, t.TopicID)
		rt := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
		rt.Partitions = make([]kmsg.OffsetCommitResponseTopicPartition, 0, len(t.Partitions))
		for j := range t.Partitions {
			part := &t.Partitions[j]
			pe := topicErr
			switch {
			case pe != kafka.NoError:
			case !r.Topics.TopicExists(name, id, part.Partition):
				pe = kafka.ErrUnknownTopicOrPartition
			case e != kafka.NoError:
				pe = e
			case part.Metadata != nil && len(*part.Metadata) > s.cfg.OffsetMetadataMaxBytes:
				pe = kafka.ErrOffsetMetadataTooLarge
			default:
				recs = append(recs, commitRecord(q.Group, name, part.Partition, newCommit(now, q, id, part)))
			}
			rt.Partitions = append(rt.Partitions, kmsg.OffsetCommitResponseTopicPartition{
				Partition: part.Partition, ErrorCode: code(pe),
			})
		}
		if len(rt.Partitions) > 0 {
			p.Topics = append(p.Topics, rt)
		}
	}
	if !s.fits(recs...) {
		for _, t := range p.Topics {
			for j := range t.Partitions {
				if t.Partitions[j].ErrorCode == 0 {
					t.Partitions[j].ErrorCode = code(kafka.ErrInvalidCommitOffsetSize)
				}
			}
		}
		recs = nil
	}
	for _, rec := range recs {
		s.write(rec)
	}
	s.reply(tok, p)
}

func newCommit(now time.Time, q *kmsg.OffsetCommitRequest, id kafka.TopicID, p *kmsg.OffsetCommitRequestTopicPartition) commit {
	c := commit{
		offset: p.Offset, epoch: -1, commitMs: now.UnixMilli(), expireMs: -1, topicID: id,
	}
	if q.Version >= 6 {
		c.epoch = p.LeaderEpoch
	}
	if p.Metadata != nil {
		c.metadata = *p.Metadata
	}
	if q.Version == 1 && p.Timestamp >= 0 {
		c.commitMs = p.Timestamp
	}
	if q.Version >= 2 && q.Version <= 4 && q.RetentionTimeMillis >= 0 {
		c.expireMs = now.UnixMilli() + q.RetentionTimeMillis
	}
	return c
}

// mayCommit checks the sender against the group. A valid commit of a member is
// also a sign of life.
func (s *Shard) mayCommit(now time.Time, g *group, q *kmsg.OffsetCommitRequest) kafka.Error {
	if g == nil {
		switch {
		case len(q.Group) > math.MaxInt16: // fits no record
			return kafka.ErrInvalidGroupID
		case q.Generation < 0: // no group management: offsets only
			return kafka.NoError
		case q.Version >= 9:
			return kafka.ErrGroupIDNotFound
		}
		return kafka.ErrIllegalGeneration
	}
	if q.Generation < 0 && g.state == Empty {
		return kafka.NoError
	}
	if q.Generation < 0 && q.MemberID == "" && q.InstanceID == nil {
		return kafka.ErrUnknownMemberID // not a member, and there are some
	}
	m, e := g.check(q.MemberID, q.InstanceID)
	switch {
	case e != kafka.NoError:
		return e
	case q.Generation != g.generation:
		return kafka.ErrIllegalGeneration
	case g.state == CompletingRebalance:
		return kafka.ErrRebalanceInProgress
	}
	s.armSession(now, g, m)
	return kafka.NoError
}

// resolveTopic gives name and id of a topic that a request calls by either.
func resolveTopic(v Topics, byID bool, name string, id kafka.TopicID) (string, kafka.TopicID, kafka.Error) {
	if byID {
		name, ok := v.TopicName(id)
		if !ok {
			return "", id, kafka.ErrUnknownTopicID
		}
		return name, id, kafka.NoError
	}
	id, ok := v.TopicID(name)
	if !ok {
		return name, id, kafka.ErrUnknownTopicOrPartition
	}
	return name, id, kafka.NoError
}

// OffsetDelete 0 (KIP-496).

func (s *Shard) offsetDelete(tok machine.Token, r *Request, q *kmsg.OffsetDeleteRequest) {
	p := kmsg.NewPtrOffsetDeleteResponse()
	p.Version = q.Version
	g := s.groups[q.Group]
	switch {
	case q.Group == "":
		p.ErrorCode = code(kafka.ErrInvalidGroupID)
	case g == nil:
		p.ErrorCode = code(kafka.ErrGroupIDNotFound)
	case g.state != Empty && g.protocolType != consumerType:
		p.ErrorCode = code(kafka.ErrNonEmptyGroup)
	}
	if p.ErrorCode != 0 {
		s.reply(tok, p)
		return
	}
	for i := range q.Topics {
		t := &q.Topics[i]
		rt := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
		for _, part := range t.Partitions {
			rp := kmsg.OffsetDeleteResponseTopicPartition{Partition: part.Partition}
			_, stored := g.offsets[t.Topic][part.Partition]
			switch {
			case !r.Topics.TopicExists(t.Topic, kafka.TopicID{}, part.Partition):
				rp.ErrorCode = code(kafka.ErrUnknownTopicOrPartition)
			case g.reads(t.Topic):
				rp.ErrorCode = code(kafka.ErrGroupSubscribedToTopic)
			case stored:
				s.write(Record{Key: commitKey(g.name, t.Topic, part.Partition)})
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		p.Topics = append(p.Topics, rt)
	}
	s.reply(tok, p)
}

func (s *Shard) topicDeleted(d TopicDeleted) {
	for _, name := range s.names() {
		g := s.groups[name]
		for _, p := range sortedPartitions(g.offsets[d.Topic]) {
			was := g.offsets[d.Topic][p].topicID
			if d.ID.IsZero() || was.IsZero() || was == d.ID {
				s.write(Record{Key: commitKey(name, d.Topic, p)})
			}
		}
	}
}

func sortedPartitions(m map[int32]commit) []int32 {
	ps := make([]int32, 0, len(m))
	for p := range m {
		ps = append(ps, p)
	}
	slices.Sort(ps)
	return ps
}

func sortedTopics(m map[string]map[int32]commit) []string {
	ts := make([]string, 0, len(m))
	for t := range m {
		ts = append(ts, t)
	}
	slices.Sort(ts)
	return ts
}
