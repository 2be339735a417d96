package broker

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/metrics"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// Quorum is what the broker needs of the metadata quorum.
type Quorum interface {
	Image() *metadata.Image
	// Submit hands a request to the active controller; done is called once with
	// its reply or a kafka.Error, from another goroutine, and must not block.
	Submit(req any, done func(resp any))
}

// Options are what a Broker is made of.
type Options struct {
	Self       kafka.BrokerID
	Quorum     Quorum
	Partitions *partition.Manager
	Config     func() *config.View // the newest view
	Log        *slog.Logger
	Metrics    *metrics.Set // may be nil
	// Fixed says whether a listener has a configured advertised address. Where it
	// has none, clients are told the address they connected to.
	Fixed func(listener string) bool
	// QuorumStatus describes the quorum for DescribeQuorum.
	QuorumStatus func() QuorumStatus
}

// Broker implements wire.Handler. Its methods may be called from any goroutine.
type Broker struct {
	o           Options
	table       wire.Table
	handlers    []handler // by key
	sessions    *sessions
	pids        pidBlock
	unpack      chan struct{} // one token for each batch being decompressed
	unpackLarge chan struct{} // one token: see unpackSmall
	// oldFetches has one token for each large answer to Fetch 0 to 3.
	oldFetches chan struct{}
	warned     atomic.Int64 // second of the last warning about a refused request
}

type handler func(b *Broker, r *wire.Request, req kmsg.Request) wire.Response

// New makes the broker and fills the version table.
func New(o Options) *Broker {
	b := &Broker{o: o, unpack: make(chan struct{}, unpacking), unpackLarge: make(chan struct{}, 1), oldFetches: make(chan struct{}, oldFetchSlots),
		sessions: newSessions(o.Config().Static().Int("max.incremental.fetch.session.cache.slots"), rand.Int32)}
	for _, a := range apis {
		b.table.Add(a.key, a.min, a.max)
		for int(a.key) >= len(b.handlers) {
			b.handlers = append(b.handlers, nil)
		}
		b.handlers[a.key] = a.handle
	}
	return b
}

// Table is the version table, for the connections.
func (b *Broker) Table() *wire.Table { return &b.table }

// Handle decodes and answers one request. Bytes that do not parse end the
// connection, as Kafka does.
func (b *Broker) Handle(r *wire.Request) wire.Response {
	req := kmsg.RequestForKey(r.Key)
	req.SetVersion(r.Version)
	body := r.Body
	if r.Key != keyProduce {
		if len(body) > maxBody {
			return b.refuse(r, "request is too large: connection closed", "limit", maxBody)
		}
		// Decoded bytes alias the body, which goes back to the pool; the machines
		// keep some of them (a member's metadata). Only Produce is worth the care.
		body = slices.Clone(body)
	}
	if err := req.ReadFrom(body); err != nil {
		return b.refuse(r, "request does not parse: connection closed")
	}
	if what, n, limit := tooMany(req); what != "" {
		return b.refuse(r, "request names too many "+what+": connection closed", "named", n, "limit", limit)
	}
	return b.handlers[r.Key](b, r, req)
}

// maxBody bounds requests that carry no records, in bytes. An element of a few bytes
// costs a hundred times that decoded and answered (decision 0009).
const maxBody = 8 << 20

// refuse closes the connection of a request that cannot be answered. It warns once a
// second at most: whoever sends one can send thousands.
func (b *Broker) refuse(r *wire.Request, what string, more ...any) wire.Response {
	now := r.Received.Unix()
	if last := b.warned.Load(); last != now && b.warned.CompareAndSwap(last, now) {
		b.o.Log.Warn(what, append([]any{"api", kmsg.NameForKey(r.Key), "version", r.Version,
			"client", r.ClientID, "peer", r.Conn.RemoteAddr().String(), "bytes", len(r.Body)}, more...)...)
	}
	return wire.Response{Close: true, None: true}
}

