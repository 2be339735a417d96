package kafkatools

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consumerSettings are a Java consumer's properties, checked.
type consumerSettings struct {
	opts []kgo.Opt
	poll int // max.poll.records
}

// consumer checks p as a Java consumer. Where to start in a partition without a
// committed offset is p's auto.offset.reset, else reset.
func (p properties) consumer(reset string) (*consumerSettings, error) {
	var s consumerSettings
	var poll, least, most, part, wait, session, beat, interval, commit int64
	for _, n := range []struct {
		key        string
		bits       int
		def, least int64
		into       *int64
	}{
		{"max.poll.records", 32, 500, 1, &poll},
		{"fetch.min.bytes", 32, 1, 0, &least},
		{"fetch.max.bytes", 32, 52428800, 0, &most},
		{"max.partition.fetch.bytes", 32, 1 << 20, 0, &part},
		{"fetch.max.wait.ms", 32, 500, 0, &wait},
		{"session.timeout.ms", 32, 45000, 1, &session},
		{"heartbeat.interval.ms", 32, 3000, 1, &beat},
		{"max.poll.interval.ms", 32, 300000, 1, &interval},
		{"auto.commit.interval.ms", 32, 5000, 0, &commit},
	} {
		v, err := p.number(n.key, n.bits, n.def, n.least)
		if err != nil {
			return nil, err
		}
		*n.into = v
	}
	s.poll = int(poll)
	isolation, err := p.word("isolation.level", "read_uncommitted", "read_committed", "read_uncommitted")
	if err != nil {
		return nil, err
	}
	crcs, err := p.boolean("check.crcs", true)
	if err != nil {
		return nil, err
	}
	auto, err := p.boolean("enable.auto.commit", true)
	if err != nil {
		return nil, err
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	start := kgo.NewOffset().AtStart()
	switch r := p.get("auto.offset.reset", reset); r {
	case "earliest":
	case "latest":
		start = kgo.NewOffset().AtEnd()
	case "none":
		start = kgo.NoResetOffset()
	default:
		return nil, configError("Invalid value %s for configuration auto.offset.reset: Invalid value `%s` for configuration auto.offset.reset. The value must be either 'earliest', 'latest', 'none' or of the format 'by_duration:<PnDTnHnMn.nS.>'.", r, r)
	}
	s.opts = []kgo.Opt{
		kgo.FetchMinBytes(int32(max(least, 1))),
		kgo.FetchMaxBytes(int32(min(max(most, 1), 1<<29))),
		kgo.BrokerMaxReadBytes(1 << 30),
		kgo.FetchMaxPartitionBytes(int32(min(max(part, 1), 1<<30))),
		kgo.FetchMaxWait(max(ms(wait), time.Millisecond)),
		kgo.ConsumeResetOffset(start),
		kgo.AllowAutoTopicCreation(),
		kgo.Rack(p.get("client.rack", "")),
	}
	if isolation == "read_committed" {
		s.opts = append(s.opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if !crcs {
		s.opts = append(s.opts, kgo.DisableFetchCRCValidation())
	}
	if group := p.get("group.id", ""); group != "" {
		s.opts = append(s.opts,
			kgo.ConsumerGroup(group),
			kgo.SessionTimeout(ms(session)),
			kgo.HeartbeatInterval(ms(min(beat, session/3+1))),
			kgo.RebalanceTimeout(ms(interval)),
			kgo.Balancers(balancers(p.get("partition.assignment.strategy", ""))...),
		)
		if id := p.get("group.instance.id", ""); id != "" {
			s.opts = append(s.opts, kgo.InstanceID(id))
		}
		if auto {
			s.opts = append(s.opts, kgo.GreedyAutoCommit(), kgo.AutoCommitInterval(ms(max(commit, 100))))
		} else {
			s.opts = append(s.opts, kgo.DisableAutoCommit())
		}
	}
	return &s, nil
}

// balancers are the assignors by the Java client's names; its own two when none is known.
func balancers(list string) (out []kgo.GroupBalancer) {
	for _, name := range splitList(list) {
		switch name {
		case "org.apache.kafka.clients.consumer.RangeAssignor":
			out = append(out, kgo.RangeBalancer())
		case "org.apache.kafka.clients.consumer.RoundRobinAssignor":
			out = append(out, kgo.RoundRobinBalancer())
		case "org.apache.kafka.clients.consumer.StickyAssignor":
			out = append(out, kgo.StickyBalancer())
		case "org.apache.kafka.clients.consumer.CooperativeStickyAssignor":
			out = append(out, kgo.CooperativeStickyBalancer())
		}
	}
	if len(out) == 0 {
		// The cooperative one first would make the group cooperative at once.
		out = []kgo.GroupBalancer{kgo.RangeBalancer()}
	}
	return out
}
