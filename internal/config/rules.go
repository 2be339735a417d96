package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// checks are the rules of single values that a range cannot say. They return why
// a value is refused, or "".
var checks = map[string]func(v value) string{
	"internal.segment.bytes": func(v value) string {
		if v.n < 1 {
			return "must be at least 1"
		}
		return ""
	},
	"log.retention.ms":                        unlimitedOrPositive,
	"log.retention.minutes":                   unlimitedOrPositive,
	"log.retention.hours":                     unlimitedOrPositive,
	"follower.replication.throttled.replicas": throttledReplicas,
	"leader.replication.throttled.replicas":   throttledReplicas,
	"max.connections.per.ip.overrides": func(v value) string {
		_, err := parseOverrides(v.raw)
		return reason(err)
	},
	"socket.receive.buffer.bytes": unlimitedOrPositive,
	"socket.send.buffer.bytes":    unlimitedOrPositive,
	"queued.max.request.bytes":    unlimitedOrPositive,
	"offsets.topic.compression.codec": func(v value) string {
		if v.n < 0 || v.n > 4 {
			return "must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
		}
		return ""
	},
	"listener.security.protocol.map": func(v value) string {
		_, err := parseSecurityMap(v.raw)
		return reason(err)
	},
	"weir.http.listener": func(v value) string {
		if v.raw == "" {
			return ""
		}
		_, _, err := ParseHostPort(v.raw, DefaultPort+100)
		return reason(err)
	},
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Kafka refuses 0 at a start; a negative number means without limit.
func unlimitedOrPositive(v value) string {
	if v.n == 0 {
		return "must be at least 1, or -1 for without limit"
	}
	return ""
}

var throttled = regexp.MustCompile(`^[0-9]+:[0-9]+$`)

func throttledReplicas(v value) string {
	if len(v.list) > 0 && strings.TrimSpace(v.list[0]) == "*" {
		return ""
	}
	for _, r := range v.list {
		if !throttled.MatchString(r) {
			return fmt.Sprintf("%q is not partition:broker, and not *", r)
		}
	}
	return ""
}

// parseOverrides reads host:count,host:count.
func parseOverrides(s string) (map[string]int, error) {
	m := map[string]int{}
	for _, pair := range SplitList(s) {
		i := strings.LastIndexByte(pair, ':')
		if i <= 0 {
			return nil, fmt.Errorf("%q is not host:count", pair)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(pair[i+1:]), 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not host:count with a count of at least 0", pair)
		}
		m[strings.Trim(strings.TrimSpace(pair[:i]), "[]")] = int(n)
	}
	return m, nil
}

// MaxConnectionsPerIP is max.connections.per.ip.overrides taken apart: hosts or
// addresses (IPv6 without brackets) and their bounds.
func (v *View) MaxConnectionsPerIP() map[string]int {
	m, _ := parseOverrides(v.Str("max.connections.per.ip.overrides"))
	return m
}
