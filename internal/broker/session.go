package broker

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/partition"
)

// Fetch sessions (KIP-227): the client names its partitions once, and later
// requests and responses carry changes alone.

// sessionKey names a partition in a fetch: by id from Fetch 13 on, else by name.
type sessionKey struct {
	topic string
	id    kafka.TopicID
	n     int32
}

// sessionTopicKey names a topic in a session.
type sessionTopicKey struct {
	topic string
	id    kafka.TopicID
}

// sessionTopic is a topic of a session, once for all its partitions.
type sessionTopic struct {
	ses   *session
	name  string // empty from Fetch 13 on
	id    kafka.TopicID
	parts int // of the session's index
}

// partKey names a partition within a session.
type partKey struct {
	t *sessionTopic
	n int32
}

// sessionPart is one partition's place in a session: what the client asks, and
// what it was last told. Its session's mutex guards it, but for noted. A client
// makes one with 30 bytes, so it is kept small: partCost states what it takes.
type sessionPart struct {
	t                *sessionTopic
	n                int32
	maxBytes         int32 // of the request, as the next three
	offset           int64
	epoch, lastEpoch int32
	hw, start        int64 // last told; -2: never
	lso              int64

	hot   bool                 // in session.hot
	gone  bool                 // forgotten
	by    uint32               // the last round to look at it, which found:
	gave  bool                 // records
	cool  bool                 // nothing beyond what it tells
	sub   *partition.Partition // tells us of changes; nil: none does
	noted atomic.Bool          // in session.noted
}

// session is one client's. It is used by one request at a time: its mutex is held
// while its partitions are looked at, and again for the reply.
//
// A fetch of 10,000 partitions of which one has news looks at that one. The session
// is subscribed to its partitions; those that changed since they were last looked at
// are in noted. In hot are those that must be looked at anyway: the client asked for
// them anew, there was more than was told, or something was wrong. What is in
// neither has nothing that its client does not know.
type session struct {
	id       int32
	byID     bool
	mu       sync.Mutex
	epoch    int32 // of the next request
	topics   map[sessionTopicKey]*sessionTopic
	index    map[partKey]*sessionPart
	most     int            // entries the maps have had room for
	cost     int64          // of all this, taken from sessions.used
	hot      []*sessionPart // in the order in which they are read
	how      sessionHow     // of the last request
	round    uint32         // counts looks; a pointer to the fetch would keep all of it
	closed   bool
	lastUsed time.Time // guarded by sessions.mu
	created  time.Time
	size     atomic.Int32 // of index, for sessions.create

	waiter atomic.Pointer[partition.Waiter] // of the fetch that waits

	notes sync.Mutex // held for a moment, within a partition's locks
	noted []*sessionPart
}

// sessionHow is what of a request bears on every partition: when it changes, all are
// looked at.
type sessionHow struct {
	version int16
	level   int8
}

func (sp *sessionPart) key() sessionKey { return sessionKey{sp.t.name, sp.t.id, sp.n} }

// ask is what the client asks, as far as it matters to a consumer's fetch.
func (sp *sessionPart) ask() kmsg.FetchRequestTopicPartition {
	a := kmsg.NewFetchRequestTopicPartition()
	a.Partition, a.CurrentLeaderEpoch, a.FetchOffset = sp.n, sp.epoch, sp.offset
	a.LastFetchedEpoch, a.PartitionMaxBytes = sp.lastEpoch, sp.maxBytes
	return a
}

// Changed notes a change of the partition (partition.Subscriber).
func (sp *sessionPart) Changed(n int64) {
	ses := sp.t.ses
	if !sp.noted.Load() && !sp.noted.Swap(true) {
		ses.notes.Lock()
		ses.noted = append(ses.noted, sp)
		ses.notes.Unlock()
	}
	// The note comes first: a fetch that begins to wait looks at the notes after it
	// has put its waiter here.
	if w := ses.waiter.Load(); w != nil && n != 0 {
		if n < 0 {
			w.Fire()
		} else {
			w.Advance(n)
		}
	}
}

// anyNoted says whether a partition changed since takeNoted.
func (ses *session) anyNoted() bool {
	ses.notes.Lock()
	defer ses.notes.Unlock()
	return len(ses.noted) > 0
}

// gatherLocked puts what changed into hot.
func (ses *session) gatherLocked() {
	ses.notes.Lock()
	noted := ses.noted
	ses.noted = nil
	ses.notes.Unlock()
	for _, sp := range noted {
		sp.noted.Store(false) // before it is read: what changes from now on is noted again
		ses.heatLocked(sp)
	}
}

func (ses *session) heatLocked(sp *sessionPart) {
	if !sp.hot && !sp.gone {
		sp.hot = true
		ses.hot = append(ses.hot, sp)
	}
}

