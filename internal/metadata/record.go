package metadata

import "github.com/weirmq/weir/internal/kafka"

// Record is one change of the metadata. Records are values: nothing changes
// one after it was made, and Draft.Apply keeps no slice that it would write to.
type Record interface{ recordType() string }

// ClusterRecord begins every log and snapshot.
type ClusterRecord struct {
	ID          string
	BrokerEpoch int64 // highest broker epoch ever given; 0 in a new log
}

// TopicRecord creates a topic with its partitions 0..n-1.
type TopicRecord struct {
	Name       string
	ID         kafka.TopicID
	Partitions []Partition
}

// PartitionsRecord adds partitions to a topic, numbered on from First.
type PartitionsRecord struct {
	ID         kafka.TopicID
	First      int32
	Partitions []Partition
}

// PartitionRecord replaces the state of one partition.
type PartitionRecord struct {
	ID        kafka.TopicID
	Index     int32
	Partition Partition
}

// LeaderEpochsRecord raises the leader epoch of every partition that a broker
// leads, by one: one line however many there are.
type LeaderEpochsRecord struct{ Leader kafka.BrokerID }

// TopicRemovedRecord deletes a topic and its configs.
type TopicRemovedRecord struct{ ID kafka.TopicID }

// ConfigRecord sets and deletes keys of one resource.
type ConfigRecord struct {
	Key    ConfigKey
	Set    map[string]string
	Delete []string // sorted
}

// BrokerRecord registers a broker or replaces its registration.
type BrokerRecord struct{ Broker Broker }

// BrokerRemovedRecord forgets a broker.
type BrokerRemovedRecord struct{ ID kafka.BrokerID }

// ProducerIDsRecord moves the first producer id that is not handed out yet.
type ProducerIDsRecord struct{ Next kafka.ProducerID }

func (*ClusterRecord) recordType() string       { return "cluster" }
func (*TopicRecord) recordType() string         { return "topic" }
func (*PartitionsRecord) recordType() string    { return "partitions" }
func (*PartitionRecord) recordType() string     { return "partition" }
func (*LeaderEpochsRecord) recordType() string  { return "leader-epochs" }
func (*TopicRemovedRecord) recordType() string  { return "topic-removed" }
func (*ConfigRecord) recordType() string        { return "config" }
func (*BrokerRecord) recordType() string        { return "broker" }
func (*BrokerRemovedRecord) recordType() string { return "broker-removed" }
func (*ProducerIDsRecord) recordType() string   { return "producer-ids" }

// Records lists the records that make this image from an empty one: a
// snapshot. The order is fixed, so equal images give equal bytes.
func (img *Image) Records() []Record {
	rs := make([]Record, 0, 2+len(img.brokers)+img.topics.n+img.configs.n)
	rs = append(rs, &ClusterRecord{ID: img.clusterID, BrokerEpoch: img.brokerEpoch})
	for _, b := range img.brokers {
		rs = append(rs, &BrokerRecord{Broker: b})
	}
	if img.nextProducerID > 0 {
		rs = append(rs, &ProducerIDsRecord{Next: img.nextProducerID})
	}
	img.EachTopic(func(t *Topic) bool {
		rs = append(rs, &TopicRecord{Name: t.Name, ID: t.ID, Partitions: t.Partitions})
		return true
	})
	img.EachConfig(func(k ConfigKey, m map[string]string) {
		rs = append(rs, &ConfigRecord{Key: k, Set: m})
	})
	return rs
}
