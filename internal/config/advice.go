package config

import (
	"fmt"
	"math"
	"strings"
)

// advice names settings that are valid and probably do not do what they were
// written for.
func (s *Static) advice() (warnings []Warning) {
	say := func(key, format string, args ...any) {
		warnings = append(warnings, Warning{Advice, key, s.wheres[key], fmt.Sprintf(format, args...)})
	}
	weaker := func(strong string, weak ...string) {
		for _, w := range weak {
			if s.IsSet(strong) && s.IsSet(w) {
				say(w, "%s does not count, because %s is set.", w, strong)
			}
		}
	}
	weaker("log.retention.ms", "log.retention.minutes", "log.retention.hours")
	if !s.IsSet("log.retention.ms") {
		weaker("log.retention.minutes", "log.retention.hours")
	}
	weaker("log.roll.ms", "log.roll.hours")
	weaker("log.roll.jitter.ms", "log.roll.jitter.hours")
	weaker("log.dirs", "log.dir")
	if ms := s.Long("log.flush.interval.ms"); s.IsSet("log.flush.interval.ms") && ms < math.MaxInt64 {
		kafka := ""
		if s.Long("log.flush.scheduler.interval.ms") == math.MaxInt64 {
			kafka = " Kafka would not, without log.flush.scheduler.interval.ms."
		}
		say("log.flush.interval.ms", "log.flush.interval.ms=%d syncs every partition that is written to that often, in the background.%s", ms, kafka)
	}
	if n := s.Long("log.flush.interval.messages"); n < math.MaxInt64 {
		say("log.flush.interval.messages", "log.flush.interval.messages=%d makes appending wait for the disk every %d records of a partition; leave it out for throughput.", n, n)
	}
	if c := s.Str("compression.type"); c != "producer" {
		say("compression.type", "compression.type=%s makes the broker unpack and pack again every batch that came with another codec; producer stores what was sent.", c)
	}
	for _, key := range []string{"socket.send.buffer.bytes", "socket.receive.buffer.bytes"} {
		if s.IsSet(key) && s.Int(key) != -1 {
			say(key, "%s=%d keeps the system from adapting the buffer to the connection; -1 lets it.", key, s.Int(key))
		}
	}
	if s.Int("message.max.bytes") > s.Int("socket.request.max.bytes") {
		say("message.max.bytes", "message.max.bytes is above socket.request.max.bytes (%d), so batches that large never arrive.", s.Int("socket.request.max.bytes"))
	}
	if s.Int("replica.fetch.max.bytes") > s.Int("replica.fetch.response.max.bytes") && s.IsSet("replica.fetch.max.bytes") {
		say("replica.fetch.max.bytes", "replica.fetch.max.bytes does not count beyond replica.fetch.response.max.bytes (%d).", s.Int("replica.fetch.response.max.bytes"))
	}
	if s.Int("min.insync.replicas") > s.Int("default.replication.factor") && s.IsSet("min.insync.replicas") {
		say("min.insync.replicas", "min.insync.replicas=%d is above default.replication.factor=%d; a topic needs no more in-sync replicas than it has.", s.Int("min.insync.replicas"), s.Int("default.replication.factor"))
	}
	if n := s.Int("default.replication.factor"); n > 1 {
		say("default.replication.factor", "default.replication.factor=%d cannot be met by one node: a topic that is created without a number of replicas is refused, and so is every topic created by itself.", n)
	}
	if r := s.Long("log.retention.bytes"); r >= 0 && r < s.Long("log.segment.bytes") {
		say("log.retention.bytes", "log.retention.bytes=%d is below log.segment.bytes=%d; only closed segments are deleted, so a partition keeps up to a segment more.", r, s.Long("log.segment.bytes"))
	}
	for _, dir := range s.LogDirs() {
		if dir == "/tmp" || strings.HasPrefix(dir, "/tmp/") {
			say("log.dirs", "%s is in /tmp, which many systems empty at a start.", dir)
		}
	}
	for _, a := range s.advert {
		for _, l := range s.listeners {
			if l.Name == a.Name && !loopback(l.Host) && loopback(a.Host) {
				say("advertised.listeners", "%s listens beyond this machine but clients are told %s, which is their own machine; set advertised.listeners to a name they can reach.", l.Name, a.Address())
			}
		}
	}
	return warnings
}

func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