// followLocked subscribes to where the partition is now; false: nobody will tell of
// changes, so it stays hot.
func (ses *session) followLocked(sp *sessionPart, p *partition.Partition) bool {
	if sp.sub == p && p != nil {
		return true
	}
	sp.unfollow()
	if p == nil || ses.closed || sp.gone || !p.Subscribe(sp) {
		return false
	}
	sp.sub = p
	return true
}

func (sp *sessionPart) unfollow() {
	if sp.sub != nil {
		sp.sub.Unsubscribe(sp)
		sp.sub = nil
	}
}

// close ends the subscriptions and gives back what the session holds. A fetch that
// has looked at its partitions may still be answered.
func (ses *session) close() (cost int64) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.closed = true
	for _, sp := range ses.index {
		sp.unfollow()
	}
	ses.topics, ses.index = nil, nil
	cost, ses.cost = ses.cost, 0
	return cost
}

// takeLocked adds or changes the partitions a request names. False: spend, which is
// asked before each new one, refused, and only those before it were taken.
func (ses *session) takeLocked(req *kmsg.FetchRequest, spend func(cost int64) bool) bool {
	defer func() {
		ses.most = max(ses.most, len(ses.index))
		ses.size.Store(int32(len(ses.index)))
	}()
	for i := range req.Topics {
		in := &req.Topics[i]
		key := sessionTopicKey{in.Topic, in.TopicID}
		t := ses.topics[key]
		for j := range in.Partitions {
			ask := &in.Partitions[j]
			p := ses.index[partKey{t, ask.Partition}]
			if p == nil {
				cost := int64(partCost)
				if t == nil {
					cost += topicCost + int64(len(key.topic))
				}
				if !spend(cost) {
					return false
				}
				ses.cost += cost
				if t == nil {
					key.topic = strings.Clone(key.topic)
					t = &sessionTopic{ses: ses, name: key.topic, id: key.id}
					ses.topics[key] = t
				}
				t.parts++
				p = &sessionPart{t: t, n: ask.Partition, hw: -2, start: -2, lso: -2}
				ses.index[partKey{t, p.n}] = p
			}
			p.offset, p.maxBytes = ask.FetchOffset, ask.PartitionMaxBytes
			p.epoch, p.lastEpoch = ask.CurrentLeaderEpoch, ask.LastFetchedEpoch
			ses.heatLocked(p)
		}
	}
	how := sessionHow{req.Version, req.IsolationLevel}
	if how != ses.how {
		for _, p := range ses.index {
			ses.heatLocked(p)
		}
		ses.how = how
	}
	return true
}

// forgetLocked takes out the partitions that a request names so, and returns what
// they cost. A map never shrinks, so when few are left they move to new ones.
func (ses *session) forgetLocked(req *kmsg.FetchRequest) (cost int64) {
	if len(req.ForgottenTopics) == 0 {
		return 0
	}
	for i := range req.ForgottenTopics {
		f := &req.ForgottenTopics[i]
		t := ses.topics[sessionTopicKey{f.Topic, f.TopicID}]
		for _, n := range f.Partitions {
			p := ses.index[partKey{t, n}]
			if p == nil {
				continue
			}
			delete(ses.index, partKey{t, n})
			p.gone = true
			p.unfollow()
			cost += partCost
			if t.parts--; t.parts == 0 {
				delete(ses.topics, sessionTopicKey{t.name, t.id})
				cost += topicCost + int64(len(t.name))
				t = nil
			}
		}
	}
	ses.cost -= cost
	ses.hot = slices.DeleteFunc(ses.hot, func(sp *sessionPart) bool { return sp.gone })
	if ses.most > 256 && len(ses.index) < ses.most/4 {
		index, topics := make(map[partKey]*sessionPart, len(ses.index)), make(map[sessionTopicKey]*sessionTopic, len(ses.topics))
		maps.Copy(index, ses.index)
		maps.Copy(topics, ses.topics)
		ses.index, ses.topics, ses.most = index, topics, len(index)
		ses.hot = slices.Clone(ses.hot)
	}
	return cost
}

// coolLocked takes out of hot what round by has looked at and found nothing more to tell
// (cool), and moves those that gave data behind the others, so that a client whose
// fetches fill up reaches all of them.
func (ses *session) coolLocked(by uint32) {
	kept := ses.hot[:0]
	var back []*sessionPart
	for _, sp := range ses.hot {
		switch {
		case sp.by == by && sp.cool:
			sp.hot = false
		case sp.by == by && sp.gave:
			back = append(back, sp)
		default:
			kept = append(kept, sp)
		}
	}
	hot := append(kept, back...)
	clear(ses.hot[len(hot):])
	ses.hot = hot
	if cap(hot) > 256 && len(hot) < cap(hot)/4 {
		ses.hot = slices.Clone(hot) // the first look was at all
	}
}
