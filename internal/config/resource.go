package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirmq/weir/internal/kafka"
)

// The settings of single groups (KIP-848, KIP-932, KIP-1071) and of client metrics
// subscriptions (KIP-714). Nothing reads them yet; they are checked and described as
// Kafka does, so that what is stored now is right when something does.

// Sources of a value that only such resources have.
const (
	SourceClientMetrics int8 = 7
	SourceGroup         int8 = 8
)

var clientMetricsSpecs = []spec{
	{"interval.ms", Int, "300000", "[100,...,3600000]", Medium, OnTopic, "ms", needsTelemetry, "Time between two pushes of a client."},
	{"match", List, "", "", Medium, OnTopic, "", needsTelemetry, "Which clients push, as name=pattern pairs; empty: all."},
	{"metrics", List, "", "", Medium, OnTopic, "", needsTelemetry, "Prefixes of the metrics to push."},
}

var groupSpecs = []spec{
	{"consumer.assignment.interval.ms", Int, "1000", "[0,...]", Medium, OnTopic, "ms", needsNewGroup, "Time between two assignments."},
	{"consumer.heartbeat.interval.ms", Int, "5000", "[1,...]", Medium, OnTopic, "ms", needsNewGroup, "Time between a member's heartbeats."},
	{"consumer.session.timeout.ms", Int, "45000", "[1,...]", Medium, OnTopic, "ms", needsNewGroup, "Silence after which a member is dropped."},
	{"errors.deadletterqueue.copy.record.enable", Bool, "false", "", Medium, OnTopic, "", needsShare, "Whether a record given up is copied with its value."},
	{"errors.deadletterqueue.topic.name", String, "", "", Medium, OnTopic, "", needsShare, "Topic for records given up; empty: none."},
	{"share.assignment.interval.ms", Int, "1000", "[0,...]", Medium, OnTopic, "ms", needsShare, "Time between two assignments."},
	{"share.auto.offset.reset", String, "latest", "", Medium, OnTopic, "", needsShare, "Where a new share group begins: earliest, latest, by_duration:PERIOD."},
	{"share.delivery.count.limit", Int, "5", "[2,...]", Medium, OnTopic, "", needsShare, "Deliveries after which a record is given up."},
	{"share.heartbeat.interval.ms", Int, "5000", "[1,...]", Medium, OnTopic, "ms", needsShare, "Time between a member's heartbeats."},
	{"share.isolation.level", String, "read_uncommitted", "[read_committed, read_uncommitted]", Medium, OnTopic, "", needsShare, "Which records the group sees."},
	{"share.partition.max.record.locks", Int, "2000", "[100,...]", Medium, OnTopic, "", needsShare, "Records of a partition in flight."},
	{"share.record.lock.duration.ms", Int, "30000", "[1000,...]", Medium, OnTopic, "ms", needsShare, "How long a record is a member's."},
	{"share.renew.acknowledge.enable", Bool, "true", "", Medium, OnTopic, "", needsShare, "Whether members may hold records longer."},
	{"share.session.timeout.ms", Int, "45000", "[1,...]", Medium, OnTopic, "ms", needsShare, "Silence after which a member is dropped."},
	{"streams.assignment.interval.ms", Int, "1000", "[0,...]", Medium, OnTopic, "ms", needsStreams, "Time between two assignments."},
	{"streams.assignor.name", String, "sticky", "", Medium, OnTopic, "", needsStreams, "How tasks are placed."},
	{"streams.heartbeat.interval.ms", Int, "5000", "[1,...]", Medium, OnTopic, "ms", needsStreams, "Time between a member's heartbeats."},
	{"streams.initial.rebalance.delay.ms", Int, "3000", "[0,...]", Medium, OnTopic, "ms", needsStreams, "Wait for more members before the first assignment."},
	{"streams.num.standby.replicas", Int, "0", "[0,...]", Medium, OnTopic, "", needsStreams, "Standby copies of each task."},
	{"streams.rack.aware.assignment.tags", List, "", "", Low, OnTopic, "", needsStreams, "Tags by which standby copies are spread."},
	{"streams.session.timeout.ms", Int, "45000", "[1,...]", Medium, OnTopic, "ms", needsStreams, "Silence after which a member is dropped."},
}

