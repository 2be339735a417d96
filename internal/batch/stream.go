package batch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// eachWithin is Each with a bound on what is unpacked, which it lowers by what was:
// ErrTooLarge when that is used up, maybe after fn saw the first records. Gzip, of
// which 200 KB can be 200 MB, is unpacked a record at a time, so that a walk that ends
// early costs little, and none takes the memory of all.
func (v View) eachWithin(unpack *int, fn func(r *Record) error) error {
	switch c := v.Codec(); c {
	case NoCodec:
		return v.each(v.Records(), fn)
	case Gzip:
		return v.eachGunzipped(unpack, fn)
	default:
		buf := getScratch()
		defer putScratch(buf)
		out, err := appendDecompressed(*buf, c, v.Records(), max(*unpack, 0))
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		*buf = out
		*unpack -= len(out)
		return v.each(out, fn)
	}
}

// recordStep is how much memory a record gets before its bytes are there.
const recordStep = 1 << 20

func (v View) eachGunzipped(unpack *int, fn func(r *Record) error) error {
	g := gunzippers.Get().(*gunzipper)
	defer func() {
		g.src.Reset(nil)
		gunzippers.Put(g)
	}()
	g.src.Reset(v.Records())
	if err := g.z.Reset(&g.src); err != nil {
		return fmt.Errorf("%w: gzip: %w", ErrCorrupt, err)
	}
	in := bufio.NewReaderSize(&g.z, 16<<10)
	buf := getScratch()
	defer putScratch(buf)
	var r Record
	last := int32(-1)
	for i := range v.Count() {
		p, err := readRecord((*buf)[:0], in, unpack)
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: record %d: gzip: %w", ErrCorrupt, i, err)
		}
		*buf = p
		rest, why := r.read(p)
		if why != "" || len(rest) > 0 {
			return fmt.Errorf("%w: record %d: %s", ErrCorrupt, i, why)
		}
		if r.OffsetDelta <= last {
			return fmt.Errorf("%w: record %d: offset delta %d after %d", ErrCorrupt, i, r.OffsetDelta, last)
		}
		last = r.OffsetDelta
		if err := fn(&r); err != nil {
			return err
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: more than %d records", ErrCorrupt, v.Count())
	}
	return nil
}

// readRecord reads a record with its length into dst, which is empty.
func readRecord(dst []byte, in *bufio.Reader, unpack *int) ([]byte, error) {
	for len(dst) == 0 || dst[len(dst)-1] >= 0x80 {
		b, err := in.ReadByte()
		if err != nil {
			return dst, err
		}
		if dst = append(dst, b); len(dst) > 5 {
			return dst, errors.New("length of more than 5 bytes")
		}
	}
	d := decoder{p: dst}
	n := int(d.varint32())
	if d.bad || n < recordMin-1 {
		return dst, fmt.Errorf("length %d", n)
	}
	if n+len(dst) > *unpack {
		return dst, ErrTooLarge
	}
	*unpack -= n + len(dst)
	for n > 0 {
		step := min(n, recordStep)
		dst = grown(dst, step)
		at := len(dst)
		dst = dst[:at+step]
		if _, err := io.ReadFull(in, dst[at:]); err != nil {
			return dst[:at], err
		}
		n -= step
	}
	return dst, nil
}
