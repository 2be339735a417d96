package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
	"github.com/weirmq/weir/internal/metadata"
)

const (
	// maxQueue bounds the requests that wait for the pump. More are answered
	// REQUEST_TIMED_OUT at once, which clients try again.
	maxQueue = 20_000
	// maxTurn and maxTurnRecords bound what goes into one entry.
	maxTurn        = 1000
	maxTurnRecords = 20_000
	// keepEntries is how many applied entries stay in memory.
	keepEntries = 64

	defaultSnapshotBytes = 8 << 20
)

// Options say where the log is and what the controller needs.
type Options struct {
	FS         disk.FS
	Dir        string // the metadata log dir; the files go into Dir/__weir_metadata
	Self       kafka.BrokerID
	ClusterID  string // from meta.properties, or new: a log of another cluster is refused
	Controller metadata.Config
	Log        *slog.Logger
	Now        func() time.Time // nil: time.Now
	// SnapshotBytes of log are written before the next snapshot, or as many as
	// the last snapshot has, if that is more. 0: 8 MiB.
	SnapshotBytes int64
}

// Node is this broker's part of the metadata quorum.
type Node struct {
	opts Options
	now  func() time.Time
	log  *slog.Logger

	img    atomic.Pointer[metadata.Image]
	status atomic.Pointer[Status]

	mu     sync.Mutex
	queue  []submission
	closed bool
	err    error
	wake   chan struct{} // one token: the queue is not empty
	stop   chan struct{}
	ended  chan struct{}
	broken chan struct{}

	p pump
}

type submission struct {
	req   any
	done  func(resp any)
	watch Watcher // instead of a request
}

// Watcher is called with every image and what it changed.
type Watcher func(img *metadata.Image, d *metadata.Delta)

// Status is what DescribeQuorum tells.
type Status struct {
	Leader        kafka.BrokerID
	Epoch         int32
	HighWatermark int64 // index of the last committed entry plus one
	LogEnd        int64
	Voters        []kafka.BrokerID
}

// Raft's id 0 means nobody, a Kafka node may have it.
func raftID(id kafka.BrokerID) uint64 { return uint64(id) + 1 }
func brokerID(id uint64) kafka.BrokerID {
	return kafka.BrokerID(int64(id) - 1) // 0, nobody, becomes NoBroker
}

// Open reads the log and joins the quorum. A quorum of one is leader, with
// everything replayed and published, when Open returns.
func Open(ctx context.Context, o Options) (*Node, error) {
	if o.FS == nil || o.Dir == "" || o.ClusterID == "" || o.Self < 0 || o.Controller.Defaults == nil {
		return nil, errors.New("quorum: FS, Dir, ClusterID, Self and Controller.Defaults are needed")
	}
	n := &Node{
		opts: o, now: o.Now, log: o.Log,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}), broken: make(chan struct{}),
	}
	if n.now == nil {
		n.now = time.Now
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if o.SnapshotBytes <= 0 {
		n.opts.SnapshotBytes = defaultSnapshotBytes
	}
	if err := n.load(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		_ = n.p.files.close()
		return nil, err
	}
	go n.run()
	return n, nil
}

func (n *Node) load() error {
	id := start{nodeID: int32(n.opts.Self), clusterID: n.opts.ClusterID, voters: []uint64{raftID(n.opts.Self)}}
	files, st, err := openFiles(n.opts.FS, filepath.Join(n.opts.Dir, Dir), id, n.log)
	if err != nil {
		return err
	}
	p := &n.p
	*p = pump{n: n, files: files, ms: raft.NewMemoryStorage(), hard: st.hard, tokens: map[machine.Token]func(any){}}
	err = p.begin(st)
	if err != nil {
		_ = files.close()
	}
	return err
}

