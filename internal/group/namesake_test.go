package group

// A commit made for a topic that was deleted is not answered for a later topic of the
// same name, even when the group never heard of the deletion.

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

type oneTopic kafka.TopicID

func (o oneTopic) TopicExists(string, kafka.TopicID, int32) bool { return true }
func (o oneTopic) TopicName(id kafka.TopicID) (string, bool)     { return "t", id == kafka.TopicID(o) }
func (o oneTopic) TopicID(name string) (id kafka.TopicID, ok bool) {
	return kafka.TopicID(o), name == "t"
}

func TestCommitOfANamesake(t *testing.T) {
	now := time.Unix(100, 0)
	s := NewShard(Config{}, func(c string) string { return c })
	s.Loaded(now)
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 9, "g", -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = 7
	topic.Partitions = append(topic.Partitions, p)
	commit.Topics = append(commit.Topics, topic)
	for _, r := range s.Handle(now, 1, &Request{Req: commit, Topics: oneTopic{1}}).Records {
		s.Replay(0, r)
	}
	ask := kmsg.NewOffsetFetchRequestGroupTopic()
	ask.Topic, ask.Partitions = "t", []int32{0}
	for _, c := range []struct {
		id   oneTopic
		want int64
	}{{oneTopic{1}, 7}, {oneTopic{2}, -1}} {
		for _, topics := range [][]kmsg.OffsetFetchRequestGroupTopic{{ask}, nil} {
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group, g.Topics = "g", topics
			step := s.Handle(now, 2, &Request{Req: FetchGroup{Version: 8, Group: g}, Topics: c.id})
			got := step.Replies[0].Resp.(kmsg.OffsetFetchResponseGroup)
			switch {
			case c.want < 0 && topics == nil:
				if len(got.Topics) != 0 {
					t.Errorf("all offsets of topic %v: %+v, want none", c.id, got.Topics)
				}
			case got.Topics[0].Partitions[0].Offset != c.want:
				t.Errorf("topic %v: offset %d, want %d", c.id, got.Topics[0].Partitions[0].Offset, c.want)
			}
		}
	}
}
