package wire

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	minClassBits = 9 // 512 bytes
	maxClassBits = 31
	numClasses   = (maxClassBits-minClassBits)*4 + 1
)

// buffer is pooled memory with a reference count. The connection that reads
// into it holds one reference, every queued response that may still look at a
// request in it another.
type buffer struct {
	b       []byte // full capacity of its class
	class   int
	refs    atomic.Int32
	pool    *bufferPool
	budget  *budget // nil: nothing is charged
	charged int64   // bytes of the budget returned with the buffer
	over    bool    // it overdraws the budget
}

func (b *buffer) retain() { b.refs.Add(1) }

func (b *buffer) release() {
	switch n := b.refs.Add(-1); {
	case n == 0:
		b.pool.put(b)
	case n < 0:
		panic("BUG: wire buffer released twice")
	}
}

// bufferPool keeps free buffers by size class, newest on top so that the warm
// one is used again. sync.Pool would lose frames of a megabyte at every second
// collection, and a broker with a small heap collects all the time.
type bufferPool struct {
	maxIdle int64

	mu   sync.Mutex
	idle int64
	free [numClasses][]*buffer
	low  [numClasses]int // fewest free buffers since the last trim
}

// classOf returns the smallest class that holds n bytes: four steps per
// doubling, so that a frame of a megabyte and a bit does not take two.
func classOf(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	top := bits.Len(uint(n-1)) - 1 // 1<<top < n <= 2<<top
	step := 1 << (top - 2)
	return (top-minClassBits)*4 + (n-1<<top+step-1)/step
}

func classSize(class int) int {
	base := 1 << (minClassBits + class/4)
	return base + base/4*(class%4)
}

// get returns a buffer of at least n bytes with one reference.
func (p *bufferPool) get(n int) *buffer {
	class := classOf(n)
	p.mu.Lock()
	if l := p.free[class]; len(l) > 0 {
		b := l[len(l)-1]
		l[len(l)-1] = nil
		p.free[class] = l[:len(l)-1]
		p.low[class] = min(p.low[class], len(l)-1)
		p.idle -= int64(len(b.b))
		p.mu.Unlock()
		b.refs.Store(1)
		return b
	}
	p.mu.Unlock()
	b := &buffer{b: make([]byte, classSize(class)), class: class, pool: p}
	b.refs.Store(1)
	return b
}

func (p *bufferPool) put(b *buffer) {
	if b.budget != nil {
		b.budget.release(b.charged)
		if b.over {
			b.budget.endOver()
		}
		b.budget, b.charged, b.over = nil, 0, false
	}
	p.mu.Lock()
	if p.idle+int64(len(b.b)) <= p.maxIdle {
		p.idle += int64(len(b.b))
		p.free[b.class] = append(p.free[b.class], b)
	}
	p.mu.Unlock()
}

// trim drops the buffers nobody needed since the last trim.
func (p *bufferPool) trim() {
	p.mu.Lock()
	for class, l := range p.free {
		n := p.low[class]
		clear(l[len(l)-n:])
		p.free[class] = l[:len(l)-n]
		p.idle -= int64(n) * int64(classSize(class))
		p.low[class] = len(l) - n
	}
	p.mu.Unlock()
}
