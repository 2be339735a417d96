package group

import (
	"fmt"
	"strings"
)

// HardState is what only Replay may write, as text.
func (s *Shard) HardState() string {
	var b strings.Builder
	for _, n := range s.names() {
		g := s.groups[n]
		fmt.Fprintf(&b, "%s %x\n", n, g.saved)
		for _, t := range sortedTopics(g.offsets) {
			for _, p := range sortedPartitions(g.offsets[t]) {
				fmt.Fprintf(&b, "  %s-%d %+v\n", t, p, g.offsets[t][p])
			}
		}
	}
	return b.String()
}

// Timers is how many deadlines are armed, besides the offsets sweep.
func (s *Shard) Timers() int { return len(s.timers.heap) - 1 }

// Settled are the groups that a record describes wholly.
func (s *Shard) Settled() []string {
	var out []string
	for _, n := range s.names() {
		if g := s.groups[n]; g.state == Stable || g.state == Empty {
			out = append(out, n)
		}
	}
	return out
}

// Check panics when a group's books do not agree with each other.
func (s *Shard) Check() {
	for _, g := range s.groups {
		if len(g.byID) != len(g.members) {
			panic("BUG: group: members and ids differ")
		}
		statics := 0
		for _, m := range g.members {
			if g.byID[m.id] != m {
				panic("BUG: group: member under another id")
			}
			if m.instance != nil {
				statics++
				if g.byStatic[*m.instance] != m {
					panic("BUG: group: member under another instance id")
				}
			}
			if m.join != nil && g.state != PreparingRebalance {
				panic("BUG: group: waits for a join in " + g.state.String())
			}
			if m.sync != nil && g.state != CompletingRebalance {
				panic("BUG: group: waits for a sync in " + g.state.String())
			}
			if m.session.index < 0 && m.join == nil && m.sync == nil {
				panic("BUG: group: member without a deadline")
			}
		}
		if statics != len(g.byStatic) {
			panic("BUG: group: stale instance ids")
		}
		if (g.byID[g.leader] != nil) != (len(g.members) > 0) {
			panic("BUG: group: leader " + g.leader)
		}
		switch g.state {
		case Empty:
			if len(g.members) != 0 {
				panic("BUG: group: Empty with members")
			}
		case PreparingRebalance:
			if g.joinTimer == nil || g.joinTimer.index < 0 {
				panic("BUG: group: join phase without an end")
			}
		case CompletingRebalance:
			if g.syncTimer == nil || g.syncTimer.index < 0 {
				panic("BUG: group: sync phase without an end")
			}
		}
		for id := range g.pendingSync {
			if g.byID[id] == nil {
				panic("BUG: group: a stranger owes a sync")
			}
		}
	}
}

// SubscribedTopics reads a subscription.
func SubscribedTopics(b []byte) ([]string, bool) { return subscribedTopics(b) }
