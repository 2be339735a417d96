package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
)

// Shows: what was answered survives, and what survives is a prefix of what was
// asked, whatever moment and whatever part of the unsynced bytes a power cut
// takes: all of them, none, a prefix, any. Method: every file operation of a
// history is followed by crash clones; each clone is opened and must hold at least
// the changes answered by then, no change that was not asked, and must go on working.

// hookFS calls before each operation that changes the disk.
type hookFS struct {
	disk.FS
	before   func()
	limit    atomic.Int64 // files cannot grow beyond; 0: they can
	noAtomic atomic.Bool  // no room for whole new files
}

type hookFile struct {
	disk.File
	h *hookFS
}

func (h *hookFS) wrap(f disk.File, err error) (disk.File, error) {
	if err != nil {
		return nil, err
	}
	return &hookFile{f, h}, nil
}

func (h *hookFS) Create(p string) (disk.File, error) { h.before(); return h.wrap(h.FS.Create(p)) }
func (h *hookFS) Open(p string) (disk.File, error)   { return h.wrap(h.FS.Open(p)) }
func (h *hookFS) Remove(p string) error              { h.before(); return h.FS.Remove(p) }
func (h *hookFS) Rename(a, b string) error           { h.before(); return h.FS.Rename(a, b) }
func (h *hookFS) SyncDir(p string) error             { h.before(); return h.FS.SyncDir(p) }
func (h *hookFS) WriteAtomic(p string, b []byte) error {
	h.before()
	if h.noAtomic.Load() {
		return syscall.ENOSPC
	}
	return h.FS.WriteAtomic(p, b)
}
func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	f.h.before()
	if max := f.h.limit.Load(); max > 0 && off+int64(len(p)) > max {
		return 0, syscall.ENOSPC
	}
	n, err := f.File.WriteAt(p, off)
	f.h.before()
	return n, err
}
func (f *hookFile) Sync() error            { f.h.before(); return f.File.Sync() }
func (f *hookFile) Truncate(n int64) error { f.h.before(); return f.File.Truncate(n) }
func names(img *metadata.Image) (out []string) {
	img.EachTopic(func(t *metadata.Topic) bool { out = append(out, t.Name); return true })
	return out
}

