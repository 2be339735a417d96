package group

import (
	"container/heap"
	"time"
)

// A timer is one deadline. Moving it later is O(1) and leaves it where it is in
// the heap: when its old place comes up it is put back. A heartbeat, the most
// frequent request of all, so costs a store.
type timer struct {
	due   time.Time // wanted; zero: off
	at    time.Time // place in the heap, never after due while due is set
	seq   uint64    // order among equals
	index int       // in the heap; -1: not there
	fire  func(now time.Time)
}

type timers struct {
	heap timerHeap
	seq  uint64
}

// set arms t for due, replacing an earlier deadline.
func (ts *timers) set(t *timer, due time.Time) {
	t.due = due
	switch {
	case t.index < 0:
		ts.seq++
		t.at, t.seq = due, ts.seq
		heap.Push(&ts.heap, t)
	case due.Before(t.at):
		t.at = due
		heap.Fix(&ts.heap, t.index)
	}
}

func (ts *timers) stop(t *timer) {
	if t == nil {
		return
	}
	t.due = time.Time{}
	if t.index >= 0 {
		heap.Remove(&ts.heap, t.index)
	}
}

// next is the earliest place in the heap: a deadline, or a little earlier.
func (ts *timers) next() time.Time {
	if len(ts.heap) == 0 {
		return time.Time{}
	}
	return ts.heap[0].at
}

// run fires what is due by now, in order of time.
func (ts *timers) run(now time.Time) {
	for len(ts.heap) > 0 && !ts.heap[0].at.After(now) {
		t := ts.heap[0]
		if t.due.After(now) {
			ts.seq++
			t.at, t.seq = t.due, ts.seq
			heap.Fix(&ts.heap, 0)
			continue
		}
		heap.Pop(&ts.heap)
		t.due = time.Time{}
		t.fire(now)
	}
}

func newTimer(fire func(now time.Time)) *timer { return &timer{index: -1, fire: fire} }

func ms(n int32) time.Duration { return time.Duration(n) * time.Millisecond }

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
