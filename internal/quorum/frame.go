package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Byte layout: docs/format/metadata-log.md. All numbers big-endian.
const (
	logMagic      = "weirmeta"
	formatVersion = 1
	fileHeaderLen = 16 // magic, version, four zero bytes

	frameHeaderLen = 12 // magic, body length, CRC
	maxFrameBody   = 1 << 30
)

// frameMagic holds a byte that is never part of UTF-8 text, so the JSON in
// entries cannot look like a frame.
var frameMagic = []byte{0xF7, 'W', 'M', 'L'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	kindStart  = 1
	kindAppend = 2
)

// start is the first frame of every log file: where it begins and whose it is.
type start struct {
	prevIndex, prevTerm uint64
	hard                hardState
	nodeID              int32
	clusterID           string
	voters              []uint64
}

type hardState struct{ term, vote, commit uint64 }

func (h hardState) pb() *pb.HardState {
	return &pb.HardState{Term: &h.term, Vote: &h.vote, Commit: &h.commit}
}

func appendHard(b []byte, h hardState) []byte {
	b = binary.BigEndian.AppendUint64(b, h.term)
	b = binary.BigEndian.AppendUint64(b, h.vote)
	return binary.BigEndian.AppendUint64(b, h.commit)
}

// beginFrame leaves room for the header; endFrame fills it. off is where the
// frame will stand: it is part of the checksum, so that a frame left over from
// another place is not taken for one.
func beginFrame(b []byte, kind byte) []byte {
	b = append(b, make([]byte, frameHeaderLen)...)
	return append(b, kind)
}

func endFrame(b []byte, off int64) []byte {
	copy(b, frameMagic)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-frameHeaderLen))
	binary.BigEndian.PutUint32(b[8:], frameCRC(b[4:8], b[frameHeaderLen:], off))
	return b
}

func frameCRC(length, body []byte, off int64) uint32 {
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(off))
	c := crc32.Update(0, castagnoli, at[:])
	c = crc32.Update(c, castagnoli, length)
	return crc32.Update(c, castagnoli, body)
}

var (
	errNoFrame  = errors.New("no frame")     // zeros or the end: the log ends here
	errBadFrame = errors.New("broken frame") // something that is no whole frame
)

// frameAt gives the body of the frame at off and where the next one begins.
func frameAt(b []byte, off int) (body []byte, next int, err error) {
	rest := b[off:]
	if len(rest) < frameHeaderLen {
		if allZero(rest) {
			return nil, off, errNoFrame
		}
		return nil, off, errBadFrame
	}
	if !bytes.Equal(rest[:4], frameMagic) {
		if allZero(rest) {
			return nil, off, errNoFrame
		}
		return nil, off, errBadFrame
	}
	n := binary.BigEndian.Uint32(rest[4:])
	if n < 1 || n > maxFrameBody || int(n) > len(rest)-frameHeaderLen {
		return nil, off, errBadFrame
	}
	body = rest[frameHeaderLen : frameHeaderLen+int(n)]
	if frameCRC(rest[4:8], body, int64(off)) != binary.BigEndian.Uint32(rest[8:]) {
		return nil, off, errBadFrame
	}
	return body, off + frameHeaderLen + int(n), nil
}

// laterFrame finds a whole frame somewhere after off, or -1.
func laterFrame(b []byte, off int) int {
	for i := off + 1; i < len(b); {
		j := bytes.Index(b[i:], frameMagic)
		if j < 0 {
			return -1
		}
		if _, _, err := frameAt(b, i+j); err == nil {
			return i + j
		}
		i += j + 1
	}
	return -1
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func appendStart(b []byte, s *start) []byte {
	b = binary.BigEndian.AppendUint64(b, s.prevIndex)
	b = binary.BigEndian.AppendUint64(b, s.prevTerm)
	b = appendHard(b, s.hard)
	b = binary.BigEndian.AppendUint32(b, uint32(s.nodeID))
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.clusterID)))
	b = append(b, s.clusterID...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.voters)))
	for _, v := range s.voters {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func appendEntries(b []byte, h hardState, ents []*pb.Entry) []byte {
	b = appendHard(b, h)
	b = binary.BigEndian.AppendUint32(b, uint32(len(ents)))
	for _, e := range ents {
		b = binary.BigEndian.AppendUint64(b, e.GetIndex())
		b = binary.BigEndian.AppendUint64(b, e.GetTerm())
		b = append(b, byte(e.GetType()))
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.GetData())))
		b = append(b, e.GetData()...)
	}
	return b
}

// cursor reads numbers; ok turns false at the first that is not there.
type cursor struct {
	b  []byte
	ok bool
}

func (c *cursor) take(n int) []byte {
	if !c.ok || n < 0 || n > len(c.b) {
		c.ok = false
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); c.ok {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); c.ok {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u16() int {
	if b := c.take(2); c.ok {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) hard() hardState {
	return hardState{term: c.u64(), vote: c.u64(), commit: c.u64()}
}

func (c *cursor) voters() (out []uint64) {
	for n := c.u16(); n > 0 && c.ok; n-- {
		out = append(out, c.u64())
	}
	return out
}

// done is the error of a body that was too short or too long.
func (c *cursor) done(what string) error {
	if !c.ok || len(c.b) > 0 {
		return fmt.Errorf("%s has the wrong length", what)
	}
	return nil
}

func readStart(body []byte) (*start, error) {
	if len(body) == 0 || body[0] != kindStart {
		return nil, errors.New("first frame is not a start frame")
	}
	c := cursor{body[1:], true}
	s := &start{prevIndex: c.u64(), prevTerm: c.u64(), hard: c.hard(), nodeID: int32(c.u32())}
	s.clusterID = string(c.take(c.u16()))
	s.voters = c.voters()
	return s, c.done("start frame")
}

// readEntries gives entries whose data aliases body.
func readEntries(body []byte) (hardState, []*pb.Entry, error) {
	if len(body) == 0 || body[0] != kindAppend {
		return hardState{}, nil, errors.New("frame is of an unknown kind")
	}
	c := cursor{body[1:], true}
	h := c.hard()
	n := c.u32()
	if int64(n)*21 > int64(len(c.b)) {
		return h, nil, errors.New("frame counts more entries than it can hold")
	}
	ents := make([]*pb.Entry, 0, n)
	for ; n > 0 && c.ok; n-- {
		e := &pb.Entry{Index: new(c.u64()), Term: new(c.u64())}
		if t := c.take(1); c.ok {
			e.Type = pb.EntryType(t[0]).Enum()
		}
		e.Data = c.take(int(c.u32()))
		ents = append(ents, e)
	}
	return h, ents, c.done("append frame")
}
