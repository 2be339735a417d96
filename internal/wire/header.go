package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// headerMin is key, version and correlation id: what every request starts with.
const headerMin = 8

var errHeader = errors.New("malformed request header")

// header is a parsed request header. client aliases the frame; nil is null.
type header struct {
	key, version  int16
	correlationID int32
	client        []byte
	body          []byte // nil when the version is not offered: it is never parsed
	api           api
	offered       bool
}

// parseHeader reads request headers v1 and v2. Of a version that is not offered
// only the part that all headers share is read. (Header v0, without a client id,
// belongs to ControlledShutdown v0 alone, which nobody sends any more.)
func parseHeader(t *Table, frame []byte) (header, error) {
	var h header
	if len(frame) < headerMin {
		return h, fmt.Errorf("%w: %d bytes", errHeader, len(frame))
	}
	h.key = int16(binary.BigEndian.Uint16(frame))
	h.version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.correlationID = int32(binary.BigEndian.Uint32(frame[4:]))
	rest := frame[headerMin:]
	h.api = t.api(h.key)
	h.offered = h.api.ok && h.version >= h.api.min && h.version <= h.api.max
	if len(rest) < 2 {
		if !h.offered {
			return h, nil
		}
		return h, fmt.Errorf("%w: no client id", errHeader)
	}
	n := int(int16(binary.BigEndian.Uint16(rest)))
	rest = rest[2:]
	switch {
	case n >= 0 && n <= len(rest):
		h.client, rest = rest[:n:n], rest[n:]
	case n == -1:
	case !h.offered: // only for the log line
	default:
		return h, fmt.Errorf("%w: client id of %d bytes", errHeader, n)
	}
	if !h.offered {
		return h, nil
	}
	if h.version >= h.api.flexFrom {
		var err error
		if rest, err = skipTags(rest); err != nil {
			return h, err
		}
	}
	h.body = rest
	return h, nil
}

// skipTags passes over a section of tagged fields. Tags unknown here are legal
// (KIP-482); their order is not checked, as nothing is read from them.
func skipTags(b []byte) ([]byte, error) {
	count, b, err := uvarint(b)
	if err != nil {
		return nil, err
	}
	// Every field takes at least two bytes, which bounds the loop by the frame.
	for ; count > 0; count-- {
		var size uint32
		if _, b, err = uvarint(b); err != nil {
			return nil, err
		}
		if size, b, err = uvarint(b); err != nil {
			return nil, err
		}
		if uint64(size) > uint64(len(b)) {
			return nil, fmt.Errorf("%w: tagged field of %d bytes, %d left", errHeader, size, len(b))
		}
		b = b[size:]
	}
	return b, nil
}

func uvarint(b []byte) (uint32, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 5 || v > 1<<32-1 {
		return 0, nil, fmt.Errorf("%w: bad varint", errHeader)
	}
	return uint32(v), b[n:], nil
}

// appendResponseHeader appends the length prefix (still zero) and the response
// header; patchSize fills the length in once the body is known.
func appendResponseHeader(dst []byte, correlationID int32, flexible bool) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

// patchSize writes the length of the frame that starts at dst[start:], of which
// later bytes follow outside dst.
func patchSize(dst []byte, start int, later int64) error {
	size := int64(len(dst)-start-4) + later
	if size > 1<<31-1 {
		return fmt.Errorf("response of %d bytes does not fit a frame", size)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	return nil
}

// appendUnsupported appends the body that answers an ApiVersions request of a
// version that is not offered: the v0 layout, error 35, and the one range the
// client needs to ask again (KIP-511).
func appendUnsupported(dst []byte, a api) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 35)
	dst = binary.BigEndian.AppendUint32(dst, 1)
	dst = binary.BigEndian.AppendUint16(dst, keyApiVersions)
	dst = binary.BigEndian.AppendUint16(dst, uint16(a.min))
	return binary.BigEndian.AppendUint16(dst, uint16(a.max))
}
