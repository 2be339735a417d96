package quorum

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
	"github.com/weirmq/weir/internal/metadata"
)

// pump is what only the pump's goroutine touches (before it starts, Open).
type pump struct {
	n      *Node
	files  *files
	ms     *raft.MemoryStorage
	rn     *raft.RawNode
	voters []uint64
	alone  bool

	hard      hardState // as raft knows it; on disk with the next frame at the latest
	lastIndex uint64    // of the raft log, unsynced entries included
	applied   uint64
	snapBytes int64

	core     *machine.Core[metadata.Record] // nil while not leader
	tokens   map[machine.Token]func(any)
	token    machine.Token
	proposed []proposal
	watchers []Watcher
	refusal  kafka.Error // what a failed append is answered with
	snapFail int64       // bytes of log at the last snapshot that failed
}

// proposal keeps the records of an entry made here, to spare decoding them.
type proposal struct {
	index   uint64
	term    uint64
	records []metadata.Record
}

func (n *Node) run() {
	defer close(n.ended)
	p := &n.p
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if d := p.deadline(); !d.IsZero() {
			timer.Reset(max(0, d.Sub(n.now())))
			due = timer.C
		}
		select {
		case <-n.stop:
			p.end()
			return
		case <-n.wake:
		case <-due:
		}
		for p.turn() {
		}
	}
}

func (p *pump) deadline() time.Time {
	if p.core == nil {
		return time.Time{}
	}
	return p.core.NextDeadline()
}

// turn takes what waits, and answers it. True: more is waiting.
func (p *pump) turn() (more bool) {
	n := p.n
	n.mu.Lock()
	k := min(len(n.queue), maxTurn)
	batch := n.queue[:k:k]
	n.queue = n.queue[k:]
	if len(n.queue) == 0 {
		n.queue = nil
	}
	failed := n.err != nil
	n.mu.Unlock()

	now := n.now()
	for i, s := range batch {
		switch {
		case s.watch != nil:
			// What was decided before must be published first: the image a
			// watcher starts from is the one its next delta builds on.
			p.settle(now)
			p.watchers = append(p.watchers, s.watch)
			img := n.img.Load()
			s.watch(img, img.FullDelta())
		case failed || p.broken():
			s.done(kafka.ErrKafkaStorageError)
		case p.core == nil:
			s.done(kafka.ErrNotController)
		default:
			p.token++
			p.tokens[p.token] = s.done
			p.core.Submit(now, p.token, s.req)
			if p.core.Pending() >= maxTurnRecords && i+1 < len(batch) {
				p.settle(now)
			}
		}
	}
	if p.core != nil && !p.broken() {
		p.core.Expire(now)
	}
	p.settle(now)
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.queue) > 0
}

func (p *pump) broken() bool {
	select {
	case <-p.n.broken:
		return true
	default:
		return false
	}
}

// settle appends what was decided, drives raft until it rests, and gives out
// the answers.
func (p *pump) settle(now time.Time) {
	if p.core == nil || p.broken() {
		return
	}
	p.refusal = kafka.ErrNotController
	released, _, err := p.core.Drain(now)
	p.answer(released)
	if err != nil {
		// Nothing of it reached raft: decide on from what is committed.
		p.n.log.Warn("metadata log: a change was refused", "error", err)
		p.lead()
		return
	}
	if err := p.advance(); err != nil {
		p.fail(err)
	}
}

func (p *pump) answer(rs []machine.Reply) {
	for _, r := range rs {
		done := p.tokens[r.Token]
		delete(p.tokens, r.Token)
		resp := r.Resp
		if code, own := resp.(kafka.Error); own && code == kafka.ErrNotCoordinator {
			resp = p.refusal
		}
		done(resp)
	}
}

// Append proposes one entry. It is machine.Log.
func (p *pump) Append(_ time.Time, records []metadata.Record) (int64, error) {
	data := metadata.AppendRecords(nil, records)
	if err := p.files.room(len(data)); err != nil {
		p.refusal = kafka.ErrKafkaStorageError
		return 0, err
	}
	if err := p.rn.Propose(data); err != nil {
		return 0, fmt.Errorf("raft: %w", err)
	}
	p.lastIndex++
	own := append([]metadata.Record(nil), records...) // the Core uses its slice again
	p.proposed = append(p.proposed, proposal{p.lastIndex, p.hard.term, own})
	return int64(p.lastIndex), nil
}

// lead begins to decide, from what is committed.
func (p *pump) lead() {
	p.core = machine.NewCore[metadata.Record](metadata.NewController(p.n.opts.Controller, p.n.img.Load()), p)
	p.core.Start(p.n.now())
}

