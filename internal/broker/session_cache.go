package broker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// sessionIdle is how long a session must be unused before another may take its
// place, and how long it must have lived before a larger one may (KIP-227).
const sessionIdle = 2 * time.Minute

// What sessions may hold together, in bytes. They outlive their connections, and a
// partition need not exist to be in one: Kafka bounds their number alone, and twelve
// requests once held 2.8 GB here. A test measures that the costs are not below what
// is really held: the entry, its places in the maps and in hot, the subscription.
const (
	sessionsMost = 64 << 20
	partCost     = 192
	topicCost    = 256 // and its name
	sessionCost  = 1024
)

// sessions is the bounded cache of them.
type sessions struct {
	slots int
	most  int64
	rand  func() int32
	used  atomic.Int64 // of most

	mu   sync.Mutex
	byID map[int32]*session
}

func newSessions(slots int, rand func() int32) *sessions {
	return &sessions{slots: slots, most: sessionsMost, rand: rand, byID: make(map[int32]*session)}
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
	code, full := s.advance(ses, req)
	if full {
		s.drop(ses.id)
	}
	if code != kafka.NoError {
		return nil, code
	}
	return ses, kafka.NoError
}

// advance brings a session up to date with its next request. full: there is no room
// for what the request adds. The session then ends, and its client, which is told
// that it is not known, fetches in full.
func (s *sessions) advance(ses *session, req *kmsg.FetchRequest) (code kafka.Error, full bool) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	switch {
	case ses.closed:
		return kafka.ErrFetchSessionIDNotFound, false
	case req.SessionEpoch != ses.epoch:
		return kafka.ErrInvalidFetchSessionEpoch, false
	case ses.byID != (req.Version >= 13):
		return kafka.ErrFetchSessionTopicIDError, false
	}
	ses.epoch++
	if ses.epoch < 0 {
		ses.epoch = 1
	}
	s.used.Add(-ses.forgetLocked(req))
	if !ses.takeLocked(req, s.spend) {
		return kafka.ErrFetchSessionIDNotFound, true
	}
	return kafka.NoError, false
}

// spend takes bytes of what sessions may hold, if there are so many left.
func (s *sessions) spend(cost int64) bool {
	if s.used.Add(cost) <= s.most {
		return true
	}
	s.used.Add(-cost)
	return false
}

func (s *sessions) drop(id int32) {
	s.mu.Lock()
	ses := s.byID[id]
	delete(s.byID, id)
	s.mu.Unlock()
	if ses != nil {
		s.used.Add(-ses.close())
	}
}

// create makes a session, or none when there is no room: the client then fetches in
// full, which always works.
func (s *sessions) create(req *kmsg.FetchRequest, now time.Time) *session {
	if s.slots <= 0 {
		return nil
	}
	need := int64(sessionCost) // at most: what is named twice counts once
	size := int32(0)
	for i := range req.Topics {
		t := &req.Topics[i]
		need += topicCost + int64(len(t.Topic)) + partCost*int64(len(t.Partitions))
		size += int32(len(t.Partitions))
	}
	s.makeRoom(need, size, now)
	if !s.spend(sessionCost) {
		return nil
	}
	ses := &session{byID: req.Version >= 13, epoch: 1, cost: sessionCost, lastUsed: now, created: now,
		topics: make(map[sessionTopicKey]*sessionTopic), index: make(map[partKey]*sessionPart)}
	taken := ses.takeLocked(req, s.spend) // nobody else has it yet
	if taken {
		s.mu.Lock()
		if taken = len(s.byID) < s.slots; taken {
			for ses.id <= 0 || s.byID[ses.id] != nil {
				ses.id = s.rand() & 0x7fffffff
			}
			s.byID[ses.id] = ses
		}
		s.mu.Unlock()
	}
	if !taken {
		s.used.Add(-ses.close())
		return nil
	}
	return ses
}

// makeRoom ends sessions for a new one by KIP-227's rules: the one unused for longest,
// if it is idle; else, where slots are lacking, one with fewer partitions that has had
// its time. Only idle ones give up memory.
func (s *sessions) makeRoom(need int64, size int32, now time.Time) {
	for {
		var oldest, smallest *session
		s.mu.Lock()
		slots := len(s.byID) >= s.slots
		if !slots && s.used.Load()+need <= s.most {
			s.mu.Unlock()
			return
		}
		for _, ses := range s.byID {
			if oldest == nil || ses.lastUsed.Before(oldest.lastUsed) {
				oldest = ses
			}
			if n := ses.size.Load(); now.Sub(ses.created) >= sessionIdle && n < size && (smallest == nil || n < smallest.size.Load()) {
				smallest = ses
			}
		}
		if oldest != nil && now.Sub(oldest.lastUsed) < sessionIdle || !slots && need > s.most {
			oldest = nil // a request that never fits ends nobody
		}
		if oldest == nil && slots {
			oldest = smallest
		}
		if oldest != nil {
			delete(s.byID, oldest.id)
		}
		s.mu.Unlock()
		if oldest == nil {
			return
		}
		s.used.Add(-oldest.close())
	}
}

// count is the number of sessions held.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}
