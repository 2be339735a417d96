package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// readAll takes records from the input and hands them to the client, which
// blocks while its buffer is full.
func (p *producer) readAll(rctx, sctx context.Context, files []string, delim string, max int) error {
	if len(files) == 0 {
		return p.readLines(rctx, sctx, p.in.Stdin, delim, max)
	}
	for _, name := range files {
		if rctx.Err() != nil {
			return nil
		}
		var r io.Reader = p.in.Stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return fmt.Errorf("cannot read %s: %w", name, errors.Unwrap(err))
			}
			defer f.Close()
			r = f
		}
		if p.f.lines || p.f.envelope {
			if err := p.readLines(rctx, sctx, r, delim, max); err != nil {
				return err
			}
			continue
		}
		b, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		if len(b) > max {
			return fmt.Errorf("%s is larger than %d bytes, too much for one record: -l sends its lines", name, max)
		}
		rec := p.record()
		rec.Value = b
		if !p.take(rctx, sctx, rec) {
			return nil
		}
	}
	return nil
}

// readLines cuts r into records. A read from a terminal or a pipe cannot be
// broken off, so it happens in a goroutine of its own when r may block; that
// one is left behind in a Read when the command is interrupted.
func (p *producer) readLines(rctx, sctx context.Context, r io.Reader, delim string, max int) error {
	l := newLines(&interruptible{ctx: rctx, r: r}, delim, max)
	for {
		b, ok, err := l.next()
		if rctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		rec := p.record()
		if p.f.envelope {
			if len(bytes.TrimSpace(b)) == 0 {
				continue
			}
			if err := readEnvelope(b, rec); err != nil {
				return fmt.Errorf("line %d is no record as consume -J prints it: %w", l.n, err)
			}
		} else {
			p.fill(rec, b)
		}
		if !p.take(rctx, sctx, rec) {
			return nil
		}
	}
}

// interruptible makes Read return when ctx ends, though the reader below it
// may block for ever.
type interruptible struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte
	have []byte
	done chan readResult
	err  error
}

type readResult struct {
	n   int
	err error
}

func (i *interruptible) Read(p []byte) (int, error) {
	if len(i.have) == 0 && i.err == nil {
		if i.done == nil {
			i.done = make(chan readResult, 1)
			i.buf = make([]byte, 256<<10)
			go i.read()
		}
		select {
		case res := <-i.done:
			i.have, i.err = i.buf[:res.n], res.err
		case <-i.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(p, i.have)
	if i.have = i.have[n:]; len(i.have) > 0 {
		return n, nil
	}
	if i.err != nil {
		return n, i.err
	}
	go i.read()
	return n, nil
}

func (i *interruptible) read() {
	n, err := i.r.Read(i.buf)
	i.done <- readResult{n, err}
}

// record is the next record of a slab.
func (p *producer) record() *kgo.Record {
	if len(p.slab) == 0 {
		p.slab = make([]kgo.Record, 256)
	}
	r := &p.slab[0]
	p.slab = p.slab[1:]
	r.Key, r.Headers = p.key, p.headers
	if p.f.partition >= 0 {
		r.Partition = p.f.partition
	}
	return r
}

// fill makes a line into key and value.
func (p *producer) fill(r *kgo.Record, line []byte) {
	r.Value = line
	if p.keyDelim != nil {
		if k, v, ok := bytes.Cut(line, p.keyDelim); ok {
			r.Key, r.Value = k[:len(k):len(k)], v
			if p.isNull(k) {
				r.Key = nil
			}
		}
	}
	if p.isNull(r.Value) {
		r.Value = nil
	}
}

func (p *producer) isNull(v []byte) bool { return p.null != nil && bytes.Equal(v, p.null) }

// envelope is a line of consume -J.
type envelope struct {
	TS      *int64    `json:"ts"`
	Headers []*string `json:"headers"`
	H64     []*string `json:"headers_base64"`
	Key     *string   `json:"key"`
	Key64   *string   `json:"key_base64"`
	Value   *string   `json:"payload"`
	Value64 *string   `json:"payload_base64"`
}

func readEnvelope(line []byte, r *kgo.Record) error {
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	var err error
	if r.Key, err = either(e.Key, e.Key64); err != nil {
		return fmt.Errorf("key_base64: %w", err)
	}
	if r.Value, err = either(e.Value, e.Value64); err != nil {
		return fmt.Errorf("payload_base64: %w", err)
	}
	if e.TS != nil && *e.TS >= 0 {
		r.Timestamp = time.UnixMilli(*e.TS)
	}
	flat, b64 := e.Headers, false
	if e.H64 != nil {
		flat, b64 = e.H64, true
	}
	if len(flat)%2 != 0 {
		return errors.New("headers are name and value in turn, and one value is missing")
	}
	if len(flat) > 0 {
		r.Headers = slices.Clone(r.Headers)
	}
	for i := 0; i < len(flat); i += 2 {
		if flat[i] == nil {
			return errors.New("a header has no name")
		}
		h := kgo.RecordHeader{Key: *flat[i]}
		if b64 {
			h.Value, err = either(nil, flat[i+1])
		} else {
			h.Value, err = either(flat[i+1], nil)
		}
		if err != nil {
			return fmt.Errorf("headers_base64: %w", err)
		}
		r.Headers = append(r.Headers, h)
	}
	return nil
}

func either(plain, b64 *string) ([]byte, error) {
	switch {
	case plain != nil:
		return []byte(*plain), nil
	case b64 != nil:
		return base64.StdEncoding.DecodeString(*b64)
	}
	return nil, nil
}
