//go:build compat

package compat

// Shows: lz4 frames that Kafka's own clients cannot read are refused, so that
// none lies in a log and stops every Java consumer there. kafkajs with lz4js
// sends the first kind.

import (
	"encoding/binary"
	"testing"
)

func TestLZ4Frames(t *testing.T) {
	records := func(n int) []byte { return batchSpec{recs: values(n, 50)}.bytes()[61:] }
	// frame is one stored block. The descriptor ends with its checksum.
	frame := func(body []byte, descriptor ...byte) []byte {
		b := append([]byte{0x04, 0x22, 0x4d, 0x18}, descriptor...)
		b = binary.LittleEndian.AppendUint32(b, 1<<31|uint32(len(body)))
		return append(append(b, body...), 0, 0, 0, 0)
	}
	two := records(2)
	one := records(1)
	for _, c := range []struct {
		name string
		body []byte
		want []int16
	}{
		{"independent blocks", frame(two, 0x60, 0x70, 0x73), []int16{0}},
		{"linked blocks", frame(two, 0x40, 0x70, 0xdf), []int16{87, onlyKafka(-1)}},
		{"header checksum of message format 0", frame(two, 0x60, 0x40, 0x1a), []int16{87, onlyKafka(-1)}},
		{"two frames", append(frame(one, 0x60, 0x70, 0x73), frame(two[len(one):], 0x60, 0x70, 0x73)...), []int16{87, onlyKafka(-1)}},
		{"bytes behind the frame", append(frame(two, 0x60, 0x70, 0x73), 1, 2, 3), []int16{87, onlyKafka(-1), onlyKafka(0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dial(t, sharedBroker(t).addr)
			topic := r.topic(1)
			spec := batchSpec{codec: 3, recs: values(2, 50), body: c.body}
			got := r.produce(7, topic, spec.bytes()).ErrorCode
			t.Logf("error %d", got)
			code(t, "Produce", got, c.want...)
		})
	}
}
