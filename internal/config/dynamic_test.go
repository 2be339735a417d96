package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

// Changes while running: what is let in and with which code it is refused, as a
// running Kafka 4.4 answered; and the layers of a View.

func TestValidateTopic(t *testing.T) {
	f := func(key, val, want string) {
		t.Helper()
		err := ValidateTopic(key, &val)
		if want == "" {
			if err != nil {
				t.Errorf("%s=%s: %v", key, val, err)
			}
			return
		}
		var r *Refusal
		if !errors.As(err, &r) || r.Code != kafka.ErrInvalidConfig || !strings.HasPrefix(r.Message, want) {
			t.Errorf("%s=%s: got %v, want %s", key, val, err, want)
		}
	}
	f("retention.ms", "-1", "")
	f("retention.ms", " 77777 ", "")
	f("retention.ms", "0", "")
	f("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: must be at least -1")
	f("retention.ms", "abc", "Invalid value abc for configuration retention.ms: must be a whole number of type long")
	f("retention.ms", "", "Invalid value  for configuration retention.ms")
	f("nokey", "1", "Unknown topic config name: nokey")
	f("retention.sm", "1", "Unknown topic config name: retention.sm; the nearest is retention.ms")
	f("log.retention.ms", "1", "Unknown topic config name")
	f("cleanup.policy", "foo", "Invalid value foo")
	f("cleanup.policy", "", "")
	f("cleanup.policy", "delete,delete", "")
	f("segment.bytes", "10", "Invalid value 10")
	f("compression.type", "x", "Invalid value x")
	f("compression.gzip.level", "0", "Invalid value 0")
	f("compression.gzip.level", "-1", "")
	f("preallocate", "yes", "Invalid value yes")
	f("preallocate", "TRUE", "")
	f("min.cleanable.dirty.ratio", "2", "Invalid value 2.0")
	f("leader.replication.throttled.replicas", "x", "Invalid value x")
	f("leader.replication.throttled.replicas", "0:1,1:2", "")
	f("leader.replication.throttled.replicas", "*", "")
	f("message.timestamp.type", "createTime", "Invalid value createTime")
	f("min.insync.replicas", "0", "Invalid value 0")
	f("max.message.bytes", "99999999999", "Invalid value 99999999999")
	f("internal.segment.bytes", "100", "")
	if err := ValidateTopic("retention.ms", nil); err != nil {
		t.Error(err)
	}
	if err := ValidateTopic("nokey", nil); err == nil {
		t.Error("an unknown key may be removed")
	}

	s, _ := load(t, Source{})
	all := func(want string, overrides map[string]string) {
		t.Helper()
		err := ValidateTopicAll(s.View(), overrides)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", overrides, err, want)
		}
	}
	all("", map[string]string{"retention.ms": "5"})
	all("must be at least", map[string]string{"retention.ms": "-5"})
	all("min.compaction.lag.ms (6) > max.compaction.lag.ms (5)", map[string]string{"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})
	all("tiered storage is not there yet", map[string]string{"remote.storage.enable": "true"})
}

func TestValidateBrokerDynamic(t *testing.T) {
	f := func(perBroker bool, key, val, want string) {
		t.Helper()
		err := ValidateBrokerDynamic(key, &val, perBroker)
		if want == "" {
			if err != nil {
				t.Errorf("%s=%s: %v", key, val, err)
			}
			return
		}
		var r *Refusal
		if !errors.As(err, &r) || r.Code != kafka.ErrInvalidRequest || !strings.HasPrefix(r.Message, want) {
			t.Errorf("%s=%s: got %v, want %s", key, val, err, want)
		}
	}
	f(false, "log.retention.ms", "777", "")
	f(true, "log.retention.ms", "777", "")
	f(true, "num.partitions", "3", "Cannot update these configs dynamically: [num.partitions]")
	f(false, "num.partitions", "3", "Cannot update these configs dynamically: [num.partitions]")
	f(true, "advertised.listeners", "PLAINTEXT://a:1", "Cannot update these configs dynamically: [advertised.listeners]")
	f(true, "listeners", "PLAINTEXT://a:1", "Cannot update these configs dynamically: [listeners]") // Kafka can
	f(false, "sasl.jaas.config", "x", "Cannot update these configs at default cluster level, broker id must be specified: [sasl.jaas.config]")
	f(true, "ssl.keystore.location", "/x", "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]")
	f(true, "listener.name.plaintext.ssl.keystore.location", "/x", "")
	f(true, "listener.name.plaintext.max.connections", "100", "")
	f(false, "listener.name.plaintext.max.connections", "100", "")
	f(false, "max.connections", "-1", "Invalid value -1 for configuration max.connections: must be at least 0")
	f(false, "max.connections", "x", "Invalid value x for configuration max.connections")
	f(false, "foo", "3", "Unknown broker config name: foo") // Kafka takes it
	f(false, "log.retentoin.ms", "3", "Unknown broker config name: log.retentoin.ms; the nearest is log.retention.ms")
	f(false, "max.connections.per.ip.overrides", "x", "Invalid value x")
	f(false, "max.connections.per.ip.overrides", "127.0.0.1:3,[::1]:4", "")
	f(false, "leader.replication.throttled.rate", "1000", "")
	f(false, "retention.ms", "1", "Unknown broker config name: retention.ms")
	if err := ValidateBrokerDynamic("log.retention.ms", nil, false); err != nil {
		t.Error(err)
	}
	if err := ValidateBrokerDynamic("num.partitions", nil, false); err == nil {
		t.Error("a read-only key may be removed")
	}
}

func TestView(t *testing.T) {
	s, _ := load(t, Source{File: []byte("max.connections=5\nlog.retention.hours=2\nlistener.name.plaintext.max.connections=4\nmax.connections.per.ip.overrides=a:1,[::1]:2")})
	v := s.With(map[string]string{"max.connections": "6", "log.retention.ms": "9", "message.max.bytes": "10", "num.partitions": "50", "log.segment.bytes": "1"},
		map[string]string{"max.connections": "7"})
	if v.Int("max.connections") != 7 || v.Topic(nil).RetentionMs != 9 || v.Topic(nil).MaxMessageBytes != 10 {
		t.Errorf("got %d %+v", v.Int("max.connections"), v.Topic(nil))
	}
	if v.Int("num.partitions") != 1 || v.Long("log.segment.bytes") != 1<<30 {
		t.Error("a read-only key or a bad value was let in")
	}
	if s.Int("max.connections") != 5 || s.View().Topic(nil).RetentionMs != 2*hourMs {
		t.Error("the static configuration changed")
	}
	if got := v.ForListener("PLAINTEXT", "max.connections"); got != "4" {
		t.Errorf("for the listener: %s", got)
	}
	if got := v.ForListener("OTHER", "max.connections"); got != "7" {
		t.Errorf("for another listener: %s", got)
	}
	if m := v.MaxConnectionsPerIP(); m["a"] != 1 || m["::1"] != 2 || len(m) != 2 {
		t.Errorf("got %v", m)
	}
	if !v.Null("log.retention.minutes") || v.Null("log.retention.ms") {
		t.Error("Null")
	}
	for _, misuse := range []func(){func() { v.Int("no.such") }, func() { v.Int("listeners") }, func() { v.Str("num.partitions") }} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(r.(string), "BUG:") {
					t.Errorf("misuse of a getter: %v", r)
				}
			}()
			misuse()
		}()
	}
}

