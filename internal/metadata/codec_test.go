package metadata

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

func createRequest() *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	return req
}

func addTopic(req *kmsg.CreateTopicsRequest, name string) {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, 3, 1
	req.Topics = append(req.Topics, t)
}

func (c *Controller) createOne(name string) machine.Step[Record] {
	req := createRequest()
	addTopic(req, name)
	return c.Handle(time.Time{}, 1, req)
}

func TestTopicNames(t *testing.T) {
	good := func(names ...string) {
		for _, n := range names {
			if why := CheckTopicName(n); why != "" {
				t.Errorf("%q: %s", n, why)
			}
		}
	}
	bad := func(names ...string) {
		for _, n := range names {
			if CheckTopicName(n) == "" {
				t.Errorf("%q passes", n)
			}
		}
	}
	good("a", "...", "a.b_c-D9", "__consumer_offsets", strings.Repeat("x", 249))
	bad("", ".", "..", "a b", "a/b", "ä", "a\x00", strings.Repeat("x", 250))
}

// Shows: what the decoder refuses, and that it reads past what it does not know.
func TestDecode(t *testing.T) {
	one := func(line string) (Record, error) {
		rs, err := DecodeRecords([]byte(line + "\n"))
		if err != nil {
			return nil, err
		}
		return rs[0], nil
	}
	good := func(line, want string) {
		t.Helper()
		r, err := one(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		if got := string(bytes.TrimSpace(AppendRecords(nil, []Record{r}))); got != want {
			t.Errorf("%s\n reads as %s\n want     %s", line, got, want)
		}
	}
	same := func(line string) { t.Helper(); good(line, line) }
	bad := func(line, why string) {
		t.Helper()
		if _, err := one(line); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", line, err, why)
		}
	}
	same(`{"t":"cluster","v":1,"id":"x","brokerEpoch":7}`)
	same(`{"t":"topic","v":1,"name":"a","id":"YWJjZGVmZ2hpamtsMDAwMQ","partitions":[{"count":3,"replicas":[1,2]},{"replicas":[2],"isr":[],"leader":-1,"leaderEpoch":4,"partitionEpoch":5,"adding":[1],"removing":[2]}]}`)
	same(`{"t":"config","v":1,"kind":4,"name":"","set":{"a":"\"\\\n\u2028ä","b":""},"delete":["c","d"]}`)
	same(`{"t":"broker","v":1,"id":0,"incarnation":"AAAAAAAAAAAAAAAAAAAAAA","listeners":[{"name":"L","host":"::1","port":9092,"security":"SSL"}],"rack":"","fenced":true,"leaving":true}`)
	same(`{"t":"leader-epochs","v":1,"leader":0}`)
	same(`{"t":"producer-ids","v":1,"next":9223372036854775807}`)
	good(` { "next" : 5 , "new" : {"a":[1.5e3,null,true,false,"x"],"b":{}} , "v":1, "t":"producer-ids" } `, `{"t":"producer-ids","v":1,"next":5}`)

	bad(`{"t":"cluster","v":2}`, "newer")
	bad(`{"t":"cluster"}`, "no version")
	bad(`{"t":"moon","v":1}`, "not known")
	bad(`{"t":"topic","v":1,"id":"short"}`, "topic id")
	bad(`{"t":"topic","v":1,"partitions":[{"count":2000000}]}`, "more than")
	bad(`{"t":"topic","v":1,"partitions":[{"count":0}]}`, "below 1")
	bad(`{"t":"partition","v":1,"id":"YWJjZGVmZ2hpamtsMDAwMQ"}`, "without")
	bad(`{"t":"producer-ids","v":1,"next":9223372036854775808}`, "64 bits")
	bad(`{"t":"producer-ids","v":1,"next":01}`, "number")
	bad(`{"t":"producer-ids","v":1,"next":1.5}`, "without ','")
	bad(`{"t":"cluster","v":1} x`, "more after")
	bad(`{"t":"cluster","v":1`, "too early")
	bad(`{"x":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`,"v":1}`, "nested")
	bad(``, "too early")
	if _, err := DecodeRecords([]byte(`{"t":"cluster","v":1}`)); err == nil {
		t.Error("a line without its end passes")
	}
}

// Shows: bytes that are not UTF-8 cannot make live state and replay differ.
func TestConfigNotUTF8(t *testing.T) {
	w := newWorld(t)
	w.command(strings.Fields("broker 1"))
	w.command(strings.Fields("create a c:cleanup.policy=\xff\xfe"))
	w.command(strings.Fields("config 2 a cleanup.policy+=\xff"))
	w.check()
}

// Shows: whatever the decoder accepts is written and read back the same.
func FuzzDecodeRecords(f *testing.F) {
	f.Add([]byte(`{"t":"cluster","v":1,"id":"x","brokerEpoch":7}` + "\n"))
	f.Add([]byte(`{"t":"topic","v":1,"name":"a","id":"YWJjZGVmZ2hpamtsMDAwMQ","partitions":[{"count":3,"replicas":[1,2]},{"replicas":[2],"isr":[],"leader":-1}]}` + "\n"))
	f.Add([]byte(`{"t":"config","v":1,"kind":4,"name":"","set":{"a":"\"\\ä"},"delete":["c"]}` + "\n"))
	f.Add([]byte(`{"t":"broker","v":1,"id":0,"incarnation":"AAAAAAAAAAAAAAAAAAAAAA","listeners":[{"name":"L"}],"rack":"","fenced":true,"u":[{"a":1e5}]}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := DecodeRecords(b)
		if err != nil {
			return
		}
		once := AppendRecords(nil, rs)
		back, err := DecodeRecords(once)
		if err != nil {
			t.Fatalf("%q was accepted, its own form %q is not: %v", b, once, err)
		}
		if twice := AppendRecords(nil, back); !bytes.Equal(once, twice) {
			t.Fatalf("%q reads back as %q", once, twice)
		}
	})
}

func TestImageLooksUp(t *testing.T) {
	w := newWorld(t)
	for _, c := range []string{"broker 2", "broker 1", "create b a p=2", "config 2 a retention.ms=1", "config 4 '' log.retention.ms=2", "ids 1"} {
		w.command(strings.Fields(c))
	}
	img := w.c.Snapshot()
	if img.ClusterID() != "C" || img.NextProducerID() != 1000 || img.Controller() != kafka.NoBroker {
		t.Error("cluster, ids or controller")
	}
	if bs := img.Brokers(); len(bs) != 2 || bs[0].ID != 1 || bs[1].ID != 2 {
		t.Errorf("brokers %v", bs)
	}
	if _, ok := img.Broker(3); ok {
		t.Error("broker 3")
	}
	if img.Config(TopicConfig, "a")["retention.ms"] != "1" || img.Config(TopicConfig, "b") != nil || img.Config(BrokerConfig, "")["log.retention.ms"] != "2" {
		t.Error("configs")
	}
	if c := img.WithController(2); c.Controller() != 2 || img.Controller() != kafka.NoBroker || c.WithController(2) != c {
		t.Error("controller")
	}
	if d := img.FullDelta(); len(d.Created) != 2 || len(d.ConfigsChanged) != 2 || !d.BrokersChanged {
		t.Errorf("full delta %+v", d)
	}
}
