//go:build compat

package compat

// Shows: no acknowledged record is lost and none is doubled while the broker
// dies 20 times (WEIR_KILLS: as often as it says) under load. Kafka's verifiable producer and an idempotent
// franz-go producer write with acks=all through every kill -9; afterwards each
// value that was acknowledged is in the log exactly once, in order, and no value
// is there twice. Case B125, and B012's plain form.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestKills(t *testing.T) {
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("WEIR_KILLS")); err == nil {
		kills = n
	} else if onKafka {
		kills = 3 // each costs the real one half a minute
	}
	kafka := filepath.Join(peers(t), "kafka")
	b := startBroker(t)
	r := dial(t, b.addr)
	verifiable, franz := r.topic(3), r.topic(1)

	// Kafka's verifiable producer: prints each acknowledged value.
	config := filepath.Join(t.TempDir(), "producer.properties")
	if err := os.WriteFile(config, []byte("enable.idempotence=true\nretries=2147483647\ndelivery.timeout.ms=300000\nreconnect.backoff.max.ms=200\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	vp := exec.Command(kafka, "kafka-verifiable-producer", "--bootstrap-server", b.addr, "--topic", verifiable, "--acks", "-1", "--throughput", "2000", "--command-config", config)
	pipe, err := vp.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	vp.Stderr = &errs
	if err := vp.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { vp.Process.Kill() })
	var wg sync.WaitGroup
	acked := map[int]bool{}
	var failures []string
	var ackedCount atomic.Int64
	wg.Go(func() {
		for sc := bufio.NewScanner(pipe); sc.Scan(); {
			var ev struct {
				Name, Value, Message string
				Topic                string
			}
			if json.Unmarshal(sc.Bytes(), &ev) != nil {
				continue
			}
			switch ev.Name {
			case "producer_send_success":
				n, _ := strconv.Atoi(ev.Value)
				acked[n] = true
				ackedCount.Add(1)
			case "producer_send_error":
				if strings.Contains(ev.Message, "after producer has been closed") {
					continue // we stopped it
				}
				failures = append(failures, sc.Text())
			}
		}
	})

	// franz-go: one record after the other is promised, none may fail.
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.DefaultProduceTopic(franz), kgo.RecordRetries(1<<30), kgo.ProducerLinger(time.Millisecond), kgo.MaxBufferedRecords(2000),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	stop := make(chan struct{})
	franzSent := 0
	var franzAcked, franzFailed atomic.Int64
	wg.Go(func() {
		for tick := time.NewTicker(500 * time.Microsecond); ; <-tick.C {
			select {
			case <-stop:
				tick.Stop()
				return
			default:
			}
			cl.Produce(t.Context(), &kgo.Record{Value: strconv.AppendInt(nil, int64(franzSent), 10)}, func(_ *kgo.Record, err error) {
				if err != nil {
					franzFailed.Add(1)
					t.Errorf("franz-go: %v", err)
				} else {
					franzAcked.Add(1)
				}
			})
			franzSent++
		}
	})

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var downtime time.Duration
	for round := range kills {
		before, beforeFranz := ackedCount.Load(), franzAcked.Load()
		eventually(t, 60*time.Second, fmt.Sprint("acknowledgements in round ", round), func() (string, bool) {
			a, f := ackedCount.Load()-before, franzAcked.Load()-beforeFranz
			return fmt.Sprintf("%d and %d", a, f), a > 0 && f > 0
		})
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		b.kill(t)
		downtime += b.start(t)
	}
	t.Logf("mean time from start to the first answer: %v", downtime/time.Duration(kills))
	before := ackedCount.Load()
	eventually(t, 60*time.Second, "acknowledgements after the last kill", func() (string, bool) {
		return fmt.Sprint(ackedCount.Load()), ackedCount.Load() > before+100
	})
	close(stop)
	vp.Process.Signal(syscall.SIGTERM)
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	vp.Wait()
	for _, f := range failures[:min(3, len(failures))] {
		t.Errorf("verifiable producer: %s", f)
	}

	got := readAll(t, b.addr, verifiable, 3)
	// One value may come after a larger one where a retry met a new epoch of the
	// producer; what matters is that each is there, and once.
	count := map[int]int{}
	where := map[int]string{}
	firstDouble := ""
	for p, vs := range got {
		for _, v := range vs {
			count[v.n]++
			at := fmt.Sprintf("partition %d %s", p, v.at)
			if count[v.n] == 2 && firstDouble == "" {
				firstDouble = fmt.Sprintf("%d at %s and at %s", v.n, where[v.n], at)
			}
			where[v.n] = at
		}
	}
	lost, doubled := 0, 0
	for v := range acked {
		if count[v] == 0 {
			lost++
		}
	}
	for _, n := range count {
		if n > 1 {
			doubled++
		}
	}
	if onKafka && doubled > 0 {
		t.Logf("Kafka doubled %d; first: %s", doubled, firstDouble) // FINDINGS.md
		doubled = 0
	}
	if lost > 0 || doubled > 0 || len(acked) == 0 {
		text := errs.String()
		t.Errorf("verifiable producer: %d acknowledged, %d lost, %d doubled; first: %s\n%s", len(acked), lost, doubled, firstDouble, text[max(0, len(text)-4000):])
	}
	all := readAll(t, b.addr, franz, 1)[0]
	for i, v := range all {
		if v.n != i {
			t.Fatalf("franz-go: record %d holds %d (%s)", i, v.n, v.at)
		}
	}
	if len(all) != franzSent || franzFailed.Load() > 0 {
		t.Errorf("franz-go: %d sent, %d failed, %d in the log", franzSent, franzFailed.Load(), len(all))
	}
	t.Logf("%d kills: %d and %d records acknowledged", kills, len(acked), franzSent)
}

// number is one record's value and the batch it lies in.
type number struct {
	n  int
	at string
}

// readAll reads numbers from the start to the end of every partition.
func readAll(t *testing.T, addr, topic string, partitions int) [][]number {
	t.Helper()
	r := dial(t, addr)
	out := make([][]number, partitions)
	for p := range partitions {
		end := r.list(5, topic, int32(p), -1).Offset
		for next := int64(0); next < end; {
			resp := ask[*kmsg.FetchResponse](r, fetchRequest(11, 500, 1, 20<<20, part{topic: topic, p: int32(p), offset: next, max: 20 << 20, epoch: -1}))
			got := resp.Topics[0].Partitions[0]
			if got.ErrorCode != 0 {
				t.Fatalf("fetch %s-%d from %d: error %d", topic, p, next, got.ErrorCode)
			}
			from := next
			for _, s := range readBatches(t, got.RecordBatches) {
				if s.base != next && s.last >= from {
					t.Fatalf("%s-%d: batch at %d, want one at %d", topic, p, s.base, next)
				}
				at := fmt.Sprintf("batch %d-%d, producer %d epoch %d sequence %d, leader epoch %d", s.base, s.last, s.pid, s.pepoch, s.seq, s.epoch)
				for _, one := range s.records {
					n, err := strconv.Atoi(string(one.value))
					if err != nil {
						t.Fatal(err)
					}
					out[p] = append(out[p], number{n, at})
				}
				next = s.last + 1
			}
			if next == from {
				t.Fatalf("%s-%d: nothing at %d, end is %d", topic, p, from, end)
			}
		}
	}
	return out
}
