package partition

import (
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/kafka"
)

// scanChunk is how much Scan reads at once.
const scanChunk = 1 << 20

// Scan reads every batch from the log start to the log end in order. CRCs and the
// order of offsets are checked: what is read makes up a state, and a wrong one would
// not be noticed. The view is valid during fn alone. It holds at most one chunk, or one
// batch if that is larger. Damage is a *commitlog.CorruptError that says what to do.
func (p *Partition) Scan(fn func(b batch.View) error) error {
	from := p.log.LogStart()
	first := true
	var buf []byte
	for end := p.log.End(); from < end; {
		slice, err := p.log.Read(from, end, scanChunk, true)
		if err != nil {
			return p.damage(err, from)
		}
		n := int(slice.Region.Len)
		if n == 0 {
			return nil // compacted away up to the end
		}
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		_, err = slice.Region.ReadAt(buf[:n], 0)
		file, pos := slice.Region.File.Name(), slice.Region.Off
		slice.Region.Release()
		if err != nil {
			return fmt.Errorf("%s: read at offset %d: %w", p.TP, from, err)
		}
		whole := 0
		for rest := buf[:n]; len(rest) > 0; {
			var b batch.View
			if b, rest, err = batch.Next(rest); errors.Is(err, batch.ErrShort) && whole > 0 {
				break // the last batch is cut at the chunk's end
			}
			if err == nil {
				err = intact(b, from, end, first)
			}
			if err != nil {
				return p.damage(&commitlog.CorruptError{File: file, Position: pos, Err: err}, from)
			}
			whole++
			pos += int64(len(b))
			if first && b.LastOffset() < from {
				continue
			}
			if err := fn(b); err != nil {
				return err
			}
			from, first = b.LastOffset()+1, false
		}
	}
	return nil
}

// intact says what is wrong with a batch that should lie in [from, end); the first may
// begin before that.
func intact(b batch.View, from, end kafka.Offset, first bool) error {
	if !b.CRCOK() {
		return fmt.Errorf("%w: CRC does not match", batch.ErrCorrupt)
	}
	if base, last := b.BaseOffset(), b.LastOffset(); last < base || last >= end || base < from && !first {
		return fmt.Errorf("%w: offsets %d to %d", batch.ErrCorrupt, base, last)
	}
	return nil
}

// damage adds to an error about bytes where in the log they are, and what to do.
func (p *Partition) damage(err error, from kafka.Offset) error {
	c, ok := errors.AsType[*commitlog.CorruptError](err)
	if !ok {
		return err
	}
	return &commitlog.CorruptError{File: c.File, Position: c.Position, Err: fmt.Errorf("%w, at offset %d: stop the broker, then %s", c.Err, from, p.log.WayOut())}
}