func BenchmarkViewInt(b *testing.B) {
	s, _, _ := Load(Source{})
	v := s.View()
	for b.Loop() {
		v.Int("fetch.max.bytes")
	}
}

func BenchmarkTopicWithOverride(b *testing.B) {
	s, _, _ := Load(Source{})
	v := s.View()
	overrides := map[string]string{"retention.ms": "5"}
	for b.Loop() {
		v.Topic(overrides)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		Load(Source{})
	}
}

// TestKeysPerThread: as Kafka 4.4 answers, the memory for keys is above 1 MiB for each
// cleaner thread, whichever of the two keys changes, in the file and while running.
func TestKeysPerThread(t *testing.T) {
	load := func(file string) (*Static, error) {
		s, _, err := Load(Source{File: []byte(file), FileName: "f", DataDir: t.TempDir(), Hostname: "h"})
		return s, err
	}
	if _, err := load("log.cleaner.dedupe.buffer.size=2097153\nlog.cleaner.threads=2\n"); err == nil || !strings.Contains(err.Error(), "log.cleaner.dedupe.buffer.size") {
		t.Errorf("in the file: %v", err)
	}
	s, err := load("log.cleaner.dedupe.buffer.size=2097154\nlog.cleaner.threads=1\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, perBroker := range []bool{false, true} {
		for _, tc := range []struct {
			cluster, set map[string]string
			ok           bool
		}{
			{nil, map[string]string{"log.cleaner.dedupe.buffer.size": "1000"}, false},
			{nil, map[string]string{"log.cleaner.dedupe.buffer.size": "1048576"}, false},
			{nil, map[string]string{"log.cleaner.dedupe.buffer.size": "1048577"}, true},
			{nil, map[string]string{"log.cleaner.threads": "2"}, true},
			{nil, map[string]string{"log.cleaner.threads": "3"}, false},
			{nil, map[string]string{"log.cleaner.threads": "3", "log.cleaner.dedupe.buffer.size": "10000000"}, true},
			{nil, map[string]string{"log.cleaner.threads": "0", "log.cleaner.dedupe.buffer.size": "1"}, true},
			{map[string]string{"log.cleaner.dedupe.buffer.size": "1048577"}, map[string]string{"log.cleaner.threads": "2"}, !perBroker},
			{map[string]string{"log.cleaner.dedupe.buffer.size": "5"}, map[string]string{"num.io.threads": "2", "log.cleaner.dedupe.buffer.size": "5"}, true}, // was so
		} {
			err := s.With(tc.cluster, nil).ValidateBrokerAll(tc.set, perBroker)
			var r *Refusal
			if tc.ok && err != nil || !tc.ok && (!errors.As(err, &r) || r.Code != kafka.ErrInvalidRequest || !strings.Contains(r.Message, "log.cleaner.dedupe.buffer.size")) {
				t.Errorf("per broker %v, %v over %v: %v", perBroker, tc.set, tc.cluster, err)
			}
		}
	}
}
