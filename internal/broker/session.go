package broker

import (
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

// sessionKey names a partition in a session: by id from Fetch 13 on, else by name.
type sessionKey struct {
	topic string
	id    kafka.TopicID
	n     int32
}

// sessionPart is one partition's place in a session: what the client asks, and
// what it was last told. Its session's mutex guards it, but for noted.
type sessionPart struct {
	ses       *session
	key       sessionKey
	ask       kmsg.FetchRequestTopicPartition
	hw, start int64 // last told; -2: never
	lso       int64

	hot   bool                 // in session.hot
	gone  bool                 // forgotten
	by    *fetch               // the last to look at it, which found:
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
	index    map[sessionKey]*sessionPart
	hot      []*sessionPart // in the order in which they are read
	how      sessionHow     // of the last request
	closed   bool
	lastUsed time.Time // guarded by sessions.mu

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

// Changed notes a change of the partition (partition.Subscriber).
func (sp *sessionPart) Changed(n int64) {
	ses := sp.ses
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

// close ends the subscriptions.
func (ses *session) close() {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.closed = true
	for _, sp := range ses.index {
		sp.unfollow()
	}
}

// sessionIdle is how long a session must be unused before another may take its slot.
const sessionIdle = 2 * time.Minute

// sessions is the bounded cache of them.
type sessions struct {
	mu    sync.Mutex
	slots int
	rand  func() int32
	byID  map[int32]*session
}

func newSessions(slots int, rand func() int32) *sessions {
	return &sessions{slots: slots, rand: rand, byID: make(map[int32]*session)}
}

const (
	sessionInitial = 0  // epoch of a full fetch that wants a session
	sessionFinal   = -1 // epoch of a full fetch that wants none
)

// begin finds or makes the session of a request and brings it up to date. A nil
// session without an error is a fetch without one.
func (s *sessions) begin(req *kmsg.FetchRequest, now time.Time) (*session, kafka.Error) {
	if req.Version < 7 {
		return nil, kafka.NoError
	}
	if req.SessionEpoch == sessionFinal || req.SessionEpoch == sessionInitial {
		if req.SessionID != 0 {
			s.drop(req.SessionID)
		}
		if req.SessionEpoch == sessionFinal {
			return nil, kafka.NoError
		}
		return s.create(req, now), kafka.NoError
	}
	s.mu.Lock()
	ses := s.byID[req.SessionID]
	if ses != nil {
		ses.lastUsed = now
	}
	s.mu.Unlock()
	if ses == nil {
		return nil, kafka.ErrFetchSessionIDNotFound
	}
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if req.SessionEpoch != ses.epoch {
		return nil, kafka.ErrInvalidFetchSessionEpoch
	}
	if ses.byID != (req.Version >= 13) {
		return nil, kafka.ErrFetchSessionTopicIDError
	}
	ses.epoch++
	if ses.epoch < 0 {
		ses.epoch = 1
	}
	for i := range req.ForgottenTopics {
		f := &req.ForgottenTopics[i]
		for _, n := range f.Partitions {
			ses.forgetLocked(sessionKey{f.Topic, f.TopicID, n})
		}
	}
	if len(req.ForgottenTopics) > 0 {
		ses.hot = slices.DeleteFunc(ses.hot, func(sp *sessionPart) bool { return sp.gone })
	}
	ses.takeLocked(req)
	return ses, kafka.NoError
}

func (s *sessions) drop(id int32) {
	s.mu.Lock()
	ses := s.byID[id]
	delete(s.byID, id)
	s.mu.Unlock()
	if ses != nil {
		ses.close()
	}
}

// create makes a session, or none when every slot is in use: the client then
// fetches in full, which always works.
func (s *sessions) create(req *kmsg.FetchRequest, now time.Time) *session {
	if s.slots <= 0 {
		return nil
	}
	var oldest *session
	defer func() {
		if oldest != nil {
			oldest.close()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= s.slots {
		for _, ses := range s.byID {
			if oldest == nil || ses.lastUsed.Before(oldest.lastUsed) {
				oldest = ses
			}
		}
		if oldest == nil || now.Sub(oldest.lastUsed) < sessionIdle {
			oldest = nil
			return nil
		}
		delete(s.byID, oldest.id)
	}
	ses := &session{byID: req.Version >= 13, epoch: 1, index: make(map[sessionKey]*sessionPart), lastUsed: now}
	for ses.id <= 0 || s.byID[ses.id] != nil {
		ses.id = s.rand() & 0x7fffffff
	}
	ses.takeLocked(req) // nobody else has it yet
	s.byID[ses.id] = ses
	return ses
}

// count is the number of sessions held.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// takeLocked adds or changes the partitions a request names.
func (ses *session) takeLocked(req *kmsg.FetchRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for _, ask := range t.Partitions {
			key := sessionKey{t.Topic, t.TopicID, ask.Partition}
			p := ses.index[key]
			if p == nil {
				key.topic = strings.Clone(key.topic)
				p = &sessionPart{ses: ses, key: key, hw: -2, start: -2, lso: -2}
				ses.index[key] = p
			}
			p.ask = ask
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
}

// forgetLocked leaves the partition in hot, marked as gone.
func (ses *session) forgetLocked(key sessionKey) {
	p := ses.index[key]
	if p == nil {
		return
	}
	delete(ses.index, key)
	p.gone = true
	p.unfollow()
}

// coolLocked takes out of hot what by has looked at and found nothing more to tell
// (cool), and moves those that gave data behind the others, so that a client whose
// fetches fill up reaches all of them.
func (ses *session) coolLocked(by *fetch) {
	kept := ses.hot[:0]
	var back []*sessionPart
	for _, sp := range ses.hot {
		switch {
		case sp.by == by && sp.cool:
			sp.hot, sp.by = false, nil
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
