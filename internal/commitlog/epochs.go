package commitlog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weirmq/weir/internal/kafka"
)

// epochStart: the first offset of a leader epoch.
type epochStart struct {
	epoch kafka.Epoch
	start kafka.Offset
}

// epochs is the chain of leader epochs (Kafka's LeaderEpochFileCache, KIP-101).
// The file is written when a flush or a roll needs it, not per change: until then
// the batches themselves say the same.
type epochs struct {
	mu    sync.RWMutex
	chain []epochStart // epochs and starts ascend strictly
	dirty bool         // the file does not begin with chain[:filed], or says more
	filed int          // entries of chain in the file; the others came behind it
}

func (es *epochs) last() kafka.Epoch {
	es.mu.RLock()
	defer es.mu.RUnlock()
	if len(es.chain) == 0 {
		return kafka.NoEpoch
	}
	return es.chain[len(es.chain)-1].epoch
}

// assign notes that epoch begins at start, unless it has begun already. Entries
// that contradict it go: what stands at or after start is of an epoch that never
// got a record here.
func (es *epochs) assign(epoch kafka.Epoch, start kafka.Offset) {
	es.mu.Lock()
	defer es.mu.Unlock()
	n := len(es.chain)
	if n > 0 && epoch <= es.chain[n-1].epoch {
		return
	}
	for n > 0 && es.chain[n-1].start >= start {
		n--
	}
	es.dirty = es.dirty || n < es.filed
	es.chain = append(es.chain[:n:n], epochStart{epoch, start})
}

// truncateEnd forgets epochs that begin at or above off.
func (es *epochs) truncateEnd(off kafka.Offset) {
	es.mu.Lock()
	defer es.mu.Unlock()
	n := len(es.chain)
	for n > 0 && es.chain[n-1].start >= off {
		n--
	}
	es.dirty = es.dirty || n < es.filed
	es.chain = es.chain[:n:n]
}

// dropEmpty forgets epochs without a record, at the log's end. The file may go on
// naming them: whoever reads it does the same.
func (es *epochs) dropEmpty(end kafka.Offset) {
	es.mu.Lock()
	defer es.mu.Unlock()
	for n := len(es.chain); n > 0 && es.chain[n-1].start >= end; n-- {
		es.chain = es.chain[: n-1 : n-1]
	}
	es.filed = min(es.filed, len(es.chain))
}

// truncateStart forgets epochs that ended below off; the one that holds off then
// begins there.
func (es *epochs) truncateStart(off kafka.Offset) {
	es.mu.Lock()
	defer es.mu.Unlock()
	n := 0
	for n+1 < len(es.chain) && es.chain[n+1].start <= off {
		n++
	}
	if len(es.chain) == 0 || es.chain[n].start >= off {
		return
	}
	es.chain = slices.Clone(es.chain[n:])
	es.chain[0].start = off
	es.dirty = true
}

func (es *epochs) set(chain []epochStart, dirty bool) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.chain, es.dirty, es.filed = chain, dirty, len(chain)
}

// endOf answers OffsetsForLeaderEpoch: the largest epoch at or below e that is
// known, and where it ends (LeaderEpochFileCache.endOffsetFor).
func (es *epochs) endOf(e kafka.Epoch, end kafka.Offset) (kafka.Epoch, kafka.Offset) {
	es.mu.RLock()
	defer es.mu.RUnlock()
	n := len(es.chain)
	if e == kafka.NoEpoch || n == 0 || e > es.chain[n-1].epoch {
		return kafka.NoEpoch, kafka.NoOffset
	}
	if e == es.chain[n-1].epoch {
		return e, end
	}
	i, _ := slices.BinarySearchFunc(es.chain, e+1, func(s epochStart, e kafka.Epoch) int { return int(s.epoch) - int(e) })
	if i == 0 {
		return e, es.chain[0].start
	}
	return es.chain[i-1].epoch, es.chain[i].start
}

// at is the epoch of the batch at off.
func (es *epochs) at(off kafka.Offset) kafka.Epoch {
	es.mu.RLock()
	defer es.mu.RUnlock()
	for i := len(es.chain) - 1; i >= 0; i-- {
		if es.chain[i].start <= off {
			return es.chain[i].epoch
		}
	}
	return kafka.NoEpoch
}

// encodeEpochs writes the file: version 0, count, then "epoch start" lines.
func encodeEpochs(chain []epochStart) []byte {
	b := fmt.Appendf(nil, "0\n%d\n", len(chain))
	for _, e := range chain {
		b = fmt.Appendf(b, "%d %d\n", e.epoch, e.start)
	}
	return b
}

func parseEpochs(b []byte) ([]epochStart, error) {
	lines, err := checkpointLines(b)
	if err != nil {
		return nil, err
	}
	chain := make([]epochStart, 0, len(lines))
	prev := epochStart{-1, -1}
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("line %q: want epoch and offset", line)
		}
		epoch, err1 := strconv.ParseInt(f[0], 10, 32)
		start, err2 := strconv.ParseInt(f[1], 10, 64)
		e := epochStart{kafka.Epoch(epoch), kafka.Offset(start)}
		if err1 != nil || err2 != nil || e.epoch <= prev.epoch || e.start < prev.start || e.start < 0 {
			return nil, fmt.Errorf("line %q: not a later epoch", line)
		}
		if len(chain) > 0 && e.start == prev.start {
			chain = chain[:len(chain)-1] // the earlier one has no record
		}
		chain = append(chain, e)
		prev = e
	}
	return chain, nil
}

// checkpointLines takes the frame of Kafka's checkpoint files off: version 0, the
// count, that many lines.
func checkpointLines(b []byte) ([]string, error) {
	if !bytes.HasSuffix(b, []byte("\n")) {
		return nil, fmt.Errorf("checkpoint of %d bytes does not end with a line", len(b))
	}
	lines := strings.Split(string(b[:len(b)-1]), "\n")
	if len(lines) < 2 || strings.TrimSpace(lines[0]) != "0" {
		return nil, fmt.Errorf("checkpoint version %q, want 0", lines[0])
	}
	n, err := strconv.Atoi(strings.TrimSpace(lines[1]))
	if err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("checkpoint says %q entries and has %d", lines[1], len(lines)-2)
	}
	return lines[2:], nil
}