func TestCrashAtEveryWrite(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			mem := disk.NewMem(seed)
			type clone struct {
				fs              *disk.Mem
				answered, asked int
			}
			var clones []clone
			var answered, asked atomic.Int64
			r := rand.New(rand.NewPCG(seed, 1))
			h := &hookFS{FS: mem, before: func() {
				if len(clones) < 400 || r.IntN(4) == 0 {
					clones = append(clones, clone{mem.CrashCloneAs(disk.Crash(r.IntN(4))), int(answered.Load()), int(asked.Load())})
				}
			}}
			o := options(h, "/data")
			o.SnapshotBytes = 3000 // several snapshots on the way
			mustMkdir(t, mem, "/data")
			n := open(t, o)
			register(t, n)
			for i := range 40 {
				asked.Store(int64(i + 1))
				create(t, n, fmt.Sprintf("t%03d", i))
				answered.Store(int64(i + 1))
				if i == 20 { // and across a restart
					if err := n.Close(); err != nil {
						t.Fatal(err)
					}
					n = open(t, o)
				}
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d clones", len(clones))
			for i, c := range clones {
				o := options(c.fs, "/data")
				o.SnapshotBytes = 3000
				n, err := Open(context.Background(), o)
				if err != nil {
					t.Fatalf("clone %d (answered %d): %v", i, c.answered, err)
				}
				got := names(n.Image())
				if len(got) < c.answered || len(got) > c.asked {
					t.Fatalf("clone %d: %d topics, answered %d, asked %d", i, len(got), c.answered, c.asked)
				}
				for k, name := range got {
					if name != fmt.Sprintf("t%03d", k) {
						t.Fatalf("clone %d: topic %d is %s", i, k, name)
					}
				}
				if i%7 == 0 {
					register(t, n)
					create(t, n, "after")
				}
				if err := n.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func mustMkdir(t *testing.T, fs disk.FS, dir string) {
	t.Helper()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := fs.SyncDir(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
}

// logFiles lists the log's files by suffix.
func logFiles(t *testing.T, fs disk.FS, suffix string) (out []string) {
	t.Helper()
	es, err := fs.ReadDir("/data/" + Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if strings.HasSuffix(e.Name, suffix) {
			out = append(out, "/data/"+Dir+"/"+e.Name)
		}
	}
	return out
}

// fileWith makes a file system that holds only one log file.
func fileWith(t *testing.T, name string, b []byte) *disk.Mem {
	t.Helper()
	fs := disk.NewMem(1)
	mustMkdir(t, fs, "/data")
	mustMkdir(t, fs, "/data/"+Dir)
	if err := fs.WriteAtomic(name, b); err != nil {
		t.Fatal(err)
	}
	return fs
}

// threeTopics is the log of a short life, and where its last frame begins.
func threeTopics(t *testing.T) (name string, b []byte, last, end int) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	n := open(t, options(mem, "/data"))
	register(t, n)
	for i := range 3 {
		create(t, n, fmt.Sprint("t", i))
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	name = logFiles(t, mem, logSuffix)[0]
	b, err := mem.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	off := fileHeaderLen
	for {
		_, next, err := frameAt(b, off)
		if err != nil {
			return name, b, last, off
		}
		last, off = off, next
	}
}

// Shows: the last write may be cut at any byte, to nothing or to zeros: it is
// dropped and the log goes on. The same cut before the last frame is damage.
func TestCutAtEveryByte(t *testing.T) {
	name, b, last, end := threeTopics(t)
	for cut := last; cut <= end; cut++ {
		for _, zeros := range []bool{false, true} {
			torn := append([]byte(nil), b[:cut]...)
			if zeros {
				torn = append(torn, make([]byte, len(b)-cut)...)
			}
			fs := fileWith(t, name, torn)
			n := open(t, options(fs, "/data"))
			want := 2
			if cut == end {
				want = 3
			}
			if got := n.Image().TopicCount(); got != want {
				t.Fatalf("cut at %d of %d: %d topics", cut, end, got)
			}
			if cut%37 == 0 { // goes on, and what it writes is found again
				create(t, n, "again")
				if err := n.Close(); err != nil {
					t.Fatal(err)
				}
				n = open(t, options(fs, "/data"))
				if got := n.Image().TopicCount(); got != want+1 {
					t.Fatalf("cut at %d: %d topics after going on", cut, got)
				}
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Shows: a flipped bit anywhere before the last frame is refused with the
// place, never repaired by forgetting; in the last frame it cannot be told from
// a torn write.
func TestFlippedBits(t *testing.T) {
	name, b, last, _ := threeTopics(t)
	for i := 0; i < last; i++ {
		if i >= 12 && i < fileHeaderLen {
			continue // unused bytes of the header
		}
		bad := append([]byte(nil), b...)
		bad[i] ^= 0x10
		_, err := Open(context.Background(), options(fileWith(t, name, bad), "/data"))
		var c *CorruptError
		if err == nil || !errors.As(err, &c) && !strings.Contains(err.Error(), "version") {
			t.Fatalf("byte %d: %v", i, err)
		}
		if c != nil && !strings.Contains(err.Error(), ": put the folder "+filepath.Dir(c.File)+" back from a copy, or start in an empty folder with --data-dir; weir log dump "+c.File+" shows") {
			t.Fatalf("byte %d: no way out in: %v", i, err)
		}
	}
}

func TestWrongOwner(t *testing.T) {
	name, b, _, _ := threeTopics(t)
	o := options(fileWith(t, name, b), "/data")
	o.ClusterID = "another"
	if _, err := Open(context.Background(), o); err == nil || !strings.Contains(err.Error(), "cluster cluster") || !strings.Contains(err.Error(), "another") {
		t.Errorf("another cluster: %v", err)
	}
	o = options(fileWith(t, name, b), "/data")
	o.Self = 7
	if _, err := Open(context.Background(), o); err == nil || !strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), "7") {
		t.Errorf("another node: %v", err)
	}
}

// Shows: a full disk refuses changes and nothing else; with room again the node
// goes on, and the refused changes are not there.
func TestDiskFull(t *testing.T) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	h := &hookFS{FS: mem, before: func() {}}
	o := options(h, "/data")
	o.SnapshotBytes = 30_000
	n := open(t, o)
	register(t, n)
	h.limit.Store(firstFill)
	made, refused := 0, 0
	try := func() bool {
		_, err := n.Call(context.Background(), createReq(fmt.Sprintf("t%03d-%s", made, strings.Repeat("x", 200))))
		if err == nil {
			made++
			return true
		}
		if !errors.Is(err, kafka.ErrKafkaStorageError) {
			t.Fatal(err)
		}
		refused++
		return false
	}
	for try() {
	}
	if made < 10 || n.Err() != nil {
		t.Fatalf("%d topics before the disk was full, node %v", made, n.Err())
	}
	try() // still
	if r := call[*kmsg.ListPartitionReassignmentsResponse](t, n, kmsg.NewPtrListPartitionReassignmentsRequest()); r.ErrorCode != 0 {
		t.Error("reads are refused")
	}
	h.limit.Store(0)
	for range 40 {
		if !try() {
			t.Fatal("refused with room again")
		}
	}
	// Now there is no room for a snapshot: the log goes on without.
	h.limit.Store(1 << 30)
	h.noAtomic.Store(true)
	for range 100 {
		try()
	}
	h.noAtomic.Store(false)
	for range 200 {
		try()
	}
	if refused != 2 || n.Err() != nil {
		t.Fatalf("%d refused, node %v", refused, n.Err())
	}
	if len(logFiles(t, mem, snapshotSuffix)) != 1 || len(logFiles(t, mem, logSuffix)) != 1 {
		t.Error("snapshots:", logFiles(t, mem, snapshotSuffix), "logs:", logFiles(t, mem, logSuffix))
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = open(t, options(mem, "/data"))
	if got := n.Image().TopicCount(); got != made {
		t.Errorf("%d topics, %d were made", got, made)
	}
}

// Shows: whatever operation fails first, every request is answered, and what was
// answered with success is in what the next start finds, whatever a power cut takes.
func TestEveryFault(t *testing.T) {
	faults := 0
	for _, op := range []disk.Op{disk.OpOpen, disk.OpWrite, disk.OpSync, disk.OpRename, disk.OpRemove, disk.OpSyncDir, disk.OpTruncate} {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
			for skip := 0; ; skip++ {
				mem := disk.NewMem(uint64(skip))
				mustMkdir(t, mem, "/data")
				f := disk.NewFaulty(mem)
				o := options(f, "/data")
				o.SnapshotBytes = 3000
				n := open(t, o)
				register(t, n)
				what := fmt.Sprintf("%v at %s %d", cause, op, skip)
				hits := f.Inject(disk.Fault{Op: op, Err: cause, Skip: skip, Times: 1, Torn: skip * 13 % 200})
				var made []string
				for i := range 30 {
					name := fmt.Sprintf("t%03d", i)
					if _, err := n.Call(context.Background(), createReq(name)); err == nil {
						made = append(made, name)
					} else if !errors.Is(err, kafka.ErrKafkaStorageError) {
						t.Fatalf("%s: %v", what, err)
					}
				}
				met := hits(true) > 0
				clones := []*disk.Mem{mem.CrashCloneAs(disk.CrashLost), mem.CrashCloneAs(disk.CrashTorn), mem.CrashClone()}
				_ = n.Close()
				if !met {
					break
				}
				faults++
				for _, c := range append(clones, mem) {
					n := open(t, options(c, "/data"))
					got := names(n.Image())
					for _, name := range made {
						if !slices.Contains(got, name) {
							t.Fatalf("%s: %s was made and is gone: %v", what, name, got)
						}
					}
					register(t, n)
					create(t, n, "after")
					if err := n.Close(); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
			}
		}
	}
	t.Logf("%d faults", faults)
	if faults < 50 {
		t.Error("the history meets too few faults")
	}
}

// Shows: a failed sync ends the node; every request is answered; nothing is
// written afterwards; a new start holds what was answered.
func TestFailedSync(t *testing.T) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	f := disk.NewFaulty(mem)
	n := open(t, options(f, "/data"))
	register(t, n)
	create(t, n, "good")
	f.Inject(disk.Fault{Op: disk.OpSync, Path: logSuffix, Err: syscall.EIO})
	if _, err := n.Call(context.Background(), createReq("bad")); !errors.Is(err, kafka.ErrKafkaStorageError) {
		t.Fatal(err)
	}
	<-n.Failed()
	f.Clear()
	writes, _ := mem.Counts()
	if _, err := n.Call(context.Background(), createReq("later")); !errors.Is(err, kafka.ErrKafkaStorageError) {
		t.Fatal(err)
	}
	if w, _ := mem.Counts(); w != writes {
		t.Error("written after a failed sync")
	}
	if got := names(n.Image()); len(got) != 1 {
		t.Errorf("image shows %v", got)
	}
	if err := n.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	n = open(t, options(mem.CrashClone(), "/data"))
	if got := names(n.Image()); len(got) < 1 || got[len(got)-1] != "good" {
		t.Errorf("after a restart: %v", got)
	}
}

// Shows: a file can be read as text, and where it is broken.
func TestDump(t *testing.T) {
	name, b, last, end := threeTopics(t)
	var out strings.Builder
	if err := Dump(&out, fileWith(t, name, b), name); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"node 1 cluster cluster voters [2]", `"name":"t2"`, fmt.Sprintf("%d end", end)} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	b[last+20] ^= 1
	out.Reset()
	if err := Dump(&out, fileWith(t, name, b), name); err == nil || !strings.Contains(out.String(), fmt.Sprintf("%d broken", last)) {
		t.Errorf("%v\n%s", err, out.String())
	}
	mem := disk.NewMem(1)
	if err := mem.WriteAtomic("/s", appendSnapshot(nil, &snapshot{index: 7, term: 2, voters: []uint64{2}, data: []byte("{}\n")})); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := Dump(&out, mem, "/s"); err != nil || !strings.Contains(out.String(), "snapshot index 7 term 2") {
		t.Errorf("%v %s", err, out.String())
	}
}
