package partition

// A power cut after every file operation of a Manager: appends, flushes, rolls,
// checkpoints, retention, compaction, DeleteRecords, topics made and deleted, stops in
// order. Each clone starts without help, with every partition online, and holds what
// was synced and no record twice or at a wrong offset. Field case B130's plain form:
// every side file is on the way.

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
)

// crashKeys is how many keys the records of the test have in turn.
const crashKeys = 13

// known is what a partition may not lose at a moment.
type known struct {
	tp      kafka.TopicPartition
	id      kafka.TopicID
	flushed kafka.Offset // was safe before the cut
	start   kafka.Offset // as acknowledged by DeleteRecords
}

type crashClone struct {
	fs    *disk.Mem
	image *metadata.Image
	delta *metadata.Delta
	known []known
	after string
}

func numbered(n kafka.Offset) batch.View {
	b := batch.NewBuilder(batch.BuilderOptions{NowMs: 1, ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1})
	b.Add(1, fmt.Append(nil, n%crashKeys), append(strconv.AppendInt(nil, int64(n), 10), bytes.Repeat([]byte{' '}, 50)...))
	return b.Bytes()
}

func crashSettings(topic string) *Settings {
	s := plain()
	s.Log.SegmentBytes, s.Log.IndexIntervalBytes, s.Log.FileDeleteDelayMs = 2000, 300, 0
	if topic == "compacted" {
		s.Log.Compact, s.Log.Delete, s.Log.MinDirtyRatio, s.Log.MaxCompactionLagMs = true, false, 0, 1<<62
	}
	return s
}

func openCrash(t *testing.T, fs disk.FS) *Manager {
	t.Helper()
	m, err := OpenManager(Options{FS: fs, Dirs: []string{"/data"}, Self: 1, Log: slog.New(slog.DiscardHandler),
		Settings: func(_ *metadata.Image, topic string) *Settings { return crashSettings(topic) }})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// check opens a clone and looks at every partition.
func (c *crashClone) check(t *testing.T, seed uint64) {
	t.Helper()
	fatalf := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d, cut after %s: %s", seed, c.after, fmt.Sprintf(format, args...))
	}
	m := openCrash(t, c.fs)
	defer m.Close()
	m.Apply(c.image, c.delta)
	for _, k := range c.known {
		p := m.Get(k.id, k.tp.Partition)
		if p == nil {
			fatalf("%s is not there", k.tp)
		}
		if err := p.Failed(); err != nil {
			fatalf("%s: %v", k.tp, err)
		}
		start, end := p.log.LogStart(), p.log.End()
		if end < k.flushed || start < k.start {
			fatalf("%s is %d..%d, want at least the end %d and the start %d", k.tp, start, end, k.flushed, k.start)
		}
		last := make(map[kafka.Offset]kafka.Offset)
		next := start
		if err := p.Scan(func(b batch.View) error {
			return b.Each(func(r *batch.Record) error {
				off := b.Offset(r)
				n, _ := strconv.ParseInt(string(bytes.TrimRight(r.Value, " ")), 10, 64)
				if kafka.Offset(n) != off || off < next || k.tp.Topic != "compacted" && off != next && off >= start {
					return fmt.Errorf("record %d at offset %d, after %d", n, off, next-1)
				}
				next = off + 1
				last[off%crashKeys] = off
				return nil
			})
		}); err != nil {
			fatalf("%s: %v", k.tp, err)
		}
		for off := max(end-crashKeys, start); off < end; off++ {
			if last[off%crashKeys] != off {
				fatalf("%s: the newest record of key %d is at %d, want %d", k.tp, off%crashKeys, last[off%crashKeys], off)
			}
		}
		if tk, err := p.Append(time.Now(), numbered(end), -1); err != nil || tk.Base != end {
			fatalf("%s: append behind %d: %+v %v", k.tp, end, tk, err)
		}
	}
}

