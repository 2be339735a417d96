package partition

import (
	"fmt"

	"github.com/weirmq/weir/internal/batch"
)

// scanChunk is how much Scan reads at once.
const scanChunk = 1 << 20

// Scan reads every batch from the log start to the log end in order. The view is
// valid during fn alone. It holds at most one chunk, or one batch if that is larger.
func (p *Partition) Scan(fn func(b batch.View) error) error {
	from := p.log.LogStart()
	var buf []byte
	for end := p.log.End(); from < end; {
		slice, err := p.log.Read(from, end, scanChunk, true)
		if err != nil {
			return err
		}
		n := int(slice.Region.Len)
		if n == 0 {
			return nil // compacted away up to the end
		}
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		_, err = slice.Region.ReadAt(buf[:n], 0)
		slice.Region.Release()
		if err != nil {
			return fmt.Errorf("%s: read at offset %d: %w", p.TP, from, err)
		}
		next := from
		for rest := buf[:n]; len(rest) > 0; {
			var b batch.View
			if b, rest, err = batch.Next(rest); err != nil {
				break // the last batch is cut at the chunk's end
			}
			if b.LastOffset() < from {
				continue
			}
			if err := fn(b); err != nil {
				return err
			}
			next = b.LastOffset() + 1
		}
		if next == from {
			return fmt.Errorf("%s: no whole batch at offset %d", p.TP, from)
		}
		from = next
	}
	return nil
}
