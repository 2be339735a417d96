package quorum

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
)

// controller is what a controller needs, repeatable from a seed.
func controller(seed uint64) metadata.Config {
	rnd := rand.New(rand.NewPCG(seed, 1))
	return metadata.Config{
		Defaults: func(*metadata.Image) metadata.Defaults {
			return metadata.Defaults{Partitions: 1, ReplicationFactor: 1}
		},
		Rand: rnd,
		NewID: func() (id kafka.TopicID) {
			for i := range id {
				id[i] = byte(rnd.Uint32())
			}
			return id
		},
	}
}

func options(fs disk.FS, dir string) Options {
	return Options{FS: fs, Dir: dir, Self: 1, ClusterID: "cluster", Controller: controller(1)}
}

func open(t testing.TB, o Options) *Node {
	t.Helper()
	n, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func call[R any](t testing.TB, n *Node, req any) R {
	t.Helper()
	resp, err := n.Call(context.Background(), req)
	if err != nil {
		t.Fatalf("%T: %v", req, err)
	}
	return resp.(R)
}

func register(t testing.TB, n *Node) {
	t.Helper()
	r := call[*metadata.RegisterBrokerReply](t, n, &metadata.RegisterBroker{Broker: metadata.Broker{
		ID: 1, Listeners: []metadata.Listener{{Name: "PLAINTEXT", Host: "localhost", Port: 9092, Security: "PLAINTEXT"}},
	}})
	if r.Err != kafka.NoError {
		t.Fatal(r.Err)
	}
}

func createReq(names ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	for _, name := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, 3, 1
		req.Topics = append(req.Topics, t)
	}
	return req
}

func create(t testing.TB, n *Node, name string) {
	t.Helper()
	r := call[*kmsg.CreateTopicsResponse](t, n, createReq(name))
	if c := r.Topics[0].ErrorCode; c != 0 {
		t.Fatalf("create %s: %v", name, kafka.Error(c))
	}
}

func TestOpenIsQuickAndDurable(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		begin := time.Now()
		n := open(t, options(disk.OS, dir))
		took := time.Since(begin)
		register(t, n)
		t.Logf("open %v, with registration %v", took, time.Since(begin))
		create(t, n, fmt.Sprint("t", round))
		if got := n.Image().TopicCount(); got != round+1 {
			t.Fatalf("%d topics after round %d", got, round)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Shows: changes that wait while a sync runs share the next one, and each is
// answered by itself.
func TestPendingChangesShareASync(t *testing.T) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	gate := make(chan struct{})
	entered := make(chan struct{}, 1000)
	h := &gateFS{FS: mem}
	n := open(t, options(h, "/data"))
	register(t, n)
	h.gate.Store(&gate)
	h.entered = entered
	const k = 200
	results := make(chan int16, k+1)
	submit := func(i int) {
		n.Submit(createReq(fmt.Sprint("t", i)), func(resp any) {
			results <- resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
		})
	}
	submit(0)
	<-entered // its sync waits
	_, before := mem.Counts()
	for i := range k {
		submit(i) // the first of them exists by then
	}
	close(gate)
	errs := 0
	for range k + 1 {
		if c := <-results; kafka.Error(c) == kafka.ErrTopicAlreadyExists {
			errs++
		} else if c != 0 {
			t.Fatal(kafka.Error(c))
		}
	}
	_, after := mem.Counts()
	if after-before > 3 || errs != 1 || n.Image().TopicCount() != k {
		t.Fatalf("%d syncs for %d changes, %d refused, %d topics", after-before, k, errs, n.Image().TopicCount())
	}
}

type gateFS struct {
	disk.FS
	gate    atomic.Pointer[chan struct{}]
	entered chan struct{}
}

type gateFile struct {
	disk.File
	g *gateFS
}

func (g *gateFS) Create(p string) (disk.File, error) {
	f, err := g.FS.Create(p)
	return &gateFile{f, g}, err
}

func (f *gateFile) Sync() error {
	if gate := f.g.gate.Load(); gate != nil {
		f.g.entered <- struct{}{}
		<-*gate
	}
	return f.File.Sync()
}

// Shows: a watcher sees the present first, then every change in order, and a
// change before its reply; the images it saw follow each other by deltas.
func TestWatch(t *testing.T) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	n := open(t, options(mem, "/data"))
	register(t, n)
	create(t, n, "old")
	var seen atomic.Int64
	have := map[string]bool{}
	n.Watch(func(img *metadata.Image, d *metadata.Delta) {
		for _, topic := range d.Created {
			have[topic.Name] = true
		}
		for _, topic := range d.Deleted {
			delete(have, topic.Name)
		}
		if len(have) != img.TopicCount() {
			t.Errorf("deltas lead to %d topics, the image has %d", len(have), img.TopicCount())
		}
		seen.Store(img.Offset())
	})
	if seen.Load() != n.Image().Offset() {
		t.Fatal("first call did not come before Watch returned")
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("t%d-%d", g, i)
				create(t, n, name)
				if _, ok := n.Image().Topic(name); !ok || seen.Load() < n.Image().Offset()-3*4 {
					t.Error("answered before it was published")
				}
				if i%3 == 0 {
					req := kmsg.NewPtrDeleteTopicsRequest()
					req.TopicNames = []string{name}
					call[*kmsg.DeleteTopicsResponse](t, n, req)
				}
			}
		})
	}
	wg.Wait()
	if got := n.Image().TopicCount(); got != 1+4*(50-17) {
		t.Error(got)
	}
}

