//go:build compat

package compat

// Shows: much at once stays within its bounds. B046: a fetch over many
// partitions gives no more than the broker's cap, and comes round to all. B042:
// five hundred waiting consumers cost next to nothing. B069: the longest name
// there is, twelve partitions of it.

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// readRound reads every partition of a topic within one fetch session until all
// of them are at their end; it gives the number of fetches that brought data.
func readRound(t *testing.T, r *rawConn, topic string, partitions int, end int64, most int) int {
	t.Helper()
	const all = 2147483647
	next := make([]int64, partitions)
	var parts []part
	for p := range partitions {
		parts = append(parts, part{topic: topic, p: int32(p), max: 10 << 20, epoch: -1})
	}
	var sid, epoch int32
	served := make([]bool, partitions)
	for fetches := 1; ; fetches++ {
		req := fetchRequest(11, 500, 1, all, parts...)
		req.SessionID, req.SessionEpoch = sid, epoch
		resp := ask[*kmsg.FetchResponse](r, req)
		if resp.ErrorCode != 0 {
			t.Fatalf("fetch %d: error %d", fetches, resp.ErrorCode)
		}
		sid, epoch = resp.SessionID, epoch+1
		total := 0
		parts = parts[:0]
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				total += len(p.RecordBatches)
				if p.ErrorCode != 0 {
					t.Fatalf("partition %d: error %d", p.Partition, p.ErrorCode)
				}
				whole := readBatches(t, p.RecordBatches)
				if len(whole) == 0 {
					continue
				}
				served[p.Partition] = true
				next[p.Partition] = whole[len(whole)-1].last + 1
				parts = append(parts, part{topic: topic, p: p.Partition, offset: next[p.Partition], max: 10 << 20, epoch: -1})
			}
		}
		if total > most {
			t.Errorf("fetch %d: %d bytes, cap and one batch are %d", fetches, total, most)
		}
		left := 0
		for _, n := range next {
			if n < end {
				left++
			}
		}
		if left == 0 {
			return fetches
		}
		if total == 0 || fetches > 200 {
			t.Fatalf("after %d fetches %d of %d partitions are not read; the last gave %d bytes", fetches, left, partitions, total)
		}
	}
}

// fillAll writes one batch into each partition, some at a time.
func fillAll(t *testing.T, r *rawConn, topic string, partitions int, batch []byte, chunk int) {
	t.Helper()
	for from := 0; from < partitions; from += chunk {
		req := produceRequest(8, 1, topic)
		for p := from; p < min(from+chunk, partitions); p++ {
			rp := kmsg.NewProduceRequestTopicPartition()
			rp.Partition, rp.Records = int32(p), batch
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
		}
		for _, p := range ask[*kmsg.ProduceResponse](r, req).Topics[0].Partitions {
			if p.ErrorCode != 0 {
				t.Fatalf("produce to partition %d: error %d", p.Partition, p.ErrorCode)
			}
		}
	}
}

func TestManyPartitions(t *testing.T) {
	t.Run("B046 the default cap", func(t *testing.T) {
		b := sharedBroker(t)
		r := dial(t, b.addr)
		const n, dflt = 80, 57671680
		topic := r.topic(n)
		one := batchSpec{recs: values(1, 1_000_000)}.bytes()
		fillAll(t, r, topic, n, one, 10)
		before := 0
		if !onKafka && !b.foreign {
			before = b.residentKiB(t)
		}
		if got := readRound(t, r, topic, n, 1, dflt+len(one)); got < 2 || got > 4 {
			t.Errorf("%d fetches for %d MB", got, n)
		}
		if !onKafka && !b.foreign {
			if grown := b.residentKiB(t) - before; grown > 64<<10 {
				t.Errorf("resident memory rose by %d KiB", grown)
			}
		}
		code(t, "delete", r.delete(topic), 0)
	})
	t.Run("B046 2000 partitions", func(t *testing.T) {
		b := startBroker(t, "fetch.max.bytes=1048576")
		r := dial(t, b.addr)
		n := 2000
		if onKafka {
			n = 300 // the real one needs a minute to lead 2000
		}
		topic := r.topic(int32(n))
		one := batchSpec{recs: values(1, 10_000)}.bytes()
		fillAll(t, r, topic, n, one, 200)
		least := n*len(one)/(1<<20+len(one)) + 1
		if got := readRound(t, r, topic, n, 1, 1<<20+len(one)); got < least || got > 2*least {
			t.Errorf("%d fetches, want about %d", got, least)
		}
	})
}

