package commitlog

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// group splits the segments below the end of the key map so that each group fits
// into one segment.
func (c *Cleaning) group() {
	o := c.l.options()
	segs := c.l.segments()
	var g *cleanGroup
	var bytes, indexed int64
	for i, s := range segs[:len(segs)-1] {
		if s.base >= c.end {
			break
		}
		size := s.sizeNow()
		s.mu.RLock()
		n := int64(max(s.ix.offsetCount()*offsetEntryBytes, s.ix.timeCount()*timeEntryBytes))
		s.mu.RUnlock()
		if g == nil || bytes+size > o.SegmentBytes || indexed+n > int64(o.IndexMaxBytes) || segs[i+1].base-g.old[0].base > math.MaxInt32 {
			g = &cleanGroup{ix: newIndex(), max: noTime}
			c.groups = append(c.groups, g)
			bytes, indexed = 0, 0
		}
		g.old = append(g.old, s)
		g.next = segs[i+1].base
		bytes, indexed = bytes+size, indexed+n
		c.stats.SegmentsBefore++
		c.stats.BytesBefore += size
	}
	c.stats.After = len(c.groups)
}

// cleanGroup writes what remains of a group to .cleaned files, durably.
func (c *Cleaning) cleanGroup(g *cleanGroup, txns *cleanTxns) error {
	l, base := c.l, g.old[0].base
	var err error
	if g.file, err = l.fs.Create(l.path(base, logExt+cleanedExt)); err != nil {
		return err
	}
	for _, s := range g.old {
		if err := c.walkWhole(s, s.base, func(v batch.View, _ int64) error { return c.cleanBatch(g, v, txns) }); err != nil {
			return err
		}
	}
	if err := c.write(g); err != nil {
		return err
	}
	if err := c.sync(g.file); err != nil {
		return err
	}
	g.ix.addTime(g.max)
	var b []byte
	for _, t := range txns.kept {
		b = encodeTxn(b, t)
	}
	g.txns, txns.kept = txns.kept, nil
	contents := [][]byte{encodeOffsets(nil, base, g.ix.offsets), encodeTimes(nil, base, g.ix.times), b}
	for i, ext := range []string{indexExt, timeExt, txnExt} {
		data := contents[i]
		if len(data) == 0 && ext == txnExt {
			continue
		}
		f, err := l.fs.Create(l.path(base, ext+cleanedExt))
		if err != nil {
			return err
		}
		if err = c.pace(len(data)); err == nil {
			_, err = f.WriteAt(data, 0)
		}
		if err == nil {
			err = c.sync(f)
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	c.stats.BytesAfter += g.size
	return nil
}

// cleanBatch decides what remains of a batch (Kafka's Cleaner.cleanInto).
func (c *Cleaning) cleanBatch(g *cleanGroup, v batch.View, txns *cleanTxns) error {
	c.stats.RecordsBefore += int64(v.Count())
	horizon, hasHorizon := v.DeleteHorizon()
	expired := hasHorizon && horizon <= c.nowMs
	var discard, startHorizon, emptyMarker bool
	if v.Control() {
		empty, err := txns.marker(v)
		if err != nil {
			return err
		}
		discard, startHorizon, emptyMarker = empty && expired, empty && !hasHorizon, empty && v.LastOffset() < c.end
	} else {
		discard = txns.data(v)
	}
	// The last batch of a live producer stays although empty: its sequence, or its
	// epoch, is nowhere else.
	live := false
	if last, ok := c.active[v.ProducerID()]; ok && v.HasProducer() {
		if last.offset != kafka.NoOffset {
			live = v.LastOffset() == last.offset
		} else {
			live = v.Control() && v.ProducerEpoch() == last.epoch
		}
	}
	if discard && !live {
		return nil
	}
	c.keep = c.keep[:0]
	kept := 0
	waits := false // something in the batch goes once its horizon is reached
	if err := v.Each(func(r *batch.Record) error {
		keep := !discard && (v.Control() || c.keepRecord(v, r, expired))
		if keep {
			kept++
			tombstone := !v.Control() && r.Value == nil
			startHorizon = startHorizon || tombstone && !hasHorizon
			waits = waits || emptyMarker || tombstone && v.Offset(r) < c.end
		}
		c.keep = append(c.keep, keep)
		return nil
	}); err != nil {
		return err
	}
	if kept == 0 && !live {
		return nil
	}
	out := v
	if kept < len(c.keep) || startHorizon {
		ms := batch.NoHorizon
		if startHorizon {
			ms = c.nowMs + c.keepMs
		}
		i := -1
		var err error
		if out, _, err = batch.Filter(v, ms, func(*batch.Record) (bool, error) { i++; return c.keep[i], nil }); err != nil {
			return err
		}
	}
	if kept == 0 {
		out = withMaxTime(out, v.MaxTimestamp())
	}
	if ms, ok := out.DeleteHorizon(); ok && waits {
		c.horizon = min(c.horizon, ms)
	}
	c.stats.RecordsKept += int64(kept)
	return c.add(g, out)
}

func (c *Cleaning) keepRecord(v batch.View, r *batch.Record, expired bool) bool {
	off := v.Offset(r)
	if off >= c.end {
		return true
	}
	if r.Key == nil {
		c.stats.NoKey++
		return false
	}
	if last, ok := c.keys.last(r.Key); ok && off < last {
		return false
	}
	return r.Value != nil || !expired
}

// withMaxTime gives a batch without records a time back: the producer it is kept for
// would seem to have been silent for ever. v is ours to change.
func withMaxTime(v batch.View, ms int64) batch.View {
	if v.MaxTimestamp() != ms {
		binary.BigEndian.PutUint64(v[maxTimeAt:], uint64(ms))
		binary.BigEndian.PutUint32(v[sumAt:], crc32.Checksum(v[crcAt:], castagnoli))
	}
	return v
}

// add puts a batch behind the group's last.
func (c *Cleaning) add(g *cleanGroup, v batch.View) error {
	if ts := v.MaxTimestamp(); ts > g.max.ts {
		g.max = timeEntry{ts, v.LastOffset()}
	}
	g.ix.add(v.LastOffset(), g.size, int64(len(v)), g.max, int64(c.l.options().IndexIntervalBytes))
	g.size += int64(len(v))
	c.out = append(c.out, v...)
	if len(c.out) >= c.limits.Buffer {
		return c.write(g)
	}
	return nil
}

func (c *Cleaning) write(g *cleanGroup) error {
	if err := c.pace(len(c.out)); err != nil {
		return err
	}
	_, err := g.file.WriteAt(c.out, g.size-int64(len(c.out)))
	c.out = c.out[:0]
	return err
}

// sync makes a new file durable. A disk that cannot is not to be trusted with the
// next one either: the log takes no more writes. For lack of room it may try again,
// with a new file.
func (c *Cleaning) sync(f disk.File) error {
	err := f.Sync()
	if err != nil && !disk.IsNoSpace(err) {
		return c.l.fail(err)
	}
	return err
}
