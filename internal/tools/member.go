package tools

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// groupOptions makes the client a member of the group.
func (c *consumer) groupOptions(st startAt, props *settings, topics []string) []kgo.Opt {
	c.left = -1
	c.start = st
	if st.kind == "" && props.reset == "end" {
		c.start.kind = "end"
	}
	start := kgo.NewOffset().AtStart()
	switch {
	case st.kind == "time":
		start = kgo.NewOffset().AfterMilli(max(st.from.ms, 0))
	case c.start.kind == "end":
		start = kgo.NewOffset().AtEnd()
	case st.kind == "" && props.reset == "none":
		start = kgo.NewOffset().AtCommitted()
	}
	if c.f.exit {
		c.left = 1 // until the first assignment is known
	}
	c.cursors = map[topicPartition]*cursor{}
	show := func(m map[string][]int32) string {
		var tps []topicPartition
		for t, ps := range m {
			for _, p := range ps {
				tps = append(tps, topicPartition{t, p})
			}
		}
		slices.SortFunc(tps, topicPartition.compare)
		if len(tps) == 0 {
			return "nothing"
		}
		return compact(tps)
	}
	c.commits = !props.noCommit
	opts := []kgo.Opt{kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Second)}
	if !c.commits {
		opts = []kgo.Opt{kgo.DisableAutoCommit()}
	}
	return append(opts,
		kgo.ConsumerGroup(c.f.group),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeStartOffset(start),
		kgo.BlockRebalanceOnPoll(),
		kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.RangeBalancer()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			c.detail("group %s: assigned %s", c.f.group, show(m))
			if c.f.exit {
				c.assigned.Store(&m)
			}
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, m map[string][]int32) {
			c.detail("group %s: revoked %s", c.f.group, show(m))
			if !c.commits {
				return
			}
			if err := cl.CommitMarkedOffsets(ctx); err != nil {
				c.note("group %s: the last commit failed: %v", c.f.group, err)
			}
		}))
}

// assignedNow gives the partitions of a group's new assignment their limits.
func (c *consumer) assignedNow(m map[string][]int32) error {
	s, cancel := c.bound()
	defer cancel()
	var tps []topicPartition
	for t, ps := range m {
		for _, p := range ps {
			tps = append(tps, topicPartition{t, p})
		}
	}
	commits := kadm.OffsetResponses{}
	if len(tps) > 0 {
		var err error
		if commits, err = s.commits(c.f.group); err != nil {
			return err
		}
	}
	ends := s.listOffsets(tps, latestOffset, c.committed)
	begins := ends
	switch c.start.kind {
	case "time":
		begins = s.listOffsets(tps, max(c.start.from.ms, 0), c.committed)
	case "end":
	default:
		begins = s.listOffsets(tps, earliestOffset, false)
	}
	if err := cmp.Or(firstError(tps, begins), firstError(tps, ends)); err != nil {
		return s.explain("list offsets", err)
	}
	for _, tp := range tps {
		cur := &cursor{pos: begins[tp].offset, limit: ends[tp].offset}
		if cur.pos < 0 { // no record so late
			cur.pos = cur.limit
		}
		if o, ok := commits.Lookup(tp.Topic, tp.Partition); ok && o.Err == nil && o.At >= 0 {
			cur.pos = o.At
		}
		if old := c.cursors[tp]; old != nil {
			cur.pos = max(cur.pos, old.pos)
		}
		cur.done = cur.pos >= cur.limit
		c.cursors[tp] = cur
	}
	c.left = 0
	for _, cur := range c.cursors {
		if !cur.done {
			c.left++
		}
	}
	return nil
}
