package kafkatools

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// splitList cuts a comma-separated list; empty parts are left out.
func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// joined is numbers with commas.
func joined(ids []int32, sep string) string {
	var b []byte
	for i, id := range ids {
		if i > 0 {
			b = append(b, sep...)
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}

// javaHash is Java's String.hashCode.
func javaHash(s string) uint32 {
	var h uint32
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			h = 31*h + uint32(0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + uint32(r)
	}
	return h
}

// hashOrder puts names in the order in which a HashMap that got them one by one
// gives them back: what Java's tools print of a map comes in that order.
func hashOrder(names []string) []string {
	size := 16
	for len(names) > size*3/4 {
		size *= 2
	}
	bucket := func(s string) int {
		h := javaHash(s)
		return int((h ^ h>>16) & uint32(size-1))
	}
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int { return bucket(a) - bucket(b) })
	return out
}

// includeList is a filter of names as Kafka's tools take it: a regular expression
// that matches the whole name, with commas for "or".
func includeList(raw string) (*regexp.Regexp, error) {
	s := strings.ReplaceAll(strings.TrimSpace(raw), ",", "|")
	s = strings.ReplaceAll(s, " ", "")
	s = strings.Trim(s, `"'`)
	re, err := regexp.Compile(`^(?:` + s + `)$`)
	if err != nil {
		return nil, &javaError{class: "java.lang.RuntimeException", message: s + " is an invalid regex."}
	}
	return re, nil
}

// internal are the topics that Kafka keeps for itself.
func internal(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state" || topic == "__share_group_state"
}

// uuid is a topic id as Kafka prints it.
func uuid(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// parseUUID reads what uuid prints.
func parseUUID(s string) (id [16]byte, err error) {
	if len(s) > 24 {
		return id, illegalArgument("Input string with prefix `%s` is too long to be decoded as a base64 UUID", s[:24])
	}
	b, derr := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	if derr != nil && len(b) == 0 {
		return id, illegalArgument("Illegal base64 character in `%s`", s)
	}
	if len(b) != 16 {
		return id, illegalArgument("Input string `%s` decoded as %d bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID", s, len(b))
	}
	return [16]byte(b), nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return itoa(d.Milliseconds()) }
