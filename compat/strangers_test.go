//go:build compat

package compat

// Shows: what strangers may do to a broker costs what docs/limits.md says and
// no more. Each test has a broker of its own, measures it from outside (resident
// memory and descriptors in /proc) and looks at the end whether a client that
// talks sense is still served.

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// crowd opens n connections from several addresses of the loopback network, so
// that ports suffice, by a few goroutines at a time.
func crowd(t *testing.T, b *broker, n int) []*rawConn {
	t.Helper()
	out := make([]*rawConn, n)
	errs := make([]error, n)
	each(n, 64, func(i int) {
		d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/5000))}}
		c, err := d.Dial("tcp", b.addr)
		id := "crowd"
		out[i], errs[i] = &rawConn{t: t, c: c, clientID: &id, timeout: 60 * time.Second}, err
	})
	t.Cleanup(func() {
		for _, r := range out {
			if r.c != nil {
				_ = r.c.Close()
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// each calls fn for 0 to n-1 from so many goroutines.
func each(n, workers int, fn func(i int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				fn(i)
			}
		})
	}
	wg.Wait()
}

// exchange sends a request and reads the answer without decoding it.
func (r *rawConn) exchange(req kmsg.Request) error {
	_ = r.c.SetDeadline(time.Now().Add(r.timeout))
	if _, err := r.c.Write(r.frame(req)); err != nil {
		return err
	}
	return r.skip()
}

// skip reads one answer and forgets it.
func (r *rawConn) skip() error {
	var size [4]byte
	if _, err := io.ReadFull(r.c, size[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, r.c, int64(binary.BigEndian.Uint32(size[:])))
	return err
}

// settled waits until resident memory has stopped changing and gives it.
func (b *broker) settled(t *testing.T) int {
	t.Helper()
	last := b.residentKiB(t)
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		now := b.residentKiB(t)
		if d := now - last; d < 256 && d > -256 {
			return now
		}
		last = now
	}
	return last
}

// all reports the first few errors of many.
func all(t *testing.T, what string, n int, fn func(i int) error) {
	t.Helper()
	var mu sync.Mutex
	var failed []string
	each(n, 64, func(i int) {
		if err := fn(i); err != nil {
			mu.Lock()
			failed = append(failed, fmt.Sprintf("%d: %v", i, err))
			mu.Unlock()
		}
	})
	if len(failed) > 0 {
		t.Errorf("%s: %d of %d failed: %v", what, len(failed), n, failed[:min(3, len(failed))])
	}
}

// sense checks that a client that behaves is served, and quickly.
func (b *broker) sense(t *testing.T) {
	t.Helper()
	r := dial(t, b.addr)
	begun := time.Now()
	topic := r.topic(1)
	resp := ask[*kmsg.ProduceResponse](r, produceRequest(8, -1, topic, batchSpec{recs: values(1, 100)}.bytes()))
	code(t, "a produce beside the strangers", resp.Topics[0].Partitions[0].ErrorCode, 0)
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("a topic and a record beside the strangers took %v", d)
	}
}

// 10,000 connections that do nothing cost less than 20 KiB each: fresh ones,
// ones that have asked for versions and metadata, and ones that waited in a long
// poll before.
func TestIdleCrowd(t *testing.T) {
	if onKafka {
		t.Skip("the bound is Weir's")
	}
	const most = 20 // KiB
	n := 10_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Max < uint64(n+600) {
		n = int(limit.Max) - 600
		t.Logf("%d connections: no more descriptors are allowed here", n)
	}
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	before, files := b.settled(t), b.openFiles(t)
	conns := crowd(t, b, n)
	see := func(what string) {
		t.Helper()
		grown := b.settled(t) - before
		t.Logf("%s: %d KiB for %d connections, %.1f KiB each", what, grown, n, float64(grown)/float64(n))
		if grown > n*most {
			t.Errorf("%s: %.1f KiB each, want less than %d", what, float64(grown)/float64(n), most)
		}
	}
	see("connected")
	all(t, "versions and metadata", n, func(i int) error {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "crowd", "1"
		if err := conns[i].exchange(req); err != nil {
			return err
		}
		m := kmsg.NewPtrMetadataRequest()
		m.Version = 9
		return conns[i].exchange(m)
	})
	see("after versions and metadata")
	fetch := fetchRequest(11, 8000, 1, 1<<20, part{topic: topic})
	all(t, "long polls sent", n, func(i int) error {
		_, err := conns[i].c.Write(conns[i].frame(fetch))
		return err
	})
	see("in a long poll")
	all(t, "long polls", n, func(i int) error { return conns[i].skip() })
	see("after a long poll")
	b.sense(t)
	for _, c := range conns {
		_ = c.c.Close()
	}
	eventually(t, 20*time.Second, "descriptors go back", func() (string, bool) {
		now := b.openFiles(t)
		return fmt.Sprintf("%d, at first %d", now, files), now <= files+5
	})
}

// peak samples resident memory until the function it gives is called, which
// gives the largest growth over the start in KiB.
func (b *broker) peak(t *testing.T) func() int {
	t.Helper()
	start, top := b.residentKiB(t), 0
	stop, wait := make(chan struct{}), sync.WaitGroup{}
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				top = max(top, b.residentKiB(t))
			}
		}
	})
	return func() int {
		close(stop)
		wait.Wait()
		return max(top, b.residentKiB(t)) - start
	}
}

