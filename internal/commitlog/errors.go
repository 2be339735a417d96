package commitlog

import (
	"errors"
	"fmt"
)

// ErrClosed is the answer of a log after Close or Delete.
var ErrClosed = errors.New("commitlog: closed")

// ErrGone: the segment was removed under a reader or a compaction, which looks again.
var ErrGone = errors.New("commitlog: segment removed")

// CorruptError says that bytes which were once whole no longer are: damage, not
// the torn end that a crash leaves.
type CorruptError struct {
	File     string
	Position int64
	Err      error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("commitlog: %s damaged at byte %d: %v", e.File, e.Position, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// FailedError is sticky: an earlier write or sync failed so that the state of the
// files is unknown. The log answers reads and refuses writes until it is opened
// again.
type FailedError struct {
	Dir string
	Err error
}

func (e *FailedError) Error() string { return fmt.Sprintf("commitlog: %s failed: %v", e.Dir, e.Err) }
func (e *FailedError) Unwrap() error { return e.Err }
