package metadata

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// electLeaders serves ElectLeaders 0-2 (KIP-183, KIP-460): v1 adds the kind of
// election. Without topics every partition is considered, and those that need
// no election are left out of the reply.
func (c *Controller) electLeaders(req *kmsg.ElectLeadersRequest) (*kmsg.ElectLeadersResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	how := preferred
	if req.ElectionType == 1 {
		how = unclean
	}
	var bad *failure
	if req.ElectionType < 0 || req.ElectionType > 1 {
		resp.ErrorCode = int16(kafka.ErrInvalidRequest)
		bad = fail(kafka.ErrInvalidRequest, "Unknown election type %d", req.ElectionType)
	}
	var rs []Record
	one := func(t *Topic, name string, i int32) *failure {
		if bad != nil {
			return bad
		}
		if t == nil {
			return fail(kafka.ErrUnknownTopicOrPartition, "No such topic as %s", name)
		}
		if i < 0 || int(i) >= len(t.Partitions) {
			return fail(kafka.ErrUnknownTopicOrPartition, "No such partition as %s-%d", name, i)
		}
		p := &t.Partitions[i]
		if how == preferred && p.Leader == p.Replicas[0] || how == unclean && p.Leader != kafka.NoBroker {
			return &failure{kafka.ErrElectionNotNeeded, "Leader election not needed for topic partition."}
		}
		next, ok := c.img().revise(p, *p, how)
		switch {
		case how == preferred && next.Leader != p.Replicas[0]:
			return &failure{kafka.ErrPreferredLeaderNotAvailable, "The preferred leader was not available."}
		case next.Leader == kafka.NoBroker:
			return &failure{kafka.ErrEligibleLeadersNotAvailable, "Eligible topic partition leaders are not available."}
		case ok:
			rs = append(rs, &PartitionRecord{ID: t.ID, Index: i, Partition: next})
		}
		return nil
	}
	add := func(out *kmsg.ElectLeadersResponseTopic, i int32, f *failure) {
		p := kmsg.NewElectLeadersResponseTopicPartition()
		p.Partition = i
		p.ErrorCode, p.ErrorMessage = f.parts()
		out.Partitions = append(out.Partitions, p)
	}
	if req.Topics == nil {
		c.img().EachTopic(func(t *Topic) bool {
			out := kmsg.NewElectLeadersResponseTopic()
			out.Topic = t.Name
			for i := range t.Partitions {
				if f := one(t, t.Name, int32(i)); f == nil || f.code != kafka.ErrElectionNotNeeded {
					add(&out, int32(i), f)
				}
			}
			if len(out.Partitions) > 0 {
				resp.Topics = append(resp.Topics, out)
			}
			return true
		})
		return resp, rs
	}
	type place struct {
		topic string
		index int32
	}
	asked := map[place]*failure{} // what is asked twice is answered twice and done once
	for _, rt := range req.Topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = rt.Topic
		t, _ := c.img().Topic(rt.Topic)
		for _, i := range rt.Partitions {
			f, again := asked[place{rt.Topic, i}]
			if !again {
				f = one(t, rt.Topic, i)
				asked[place{rt.Topic, i}] = f
			}
			add(&out, i, f)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, rs
}
