package disk

import (
	"fmt"
	"io"
	"sync/atomic"
)

// Shared is a file that closes when its last user lets go: the log that owns it
// holds one reference, every Region on its way to a client another.
type Shared struct {
	File
	refs atomic.Int64
}

// NewShared takes over f; the caller holds the first reference.
func NewShared(f File) *Shared {
	s := &Shared{File: f}
	s.refs.Store(1)
	return s
}

// Acquire takes a reference; false when the file has been closed already.
func (s *Shared) Acquire() bool {
	for {
		n := s.refs.Load()
		if n <= 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a reference back; the last one closes the file.
func (s *Shared) Release() error {
	switch n := s.refs.Add(-1); {
	case n > 0:
		return nil
	case n == 0:
		return s.File.Close()
	default:
		panic(fmt.Sprintf("BUG: file %s released more often than acquired", s.Name()))
	}
}

// Close is Release: a Shared is never closed under its users.
func (s *Shared) Close() error { return s.Release() }

// Region hands out n bytes at off with a reference of their own; false when the
// file has been closed already.
func (s *Shared) Region(off, n int64) (Region, bool) {
	if !s.Acquire() {
		return Region{}, false
	}
	return Region{File: s.File, Off: off, Len: n, shared: s}, true
}

// Hand is Region for a caller who gives up a reference of its own.
func (s *Shared) Hand(off, n int64) Region {
	return Region{File: s.File, Off: off, Len: n, shared: s}
}

// Region is a stretch of a file to be sent. It is passed by value; whoever holds
// it last calls Release exactly once. The zero Region is empty and needs no
// Release (which then does nothing). The bytes are immutable as long as the log
// is not truncated below them; after a truncation a read may come up short.
type Region struct {
	File   File
	Off    int64
	Len    int64
	shared *Shared // nil: the file's life is not ours
}

// memory is a file of bytes that are at hand.
type memory struct {
	File
	b []byte
}

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, m.b[min(off, int64(len(m.b))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (memory) Name() string        { return "memory" }
func (memory) Fd() (uintptr, bool) { return 0, false }

// Load reads the region into memory and gives the file back: a region that is the
// same to whoever reads it, and holds no descriptor. The receiver is released, also
// with an error.
func (r Region) Load() (Region, error) {
	b, err := r.Bytes()
	r.Release()
	return Region{File: memory{b: b}, Len: int64(len(b))}, err
}

// Retain takes one more reference, for a second holder.
func (r Region) Retain() Region {
	if r.shared != nil && !r.shared.Acquire() {
		panic(fmt.Sprintf("BUG: retain of a released region of %s", r.File.Name()))
	}
	return r
}

// Release gives the reference back.
func (r Region) Release() {
	if r.shared != nil {
		_ = r.shared.Release() // closing a file that was only read from: nothing to lose
	}
}

// ReadAt reads bytes of the region; off counts from its start.
func (r Region) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= r.Len {
		return 0, io.EOF
	}
	short := int64(len(p)) > r.Len-off
	if short {
		p = p[:r.Len-off]
	}
	n, err := r.File.ReadAt(p, r.Off+off)
	if err == nil && short {
		err = io.EOF
	}
	if n == len(p) && !short && err == io.EOF {
		err = nil
	}
	return n, err
}

// Bytes reads the whole region into fresh memory, for tests and small reads.
func (r Region) Bytes() ([]byte, error) {
	p := make([]byte, r.Len)
	n, err := r.ReadAt(p, 0)
	if n == len(p) {
		err = nil
	} else if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return p[:n], err
}
