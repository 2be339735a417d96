package wire

import (
	"fmt"
	"io"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/metrics"
)

const (
	// outSize is the out buffer; what does not fit goes in several writes.
	outSize = 64 << 10
	// writeChunk is the most that one write takes on, so that the sweeper sees
	// progress.
	writeChunk = 256 << 10
	// copyMax is the largest region that is copied into the out buffer. On
	// loopback (2 cores, Linux 6.18, client included) six regions of 4, 16 and
	// 32 KiB in one response cost 1.8, 0.7 and 0.55 ns of CPU a byte copied, and
	// 3.8, 1.0 and 0.6 by sendfile; from 64 KiB on sendfile wins, at 1 MiB with
	// 0.37 against 0.55.
	copyMax = 32 << 10
)

// sender is the output side; see the package text for who owns it.
type sender struct {
	outBuf   *buffer // nil while nothing is to be sent
	out      []byte  // in outBuf unless a large response outgrew it
	outSince time.Time
	file     fileSender
}

// respond appends a ready response to the out buffer, or sends it when it is
// large. It settles Raw.
func (c *Conn) respond(it *item, now time.Time) error {
	r := &it.resp
	if r.Raw == nil && r.Msg == nil {
		if !r.None {
			panic("BUG: empty wire.Response")
		}
		c.measure(it, 0, now)
		return nil
	}
	c.openOut(now)
	start := len(c.out)
	c.out = appendResponseHeader(c.out, it.correlationID, it.flexible)
	var later int64
	if r.Raw != nil {
		defer r.Raw.release()
		for i := range r.Raw.Parts {
			p := &r.Raw.Parts[i]
			later += int64(len(p.Bytes)) + p.Region.Len
		}
	} else {
		c.out = r.Msg.AppendTo(c.out)
	}
	if err := patchSize(c.out, start, later); err != nil {
		return err
	}
	size := int64(len(c.out)-start) + later
	if r.Raw != nil {
		for i := range r.Raw.Parts {
			if err := c.sendPart(&r.Raw.Parts[i]); err != nil {
				return err
			}
		}
	}
	c.measure(it, size, now)
	if len(c.out) >= outSize/2 {
		return c.flush(false)
	}
	return nil
}

func (c *Conn) measure(it *item, size int64, now time.Time) {
	c.srv.meters[it.key].Done(it.version, metrics.Request{
		RequestBytes: int64(it.requestBytes), ResponseBytes: size,
		Local: it.handle, Remote: now.Sub(it.handled), Total: now.Sub(it.received),
	})
}

func (c *Conn) openOut(now time.Time) {
	if c.outBuf == nil {
		c.outBuf = c.srv.pool.get(outSize)
		c.out = c.outBuf.b[:0]
	}
	if len(c.out) == 0 {
		c.outSince = now
	}
}

func (c *Conn) freeOut() {
	if c.outBuf != nil {
		c.outBuf.release()
		c.outBuf, c.out = nil, nil
	}
}

// write appends b to the out buffer, or sends it past the buffer when large.
func (c *Conn) write(b []byte) error {
	c.openOut(time.Time{})
	if len(c.out)+len(b) <= cap(c.out) {
		c.out = append(c.out, b...)
		return nil
	}
	if err := c.flush(true); err != nil {
		return err
	}
	if len(b) <= outSize/2 {
		c.openOut(time.Time{})
		c.out = append(c.out, b...)
		return nil
	}
	return c.writeAll(b, false)
}

// sendPart appends or sends a part. More always follows or is flushed in the
// end, so whatever is written here may wait for it (MSG_MORE).
func (c *Conn) sendPart(p *Part) error {
	if len(p.Bytes) > 0 {
		if err := c.write(p.Bytes); err != nil {
			return err
		}
	}
	r := p.Region
	switch {
	case r.Len <= 0:
		return nil
	case r.Len <= copyMax:
		n := int(r.Len)
		if len(c.out)+n > cap(c.out) {
			if err := c.flush(true); err != nil {
				return err
			}
		}
		c.openOut(time.Time{})
		end := len(c.out)
		c.out = c.out[:end+n]
		return readRegion(r, c.out[end:], 0)
	}
	if err := c.flush(true); err != nil {
		return err
	}
	if c.raw != nil {
		if fd, ok := r.File.Fd(); ok {
			if done, err := c.sendFile(fd, r.Off, r.Len); done || err != nil {
				return err
			}
		}
	}
	return c.sendCopy(r)
}

// sendCopy sends a region through pooled memory.
func (c *Conn) sendCopy(r disk.Region) error {
	buf := c.srv.pool.get(int(min(r.Len, writeChunk)))
	defer buf.release()
	for off := int64(0); off < r.Len; {
		n := min(int64(len(buf.b)), r.Len-off)
		if err := readRegion(r, buf.b[:n], off); err != nil {
			return err
		}
		off += n
		if err := c.writeAll(buf.b[:n], off < r.Len); err != nil {
			return err
		}
	}
	return nil
}

// readRegion fills p from off on. A region that turns out shorter than its length,
// which the client has been promised, is an error.
func readRegion(r disk.Region, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read of %d bytes at %d of a log: %w", len(p), r.Off+off, err)
}

// flush writes the out buffer and gives it back. more says that bytes follow at
// once, which may let them share a segment.
func (c *Conn) flush(more bool) error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.writeAll(c.out, more)
	c.freeOut()
	return err
}

func (c *Conn) writeAll(b []byte, more bool) error {
	c.writes.Add(1)
	for len(b) > 0 {
		n := min(len(b), writeChunk)
		last := n == len(b)
		var err error
		if (more || !last) && c.raw != nil {
			err = c.writeMore(b[:n])
		} else {
			_, err = c.nc.Write(b[:n])
		}
		if err != nil {
			c.writes.Add(1)
			return err
		}
		b = b[n:]
		c.writes.Add(2)
	}
	c.writes.Add(1)
	return nil
}
