package tools

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Special timestamps of ListOffsets.
const (
	latestOffset   = -1
	earliestOffset = -2
)

// listed is a broker's answer to ListOffsets for one partition. offset is -1
// where no record is at or after the time asked for.
type listed struct {
	offset, timestamp int64
	err               error
}

// listOffsets asks each leader once for all its partitions. Every partition
// asked for is in the result; what failed carries its error.
func (s *session) listOffsets(tps []topicPartition, timestamp int64, committed bool) map[topicPartition]listed {
	out := make(map[topicPartition]listed, len(tps))
	if len(tps) == 0 {
		return out
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if committed {
		req.IsolationLevel = 1
	}
	at := map[string]int{}
	for _, tp := range tps {
		i, ok := at[tp.Topic]
		if !ok {
			i = len(req.Topics)
			at[tp.Topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = tp.Partition, timestamp
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	for _, shard := range s.cl.RequestSharded(s.ctx, req) {
		if shard.Err != nil {
			if r, ok := shard.Req.(*kmsg.ListOffsetsRequest); ok {
				for _, t := range r.Topics {
					for _, p := range t.Partitions {
						out[topicPartition{t.Topic, p.Partition}] = listed{-1, -1, shard.Err}
					}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				l := listed{p.Offset, p.Timestamp, kerr.ErrorForCode(p.ErrorCode)}
				if len(p.OldStyleOffsets) > 0 { // version 0
					l.offset = p.OldStyleOffsets[0]
				}
				out[topicPartition{t.Topic, p.Partition}] = l
			}
		}
	}
	for _, tp := range tps {
		if _, ok := out[tp]; !ok {
			out[tp] = listed{-1, -1, fmt.Errorf("the broker did not answer for partition %d of %s", tp.Partition, tp.Topic)}
		}
	}
	return out
}

// known is the offset, or nil where it is not to be had.
func (l listed) known() *int64 {
	if l.err != nil || l.offset < 0 {
		return nil
	}
	return &l.offset
}

// firstError is an error of the listing, the first in order of tps.
func firstError(tps []topicPartition, m map[topicPartition]listed) error {
	for _, tp := range tps {
		if err := m[tp].err; err != nil {
			return err
		}
	}
	return nil
}
