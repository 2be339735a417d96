package lab

import (
	"encoding/binary"
	"time"
)

// StampBytes is how long a stamp is: a record that carries one has at least as
// many bytes.
const StampBytes = 28

// Stamp marks the records of one run, so that a reader in the same process can
// tell when each was due and sent, by the one clock.
type Stamp struct{ Run uint64 }

const stampMagic = 0x77656972 // "weir"

// write puts the stamp over the first bytes of v, which grows if it is shorter.
func (s *Stamp) write(v []byte, due, sent time.Duration) []byte {
	for len(v) < StampBytes {
		v = append(v, 0)
	}
	binary.BigEndian.PutUint32(v, stampMagic)
	binary.BigEndian.PutUint64(v[4:], s.Run)
	binary.BigEndian.PutUint64(v[12:], uint64(due))
	binary.BigEndian.PutUint64(v[20:], uint64(sent))
	return v
}

// read gives the times of a record of this run; false: it is another's.
func (s *Stamp) read(v []byte) (due, sent time.Duration, ok bool) {
	if len(v) < StampBytes || binary.BigEndian.Uint32(v) != stampMagic || binary.BigEndian.Uint64(v[4:]) != s.Run {
		return 0, 0, false
	}
	return time.Duration(binary.BigEndian.Uint64(v[12:])), time.Duration(binary.BigEndian.Uint64(v[20:])), true
}
