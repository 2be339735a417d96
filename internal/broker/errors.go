package broker

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/partition"
)

// code is the one table from Go errors to protocol codes. An error it does not
// know is logged with the place and answered UNKNOWN_SERVER_ERROR.
func (b *Broker) code(err error, where string, args ...any) kafka.Error {
	if err == nil {
		return kafka.NoError
	}
	var (
		code    kafka.Error
		invalid *batch.Invalid
		corrupt *commitlog.CorruptError
		path    *fs.PathError
	)
	switch {
	case errors.As(err, &code):
		return code
	case errors.As(err, &invalid):
		return invalid.Code
	case errors.Is(err, batch.ErrZstd):
		return kafka.ErrUnsupportedCompressionType
	case errors.Is(err, batch.ErrCorrupt):
		b.o.Log.Error("damaged batch", append([]any{"at", where, "err", err}, args...)...)
		return kafka.ErrCorruptMessage
	case errors.Is(err, partition.ErrOffline):
		return kafka.ErrKafkaStorageError
	case errors.As(err, &corrupt):
		b.o.Log.Error("damaged log", append([]any{"at", where, "err", err}, args...)...)
		return kafka.ErrKafkaStorageError
	case errors.As(err, &path):
		b.o.Log.Error("disk refused", append([]any{"at", where, "err", err}, args...)...)
		return kafka.ErrKafkaStorageError
	}
	b.o.Log.Error("unexpected error", append([]any{"at", where, "err", fmt.Sprintf("%v", err)}, args...)...)
	return kafka.ErrUnknownServerError
}
