package tools

import (
	"regexp"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// refusals knows why the broker last refused each partition. The client tries
// again what may succeed later, and in the end says only that time is over; its
// log alone has the answers. It is the client's logger and passes on what it
// gets. If a later client writes other lines, the reason is missing and nothing
// else.
type refusals struct {
	next kgo.Logger // nil: none

	mu   sync.Mutex
	last map[int32]error
}

func (r *refusals) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// What the client logs of one answer, by partition:
// t[0{retrying@-1,1(KAFKA_STORAGE_ERROR: …)}, 1{5=>6}].
var producedTo = regexp.MustCompile(`(\d+)\{(?:retrying@[-\d,]*\(([A-Z_]+))?`)

// Log is called by the client, for produce once an answer.
func (r *refusals) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if msg == "produced" {
		for i := 0; i+1 < len(keyvals); i += 2 {
			if to, ok := keyvals[i+1].(string); ok && keyvals[i] == "to" {
				r.produced(to)
			}
		}
	}
	if r.next != nil {
		r.next.Log(level, msg, keyvals...)
	}
}

func (r *refusals) produced(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range producedTo.FindAllStringSubmatch(to, -1) {
		n, err := strconv.ParseInt(m[1], 10, 32)
		if err != nil {
			continue
		}
		delete(r.last, int32(n))
		if why := errorNamed(m[2]); why != nil {
			if r.last == nil {
				r.last = map[int32]error{}
			}
			r.last[int32(n)] = why
		}
	}
}

// of is why records of the partition are refused, or nil.
func (r *refusals) of(partition int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[partition]
}

// any is why some partition's records are refused, or nil.
func (r *refusals) any() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, why := range r.last {
		return why
	}
	return nil
}

// errorNamed is the protocol's error of that name, or nil.
func errorNamed(name string) error {
	for code := int16(-1); code < 256; code++ {
		if ke, ok := kerr.ErrorForCode(code).(*kerr.Error); ok && ke.Message == name && ke != kerr.UnknownServerError {
			return ke
		}
	}
	return nil
}
