package partition

// Partitions over a memory disk that can crash and fail: watermarks, tickets and
// waiters, group commit under a fake clock, a full disk, a failed fdatasync, and
// what a Manager finds after a kill.

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
	"github.com/weirmq/weir/internal/metadata"
)

var topicA = kafka.TopicID{1}

func image(topics ...*metadata.TopicRecord) (*metadata.Image, *metadata.Delta) {
	d := metadata.NewImage("c").Edit()
	for _, t := range topics {
		d.Apply(t)
	}
	return d.Done(1)
}

func topic(name string, id kafka.TopicID, partitions int) *metadata.TopicRecord {
	t := &metadata.TopicRecord{Name: name, ID: id}
	for range partitions {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: 1, Replicas: []kafka.BrokerID{1}, ISR: []kafka.BrokerID{1}})
	}
	return t
}

func plain() *Settings {
	return &Settings{
		Log: commitlog.Options{SegmentBytes: 1 << 20, SegmentMs: math.MaxInt64, IndexIntervalBytes: 4096, IndexMaxBytes: 1 << 20,
			RetentionMs: -1, RetentionBytes: -1, Delete: true, FileDeleteDelayMs: 60000, ProducerExpirationMs: 86400000},
		Rules: batch.NewRules(0), MinISR: 1, FlushMessages: math.MaxInt64, FlushMs: math.MaxInt64,
	}
}

func open(t *testing.T, fs disk.FS, s *Settings, topics ...*metadata.TopicRecord) *Manager {
	t.Helper()
	m, err := OpenManager(Options{FS: fs, Dirs: []string{"/data"}, Self: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Settings: func(*metadata.Image, string) *Settings { return s }})
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(image(topics...))
	return m
}

func records(n int) batch.View {
	b := batch.NewBuilder(batch.BuilderOptions{NowMs: 1, ProducerID: kafka.NoProducer, ProducerEpoch: -1, BaseSequence: -1})
	for range n {
		b.Add(1, []byte("k"), []byte("value"))
	}
	return b.Bytes()
}

