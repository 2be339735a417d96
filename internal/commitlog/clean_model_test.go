package commitlog

// Compaction against a model. A seed makes a world of random batches, rolls, runs of
// the cleaner with little memory, restarts and power cuts; the model remembers every
// record that was ever written and knows which of them may be missing: one that a
// later record of its key stands for, and a tombstone whose time is over. Every file
// operation of a run can be followed by crash clones of each kind, and each must open
// without help and hold the same. Field case B132.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// modelSeeds is how many worlds the test lives through; WEIR_SEEDS asks for more.
func modelSeeds(def uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WEIR_SEEDS"), 10, 64); err == nil {
		return n
	}
	return def
}

// written is a record as it was produced.
type written struct {
	key, value string
	tombstone  bool
	at         int // the first try to clean after it, counted from 1; 0: none yet
}

// cleanModel is what a compacted log may hold.
type cleanModel struct {
	*world
	seed    uint64
	step    int
	now     time.Time
	keepMs  int64
	records []written
	cleaned kafka.Offset // no run has gone past
	tries   []time.Time  // of runs
	seq     [3]int32     // next of each producer
}

func (m *cleanModel) fatalf(format string, args ...any) {
	m.Helper()
	logs := m.logs.String()
	m.Fatalf("seed %d step %d: %s\n%s", m.seed, m.step, fmt.Sprintf(format, args...), logs[max(0, len(logs)-1500):])
}

// check compares a log with the model.
func (m *cleanModel) check(l *Log) {
	m.Helper()
	end := l.End()
	there := make([]bool, end)
	next := kafka.Offset(0)
	for _, s := range l.segments() {
		c := &Cleaning{l: l, limits: CleanLimits{}.filled()}
		c.readBuf = make([]byte, 4096)
		err := c.walkWhole(s, s.base, func(v batch.View, _ int64) error {
			if v.BaseOffset() < next || v.BaseOffset() < s.base {
				m.fatalf("batch %v after offset %d in segment %d", v, next-1, s.base)
			}
			next = v.LastOffset() + 1
			return v.Each(func(r *batch.Record) error {
				off := v.Offset(r)
				want := m.records[off]
				if string(r.Key) != want.key || string(r.Value) != want.value || (r.Value == nil) != want.tombstone {
					m.fatalf("offset %d holds %q=%q, want %+v", off, r.Key, r.Value, want)
				}
				there[off] = true
				return nil
			})
		})
		if err != nil {
			m.fatalf("%v", err)
		}
	}
	if next > end {
		m.fatalf("a batch ends at %d, the log at %d", next-1, end)
	}
	later := map[string]kafka.Offset{} // of each key, the next record behind the one looked at
	for off := end - 1; off >= 0; off-- {
		r := m.records[off]
		if !there[off] {
			over, has := later[r.key]
			old := r.tombstone && r.at > 0 && m.now.Sub(m.tries[r.at-1]).Milliseconds() >= m.keepMs
			if off >= m.cleaned || !old && (!has || over >= m.cleaned) {
				m.fatalf("offset %d (%+v) is gone; cleaned to %d, its key comes again at %d (%v), last try %d", off, r, m.cleaned, over, has, r.at)
			}
		}
		later[r.key] = off
	}
}

// checkProducers: what a producer sent last is known, in full.
func (m *cleanModel) checkProducers(l *Log) {
	m.Helper()
	last := map[kafka.ProducerID]int32{}
	for _, p := range l.Producers(m.now) {
		last[p.ID] = p.LastSequence
	}
	for id := 1; id < len(m.seq); id++ {
		if got, ok := last[kafka.ProducerID(id)]; m.seq[id] > 0 && (!ok || got != m.seq[id]-1) {
			m.fatalf("producer %d is known up to %d (%v), want %d", id, got, ok, m.seq[id]-1)
		}
	}
}

// cut forgets what a power cut took. Which producers that touched is not followed:
// they begin anew.
func (m *cleanModel) cut(end kafka.Offset) {
	if int(end) < len(m.records) {
		m.records = m.records[:end]
		for i := range m.seq {
			m.seq[i] = -1
		}
	}
}

