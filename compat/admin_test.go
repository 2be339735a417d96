//go:build compat

package compat

// Shows: topics, partitions, records and configurations as admin tools use
// them, item by item. Cases B068, B072, B073, B075, B077, B078, B080, B083 and
// the versions of the requests behind them.

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAdmin(t *testing.T) {
	b := sharedBroker(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *rawConn)
	}{
		{"every CreateTopics and DeleteTopics version", createDelete},
		{"B068 names that collide", collidingNames},
		{"B072 reasons of CreateTopics", createReasons},
		{"B073 validate only", validateOnly},
		{"B075 CreatePartitions", createPartitions},
		{"B077 DeleteRecords", deleteRecords},
		{"B078 DescribeConfigs", describeConfigs},
		{"B080 IncrementalAlterConfigs", incrementalConfigs},
		{"AlterConfigs replaces", alterConfigs},
		{"B162 ElectLeaders", electLeaders},
		{"B159 reassignments", reassignments},
		{"DescribeLogDirs", describeLogDirs},
		{"DescribeCluster", describeCluster},
		{"DescribeTopicPartitions", describeTopicPartitions},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, dial(t, b.addr)) })
	}
}

func createDelete(t *testing.T, r *rawConn) {
	for v := int16(0); v <= r.newest(kmsg.CreateTopics, 7); v++ {
		if !r.offers(kmsg.CreateTopics, v) {
			continue
		}
		name := unique(t)
		got := ask[*kmsg.CreateTopicsResponse](r, createRequest(v, name, 3, 1, "retention.ms=12345678")).Topics[0]
		if got.ErrorCode != 0 || got.Topic != name {
			t.Errorf("create v%d: %+v", v, got)
		}
		if v >= 5 {
			found := slices.ContainsFunc(got.Configs, func(c kmsg.CreateTopicsResponseTopicConfig) bool {
				return c.Name == "retention.ms" && deref(c.Value) == "12345678" && c.Source == 1
			})
			if got.NumPartitions != 3 || got.ReplicationFactor != 1 || !found {
				t.Errorf("create v%d: %d partitions, RF %d, retention.ms found %v", v, got.NumPartitions, got.ReplicationFactor, found)
			}
		}
		if v >= 7 && got.TopicID == [16]byte{} {
			t.Errorf("create v%d: no topic id", v)
		}
		r.settle(name, 3)
		if again := r.create(name, 1, 1); again.ErrorCode != 36 || again.ErrorMessage == nil {
			t.Errorf("create again: error %d, message %s", again.ErrorCode, deref(again.ErrorMessage))
		}
		dv := min(v, 6)
		if !r.offers(kmsg.DeleteTopics, dv) {
			dv = 1
		}
		del := kmsg.NewPtrDeleteTopicsRequest()
		del.Version, del.TimeoutMillis = dv, 10000
		del.TopicNames = []string{name, "no-such-topic"}
		for i, n := range del.TopicNames {
			rt := kmsg.NewDeleteTopicsRequestTopic()
			if i == 0 && dv >= 6 {
				rt.TopicID = r.topicID(name)
			} else {
				rt.Topic = &n
			}
			del.Topics = append(del.Topics, rt)
		}
		for _, d := range ask[*kmsg.DeleteTopicsResponse](r, del).Topics {
			if deref(d.Topic) == name {
				code(t, fmt.Sprintf("delete v%d", dv), d.ErrorCode, 0)
			} else {
				code(t, fmt.Sprintf("delete v%d, unknown", dv), d.ErrorCode, 3)
			}
		}
		eventually(t, 5*time.Second, "deleted", func() (string, bool) { return "still listed", !r.exists(name) })
	}
	if r.offers(kmsg.DeleteTopics, 6) {
		del := kmsg.NewPtrDeleteTopicsRequest()
		del.Version, del.TimeoutMillis = 6, 10000
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.TopicID = [16]byte{5}
		del.Topics = append(del.Topics, rt)
		code(t, "delete, unknown id", ask[*kmsg.DeleteTopicsResponse](r, del).Topics[0].ErrorCode, 100)
	}
}

