package broker

// Fetch sessions by KIP-227's rules: ids, epochs, changes, and the bound on slots.

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

func fetchRequest(id, epoch int32, partitions ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.SessionID, req.SessionEpoch = 12, id, epoch
	if len(partitions) > 0 {
		t := kmsg.NewFetchRequestTopic()
		t.Topic = "t"
		for _, n := range partitions {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition = n
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

func TestSessionRules(t *testing.T) {
	now := time.Unix(1, 0)
	next := int32(0)
	s := newSessions(2, func() int32 { next++; return next })
	a, code := s.begin(fetchRequest(0, sessionInitial, 0, 1), now)
	if code != kafka.NoError || a == nil || a.id != 1 || len(a.index) != 2 || len(a.hot) != 2 {
		t.Fatalf("full fetch: session %+v, %v", a, code)
	}
	steps := []struct {
		what      string
		id, epoch int32
		code      kafka.Error
	}{
		{"incremental", 1, 1, kafka.NoError},
		{"same epoch again", 1, 1, kafka.ErrInvalidFetchSessionEpoch},
		{"other session", 7, 1, kafka.ErrFetchSessionIDNotFound},
		{"next", 1, 2, kafka.NoError},
	}
	for _, st := range steps {
		if _, code := s.begin(fetchRequest(st.id, st.epoch), now); code != st.code {
			t.Errorf("%s: %v, want %v", st.what, code, st.code)
		}
	}
	add := fetchRequest(1, 3, 5)
	f := kmsg.NewFetchRequestForgottenTopic()
	f.Topic, f.Partitions = "t", []int32{0, 99}
	add.ForgottenTopics = append(add.ForgottenTopics, f)
	if ses, _ := s.begin(add, now); len(ses.index) != 2 || len(ses.hot) != 2 || ses.hot[0].n != 1 || ses.hot[1].n != 5 {
		t.Errorf("after adding 5 and forgetting 0: %+v", ses.hot)
	}
	byID := fetchRequest(1, 4)
	byID.Version = 13
	if _, code := s.begin(byID, now); code != kafka.ErrFetchSessionTopicIDError {
		t.Errorf("switch to topic ids inside a session: %v", code)
	}
	if ses, code := s.begin(fetchRequest(1, sessionFinal, 0), now); ses != nil || code != kafka.NoError || s.count() != 0 {
		t.Errorf("final epoch: session %v, %v, %d left", ses, code, s.count())
	}
}

func TestSessionSlots(t *testing.T) {
	now := time.Unix(1, 0)
	next := int32(0)
	s := newSessions(2, func() int32 { next++; return next })
	for i := range 3 {
		ses, _ := s.begin(fetchRequest(0, sessionInitial, 0), now)
		if (ses != nil) != (i < 2) {
			t.Errorf("session %d: %v", i, ses)
		}
	}
	if _, code := s.begin(fetchRequest(2, 1), now.Add(sessionIdle)); code != kafka.NoError {
		t.Fatal(code)
	}
	ses, _ := s.begin(fetchRequest(0, sessionInitial, 0), now.Add(sessionIdle))
	if ses == nil || s.byID[1] != nil || s.byID[2] == nil {
		t.Error("the idle session should have given its slot, the used one not")
	}
}

func TestThoseThatGaveDataComeLast(t *testing.T) {
	s := newSessions(1, func() int32 { return 1 })
	ses, _ := s.begin(fetchRequest(0, sessionInitial, 0, 1, 2, 3), time.Unix(1, 0))
	for i, sp := range ses.hot {
		sp.by, sp.gave, sp.cool = 1, i == 0, i == 1
	}
	ses.coolLocked(1)
	var got []int32
	for _, p := range ses.hot {
		got = append(got, p.n)
	}
	if !slices.Equal(got, []int32{2, 3, 0}) {
		t.Errorf("order %v, want 2 3 0", got)
	}
	sp := ses.index[partKey{ses.topics[sessionTopicKey{topic: "t"}], 1}]
	for range 2 {
		sp.Changed(10)
	}
	ses.gatherLocked()
	if len(ses.hot) != 4 || ses.hot[3] != sp || ses.anyNoted() {
		t.Errorf("a change brings it back once: %d", len(ses.hot))
	}
}

// Values of Java's Math.abs(String.hashCode()) % 50, as Kafka places groups.
func TestGroupPartition(t *testing.T) {
	for group, want := range map[string]int{"": 0, "a": 47, "test-group": 12, "polygenelubricants": 0, "grüße": 23, "𝄞": 44} {
		if got := groupPartition(group, 50); got != want {
			t.Errorf("group %q: partition %d, want %d", group, got, want)
		}
	}
}
