package replica

// Shows: over many random histories of three replicas and a controller (messages
// late, lost and doubled, replicas that crash, come back and believe old images)
// no committed record is lost or changed; and once the faults end, all replicas
// become equal, in sync and committed to the end.
//
// How: one seed, one goroutine; a log is a list of (epoch, value). Whatever any
// leader's watermark passes goes into one list of committed records, which every
// later leader has to hold as its beginning.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

type entry struct {
	epoch kafka.Epoch
	value int
}

// image is what the controller publishes.
type image struct {
	leader         kafka.BrokerID // NoBroker: none alive
	epoch          kafka.Epoch
	partitionEpoch int32
	isr            []kafka.BrokerID
	alive          [4]bool
}

type node struct {
	id       kafka.BrokerID
	up       bool
	log      []entry
	hw       kafka.Offset // as last known, survives a crash
	seen     image
	leader   *Leader
	follower *Follower
	firstToo bool // how EndOfEpoch answers before the first epoch: both ways have to do
}

func (n *node) end() kafka.Offset { return kafka.Offset(len(n.log)) }

func (n *node) EndOfEpoch(e kafka.Epoch) (kafka.Epoch, kafka.Offset) {
	for i := len(n.log) - 1; i >= 0; i-- {
		if n.log[i].epoch <= e {
			return n.log[i].epoch, kafka.Offset(i + 1)
		}
	}
	if n.firstToo && len(n.log) > 0 {
		return e, 0
	}
	return kafka.NoEpoch, kafka.NoOffset
}

func (n *node) LastEpoch() kafka.Epoch {
	if len(n.log) == 0 {
		return kafka.NoEpoch
	}
	return n.log[len(n.log)-1].epoch
}

type world struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand
	now       time.Time
	minISR    int
	nodes     [4]*node // 1 to 3
	ctl       image
	proposals []sent
	committed []entry
	value     int
	trace     []string
}

