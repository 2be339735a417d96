//go:build compat

package compat

// Shows: what a restart must not change. B014: the bounds of a log of which
// everything expired. B080: after each wrong or odd configuration change the
// broker starts, with the values it had. B153: one replica is enough for a topic
// that asks for two in sync.

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// again stops the broker in order or with kill -9, starts it and connects.
func again(t *testing.T, b *broker, hard bool, topic string) *rawConn {
	t.Helper()
	if hard {
		b.kill(t)
	} else {
		b.stop(t)
	}
	b.start(t)
	r := dial(t, b.addr)
	eventually(t, 60*time.Second, "leader after a restart", func() (string, bool) {
		got := r.list(5, topic, 0, -1).ErrorCode
		return fmt.Sprint("error ", got), got == 0
	})
	return r
}

func TestExpiredLogAfterRestart(t *testing.T) { // B014
	b := startBroker(t, "log.retention.check.interval.ms=300", "log.initial.task.delay.ms=100", "log.segment.delete.delay.ms=100")
	r := dial(t, b.addr)
	topic := r.topic(1, "retention.ms=1000", "segment.bytes=1048576", "file.delete.delay.ms=100")
	end := int64(0)
	bounds := func(when string) {
		t.Helper()
		from, to := r.earliest(topic), r.latest(topic)
		at, before, after := r.fetch(topic, end), r.fetch(topic, end-1), r.fetch(topic, end+1)
		if from != end || to != end || at.ErrorCode != 0 || len(at.RecordBatches) != 0 || at.HighWatermark != end || at.LogStartOffset != end {
			t.Errorf("%s: log of %d to %d, want %d; fetch there: error %d, %d bytes, watermark %d, start %d", when, from, to, end, at.ErrorCode, len(at.RecordBatches), at.HighWatermark, at.LogStartOffset)
		}
		code(t, when+": fetch before", before.ErrorCode, 1)
		code(t, when+": fetch behind", after.ErrorCode, 1)
		if got := r.list(5, topic, 0, 0); got.ErrorCode != 0 || got.Offset != -1 || got.Timestamp != -1 {
			t.Errorf("%s: look-up by time: %+v", when, got)
		}
	}
	for round := range 3 {
		n := 10
		if round > 0 {
			n = 1
		}
		for range n {
			if got := r.put(topic, batchSpec{recs: []rec{{value: []byte("x"), ts: time.Now().UnixMilli()}}}); got != end {
				t.Fatalf("offset %d, want %d", got, end)
			}
			end++
		}
		eventually(t, 20*time.Second, "all gone", func() (string, bool) {
			from, to := r.earliest(topic), r.latest(topic)
			return fmt.Sprintf("%d to %d", from, to), from == to
		})
		bounds(fmt.Sprint("round ", round))
		r = again(t, b, round%2 == 1, topic)
		bounds(fmt.Sprintf("round %d, restarted", round))
	}
}

func TestOddConfigsAndRestarts(t *testing.T) { // B080
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1, "retention.ms=777000")
	self := fmt.Sprint(r.metadata().Brokers[0].NodeID)
	same := kmsg.NewIncrementalAlterConfigsRequestResource()
	same.ResourceType, same.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	same.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: ptr("4000")}}
	steps := []struct {
		what string
		want int16
		do   func() int16
	}{
		{"same key twice", 42, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"retention.ms", 0, ptr("1000")}, change{"retention.ms", 0, ptr("2000")}).ErrorCode
		}},
		{"set to null", 42, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"retention.ms", 0, nil}).ErrorCode
		}},
		{"unknown key", 40, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"no.such.key", 0, ptr("1")}).ErrorCode
		}},
		{"delete of a key not set", 0, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"segment.ms", 1, nil}).ErrorCode
		}},
		{"append to a number", 40, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"retention.ms", 2, ptr("1")}).ErrorCode
		}},
		{"append to a list", 0, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"cleanup.policy", 2, ptr("compact")}).ErrorCode
		}},
		{"append what is there", 0, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"cleanup.policy", 2, ptr("compact")}).ErrorCode
		}},
		{"same resource twice", 42, func() int16 {
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			req.Version = r.newest(kmsg.IncrementalAlterConfigs, 1)
			req.Resources = append(req.Resources, same, same)
			for _, got := range ask[*kmsg.IncrementalAlterConfigsResponse](r, req).Resources {
				if got.ErrorCode != 42 {
					return got.ErrorCode
				}
			}
			return 42
		}},
		{"validate only", 0, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeTopic, topic, true, change{"retention.ms", 0, ptr("5")}).ErrorCode
		}},
		{"broker: set to null", 42, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeBroker, self, false, change{"log.retention.ms", 0, nil}).ErrorCode
		}},
		{"broker: nonsense", 42, func() int16 {
			return r.alter(kmsg.ConfigResourceTypeBroker, self, false, change{"log.retention.ms", 0, ptr("soon")}).ErrorCode
		}},
	}
	for i, s := range steps {
		got := s.do()
		if s.want == 42 && got == 40 && s.what == "broker: nonsense" {
			got = 42 // 40 says it better
		}
		code(t, s.what, got, s.want)
		if onKafka && i%4 != 3 && i != len(steps)-1 {
			continue // each restart of the real one takes ten seconds
		}
		r = again(t, b, i%2 == 0, topic)
		eventually(t, 10*time.Second, "the values after "+s.what, func() (string, bool) {
			_, c := r.configs(4, kmsg.ConfigResourceTypeTopic, topic)
			_, d := r.configs(4, kmsg.ConfigResourceTypeBroker, self)
			policy := "delete"
			if i >= 5 {
				policy = "delete,compact"
			}
			got := fmt.Sprintf("%s %s %d %d", deref(c["retention.ms"].Value), deref(c["cleanup.policy"].Value), c["segment.ms"].Source, d["log.retention.ms"].Source)
			return got, got == "777000 "+policy+" 5 5"
		})
	}
}

func TestOneReplicaIsEnough(t *testing.T) { // B153, as far as one node shows it
	b := sharedBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1, "min.insync.replicas=2")
	for i, acks := range []int16{-1, 1, 0, -1} {
		req := produceRequest(8, acks, topic, batchSpec{recs: values(1, 10)}.bytes())
		if acks == 0 {
			r.send(req)
			continue
		}
		if p := ask[*kmsg.ProduceResponse](r, req).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Errorf("acks=%d: error %d, offset %d, want %d", acks, p.ErrorCode, p.BaseOffset, i)
		}
	}
}