var clientMetricsKeys, groupConfigKeys = resourceKeys(clientMetricsSpecs), resourceKeys(groupSpecs)

func resourceKeys(specs []spec) []*Key {
	out := make([]*Key, len(specs))
	for i, s := range specs {
		k := s.key(false)
		k.def = k.parseDefault()
		out[i] = k
	}
	return out
}

func find(keys []*Key, name string) *Key {
	if i := slices.IndexFunc(keys, func(k *Key) bool { return k.Name == name }); i >= 0 {
		return keys[i]
	}
	return nil
}

// ValidateClientMetrics checks a setting of a metrics subscription. val nil deletes it.
func ValidateClientMetrics(name string, val *string) error {
	k := find(clientMetricsKeys, name)
	if k == nil {
		return &Refusal{kafka.ErrInvalidRequest, "Unknown client metrics configuration " + name + "; known are interval.ms, match and metrics"}
	}
	if val == nil {
		return nil
	}
	if _, err := k.parse(*val); err != nil {
		return &Refusal{kafka.ErrInvalidRequest, err.Error()}
	}
	return nil
}

// ValidateGroup checks a setting of one group, also against the broker's own least and
// most for it. val nil deletes it.
func (v *View) ValidateGroup(name string, val *string) error {
	k := find(groupConfigKeys, name)
	if k == nil {
		return &Refusal{kafka.ErrInvalidConfig, "Unknown group config name: " + name}
	}
	if val == nil {
		return nil
	}
	parsed, err := k.parse(*val)
	if err != nil {
		return &Refusal{kafka.ErrInvalidConfig, err.Error()}
	}
	kind, rest, _ := strings.Cut(name, ".")
	if low := brokerIndex["group."+kind+".min."+rest]; low != nil && parsed.n < v.values[low.index].n {
		return &Refusal{kafka.ErrInvalidConfig, fmt.Sprintf("%s must be at least %s, %d", name, low.Name, v.values[low.index].n)}
	}
	if high := brokerIndex["group."+kind+".max."+rest]; high != nil && parsed.n > v.values[high.index].n {
		return &Refusal{kafka.ErrInvalidConfig, fmt.Sprintf("%s must be at most %s, %d", name, high.Name, v.values[high.index].n)}
	}
	return nil
}

// groupSynonym is the broker key that gives a group's setting when it is not set.
func groupSynonym(name string) *Key {
	if name == "streams.assignor.name" {
		return brokerIndex["group.streams.assignors"]
	}
	return brokerIndex["group."+name]
}

// DescribeGroup is a group's settings, in the order of their names.
func (v *View) DescribeGroup(set map[string]string) []Entry {
	entries := make([]Entry, 0, len(groupConfigKeys))
	for _, k := range groupConfigKeys {
		val, syn := k.def, []Synonym{{Name: k.Name, Value: k.def.given, Source: SourceDefault}}
		if b := groupSynonym(k.Name); b != nil {
			val, syn = v.values[b.index], v.brokerSynonyms(b)
		}
		if raw, ok := set[k.Name]; ok {
			if parsed, err := k.parse(raw); err == nil {
				val, syn = parsed, slices.Insert(syn, 0, Synonym{Name: k.Name, Value: parsed.raw, Source: SourceGroup})
			}
		}
		entries = append(entries, entry(k, k.Name, val, syn, false))
	}
	return entries
}

// DescribeClientMetrics is a subscription's settings, in the order of their names.
func DescribeClientMetrics(set map[string]string) []Entry {
	entries := make([]Entry, 0, len(clientMetricsKeys))
	for _, k := range clientMetricsKeys {
		val, syn := k.def, []Synonym(nil) // Kafka shows no synonym of a default here
		if raw, ok := set[k.Name]; ok {
			if parsed, err := k.parse(raw); err == nil {
				val, syn = parsed, []Synonym{{Name: k.Name, Value: parsed.raw, Source: SourceClientMetrics}}
			}
		}
		entries = append(entries, entry(k, k.Name, val, syn, false))
	}
	return entries
}