// begin builds the state from what was stored and takes the lead if this node
// is the only voter.
func (p *pump) begin(st *stored) error {
	n := p.n
	img := metadata.NewImage(n.opts.ClusterID)
	if st.snap != nil {
		rs, err := metadata.DecodeRecords(st.snap.data)
		if err != nil {
			return fmt.Errorf("metadata snapshot %d: %w", st.snap.index, err)
		}
		p.snapBytes = int64(len(st.snap.data))
		d := img.Edit()
		for _, r := range rs {
			d.Apply(r)
		}
		img, _ = d.Done(int64(st.base))
		if img.ClusterID() != n.opts.ClusterID {
			return fmt.Errorf("metadata snapshot belongs to cluster %s, this node is of cluster %s", img.ClusterID(), n.opts.ClusterID)
		}
	}
	n.img.Store(img)
	p.voters = st.id.voters
	p.alone = len(p.voters) == 1 && p.voters[0] == raftID(n.opts.Self)
	if !p.alone {
		return fmt.Errorf("metadata log: voters %v: only a quorum of one is served", p.voters)
	}
	base := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: &st.base, Term: &st.baseTrm, ConfState: &pb.ConfState{Voters: p.voters},
	}}
	if err := p.ms.ApplySnapshot(base); err != nil {
		return fmt.Errorf("BUG: raft storage refuses its base: %w", err)
	}
	if err := p.ms.SetHardState(st.hard.pb()); err != nil {
		return err
	}
	if err := p.ms.Append(st.entries); err != nil {
		return fmt.Errorf("BUG: raft storage refuses the log: %w", err)
	}
	p.lastIndex, p.applied = st.lastIndex(), st.base
	var err error
	p.rn, err = raft.NewRawNode(&raft.Config{
		ID:              raftID(n.opts.Self),
		ElectionTick:    10,
		HeartbeatTick:   1,
		Storage:         p.ms,
		Applied:         st.base,
		MaxSizePerMsg:   math.MaxUint64,
		MaxInflightMsgs: 256,
		PreVote:         true,
		CheckQuorum:     true,
		Logger:          raftLogger{n.log},
	})
	if err != nil {
		return fmt.Errorf("metadata log: raft: %w", err)
	}
	if err := p.rn.Campaign(); err != nil {
		return fmt.Errorf("metadata log: raft: %w", err)
	}
	if err := p.advance(); err != nil {
		return err
	}
	if p.core == nil {
		panic("BUG: the only voter is not leader")
	}
	return nil
}

// Image is what is committed. Never nil.
func (n *Node) Image() *metadata.Image { return n.img.Load() }

// Status tells where the quorum stands.
func (n *Node) Status() Status { return *n.status.Load() }

// Failed is closed when the node has met an error after which it cannot go on;
// Err tells which.
func (n *Node) Failed() <-chan struct{} { return n.broken }

// Err is the error that ended the node, nil while it works.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Submit hands a request to the controller and returns at once. done is called
// exactly once, from the pump or, when the node cannot take the request, before
// Submit returns; it must not block. resp is the controller's reply, or a
// kafka.Error: NOT_CONTROLLER, REQUEST_TIMED_OUT (too many are waiting),
// KAFKA_STORAGE_ERROR.
func (n *Node) Submit(req any, done func(resp any)) {
	if code := n.enqueue(submission{req: req, done: done}); code != kafka.NoError {
		done(code)
	}
}

func (n *Node) enqueue(s submission) kafka.Error {
	n.mu.Lock()
	switch {
	case n.err != nil:
		n.mu.Unlock()
		return kafka.ErrKafkaStorageError
	case n.closed:
		n.mu.Unlock()
		return kafka.ErrNotController
	case len(n.queue) >= maxQueue:
		n.mu.Unlock()
		return kafka.ErrRequestTimedOut
	}
	n.queue = append(n.queue, s)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return kafka.NoError
}

// Call submits and waits. An error is the context's, or the kafka.Error that
// Submit would have given.
func (n *Node) Call(ctx context.Context, req any) (any, error) {
	ch := make(chan any, 1)
	n.Submit(req, func(resp any) { ch <- resp })
	select {
	case resp := <-ch:
		if code, bad := resp.(kafka.Error); bad {
			return nil, code
		}
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Watch calls fn with the current image and its FullDelta, then with every
// change, in order, before the change's reply is given out. It returns after the
// first call. fn runs on the pump: it may take its time (nothing is decided
// meanwhile) but must not wait for a reply of this node, nor call Watch.
func (n *Node) Watch(fn Watcher) {
	var once sync.Once
	first := make(chan struct{})
	code := n.enqueue(submission{watch: func(img *metadata.Image, d *metadata.Delta) {
		fn(img, d)
		once.Do(func() { close(first) })
	}})
	if code != kafka.NoError {
		return
	}
	select {
	case <-first:
	case <-n.ended:
	}
}

// Close ends the pump and closes the files. Requests still waiting are answered
// NOT_CONTROLLER. Everything answered before is durable already.
func (n *Node) Close() error {
	n.mu.Lock()
	again := n.closed
	n.closed = true
	n.mu.Unlock()
	if !again {
		close(n.stop)
	}
	<-n.ended
	return n.Err()
}
