package group

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A clock that steps by an hour ends no session and no rebalance: deadlines keep
// the monotonic reading of the times they are made of. Nothing on the way may
// round or convert them.
func TestDeadlinesAreMonotonic(t *testing.T) {
	now := time.Now()
	s := NewShard(Config{}, func(c string) string { return c + "-1" })
	monotonic := func(what string) time.Time {
		t.Helper()
		d := s.NextDeadline()
		if !strings.Contains(d.String(), " m=") {
			t.Errorf("%s: deadline %v has lost its monotonic reading", what, d)
		}
		return d
	}
	s.Loaded(now)
	monotonic("offsets expire")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 3, "g", "consumer", 10_000, 10_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	join.Protocols = append(join.Protocols, p)
	s.Handle(now, 1, &Request{Req: join, ClientID: "c", Topics: oneTopic{1}})
	// Let each timer fire in turn: the first rebalance, the sync, the session.
	for i := range 4 {
		d := monotonic("timer " + string(rune('0'+i)))
		for _, r := range s.Expire(d).Records {
			s.Replay(0, r)
		}
	}
}
