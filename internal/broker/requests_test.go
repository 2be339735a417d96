package broker

// Shows: what a request may not say, in the codes of Kafka 4.4, and what counts
// where it says something twice. compat/diff asks Kafka itself.

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

func TestQuotaFilter(t *testing.T) {
	f := func(want kafka.Error, components ...kmsg.DescribeClientQuotasRequestComponent) {
		t.Helper()
		if got, why := checkQuotaFilter(components); got != want || (got == kafka.NoError) != (why == "") {
			t.Errorf("%v: %v (%q), want %v", components, got, why, want)
		}
	}
	c := func(entity string, match kmsg.QuotasMatchType, name *string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: entity, MatchType: match, Match: name}
	}
	f(kafka.NoError)
	f(kafka.NoError, c("user", 0, ptr("a")), c("client-id", 1, nil), c("ip", 2, nil))
	f(kafka.NoError, c("user", 0, ptr("")))
	f(kafka.ErrInvalidRequest, c("", 2, nil))
	f(kafka.ErrInvalidRequest, c("user", 0, nil))
	f(kafka.ErrInvalidRequest, c("user", 1, ptr("a")))
	f(kafka.ErrInvalidRequest, c("user", 3, nil))
	f(kafka.ErrInvalidRequest, c("user", 2, nil), c("user", 1, nil))
	f(kafka.ErrUnsupportedVersion, c("planet", 2, nil))
	f(kafka.ErrInvalidRequest, c("planet", 9, nil))
}

func TestMetadataByID(t *testing.T) {
	id := [16]byte{1}
	f := func(version int16, wrong, ids bool, topics ...kmsg.MetadataRequestTopic) {
		t.Helper()
		req := &kmsg.MetadataRequest{Version: version, Topics: topics}
		if w, i := wrongTopicIDs(req), byID(req); w != wrong || i != ids {
			t.Errorf("v%d %v: wrong %t, by id %t; want %t, %t", version, topics, w, i, wrong, ids)
		}
	}
	named := kmsg.MetadataRequestTopic{Topic: ptr("t")}
	known := kmsg.MetadataRequestTopic{TopicID: id}
	java := kmsg.MetadataRequestTopic{Topic: ptr(""), TopicID: id}
	f(9, false, false, named)
	f(11, false, false, named)
	f(11, true, true, known)
	f(11, true, true, java)
	f(12, false, true, known)
	f(12, false, true, java)
	f(13, false, true, known, named)
	f(13, true, false, kmsg.MetadataRequestTopic{})
}

func TestLastOfEach(t *testing.T) {
	part := func(n int32, offset int64) fetchPart {
		return fetchPart{key: sessionKey{topic: "t", n: n}, ask: kmsg.FetchRequestTopicPartition{Partition: n, FetchOffset: offset}}
	}
	got := lastOfEach([]fetchPart{part(1, 10), part(2, 20), part(1, 11), part(3, 30), part(1, 12)})
	want := []fetchPart{part(1, 12), part(2, 20), part(3, 30)}
	if len(got) != len(want) {
		t.Fatalf("%d parts, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].key != want[i].key || got[i].ask.FetchOffset != want[i].ask.FetchOffset {
			t.Errorf("part %d: %v at %d, want %v at %d", i, got[i].key, got[i].ask.FetchOffset, want[i].key, want[i].ask.FetchOffset)
		}
	}
}

func TestOneBatch(t *testing.T) {
	whole := make([]byte, 70)
	whole[11], whole[16] = 58, 2
	old := append([]byte(nil), whole...)
	old[16] = 1
	for _, c := range []struct {
		what    string
		records []byte
		want    bool
	}{
		{"whole", whole, true}, {"nothing", nil, false}, {"cut", whole[:69], false},
		{"a byte more", append(append([]byte(nil), whole...), 0), false}, {"magic 1", old, false},
	} {
		if got := oneBatch(c.records); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}