func (m *cleanModel) append(rng *rand.Rand) {
	id := rng.IntN(3)
	o := batch.BuilderOptions{ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1, NowMs: m.now.UnixMilli()}
	if id > 0 {
		if m.seq[id] < 0 {
			m.seq[id] = 0
			for _, p := range m.l.Producers(m.now) {
				if p.ID == kafka.ProducerID(id) {
					m.seq[id] = p.LastSequence + 1
				}
			}
		}
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = kafka.ProducerID(id), 0, m.seq[id]
	}
	if rng.IntN(8) == 0 {
		o.Codec = batch.LZ4
	}
	b := batch.NewBuilder(o)
	n := 1 + rng.IntN(4)
	for range n {
		r := written{key: "k" + strconv.Itoa(rng.IntN(12)), tombstone: rng.IntN(5) == 0}
		if r.tombstone {
			b.Add(m.now.UnixMilli(), []byte(r.key), nil)
		} else {
			r.value = strconv.Itoa(len(m.records)) + strings.Repeat("x", rng.IntN(20))
			b.Add(m.now.UnixMilli(), []byte(r.key), []byte(r.value))
		}
		m.records = append(m.records, r)
	}
	a, err := m.l.Append(m.now, b.Bytes(), 0)
	if err != nil || a.Duplicate || int(a.Last)+1 != len(m.records) {
		m.fatalf("append: %+v, %v", a, err)
	}
	if id > 0 {
		m.seq[id] += int32(n)
	}
}

func (m *cleanModel) roll() {
	if m.l.active().size == 0 {
		return // two segments of one name
	}
	if err := m.l.roll(m.now, m.l.End()); err != nil {
		m.fatalf("roll: %v", err)
	}
}

// clean tries a run, and notes what it may take away.
func (m *cleanModel) clean(rng *rand.Rand) {
	m.tries = append(m.tries, m.now)
	active := m.l.active().base
	for i := range m.records[:active] {
		if m.records[i].at == 0 {
			m.records[i].at = len(m.tries)
		}
	}
	m.cleaned = max(m.cleaned, active)
	limits := CleanLimits{Buffer: 4096}
	if rng.IntN(2) == 0 {
		limits.KeyBytes = int64(1+rng.IntN(10)) * keySlotBytes
	}
	c, err := m.l.PrepareClean(m.now, m.l.End(), limits)
	if err != nil {
		m.fatalf("prepare: %v", err)
	}
	if c == nil {
		return
	}
	if rng.IntN(10) == 0 {
		c.Abort()
		return
	}
	m.cfg.RecoveryPoint = m.l.Flushed() // as Commit wants it
	before := m.l.Cleaned()
	if _, err := c.Commit(m.now); err != nil {
		m.fatalf("commit: %v", err)
	}
	if m.l.Cleaned() < before || m.l.Cleaned() > active {
		m.fatalf("cleaned went from %d to %d, the active segment begins at %d", before, m.l.Cleaned(), active)
	}
}

// opened opens a crash clone beside the world and looks at it.
func (m *cleanModel) opened(fs *disk.Mem, cfg Config, flushed kafka.Offset) *Log {
	m.Helper()
	cfg.FS = fs
	l, err := Open(cfg)
	if err != nil {
		m.fatalf("open after a crash: %v", err)
	}
	if l.End() < flushed || int(l.End()) > len(m.records) {
		m.fatalf("end %d after a crash, %d were flushed and %d written", l.End(), flushed, len(m.records))
	}
	m.check(l)
	if int(l.End()) == len(m.records) {
		m.checkProducers(l)
	}
	entries, err := fs.ReadDir(cfg.Dir)
	if err != nil {
		m.fatalf("%v", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name, swapExt) || strings.HasSuffix(e.Name, cleanedExt) || strings.HasSuffix(e.Name, deletedExt) {
			m.fatalf("a start left %s", e.Name)
		}
	}
	return l
}