// advance does what raft asks for until it asks for nothing.
func (p *pump) advance() error {
	for p.rn.HasReady() {
		rd := p.rn.Ready()
		if !raft.IsEmptyHardState(rd.HardState) {
			p.hard = hardState{rd.HardState.GetTerm(), rd.HardState.GetVote(), rd.HardState.GetCommit()}
		}
		// A lone voter's vote goes into the frame with its first entry: nobody
		// could have learned of it before, and a restart costs one sync less.
		if len(rd.Entries) > 0 || rd.MustSync && !p.alone {
			if err := p.files.append(p.hard, rd.Entries); err != nil {
				return err
			}
			if err := p.ms.Append(rd.Entries); err != nil {
				return fmt.Errorf("BUG: raft storage: %w", err)
			}
			if k := len(rd.Entries); k > 0 {
				p.lastIndex = rd.Entries[k-1].GetIndex()
				if own := len(p.proposed); own > 0 && p.proposed[own-1].index != p.lastIndex {
					panic(fmt.Sprintf("BUG: proposed entry %d, raft made it %d", p.proposed[own-1].index, p.lastIndex))
				}
			}
		}
		if err := p.apply(rd.CommittedEntries); err != nil {
			return err
		}
		p.rn.Advance(rd)
	}
	p.publishStatus()
	return p.maybeSnapshot()
}

func (p *pump) apply(ents []*pb.Entry) error {
	if len(ents) == 0 {
		return nil
	}
	old := p.n.img.Load()
	d := old.Edit()
	ownTerm := false
	for _, e := range ents {
		if e.GetType() != pb.EntryNormal {
			return fmt.Errorf("metadata log: entry %d is of type %v, which this version does not know", e.GetIndex(), e.GetType())
		}
		ownTerm = e.GetTerm() == p.hard.term
		rs, err := p.records(e)
		if err != nil {
			return fmt.Errorf("metadata log: entry %d: %w", e.GetIndex(), err)
		}
		for _, r := range rs {
			d.Apply(r)
		}
	}
	p.applied = ents[len(ents)-1].GetIndex()
	img, delta := d.Done(int64(p.applied))
	img = img.WithController(brokerID(p.rn.BasicStatus().Lead))
	p.n.img.Store(img)
	if !delta.Empty() || img.Controller() != old.Controller() {
		for _, fn := range p.watchers {
			fn(img, delta)
		}
	}
	if p.core == nil && ownTerm && p.rn.BasicStatus().RaftState == raft.StateLeader {
		p.lead()
	}
	if p.core != nil {
		p.answer(p.core.Watermark(int64(p.applied)))
	}
	return nil
}

func (p *pump) records(e *pb.Entry) ([]metadata.Record, error) {
	for len(p.proposed) > 0 && p.proposed[0].index <= e.GetIndex() {
		own := p.proposed[0]
		p.proposed = p.proposed[1:]
		if own.index == e.GetIndex() && own.term == e.GetTerm() {
			return own.records, nil
		}
	}
	if len(e.GetData()) == 0 {
		return nil, nil // a leader's first entry
	}
	return metadata.DecodeRecords(e.GetData())
}

func (p *pump) publishStatus() {
	s := &Status{
		Leader:        brokerID(p.rn.BasicStatus().Lead),
		Epoch:         int32(p.hard.term),
		HighWatermark: int64(p.hard.commit) + 1,
		LogEnd:        int64(p.lastIndex) + 1,
	}
	for _, v := range p.voters {
		s.Voters = append(s.Voters, brokerID(v))
	}
	p.n.status.Store(s)
}

// maybeSnapshot bounds what a restart must replay, and the memory of entries.
func (p *pump) maybeSnapshot() error {
	if first, _ := p.ms.FirstIndex(); p.alone && p.applied-first > 4*keepEntries {
		if err := p.ms.Compact(p.applied - keepEntries); err != nil {
			return fmt.Errorf("BUG: raft storage: %w", err)
		}
	}
	limit := max(p.n.opts.SnapshotBytes, p.snapBytes)
	if p.files.bytes < limit+p.snapFail {
		return nil
	}
	term, err := p.ms.Term(p.applied)
	if err != nil {
		return fmt.Errorf("BUG: raft storage: %w", err)
	}
	lastTerm, err := p.ms.Term(p.lastIndex)
	if err != nil {
		return fmt.Errorf("BUG: raft storage: %w", err)
	}
	s := &snapshot{index: p.applied, term: term, voters: p.voters, data: metadata.AppendRecords(nil, p.n.img.Load().Records())}
	err = p.files.saveSnapshot(s, p.lastIndex, lastTerm, p.hard)
	if disk.IsNoSpace(err) {
		// The log goes on without; try again after as many bytes more.
		p.snapFail = p.files.bytes
		p.n.log.Warn("metadata snapshot: no room, trying again later", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	p.snapFail, p.snapBytes = 0, int64(len(s.data))
	return nil
}

// fail ends the node: the state on disk is not known any more.
func (p *pump) fail(err error) {
	n := p.n
	n.log.Error("metadata log: this node cannot go on", "error", err)
	n.mu.Lock()
	n.err = err
	n.mu.Unlock()
	close(n.broken)
	p.refusal = kafka.ErrKafkaStorageError
	if p.core != nil {
		p.answer(p.core.Fail())
	}
}

func (p *pump) end() {
	p.refusal = kafka.ErrNotController
	if p.core != nil && !p.broken() {
		p.answer(p.core.Fail())
	}
	n := p.n
	n.mu.Lock()
	rest := n.queue
	n.queue = nil
	n.mu.Unlock()
	for _, s := range rest {
		if s.done != nil {
			s.done(kafka.ErrNotController)
		}
	}
	if err := p.files.close(); err != nil && n.Err() == nil {
		n.mu.Lock()
		n.err = fmt.Errorf("metadata log: %w", err)
		n.mu.Unlock()
	}
}