func TestCloseAnswersAll(t *testing.T) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	n := open(t, options(mem, "/data"))
	register(t, n)
	var answered atomic.Int64
	const k = 500
	go func() { _ = n.Close() }()
	for i := range k {
		n.Submit(createReq(fmt.Sprint("t", i)), func(any) { answered.Add(1) })
	}
	_ = n.Close()
	if answered.Load() != k {
		t.Fatalf("%d of %d answered", answered.Load(), k)
	}
	if _, err := n.Call(context.Background(), createReq("x")); !errors.Is(err, kafka.ErrNotController) {
		t.Error(err)
	}
	n.Watch(func(*metadata.Image, *metadata.Delta) { t.Error("called after close") })
}

func TestStatus(t *testing.T) {
	mem := disk.NewMem(1)
	mustMkdir(t, mem, "/data")
	o := options(mem, "/data")
	o.Self = 0 // a legal node id, and raft's nobody
	n := open(t, o)
	s := n.Status()
	if s.Leader != 0 || s.Epoch < 1 || s.HighWatermark != s.LogEnd || len(s.Voters) != 1 || s.Voters[0] != 0 {
		t.Errorf("%+v", s)
	}
	if n.Image().Controller() != 0 {
		t.Error("controller", n.Image().Controller())
	}
}

// Shows: the reader of log files never panics, and what it accepts it accepts
// again, with the same content.
func FuzzLogFile(f *testing.F) {
	id := start{nodeID: 1, clusterID: "c", voters: []uint64{2}, prevIndex: 1, prevTerm: 1}
	file := func(frames ...[]byte) []byte {
		b := make([]byte, fileHeaderLen)
		copy(b, logMagic)
		b[11] = formatVersion
		for _, fr := range frames {
			b = append(b, endFrame(fr, int64(len(b)))...)
		}
		return b
	}
	st := appendStart(beginFrame(nil, kindStart), &id)
	e := func(i uint64) *pb.Entry { return &pb.Entry{Index: &i, Term: new(uint64(1)), Data: []byte("x")} }
	f.Add(file(st), true)
	f.Add(file(st, appendEntries(beginFrame(nil, kindAppend), hardState{1, 2, 3}, []*pb.Entry{e(2), e(3)})), true)
	f.Add(append(file(st, appendEntries(beginFrame(nil, kindAppend), hardState{1, 2, 3}, []*pb.Entry{e(2), e(3), e(2)})), 0, 0, 0), false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend { // make the checksums right, so that what is inside is reached
			b = append([]byte(nil), b...)
			for off := fileHeaderLen; off+fileHeaderLen < len(b); {
				n := int(binary.BigEndian.Uint32(b[off+4:]))
				if n < 1 || n > len(b)-off-frameHeaderLen {
					break
				}
				endFrame(b[off:off+frameHeaderLen+n:off+frameHeaderLen+n], int64(off))
				off += frameHeaderLen + n
			}
		}
		name := "/data/" + Dir + "/" + logName(2)
		fs := fileWith(t, name, b)
		log := slog.New(slog.DiscardHandler)
		w, one, err := openFiles(fs, "/data/"+Dir, id, log)
		if err != nil {
			return
		}
		_ = w.close()
		w, two, err := openFiles(fs, "/data/"+Dir, id, log)
		if err != nil {
			t.Fatalf("accepted once, then: %v", err)
		}
		_ = w.close()
		if len(one.entries) != len(two.entries) || one.hard != two.hard || one.base != two.base {
			t.Fatalf("first %d entries %+v, then %d %+v", len(one.entries), one.hard, len(two.entries), two.hard)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"t":"cluster","v":1}`), uint64(4))
	f.Fuzz(func(t *testing.T, data []byte, index uint64) {
		b := appendSnapshot(nil, &snapshot{index: index, term: 2, voters: []uint64{1, 2}, data: data})
		s, err := parseSnapshot(b)
		if err != nil || s.index != index || string(s.data) != string(data) || len(s.voters) != 2 {
			t.Fatal(s, err)
		}
		_, _ = parseSnapshot(data)
	})
}

// One change at a time, as one client makes them, on the real disk.
func BenchmarkCommit(b *testing.B) {
	n := open(b, options(disk.OS, b.TempDir()))
	register(b, n)
	i := 0
	for b.Loop() {
		create(b, n, fmt.Sprint("topic-", i))
		i++
	}
}

// A start with 10,000 topics in the log.
func BenchmarkOpen10k(b *testing.B) {
	o := options(disk.OS, b.TempDir())
	n := open(b, o)
	register(b, n)
	req := createReq()
	for i := range 10_000 {
		req.Topics = append(req.Topics, createReq(fmt.Sprint("topic-", i)).Topics...)
	}
	begin := time.Now()
	call[*kmsg.CreateTopicsResponse](b, n, req)
	b.Logf("10,000 topics in one request: %v", time.Since(begin))
	_ = n.Close()
	for b.Loop() {
		n := open(b, o)
		_ = n.Close()
	}
}

// A start in an empty folder, the registration of the broker included.
func BenchmarkOpenEmpty(b *testing.B) {
	dir := b.TempDir()
	i := 0
	for b.Loop() {
		i++
		n := open(b, options(disk.OS, fmt.Sprintf("%s/%d", dir, i)))
		register(b, n)
		_ = n.Close()
	}
}
