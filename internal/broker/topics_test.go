package broker

// timeout_ms of requests to the controller: one that takes longer is answered
// REQUEST_TIMED_OUT for each of its items, and goes on.

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// slowQuorum answers when it is told to.
type slowQuorum struct {
	oneImage
	done func(any)
}

func (q *slowQuorum) Submit(_ any, done func(any)) { q.done = done }

func TestControllerIsWaitedForAsLongAsAsked(t *testing.T) {
	f := newFetching(t, 1)
	q := &slowQuorum{oneImage: *f.q}
	f.b.o.Quorum = q
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TopicNames, req.TimeoutMillis = 4, []string{"t", "u"}, 20_000
	reply := &kmsg.DeleteTopicsResponse{Version: 4}

	p := f.b.deleteTopics(nil, req).Pending
	if left := time.Until(p.Deadline()); left <= 0 || left > 20*time.Second {
		t.Fatalf("%v left", left)
	}
	late := p.Response(p.Deadline()).Msg.(*kmsg.DeleteTopicsResponse)
	if len(late.Topics) != 2 || late.Topics[1].ErrorCode != int16(kafka.ErrRequestTimedOut) || *late.Topics[1].Topic != "u" {
		t.Errorf("too late: %+v", late.Topics)
	}
	q.done(reply) // nobody waits

	p = f.b.deleteTopics(nil, req).Pending
	q.done(reply)
	if <-p.Ready(); p.Response(time.Now()).Msg != kmsg.Response(reply) {
		t.Error("in time: not the controller's reply")
	}
	req.TimeoutMillis = 0
	if p := f.b.deleteTopics(nil, req).Pending; !p.Deadline().IsZero() {
		t.Error("without a timeout: does not wait")
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 1
	if p := f.b.createTopics(nil, create).Pending; p.Deadline().IsZero() {
		t.Error("create: waits for ever")
	}
}
