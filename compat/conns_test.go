//go:build compat

package compat

// Shows: how many connections there may be and how long they may be silent.
// B174: the count of an address comes back to zero however its connections end.
// B176: silence ends a connection, a long poll or a heartbeat does not. B178:
// without descriptors the broker refuses what is new and keeps what it has.

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// greets says whether the broker takes a connection and answers on it.
func greets(c net.Conn) bool {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}); err != nil {
		return false
	}
	var size [4]byte
	_, err := io.ReadFull(c, size[:])
	return err == nil
}

func TestConnectionsPerAddress(t *testing.T) { // B174
	b := startBroker(t, "max.connections.per.ip=20", "connections.max.idle.ms=3000")
	time.Sleep(500 * time.Millisecond) // the harness's own are gone
	for round := range 4 {
		var taken []*net.TCPConn
		refused := 0
		for range 25 {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if greets(c) {
				taken = append(taken, c.(*net.TCPConn))
			} else {
				refused++
			}
		}
		if len(taken) != 20 || refused != 5 {
			t.Errorf("round %d: %d taken, %d refused; want 20 and 5", round, len(taken), refused)
		}
		for i, c := range taken {
			if i%2 == 0 {
				c.SetLinger(0) // a reset
				c.Close()
			} else if round%2 == 0 {
				c.Close()
			} else { // the broker ends it
				c.SetDeadline(time.Now().Add(20 * time.Second))
				io.Copy(io.Discard, c)
			}
		}
		time.Sleep(700 * time.Millisecond)
	}
	if onKafka {
		return
	}
	log := tail(b.outPath(), 1<<20)
	if n := strings.Count(log, "connection refused"); n != 20 {
		t.Errorf("%d log lines for 20 refused connections", n)
	}
}

func TestSilence(t *testing.T) { // B176
	b := startBroker(t, "connections.max.idle.ms=3000")
	r := dial(t, b.addr)
	topic := r.topic(1)
	var wg sync.WaitGroup
	wg.Go(func() { // silent from the start, and after one request
		for _, greet := range []bool{false, true} {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if greet && !greets(c) {
				t.Error("no answer")
			}
			begin := time.Now()
			c.SetDeadline(begin.Add(15 * time.Second))
			_, err = io.Copy(io.Discard, c)
			if took := time.Since(begin); err != nil || took < 2500*time.Millisecond || took > 8*time.Second {
				t.Errorf("greeted %v: ended after %v with %v, want about 3 s", greet, took, err)
			}
		}
	})
	wg.Go(func() { // a long poll
		c := dial(t, b.addr)
		req := fetchRequest(11, 10_000, 1, 1<<20, at(topic, 0, 0))
		corr := c.send(req)
		begin := time.Now()
		got, err := c.readFrame()
		took := time.Since(begin)
		if onKafka { // which may count it as idle
			t.Logf("the long poll on Kafka: %v after %v", err, took)
			return
		}
		if err != nil || took < 9500*time.Millisecond {
			t.Errorf("the long poll ended after %v: %v", took, err)
			return
		}
		c.decode(req, got[4:])
		_ = corr
		if len(c.versions()) == 0 {
			t.Error("the connection is of no use after the long poll")
		}
	})
	wg.Go(func() { // speaks every second
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		for i := range 10 {
			if c.SetDeadline(time.Now().Add(10 * time.Second)); !speaks(c) {
				t.Errorf("closed at word %d", i)
				return
			}
			time.Sleep(time.Second)
		}
	})
	wg.Wait()
}

// speaks sends ApiVersions and reads the whole answer.
func speaks(c net.Conn) bool {
	if _, err := c.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}); err != nil {
		return false
	}
	r := rawConn{c: c, timeout: 10 * time.Second}
	_, err := r.readFrame()
	return err == nil
}

func TestNoDescriptorsLeft(t *testing.T) { // B178
	if onKafka {
		t.Skip("the real Kafka halts when it cannot open a segment")
	}
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		missing(t, "prlimit is not installed")
	}
	b := startBroker(t)
	b.stop(t)
	b.wrap = []string{prlimit, "--nofile=256:256"}
	b.start(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	group := unique(t)
	r.coordinator(group)
	before := len(tail(b.outPath(), 1<<20))
	var conns []net.Conn
	for range 400 {
		c, err := net.DialTimeout("tcp", b.addr, 5*time.Second)
		if err != nil {
			break
		}
		defer c.Close()
		conns = append(conns, c)
	}
	time.Sleep(time.Second)
	for i := range 20 { // who is in goes on
		if p := r.produce(8, topic, batchSpec{recs: values(1, 10)}.bytes()); p.ErrorCode != 0 {
			t.Fatalf("record %d: error %d", i, p.ErrorCode)
		}
		if p := r.fetch(topic, int64(i)); p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
			t.Fatalf("fetch %d: error %d", i, p.ErrorCode)
		}
	}
	code(t, "commit", outsider(r, group).commit(commit{topic, 0, 3, -1, ""})[0], 0)
	wide := unique(t)
	made := r.create(wide, 100, 1)
	t.Logf("create 100 partitions: error %d %s", made.ErrorCode, deref(made.ErrorMessage))
	if n := b.openFiles(t); n > 256 {
		t.Errorf("%d descriptors: the limit is not at work", n)
	}
	for _, c := range conns[:len(conns)/2] {
		c.Close()
	}
	eventually(t, 20*time.Second, "a new connection", func() (string, bool) { return "refused", ping(b.addr) == nil })
	if grown := len(tail(b.outPath(), 1<<20)) - before; grown > 200_000 {
		t.Errorf("%d bytes of log", grown)
	}
	for _, c := range conns {
		c.Close()
	}
	r = dial(t, b.addr)
	dirs := kmsg.NewPtrDescribeLogDirsRequest()
	dirs.Version = 4
	for _, d := range ask[*kmsg.DescribeLogDirsResponse](r, dirs).Dirs {
		code(t, "log dir "+d.Dir, d.ErrorCode, 0)
	}
	if made.ErrorCode == 0 {
		eventually(t, 30*time.Second, "all partitions online", func() (string, bool) {
			bad := 0
			for p := range int32(100) {
				if r.list(5, wide, p, -1).ErrorCode != 0 {
					bad++
				}
			}
			return fmt.Sprint(bad, " offline"), bad == 0
		})
		fillAll(t, r, wide, 100, batchSpec{recs: values(1, 10)}.bytes(), 100)
	} else if r.exists(wide) {
		t.Error("a topic that was refused is there")
	}
	r = again(t, b, true, topic)
	if got := r.latest(topic); got != 20 {
		t.Errorf("end %d after a restart, want 20", got)
	}
}
