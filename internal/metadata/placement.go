package metadata

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weirmq/weir/internal/kafka"
)

// placer spreads the replicas of new partitions over the brokers: leaders go
// round the active brokers from a random start; the other replicas follow at a
// distance that grows each time round, so that the load of a lost broker falls
// on all others. With racks the brokers are ordered so that neighbours stand in
// different racks, and a replica avoids a rack already used while it can.
// Fenced brokers are used only when the active ones are too few, and never lead.
type placer struct {
	active, fenced []placed
	start, shift   int
}

type placed struct {
	id   kafka.BrokerID
	rack string
}

func newPlacer(brokers []Broker, rnd *rand.Rand) *placer {
	p := &placer{}
	racked := map[string][]placed{} // active ones by rack
	var racks []string
	for i := range brokers {
		b := &brokers[i]
		at := placed{id: b.ID}
		if b.Rack != nil {
			at.rack = *b.Rack
		}
		if !b.active() {
			p.fenced = append(p.fenced, at)
			continue
		}
		if len(racked[at.rack]) == 0 {
			racks = append(racks, at.rack)
		}
		racked[at.rack] = append(racked[at.rack], at)
	}
	slices.Sort(racks)
	for more := true; more; { // one of each rack in turn
		more = false
		for _, r := range racks {
			if bs := racked[r]; len(bs) > 0 {
				p.active, racked[r], more = append(p.active, bs[0]), bs[1:], true
			}
		}
	}
	if n := len(p.active); n > 0 {
		p.start = rnd.IntN(n)
		p.shift = rnd.IntN(n)
	}
	return p
}

// check gives Kafka's reason why the factor cannot be had, "" when it can.
func (p *placer) check(factor int) string {
	switch {
	case len(p.active) == 0:
		return "All brokers are currently fenced."
	case factor > len(p.active)+len(p.fenced):
		return fmt.Sprintf("The target replication factor of %d cannot be reached because only %d broker(s) are registered.",
			factor, len(p.active)+len(p.fenced))
	}
	return ""
}

// place chooses the replicas of the next partition, the leader first.
func (p *placer) place(factor int) []kafka.BrokerID {
	n := len(p.active)
	replicas := make([]kafka.BrokerID, 0, factor)
	first := p.start % n
	replicas = append(replicas, p.active[first].id)
	if factor > 1 && n > 1 {
		used := map[string]bool{p.active[first].rack: true}
		// Two passes: new racks only, then any.
		for pass := 0; pass < 2 && len(replicas) < factor; pass++ {
			for j := 0; j < n-1 && len(replicas) < factor; j++ {
				b := p.active[(first+1+(p.shift+j)%(n-1))%n]
				if slices.Contains(replicas, b.id) || pass == 0 && used[b.rack] {
					continue
				}
				used[b.rack] = true
				replicas = append(replicas, b.id)
			}
		}
	}
	for i := 0; len(replicas) < factor; i++ {
		replicas = append(replicas, p.fenced[(p.start+i)%len(p.fenced)].id)
	}
	p.start++
	if p.start%n == 0 {
		p.shift++
	}
	return replicas
}
