package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/wire"
)

// OffsetForLeaderEpoch, versions 0 to 4 (KIP-101, KIP-279, KIP-320): where an
// epoch ended, so that a client learns whether its log was cut.
func (b *Broker) offsetForLeaderEpoch(r *wire.Request, req *kmsg.OffsetForLeaderEpochRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	img := b.o.Quorum.Image()
	for _, t := range req.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, in := range t.Partitions {
			pout := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			pout.Partition, pout.LeaderEpoch, pout.EndOffset = in.Partition, -1, -1
			p, code := b.partitionOf(img, t.Topic, in.Partition)
			if code == kafka.NoError && req.Version >= 2 {
				code = p.CheckEpoch(kafka.Epoch(in.CurrentLeaderEpoch))
			}
			if code == kafka.NoError {
				code = b.code(p.Failed(), "offset for leader epoch", "partition", p.TP.String())
			}
			if code == kafka.NoError {
				epoch, end := p.Log().EndOfEpoch(kafka.Epoch(in.LeaderEpoch))
				pout.LeaderEpoch, pout.EndOffset = int32(epoch), int64(end)
			}
			pout.ErrorCode = int16(code)
			out.Partitions = append(out.Partitions, pout)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return respond(resp)
}
