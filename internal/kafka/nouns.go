package kafka

import (
	"encoding/base64"
	"fmt"
	"strconv"
)

// Offset numbers a record in a partition, from 0. NoOffset stands for none.
type Offset int64

// NoOffset is what the protocol sends where there is no offset.
const NoOffset Offset = -1

// Epoch is a leader epoch of a partition, from 0. NoEpoch means the sender does
// not know it and must not be compared as a number (KIP-320).
type Epoch int32

// NoEpoch is an unknown leader epoch.
const NoEpoch Epoch = -1

// BrokerID is a node's id. NoBroker is a partition without a leader.
type BrokerID int32

// NoBroker is the protocol's absent broker.
const NoBroker BrokerID = -1

// ProducerID identifies an idempotent producer (KIP-98). NoProducer marks a
// batch written without one.
type ProducerID int64

// NoProducer is the producer id of a plain batch.
const NoProducer ProducerID = -1

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the partition's folder name: "topic-3".
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// TopicID is a topic's identity for its whole life; a topic made again under
// the same name has another (KIP-516). The zero value is no id.
type TopicID [16]byte

// String is Kafka's text form of a Uuid: URL-safe base64 without padding.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// IsZero says whether no id is set.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// ParseTopicID reads the form that String writes.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic id %q: want 22 characters of URL-safe base64", s)
	}
	copy(id[:], b)
	return id, nil
}
