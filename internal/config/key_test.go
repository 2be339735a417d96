package config

import (
	"os"
	"strings"
	"testing"
)

// The table of keys against Kafka 4.4's own tables in testdata: every key, every
// column; and the rules every line of ours must keep.

func readTable(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		f := append(strings.Split(strings.TrimRight(line, "\n"), "\t"), "", "")
		if f[0] != "key" {
			rows[f[0]] = f
		}
	}
	return rows
}

func TestKeysAreKafkas(t *testing.T) {
	own := setOf("weir.http.listener")
	for _, s := range dynamicOnlyKeys {
		own[s.name] = true
	}
	compare := func(rows map[string][]string, keys []*Key) {
		t.Helper()
		seen := map[string]bool{}
		for _, k := range keys {
			row, ok := rows[k.Name]
			if !ok {
				if !own[k.Name] {
					t.Errorf("%s is no key of Kafka's", k.Name)
				}
				continue
			}
			seen[k.Name] = true
			def := k.Default
			switch {
			case k.DiffersBecause != "":
				def = k.KafkaDefault
				if row[2] == "(required)" {
					def = row[2]
				}
			case k.Null:
				def = "null"
			}
			got := []string{k.Name, k.Type.String(), def, k.Allowed, k.Importance.String()}
			if !k.Topic && !needsRestart[k.Name] {
				got = append(got, k.Scope.String())
			}
			if want := row[:len(got)]; strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		}
		for name := range rows {
			if !seen[name] {
				t.Errorf("%s is missing", name)
			}
		}
	}
	compare(readTable(t, "testdata/broker-config.tsv"), brokerKeys)
	compare(readTable(t, "testdata/topic-config.tsv"), topicKeys)
}

func TestKeyLines(t *testing.T) {
	for _, k := range allKeys {
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") || strings.Contains(k.Doc, "\n") || len(k.Doc) > 160 {
			t.Errorf("%s: not a sentence of one line: %q", k.Name, k.Doc)
		}
		if (k.Status == Effective) != (k.Why == "") {
			t.Errorf("%s is %s and says why: %q", k.Name, k.Status, k.Why)
		}
		if strings.HasSuffix(k.Name, ".ms") && k.Unit != "ms" || strings.HasSuffix(k.Name, ".bytes") && k.Unit != "bytes" {
			t.Errorf("%s has unit %q", k.Name, k.Unit)
		}
		if v := k.def; v.null != k.Null {
			t.Errorf("%s: the default does not parse as it should", k.Name)
		}
		for _, s := range k.Synonyms {
			if brokerIndex[s] == nil {
				t.Errorf("%s: synonym %s is no broker key", k.Name, s)
			}
		}
		if found, ok := Lookup(k.Name); !ok || found.Topic && !k.Topic {
			t.Errorf("Lookup(%s) fails", k.Name)
		}
	}
	for _, k := range topicKeys {
		if topicFields[k.Name] == nil {
			t.Errorf("%s has no place in TopicConfig", k.Name)
		}
	}
	for name := range checks {
		if _, ok := Lookup(name); !ok {
			t.Errorf("there is a check for %s, which is no key", name)
		}
	}
	for name := range internalKeys {
		if _, ok := Lookup(name); !ok {
			t.Errorf("%s is internal and no key", name)
		}
	}
}

// The keys a single node must honour; a change of status here is a change of
// what users rely on.
func TestEffectiveKeys(t *testing.T) {
	for _, name := range strings.Fields(`listeners advertised.listeners listener.security.protocol.map log.dirs log.dir
		log.retention.ms log.retention.minutes log.retention.hours log.retention.bytes log.roll.ms log.roll.hours
		log.roll.jitter.ms log.roll.jitter.hours log.segment.bytes log.flush.interval.messages log.flush.interval.ms
		log.flush.scheduler.interval.ms log.flush.offset.checkpoint.interval.ms log.index.interval.bytes log.index.size.max.bytes
		log.preallocate log.message.timestamp.type log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms
		message.max.bytes compression.type compression.gzip.level compression.lz4.level compression.zstd.level
		num.partitions default.replication.factor min.insync.replicas auto.create.topics.enable delete.topic.enable
		offsets.topic.num.partitions offsets.retention.minutes offset.metadata.max.bytes offsets.retention.check.interval.ms
		group.min.session.timeout.ms group.max.session.timeout.ms group.max.size group.initial.rebalance.delay.ms
		socket.request.max.bytes socket.send.buffer.bytes socket.receive.buffer.bytes socket.listen.backlog.size
		max.connections max.connections.per.ip max.connections.per.ip.overrides max.connection.creation.rate connections.max.idle.ms
		queued.max.requests queued.max.request.bytes fetch.max.bytes max.incremental.fetch.session.cache.slots
		producer.id.expiration.ms producer.id.expiration.check.interval.ms log.retention.check.interval.ms
		log.segment.delete.delay.ms num.recovery.threads.per.data.dir weir.http.listener`) {
		if k, ok := Lookup(name); !ok || k.Status != Effective {
			t.Errorf("%s must be effective", name)
		}
	}
	for _, name := range strings.Fields(`num.io.threads num.network.threads background.threads`) {
		if k, _ := Lookup(name); k.Status != NoEffect {
			t.Errorf("%s must be without effect", name)
		}
	}
}

func TestNearest(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := Nearest(name); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	f("num.partition", "num.partitions")
	f("NUM.PARTITIONS", "num.partitions")
	f("replica.fetch.max.wait.ms", "replica.fetch.wait.max.ms") // a guide has it so
	f("log.retention.mss", "log.retention.ms")
	f("max.message.byte", "max.message.bytes")
	f("completely.different.thing", "")
	f("", "")
}
