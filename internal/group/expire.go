package group

import "time"

// expireOffsets is the round of offsets.retention.check.interval.ms: commits
// past their time go, and groups that have neither members nor commits. A round
// that writes much is divided, so that one step stays about one batch in size.
func (s *Shard) expireOffsets(now time.Time) {
	next := now.Add(time.Duration(s.cfg.RetentionCheckMs) * time.Millisecond)
	from := s.sweepFrom
	s.sweepFrom = ""
	bytes := 0
	for _, name := range s.names() {
		if name <= from && from != "" {
			continue
		}
		if bytes += s.expireGroup(now, s.groups[name]); bytes > s.cfg.RecordsBytesMax {
			s.sweepFrom = name
			next = now.Add(time.Millisecond)
			break
		}
	}
	s.timers.set(s.sweep, next)
}

func (s *Shard) expireGroup(now time.Time, g *group) (bytes int) {
	gone := func(key []byte) {
		s.write(Record{Key: key})
		bytes += len(key) + recordOverhead
	}
	left := 0
	for _, t := range sortedTopics(g.offsets) {
		for _, p := range sortedPartitions(g.offsets[t]) {
			if s.expired(now, g, t, g.offsets[t][p]) {
				gone(commitKey(g.name, t, p))
			} else {
				left++
			}
		}
	}
	if left == 0 && g.state == Empty && len(g.pendingJoin) == 0 {
		gone(groupKey(g.name))
	}
	return bytes
}

// expired holds the rules of KIP-211: retention runs from when the group became
// empty; without group management from the commit; with consumers at work, from
// the commit for topics they no longer read. Any other group keeps its commits.
func (s *Shard) expired(now time.Time, g *group, topic string, c commit) bool {
	from := c.commitMs
	switch {
	case g.protocolType == "":
	case g.state == Empty:
		if g.sinceMs >= 0 {
			from = g.sinceMs
		}
	case g.state == Stable && g.protocolType == consumerType && g.subscribed != nil:
		if g.reads(topic) {
			return false
		}
	default:
		return false
	}
	if c.expireMs >= 0 {
		return now.UnixMilli() >= c.expireMs
	}
	return now.UnixMilli()-from >= s.cfg.OffsetsRetentionMs
}
