package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// xerialHeader begins a stream of snappy-java, which the Java client writes:
// magic, version 1, compatible from version 1. Blocks follow, each with its
// length as int32.
var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

const (
	xerialMagicLen = 8
	xerialBlock    = 32 << 10 // the size of block that snappy-java writes
)

// snappyRatio: three bytes of a snappy block can say at most "copy 64 bytes".
const snappyRatio = 22

func appendUnsnappy(dst, src []byte, max int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialHeader[:xerialMagicLen]) {
		return appendUnsnappyBlock(dst, src, max)
	}
	for len(src) > 0 {
		// Streams put one behind the other each bring their header.
		if bytes.HasPrefix(src, xerialHeader[:xerialMagicLen]) {
			if len(src) < len(xerialHeader) {
				return nil, errors.New("snappy: stream header cut")
			}
			src = src[len(xerialHeader):]
			continue
		}
		if len(src) < 4 {
			return nil, errors.New("snappy: block length cut")
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return nil, fmt.Errorf("snappy: block of %d bytes, %d are left", n, len(src))
		}
		var err error
		if dst, err = appendUnsnappyBlock(dst, src[:n], max); err != nil {
			return nil, err
		}
		src = src[n:]
	}
	return dst, nil
}

func appendUnsnappyBlock(dst, block []byte, max int) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return nil, fmt.Errorf("snappy: %w", err)
	}
	if n > max-len(dst) {
		return nil, ErrTooLarge
	}
	if n > snappyRatio*len(block) {
		return nil, fmt.Errorf("snappy: block of %d bytes claims to hold %d", len(block), n)
	}
	dst = grown(dst, n)
	end := len(dst) + n
	if _, err := s2.Decode(dst[len(dst):end:end], block); err != nil {
		return nil, fmt.Errorf("snappy: %w", err)
	}
	return dst[:end], nil
}

// appendSnappy writes the framing of snappy-java, as Kafka does.
func appendSnappy(dst, src []byte) []byte {
	dst = append(dst, xerialHeader...)
	for len(src) > 0 {
		block := src[:min(len(src), xerialBlock)]
		src = src[len(block):]
		at := len(dst)
		dst = grown(dst, 4+s2.MaxEncodedLen(len(block)))
		packed := s2.EncodeSnappy(dst[at+4:cap(dst)], block)
		dst = dst[:at+4+len(packed)]
		binary.BigEndian.PutUint32(dst[at:], uint32(len(packed)))
	}
	return dst
}