func collidingNames(t *testing.T, r *rawConn) {
	p := unique(t)
	names := func(s string) string { return p + s }
	code(t, "a.b_c", r.create(names("a.b_c"), 1, 1).ErrorCode, 0)
	code(t, "a_b.c", r.create(names("a_b.c"), 1, 1).ErrorCode, 17)
	code(t, "a_b_c", r.create(names("a_b_c"), 1, 1).ErrorCode, 17)
	code(t, "a.b_c again", r.create(names("a.b_c"), 1, 1).ErrorCode, 36)
	got := ask[*kmsg.MetadataResponse](r, metadataRequest(8, true, names("a.b.c"))).Topics[0]
	code(t, "a.b.c by Metadata", got.ErrorCode, 17, 3, 5)
	time.Sleep(300 * time.Millisecond)
	if r.exists(names("a.b.c")) {
		t.Error("a.b.c was created by Metadata")
	}
	code(t, "delete a.b_c", r.delete(names("a.b_c")), 0)
	code(t, "a_b_c after it", r.create(names("a_b_c"), 1, 1).ErrorCode, 0)
}

func assigned(name string, partitions int32, replicas int16, assignment map[int32][]int32) *kmsg.CreateTopicsRequest {
	req := createRequest(5, name, partitions, replicas)
	for p, ids := range assignment {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = p, ids
		req.Topics[0].ReplicaAssignment = append(req.Topics[0].ReplicaAssignment, a)
	}
	return req
}

func createReasons(t *testing.T, r *rawConn) {
	self := r.metadata().Brokers[0].NodeID
	f := func(what string, req *kmsg.CreateTopicsRequest, want int16) {
		t.Helper()
		got := ask[*kmsg.CreateTopicsResponse](r, req).Topics[0]
		code(t, what, got.ErrorCode, want)
		if want != 0 && got.ErrorMessage == nil {
			t.Errorf("%s: no message", what)
		}
	}
	f("RF 2", createRequest(5, unique(t), 1, 2), 38)
	f("RF 0", createRequest(5, unique(t), 1, 0), 38)
	f("RF -1", createRequest(5, unique(t), 1, -1), 0)
	f("RF -5", createRequest(5, unique(t), 1, -5), 38)
	f("no partitions", createRequest(5, unique(t), 0, 1), 37)
	f("partitions -1", createRequest(5, unique(t), -1, 1), 0)
	f("partitions -5", createRequest(5, unique(t), -5, 1), 37)
	f("assignment and counts", assigned(unique(t), 1, 1, map[int32][]int32{0: {self}}), 42)
	f("assignment", assigned(unique(t), -1, -1, map[int32][]int32{0: {self}, 1: {self}}), 0)
	f("assignment of 0 and 2", assigned(unique(t), -1, -1, map[int32][]int32{0: {self}, 2: {self}}), 39)
	f("assignment of an unknown broker", assigned(unique(t), -1, -1, map[int32][]int32{0: {self + 100}}), 39)
	f("assignment of one broker twice", assigned(unique(t), -1, -1, map[int32][]int32{0: {self, self}}), 39)
	f("unknown config", createRequest(5, unique(t), 1, 1, "no.such.key=1"), 40)
	f("config out of range", createRequest(5, unique(t), 1, 1, "retention.ms=-2"), 40)
	f("config of the wrong type", createRequest(5, unique(t), 1, 1, "retention.ms=soon"), 40)
	f("config of the wrong word", createRequest(5, unique(t), 1, 1, "cleanup.policy=burn"), 40)
	twice := createRequest(5, unique(t), 1, 1)
	twice.Topics = append(twice.Topics, twice.Topics[0], createRequest(5, unique(t), 1, 1).Topics[0])
	for _, got := range ask[*kmsg.CreateTopicsResponse](r, twice).Topics {
		if got.Topic == twice.Topics[0].Topic {
			code(t, "same name twice", got.ErrorCode, 42)
		} else {
			code(t, "the third name", got.ErrorCode, 0)
		}
	}
}

func validateOnly(t *testing.T, r *rawConn) {
	exists := r.topic(1)
	f := func(what string, req *kmsg.CreateTopicsRequest, want int16) {
		t.Helper()
		req.ValidateOnly = true
		got := ask[*kmsg.CreateTopicsResponse](r, req).Topics[0]
		code(t, what, got.ErrorCode, want)
		if want == 0 && (got.NumPartitions != 4 || got.ReplicationFactor != 1 || len(got.Configs) == 0) {
			t.Errorf("%s: %d partitions, RF %d, %d configs", what, got.NumPartitions, got.ReplicationFactor, len(got.Configs))
		}
	}
	f("existing", createRequest(5, exists, 1, 1), 36)
	f("RF too large", createRequest(5, unique(t), 1, 9), 38)
	f("bad config", createRequest(5, unique(t), 1, 1, "retention.ms=x"), 40)
	good := createRequest(5, unique(t), 4, 1)
	f("good", good, 0)
	if r.exists(good.Topics[0].Topic) {
		t.Error("validate only created the topic")
	}
}

