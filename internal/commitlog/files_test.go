package commitlog

// Thousands of logs share few descriptors: no record is lost for that, what was not
// synced is synced before its file closes, idle files close, and logs that nobody
// wrote are opened and closed without a write.

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// fleet opens n logs in /w of fsys that share files.
func fleet(t *testing.T, fsys disk.FS, n int, files *Files, set func(*Config)) []*Log {
	t.Helper()
	if _, err := fsys.Stat("/w"); err != nil {
		if err := fsys.MkdirAll("/w"); err != nil {
			t.Fatal(err)
		}
	}
	logs := make([]*Log, n)
	for i := range logs {
		tp := kafka.TopicPartition{Topic: "t", Partition: int32(i)}
		cfg := Config{FS: fsys, Dir: filepath.Join("/w", tp.String()), TP: tp, Now: time.Now(), Files: files, ParentSynced: true, Options: DefaultOptions()}
		if set != nil {
			set(&cfg)
		}
		l, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		logs[i] = l
	}
	return logs
}

func bound(n int) func() int { return func() int { return n } }

func TestFilesAreBounded(t *testing.T) {
	files := NewFiles(bound(8), nil)
	logs := fleet(t, disk.NewMem(1), 40, files, nil)
	if n := files.Open(); n != 0 {
		t.Errorf("%d files open after opening the logs", n)
	}
	for round := range 3 {
		for i, l := range logs {
			if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
				t.Fatal(err)
			}
			if n := files.Open(); n > 8 {
				t.Fatalf("round %d, log %d: %d files open", round, i, n)
			}
		}
	}
	for i, l := range logs {
		sl, err := l.Read(0, l.End(), 1<<20, true)
		if err != nil || sl.Region.Len == 0 || l.End() != 3 {
			t.Fatalf("log %d: end %d, read %d bytes, %v", i, l.End(), sl.Region.Len, err)
		}
		sl.Region.Release()
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if n := files.Open(); n != 0 {
		t.Errorf("%d files open after closing the logs", n)
	}
}

// A log that gives its file up for others is not the worse for it: its bytes are
// synced before.
func TestClosedFilesWereSynced(t *testing.T) {
	logs := fleet(t, disk.NewMem(1), 20, NewFiles(bound(4), nil), nil)
	for _, l := range logs {
		if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
		if l.active().shared.Load() == nil {
			t.Fatal("the file just written is closed")
		}
	}
	for i, l := range logs {
		if s := l.active(); s.shared.Load() == nil && s.dirty.Load() {
			t.Errorf("log %d: closed with unsynced bytes", i)
		}
	}
}

func TestRestSyncsAndCloses(t *testing.T) {
	files := NewFiles(nil, nil)
	logs := fleet(t, disk.NewMem(1), 5, files, nil)
	for _, l := range logs {
		if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range restRounds + 1 {
		files.Rest()
		if _, err := logs[0].Append(time.Now(), recs(1000, 1, 10), 0); err != nil { // never idle
			t.Fatal(err)
		}
	}
	if n := files.Open(); n != 1 {
		t.Errorf("%d files open, want that of the log in use", n)
	}
	for i, l := range logs[1:] {
		if l.Unflushed() != 0 {
			t.Errorf("log %d: %d records not flushed", i+1, l.Unflushed())
		}
	}
	if logs[0].Unflushed() == 0 {
		t.Error("the log in use was flushed")
	}
}

func TestRestTellsAFailedSync(t *testing.T) {
	faulty := disk.NewFaulty(disk.NewMem(1))
	var told error
	files := NewFiles(nil, nil)
	l := fleet(t, faulty, 1, files, func(c *Config) { c.OnSyncError = func(err error) { told = err } })[0]
	if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
		t.Fatal(err)
	}
	faulty.Inject(disk.Fault{Op: disk.OpSync, Path: logExt, Err: syscall.EIO})
	for range restRounds + 1 {
		files.Rest()
	}
	if !errors.Is(told, syscall.EIO) || l.Err() == nil {
		t.Errorf("told %v, log says %v", told, l.Err())
	}
}