func runCleanModel(t *testing.T, seed uint64, everyOp bool) (clones int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	mem := disk.NewMem(seed)
	f := disk.NewFaulty(mem)
	m := &cleanModel{seed: seed, now: t0, keepMs: int64(rng.IntN(4)) * 300}
	m.world = compacted(t, f, func(o *Options) {
		o.DeleteRetentionMs = m.keepMs
		o.SegmentBytes = 700
		o.IndexIntervalBytes = 100
		o.Delete = false
	})
	if err := mem.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	for m.step = range 70 {
		m.now = m.now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
		m.cfg.Now = m.now
		switch k := rng.IntN(24); k {
		case 0, 1:
			if everyOp {
				type clone struct {
					fs      *disk.Mem
					cfg     Config
					flushed kafka.Offset
				}
				var taken []clone
				f.After(func(disk.Op, string) {
					for _, how := range []disk.Crash{disk.CrashKept, disk.CrashLost, disk.CrashTorn, disk.CrashAny} {
						taken = append(taken, clone{mem.CrashCloneAs(how), m.cfg, m.l.Flushed()})
					}
				})
				m.clean(rng)
				f.After(nil)
				for _, c := range taken {
					c.cfg.Clean = false
					if err := m.opened(c.fs, c.cfg, c.flushed).Close(false); err != nil {
						m.fatalf("%v", err)
					}
				}
				clones += len(taken)
			} else {
				m.clean(rng)
			}
			m.check(m.l)
		case 2:
			m.roll()
		case 3:
			if _, err := m.l.Flush(); err != nil {
				m.fatalf("flush: %v", err)
			}
			m.cfg.RecoveryPoint = m.l.Flushed()
		case 4:
			if err := m.l.Checkpoint(m.now); err != nil {
				m.fatalf("checkpoint: %v", err)
			}
			m.cfg.Cleaned = m.l.Cleaned()
		case 5:
			if err := m.l.Sweep(m.now); err != nil {
				m.fatalf("sweep: %v", err)
			}
		case 6: // a restart
			clean := rng.IntN(2) == 0
			if err := m.l.Close(clean); err != nil {
				m.fatalf("close: %v", err)
			}
			cfg := m.cfg
			cfg.Clean = clean
			if clean {
				cfg.RecoveryPoint, m.cfg.RecoveryPoint = m.l.Flushed(), m.l.Flushed()
			}
			l, err := Open(cfg)
			if err != nil {
				m.fatalf("open: %v", err)
			}
			if int(l.End()) != len(m.records) {
				m.fatalf("end %d after a restart, want %d", l.End(), len(m.records))
			}
			m.l = l
			m.check(l)
			m.checkProducers(l)
		case 7: // a power cut
			clone := mem.CrashCloneAs(disk.Crash(rng.IntN(4)))
			flushed := m.l.Flushed()
			if err := m.l.Close(false); err != nil {
				m.fatalf("close: %v", err)
			}
			m.cfg.Clean = false
			m.l = m.opened(clone, m.cfg, flushed)
			m.cut(m.l.End())
			mem, f = clone, disk.NewFaulty(clone)
			if err := m.l.Close(false); err != nil {
				m.fatalf("close: %v", err)
			}
			m.fs, m.cfg.FS = f, f
			m.open()
		default:
			m.append(rng)
		}
	}
	// In the end one record of each key is left, and no tombstone.
	m.now = m.now.Add(time.Hour)
	m.roll()
	for range 2 {
		for range 100 {
			if _, err := m.l.Clean(m.now, m.l.End()); err != nil {
				m.fatalf("clean: %v", err)
			}
			if r, due, err := m.l.Cleanable(m.now, m.l.End()); err != nil || r == 0 && !due {
				break
			}
		}
		m.now = m.now.Add(time.Hour)
	}
	m.cleaned = m.l.active().base
	for i := range m.records {
		if m.records[i].at == 0 {
			m.tries = append(m.tries, t0)
			m.records[i].at = len(m.tries)
		}
	}
	m.check(m.l)
	_, offs := m.state()
	for k, o := range offs {
		if len(o) > 1 {
			m.fatalf("in the end %s is at %v", k, o)
		}
		if m.records[o[0]].tombstone {
			m.fatalf("in the end the tombstone of %s is at %d", k, o[0])
		}
	}
	if err := m.l.Close(false); err != nil {
		m.fatalf("close: %v", err)
	}
	return clones
}

func TestCleanModel(t *testing.T) {
	for seed := range modelSeeds(100) {
		runCleanModel(t, seed, false)
	}
}

// TestCleanModelCrash takes crash clones of every kind after every file operation of
// every run.
func TestCleanModelCrash(t *testing.T) {
	clones := 0
	for seed := range max(modelSeeds(100)/20, 1) {
		clones += runCleanModel(t, 1_000_000+seed, true)
	}
	t.Logf("%d crash clones", clones)
	if clones == 0 {
		t.Error("no run of the cleaner was watched")
	}
}