func createPartitions(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	self := r.metadata().Brokers[0].NodeID
	for _, v := range r.upTo(kmsg.CreatePartitions, 0, 3)[:1] {
		f := func(what string, name string, count int32, assignments int, dry bool, want int16) {
			t.Helper()
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.Version, req.TimeoutMillis, req.ValidateOnly = v, 10000, dry
			rt := kmsg.NewCreatePartitionsRequestTopic()
			rt.Topic, rt.Count = name, count
			for range assignments {
				rt.Assignment = append(rt.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: []int32{self}})
			}
			req.Topics = append(req.Topics, rt)
			resp := ask[*kmsg.CreatePartitionsResponse](r, req)
			if len(resp.Topics) != 1 {
				t.Fatalf("%s: %d items in the reply", what, len(resp.Topics))
			}
			code(t, what, resp.Topics[0].ErrorCode, want)
		}
		f("2 to 5", topic, 5, 0, false, 0)
		f("5 to 5", topic, 5, 0, false, 37)
		f("5 to 3", topic, 3, 0, false, 37)
		f("5 to 7 with one assignment", topic, 7, 1, false, 39)
		f("validate 9", topic, 9, 0, true, 0)
		f("5 to 6 with its assignment", topic, 6, 1, false, 0)
		f("unknown topic", unique(t), 3, 0, false, 3)
	}
	for _, v := range r.upTo(kmsg.CreatePartitions, 0, 3) {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.Version, req.TimeoutMillis, req.ValidateOnly = v, 10000, true
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = topic, 20
		req.Topics = append(req.Topics, rt)
		code(t, fmt.Sprintf("v%d", v), ask[*kmsg.CreatePartitionsResponse](r, req).Topics[0].ErrorCode, 0)
	}
	r.settle(topic, 6)
	parts := r.metadata(topic).Topics[0].Partitions
	slices.SortFunc(parts, func(a, b kmsg.MetadataResponseTopicPartition) int { return int(a.Partition - b.Partition) })
	for i, p := range parts {
		if int(p.Partition) != i || p.ErrorCode != 0 {
			t.Errorf("partition %d at place %d, error %d", p.Partition, i, p.ErrorCode)
		}
	}
	if len(parts) != 6 {
		t.Errorf("%d partitions, want 6", len(parts))
	}
	batch := batchSpec{recs: values(1, 5)}.bytes()
	for i, p := range ask[*kmsg.ProduceResponse](r, produceRequest(8, 1, topic, batch, batch, batch, batch, batch, batch)).Topics[0].Partitions {
		code(t, fmt.Sprintf("produce to partition %d", i), p.ErrorCode, 0)
	}
}

func (r *rawConn) deleteRecords(topic string, p int32, offset int64) kmsg.DeleteRecordsResponseTopicPartition {
	r.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = r.newest(kmsg.DeleteRecords, 2), 10000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = p, offset
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.DeleteRecordsResponse](r, req).Topics[0].Partitions[0]
}

func deleteRecords(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	for range 10 {
		r.put(topic, batchSpec{recs: values(1, 10)})
	}
	f := func(what, topic string, p int32, offset int64, want int16, low int64) {
		t.Helper()
		got := r.deleteRecords(topic, p, offset)
		if code(t, what, got.ErrorCode, want) && want == 0 && got.LowWatermark != low {
			t.Errorf("%s: low watermark %d, want %d", what, got.LowWatermark, low)
		}
	}
	f("5", topic, 0, 5, 0, 5)
	f("7", topic, 0, 7, 0, 7)
	f("7 again", topic, 0, 7, 0, 7)
	f("2", topic, 0, 2, 0, 7)
	f("11", topic, 0, 11, 1, 0)
	f("-2", topic, 0, -2, 1, 0)
	if got := r.earliest(topic); got != 7 {
		t.Errorf("earliest %d, want 7", got)
	}
	f("-1", topic, 0, -1, 0, 10)
	if from, to := r.earliest(topic), r.latest(topic); from != 10 || to != 10 {
		t.Errorf("offsets %d to %d, want 10 to 10", from, to)
	}
	if got := r.put(topic, batchSpec{recs: values(1, 10)}); got != 10 {
		t.Errorf("next record at %d, want 10", got)
	}
	f("empty partition, -1", topic, 1, -1, 0, 0)
	f("unknown partition", topic, 9, 0, 3, 0)
	f("unknown topic", unique(t), 0, 0, 3, 0)
	f("compacted topic", r.topic(1, "cleanup.policy=compact"), 0, 0, 44, 0)
}

