package partition

import (
	"math"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
)

// Settings are a topic's settings as the storage rooms see them: plain values,
// resolved once for each change of the configuration.
type Settings struct {
	Log           commitlog.Options
	Rules         batch.Rules // NowMs is filled in for each append
	MinISR        int
	FlushMessages int64 // fdatasync before acknowledging once this many records wait; MaxInt64: never
	FlushMs       int64 // fdatasync at most this long after an append; MaxInt64: never
}

// FlushesByCount says whether acknowledgements may wait for an fdatasync.
func (s *Settings) FlushesByCount() bool { return s.FlushMessages < math.MaxInt64 }

func (s *Settings) flushesByTime() bool { return s.FlushMs < math.MaxInt64 }
