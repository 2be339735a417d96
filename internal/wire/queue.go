package wire

import (
	"sync"
	"sync/atomic"
	"time"
)

// item is a response on its way: with a Pending, with a Raw, or encoded.
type item struct {
	correlationID int32
	key, version  int16
	flexible      bool
	resp          Response
	encoded       []byte // header and body, when the response was ready behind a pending one
	encodedBuf    *buffer
	frame         *buffer // the request's memory, retained while resp may look at it
	bytes         int64   // counted against QueueBytes

	requestBytes      int
	received, handled time.Time
	handle            time.Duration
}

// queue holds the responses of one connection from the first Pending on.
type queue struct {
	wake  chan struct{} // capacity 1: something was pushed
	space chan struct{} // capacity 1: something was popped

	started bool           // read goroutine only
	retire  atomic.Bool    // the write goroutine ends as soon as nothing is queued
	writer  sync.WaitGroup // the write goroutine

	mu    sync.Mutex
	items []item // ring
	head  int
	n     int
	bytes int64
}

// push queues a response, waiting while the queue is full, and starts the write
// goroutine if need be. Read goroutine only. It fails when the connection died;
// the item is settled then.
func (q *queue) push(c *Conn, it item, frame *buffer) error {
	it.bytes = 256
	switch {
	case it.resp.Msg != nil:
		it.encodedBuf = c.srv.pool.get(4 << 10)
		b := appendResponseHeader(it.encodedBuf.b[:0], it.correlationID, it.flexible)
		b = it.resp.Msg.AppendTo(b)
		if err := patchSize(b, 0, 0); err != nil {
			it.encodedBuf.release()
			return err
		}
		it.encoded, it.resp.Msg = b, nil
		it.bytes += int64(cap(b))
	case it.resp.Pending == nil && it.resp.Raw == nil:
		if !it.resp.None {
			panic("BUG: empty wire.Response")
		}
		if !it.resp.Close {
			return nil
		}
	case frame != nil:
		frame.retain()
		it.frame = frame
		it.bytes += int64(it.requestBytes)
	}
	for {
		q.mu.Lock()
		if q.n == 0 || q.n < c.srv.opts.QueueMax && q.bytes+it.bytes <= c.srv.opts.QueueBytes &&
			(it.encoded == nil || c.srv.encoded.Load() <= c.srv.opts.EncodedBytes) {
			break
		}
		q.mu.Unlock()
		select {
		case <-q.space:
		case <-c.done:
			it.cancel()
			return errClose
		}
	}
	if q.n == len(q.items) {
		grown := make([]item, max(1, 2*len(q.items)))
		for i := range q.n {
			grown[i] = q.items[(q.head+i)%len(q.items)]
		}
		q.items, q.head = grown, 0
	}
	q.items[(q.head+q.n)%len(q.items)] = it
	q.n++
	q.bytes += it.bytes
	c.srv.encoded.Add(int64(cap(it.encoded)))
	c.queued.Add(1)
	q.mu.Unlock()
	if !q.started {
		q.started = true
		q.writer.Go(c.writeLoop)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// peek returns the i-th queued item, or nil. It stays valid until it is popped
// or the ring grows, so only what was copied from it may be used across a wait.
func (q *queue) peek(i int) (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i >= q.n {
		return item{}, false
	}
	return q.items[(q.head+i)%len(q.items)], true
}

// pop removes the head, which the caller has sent and settled.
func (q *queue) pop(c *Conn) {
	q.mu.Lock()
	it := &q.items[q.head]
	q.bytes -= it.bytes
	c.srv.encoded.Add(-int64(cap(it.encoded)))
	*it = item{}
	q.head = (q.head + 1) % len(q.items)
	q.n--
	q.mu.Unlock()
	c.activity.Add(1)
	c.queued.Add(-1)
	select {
	case q.space <- struct{}{}:
	default:
	}
}

// waitEmpty waits until everything queued is sent or the connection is dead.
func (q *queue) waitEmpty(c *Conn) {
	for c.queued.Load() > 0 {
		select {
		case <-q.space:
		case <-c.done:
			return
		}
	}
}

// shut waits for the write goroutine and settles what it left. The connection
// is dead already.
func (q *queue) shut(c *Conn) {
	q.writer.Wait()
	for {
		it, ok := q.peek(0)
		if !ok {
			return
		}
		it.cancel()
		q.pop(c)
	}
}

// cancel settles an item that is not sent.
func (it *item) cancel() {
	if it.resp.Pending != nil {
		it.resp.Pending.Cancel()
	}
	if it.resp.Raw != nil {
		it.resp.Raw.release()
	}
	it.free()
}

// free returns the item's memory.
func (it *item) free() {
	if it.frame != nil {
		it.frame.release()
	}
	if it.encodedBuf != nil {
		it.encodedBuf.release()
	}
}

func (r *Raw) release() {
	if r.Release != nil {
		r.Release()
	}
}

// writeLoop is the write goroutine. It sends queued responses in order and
// flushes when the next one is not ready.
func (c *Conn) writeLoop() {
	var timer *time.Timer
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for {
		it, ok := c.queue.peek(0)
		if !ok {
			if c.queue.retire.Load() {
				return
			}
			select {
			case <-c.queue.wake:
				continue
			case <-c.done:
				return
			}
		}
		if p := it.resp.Pending; p != nil {
			select {
			case <-p.Ready():
			default:
				// queued is not zero, so the out buffer is ours.
				if err := c.flush(false); err != nil {
					c.writeFailed(err)
					return
				}
				var due <-chan time.Time
				if d := p.Deadline(); !d.IsZero() {
					if timer == nil {
						timer = time.NewTimer(time.Until(d))
					} else {
						timer.Reset(time.Until(d))
					}
					due = timer.C
				}
				select {
				case <-p.Ready():
				case <-due:
				case <-c.done:
					return // shut cancels
				}
			}
			closing := it.resp.Close
			c.queue.settle() // from here on it is ours to release, not shut's
			now := time.Now()
			it.resp = p.Response(now)
			it.resp.Close = it.resp.Close || closing
			if it.resp.Pending != nil {
				panic("BUG: Pending.Response returned a Pending")
			}
			if err := c.sendItem(&it, now); err != nil {
				c.writeFailed(err)
				return
			}
		} else {
			c.queue.settle()
			if err := c.sendItem(&it, time.Now()); err != nil {
				c.writeFailed(err)
				return
			}
		}
		if _, more := c.queue.peek(1); !more || it.resp.Close {
			if err := c.flush(false); err != nil {
				c.writeFailed(err)
				return
			}
		}
		if it.resp.Close {
			c.linger()
			c.kill()
			return
		}
		c.queue.pop(c)
	}
}

// settle marks the head as taken over: shut only removes it.
func (q *queue) settle() {
	q.mu.Lock()
	it := &q.items[q.head]
	it.resp, it.frame, it.encodedBuf = Response{}, nil, nil
	q.mu.Unlock()
}

func (c *Conn) sendItem(it *item, now time.Time) error {
	defer it.free()
	if it.encoded != nil {
		if err := c.write(it.encoded); err != nil {
			return err
		}
		c.measure(it, int64(len(it.encoded)), now)
		return nil
	}
	return c.respond(it, now)
}

func (c *Conn) writeFailed(err error) {
	if !quiet(err) {
		c.meter.Killed("failed")
		c.srv.warn("connection failed", "listener", c.listener, "addr", c.addr(), "err", err)
	}
	c.kill()
}