func (r *rawConn) configs(version int16, kind kmsg.ConfigResourceType, name string, keys ...string) (kmsg.DescribeConfigsResponseResource, map[string]kmsg.DescribeConfigsResponseResourceConfig) {
	r.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms, req.IncludeDocumentation = version, true, true
	rr := kmsg.NewDescribeConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kind, name
	rr.ConfigNames = keys // nil: all
	req.Resources = append(req.Resources, rr)
	got := ask[*kmsg.DescribeConfigsResponse](r, req).Resources[0]
	out := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
	for _, c := range got.Configs {
		if _, twice := out[c.Name]; twice {
			r.t.Errorf("%s is described twice", c.Name)
		}
		out[c.Name] = c
	}
	return got, out
}

func describeConfigs(t *testing.T, r *rawConn) {
	topic := r.topic(1, "retention.ms=777")
	broker := fmt.Sprint(r.metadata().Brokers[0].NodeID)
	for _, v := range r.upTo(kmsg.DescribeConfigs, 1, 4) {
		res, got := r.configs(v, kmsg.ConfigResourceTypeTopic, topic)
		if res.ErrorCode != 0 || len(got) < 25 {
			t.Errorf("v%d topic: error %d, %d keys", v, res.ErrorCode, len(got))
		}
		set, def := got["retention.ms"], got["segment.bytes"]
		if deref(set.Value) != "777" || set.Source != 1 || set.ReadOnly || set.IsSensitive {
			t.Errorf("v%d retention.ms: %+v", v, set)
		}
		if deref(def.Value) != "1073741824" || def.Source != 5 {
			t.Errorf("v%d segment.bytes: %+v", v, def)
		}
		sources := ""
		for _, s := range set.ConfigSynonyms {
			sources += fmt.Sprintf("%s=%s/%d ", s.Name, deref(s.Value), s.Source)
		}
		if len(set.ConfigSynonyms) == 0 || set.ConfigSynonyms[0].Source != 1 {
			t.Errorf("v%d retention.ms synonyms: %s", v, sources)
		}
		if last := def.ConfigSynonyms; len(last) == 0 || last[len(last)-1].Name != "log.segment.bytes" || last[len(last)-1].Source != 5 {
			t.Errorf("v%d segment.bytes synonyms: %+v", v, last)
		}
		for name, want := range map[string]kmsg.ConfigType{"retention.ms": 5, "segment.bytes": 3, "cleanup.policy": 7, "preallocate": 1, "min.cleanable.dirty.ratio": 6, "compression.type": 2} {
			if v >= 3 && (got[name].ConfigType != want || got[name].Documentation == nil || len(*got[name].Documentation) < 20) {
				t.Errorf("v%d %s: type %d, want %d; documentation %.30s", v, name, got[name].ConfigType, want, deref(got[name].Documentation))
			}
		}
		for name, c := range got {
			if c.ReadOnly || strings.Contains(name, "partition") {
				t.Errorf("v%d: %s of a topic: read-only %v", v, name, c.ReadOnly)
			}
			if v >= 3 && (c.ConfigType == 0 || deref(c.Documentation) == "") {
				t.Errorf("v%d: %s of a topic has type %d and documentation %q", v, name, c.ConfigType, deref(c.Documentation))
			}
		}
		res, got = r.configs(v, kmsg.ConfigResourceTypeBroker, broker)
		for name, c := range got {
			if v >= 3 && c.ConfigType == 0 {
				t.Errorf("v%d: %s of the broker has no type", v, name)
			}
		}
		if res.ErrorCode != 0 || len(got) < 100 {
			t.Errorf("v%d broker: error %d, %d keys", v, res.ErrorCode, len(got))
		}
		if c := got["node.id"]; deref(c.Value) != broker || !c.ReadOnly {
			t.Errorf("v%d node.id: %+v", v, c)
		}
		if c := got["log.retention.ms"]; c.ReadOnly {
			t.Errorf("v%d log.retention.ms is dynamic, not read-only", v)
		}
		if c := got["listeners"]; c.Source != 4 {
			t.Errorf("v%d listeners: source %d, want 4 (static)", v, c.Source)
		}
		if c, ok := got["ssl.key.password"]; !ok || !c.IsSensitive || c.Value != nil {
			t.Errorf("v%d ssl.key.password: there %v, %+v", v, ok, c)
		}
		_, got = r.configs(v, kmsg.ConfigResourceTypeTopic, topic, "retention.ms", "no.such.key")
		if len(got) != 1 {
			t.Errorf("v%d: asked for one known and one unknown key, got %d", v, len(got))
		}
		res, _ = r.configs(v, kmsg.ConfigResourceTypeTopic, unique(t))
		code(t, fmt.Sprintf("v%d, unknown topic", v), res.ErrorCode, 3)
		res, got = r.configs(v, kmsg.ConfigResourceTypeBrokerLogger, broker)
		if res.ErrorCode != 0 || len(got) == 0 {
			t.Errorf("v%d loggers: error %d, %d of them", v, res.ErrorCode, len(got))
		}
		res, _ = r.configs(v, kmsg.ConfigResourceTypeBroker, "77")
		code(t, fmt.Sprintf("v%d, another broker", v), res.ErrorCode, 42)
	}
}

