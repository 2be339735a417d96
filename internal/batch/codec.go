package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Codec is a compression by its number in the attributes.
type Codec int8

// The codecs.
const (
	NoCodec Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// Known says whether c is one of the codecs above.
func (c Codec) Known() bool { return c >= NoCodec && c <= Zstd }

// String is Kafka's name.
func (c Codec) String() string {
	if c == TargetProducer {
		return "producer"
	}
	if !c.Known() {
		return fmt.Sprintf("codec %d", int8(c))
	}
	return codecNames[c]
}

// ParseCodec reads a value of compression.type: a codec's name, "none" or
// "uncompressed", or "producer", which gives TargetProducer.
func ParseCodec(name string) (Codec, error) {
	switch name {
	case "uncompressed":
		return NoCodec, nil
	case "producer":
		return TargetProducer, nil
	}
	for c, n := range codecNames {
		if n == name {
			return Codec(c), nil
		}
	}
	return NoCodec, fmt.Errorf("compression %q: want producer, uncompressed, %s", name, strings.Join(codecNames[1:], ", "))
}

var (
	// ErrTooLarge: the bytes would unpack to more than the bound.
	ErrTooLarge = errors.New("batch: unpacks to more than allowed")
	// ErrCodec: no such codec.
	ErrCodec = errors.New("batch: unknown codec")
)

// Decompress unpacks src into a new slice of at most max bytes. Snappy is read
// with and without the framing of snappy-java, lz4 as frames, also with the
// wrong header checksum that Kafka wrote before format 1. Errors: ErrTooLarge,
// ErrCodec, or what is wrong with src.
func Decompress(c Codec, src []byte, max int) ([]byte, error) {
	if c == NoCodec {
		if len(src) > max {
			return nil, ErrTooLarge
		}
		return append([]byte(nil), src...), nil
	}
	return appendDecompressed(nil, c, src, max)
}

// appendDecompressed unpacks src into dst, which is empty but may have capacity,
// and which it may replace by a larger one.
func appendDecompressed(dst []byte, c Codec, src []byte, max int) ([]byte, error) {
	dst = dst[:0]
	switch c {
	case Gzip:
		return appendGunzip(dst, src, max)
	case Snappy:
		return appendUnsnappy(dst, src, max)
	case LZ4:
		return appendUnlz4(dst, src, max)
	case Zstd:
		return appendUnzstd(dst, src, max)
	}
	return nil, fmt.Errorf("%w %d", ErrCodec, int8(c))
}

// Compress packs src into a new slice. Level 0 is the codec's default; levels
// have the meaning of KIP-390 and are brought into the codec's range. Snappy
// has none.
func Compress(c Codec, level int, src []byte) ([]byte, error) {
	return appendCompressed(nil, c, level, src)
}

// appendCompressed appends packed src to dst.
func appendCompressed(dst []byte, c Codec, level int, src []byte) ([]byte, error) {
	switch c {
	case NoCodec:
		return append(dst, src...), nil
	case Gzip:
		return appendGzip(dst, level, src)
	case Snappy:
		return appendSnappy(dst, src), nil
	case LZ4:
		return appendLZ4(dst, level, src)
	case Zstd:
		return zstdEncoder(level).EncodeAll(src, dst), nil
	}
	return nil, fmt.Errorf("%w %d", ErrCodec, int8(c))
}

// scratchKeep is the largest buffer that goes back to the pool.
const scratchKeep = 8 << 20

var scratch = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

func getScratch() *[]byte { return scratch.Get().(*[]byte) }

func putScratch(b *[]byte) {
	if cap(*b) <= scratchKeep {
		*b = (*b)[:0]
		scratch.Put(b)
	}
}

// grown returns dst with room for at least n more bytes, never more than twice
// what is needed, so that memory follows the bytes that really came out.
func grown(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	bigger := make([]byte, len(dst), max(2*len(dst), len(dst)+n))
	copy(bigger, dst)
	return bigger
}

type gunzipper struct {
	src bytes.Reader
	z   gzip.Reader
}

var gunzippers = sync.Pool{New: func() any { return new(gunzipper) }}

func appendGunzip(dst, src []byte, max int) ([]byte, error) {
	g := gunzippers.Get().(*gunzipper)
	defer func() {
		g.src.Reset(nil)
		gunzippers.Put(g)
	}()
	return appendRead(dst, func() (io.Reader, error) {
		g.src.Reset(src)
		return &g.z, g.z.Reset(&g.src)
	}, max, "gzip")
}

// countFrom is from where on unpacked bytes are only counted at first.
const countFrom = 16 << 20

// appendRead reads what open opens to its end, at most limit bytes. What turns out
// to be large is counted first and then read a second time, into memory of the
// right size: a bomb costs time, but not the memory of all it might unpack to, and
// the doublings on the way there.
func appendRead(dst []byte, open func() (io.Reader, error), limit int, name string) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for {
		if len(dst) == cap(dst) {
			if len(dst) >= countFrom {
				break
			}
			dst = grown(dst, 512+len(dst)/2)
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return nil, ErrTooLarge
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(onlyReader{r}, int64(limit-len(dst))+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	size := len(dst) + int(rest)
	if size > limit {
		return nil, ErrTooLarge
	}
	if r, err = open(); err == nil {
		dst = make([]byte, size)
		_, err = io.ReadFull(r, dst)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return dst, nil
}

// onlyReader hides a WriteTo, which would not stop at a limit.
type onlyReader struct{ io.Reader }

// gzippers holds one pool per level from -1, the default, to 9.
var gzippers [11]sync.Pool

func appendGzip(dst []byte, level int, src []byte) ([]byte, error) {
	if level == 0 {
		level = gzip.DefaultCompression
	}
	level = min(max(level, gzip.DefaultCompression), gzip.BestCompression)
	out := bytes.NewBuffer(dst)
	pool := &gzippers[level+1]
	z, _ := pool.Get().(*gzip.Writer)
	if z == nil {
		var err error
		if z, err = gzip.NewWriterLevel(out, level); err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
	} else {
		z.Reset(out)
	}
	_, err := z.Write(src)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	z.Reset(io.Discard)
	pool.Put(z)
	return out.Bytes(), nil
}