func mustAppend(t *testing.T, p *Partition, n int) Ticket {
	t.Helper()
	tk, err := p.Append(time.Now(), records(n), -1)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func fired(w *Waiter) bool {
	select {
	case <-w.Ready():
		return true
	default:
		return false
	}
}

func TestAppendAdvancesWatermarkAndWakes(t *testing.T) {
	m := open(t, disk.NewMem(1), plain(), topic("a", topicA, 2))
	defer m.Close()
	p := m.Get(topicA, 1)
	if m.Lookup("a", 1) != p || m.Lookup("a", 2) != nil || m.Lookup("b", 0) != nil {
		t.Fatal("lookup by name differs from lookup by id")
	}
	small, large := NewWaiter(1), NewWaiter(1<<20)
	if !p.Watch(small, 0) || !p.Watch(large, 0) {
		t.Fatal("watch at the watermark refused")
	}
	tk := mustAppend(t, p, 3)
	if tk.Base != 0 || tk.Last != 2 || !tk.Done || p.HighWatermark() != 3 {
		t.Fatalf("ticket %+v, watermark %d", tk, p.HighWatermark())
	}
	if !fired(small) || fired(large) {
		t.Fatalf("one byte woke %v, a MiB woke %v", fired(small), fired(large))
	}
	if p.Watch(NewWaiter(1), 0) {
		t.Fatal("watch with an old watermark must ask to read again")
	}
	p.Unwatch(small)
	p.Unwatch(large)
	if !p.waiters.idle() {
		t.Fatal("waiters left behind")
	}
}

func TestReadBounds(t *testing.T) {
	m := open(t, disk.NewMem(1), plain(), topic("a", topicA, 1))
	defer m.Close()
	p := m.Get(topicA, 0)
	mustAppend(t, p, 5)
	size := len(records(5))
	for _, c := range []struct {
		from   kafka.Offset
		max    int
		minOne bool
		bytes  int64
		err    error
	}{
		{0, 1 << 20, true, int64(size), nil},
		{4, 1 << 20, true, int64(size), nil}, // the whole batch that holds it
		{5, 1 << 20, true, 0, nil},
		{6, 1 << 20, true, 0, kafka.ErrOffsetOutOfRange},
		{-1, 1 << 20, true, 0, kafka.ErrOffsetOutOfRange},
		{0, 1, true, int64(size), nil}, // KIP-74
		{0, 1, false, 0, nil},
		{0, 0, false, 0, nil},
	} {
		r, err := p.Read(c.from, kafka.NoEpoch, c.max, c.minOne, false)
		if r.Bytes != c.bytes || !errors.Is(err, c.err) || r.HighWatermark != 5 || r.LogStart != 0 {
			t.Errorf("read %+v: %d bytes, %v, watermark %d", c, r.Bytes, err, r.HighWatermark)
		}
		if r.Bytes > 0 {
			r.Slice.Region.Release()
		}
	}
}

// One fdatasync acknowledges every append before it, and nothing is visible or
// acknowledged before that.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disk.NewMem(1)
		s := plain()
		s.FlushMessages = 1
		m := open(t, mem, s, topic("a", topicA, 1))
		defer m.Close()
		p := m.Get(topicA, 0)
		const n = 50
		var wg sync.WaitGroup
		_, before := mem.Counts()
		for range n {
			wg.Go(func() {
				tk := mustAppend(t, p, 1)
				if !tk.Done {
					w := NewWaiter(1)
					if p.Await(tk.Last, w) {
						<-w.Ready()
					}
				}
				if p.HighWatermark() <= tk.Last || p.log.Flushed() <= tk.Last {
					t.Errorf("offset %d acknowledged with %d flushed", tk.Last, p.log.Flushed())
				}
			})
		}
		wg.Wait()
		_, after := mem.Counts()
		if p.HighWatermark() != n || after == before {
			t.Errorf("watermark %d after %d appends and %d syncs", p.HighWatermark(), n, after-before)
		}
	})
}

// Two workers flush one partition; the first to end its sync is the last to say so,
// when more has been flushed and a flush is due again.
func TestFlushesOvertake(t *testing.T) {
	s := plain()
	s.FlushMessages = 2
	m := open(t, disk.NewMem(1), s, topic("a", topicA, 1))
	defer m.Close()
	p := m.Get(topicA, 0)
	m.dirs[0].mu.Lock() // no worker gets anything: the test is the workers
	m.dirs[0].stop = true
	m.dirs[0].mu.Unlock()
	early := mustAppend(t, p, 2).Last + 1
	mustAppend(t, p, 2)
	p.flush()
	if hw := p.HighWatermark(); hw != 4 {
		t.Fatalf("watermark %d after a flush of 4", hw)
	}
	mustAppend(t, p, 2)
	p.flushed(early)
	if hw := p.HighWatermark(); hw != 4 {
		t.Errorf("watermark %d after an older flush", hw)
	}
	p.flush()
	if hw := p.HighWatermark(); hw != 6 {
		t.Errorf("watermark %d after a flush of 6", hw)
	}
}

func TestFlushByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plain()
		s.FlushMs = 1000
		m := open(t, disk.NewMem(1), s, topic("a", topicA, 1))
		defer m.Close()
		p := m.Get(topicA, 0)
		if tk := mustAppend(t, p, 1); !tk.Done {
			t.Error("flush.ms must not hold the acknowledgement back")
		}
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if p.log.Flushed() != 0 {
			t.Error("flushed before flush.ms")
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if p.log.Flushed() != 1 {
			t.Error("not flushed after flush.ms")
		}
	})
}