// A consumer that is running reads partitions that are added (B075).
func TestConsumersMeetNewPartitions(t *testing.T) {
	r := dial(t, sharedBroker(t).addr)
	topic := r.topic(2)
	cl := franz(t, kgo.ConsumerGroup(unique(t)), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.MetadataMaxAge(500*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	seen := map[int32]int{}
	want := func(n int) {
		t.Helper()
		for len(seen) < n && ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { seen[r.Partition]++ })
		}
		if len(seen) != n {
			t.Fatalf("records of %d partitions, want %d", len(seen), n)
		}
	}
	one := batchSpec{recs: values(1, 10)}.bytes()
	fillAll(t, r, topic, 2, one, 2)
	want(2)
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.TimeoutMillis = 1, 10000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, 5
	req.Topics = append(req.Topics, rt)
	code(t, "grow", ask[*kmsg.CreatePartitionsResponse](r, req).Topics[0].ErrorCode, 0)
	r.settle(topic, 5)
	fillAll(t, r, topic, 5, one, 5)
	want(5)
}

type change struct {
	key   string
	op    kmsg.IncrementalAlterConfigOp // 0 set, 1 delete, 2 append, 3 subtract
	value *string
}

func (r *rawConn) alter(kind kmsg.ConfigResourceType, name string, dry bool, changes ...change) kmsg.IncrementalAlterConfigsResponseResource {
	r.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.ValidateOnly = r.newest(kmsg.IncrementalAlterConfigs, 1), dry
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kind, name
	for _, c := range changes {
		rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		rc.Name, rc.Op, rc.Value = c.key, c.op, c.value
		rr.Configs = append(rr.Configs, rc)
	}
	req.Resources = append(req.Resources, rr)
	return ask[*kmsg.IncrementalAlterConfigsResponse](r, req).Resources[0]
}

