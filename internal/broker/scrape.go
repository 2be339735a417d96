package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/partition"
)

// Sources is what metrics ask of the broker when they are scraped.
func (b *Broker) Sources() metrics.Sources {
	return metrics.Sources{Broker: b.brokerState, Partitions: b.eachPartition, Groups: b.eachGroup}
}

// stateRunning is Kafka's BrokerState RUNNING.
const stateRunning = 3

func (b *Broker) brokerState() metrics.Broker {
	img := b.o.Quorum.Image()
	m := metrics.Broker{State: stateRunning, ActiveController: img.Controller() == b.o.Self,
		ClusterTopics: img.TopicCount(), ClusterPartitions: img.PartitionCount()}
	for _, br := range img.Brokers() {
		if br.Fenced {
			m.FencedBrokers++
		} else {
			m.ActiveBrokers++
		}
	}
	for _, d := range b.o.Partitions.Dirs() {
		if d.Err != nil {
			m.OfflineDirs++
		}
	}
	for _, p := range b.o.Partitions.All() {
		m.Partitions++
		if p.Failed() != nil {
			m.OfflineReplicas++
			m.ClusterOffline++ // nobody else has a copy
			continue
		}
		m.Leaders++
	}
	img.EachTopic(func(t *metadata.Topic) bool {
		for i := range t.Partitions {
			if t.Partitions[i].Leader == kafka.NoBroker {
				m.ClusterOffline++
			}
		}
		return true
	})
	return m
}

func (b *Broker) eachPartition(yield func(metrics.Partition) bool) {
	for _, p := range b.o.Partitions.All() {
		l := p.Log()
		if l == nil {
			continue
		}
		if !yield(metrics.Partition{Topic: p.TP.Topic, Partition: p.TP.Partition, Leader: true, Start: int64(l.LogStart()), End: int64(l.End()),
			HighWatermark: int64(p.HighWatermark()), Bytes: l.Size(), Segments: int64(l.Segments())}) {
			return
		}
	}
}

// scrapeWait bounds what a scrape waits for the coordinators in all.
const scrapeWait = 2 * time.Second

// eachGroup asks every shard for its groups, and each group for its commits. A
// commit is read before the partition's end, so that a lag is never below 0.
func (b *Broker) eachGroup(yield func(metrics.Group) bool) {
	deadline := time.Now().Add(scrapeWait)
	img := b.o.Quorum.Image()
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 5
	for _, s := range b.shards() {
		resp, ok := b.askShard(s, img, list, deadline).(*kmsg.ListGroupsResponse)
		if !ok {
			continue
		}
		for _, g := range resp.Groups {
			out := metrics.Group{Name: g.Group}
			if d, ok := b.askShard(s, img, group.DescribeGroup{Version: 5, Group: g.Group}, deadline).(kmsg.DescribeGroupsResponseGroup); ok {
				out.Members = len(d.Members)
			}
			f := kmsg.NewOffsetFetchRequestGroup()
			f.Group = g.Group
			if o, ok := b.askShard(s, img, group.FetchGroup{Version: 8, Group: f}, deadline).(kmsg.OffsetFetchResponseGroup); ok {
				out.Offsets = b.lags(img, o)
			}
			if !yield(out) {
				return
			}
		}
	}
}

func (b *Broker) lags(img *metadata.Image, o kmsg.OffsetFetchResponseGroup) []metrics.GroupOffset {
	var out []metrics.GroupOffset
	for _, t := range o.Topics {
		for _, p := range t.Partitions {
			lag := int64(-1)
			if part, code := b.partitionOf(img, t.Topic, p.Partition); code == kafka.NoError {
				lag = max(int64(part.HighWatermark())-p.Offset, 0)
			}
			out = append(out, metrics.GroupOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, Lag: lag})
		}
	}
	return out
}

// askShard waits for a shard's answer until the deadline; nil: none came.
func (b *Broker) askShard(s *partition.Shard, img *metadata.Image, req any, deadline time.Time) any {
	ch := make(chan any, 1)
	s.Submit(&group.Request{Req: req, Topics: topics{img}}, func(resp any) { ch <- resp })
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case resp := <-ch:
		return resp
	case <-timer.C:
		return nil
	}
}
