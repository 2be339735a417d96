package metadata

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// Defaults are the broker settings that the Controller needs, in force now.
type Defaults struct {
	Partitions        int32 // num.partitions
	ReplicationFactor int16 // default.replication.factor
	TopicsUndeletable bool  // delete.topic.enable=false
}

// ConfigRules is what the Controller asks about config keys.
type ConfigRules interface {
	// ValidateConfig refuses an unknown key or a bad value for the resource of
	// that kind and name. The error's text goes to the client. Its code is that
	// of the kafka.Error it is or wraps, if any, else INVALID_CONFIG, and for
	// brokers and client metrics INVALID_REQUEST.
	ValidateConfig(kind ConfigKind, name, key string, value *string) error
	// ListConfig says whether a key is a list, and what its value is where
	// nothing is set: APPEND and SUBTRACT begin from that. An unknown key is no
	// list.
	ListConfig(kind ConfigKind, key string) (value string, isList bool)
	// TopicConfigs lists every config a topic with these overrides would have,
	// for CreateTopics v5 and up. May give nil.
	TopicConfigs(img *Image, overrides map[string]string) []kmsg.CreateTopicsResponseTopicConfig
}

// ConfigSetRules may be implemented by ConfigRules too: it sees all values that
// a resource would have, to check one against another.
type ConfigSetRules interface {
	ValidateConfigSet(kind ConfigKind, name string, values map[string]string) error
}

// Config is what a Controller is made of. All fields are needed except Rules
// (nil: every config is accepted) and SessionMs.
type Config struct {
	Rules    ConfigRules
	Defaults func(img *Image) Defaults
	Rand     *rand.Rand // placement
	NewID    func() kafka.TopicID
	// SessionMs fences a broker that has sent a Heartbeat before and then none
	// for so long (broker.session.timeout.ms). 0: brokers are never fenced by
	// time, as on a node that is alone.
	SessionMs int64
}

// Controller decides what changes. It is a machine.Machine of Record.
//
// It answers these requests with their kmsg responses: CreateTopics,
// DeleteTopics, CreatePartitions, AlterConfigs, IncrementalAlterConfigs,
// ElectLeaders, AlterPartitionAssignments, ListPartitionReassignments,
// AlterPartition; and its own RegisterBroker, Heartbeat, UnregisterBroker and
// AllocateProducerIDs with their replies.
type Controller struct {
	cfg Config
	// d holds the state with every record replayed so far, committed or not. It
	// is never finished: nobody but the Controller sees it.
	d *Draft
	// sessions is soft: who sent a heartbeat to this controller, and when that
	// runs out.
	sessions map[kafka.BrokerID]time.Time
}

var _ machine.Machine[Record] = (*Controller)(nil)

// NewController makes a controller whose state is img: what is committed.
func NewController(cfg Config, img *Image) *Controller {
	d := img.Edit()
	d.base = nil
	return &Controller{cfg: cfg, d: d, sessions: map[kafka.BrokerID]time.Time{}}
}

// Snapshot is the controller's state as an image, for tests: equal to what its
// records make.
func (c *Controller) Snapshot() *Image {
	img := NewImage("")
	d := img.Edit()
	for _, r := range c.img().Records() {
		d.Apply(r)
	}
	out, _ := d.Done(c.d.img.offset)
	return out
}

func (c *Controller) img() *Image { return &c.d.img }

// Handle decides one request. A request of an unknown type is a bug.
func (c *Controller) Handle(now time.Time, from machine.Token, req any) machine.Step[Record] {
	var rs []Record
	var resp any
	switch req := req.(type) {
	case *kmsg.CreateTopicsRequest:
		resp, rs = c.createTopics(req)
	case *kmsg.DeleteTopicsRequest:
		resp, rs = c.deleteTopics(req)
	case *kmsg.CreatePartitionsRequest:
		resp, rs = c.createPartitions(req)
	case *kmsg.AlterConfigsRequest:
		resp, rs = c.alterConfigs(req)
	case *kmsg.IncrementalAlterConfigsRequest:
		resp, rs = c.incrementalAlterConfigs(req)
	case *kmsg.ElectLeadersRequest:
		resp, rs = c.electLeaders(req)
	case *kmsg.AlterPartitionAssignmentsRequest:
		resp, rs = c.alterReassignments(req)
	case *kmsg.ListPartitionReassignmentsRequest:
		resp = c.listReassignments(req)
	case *kmsg.AlterPartitionRequest:
		resp, rs = c.alterPartition(req)
	case *RegisterBroker:
		resp, rs = c.registerBroker(req)
	case *UnregisterBroker:
		resp, rs = c.unregisterBroker(req)
	case *Heartbeat:
		resp, rs = c.heartbeat(now, req)
	case *AllocateProducerIDs:
		resp, rs = c.allocateProducerIDs(req)
	default:
		panic(fmt.Sprintf("BUG: the controller does not handle %T", req))
	}
	return machine.Step[Record]{Records: rs, Replies: []machine.Reply{{Token: from, Resp: resp}}}
}

// Replay makes a record's change.
func (c *Controller) Replay(offset int64, r Record) {
	c.d.Apply(r)
	if offset != machine.Live {
		c.d.img.offset = offset
	}
}

// Loaded gives every broker that is not fenced a whole session to report in.
func (c *Controller) Loaded(now time.Time) {
	if c.cfg.SessionMs <= 0 {
		return
	}
	for _, b := range c.img().brokers {
		if !b.Fenced {
			c.sessions[b.ID] = c.sessionEnd(now)
		}
	}
}

// failure is an answer to one item of a request.
type failure struct {
	code kafka.Error
	text string
}

func fail(code kafka.Error, format string, args ...any) *failure {
	return &failure{code, fmt.Sprintf(format, args...)}
}

func (f *failure) parts() (int16, *string) {
	if f == nil {
		return 0, nil
	}
	return int16(f.code), &f.text
}

func brokerIDs(in []int32) []kafka.BrokerID {
	out := make([]kafka.BrokerID, len(in))
	for i, id := range in {
		out[i] = kafka.BrokerID(id)
	}
	return out
}

func int32s(in []kafka.BrokerID) []int32 {
	out := make([]int32, len(in))
	for i, id := range in {
		out[i] = int32(id)
	}
	return out
}

// checkReplicas holds the rules for replica lists chosen by hand; factor 0 is
// any number of them.
func (c *Controller) checkReplicas(replicas []kafka.BrokerID, factor int) *failure {
	if len(replicas) == 0 {
		return fail(kafka.ErrInvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Clone(replicas)
	slices.Sort(sorted)
	for i, id := range sorted {
		if c.img().broker(id) == nil {
			return fail(kafka.ErrInvalidReplicaAssignment,
				"The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if i > 0 && id == sorted[i-1] {
			return fail(kafka.ErrInvalidReplicaAssignment,
				"The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if factor > 0 && len(replicas) != factor {
		return fail(kafka.ErrInvalidReplicaAssignment,
			"The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).",
			len(replicas), factor)
	}
	return nil
}

// fresh is a new partition: in sync are the replicas on active brokers. False
// when there are none.
func (c *Controller) fresh(replicas []kafka.BrokerID) (Partition, bool) {
	isr := replicas
	for _, id := range replicas {
		if !c.img().active(id) {
			isr = slices.DeleteFunc(slices.Clone(replicas), func(id kafka.BrokerID) bool { return !c.img().active(id) })
			break
		}
	}
	if len(isr) == 0 {
		return Partition{}, false
	}
	return Partition{Leader: isr[0], Replicas: replicas, ISR: isr}, true
}