func incrementalConfigs(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	f := func(what string, want int16, changes ...change) {
		t.Helper()
		got := r.alter(kmsg.ConfigResourceTypeTopic, topic, false, changes...)
		code(t, what, got.ErrorCode, want)
		if want != 0 && got.ErrorMessage == nil {
			t.Errorf("%s: no message", what)
		}
	}
	f("same key twice", 42, change{"retention.ms", 0, ptr("1000")}, change{"retention.ms", 0, ptr("2000")})
	f("set to null", 42, change{"retention.ms", 0, nil})
	f("unknown key", 40, change{"no.such.key", 0, ptr("1")})
	f("delete of a key not set", 0, change{"retention.ms", 1, nil})
	f("append to a number", 40, change{"retention.ms", 2, ptr("1")})
	f("append to a list", 0, change{"cleanup.policy", 2, ptr("compact")})
	policy := func(want string) {
		t.Helper()
		eventually(t, 3*time.Second, "cleanup.policy="+want, func() (string, bool) { // Kafka publishes a little after it answers
			_, got := r.configs(4, kmsg.ConfigResourceTypeTopic, topic, "cleanup.policy")
			return deref(got["cleanup.policy"].Value), deref(got["cleanup.policy"].Value) == want
		})
	}
	policy("delete,compact")
	f("subtract from a list", 0, change{"cleanup.policy", 3, ptr("delete")})
	policy("compact")
	f("bad value", 40, change{"retention.ms", 0, ptr("never")})
	f("set", 0, change{"retention.ms", 0, ptr("5000")}, change{"max.message.bytes", 0, ptr("2000")})
	f("delete", 0, change{"retention.ms", 1, nil})
	eventually(t, 3*time.Second, "set and deleted", func() (string, bool) {
		_, got := r.configs(4, kmsg.ConfigResourceTypeTopic, topic)
		return fmt.Sprintf("retention.ms source %d, max.message.bytes %s", got["retention.ms"].Source, deref(got["max.message.bytes"].Value)),
			got["retention.ms"].Source == 5 && deref(got["max.message.bytes"].Value) == "2000"
	})
	code(t, "the new limit at work", r.produce(8, topic, batchSpec{recs: []rec{{key: []byte("k"), value: make([]byte, 3000)}}}.bytes()).ErrorCode, 10)
	dry := r.alter(kmsg.ConfigResourceTypeTopic, topic, true, change{"retention.ms", 0, ptr("9000")})
	code(t, "validate only", dry.ErrorCode, 0)
	if _, got := r.configs(4, kmsg.ConfigResourceTypeTopic, topic); got["retention.ms"].Source != 5 {
		t.Error("validate only changed retention.ms")
	}
	code(t, "unknown topic", r.alter(kmsg.ConfigResourceTypeTopic, unique(t), false, change{"retention.ms", 0, ptr("1")}).ErrorCode, 3)

	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = r.newest(kmsg.IncrementalAlterConfigs, 1)
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	rr.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: ptr("4000")}}
	req.Resources = append(req.Resources, rr, rr)
	for _, got := range ask[*kmsg.IncrementalAlterConfigsResponse](r, req).Resources {
		code(t, "same resource twice", got.ErrorCode, 42)
	}
}

func alterConfigs(t *testing.T, r *rawConn) {
	topic := r.topic(1, "retention.ms=777", "max.message.bytes=5000")
	for _, v := range r.upTo(kmsg.AlterConfigs, 0, 2) {
		req := kmsg.NewPtrAlterConfigsRequest()
		req.Version = v
		rr := kmsg.NewAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		rr.Configs = []kmsg.AlterConfigsRequestResourceConfig{{Name: "segment.ms", Value: ptr(fmt.Sprint(100000 + int(v)))}}
		req.Resources = append(req.Resources, rr)
		code(t, fmt.Sprintf("v%d", v), ask[*kmsg.AlterConfigsResponse](r, req).Resources[0].ErrorCode, 0)
		eventually(t, 3*time.Second, "replaced", func() (string, bool) {
			_, got := r.configs(1, kmsg.ConfigResourceTypeTopic, topic)
			return fmt.Sprint(deref(got["segment.ms"].Value), " ", got["retention.ms"].Source),
				deref(got["segment.ms"].Value) == fmt.Sprint(100000+int(v)) && got["retention.ms"].Source == 5 && got["max.message.bytes"].Source == 5
		})
	}
}

func electLeaders(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	for _, v := range r.upTo(kmsg.ElectLeaders, 0, 2) {
		for _, kind := range []int8{0, 1} {
			if v == 0 && kind == 1 {
				continue
			}
			req := kmsg.NewPtrElectLeadersRequest()
			req.Version, req.ElectionType, req.TimeoutMillis = v, kind, 10000
			for _, name := range []string{topic, unique(t)} {
				rt := kmsg.NewElectLeadersRequestTopic()
				rt.Topic, rt.Partitions = name, []int32{0}
				req.Topics = append(req.Topics, rt)
			}
			for _, rt := range ask[*kmsg.ElectLeadersResponse](r, req).Topics {
				if rt.Topic == topic {
					code(t, fmt.Sprintf("v%d, kind %d, led already", v, kind), rt.Partitions[0].ErrorCode, 84)
				} else {
					code(t, fmt.Sprintf("v%d, kind %d, unknown", v, kind), rt.Partitions[0].ErrorCode, 3)
				}
			}
		}
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.TimeoutMillis = v, 10000
		req.Topics = nil
		resp := ask[*kmsg.ElectLeadersResponse](r, req)
		code(t, fmt.Sprintf("v%d, all partitions", v), resp.ErrorCode, 0)
	}
}

