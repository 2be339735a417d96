package broker

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// DeleteRecords 0-2 (KIP-107), DescribeLogDirs 0-5 (KIP-113, sizes of volumes from
// 4), DescribeProducers 0 (KIP-664).

func (b *Broker) deleteRecords(r *wire.Request, req *kmsg.DeleteRecordsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	img := b.o.Quorum.Image()
	last := make(map[kafka.TopicPartition]int64) // of a partition named twice the last counts, as in Kafka
	for _, t := range req.Topics {
		for _, in := range t.Partitions {
			last[kafka.TopicPartition{Topic: t.Topic, Partition: in.Partition}] = in.Offset
		}
	}
	for _, t := range req.Topics {
		out := kmsg.NewDeleteRecordsResponseTopic()
		out.Topic = t.Topic
		for _, in := range t.Partitions {
			tp := kafka.TopicPartition{Topic: t.Topic, Partition: in.Partition}
			offset, wanted := last[tp]
			if !wanted {
				continue
			}
			delete(last, tp)
			pout := kmsg.NewDeleteRecordsResponseTopicPartition()
			pout.Partition, pout.LowWatermark = in.Partition, -1
			p, code := b.partitionOf(img, t.Topic, in.Partition)
			if code == kafka.NoError && isInternal(t.Topic) {
				code = kafka.ErrInvalidTopicException
			}
			if code == kafka.NoError && !p.Settings().Log.Delete {
				code = kafka.ErrPolicyViolation // a compacted topic keeps the newest of each key
			}
			if code == kafka.NoError {
				low, err := p.DeleteRecords(kafka.Offset(offset))
				code = b.code(err, "delete records", "partition", p.TP.String())
				pout.LowWatermark = int64(low)
			}
			if code != kafka.NoError {
				pout.ErrorCode, pout.LowWatermark = int16(code), -1
			}
			out.Partitions = append(out.Partitions, pout)
		}
		if len(out.Partitions) > 0 {
			resp.Topics = append(resp.Topics, out)
		}
	}
	if err := b.o.Partitions.SaveStarts(); err != nil {
		code := b.code(err, "delete records")
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				resp.Topics[i].Partitions[j].ErrorCode = int16(code)
			}
		}
	}
	return respond(resp)
}

func (b *Broker) describeLogDirs(r *wire.Request, req *kmsg.DescribeLogDirsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	byDir := make(map[string]map[string][]*partition.Partition)
	for _, p := range b.wantedPartitions(req) {
		topics := byDir[p.Dir()]
		if topics == nil {
			topics = make(map[string][]*partition.Partition)
			byDir[p.Dir()] = topics
		}
		topics[p.TP.Topic] = append(topics[p.TP.Topic], p)
	}
	for _, d := range b.o.Partitions.Dirs() {
		out := kmsg.NewDescribeLogDirsResponseDir()
		out.Dir, out.TotalBytes, out.UsableBytes = d.Path, d.Total, d.Free
		if d.Err != nil {
			out.ErrorCode = int16(kafka.ErrKafkaStorageError)
			resp.Dirs = append(resp.Dirs, out)
			continue
		}
		topics := byDir[d.Path]
		names := make([]string, 0, len(topics))
		for name := range topics {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = name
			slices.SortFunc(topics[name], func(x, y *partition.Partition) int { return int(x.TP.Partition - y.TP.Partition) })
			for _, p := range topics[name] {
				pout := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
				pout.Partition = p.TP.Partition
				if l := p.Log(); l != nil {
					pout.Size, pout.OffsetLag = l.Size(), max(int64(p.HighWatermark()-l.End()), 0)
				}
				t.Partitions = append(t.Partitions, pout)
			}
			out.Topics = append(out.Topics, t)
		}
		resp.Dirs = append(resp.Dirs, out)
	}
	return respond(resp)
}

// wantedPartitions are those a DescribeLogDirs names; null asks for all.
func (b *Broker) wantedPartitions(req *kmsg.DescribeLogDirsRequest) []*partition.Partition {
	if req.Topics == nil {
		return b.o.Partitions.All()
	}
	img := b.o.Quorum.Image()
	var out []*partition.Partition
	seen := make(map[*partition.Partition]bool)
	for _, t := range req.Topics {
		for _, n := range t.Partitions {
			if p, code := b.partitionOf(img, t.Topic, n); code == kafka.NoError && !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

func (b *Broker) describeProducers(r *wire.Request, req *kmsg.DescribeProducersRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	img, now := b.o.Quorum.Image(), time.Now()
	for _, t := range once(req.Topics, func(t kmsg.DescribeProducersRequestTopic) string { return t.Topic }) {
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = t.Topic
		slices.Sort(t.Partitions)
		for _, n := range slices.Compact(t.Partitions) {
			out.Partitions = append(out.Partitions, b.producersOf(img, t.Topic, n, now))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return respond(resp)
}

func (b *Broker) producersOf(img *metadata.Image, topic string, n int32, now time.Time) kmsg.DescribeProducersResponseTopicPartition {
	out := kmsg.NewDescribeProducersResponseTopicPartition()
	out.Partition = n
	p, code := b.partitionOf(img, topic, n)
	if code == kafka.NoError {
		code = b.code(p.Failed(), "describe producers")
	} else if metadata.CheckTopicName(topic) != "" {
		code = kafka.ErrInvalidTopicException
	}
	if code != kafka.NoError {
		out.ErrorCode, out.ErrorMessage = int16(code), ptr(code.Name())
		return out
	}
	for _, s := range p.Log().Producers(now) {
		a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		a.ProducerID, a.ProducerEpoch, a.LastSequence = int64(s.ID), int32(s.Epoch), s.LastSequence
		a.LastTimestamp, a.CoordinatorEpoch, a.CurrentTxnStartOffset = s.LastTimestampMs, s.CoordinatorEpoch, int64(s.TxnStart)
		out.ActiveProducers = append(out.ActiveProducers, a)
	}
	return out
}

// sortedSet sorts names and leaves doubles out.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
