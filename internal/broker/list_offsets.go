package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// ListOffsets, versions 0 to 11. 0: several offsets before a time (Kafka 4 no
// longer serves it). 2: isolation level. 4: leader epochs (KIP-320). 7: max
// timestamp (KIP-734). 8: local log start (KIP-405). 9: last tiered offset. 10:
// timeout. 11: earliest pending upload (KIP-1023).

// The timestamps with a meaning of their own, and the first version of each.
const (
	latestOffset          = -1
	earliestOffset        = -2
	maxTimestampOffset    = -3 // 7
	earliestLocalOffset   = -4 // 8
	latestTieredOffset    = -5 // 9
	earliestPendingUpload = -6 // 11
)

func (b *Broker) listOffsets(r *wire.Request, req *kmsg.ListOffsetsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	img := b.o.Quorum.Image()
	times := make(map[kafka.TopicPartition]int)
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			times[kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}]++
		}
	}
	for _, t := range req.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for i := range t.Partitions {
			in := &t.Partitions[i]
			tp := kafka.TopicPartition{Topic: t.Topic, Partition: in.Partition}
			n := times[tp]
			if n == 0 {
				continue // named twice, and refused above
			}
			pout := kmsg.NewListOffsetsResponseTopicPartition()
			pout.Partition, pout.Offset, pout.Timestamp, pout.LeaderEpoch = in.Partition, -1, -1, -1
			if n > 1 {
				times[tp] = 0
				pout.ErrorCode = int16(kafka.ErrInvalidRequest)
			} else {
				pout.ErrorCode = int16(b.listOffset(img, req, t.Topic, in, &pout))
			}
			out.Partitions = append(out.Partitions, pout)
		}
		if len(out.Partitions) > 0 {
			resp.Topics = append(resp.Topics, out)
		}
	}
	return respond(resp)
}

func (b *Broker) listOffset(img *metadata.Image, req *kmsg.ListOffsetsRequest, topic string, in *kmsg.ListOffsetsRequestTopicPartition,
	out *kmsg.ListOffsetsResponseTopicPartition) kafka.Error {
	if oldest := firstVersionOf(in.Timestamp); req.Version < oldest {
		return kafka.ErrUnsupportedVersion
	}
	if req.IsolationLevel < 0 || req.IsolationLevel > 1 {
		return kafka.ErrInvalidRequest
	}
	p, code := b.partitionOf(img, topic, in.Partition)
	if code != kafka.NoError {
		return code
	}
	if req.Version >= 4 {
		if code := p.CheckEpoch(kafka.Epoch(in.CurrentLeaderEpoch)); code != kafka.NoError {
			return code
		}
	}
	if err := p.Failed(); err != nil {
		return b.code(err, "list offsets", "partition", p.TP.String())
	}
	log, end := p.Log(), p.HighWatermark()
	if req.IsolationLevel == 1 {
		end = p.LastStable()
	}
	if req.Version == 0 {
		return b.oldOffsets(p, in, out)
	}
	switch in.Timestamp {
	case latestOffset:
		out.Offset, out.LeaderEpoch = int64(end), int32(p.Epoch())
	case earliestOffset, earliestLocalOffset:
		start := log.LogStart()
		out.Offset, out.LeaderEpoch = int64(start), int32(log.EpochAt(start))
	case latestTieredOffset, earliestPendingUpload:
		// Nothing is tiered: no such offset.
	case maxTimestampOffset:
		at, ok, err := log.MaxTimestamp()
		if err != nil {
			return b.code(err, "list offsets", "partition", p.TP.String())
		}
		if ok && at.Offset < end {
			out.Offset, out.Timestamp, out.LeaderEpoch = int64(at.Offset), at.Timestamp, int32(at.Epoch)
		}
	default:
		at, ok, err := log.OffsetForTime(in.Timestamp, end)
		if err != nil {
			return b.code(err, "list offsets", "partition", p.TP.String())
		}
		if ok {
			out.Offset, out.Timestamp, out.LeaderEpoch = int64(at.Offset), at.Timestamp, int32(at.Epoch)
		}
	}
	return kafka.NoError
}

// firstVersionOf gives the version from which a timestamp may be asked; negative
// ones without a meaning are in none.
func firstVersionOf(timestamp int64) int16 {
	switch {
	case timestamp >= earliestOffset:
		return 0
	case timestamp == maxTimestampOffset:
		return 7
	case timestamp == earliestLocalOffset:
		return 8
	case timestamp == latestTieredOffset:
		return 9
	case timestamp == earliestPendingUpload:
		return 11
	}
	return maxVersion
}

const maxVersion = 1<<15 - 1

// oldOffsets answers version 0: offsets at which the log can be read, newest
// first, never empty unless none are wanted. Kafka told the beginnings of segments
// that were last written before the time asked; here a time gives the first record
// that is not older, or the end when all are (decision 0015). Behind the offset
// asked for comes the start.
func (b *Broker) oldOffsets(p *partition.Partition, in *kmsg.ListOffsetsRequestTopicPartition, out *kmsg.ListOffsetsResponseTopicPartition) kafka.Error {
	start, end := int64(p.Log().LogStart()), int64(p.HighWatermark())
	switch in.Timestamp {
	case latestOffset:
		out.OldStyleOffsets = []int64{end}
	case earliestOffset:
		out.OldStyleOffsets = []int64{start}
	default:
		at, ok, err := p.Log().OffsetForTime(in.Timestamp, kafka.Offset(end))
		if err != nil {
			return b.code(err, "list offsets", "partition", p.TP.String())
		}
		if ok {
			end = int64(at.Offset)
		}
		out.OldStyleOffsets = []int64{end}
	}
	if out.OldStyleOffsets[0] != start {
		out.OldStyleOffsets = append(out.OldStyleOffsets, start)
	}
	if n := int(in.MaxNumOffsets); n >= 0 && n < len(out.OldStyleOffsets) {
		out.OldStyleOffsets = out.OldStyleOffsets[:n]
	}
	return kafka.NoError
}