func reassignments(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	self := r.metadata().Brokers[0].NodeID
	r.need(kmsg.AlterPartitionAssignments, 0)
	f := func(what, topic string, p int32, replicas []int32, want ...int16) {
		t.Helper()
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		req.TimeoutMillis = 10000
		rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		rp := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		rp.Partition, rp.Replicas = p, replicas
		rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp := ask[*kmsg.AlterPartitionAssignmentsResponse](r, req)
		code(t, what+", top", resp.ErrorCode, 0)
		code(t, what, resp.Topics[0].Partitions[0].ErrorCode, want...)
	}
	f("cancel, none runs", topic, 0, nil, 85)
	f("unknown topic", unique(t), 0, []int32{self}, 3)
	f("unknown partition", topic, 5, []int32{self}, 3)
	f("unknown broker", topic, 0, []int32{self + 100}, 39)
	f("one broker twice", topic, 0, []int32{self, self}, 39)
	f("empty list", topic, 0, []int32{}, 39)
	f("where it is", topic, 0, []int32{self}, 0)
	list := kmsg.NewPtrListPartitionReassignmentsRequest()
	list.TimeoutMillis = 10000
	list.Topics = nil
	if got := ask[*kmsg.ListPartitionReassignmentsResponse](r, list); got.ErrorCode != 0 || len(got.Topics) != 0 {
		t.Errorf("list: error %d, %+v", got.ErrorCode, got.Topics)
	}
}

func describeLogDirs(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	r.put(topic, batchSpec{recs: values(1, 1000)})
	size := int64(len(batchSpec{recs: values(1, 1000)}.bytes()))
	for _, v := range r.upTo(kmsg.DescribeLogDirs, 0, 5) {
		for _, all := range []bool{false, true} {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			req.Version = v
			if !all {
				req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: topic, Partitions: []int32{0}}}
			}
			resp := ask[*kmsg.DescribeLogDirsResponse](r, req)
			if len(resp.Dirs) != 1 || resp.Dirs[0].ErrorCode != 0 || resp.ErrorCode != 0 {
				t.Fatalf("v%d: %+v", v, resp)
			}
			d := resp.Dirs[0]
			if v >= 4 && (d.TotalBytes <= 0 || d.UsableBytes <= 0 || d.UsableBytes > d.TotalBytes) {
				t.Errorf("v%d: %d usable of %d bytes", v, d.UsableBytes, d.TotalBytes)
			}
			found := false
			for _, rt := range d.Topics {
				for _, p := range rt.Partitions {
					if rt.Topic == topic && p.Partition == 0 {
						found = p.Size == size && p.OffsetLag == 0 && !p.IsFuture
						if !found {
							t.Errorf("v%d: %+v, want size %d", v, p, size)
						}
					}
				}
				if !all && (rt.Topic != topic || len(rt.Partitions) != 1) {
					t.Errorf("v%d: not asked for %s %v", v, rt.Topic, rt.Partitions)
				}
			}
			if !found {
				t.Errorf("v%d, all %v: partition is missing", v, all)
			}
		}
	}
}

func describeCluster(t *testing.T, r *rawConn) {
	meta := r.metadata()
	for _, v := range r.upTo(kmsg.DescribeCluster, 0, 2) {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.Version, req.IncludeClusterAuthorizedOperations = v, true
		got := ask[*kmsg.DescribeClusterResponse](r, req)
		if got.ErrorCode != 0 || got.ClusterID != deref(meta.ClusterID) || got.ControllerID != meta.ControllerID || len(got.Brokers) != 1 || got.ClusterAuthorizedOperations == -2147483648 {
			t.Errorf("v%d: %+v", v, got)
		}
		if v >= 1 {
			req.EndpointType = 9
			code(t, fmt.Sprintf("v%d, endpoint type 9", v), ask[*kmsg.DescribeClusterResponse](r, req).ErrorCode, 115, 42)
		}
	}
}

