package commitlog

import (
	"cmp"
	"slices"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// cleanTxns follows transactions through a walk: whose data was aborted, and whose
// marker has no data left before it.
type cleanTxns struct {
	aborted   []AbortedTxn // by First; a prefix is consumed
	open      map[kafka.ProducerID]*abortedWalk
	committed map[kafka.ProducerID]bool // saw data that was not aborted
	kept      []AbortedTxn              // for the new index
}

type abortedWalk struct {
	AbortedTxn
	seen bool
}

func newCleanTxns(aborted []AbortedTxn) *cleanTxns {
	slices.SortStableFunc(aborted, func(a, b AbortedTxn) int { return cmp.Compare(a.First, b.First) })
	return &cleanTxns{aborted: aborted}
}

func (t *cleanTxns) upTo(off kafka.Offset) {
	for len(t.aborted) > 0 && t.aborted[0].First <= off {
		if t.open == nil {
			t.open = map[kafka.ProducerID]*abortedWalk{}
		}
		t.open[t.aborted[0].ID] = &abortedWalk{AbortedTxn: t.aborted[0]}
		t.aborted = t.aborted[1:]
	}
}

// data says whether a batch's transaction was aborted.
func (t *cleanTxns) data(v batch.View) bool {
	t.upTo(v.LastOffset())
	if !v.Transactional() {
		return false
	}
	if a := t.open[v.ProducerID()]; a != nil {
		a.seen = true
		return true
	}
	if t.committed == nil {
		t.committed = map[kafka.ProducerID]bool{}
	}
	t.committed[v.ProducerID()] = true
	return false
}

// marker says whether a control batch ends a transaction without data, so that it
// may go when its time has come.
func (t *cleanTxns) marker(v batch.View) (empty bool, err error) {
	t.upTo(v.LastOffset())
	m, err := v.Marker()
	if err != nil {
		return false, err
	}
	id := v.ProducerID()
	switch m.Kind {
	case batch.Abort:
		a := t.open[id]
		delete(t.open, id)
		if a != nil && a.seen {
			t.kept = append(t.kept, a.AbortedTxn)
			return false, nil
		}
		return true, nil
	case batch.Commit:
		had := t.committed[id]
		delete(t.committed, id)
		return !had, nil
	}
	return false, nil
}
