package group

import "time"

// expireOffsets is the round of offsets.retention.check.interval.ms: commits
// past their time go, and groups that have neither members nor commits.
func (s *Shard) expireOffsets(now time.Time) {
	for _, name := range s.names() {
		s.expireGroup(now, s.groups[name])
	}
	s.timers.set(s.sweep, now.Add(time.Duration(s.cfg.RetentionCheckMs)*time.Millisecond))
}

func (s *Shard) expireGroup(now time.Time, g *group) {
	left := 0
	for _, t := range sortedTopics(g.offsets) {
		for _, p := range sortedPartitions(g.offsets[t]) {
			if s.expired(now, g, t, g.offsets[t][p]) {
				s.write(Record{Key: commitKey(g.name, t, p)})
			} else {
				left++
			}
		}
	}
	if left == 0 && g.state == Empty && len(g.pendingJoin) == 0 {
		s.write(Record{Key: groupKey(g.name)})
	}
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