func describeTopicPartitions(t *testing.T, r *rawConn) {
	r.need(kmsg.DescribeTopicPartitions, 0)
	topic := r.topic(5)
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	for _, name := range []string{topic, unique(t)} {
		rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
		rt.Topic = name
		req.Topics = append(req.Topics, rt)
	}
	slices.SortFunc(req.Topics, func(a, b kmsg.DescribeTopicPartitionsRequestTopic) int { return strings.Compare(a.Topic, b.Topic) })
	req.ResponsePartitionLimit = 100
	for _, got := range ask[*kmsg.DescribeTopicPartitionsResponse](r, req).Topics {
		if deref(got.Topic) == topic {
			if got.ErrorCode != 0 || len(got.Partitions) != 5 || bytes.Equal(got.TopicID[:], make([]byte, 16)) {
				t.Errorf("%+v", got)
			}
		} else {
			code(t, "unknown topic", got.ErrorCode, 3)
		}
	}
	req.Topics = req.Topics[:0]
	rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
	rt.Topic = topic
	req.Topics = append(req.Topics, rt)
	req.ResponsePartitionLimit = 2
	seen := 0
	for range 5 {
		resp := ask[*kmsg.DescribeTopicPartitionsResponse](r, req)
		for _, got := range resp.Topics {
			for _, p := range got.Partitions {
				if int(p.Partition) != seen {
					t.Errorf("partition %d at place %d", p.Partition, seen)
				}
				seen++
			}
		}
		if resp.NextCursor == nil {
			break
		}
		req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
	}
	if seen != 5 {
		t.Errorf("paged through %d partitions, want 5", seen)
	}
}

// B083 and the restarts of B080: what was changed through the API is there
// after a clean and after a hard restart.
func TestConfigsSurvive(t *testing.T) {
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	self := fmt.Sprint(r.metadata().Brokers[0].NodeID)
	code(t, "cluster default", r.alter(kmsg.ConfigResourceTypeBroker, "", false, change{"log.retention.ms", 0, ptr("111000")}).ErrorCode, 0)
	code(t, "this broker", r.alter(kmsg.ConfigResourceTypeBroker, self, false, change{"message.max.bytes", 0, ptr("222000")}).ErrorCode, 0)
	static := r.alter(kmsg.ConfigResourceTypeBroker, self, false, change{"node.id", 0, ptr("5")})
	code(t, "a static key", static.ErrorCode, 40, 42)
	if static.ErrorMessage == nil {
		t.Error("a static key: no message")
	}
	// Kafka takes a broker key it does not know; Weir says that it is none.
	code(t, "unknown key", r.alter(kmsg.ConfigResourceTypeBroker, "", false, change{"no.such.key", 0, ptr("x")}).ErrorCode, onlyKafka(0), 40, 42)
	code(t, "topic key", r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"segment.ms", 0, ptr("333000")}).ErrorCode, 0)
	look := func(when string) {
		t.Helper()
		r := dial(t, b.addr)
		eventually(t, 20*time.Second, when, func() (string, bool) {
			_, got := r.configs(4, kmsg.ConfigResourceTypeBroker, self)
			_, top := r.configs(4, kmsg.ConfigResourceTypeTopic, topic)
			c, p, s, i := got["log.retention.ms"], got["message.max.bytes"], top["segment.ms"], top["retention.ms"]
			return fmt.Sprintf("log.retention.ms %s source %d, message.max.bytes %s source %d, segment.ms %s source %d, retention.ms %s source %d",
					deref(c.Value), c.Source, deref(p.Value), p.Source, deref(s.Value), s.Source, deref(i.Value), i.Source),
				deref(c.Value) == "111000" && c.Source == 3 && deref(p.Value) == "222000" && p.Source == 2 && deref(s.Value) == "333000" && s.Source == 1 &&
					deref(i.Value) == "111000" && i.Source == 3
		})
	}
	look("at once")
	b.stop(t)
	b.start(t)
	look("after a clean restart")
	b.kill(t)
	b.start(t)
	look("after kill -9")
	r = dial(t, b.addr)
	code(t, "take it back", r.alter(kmsg.ConfigResourceTypeBroker, self, false, change{"message.max.bytes", 1, nil}).ErrorCode, 0)
	eventually(t, 5*time.Second, "taken back", func() (string, bool) {
		_, got := r.configs(4, kmsg.ConfigResourceTypeBroker, self)
		return deref(got["message.max.bytes"].Value), got["message.max.bytes"].Source == 5
	})
}
