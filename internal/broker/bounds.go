package broker

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// How much a request may name, beyond its size (decision 0009): where a few bytes are
// answered with hundreds of times as many, a small request must not have an endless
// answer.
const (
	// maxNames bounds groups, keys of coordinators, topics to be made, resources to be
	// altered.
	maxNames = 10_000
	// maxDescribed bounds the resources of one DescribeConfigs, but for topics: every
	// name is answered, as if it were there, with 2 to 60 KB.
	maxDescribed = 1000
	// maxNumbers bounds the partitions of requests that answer a number with a
	// sentence, or a list.
	maxNumbers = 100_000
)

// tooMany says of what a request names more than it may; "" when it does not.
func tooMany(req kmsg.Request) (what string, n, limit int) {
	limit = maxNames
	switch req := req.(type) {
	case *kmsg.OffsetFetchRequest:
		what, n = "groups", len(req.Groups)
	case *kmsg.DescribeGroupsRequest:
		what, n = "groups", len(req.Groups)
	case *kmsg.DeleteGroupsRequest:
		what, n = "groups", len(req.Groups)
	case *kmsg.FindCoordinatorRequest:
		what, n = "keys", len(req.CoordinatorKeys)
	case *kmsg.CreateTopicsRequest:
		what, n = "topics", len(req.Topics)
	case *kmsg.AlterConfigsRequest:
		what, n = "resources", len(req.Resources)
	case *kmsg.IncrementalAlterConfigsRequest:
		what, n = "resources", len(req.Resources)
	case *kmsg.DescribeConfigsRequest:
		what, limit = "resources that are no topics", maxDescribed
		for i := range req.Resources {
			if req.Resources[i].ResourceType != kmsg.ConfigResourceTypeTopic {
				n++
			}
		}
	case *kmsg.DescribeQuorumRequest:
		what, limit = "partitions", maxNumbers
		for i := range req.Topics {
			n += len(req.Topics[i].Partitions)
		}
	case *kmsg.DescribeProducersRequest:
		what, limit = "partitions", maxNumbers
		for i := range req.Topics {
			n += len(req.Topics[i].Partitions)
		}
	case *kmsg.ElectLeadersRequest:
		what, limit = "partitions", maxNumbers
		for i := range req.Topics {
			n += len(req.Topics[i].Partitions)
		}
	case *kmsg.AlterPartitionAssignmentsRequest:
		what, limit = "partitions", maxNumbers
		for i := range req.Topics {
			n += len(req.Topics[i].Partitions)
		}
	}
	if n <= limit {
		return "", 0, 0
	}
	return what, n, limit
}

// resource is a resource of DescribeConfigs by what it is, not by how it is spelt:
// broker 1 is also 01 and +1, each of which would be answered with 60 KB.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

func resourceOf(in *kmsg.DescribeConfigsRequestResource) resource {
	r := resource{in.ResourceType, in.ResourceName}
	if r.kind == kmsg.ConfigResourceTypeBroker || r.kind == kmsg.ConfigResourceTypeBrokerLogger {
		if id, err := strconv.ParseInt(r.name, 10, 32); err == nil {
			r.name = strconv.FormatInt(id, 10)
		}
	}
	return r
}

// once leaves out what was named before.
func once[T any](in []T, name func(T) string) []T {
	seen := make(map[string]bool, len(in))
	out := in[:0]
	for _, v := range in {
		if n := name(v); !seen[n] {
			seen[n] = true
			out = append(out, v)
		}
	}
	return out
}
