package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdDecoder serves all goroutines: DecodeAll keeps no state between calls. Its
// own limits on output are not used: the library prints a line to stderr when
// one is met, and does not always say so in its error. zstdBound stands in.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(1<<40), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic("BUG: zstd decoder: " + err.Error())
	}
	return d
})

func appendUnzstd(dst, src []byte, limit int) ([]byte, error) {
	bound, err := zstdBound(src)
	if err != nil {
		return nil, err
	}
	if bound > int64(limit) {
		return appendUnzstdStream(dst, src, limit)
	}
	out, err := zstdDecoder().DecodeAll(src, grown(dst, int(min(bound, int64(128<<10+8*len(src))))))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return out, nil
}

// Types of block in a zstd frame; the fourth is reserved.
const (
	zstdRaw = iota
	zstdRLE
	zstdCompressed
)

// zstdBlockMax is the most that one block may unpack to.
const zstdBlockMax = 128 << 10

// zstdBound walks the headers of frames and blocks and returns what src unpacks
// to at most; exactly that where the frames state it, which not all do (Java's
// client streams). Source: RFC 8878, sections 3.1.1 and 3.1.2.
func zstdBound(src []byte) (bound int64, err error) {
	for len(src) > 0 {
		var h zstd.Header
		if err := h.Decode(src); err != nil {
			return 0, fmt.Errorf("zstd: %w", err)
		}
		if h.Skippable {
			n := h.HeaderSize + int(h.SkippableSize)
			if n > len(src) {
				return 0, io.ErrUnexpectedEOF
			}
			src = src[n:]
			continue
		}
		rest := src[h.HeaderSize:]
		frame, plain := int64(0), int64(0)
		for last := false; !last; {
			if len(rest) < 3 {
				return 0, io.ErrUnexpectedEOF
			}
			word := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16
			rest, last = rest[3:], word&1 != 0
			size := int(word >> 3)
			stored := size
			switch word >> 1 & 3 {
			case zstdRaw:
				plain += int64(size)
				frame += int64(size)
			case zstdRLE:
				stored = 1
				plain += int64(size)
				frame += int64(size)
			case zstdCompressed:
				frame += zstdBlockMax
			default:
				return 0, errors.New("zstd: block of a reserved type")
			}
			if size > zstdBlockMax || stored > len(rest) {
				return 0, errors.New("zstd: block too large or cut")
			}
			rest = rest[stored:]
		}
		if h.HasFCS {
			if h.FrameContentSize > uint64(frame) || h.FrameContentSize < uint64(plain) {
				return 0, fmt.Errorf("zstd: frame states %d bytes, its blocks hold %d to %d", h.FrameContentSize, plain, frame)
			}
			frame = int64(h.FrameContentSize)
		}
		bound += frame
		if h.HasCheckSum {
			if len(rest) < 4 {
				return 0, io.ErrUnexpectedEOF
			}
			rest = rest[4:]
		}
		src = rest
	}
	return bound, nil
}

// zstdWindowMax is the largest window a stream is read with, that of the highest
// level of the reference implementation.
const zstdWindowMax = 128 << 20

// appendUnzstdStream is for the rare case that only unpacking tells whether the
// limit is kept. It is slower and takes a window of memory besides.
func appendUnzstdStream(dst, src []byte, limit int) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(src), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindowMax))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	first := true
	return appendRead(dst, func() (io.Reader, error) {
		if first {
			first = false
			return d, nil
		}
		return d, d.Reset(bytes.NewReader(src))
	}, limit, "zstd")
}

// zstdEncoders has one encoder per speed of the library; EncodeAll serves all
// goroutines.
var zstdEncoders [zstd.SpeedBestCompression + 1]struct {
	once sync.Once
	enc  *zstd.Encoder
}

func zstdEncoder(level int) *zstd.Encoder {
	speed := zstd.SpeedDefault
	if level != 0 {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	e := &zstdEncoders[speed]
	e.once.Do(func() {
		// The batch has a checksum of its own, so the frame needs none.
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
		if err != nil {
			panic("BUG: zstd encoder: " + err.Error())
		}
		e.enc = enc
	})
	return e.enc
}
