package broker

// A small request has no endless answer (decision 0009): what requests may name, and
// that what they name twice, however spelt, is answered once.

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestTooMany(t *testing.T) {
	f := func(what string, limit int, of func(n int) kmsg.Request) {
		t.Helper()
		if got, n, _ := tooMany(of(limit)); got != "" {
			t.Errorf("%d %s: refused for %d %s", limit, what, n, got)
		}
		if got, n, l := tooMany(of(limit + 1)); got != what || n != limit+1 || l != limit {
			t.Errorf("%d %s: %q, %d of %d", limit+1, what, got, n, l)
		}
	}
	f("groups", 10_000, func(n int) kmsg.Request {
		return &kmsg.OffsetFetchRequest{Groups: make([]kmsg.OffsetFetchRequestGroup, n)}
	})
	f("groups", 10_000, func(n int) kmsg.Request { return &kmsg.DescribeGroupsRequest{Groups: make([]string, n)} })
	f("groups", 10_000, func(n int) kmsg.Request { return &kmsg.DeleteGroupsRequest{Groups: make([]string, n)} })
	f("keys", 10_000, func(n int) kmsg.Request { return &kmsg.FindCoordinatorRequest{CoordinatorKeys: make([]string, n)} })
	f("topics", 10_000, func(n int) kmsg.Request {
		return &kmsg.CreateTopicsRequest{Topics: make([]kmsg.CreateTopicsRequestTopic, n)}
	})
	f("resources", 10_000, func(n int) kmsg.Request {
		return &kmsg.AlterConfigsRequest{Resources: make([]kmsg.AlterConfigsRequestResource, n)}
	})
	f("resources", 10_000, func(n int) kmsg.Request {
		return &kmsg.IncrementalAlterConfigsRequest{Resources: make([]kmsg.IncrementalAlterConfigsRequestResource, n)}
	})
	for _, kind := range []kmsg.ConfigResourceType{kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, kmsg.ConfigResourceTypeClientMetrics, 32, 99} {
		f("resources that are no topics", 1000, func(n int) kmsg.Request {
			req := &kmsg.DescribeConfigsRequest{Resources: make([]kmsg.DescribeConfigsRequestResource, n+20_000)}
			for i := range req.Resources {
				req.Resources[i].ResourceType = kmsg.ConfigResourceTypeTopic // as many as there are
				if i < n {
					req.Resources[i].ResourceType = kind
				}
			}
			return req
		})
	}
	f("partitions", 100_000, func(n int) kmsg.Request {
		return &kmsg.DescribeQuorumRequest{Topics: []kmsg.DescribeQuorumRequestTopic{
			{Partitions: make([]kmsg.DescribeQuorumRequestTopicPartition, 7)}, {Partitions: make([]kmsg.DescribeQuorumRequestTopicPartition, n-7)}}}
	})
	f("partitions", 100_000, func(n int) kmsg.Request {
		return &kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Partitions: make([]int32, n)}}}
	})
	f("partitions", 100_000, func(n int) kmsg.Request {
		return &kmsg.ElectLeadersRequest{Topics: []kmsg.ElectLeadersRequestTopic{{Partitions: make([]int32, n)}}}
	})
	f("partitions", 100_000, func(n int) kmsg.Request {
		return &kmsg.AlterPartitionAssignmentsRequest{Topics: []kmsg.AlterPartitionAssignmentsRequestTopic{{
			Partitions: make([]kmsg.AlterPartitionAssignmentsRequestTopicPartition, n)}}}
	})
}

func TestConfigsAreDescribedOnce(t *testing.T) {
	f := newFetching(t, 1)
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	for _, kind := range []kmsg.ConfigResourceType{kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger, 32, kmsg.ConfigResourceTypeTopic} {
		for _, name := range []string{"1", "+1", "01", strings.Repeat("0", 200) + "1", "1"} {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName = kind, name
			req.Resources = append(req.Resources, r)
		}
	}
	got := make(map[kmsg.ConfigResourceType]int)
	for _, r := range f.b.describeConfigs(nil, req).Msg.(*kmsg.DescribeConfigsResponse).Resources {
		got[r.ResourceType]++
	}
	if got[kmsg.ConfigResourceTypeBroker] != 1 || got[kmsg.ConfigResourceTypeBrokerLogger] != 1 || got[32] != 4 || got[kmsg.ConfigResourceTypeTopic] != 4 {
		t.Errorf("answers by kind: %v", got)
	}
}
