package commitlog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

const (
	scanBytes = 256 << 10 // buffer of a walk over whole batches
	hopBytes  = 4 << 10   // buffer of a walk over headers

	// Where in a batch: the CRC, the bytes it covers, the largest timestamp.
	sumAt     = 17
	crcAt     = 21
	maxTimeAt = 35
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn: the bytes end before the batch does.
var errTorn = errors.New("batch is incomplete")

// scanner walks over the batches of a file. With verify it reads every byte and
// checks CRCs, however large a batch claims to be, in one buffer; without it hops
// from header to header.
type scanner struct {
	r      io.ReaderAt
	pos    int64 // of the next batch
	limit  int64
	verify bool

	buf  []byte // bytes [at, at+have) of the file
	at   int64
	have int
}

// found is a batch under a scanner. The View is valid until the next step. It
// holds the header only, unless whole.
type found struct {
	batch.View
	pos   int64
	size  int64
	whole bool
}

func newScanner(r io.ReaderAt, pos, limit int64, verify bool) *scanner {
	n := int64(hopBytes)
	if verify {
		n = scanBytes
	}
	return &scanner{r: r, pos: pos, limit: limit, verify: verify, buf: make([]byte, max(min(n, limit-pos), batch.HeaderLen))}
}

// fill makes the bytes [pos, pos+n) available; n is at most the buffer's size.
func (sc *scanner) fill(pos int64, n int) ([]byte, error) {
	if pos < sc.at || pos+int64(n) > sc.at+int64(sc.have) {
		want := int(min(int64(len(sc.buf)), sc.limit-pos))
		got, err := sc.r.ReadAt(sc.buf[:want], pos)
		sc.at, sc.have = pos, got
		if got < n {
			if err == nil || err == io.EOF {
				err = errTorn // the file is shorter than its caller believed
			}
			return nil, err
		}
	}
	return sc.buf[pos-sc.at:][:n], nil
}

// next steps to the next batch: io.EOF at the limit, errTorn for a batch that
// goes past it, errors of package batch for bytes that are none. pos stays at the
// bad batch.
func (sc *scanner) next() (found, error) {
	left := sc.limit - sc.pos
	if left <= 0 {
		return found{}, io.EOF
	}
	if left < batch.HeaderLen {
		return found{}, errTorn
	}
	h, err := sc.fill(sc.pos, batch.HeaderLen)
	if err != nil {
		return found{}, err
	}
	n, err := batch.HeaderSize(h)
	if err != nil {
		return found{}, err
	}
	if v := batch.View(h); v.Magic() != 2 {
		return found{}, fmt.Errorf("%w: magic %d", batch.ErrMagic, v.Magic())
	}
	size := int64(n)
	if size > left {
		return found{}, errTorn
	}
	f := found{View: h, pos: sc.pos, size: size}
	switch {
	case f.LastOffsetDelta() < 0 || f.BaseOffset() < 0:
		return found{}, fmt.Errorf("%w: offsets %d to %d", batch.ErrCorrupt, f.BaseOffset(), f.LastOffset())
	case size <= int64(len(sc.buf)) && (sc.verify || f.Control()):
		b, err := sc.fill(sc.pos, n)
		if err != nil {
			return found{}, err
		}
		f.View, f.whole = b, true
		if sc.verify && !f.CRCOK() {
			return found{}, fmt.Errorf("%w: CRC does not match", batch.ErrCorrupt)
		}
	case sc.verify:
		if err := sc.verifyLarge(&f); err != nil {
			return found{}, err
		}
	case f.Control(): // larger than a hop's buffer: no marker is
		return found{}, fmt.Errorf("%w: control batch of %d bytes", batch.ErrCorrupt, size)
	}
	sc.pos += size
	return f, nil
}

// verifyLarge checks the CRC of a batch that does not fit the buffer.
func (sc *scanner) verifyLarge(f *found) error {
	head := append(batch.View(nil), f.View...)
	var sum uint32
	for at := int64(crcAt); at < f.size; {
		n := int(min(f.size-at, int64(len(sc.buf))))
		b, err := sc.fill(f.pos+at, n)
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, b)
		at += int64(n)
	}
	if sum != head.CRC() {
		return fmt.Errorf("%w: CRC does not match", batch.ErrCorrupt)
	}
	f.View = head
	return nil
}

var hopBuffers = sync.Pool{New: func() any { b := make([]byte, hopBytes); return &b }}

// place is where a batch stands in a segment.
type place struct {
	base, last kafka.Offset
	pos, size  int64
}

// hop finds the first batch whose last offset is at or above target, walking
// headers from pos to limit; ok is false when there is none. It allocates nothing.
func hop(r io.ReaderAt, pos, limit int64, target kafka.Offset) (p place, ok bool, err error) {
	bp := hopBuffers.Get().(*[]byte)
	defer hopBuffers.Put(bp)
	buf := *bp
	at, have := int64(0), 0
	for pos+batch.HeaderLen <= limit {
		if pos < at || pos+batch.HeaderLen > at+int64(have) || have == 0 {
			n, err := r.ReadAt(buf[:min(int64(len(buf)), limit-pos)], pos)
			if n < batch.HeaderLen {
				if err == nil || err == io.EOF {
					err = errTorn
				}
				return place{pos: pos}, false, err
			}
			at, have = pos, n
		}
		h := batch.View(buf[pos-at:][:batch.HeaderLen])
		n, err := batch.HeaderSize(h)
		if err != nil {
			return place{pos: pos}, false, err
		}
		if h.Magic() != 2 {
			return place{pos: pos}, false, batch.ErrMagic
		}
		if last := h.LastOffset(); last >= target {
			if pos+int64(n) > limit {
				return place{pos: pos}, false, errTorn
			}
			return place{h.BaseOffset(), last, pos, int64(n)}, true, nil
		}
		pos += int64(n)
	}
	return place{pos: pos}, false, nil
}
