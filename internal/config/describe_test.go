package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The answers of a running Kafka 4.4 to DescribeConfigs are in testdata; Weir
// with the same start and the same changes must answer the same: value, source,
// flags, type, and the synonyms in their order. What differs on purpose is
// listed below with its reason.

const peerFile = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:29601
listeners=PLAINTEXT://127.0.0.1:29500,CONTROLLER://127.0.0.1:29601
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=/data/node-1/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.roll.hours=5
log.retention.minutes=7
log.retention.hours=9
broker.id=1
log.dir=/data/x
listener.name.plaintext.max.connections=77
sasl.jaas.config=x
ssl.key.password=zz
log.flush.scheduler.interval.ms=4000
log.cleanup.policy=compact,delete
auto.create.topics.enable=TRUE
foo.bar=1
group.consumer.assignors=range,uniform
unstable.api.versions.enable=true
log.cleaner.min.cleanable.ratio=.25
num.partitions=+3
`

var describeDiffers = map[string]string{
	"max.decompressed.message.bytes": "our default bounds what a small batch may take",
	"listeners":                      "changed with a restart only",
	"listener.security.protocol.map": "changed with a restart only",
	"min.insync.replicas":            "Kafka sets it for the cluster when its eligible leader replicas come on; Weir has none",
	"weir.http.listener":             "Weir's own",
	"socket.receive.buffer.bytes":    "own default",
	"socket.send.buffer.bytes":       "own default",
	"socket.listen.backlog.size":     "own default",
	// Once log.retention.ms is set while running, Kafka shows the weaker keys with
	// their defaults beside a synonym that says otherwise. Weir goes on showing
	// what the file says.
	"log.retention.hours":             "shown as in the file",
	"log.retention.minutes":           "shown as in the file",
	"log.flush.scheduler.interval.ms": "shown as in the file",
}

func TestDescribeAsKafka(t *testing.T) {
	s, _, err := Load(Source{File: []byte(peerFile)})
	if err != nil {
		t.Fatal(err)
	}
	v := s.With(map[string]string{
		"log.retention.ms": "777000", "message.max.bytes": "2000000", "log.preallocate": "TRUE",
		"listener.name.plaintext.max.connections": "78", "log.cleanup.policy": "delete",
	}, map[string]string{
		"log.retention.ms": "778000", "max.connections.per.ip": "100", "log.flush.interval.ms": "5000",
		"listener.name.plaintext.max.connections": "79", "foo": "5",
	})
	got := map[string]string{}
	keep := func(resource string, entries []Entry) {
		for _, e := range entries {
			got[resource+"\t"+e.Name] = describeLine(e)
		}
	}
	keep("topic:t1", v.DescribeTopic(map[string]string{"retention.ms": "1234567"}))
	keep("topic:t2", v.DescribeTopic(map[string]string{"preallocate": "TRUE", "cleanup.policy": "delete, delete",
		"min.cleanable.dirty.ratio": "1", "internal.segment.bytes": "100", "segment.ms": " 77777 ", "follower.replication.throttled.replicas": "*"}))
	keep("broker:", v.DescribeClusterDefault())
	keep("broker:1", v.DescribeBroker())

	text, err := os.ReadFile("testdata/describe-kafka-4.4.tsv")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3); line[0] != '#' {
			want[f[0]+"\t"+f[1]] = f[2]
		}
	}
	for id, w := range want {
		if _, name, _ := strings.Cut(id, "\t"); describeDiffers[name] != "" {
			continue
		}
		for name, d := range ownDefaults { // only the last synonym, the default, is ours
			if strings.HasSuffix(id, "\t"+name) {
				w = strings.TrimSuffix(w, fmt.Sprintf(" %s=%s(5)", name, brokerIndex[name].KafkaDefault))
				if d.value != "" || brokerIndex[name].Type != List {
					got[id] = strings.TrimSuffix(got[id], fmt.Sprintf(" %s=%s(5)", name, d.value))
				} else {
					got[id] = strings.TrimSuffix(got[id], fmt.Sprintf(" %s=(5)", name))
				}
			}
		}
		if got[id] != w {
			t.Errorf("%s\n got %s\nwant %s", id, got[id], w)
		}
	}
	for id := range got {
		if _, name, _ := strings.Cut(id, "\t"); want[id] == "" && describeDiffers[name] == "" {
			t.Errorf("%s: Kafka does not show it; got %s", id, got[id])
		}
	}
}

func describeLine(e Entry) string {
	var syn []string
	for _, s := range e.Synonyms {
		value := s.Value
		if s.Null {
			value = "<null>"
		}
		syn = append(syn, fmt.Sprintf("%s=%s(%d)", s.Name, value, s.Source))
	}
	value := e.Value
	if e.Null {
		value = "<null>"
	}
	return fmt.Sprintf("%s\t%d\t%t\t%t\t%d\t%s", value, e.Source, e.ReadOnly, e.Sensitive, e.Type, strings.Join(syn, " "))
}
