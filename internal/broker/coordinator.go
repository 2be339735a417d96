package broker

import (
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// FindCoordinator, versions 0 to 6. 1: key type. 3: flexible. 4: several keys
// (KIP-699). 6: share groups, which are refused. The offsets topic is made when
// the first group asks.

const (
	groupKey = 0
	txnKey   = 1
)

// noTransactions is the text of every refusal of a transactional id.
const noTransactions = "transactions are not served yet: leave transactional.id unset"

func (b *Broker) findCoordinator(r *wire.Request, req *kmsg.FindCoordinatorRequest) wire.Response {
	keys := req.CoordinatorKeys
	if req.Version < 4 {
		keys = []string{req.CoordinatorKey}
	}
	build := func(code kafka.Error, message string) kmsg.Response {
		resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
		img := b.o.Quorum.Image()
		for _, key := range keys {
			c := kmsg.NewFindCoordinatorResponseCoordinator()
			c.Key, c.NodeID, c.Port, c.ErrorCode = key, -1, -1, int16(code)
			c.ErrorMessage = ptr("")
			if code == kafka.NoError {
				b.coordinatorOf(r, img, key, &c)
			} else {
				c.ErrorMessage = &message
			}
			resp.Coordinators = append(resp.Coordinators, c)
		}
		if req.Version < 4 {
			c := resp.Coordinators[0]
			resp.NodeID, resp.Host, resp.Port = c.NodeID, c.Host, c.Port
			resp.ErrorCode, resp.ErrorMessage = c.ErrorCode, c.ErrorMessage
			if code == kafka.NoError {
				resp.ErrorMessage = ptr("NONE") // so Kafka, in these versions
			}
		}
		return resp
	}
	switch req.CoordinatorType {
	case groupKey:
	case txnKey:
		// The one code that the Java client and librdkafka both take as final
		// (docs/decisions/0007); the text says what is meant.
		return respond(build(kafka.ErrTransactionalIDAuthorizationFailed, noTransactions))
	default:
		return respond(build(kafka.ErrInvalidRequest, "Only coordinators of groups, key type 0, are served."))
	}
	if _, ok := b.o.Quorum.Image().Topic(OffsetsTopic); ok {
		return respond(build(kafka.NoError, ""))
	}
	l := newLater()
	b.createAll([]string{OffsetsTopic}, func(refused map[string]kafka.Error) {
		if code := refused[OffsetsTopic]; code != kafka.NoError {
			b.o.Log.Warn("the offsets topic cannot be made: groups do not work", "topic", OffsetsTopic, "err", code)
			l.finish(respond(build(kafka.ErrCoordinatorNotAvailable, "")))
			return
		}
		l.finish(respond(build(kafka.NoError, "")))
	})
	return wire.Response{Pending: l}
}

func (b *Broker) coordinatorOf(r *wire.Request, img *metadata.Image, group string, c *kmsg.FindCoordinatorResponseCoordinator) {
	t, ok := img.Topic(OffsetsTopic)
	if !ok {
		c.ErrorCode = int16(kafka.ErrCoordinatorNotAvailable)
		return
	}
	leader := t.Partitions[groupPartition(group, len(t.Partitions))].Leader
	br, ok := img.Broker(leader)
	if !ok || br.Fenced {
		c.ErrorCode = int16(kafka.ErrCoordinatorNotAvailable)
		return
	}
	c.NodeID = int32(br.ID)
	c.Host, c.Port = b.address(r.Conn, &br)
}

// groupPartition is Kafka's: Java's String.hashCode over UTF-16, sign bit off,
// modulo the partitions of the offsets topic.
func groupPartition(group string, partitions int) int {
	var h int32
	for _, u := range utf16.Encode([]rune(group)) {
		h = 31*h + int32(u)
	}
	return int(h&0x7fffffff) % partitions
}

// shard finds the shard that holds a group.
func (b *Broker) shard(group string) (*partition.Shard, kafka.Error) {
	img := b.o.Quorum.Image()
	t, ok := img.Topic(OffsetsTopic)
	if !ok {
		return nil, kafka.ErrNotCoordinator
	}
	s := b.o.Partitions.Shard(OffsetsTopic, int32(groupPartition(group, len(t.Partitions))))
	if s == nil {
		return nil, kafka.ErrNotCoordinator
	}
	return s, kafka.NoError
}

// shards lists every shard this broker runs.
func (b *Broker) shards() []*partition.Shard {
	t, ok := b.o.Quorum.Image().Topic(OffsetsTopic)
	if !ok {
		return nil
	}
	var out []*partition.Shard
	for n := range t.Partitions {
		if s := b.o.Partitions.Shard(OffsetsTopic, int32(n)); s != nil {
			out = append(out, s)
		}
	}
	return out
}