// bound reports what the broker grew by, and fails above the limit.
func bound(t *testing.T, what string, grownKiB, limitMiB int) {
	t.Helper()
	t.Logf("%s: the broker grew by %d MiB", what, grownKiB>>10)
	if grownKiB > limitMiB<<10 && !onKafka {
		t.Errorf("%s: the broker grew by %d MiB, want at most %d", what, grownKiB>>10, limitMiB)
	}
}

// 2,000 connections that write and read all the time are all served.
func TestBusyCrowd(t *testing.T) {
	const n, partitions = 2000, 20
	b := startBroker(t)
	topic := dial(t, b.addr).topic(partitions)
	grown := b.peak(t)
	conns := crowd(t, b, n)
	batch := batchSpec{recs: values(1, 1000)}.bytes()
	var done atomic.Int64
	var slowest atomic.Int64
	until := time.Now().Add(6 * time.Second)
	var wg sync.WaitGroup
	for i, r := range conns {
		wg.Go(func() {
			produce := produceRequest(8, 1, topic, batch)
			produce.Topics[0].Partitions[0].Partition = int32(i % partitions)
			for offset := int64(0); time.Now().Before(until); offset += 10 {
				begun := time.Now()
				err := r.exchange(produce)
				if err == nil {
					err = r.exchange(fetchRequest(11, 100, 1, 20000, part{topic: topic, p: int32(i % partitions), offset: offset, max: 20000, epoch: -1}))
				}
				if err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
				if d := int64(time.Since(begun)); d > slowest.Load() {
					slowest.Store(d)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d writes and reads, the slowest pair took %v", done.Load(), time.Duration(slowest.Load()))
	if done.Load() < n {
		t.Errorf("%d writes and reads by %d connections", done.Load(), n)
	}
	bound(t, "2,000 busy connections", grown(), 200)
}

// Whoever asks for much and reads little is no burden: 200 consumers ask for 100
// MB each and read a byte a second, and 100 clients ask for the metadata of 3,000
// partitions a hundred times over behind a long poll and read nothing.
func TestSlowReaders(t *testing.T) {
	b := startBroker(t)
	r := dial(t, b.addr)
	full := r.topic(1)
	for range 110 {
		r.put(full, batchSpec{recs: values(1, 900_000)})
	}
	r.topic(3000)
	time.Sleep(time.Second)

	grown := b.peak(t)
	conns := crowd(t, b, 200)
	ask := fetchRequest(11, 1000, 1, 100<<20, part{topic: full, max: 100 << 20, epoch: -1})
	all(t, "fetches of 100 MB", len(conns), func(i int) error {
		_, err := conns[i].c.Write(conns[i].frame(ask))
		return err
	})
	for range 3 {
		all(t, "a byte", len(conns), func(i int) error {
			_, err := io.ReadFull(conns[i].c, make([]byte, 1))
			return err
		})
		b.sense(t)
		time.Sleep(time.Second)
	}
	bound(t, "200 slow readers of 100 MB", grown(), 40)
	for _, c := range conns {
		_ = c.c.Close()
	}

	grown = b.peak(t)
	conns = crowd(t, b, 100)
	ask = fetchRequest(11, 20_000, 1, 100, part{topic: full, offset: 110, max: 100, epoch: -1})
	all(t, "pipelined metadata", len(conns), func(i int) error {
		frames := conns[i].frame(ask)
		for range 100 {
			m := kmsg.NewPtrMetadataRequest()
			m.Version = 9
			frames = append(frames, conns[i].frame(m)...)
		}
		_, err := conns[i].c.Write(frames)
		return err
	})
	for range 4 {
		b.sense(t)
		time.Sleep(time.Second)
	}
	bound(t, "100 clients that read none of their 100 answers", grown(), 300)
}

// 200 connections send a frame of the greatest size at once. The frames wait for
// their share of the budget; all are answered.
func TestLargestFrames(t *testing.T) {
	const n, size = 200, 100 << 20
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	conns := crowd(t, b, n)
	batch := batchSpec{recs: values(1, 8)}.bytes()
	req := produceRequest(8, 1, topic, append(batch, make([]byte, 1)...))
	head := func(r *rawConn) []byte { // of a frame whose records are followed by zeros
		f := r.frame(req)
		binary.BigEndian.PutUint32(f, size-4)
		binary.BigEndian.PutUint32(f[len(f)-4-len(batch)-1:], uint32(size-len(f)+len(batch)+1))
		return f
	}
	zeros := make([]byte, 1<<20)
	sent := 30 // the others hold what their heads brought
	if os.Getenv("WEIR_NIGHTLY") != "" {
		sent = n
	}
	grown := b.peak(t)
	begun := time.Now()
	all(t, "heads", n, func(i int) error { _, err := conns[i].c.Write(head(conns[i])); return err })
	var wg sync.WaitGroup
	for _, c := range conns[:sent] {
		wg.Go(func() {
			_ = c.c.SetDeadline(time.Now().Add(2 * time.Minute))
			for left := size - len(head(c)); left > 0; {
				m, err := c.c.Write(zeros[:min(left, len(zeros))])
				if err != nil {
					t.Errorf("a frame stopped %d bytes before its end: %v", left, err)
					return
				}
				left -= m
			}
			if err := c.skip(); err != nil {
				t.Errorf("no answer: %v", err)
			}
		})
	}
	time.Sleep(time.Second)
	b.sense(t)
	wg.Wait()
	t.Logf("%d frames of 100 MiB in %v", sent, time.Since(begun))
	bound(t, "200 frames of 100 MiB", grown(), 800)
}
