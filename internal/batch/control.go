package batch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirmq/weir/internal/kafka"
)

// The kinds of control record that end a transaction.
const (
	Abort  int16 = 0
	Commit int16 = 1
)

// Control makes the batch of one record that ends a producer's transaction in a
// partition (Kafka's EndTransactionMarker): key is version and kind, value is
// version and coordinator epoch.
func Control(kind int16, pid kafka.ProducerID, epoch int16, coordinatorEpoch int32, nowMs int64) View {
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(kind))
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(coordinatorEpoch))
	b := NewBuilder(BuilderOptions{
		ProducerID: pid, ProducerEpoch: epoch, BaseSequence: NoSequence, Transactional: true, Control: true,
	})
	b.Add(nowMs, key, value)
	return b.Bytes()
}

// Marker is the content of a control batch.
type Marker struct {
	Kind             int16 // Abort, Commit, or a kind of Kafka's own quorum
	CoordinatorEpoch int32 // of Abort and Commit
}

// Marker reads a control batch. The error wraps ErrCorrupt.
func (v View) Marker() (Marker, error) {
	var m Marker
	if !v.Control() {
		return m, fmt.Errorf("%w: not a control batch", ErrCorrupt)
	}
	done := errors.New("first record read")
	err := v.Each(func(r *Record) error {
		if len(r.Key) < 4 {
			return fmt.Errorf("%w: control record with a key of %d bytes", ErrCorrupt, len(r.Key))
		}
		m.Kind = int16(binary.BigEndian.Uint16(r.Key[2:]))
		if m.Kind == Abort || m.Kind == Commit {
			if len(r.Value) < 6 {
				return fmt.Errorf("%w: end of transaction with a value of %d bytes", ErrCorrupt, len(r.Value))
			}
			m.CoordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
		}
		return done
	})
	if err == done {
		return m, nil
	}
	if err == nil {
		err = fmt.Errorf("%w: control batch without a record", ErrCorrupt)
	}
	return m, err
}
