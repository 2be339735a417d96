package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// The frame format is read and written here, over the library's blocks: its own
// frame reader costs twice the time and cannot read what Kafka wrote before
// message format 1, whose header checksum also covers the frame's magic.

const lz4Magic = 0x184D2204

// Bits of the frame's first descriptor byte.
const (
	lz4Version         = 0x40 // in lz4VersionMask
	lz4VersionMask     = 0xc0
	lz4Independent     = 0x20
	lz4BlockChecksum   = 0x10
	lz4ContentSize     = 0x08
	lz4ContentChecksum = 0x04
	lz4Reserved        = 0x02
	lz4Dictionary      = 0x01
)

const (
	lz4Stored = 1 << 31  // in a block's length: not compressed
	lz4Window = 64 << 10 // how far back a block may refer in a frame of linked blocks
	lz4Ratio  = 255      // each byte of a length adds at most 255 to it
)

// lz4Header begins every frame written here, as in Kafka's own: independent
// blocks of 64 KiB, no checksums (the batch has one).
var lz4Header = []byte{0x04, 0x22, 0x4d, 0x18, lz4Version | lz4Independent, 0x40, 0x82}

const lz4Block = 64 << 10

var errLZ4Cut = errors.New("lz4: frame cut")

func appendUnlz4(dst, src []byte, max int) ([]byte, error) {
	if len(src) == 0 {
		return nil, errLZ4Cut
	}
	for len(src) > 0 {
		var err error
		if dst, src, err = appendUnlz4Frame(dst, src, max); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendUnlz4Frame unpacks one frame and returns what follows it.
func appendUnlz4Frame(dst, src []byte, max int) (out, rest []byte, err error) {
	if len(src) < len(lz4Header) {
		return nil, nil, errLZ4Cut
	}
	if binary.LittleEndian.Uint32(src) != lz4Magic {
		return nil, nil, errors.New("lz4: not a frame")
	}
	flags, sizes := src[4], src[5]
	blockMax := 0
	if s := sizes >> 4; s >= 4 && s <= 7 {
		blockMax = 1 << (8 + 2*s) // 64 KiB, 256 KiB, 1 MiB, 4 MiB
	}
	if flags&lz4VersionMask != lz4Version || flags&(lz4Reserved|lz4Dictionary) != 0 || sizes&0x8f != 0 || blockMax == 0 {
		return nil, nil, fmt.Errorf("lz4: frame descriptor %02x %02x not supported", flags, sizes)
	}
	at := 6
	if flags&lz4ContentSize != 0 {
		at += 8
	}
	if len(src) <= at {
		return nil, nil, errLZ4Cut
	}
	if sum := src[at]; sum != lz4HeaderSum(src[4:at]) && sum != lz4HeaderSum(src[:at]) {
		return nil, nil, errors.New("lz4: wrong checksum of the frame's header")
	}
	src = src[at+1:]
	start := len(dst)
	for {
		if len(src) < 4 {
			return nil, nil, errLZ4Cut
		}
		word := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if word == 0 {
			break
		}
		n := int(word &^ lz4Stored)
		if n > len(src) {
			return nil, nil, errLZ4Cut
		}
		if n > blockMax {
			return nil, nil, fmt.Errorf("lz4: block of %d bytes in a frame of blocks up to %d", n, blockMax)
		}
		block := src[:n]
		src = src[n:]
		if flags&lz4BlockChecksum != 0 {
			if len(src) < 4 {
				return nil, nil, errLZ4Cut
			}
			if binary.LittleEndian.Uint32(src) != xxh32(block) {
				return nil, nil, errors.New("lz4: wrong checksum of a block")
			}
			src = src[4:]
		}
		if word&lz4Stored != 0 {
			if n > max-len(dst) {
				return nil, nil, ErrTooLarge
			}
			dst = append(grown(dst, n), block...)
			continue
		}
		want := min(blockMax, lz4Ratio*n+64)
		room := min(want, max-len(dst))
		if cap(dst)-len(dst) < room && len(dst) >= countFrom {
			// Much already, and more to come: all of it at once, not by doublings.
			exact := make([]byte, len(dst), min(max, len(dst)+room+lz4Bound(src, blockMax, flags)))
			copy(exact, dst)
			dst = exact
		}
		dst = grown(dst, room)
		target := dst[len(dst) : len(dst)+room]
		var got int
		if flags&lz4Independent != 0 || len(dst) == start {
			got, err = lz4.UncompressBlock(block, target)
		} else {
			got, err = lz4.UncompressBlockWithDict(block, target, dst[start+lz4Past(len(dst)-start):])
		}
		if err != nil {
			if room < want {
				return nil, nil, ErrTooLarge
			}
			return nil, nil, fmt.Errorf("lz4: %w", err)
		}
		dst = dst[:len(dst)+got]
	}
	if flags&lz4ContentChecksum != 0 {
		if len(src) < 4 {
			return nil, nil, errLZ4Cut
		}
		if binary.LittleEndian.Uint32(src) != xxh32(dst[start:]) {
			return nil, nil, errors.New("lz4: wrong checksum of the content")
		}
		src = src[4:]
	}
	return dst, src, nil
}

// lz4Foreign says why Kafka's own clients could not read src, which unpacks here:
// they want one frame, of independent blocks, with the checksum of its header
// right. Kafka refuses such a batch, since it would stop every Java consumer
// that comes to it.
// Source: Kafka's Lz4BlockInputStream, by its answers (compat/lz4_test.go).
func lz4Foreign(src []byte) error {
	flags, at := src[4], 6
	if flags&lz4Independent == 0 {
		return errors.New("lz4: linked blocks, which Kafka's clients cannot read: set block independence")
	}
	if flags&lz4ContentSize != 0 {
		at += 8
	}
	if src[at] != lz4HeaderSum(src[4:at]) {
		return errors.New("lz4: wrong checksum of the frame's header")
	}
	behind := 0
	if flags&lz4BlockChecksum != 0 {
		behind = 4
	}
	for src = src[at+1:]; ; {
		word := binary.LittleEndian.Uint32(src)
		if src = src[4:]; word == 0 {
			break
		}
		src = src[int(word&^lz4Stored)+behind:]
	}
	if flags&lz4ContentChecksum != 0 {
		src = src[4:]
	}
	if len(src) > 0 {
		return errors.New("lz4: several frames, of which Kafka's clients read the first")
	}
	return nil
}

// lz4Bound is the most that the blocks at the start of src unpack to. Writers fill
// their blocks, so it is close to what they do unpack to.
func lz4Bound(src []byte, blockMax int, flags byte) (bound int) {
	behind := 0
	if flags&lz4BlockChecksum != 0 {
		behind = 4
	}
	for len(src) >= 4 {
		word := binary.LittleEndian.Uint32(src)
		n := int(word &^ lz4Stored)
		if src = src[4:]; word == 0 || n+behind > len(src) {
			break
		}
		bound += min(blockMax, lz4Ratio*n+64)
		src = src[n+behind:]
	}
	return bound
}

// lz4Past is where the window begins in n bytes of output.
func lz4Past(n int) int { return max(0, n-lz4Window) }

func lz4HeaderSum(p []byte) byte { return byte(xxh32(p) >> 8) }

var (
	lz4Fast sync.Pool // *lz4.Compressor
	lz4High sync.Pool // *lz4.CompressorHC
)

// lz4DefaultLevel is Kafka's default, by which it means the fast compressor.
const lz4DefaultLevel = 9

func appendLZ4(dst []byte, level int, src []byte) ([]byte, error) {
	var pack func(src, dst []byte) (int, error)
	if level == 0 || level == lz4DefaultLevel {
		c, _ := lz4Fast.Get().(*lz4.Compressor)
		if c == nil {
			c = new(lz4.Compressor)
		}
		defer lz4Fast.Put(c)
		pack = c.CompressBlock
	} else {
		c, _ := lz4High.Get().(*lz4.CompressorHC)
		if c == nil {
			c = new(lz4.CompressorHC)
		}
		defer lz4High.Put(c)
		// The library's levels are powers of two for 1 to 9, Kafka's go to 17.
		c.Level = lz4.CompressionLevel(1 << (8 + min(max(level, 1), 9)))
		pack = c.CompressBlock
	}
	dst = append(dst, lz4Header...)
	for len(src) > 0 {
		block := src[:min(len(src), lz4Block)]
		src = src[len(block):]
		at := len(dst)
		dst = grown(dst, 4+lz4.CompressBlockBound(len(block)))
		n, err := pack(block, dst[at+4:cap(dst)])
		if err != nil {
			return nil, fmt.Errorf("lz4: %w", err)
		}
		if n == 0 || n >= len(block) {
			dst = append(dst[:at+4], block...)
			binary.LittleEndian.PutUint32(dst[at:], lz4Stored|uint32(len(block)))
			continue
		}
		dst = dst[:at+4+n]
		binary.LittleEndian.PutUint32(dst[at:], uint32(n))
	}
	return append(dst, 0, 0, 0, 0), nil
}

// xxh32 is the 32-bit xxHash with seed 0, which lz4 frames use.
// Source: the xxHash specification, section XXH32.
func xxh32(p []byte) uint32 {
	const (
		p1 uint32 = 0x9E3779B1
		p2 uint32 = 0x85EBCA77
		p3 uint32 = 0xC2B2AE3D
		p4 uint32 = 0x27D4EB2F
		p5 uint32 = 0x165667B1
	)
	h := p5
	n := uint32(len(p))
	if len(p) >= 16 {
		lanes := [4]uint32{0, p2, 0, 0}
		lanes[0], lanes[3] = p1, 0
		lanes[0] += p2
		lanes[3] -= p1
		for ; len(p) >= 16; p = p[16:] {
			for i := range lanes {
				lanes[i] = bits.RotateLeft32(lanes[i]+binary.LittleEndian.Uint32(p[4*i:])*p2, 13) * p1
			}
		}
		h = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	h += n
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*p3, 17) * p4
	}
	for _, b := range p {
		h = bits.RotateLeft32(h+uint32(b)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
