package lab

import (
	"maps"
	"regexp"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Wire is what went over the wire, as the client saw it.
type Wire struct {
	Batches      int64            `json:"batches"`
	Records      int64            `json:"records"`
	Plain        int64            `json:"plain_bytes"`  // of records before compression
	Packed       int64            `json:"packed_bytes"` // after it
	Retries      map[string]int64 `json:"retries,omitempty"`
	ThrottledMs  int64            `json:"throttled_ms"` // asked for by the brokers' quotas
	RecordsBatch float64          `json:"records_per_batch"`
}

// Observer counts what the clients of a run do. It is a hook and a logger of any
// number of clients: the client tells of a batch that is tried again nowhere but
// in its log.
type Observer struct {
	Next kgo.Logger // gets what the clients log; nil: nobody

	mu sync.Mutex
	w  Wire
}

// Options are for kgo.NewClient.
func (o *Observer) Options() []kgo.Opt { return []kgo.Opt{kgo.WithHooks(o), kgo.WithLogger(o)} }

// Wire is what was seen so far.
func (o *Observer) Wire() Wire {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.w
	w.Retries = maps.Clone(o.w.Retries)
	if w.Batches > 0 {
		w.RecordsBatch = float64(w.Records) / float64(w.Batches)
	}
	return w
}

// OnProduceBatchWritten is the client's hook.
func (o *Observer) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.ProduceBatchMetrics) {
	o.mu.Lock()
	o.w.Batches++
	o.w.Records += int64(m.NumRecords)
	o.w.Plain += int64(m.UncompressedBytes)
	o.w.Packed += int64(m.CompressedBytes)
	o.mu.Unlock()
}

// OnBrokerThrottle is the client's hook.
func (o *Observer) OnBrokerThrottle(_ kgo.BrokerMetadata, d time.Duration, _ bool) {
	o.mu.Lock()
	o.w.ThrottledMs += d.Milliseconds()
	o.mu.Unlock()
}

// Level is the client's question how much to log.
func (o *Observer) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// What the client logs of one produce answer:
// t[0{retrying@-1,1(KAFKA_STORAGE_ERROR: …)}, 1{5=>6}].
var retried = regexp.MustCompile(`\{retrying@[-\d,]*\(([A-Z_]+)`)

// Log is called by the client. If a later client writes other lines, retries are
// missing and nothing else.
func (o *Observer) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if msg == "produced" {
		for i := 0; i+1 < len(keyvals); i += 2 {
			to, ok := keyvals[i+1].(string)
			if !ok || keyvals[i] != "to" {
				continue
			}
			for _, m := range retried.FindAllStringSubmatch(to, -1) {
				o.mu.Lock()
				if o.w.Retries == nil {
					o.w.Retries = map[string]int64{}
				}
				o.w.Retries[m[1]]++
				o.mu.Unlock()
			}
		}
	}
	if o.Next != nil && o.Next.Level() >= level {
		o.Next.Log(level, msg, keyvals...)
	}
}