type sent struct {
	from kafka.BrokerID
	p    *Proposal
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), now: time.UnixMilli(1e12)}
	w.minISR = 1 + w.rng.IntN(2)
	w.ctl = image{leader: 1, isr: ids(1, 2, 3), alive: [4]bool{false, true, true, true}}
	for i := 1; i <= 3; i++ {
		w.nodes[i] = &node{id: kafka.BrokerID(i), up: true, seen: image{epoch: -1}, firstToo: seed%2 == 0}
		w.learn(w.nodes[i])
	}
	return w
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace[max(0, len(w.trace)-40):] {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// learn hands the controller's image to n.
func (w *world) learn(n *node) {
	if !n.up {
		return
	}
	old, img := n.seen, w.ctl
	img.isr = slices.Clone(img.isr)
	n.seen = img
	if img.epoch == old.epoch {
		if n.leader != nil && n.leader.Committed(w.now, img.partitionEpoch, ids(1, 2, 3), img.isr) {
			w.advanced(n)
		}
		return
	}
	n.leader, n.follower = nil, nil
	switch img.leader {
	case n.id:
		w.note("%d leads epoch %d from %d", n.id, img.epoch, n.end())
		if !slices.Equal(n.log[:min(len(w.committed), len(n.log))], w.committed) {
			w.fail("leader %d of epoch %d lacks committed records: %v, committed %v", n.id, img.epoch, n.log, w.committed)
		}
		n.leader = NewLeader(LeaderConfig{Self: n.id, Epoch: img.epoch, PartitionEpoch: img.partitionEpoch, Replicas: ids(1, 2, 3),
			ISR: img.isr, End: n.end(), HighWatermark: n.hw, MinISR: w.minISR, LagMaxMs: 10_000, Now: w.now})
		w.advanced(n)
	case kafka.NoBroker:
	default:
		n.follower = NewFollower(FollowerConfig{Leader: img.leader, Epoch: img.epoch, End: n.end(), HighWatermark: n.hw})
	}
}

// advanced notes what a leader's watermark has passed.
func (w *world) advanced(n *node) {
	hw := n.leader.HighWatermark()
	if hw < n.hw {
		w.fail("watermark of leader %d fell from %d to %d", n.id, n.hw, hw)
	}
	n.hw = hw
	for i := range n.log[:hw] {
		if i == len(w.committed) {
			w.committed = append(w.committed, n.log[i])
			w.note("%d commits %v at %d", n.id, n.log[i], i)
		} else if w.committed[i] != n.log[i] {
			w.fail("leader %d commits %v at %d, which was %v", n.id, n.log[i], i, w.committed[i])
		}
	}
}

func (w *world) propose(n *node, p *Proposal) {
	if p != nil {
		w.note("%d proposes %v on %d", n.id, p.ISR, p.PartitionEpoch)
		w.proposals = append(w.proposals, sent{n.id, p})
	}
}

// decide has the controller answer one proposal.
func (w *world) decide(s sent, lost bool) {
	n := w.nodes[s.from]
	code := kafka.NoError
	switch {
	case s.p.Epoch < w.ctl.epoch:
		code = kafka.ErrFencedLeaderEpoch
	case s.p.PartitionEpoch != w.ctl.partitionEpoch:
		code = kafka.ErrInvalidUpdateVersion
	case slices.ContainsFunc(s.p.ISR, func(id kafka.BrokerID) bool { return !w.ctl.alive[id] }):
		code = kafka.ErrIneligibleReplica
	default:
		w.ctl.isr, w.ctl.partitionEpoch = s.p.ISR, w.ctl.partitionEpoch+1
		w.note("controller: in sync %v at %d", w.ctl.isr, w.ctl.partitionEpoch)
	}
	if lost {
		code = kafka.ErrNetworkException // the sender cannot tell what happened
	}
	if code != kafka.NoError && n.up && n.leader != nil {
		w.propose(n, n.leader.Refused(s.p, code))
	}
}

func (w *world) crash(n *node) {
	if !n.up {
		return
	}
	w.note("%d crashes", n.id)
	n.up, n.leader, n.follower = false, nil, nil
	n.hw = kafka.Offset(w.rng.IntN(int(n.hw) + 1)) // the checkpoint was older
	w.ctl.alive[n.id] = false
	if rest := slices.DeleteFunc(slices.Clone(w.ctl.isr), func(id kafka.BrokerID) bool { return id == n.id }); len(rest) > 0 {
		w.ctl.isr = rest
	}
	w.ctl.partitionEpoch++
	if w.ctl.leader == n.id {
		w.elect()
	}
}

func (w *world) restart(n *node) {
	if n.up {
		return
	}
	w.note("%d is back", n.id)
	n.up, n.seen = true, image{epoch: -1}
	w.ctl.alive[n.id] = true
	if w.ctl.leader == kafka.NoBroker {
		w.elect()
	}
}

func (w *world) elect() {
	w.ctl.leader = kafka.NoBroker
	w.ctl.epoch++
	w.ctl.partitionEpoch++
	var able []kafka.BrokerID
	for _, id := range w.ctl.isr {
		if w.ctl.alive[id] {
			able = append(able, id)
		}
	}
	if len(able) > 0 {
		w.ctl.leader = able[w.rng.IntN(len(able))]
	}
	w.note("controller: leader %d of epoch %d", w.ctl.leader, w.ctl.epoch)
}

// fetch is one round of n's fetcher with the leader it believes in.
func (w *world) fetch(n *node, answerLost bool) {
	f := n.follower
	if !n.up || f == nil {
		return
	}
	l := w.nodes[f.Leader()]
	if !l.up || l.leader == nil || l.leader.CheckEpoch(f.Epoch()) != kafka.NoError {
		return
	}
	from, last := f.FetchOffset(), n.LastEpoch()
	a := Answer{HighWatermark: l.leader.HighWatermark()}
	if from > l.end() {
		a.Code, a.LogEnd = kafka.ErrOffsetOutOfRange, l.end()
	} else if epoch, end := l.EndOfEpoch(last); last != kafka.NoEpoch && (epoch != last || end < from) {
		a.Diverging, a.DivergeEpoch, a.DivergeEnd = true, epoch, end
	}
	var records []entry
	if a.Code == kafka.NoError && !a.Diverging {
		records = slices.Clone(l.log[from:min(int(from)+w.rng.IntN(4), len(l.log))])
		advanced, p, _ := l.leader.Fetched(w.now, Fetch{From: n.id, Offset: from, Eligible: l.seen.alive[n.id]})
		if advanced {
			w.advanced(l)
		}
		w.propose(l, p)
	}
	if answerLost {
		return
	}
	switch act := f.Check(a, n); act.Step {
	case Append:
		n.log = append(n.log, records...)
		n.hw, _ = f.Advanced(n.end(), a.HighWatermark, 0)
		if int(n.hw) > len(w.committed) || !slices.Equal(n.log[:n.hw], w.committed[:n.hw]) {
			w.fail("follower %d takes %v for committed, it is %v", n.id, n.log[:n.hw], w.committed)
		}
	case Truncate:
		w.note("%d cuts %d to %d", n.id, n.end(), act.Offset)
		n.log = n.log[:act.Offset]
		f.Truncated(0, n.end())
		n.hw = f.HighWatermark()
	}
}

func (w *world) step(faults bool) {
	n := w.nodes[1+w.rng.IntN(3)]
	switch k := w.rng.IntN(100); {
	case k < 20:
		if n.leader != nil && n.leader.CheckAppend([]int16{1, -1}[w.rng.IntN(2)]) == kafka.NoError && faults {
			w.value++
			n.log = append(n.log, entry{n.leader.Epoch(), w.value})
			if n.leader.Appended(n.end()) {
				w.advanced(n)
			}
		}
	case k < 65:
		w.fetch(n, faults && w.rng.IntN(6) == 0)
	case k < 75:
		w.learn(n)
	case k < 85:
		if len(w.proposals) > 0 {
			i := w.rng.IntN(len(w.proposals))
			s := w.proposals[i]
			if !faults || w.rng.IntN(4) > 0 { // else it comes twice
				w.proposals = slices.Delete(w.proposals, i, i+1)
			}
			w.decide(s, faults && w.rng.IntN(5) == 0)
		}
	case k < 93:
		w.now = w.now.Add(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
		if n.leader != nil {
			advanced, p := n.leader.Expire(w.now)
			if advanced {
				w.advanced(n)
			}
			w.propose(n, p)
		}
	case k < 95 && faults:
		w.crash(n)
	case k < 99:
		w.restart(n)
	case faults && w.ctl.leader != kafka.NoBroker:
		w.elect() // a preferred election, say
	}
}

func TestModel(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 40
	}
	records := 0
	for seed := range seeds {
		w := newWorld(t, seed)
		for range 600 {
			w.step(true)
		}
		for range 3000 {
			w.step(false)
		}
		l := w.nodes[max(w.ctl.leader, 0)]
		if w.ctl.leader < 1 || l.leader == nil || len(w.ctl.isr) != 3 {
			w.fail("not healed: %+v", w.ctl)
		}
		for _, n := range w.nodes[1:] {
			if !slices.Equal(n.log, l.log) || n.hw != l.end() {
				w.fail("replica %d: log %v watermark %d, leader's log %v", n.id, n.log, n.hw, l.log)
			}
		}
		if !slices.Equal(w.committed, l.log) {
			w.fail("committed %v, log %v", w.committed, l.log)
		}
		records += len(l.log)
	}
	if records < int(seeds) {
		t.Errorf("only %d records in %d histories", records, seeds)
	}
}