// A disk without room refuses the append alone: reads go on, and writes do when
// there is room again.
func TestFullDisk(t *testing.T) {
	f := disk.NewFaulty(disk.NewMem(1))
	m := open(t, f, plain(), topic("a", topicA, 1))
	defer m.Close()
	p := m.Get(topicA, 0)
	mustAppend(t, p, 1)
	remove := f.Inject(disk.Fault{Op: disk.OpWrite, Path: ".log", Err: syscall.ENOSPC, Torn: 20})
	for range 3 {
		if _, err := p.Append(time.Now(), records(1), -1); !errors.Is(err, ErrOffline) {
			t.Fatalf("append on a full disk: %v", err)
		}
	}
	r, err := p.Read(0, kafka.NoEpoch, 1<<20, true, false)
	if err != nil || r.Bytes == 0 || r.HighWatermark != 1 {
		t.Fatalf("read on a full disk: %d bytes, watermark %d, %v", r.Bytes, r.HighWatermark, err)
	}
	r.Slice.Region.Release()
	remove(true)
	if tk := mustAppend(t, p, 1); tk.Base != 1 {
		t.Fatalf("offset %d after the full disk, want 1", tk.Base)
	}
}

// A failed fdatasync takes the dir offline for good, wakes who waits, and the
// record is not acknowledged.
func TestFailedSyncEndsTheDir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := disk.NewFaulty(disk.NewMem(1))
		s := plain()
		s.FlushMessages = 1
		m := open(t, f, s, topic("a", topicA, 2))
		defer m.Close()
		f.Inject(disk.Fault{Op: disk.OpSync, Path: ".log", Err: syscall.EIO})
		p := m.Get(topicA, 0)
		tk := mustAppend(t, p, 1)
		w := NewWaiter(1)
		if p.Await(tk.Last, w) {
			<-w.Ready()
		}
		if p.HighWatermark() != 0 || !errors.Is(p.Failed(), ErrOffline) {
			t.Errorf("watermark %d, failed %v", p.HighWatermark(), p.Failed())
		}
		f.Clear()
		if _, err := m.Get(topicA, 1).Append(time.Now(), records(1), -1); !errors.Is(err, ErrOffline) {
			t.Errorf("other partition of the failed dir: %v", err)
		}
		if d := m.Dirs()[0]; d.Err == nil {
			t.Error("the dir does not say that it failed")
		}
	})
}

// Every kill leaves a prefix that holds all that was synced, and the next life
// appends behind it.
func TestKill(t *testing.T) {
	for seed := range uint64(20) {
		mem := disk.NewMem(seed)
		s := plain()
		m := open(t, mem, s, topic("a", topicA, 1))
		p := m.Get(topicA, 0)
		for range 10 {
			mustAppend(t, p, 2)
		}
		p.flush()
		for range 5 {
			mustAppend(t, p, 1)
		}
		crashed := mem.CrashClone()
		_ = m.Close()

		m = open(t, crashed, s, topic("a", topicA, 1))
		p = m.Get(topicA, 0)
		if end := p.log.End(); end < 20 || end > 25 || p.HighWatermark() != end {
			t.Errorf("seed %d: end %d, watermark %d after the crash", seed, end, p.HighWatermark())
		}
		end := p.log.End()
		if tk := mustAppend(t, p, 1); tk.Base != end {
			t.Errorf("seed %d: appended at %d, want %d", seed, tk.Base, end)
		}
		n := 0
		if err := p.Scan(func(b batch.View) error { n += int(b.Count()); return nil }); err != nil || n != int(end)+1 {
			t.Errorf("seed %d: scanned %d records of %d: %v", seed, n, end+1, err)
		}
		_ = m.Close()
	}
}

