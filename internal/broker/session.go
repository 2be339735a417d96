package broker

import (
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
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
// what it was last told.
type sessionPart struct {
	key       sessionKey
	ask       kmsg.FetchRequestTopicPartition
	hw, start int64 // last told; -2: never
	lso       int64
}

// session is one client's. It is used by one request at a time: its mutex is held
// from the request's arrival until its parts are copied, and again for the reply.
type session struct {
	id       int32
	byID     bool
	mu       sync.Mutex
	epoch    int32 // of the next request
	parts    []*sessionPart
	index    map[sessionKey]*sessionPart
	lastUsed time.Time // guarded by sessions.mu
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
			ses.forget(sessionKey{f.Topic, f.TopicID, n})
		}
	}
	ses.take(req)
	return ses, kafka.NoError
}

func (s *sessions) drop(id int32) {
	s.mu.Lock()
	delete(s.byID, id)
	s.mu.Unlock()
}

// create makes a session, or none when every slot is in use: the client then
// fetches in full, which always works.
func (s *sessions) create(req *kmsg.FetchRequest, now time.Time) *session {
	if s.slots <= 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= s.slots {
		var oldest *session
		for _, ses := range s.byID {
			if oldest == nil || ses.lastUsed.Before(oldest.lastUsed) {
				oldest = ses
			}
		}
		if oldest == nil || now.Sub(oldest.lastUsed) < sessionIdle {
			return nil
		}
		delete(s.byID, oldest.id)
	}
	ses := &session{byID: req.Version >= 13, epoch: 1, index: make(map[sessionKey]*sessionPart), lastUsed: now}
	for ses.id <= 0 || s.byID[ses.id] != nil {
		ses.id = s.rand() & 0x7fffffff
	}
	ses.take(req)
	s.byID[ses.id] = ses
	return ses
}

// count is the number of sessions held.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// take adds or changes the partitions a request names.
func (ses *session) take(req *kmsg.FetchRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for _, ask := range t.Partitions {
			key := sessionKey{t.Topic, t.TopicID, ask.Partition}
			if p := ses.index[key]; p != nil {
				p.ask = ask
				continue
			}
			key.topic = strings.Clone(key.topic)
			p := &sessionPart{key: key, ask: ask, hw: -2, start: -2, lso: -2}
			ses.index[key] = p
			ses.parts = append(ses.parts, p)
		}
	}
}

func (ses *session) forget(key sessionKey) {
	p := ses.index[key]
	if p == nil {
		return
	}
	delete(ses.index, key)
	for i, q := range ses.parts {
		if p == q {
			ses.parts = append(ses.parts[:i], ses.parts[i+1:]...)
			return
		}
	}
}

// rotate moves the partitions that gave data behind the others, so that a client
// whose fetches fill up reaches all of them.
func (ses *session) rotate(gave map[*sessionPart]bool) {
	if len(gave) == 0 {
		return
	}
	kept := make([]*sessionPart, 0, len(ses.parts))
	var back []*sessionPart
	for _, p := range ses.parts {
		if gave[p] {
			back = append(back, p)
		} else {
			kept = append(kept, p)
		}
	}
	ses.parts = append(kept, back...)
}
