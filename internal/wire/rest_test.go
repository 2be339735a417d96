package wire

import (
	"encoding/binary"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Shows: a connection that nothing comes in from gives its input buffer and its
// write goroutine back, again and again, and answers afterwards as before,
// however the next request is cut; one that holds half a frame does not; a
// Server that closes does not wait for a resting one.

// padded is a heartbeat with n bytes behind it, which wire does not look at.
func padded(corr int32, n int) []byte {
	b := append(heartbeat(4, corr), make([]byte, n)...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func (w *world) resting() (bufferGone, writerGone bool) {
	synctest.Wait()
	w.srv.mu.Lock()
	defer w.srv.mu.Unlock()
	for c := range w.srv.conns {
		return c.in == nil, !c.queue.started
	}
	w.Fatal("no connection")
	return false, false
}

func TestRest(t *testing.T) {
	pending := func(req *Request) Response {
		return Response{Pending: &fakePending{deadline: time.Now().Add(time.Second), resp: echo(req)}}
	}
	for name, h := range map[string]handlerFunc{"ready": echo, "pending": pending} {
		for _, cut := range []int{1, 2, 3, 4, 5, 20, 1 << 20} {
			inBubble(t, Options{}, h, func(w *world) {
				for corr := range int32(4) {
					for i, request := range [][]byte{heartbeat(4, 2*corr), padded(2*corr+1, 100_000)} {
						n := min(cut, len(request))
						w.send(request[:n])
						time.Sleep(time.Millisecond)
						if n < len(request) {
							w.send(request[n:])
						}
						w.wantOrder(2*corr+int32(i), 2*corr+int32(i)+1)
					}
					if buffer, writer := w.resting(); buffer || writer != (name == "ready") {
						t.Fatalf("%s, right after the answer: buffer gone %v, writer gone %v", name, buffer, writer)
					}
					time.Sleep(restAfter + 2*time.Second)
					if buffer, writer := w.resting(); !buffer || !writer {
						t.Fatalf("%s, cut at %d, at rest: buffer gone %v, writer gone %v", name, cut, buffer, writer)
					}
				}
			})
		}
	}
	// Half a frame, in the small buffer and in one of its own.
	for _, n := range []int{3, 50, 70000} {
		inBubble(t, Options{}, echo, func(w *world) {
			request := padded(7, 100_000)
			w.send(request[:n])
			time.Sleep(restAfter + 4*time.Second)
			if buffer, _ := w.resting(); buffer {
				t.Fatal("rests in the middle of a request")
			}
			w.send(request[n:])
			w.wantOrder(7, 8)
		})
	}
	// Something comes at the very tick at which it is asked to rest.
	inBubble(t, Options{}, echo, func(w *world) {
		for corr := range int32(20) {
			time.Sleep(restAfter)
			go func() { _, _ = w.nc.Write(heartbeat(4, corr)) }()
			w.wantOrder(corr, corr+1)
		}
	})
	inBubble(t, Options{}, echo, func(w *world) {
		time.Sleep(2 * restAfter)
		begun := time.Now()
		_ = w.srv.Close()
		if d := time.Since(begun); d != 0 {
			t.Errorf("closing took %v", d)
		}
	})
}

// The same over sockets: what hundreds of busy connections held is gone when they
// rest.
func TestRestGivesMemoryBack(t *testing.T) {
	s := NewServer(handlerFunc(echo), testTable(), Options{})
	addr := listen(t, s)
	before := heap()
	var conns []net.Conn
	request := padded(0, 30_000)
	for range 300 {
		nc := dial(t, addr)
		for range 8 { // its buffer grows to 64 KiB
			if _, err := nc.Write(request); err != nil {
				t.Fatal(err)
			}
			readFrame(t, nc)
		}
		conns = append(conns, nc)
	}
	s.mu.Lock()
	for c := range s.conns {
		c.askRest() // as the sweeper does after restAfter
	}
	s.mu.Unlock()
	eventually(t, "all to rest", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			if c.rest.Load() != resting {
				return false
			}
		}
		return true
	})
	s.pool.trim()
	s.pool.trim()
	if each := (heap() - before) / 300; each > 6<<10 { // half of it the client's end
		t.Errorf("%d bytes of heap for each connection at rest", each)
	}
	for _, nc := range conns {
		if _, err := nc.Write(request); err != nil {
			t.Fatal(err)
		}
		readFrame(t, nc)
	}
}

// A connection that has sent a large frame does not keep it until its next
// request: 200 that sent 100 MiB each once made a broker of 12 GiB.
func TestLargeFramesAreForgotten(t *testing.T) {
	s := NewServer(handlerFunc(echo), testTable(), Options{})
	s.pool.maxIdle = 0 // or all would use the one buffer in turn
	addr := listen(t, s)
	before := heap()
	request := padded(0, 4<<20)
	for range 20 {
		nc := dial(t, addr)
		if _, err := nc.Write(request); err != nil {
			t.Fatal(err)
		}
		readFrame(t, nc)
	}
	s.pool.trim()
	s.pool.trim()
	if grown := heap() - before; grown > 4<<20+1<<20 { // request itself, and little else
		t.Errorf("%d KiB of heap after 20 frames of 4 MiB", grown>>10)
	}
}

func heap() int64 {
	runtime.GC()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return int64(ms.HeapAlloc)
}