// Logs without records, and logs that were opened and not written, close and open
// again without a write or a sync: a restart of thousands is quick.
func TestIdleLogsCostNoWrites(t *testing.T) {
	mem := disk.NewMem(1)
	faulty := disk.NewFaulty(mem)
	var writes []string
	count := func(op disk.Op, path string) { writes = append(writes, fmt.Sprint(op, " ", path)) }
	closeAll := func(logs []*Log) {
		for _, l := range logs {
			if err := l.Close(true); err != nil {
				t.Fatal(err)
			}
		}
	}
	logs := fleet(t, faulty, 3, nil, func(c *Config) { c.New = true })
	faulty.After(count)
	closeAll(logs)
	if len(writes) > 0 {
		t.Errorf("closing logs that never had a record: %q", writes)
	}
	logs = fleet(t, faulty, 3, nil, func(c *Config) { c.Clean = true })
	for _, l := range logs {
		if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
		if err := l.AssignEpoch(4); err != nil {
			t.Fatal(err)
		}
	}
	closeAll(logs)
	for _, clean := range []bool{true, false} {
		writes = nil
		logs = fleet(t, faulty, 3, nil, func(c *Config) { c.Clean, c.RecoveryPoint = clean, 1 })
		for _, l := range logs {
			if err := l.AssignEpoch(5); err != nil { // as after a start
				t.Fatal(err)
			}
		}
		if len(writes) > 0 {
			t.Errorf("opening idle logs, clean %v: %q", clean, writes)
		}
		if clean {
			closeAll(logs)
		}
		if len(writes) > 0 {
			t.Errorf("closing idle logs, clean %v: %q", clean, writes)
		}
	}
}

// What an empty log leaves out of its close it does before its first record counts
// as flushed: file and folder names live through the power cut.
func TestFirstFlushAfterEmptyClose(t *testing.T) {
	mem := disk.NewMem(1)
	for _, l := range fleet(t, mem, 1, nil, nil) {
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := mem.SyncDir("/w"); err != nil { // the owner's part (ParentSynced)
		t.Fatal(err)
	}
	if err := mem.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	l := fleet(t, mem, 1, nil, func(c *Config) { c.Clean = true })[0]
	if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		clone := mem.CrashCloneAs(disk.Crash(i % 4))
		got := fleet(t, clone, 1, nil, func(c *Config) { c.RecoveryPoint = 1 })[0]
		if got.End() != 1 {
			t.Fatalf("clone %d: end %d, want 1", i, got.End())
		}
	}
}

// B178: without a descriptor a log takes no harm: a write and a flush are refused, and
// done when there is one.
func TestNoDescriptorIsNoDamageB178(t *testing.T) {
	faulty := disk.NewFaulty(disk.NewMem(1))
	l := fleet(t, faulty, 1, nil, nil)[0]
	remove := faulty.Inject(disk.Fault{Op: disk.OpOpen, Err: syscall.EMFILE})
	if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); !disk.IsNoDescriptor(err) {
		t.Fatal(err)
	}
	remove(true)
	if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
		t.Fatal(err)
	}
	l.unsynced.add(l.file(metadataFile))
	remove = faulty.Inject(disk.Fault{Op: disk.OpOpen, Err: syscall.EMFILE})
	if _, err := l.Flush(); !disk.IsNoDescriptor(err) || l.Flushed() != 0 {
		t.Fatalf("%v, flushed %d", err, l.Flushed())
	}
	remove(true)
	if _, err := l.Flush(); err != nil || l.Flushed() != 1 {
		t.Fatalf("%v, flushed %d", err, l.Flushed())
	}
}

// Answers under way hold files that their logs have let go. They count, a reader
// without room is sent away, and a writer is not.
func TestReadersAreAdmitted(t *testing.T) {
	files := NewFiles(bound(4), nil)
	logs := fleet(t, disk.NewMem(1), 10, files, nil)
	var held []Slice
	refused := 0
	for _, l := range logs {
		if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range logs {
		sl, err := l.Read(0, 1, 1<<20, true)
		switch {
		case err == nil:
			held = append(held, sl)
		case disk.IsNoDescriptor(err):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if len(held) == 0 || refused == 0 || files.live.Load() > 5 {
		t.Errorf("%d answers, %d sent away, %d files open", len(held), refused, files.live.Load())
	}
	for _, l := range logs {
		if _, err := l.Append(time.Now(), recs(1000, 1, 10), 0); err != nil {
			t.Fatal("writer:", err)
		}
	}
	for _, sl := range held {
		sl.Region.Release()
	}
	for i, l := range logs {
		sl, err := l.Read(0, 2, 1<<20, true)
		if err != nil {
			t.Fatalf("log %d: %v", i, err)
		}
		sl.Region.Release()
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if n := files.live.Load(); n != 0 {
		t.Errorf("%d files open at the end", n)
	}
}
