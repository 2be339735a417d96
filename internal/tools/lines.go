package tools

import (
	"bytes"
	"fmt"
	"io"
)

// lines cuts a stream at a delimiter without copying: the parts alias large
// chunks that are never written again, so that a part may be held until the
// broker has acknowledged it. Only a part that lies across two chunks is
// copied.
type lines struct {
	r     io.Reader
	delim []byte
	max   int // longest part

	chunk  []byte // whole current chunk; chunk[start:end] is not handed out yet
	start  int
	end    int
	seen   int // how far of chunk[start:end] holds no delimiter
	eof    bool
	n      int64
	before func() // called before a read that may block
}

const chunkSize = 1 << 20

func newLines(r io.Reader, delim string, max int) *lines {
	return &lines{r: r, delim: []byte(delim), max: max}
}

// next returns the next part without its delimiter. ok is false at the end.
// What stands behind the last delimiter is a part if it is not empty.
func (l *lines) next() (part []byte, ok bool, err error) {
	for {
		pending := l.chunk[l.start:l.end]
		if i := bytes.Index(pending[l.seen:], l.delim); i >= 0 {
			at := l.seen + i
			l.start += at + len(l.delim)
			l.seen = 0
			l.n++
			return pending[:at:at], true, nil
		}
		l.seen = max(0, len(pending)-len(l.delim)+1)
		if l.eof {
			if len(pending) == 0 {
				return nil, false, nil
			}
			l.start, l.seen = l.end, 0
			l.n++
			return pending[:len(pending):len(pending)], true, nil
		}
		if len(pending) > l.max {
			return nil, false, fmt.Errorf("record %d is longer than %d bytes without a delimiter: check -D, or raise -X message.max.bytes", l.n+1, l.max)
		}
		if l.end == len(l.chunk) {
			size := chunkSize
			for size < 2*len(pending) {
				size *= 2
			}
			next := make([]byte, size)
			l.end = copy(next, pending)
			l.chunk, l.start = next, 0
		}
		if l.before != nil {
			l.before()
		}
		n, err := l.r.Read(l.chunk[l.end:])
		l.end += n
		if err == io.EOF {
			l.eof = true
		} else if err != nil {
			return nil, false, fmt.Errorf("cannot read the input: %w", err)
		}
	}
}
