package commitlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// CleanLimits bound what one run takes. Zero fields mean the defaults.
type CleanLimits struct {
	// KeyBytes is the memory for keys, 24 bytes each; 128 MiB. A run that meets more
	// keys ends its dirty part there, and the next goes on.
	KeyBytes int64
	// KeyLoad is how full that memory may get, up to 1; 0.9.
	KeyLoad float64
	// Buffer is the bytes read at once, and written at once; 256 KiB. A larger batch
	// takes its own size.
	Buffer int
	// Pace is called before so many bytes are read or written; it may block. Its
	// error gives the run up. Nil: no limit.
	Pace func(bytes int) error
}

func (c CleanLimits) filled() CleanLimits {
	if c.KeyBytes <= 0 {
		c.KeyBytes = 128 << 20
	}
	if c.KeyLoad <= 0 || c.KeyLoad > 1 {
		c.KeyLoad = 0.9
	}
	if c.Buffer <= 0 {
		c.Buffer = scanBytes
	}
	c.Buffer = max(c.Buffer, hopBytes)
	return c
}

// keySlot is a key's hash and its last offset plus one, or zero when it is free. A
// key that was mistaken for another would be lost, so the hash is a cryptographic one
// cut to 128 bits: nobody can choose two keys that meet.
type keySlot struct {
	hash [16]byte
	next int64
}

const keySlotBytes = 24

// keyTable maps keys to their last offset, in one piece of memory of a fixed size,
// with linear probing.
type keyTable struct {
	slots []keySlot
	used  int
	max   int
}

// newKeyTable makes room for as many keys as the limits allow, or for want if that
// is less.
func newKeyTable(c CleanLimits, want int64) *keyTable {
	most := max(c.KeyBytes/keySlotBytes, 1)
	n := most
	if float64(want)/c.KeyLoad < float64(most-1) {
		n = int64(float64(want)/c.KeyLoad) + 1
	}
	// One slot stays free, so that every search ends.
	return &keyTable{slots: make([]keySlot, n+1), max: max(int(float64(n)*c.KeyLoad), 1)}
}

func (t *keyTable) find(key []byte) *keySlot {
	sum := sha256.Sum256(key)
	h := [16]byte(sum[:16])
	i := binary.LittleEndian.Uint64(h[8:]) % uint64(len(t.slots))
	for {
		s := &t.slots[i]
		if s.next == 0 || s.hash == h {
			if s.next == 0 {
				s.hash = h // nobody's until put
			}
			return s
		}
		if i++; i == uint64(len(t.slots)) {
			i = 0
		}
	}
}

// put notes an offset, which is not below an earlier one; false: there is no room.
func (t *keyTable) put(key []byte, off kafka.Offset) bool {
	s := t.find(key)
	if s.next == 0 {
		if t.used == t.max {
			return false
		}
		t.used++
	}
	s.next = int64(off) + 1
	return true
}

// last is the key's last offset.
func (t *keyTable) last(key []byte) (kafka.Offset, bool) {
	s := t.find(key)
	return kafka.Offset(s.next - 1), s.next != 0
}

// errKeysFull ends a walk where the table does.
var errKeysFull = errors.New("key table is full")

// mapKeys notes the last offset of every key in [from, to), as far as the table
// goes; c.end is where it stopped, perhaps inside a batch.
func (c *Cleaning) mapKeys(from, to kafka.Offset) error {
	l := c.l
	c.keys = newKeyTable(c.limits, int64(to-from))
	txns := newCleanTxns(l.Aborted(from, to))
	segs := l.segments()
	for i := findSegment(segs, from); i < len(segs)-1 && segs[i].base < to; i++ {
		err := c.walkWhole(segs[i], from, func(v batch.View, _ int64) error {
			if v.BaseOffset() >= to {
				return io.EOF
			}
			if v.Control() {
				if _, err := txns.marker(v); err != nil {
					return err
				}
			} else if !txns.data(v) {
				err := v.Each(func(r *batch.Record) error {
					off := v.Offset(r)
					if r.Key == nil || off < from || c.keys.put(r.Key, off) {
						return nil
					}
					c.end = off
					return errKeysFull
				})
				if err != nil {
					return err
				}
			}
			c.end = min(v.LastOffset()+1, to)
			return nil
		})
		switch err {
		case nil:
			c.end = max(c.end, min(segs[i+1].base, to))
		case io.EOF:
			c.end = to
			return nil
		case errKeysFull:
			return nil
		default:
			return err
		}
	}
	return nil
}

// pace waits until n bytes may be read or written.
func (c *Cleaning) pace(n int) error {
	if c.l.closed.Load() {
		return ErrClosed
	}
	if c.limits.Pace == nil || n == 0 {
		return nil
	}
	return c.limits.Pace(n)
}

// pacedFile is a segment's file read at the cleaner's pace.
type pacedFile struct {
	disk.File
	c *Cleaning
}

func (f pacedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.c.pace(len(p)); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// walkWhole calls fn with whole batches that end at or above from. The View is valid
// during fn.
func (c *Cleaning) walkWhole(s *segment, from kafka.Offset, fn func(v batch.View, pos int64) error) error {
	f, err := s.acquire()
	if err != nil {
		return err
	}
	defer f.Release()
	pos, size := int64(0), s.sizeNow()
	if from > s.base {
		p, ok, err := s.search(f, from, size)
		if err != nil || !ok {
			return err
		}
		pos = p.pos
	}
	sc := newScanner(pacedFile{f.File, c}, pos, size, false)
	sc.buf = c.readBuf
	for {
		b, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damageAt(f.Name(), sc.pos, err)
		}
		v := b.View
		if !b.whole {
			if b.size <= int64(len(sc.buf)) {
				v, err = sc.fill(b.pos, int(b.size))
			} else {
				c.buf = slices.Grow(c.buf[:0], int(b.size))[:b.size]
				v = c.buf
				_, err = pacedFile{f.File, c}.ReadAt(v, b.pos)
			}
			if err != nil && err != io.EOF {
				return damageAt(f.Name(), b.pos, err)
			}
		}
		if !v.CRCOK() { // damage must not be copied under a new checksum
			return &CorruptError{f.Name(), b.pos, fmt.Errorf("%w: CRC does not match", batch.ErrCorrupt)}
		}
		if err := fn(v, b.pos); err != nil {
			return err
		}
	}
}

// lastOfProducers lists what must be kept of every known producer.
func (l *Log) lastOfProducers() map[kafka.ProducerID]lastOfProducer {
	l.producers.mu.Lock()
	defer l.producers.mu.Unlock()
	out := make(map[kafka.ProducerID]lastOfProducer, len(l.producers.byID))
	for id, p := range l.producers.byID {
		last := lastOfProducer{kafka.NoOffset, p.epoch}
		if p.n > 0 {
			last.offset = p.last[p.n-1].last
		}
		out[id] = last
	}
	return out
}