// cpuTicks is the processor time of the broker, in ticks of 10 ms.
func (b *broker) cpuTicks(t testing.TB) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(b.pid) + "/stat")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(after)
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return user + system
}

func TestWaitingConsumersCostNothing(t *testing.T) { // B042
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	const n = 500
	conns := make([]*rawConn, n)
	corr := make([]int32, n)
	req := fetchRequest(11, 20_000, 1, 1<<20, at(topic, 0, 0))
	for i := range conns {
		conns[i] = dial(t, b.addr)
		conns[i].timeout = 40 * time.Second
		corr[i] = conns[i].send(req)
	}
	time.Sleep(time.Second) // connecting is over
	from := b.cpuTicks(t)
	time.Sleep(4 * time.Second)
	used := b.cpuTicks(t) - from
	t.Logf("%d waiting fetches cost %d ms of CPU in 4 s", n, 10*used)
	if !onKafka && used > 20 {
		t.Errorf("%d waiting fetches cost %d ms of CPU in 4 s", n, 10*used)
	}
	begin := time.Now()
	r.put(topic, batchSpec{recs: values(1, 10)})
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			got := c.recv(req, corr[i]).(*kmsg.FetchResponse).Topics[0].Partitions[0]
			if got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
				t.Errorf("consumer %d: error %d, %d bytes", i, got.ErrorCode, len(got.RecordBatches))
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("one record woke %d consumers in %v", n, took)
	}
}

// TestManyNames is B068's other half: names that clash are found as fast among
// ten thousand topics as among ten.
func TestManyNames(t *testing.T) {
	if onKafka {
		t.Skip("ten thousand topics take the real one minutes")
	}
	b := startBroker(t)
	r := dial(t, b.addr)
	r.timeout = 60 * time.Second
	for from := 0; from < 10_000; from += 1000 {
		req := createRequest(5, "", 1, 1)
		req.Topics = nil
		for i := range 1000 {
			req.Topics = append(req.Topics, createRequest(5, fmt.Sprint("a.b_", from+i), 1, 1).Topics[0])
		}
		for _, got := range ask[*kmsg.CreateTopicsResponse](r, req).Topics {
			if got.ErrorCode != 0 {
				t.Fatalf("%s: error %d", got.Topic, got.ErrorCode)
			}
		}
	}
	begin := time.Now()
	for i := range 200 {
		code(t, "a clash", r.create(fmt.Sprint("a_b.", i*50), 1, 1).ErrorCode, 17)
		code(t, "the same", r.create(fmt.Sprint("a.b_", i*50), 1, 1).ErrorCode, 36)
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("400 refusals among 10,000 topics took %v", took)
	}
	b.kill(t) // closing ten thousand logs in order shows nothing here
}

func TestLongestName(t *testing.T) { // B069
	b := startBroker(t, "log.segment.delete.delay.ms=500")
	r := dial(t, b.addr)
	const n = 12
	name := strings.Repeat("n", 249)
	for round := range 2 {
		if got := r.create(name, n, 1, "file.delete.delay.ms=500"); got.ErrorCode != 0 {
			t.Fatalf("round %d, create: error %d %s", round, got.ErrorCode, deref(got.ErrorMessage))
		}
		r.settle(name, n)
		fillAll(t, r, name, n, batchSpec{recs: values(1, 100)}.bytes(), n)
		if got := r.latest(name); got != 1 {
			t.Errorf("round %d: end offset %d", round, got)
		}
		code(t, fmt.Sprintf("round %d, delete", round), r.delete(name), 0)
		if round == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	eventually(t, 90*time.Second, "the files go", func() (string, bool) {
		dirs, _ := filepath.Glob(filepath.Join(b.logs, "nnn*"))
		for _, d := range dirs {
			if len(filepath.Base(d)) > 255 {
				t.Fatalf("folder name of %d bytes", len(filepath.Base(d)))
			}
		}
		return fmt.Sprint(len(dirs), " folders"), len(dirs) == 0
	})
}