func TestCleanStopIsMarked(t *testing.T) {
	mem := disk.NewMem(1)
	m := open(t, mem, plain(), topic("a", topicA, 1))
	mustAppend(t, m.Get(topicA, 0), 3)
	if _, err := mem.Stat("/data/" + cleanMarker); err == nil {
		t.Fatal("marked clean while open")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Stat("/data/" + cleanMarker); err != nil {
		t.Fatal("not marked after a stop in order")
	}
	m = open(t, mem, plain(), topic("a", topicA, 1))
	defer m.Close()
	if m.Unclean() || m.Get(topicA, 0).HighWatermark() != 3 {
		t.Fatalf("unclean %v, watermark %d", m.Unclean(), m.Get(topicA, 0).HighWatermark())
	}
}

// What a topic deleted while the node was down left behind is set aside, never
// deleted, and the live topic is not touched.
func TestStrayIsSetAside(t *testing.T) {
	mem := disk.NewMem(1)
	m := open(t, mem, plain(), topic("a", topicA, 1), topic("b", kafka.TopicID{2}, 1))
	mustAppend(t, m.Get(topicA, 0), 1)
	_ = m.Close()
	m = open(t, mem, plain(), topic("a", topicA, 1))
	defer m.Close()
	if m.Get(topicA, 0).HighWatermark() != 1 {
		t.Error("the live topic lost its record")
	}
	if _, err := mem.Stat("/data/b-0"); err == nil {
		t.Error("the stray folder still has its name")
	}
	stray := 0
	entries, _ := mem.ReadDir("/data")
	for _, e := range entries {
		if e.Dir && len(e.Name) > 6 && e.Name[len(e.Name)-6:] == "-stray" {
			stray++
		}
	}
	if stray != 1 {
		t.Errorf("%d stray folders, want 1", stray)
	}
}

func TestDeleteRecordsSurvivesKill(t *testing.T) {
	mem := disk.NewMem(3)
	m := open(t, mem, plain(), topic("a", topicA, 1))
	p := m.Get(topicA, 0)
	for range 10 {
		mustAppend(t, p, 1)
	}
	p.flush()
	for _, c := range []struct {
		at, low kafka.Offset
		err     error
	}{{7, 7, nil}, {7, 7, nil}, {2, 7, nil}, {11, -1, kafka.ErrOffsetOutOfRange}, {-2, -1, kafka.ErrOffsetOutOfRange}, {-1, 10, nil}} {
		low, err := p.DeleteRecords(c.at)
		if low != c.low || !errors.Is(err, c.err) {
			t.Errorf("delete to %d: low watermark %d, %v", c.at, low, err)
		}
	}
	if err := m.SaveStarts(); err != nil {
		t.Fatal(err)
	}
	crashed := mem.CrashClone()
	_ = m.Close()
	m = open(t, crashed, plain(), topic("a", topicA, 1))
	defer m.Close()
	if l := m.Get(topicA, 0).Log(); l.LogStart() != 10 || l.End() != 10 {
		t.Errorf("after the crash the log is %d..%d, want 10..10", l.LogStart(), l.End())
	}
}

// counter is a machine that adds up what it is told.
type counter struct{ sum int }

func (c *counter) Handle(_ time.Time, tok machine.Token, req any) machine.Step[byte] {
	var s machine.Step[byte]
	if n, ok := req.(byte); ok {
		s.Records = append(s.Records, n)
	}
	s.Reply(tok, c.sum)
	return s
}
func (c *counter) Expire(time.Time) machine.Step[byte] { return machine.Step[byte]{} }
func (c *counter) NextDeadline() time.Time             { return time.Time{} }
func (c *counter) Replay(_ int64, r byte)              { c.sum += int(r) }
func (c *counter) Loaded(time.Time)                    {}

var counterCodec = Codec[byte]{
	Add:    func(b *batch.Builder, ts int64, r byte) { b.Add(ts, nil, []byte{r}) },
	Decode: func(_, value []byte) (byte, error) { return value[0], nil },
}

func ask(s *Shard, req any) any {
	ch := make(chan any, 1)
	s.Submit(req, func(resp any) { ch <- resp })
	return <-ch
}

// A shard's state comes back from its log, also after the log refused an append.
func TestShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := disk.NewFaulty(disk.NewMem(1))
		m := open(t, f, plain(), topic("a", topicA, 1))
		defer m.Close()
		p := m.Get(topicA, 0)
		start := func() *Shard {
			s := StartShard(p, func() machine.Machine[byte] { return new(counter) }, counterCodec, slog.New(slog.DiscardHandler))
			p.shard.Store(s)
			return s
		}
		s := start()
		ask(s, byte(3))
		ask(s, byte(4))
		if got := ask(s, "sum"); got != 7 {
			t.Errorf("sum %v, want 7", got)
		}
		remove := f.Inject(disk.Fault{Op: disk.OpWrite, Path: ".log", Err: syscall.ENOSPC, Times: 1})
		if got := ask(s, byte(100)); got != kafka.ErrNotCoordinator {
			t.Errorf("append on a full disk answered %v", got)
		}
		remove(true)
		if got := ask(s, "sum"); got != 7 {
			t.Errorf("after the refused append the sum is %v, want 7", got)
		}
		s.Close()
		if got := ask(s, "sum"); got != kafka.ErrNotCoordinator {
			t.Errorf("a closed shard answered %v", got)
		}
		s = start()
		if got := ask(s, "sum"); got != 7 {
			t.Errorf("after a restart the sum is %v, want 7", got)
		}
	})
}