// respond is a response that is ready.
func respond(m kmsg.Response) wire.Response { return wire.Response{Msg: m} }

// later is a response that another goroutine finishes: a coordinator, the quorum.
// It has no deadline of its own; whoever was asked always answers.
type later struct {
	ready chan struct{}
	done  atomic.Bool
	resp  wire.Response
}

func newLater() *later { return &later{ready: make(chan struct{})} }

// finish gives the response; only the first counts.
func (l *later) finish(r wire.Response) {
	if l.done.CompareAndSwap(false, true) {
		l.resp = r
		close(l.ready)
	}
}

func (l *later) Ready() <-chan struct{}           { return l.ready }
func (l *later) Deadline() time.Time              { return time.Time{} }
func (l *later) Response(time.Time) wire.Response { return l.resp }
func (l *later) Cancel()                          {}

// forward hands a request to the controller and answers with its reply. refused fills
// an empty response when the controller refuses the request as a whole: none is there,
// or it is too late.
func forward[R kmsg.Response](b *Broker, req kmsg.Request, refused func(out R, code kafka.Error)) wire.Response {
	return forwardWithin(b, req, 0, refused)
}

// forwardWithin is forward with the request's timeout_ms: when that is over, the answer
// is REQUEST_TIMED_OUT, and what was asked for goes on, as in Kafka. 0 or less: the
// answer waits for the reply.
func forwardWithin[R kmsg.Response](b *Broker, req kmsg.Request, timeoutMs int32, refused func(out R, code kafka.Error)) wire.Response {
	l := newLater()
	refuse := func(code kafka.Error) wire.Response {
		out := req.ResponseKind().(R)
		refused(out, code)
		return respond(out)
	}
	b.o.Quorum.Submit(req, func(resp any) {
		if code, failed := resp.(kafka.Error); failed {
			l.finish(refuse(code))
			return
		}
		l.finish(respond(resp.(kmsg.Response)))
	})
	if timeoutMs <= 0 {
		return wire.Response{Pending: l}
	}
	return wire.Response{Pending: &timed{l, time.Now().Add(time.Duration(timeoutMs) * time.Millisecond), refuse}}
}

// timed is a later that is not waited for beyond a deadline.
type timed struct {
	*later
	deadline time.Time
	refuse   func(code kafka.Error) wire.Response
}

func (t *timed) Deadline() time.Time { return t.deadline }

func (t *timed) Response(time.Time) wire.Response {
	select {
	case <-t.ready:
		return t.resp
	default:
		return t.refuse(kafka.ErrRequestTimedOut)
	}
}

// partitionOf finds a partition by name, with the code when it is not here.
func (b *Broker) partitionOf(img *metadata.Image, topic string, n int32) (*partition.Partition, kafka.Error) {
	t, ok := img.Topic(topic)
	if !ok {
		return nil, kafka.ErrUnknownTopicOrPartition
	}
	return b.replica(t, n)
}

// partitionByID is partitionOf for requests that name topics by id (KIP-516).
func (b *Broker) partitionByID(img *metadata.Image, id kafka.TopicID, n int32) (*partition.Partition, kafka.Error) {
	t, ok := img.TopicByID(id)
	if !ok {
		return nil, kafka.ErrUnknownTopicID
	}
	return b.replica(t, n)
}

func (b *Broker) replica(t *metadata.Topic, n int32) (*partition.Partition, kafka.Error) {
	if n < 0 || int(n) >= len(t.Partitions) {
		return nil, kafka.ErrUnknownTopicOrPartition
	}
	if t.Partitions[n].Leader != b.o.Self {
		return nil, kafka.ErrNotLeaderOrFollower
	}
	p := b.o.Partitions.Get(t.ID, n)
	if p == nil {
		return nil, kafka.ErrNotLeaderOrFollower // the image is ahead of the Manager for a moment
	}
	return p, kafka.NoError
}

func ptr[T any](v T) *T { return &v }
