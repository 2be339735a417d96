package broker

import (
	"encoding/binary"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/wire"
)

// encodeFetch writes a fetch response's body with the records left out: they
// follow as regions of files. kmsg would copy them. A test holds it against kmsg's
// own decoding, for every version.
//
// Parts of one topic that follow each other share its entry, as Kafka's do.
func encodeFetch(version int16, sessionID int32, parts []fetchPart, committed bool) *wire.Raw {
	e := fetchEncoder{version: version, flexible: version >= 12, byID: version >= 13, committed: committed}
	e.buf = make([]byte, 0, 64+len(parts)*96)
	e.i32(0) // throttle time
	if version >= 7 {
		e.i16(0)
		e.i32(sessionID)
	}
	topics := 0
	for i := range parts {
		if i == 0 || !e.sameTopic(&parts[i], &parts[i-1]) {
			topics++
		}
	}
	e.arrayLen(topics)
	for i := 0; i < len(parts); {
		j := i + 1
		for j < len(parts) && e.sameTopic(&parts[j], &parts[i]) {
			j++
		}
		e.topic(parts[i:j])
		i = j
	}
	e.tags()
	e.cut(nil)
	return &wire.Raw{Parts: e.parts}
}

type fetchEncoder struct {
	version                   int16
	flexible, byID, committed bool
	buf                       []byte
	from                      int // start in buf of what is not yet in parts
	parts                     []wire.Part
}

func (e *fetchEncoder) sameTopic(a, b *fetchPart) bool {
	if e.byID {
		return a.key.id == b.key.id
	}
	return a.key.topic == b.key.topic
}

func (e *fetchEncoder) topic(parts []fetchPart) {
	if e.byID {
		e.buf = append(e.buf, parts[0].key.id[:]...)
	} else {
		e.str(parts[0].key.topic)
	}
	e.arrayLen(len(parts))
	for i := range parts {
		e.partition(&parts[i])
	}
	e.tags()
}

func (e *fetchEncoder) partition(fp *fetchPart) {
	r := &fp.read
	e.i32(fp.key.n)
	e.i16(int16(fp.code))
	e.i64(int64(r.HighWatermark))
	e.i64(int64(r.Stable))
	if e.version >= 5 {
		e.i64(int64(r.LogStart))
	}
	if e.committed && fp.code == kafka.NoError {
		e.arrayLen(len(r.Aborted))
		for _, a := range r.Aborted {
			e.i64(int64(a.ID))
			e.i64(int64(a.First))
			e.tags()
		}
	} else if fp.code == kafka.ErrUnknownTopicOrPartition || fp.code == kafka.ErrUnknownTopicID {
		e.arrayLen(0) // what is not there has an empty list in Kafka, the rest none
	} else {
		e.arrayLen(-1)
	}
	if e.version >= 11 {
		e.i32(-1) // preferred read replica
	}
	n := int(r.Bytes)
	if e.flexible {
		e.buf = binary.AppendUvarint(e.buf, uint64(n)+1)
	} else {
		e.i32(int32(n))
	}
	if n > 0 {
		e.cut(fp)
	}
	if !e.flexible {
		return
	}
	if !r.Diverging {
		e.buf = append(e.buf, 0)
		return
	}
	e.buf = append(e.buf, 1, 0, 13) // one tag, number 0, 13 bytes
	e.i32(int32(r.DivergeEpoch))
	e.i64(int64(r.DivergeEnd))
	e.buf = append(e.buf, 0)
}

// cut ends a piece of bytes; with fp, its records' region follows.
func (e *fetchEncoder) cut(fp *fetchPart) {
	if len(e.buf) > e.from {
		e.parts = append(e.parts, wire.Part{Bytes: e.buf[e.from:len(e.buf):len(e.buf)]})
		e.from = len(e.buf)
	}
	if fp != nil {
		e.parts = append(e.parts, wire.Part{Region: fp.read.Slice.Region})
	}
}

func (e *fetchEncoder) i16(v int16) { e.buf = binary.BigEndian.AppendUint16(e.buf, uint16(v)) }
func (e *fetchEncoder) i32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }
func (e *fetchEncoder) i64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

func (e *fetchEncoder) str(s string) {
	if e.flexible {
		e.buf = binary.AppendUvarint(e.buf, uint64(len(s))+1)
	} else {
		e.i16(int16(len(s)))
	}
	e.buf = append(e.buf, s...)
}

// arrayLen writes an array's length; -1 is null.
func (e *fetchEncoder) arrayLen(n int) {
	if e.flexible {
		e.buf = binary.AppendUvarint(e.buf, uint64(n+1))
	} else {
		e.i32(int32(n))
	}
}

// tags writes an empty section of tagged fields where the version has one.
func (e *fetchEncoder) tags() {
	if e.flexible {
		e.buf = append(e.buf, 0)
	}
}