func TestDeletedTopicWakesItsWaiters(t *testing.T) {
	m := open(t, disk.NewMem(1), plain(), topic("a", topicA, 1))
	defer m.Close()
	p := m.Get(topicA, 0)
	w := NewWaiter(1)
	if !p.Watch(w, 0) {
		t.Fatal("not watched")
	}
	img, _ := image(topic("a", topicA, 1))
	d := img.Edit()
	d.Apply(&metadata.TopicRemovedRecord{ID: topicA})
	m.Apply(d.Done(2))
	if !fired(w) || m.Get(topicA, 0) != nil {
		t.Error("the waiter sleeps on, or the partition is still there")
	}
	if _, err := p.Append(time.Now(), records(1), -1); !errors.Is(err, kafka.ErrUnknownTopicOrPartition) {
		t.Errorf("append to a deleted partition: %v", err)
	}
}

// A folder that is gone with synced records in it stops its partition, and a topic
// made again under the same name does not inherit what was saved for the first.
func TestMissingFolderAndNamesakes(t *testing.T) {
	mem := disk.NewMem(1)
	m := open(t, mem, plain(), topic("a", topicA, 1), topic("b", kafka.TopicID{2}, 1))
	mustAppend(t, m.Get(topicA, 0), 5)
	mustAppend(t, m.Get(kafka.TopicID{2}, 0), 5)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mem.RemoveAll("/data/a-0"); err != nil {
		t.Fatal(err)
	}
	again := kafka.TopicID{3} // b was deleted and made again, and the broker killed in between
	m = open(t, mem, plain(), topic("a", topicA, 1), topic("b", again, 1))
	defer m.Close()
	if err := m.Get(topicA, 0).Failed(); !errors.Is(err, ErrOffline) {
		t.Errorf("the partition without its folder: %v", err)
	}
	p := m.Get(again, 0)
	if p.Failed() != nil || p.HighWatermark() != 0 {
		t.Errorf("the namesake: %v, watermark %d", p.Failed(), p.HighWatermark())
	}
	if tk := mustAppend(t, p, 1); tk.Base != 0 {
		t.Errorf("the namesake's first record went to %d", tk.Base)
	}
}

