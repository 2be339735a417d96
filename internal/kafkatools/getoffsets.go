package kafkatools

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// getOffsets is kafka-get-offsets.
func getOffsets(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "HOST1:PORT1,...,HOST3:PORT3", "REQUIRED. The brokers to start from.")
	oldServer := o.value("broker-list", "String", "HOST1:PORT1,...,HOST3:PORT3", "DEPRECATED, use --bootstrap-server instead.")
	specs := o.value("topic-partitions", "String", "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3", "Topic patterns, each with a partition or a range of them.")
	topic := o.value("topic", "String", "topic", "A pattern of topics.")
	partitions := o.value("partitions", "String", "partition ids", "Partitions, with commas between.")
	when := o.value("time", "String", "<timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload", "Which offset.").withDefault("latest")
	config := o.value("command-config", "String", "config file", "A properties file for the client.")
	external := o.flag("exclude-internal-topics", "Leave out internal topics.")
	common(o)
	failed := func(err error) error {
		if e, ok := err.(*exit); ok {
			return e
		}
		e := java("listOffsets", err)
		text := "Error occurred: " + e.message + "\n"
		if e.cause != nil {
			text += e.line() + "\n"
		}
		return &exit{code: 1, stderr: text}
	}
	if err := o.parse(c.args); err != nil {
		return failed(err)
	}
	if err := helpOrVersion(c, o, "An interactive shell for getting topic-partition offsets."); err != nil {
		return err
	}
	if oldServer.given && !server.given {
		server.given, server.values = true, oldServer.values
	}
	if m := missing(server); m != "" {
		return usage(o, m)
	}
	keep, err := partitionFilter(specs, topic, partitions)
	if err != nil {
		return failed(err)
	}
	word, err := when.one()
	if err != nil {
		return failed(err)
	}
	at, ok := map[string]int64{"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5, "earliest-pending-upload": -6}[word]
	if !ok {
		if at, err = strconv.ParseInt(word, 10, 64); err != nil {
			return failed(terse("Malformed time argument %s. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long format timestamp", word))
		}
	}
	servers, err := server.one()
	if err != nil {
		return failed(err)
	}
	if !validServers(servers) {
		return usage(o, "Please provide valid host:port like host1:9091,host2:9092\n")
	}
	file, err := config.one()
	if err != nil {
		return failed(err)
	}
	k, err := c.admin(servers, file)
	if err != nil {
		return failed(err)
	}
	defer k.close()
	if err := printOffsets(c, k, keep, external.given, at); err != nil {
		return failed(err)
	}
	return nil
}

// partitionFilter is what --topic, --partitions and --topic-partitions leave.
func partitionFilter(specs, topic, partitions *option) (func(string, int32) bool, error) {
	if specs.given && (topic.given || partitions.given) {
		return nil, terse("--topic-partitions cannot be used with --topic or --partitions")
	}
	if specs.given {
		word, err := specs.one()
		if err != nil {
			return nil, err
		}
		var all []func(string, int32) bool
		for _, s := range splitList(word) {
			f, err := partitionSpec(s)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
		return func(t string, p int32) bool {
			return slices.ContainsFunc(all, func(f func(string, int32) bool) bool { return f(t, p) })
		}, nil
	}
	topics := func(string) bool { return true }
	if topic.given {
		word, err := topic.one()
		if err != nil {
			return nil, err
		}
		re, err := includeList(word)
		if err != nil {
			return nil, err
		}
		topics = re.MatchString
	}
	var ids []int32
	if partitions.given {
		word, err := partitions.one()
		if err != nil {
			return nil, err
		}
		for _, s := range splitList(word) {
			n, err := strconv.ParseInt(s, 10, 32)
			if err != nil {
				return nil, terse("--partitions expects a comma separated list of numeric partition ids, but received: %s", word)
			}
			ids = append(ids, int32(n))
		}
	}
	return func(t string, p int32) bool { return topics(t) && (ids == nil || slices.Contains(ids, p)) }, nil
}

var specForm = regexp.MustCompile(`^([^:,]*)(?::(?:(\d+)|(\d+)-(\d*)|-(\d+)))?$`)

// partitionSpec reads topic, topic:1, topic:0-3, topic:5- or topic:-3, the end not counted.
func partitionSpec(s string) (func(string, int32) bool, error) {
	m := specForm.FindStringSubmatch(s)
	if m == nil {
		return nil, wrapped("java.lang.RuntimeException", terse("Invalid rule specification: %s", s))
	}
	topics := func(string) bool { return true }
	if m[1] != "" {
		re, err := includeList(m[1])
		if err != nil {
			return nil, err
		}
		topics = re.MatchString
	}
	number := func(w string, def int32) int32 {
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil {
			return def
		}
		return int32(n)
	}
	from, to := int32(0), int32(math.MaxInt32)
	switch {
	case m[2] != "":
		from = number(m[2], 0)
		to = from + 1
	case m[3] != "":
		from, to = number(m[3], 0), number(m[4], math.MaxInt32)
	case m[5] != "":
		to = number(m[5], math.MaxInt32)
	}
	return func(t string, p int32) bool { return topics(t) && p >= from && p < to }, nil
}

func printOffsets(c *call, k *cluster, keep func(string, int32) bool, external bool, at int64) error {
	md, err := k.metadata("listTopics", nil)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.TimeoutMillis = 30000
	var leaderless []topicPartition
	for _, t := range md.Topics {
		if t.Topic == nil || external && (t.IsInternal || internal(*t.Topic)) {
			continue
		}
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = *t.Topic
		for _, p := range t.Partitions {
			if !keep(rt.Topic, p.Partition) {
				continue
			}
			if p.Leader < 0 {
				leaderless = append(leaderless, topicPartition{rt.Topic, p.Partition})
				continue
			}
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = p.Partition, at, -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		if len(rt.Partitions) > 0 {
			req.Topics = append(req.Topics, rt)
		}
	}
	if len(req.Topics) == 0 && len(leaderless) == 0 {
		return illegalArgument("Could not match any topic-partitions with the specified filters")
	}
	for _, tp := range leaderless {
		c.errorf("Skip getting offsets for topic-partition %s due to error: there is no leader\n", tp)
	}
	if len(req.Topics) == 0 {
		return nil
	}
	type found struct {
		tp topicPartition
		at int64
	}
	var all []found
	for _, shard := range k.cl.RequestSharded(k.ctx, req) {
		if shard.Err != nil {
			return java("listOffsets", shard.Err)
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				tp := topicPartition{t.Topic, p.Partition}
				if err := answered(p.ErrorCode, nil); err != nil {
					c.errorf("Skip getting offsets for topic-partition %s due to error: %s\n", tp, err.Error())
					continue
				}
				if p.Offset >= 0 {
					all = append(all, found{tp, p.Offset})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if a.tp.topic != b.tp.topic {
			return strings.Compare(a.tp.topic, b.tp.topic)
		}
		return int(a.tp.partition - b.tp.partition)
	})
	for _, f := range all {
		c.printf("%s:%d:%d\n", f.tp.topic, f.tp.partition, f.at)
	}
	return nil
}