func TestCrashEverywhere(t *testing.T) {
	seeds, share := uint64(3), 3
	if n, err := strconv.ParseUint(os.Getenv("WEIR_SEEDS"), 10, 64); err == nil {
		seeds, share = max(n/200, 1), 1
	}
	total := 0
	for seed := range seeds {
		total += crashEverywhere(t, seed, share)
	}
	t.Logf("%d clones", total)
}

// crashEverywhere takes a clone after one operation in share.
func crashEverywhere(t *testing.T, seed uint64, share int) int {
	rng := rand.New(rand.NewPCG(seed, 3))
	mem := disk.NewMem(seed)
	if err := mem.MkdirAll("/data"); err != nil {
		t.Fatal(err)
	}
	if err := mem.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	f := disk.NewFaulty(mem)
	topics := []*metadata.TopicRecord{topic("plain", topicA, 2), topic("compacted", kafka.TopicID{2}, 1)}
	image, delta := image(topics...)

	var mu sync.Mutex
	pick := rand.New(rand.NewPCG(seed, 4))
	var clones []*crashClone
	var m *Manager
	starts := make(map[*Partition]kafka.Offset)
	note := func(op disk.Op, path string) { // from any goroutine
		mu.Lock()
		defer mu.Unlock()
		if pick.IntN(share) > 0 {
			return
		}
		how := disk.Crash(pick.IntN(4))
		c := &crashClone{after: fmt.Sprintf("%s of %s (%d)", op, path, how), image: image, delta: delta}
		if m != nil {
			for _, p := range m.All() {
				if p.log != nil {
					c.known = append(c.known, known{p.TP, p.ID, p.log.Flushed(), starts[p]})
				}
			}
		}
		c.fs = mem.CrashCloneAs(how)
		clones = append(clones, c)
	}
	f.After(note)
	opened := openCrash(t, f)
	opened.Apply(image, delta)
	mu.Lock()
	m = opened
	mu.Unlock()
	for range 120 {
		all := m.All()
		p := all[rng.IntN(len(all))]
		switch rng.IntN(16) {
		case 0:
			p.flush()
		case 1:
			m.checkpoint(false)
		case 2:
			cleanAll(m)
		case 3:
			m.retain(time.Now())
			m.sweep(time.Now())
		case 4:
			if p.TP.Topic == "plain" && p.log.End() > 0 {
				start, err := p.DeleteRecords(kafka.Offset(rng.Int64N(int64(p.log.End()) + 1)))
				if err == nil {
					err = m.SaveStarts()
				}
				if err == nil {
					mu.Lock()
					starts[p] = start
					mu.Unlock()
				} else if err != kafka.ErrOffsetOutOfRange {
					t.Fatal(err)
				}
			}
		case 5:
			if rng.IntN(3) == 0 { // a stop in order and a start
				mu.Lock()
				old := m
				m = nil
				ends := make(map[kafka.TopicPartition][2]kafka.Offset)
				for _, p := range old.All() {
					ends[p.TP] = [2]kafka.Offset{p.log.LogStart(), p.log.End()}
				}
				mu.Unlock()
				if err := old.Close(); err != nil {
					t.Fatal(err)
				}
				n := openCrash(t, f)
				n.Apply(image, delta)
				mu.Lock()
				clear(starts)
				for _, p := range n.All() {
					if got := [2]kafka.Offset{p.log.LogStart(), p.log.End()}; got != ends[p.TP] {
						t.Fatalf("seed %d: %s is %v after a stop in order, was %v", seed, p.TP, got, ends[p.TP])
					}
					starts[p] = p.log.LogStart()
				}
				m = n
				mu.Unlock()
			}
		default:
			for range 1 + rng.IntN(8) {
				if _, err := p.Append(time.Now(), numbered(p.log.End()), -1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	f.After(nil)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range clones {
		c.check(t, seed)
	}
	return len(clones)
}