// A partition that is offline at the stop keeps the dir from being marked clean: the
// next life must look at its files again.
func TestOfflinePartitionIsNotMarkedClean(t *testing.T) {
	mem := disk.NewMem(1)
	m := open(t, mem, plain(), topic("a", topicA, 1))
	mustAppend(t, m.Get(topicA, 0), 5)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mem.RemoveAll("/data/a-0"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m = open(t, mem, plain(), topic("a", topicA, 1))
		if m.Get(topicA, 0).Failed() == nil {
			t.Fatal("the partition without its folder is online")
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := mem.Stat("/data/" + cleanMarker); err == nil {
			t.Fatal("marked clean with a partition offline")
		}
	}
}

// A partition made on a full disk comes online by itself when there is room.
func TestMadeOnAFullDisk(t *testing.T) {
	mem := disk.NewMem(1)
	f := disk.NewFaulty(mem)
	m := open(t, f, plain())
	defer m.Close()
	mem.SetFree(0)
	remove := f.Inject(disk.Fault{Op: disk.OpWrite, Path: "a-0", Err: syscall.ENOSPC})
	img, _ := image()
	d := img.Edit()
	d.Apply(topic("a", topicA, 1))
	m.Apply(d.Done(2))
	if m.Get(topicA, 0).Failed() == nil {
		t.Fatal("a partition was made without writing: the test shows nothing")
	}
	m.reopenStarved()
	if m.Get(topicA, 0).Failed() == nil {
		t.Error("online without room")
	}
	remove(true)
	mem.SetFree(1 << 30)
	m.reopenStarved()
	if tk := mustAppend(t, m.Get(topicA, 0), 1); tk.Base != 0 {
		t.Errorf("first record at %d", tk.Base)
	}
}

// B178: so does one made while the process had no descriptors left; a few wait for
// one, and the others are not tried meanwhile.
func TestMadeWithoutDescriptors(t *testing.T) { synctest.Test(t, madeWithoutDescriptors) }

func madeWithoutDescriptors(t *testing.T) {
	const n = 50
	f := disk.NewFaulty(disk.NewMem(1))
	m := open(t, f, plain())
	defer m.Close()
	remove := f.Inject(disk.Fault{Op: disk.OpOpen, Path: "a-", Err: syscall.EMFILE})
	img, _ := image()
	d := img.Edit()
	d.Apply(topic("a", topicA, n))
	start := time.Now()
	m.Apply(d.Done(2))
	for p := range int32(n) {
		if m.Get(topicA, p).Failed() == nil {
			t.Fatal("a partition was made without a descriptor: the test shows nothing")
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the change took %v", took)
	}
	if m.Dirs()[0].Err != nil {
		t.Error("the disk is marked bad")
	}
	m.reopenStarved()
	remove(true)
	m.reopenStarved()
	for p := range int32(n) {
		if tk := mustAppend(t, m.Get(topicA, p), 1); tk.Base != 0 {
			t.Errorf("first record at %d", tk.Base)
		}
	}
}

// A start that is given up before the partitions open (the folder is another node's,
// say) leaves checkpoints and the missing clean mark as they were.
func TestGivenUpStartChangesNothing(t *testing.T) {
	mem := disk.NewMem(1)
	m := open(t, mem, plain(), topic("a", topicA, 1))
	p := m.Get(topicA, 0)
	mustAppend(t, p, 10)
	if _, err := p.DeleteRecords(5); err != nil {
		t.Fatal(err)
	}
	if err := m.SaveStarts(); err != nil {
		t.Fatal(err)
	}
	killed := mem.CrashClone()
	_ = m.Close()
	before, err := killed.ReadFile("/data/" + startCheckpoint)
	if err != nil {
		t.Fatal(err)
	}
	given, err := OpenManager(Options{FS: killed, Dirs: []string{"/data"}, Self: 1, Log: slog.New(slog.DiscardHandler),
		Settings: func(*metadata.Image, string) *Settings { return plain() }})
	if err != nil {
		t.Fatal(err)
	}
	if err := given.Close(); err != nil {
		t.Fatal(err)
	}
	if after, _ := killed.ReadFile("/data/" + startCheckpoint); string(after) != string(before) {
		t.Errorf("the checkpoint was %q and is %q", before, after)
	}
	if _, err := killed.Stat("/data/" + cleanMarker); err == nil {
		t.Error("the folder of a killed broker is marked clean")
	}
}
