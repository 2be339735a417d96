package kafkatools

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicFlags are kafka-topics' flags.
type topicFlags struct {
	options
	server, config, topic, topicID, partitions, factor, assignment, setting, limit               *option
	list, create, delete, alter, describe                                                        *option
	dropped, underReplicated, unavailable, underMin, atMin, overrides, ifExists, ifNot, external *option
}

func newTopicFlags() *topicFlags {
	f := &topicFlags{}
	f.server = f.value("bootstrap-server", "String", "server to connect to", "REQUIRED: the brokers to start from, host:port with commas between.")
	f.config = f.value("command-config", "String", "command config property file", "A properties file for the client.")
	f.list = f.flag("list", "List the topics.")
	f.create = f.flag("create", "Create a topic.")
	f.delete = f.flag("delete", "Delete topics.")
	f.alter = f.flag("alter", "Give a topic more partitions. (kafka-configs changes its configs.)")
	f.describe = f.flag("describe", "Show the topics in detail.")
	f.topic = f.value("topic", "String", "topic", "The topic; for all but --create a regular expression.")
	f.topicID = f.value("topic-id", "String", "topic-id", "The id of the topic to describe.")
	f.setting = f.value("config", "String", "name=value", "A config of the topic to be created; may be repeated.")
	f.dropped = f.value("delete-config", "String", "name", "Without effect since 4.0: kafka-configs does it.")
	f.partitions = f.value("partitions", "Integer", "# of partitions", "How many partitions the topic is to have; for --create the cluster's default when left out. More partitions than before send keys elsewhere.")
	f.factor = f.value("replication-factor", "Integer", "replication factor", "How many replicas each partition has; the cluster's default when left out.")
	f.assignment = f.value("replica-assignment", "String", "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...", "The brokers of each partition, by hand.")
	f.underReplicated = f.flag("under-replicated-partitions", "Describe only partitions that lack replicas in sync.")
	f.unavailable = f.flag("unavailable-partitions", "Describe only partitions without a leader.")
	f.underMin = f.flag("under-min-isr-partitions", "Describe only partitions with fewer replicas in sync than the minimum.")
	f.atMin = f.flag("at-min-isr-partitions", "Describe only partitions with just as many replicas in sync as the minimum.")
	f.overrides = f.flag("topics-with-overrides", "Describe only topics with configs of their own.")
	f.ifExists = f.flag("if-exists", "Do nothing, and do not fail, where there is no such topic.")
	f.ifNot = f.flag("if-not-exists", "Do not fail where the topic exists.")
	f.external = f.flag("exclude-internal", "Leave out internal topics.")
	f.limit = f.value("partition-size-limit-per-response", "Integer", "maximum number of partitions per response", "How many partitions one answer may hold.")
	common(&f.options)
	return f
}

// topics is kafka-topics.
func topics(c *call) error {
	f := newTopicFlags()
	// What goes wrong before there is a client is told on stderr, twice; what
	// goes wrong later on stdout, and in the log.
	early := func(err error) error {
		if e, ok := errors.AsType[*exit](err); ok {
			return e
		}
		e := java("", err)
		return &exit{code: 1, stderr: e.message + "\n" + e.line() + "\n"}
	}
	if err := f.parse(c.args); err != nil {
		return early(err)
	}
	if err := f.check(c); err != nil {
		return early(err)
	}
	server, err := f.server.one()
	if err != nil {
		return early(err)
	}
	file, err := f.config.one()
	if err != nil {
		return early(err)
	}
	k, err := c.admin(server, file)
	if err != nil {
		return early(err)
	}
	defer k.close()
	switch {
	case f.create.given:
		err = f.runCreate(c, k)
	case f.alter.given:
		err = f.runAlter(k)
	case f.list.given:
		err = f.runList(c, k)
	case f.describe.given:
		err = f.runDescribe(c, k)
	default:
		err = f.runDelete(k)
	}
	if err != nil {
		e := java("", err)
		return &exit{code: 1, stdout: "Error while executing topic command : " + e.message + "\n",
			stderr: logLine("ERROR", e.line()+"\n", "org.apache.kafka.tools.TopicCommand")}
	}
	return nil
}

func (f *topicFlags) check(c *call) error {
	if len(c.args) == 0 {
		return usage(&f.options, "Create, delete, describe, or change a topic.")
	}
	if err := helpOrVersion(c, &f.options, "This tool helps to create, delete, describe, or change a topic."); err != nil {
		return err
	}
	actions := 0
	for _, a := range []*option{f.create, f.list, f.alter, f.describe, f.delete} {
		if a.given {
			actions++
		}
	}
	if actions != 1 {
		return usage(&f.options, "Command must include exactly one action: --list, --describe, --create, --alter or --delete")
	}
	if f.dropped.given {
		c.errorf("delete-config option is no longer supported and deprecated since version 4.0. The config will be fully removed in future releases.\n")
	}
	if !f.server.given {
		return illegalArgument("--bootstrap-server must be specified")
	}
	if f.describe.given && f.ifExists.given {
		if !f.topic.given && !f.topicID.given {
			return usage(&f.options, "--topic or --topic-id is required to describe a topic")
		}
		if f.topic.given && f.topicID.given {
			c.printf("Only topic id will be used when both --topic and --topic-id are specified and topicId is not Uuid.ZERO_UUID\n")
		}
	}
	if !f.list.given && !f.describe.given {
		if m := missing(f.topic); m != "" {
			return usage(&f.options, m)
		}
	}
	if f.alter.given {
		if f.setting.given {
			return usage(&f.options, `Option combination "[[bootstrap-server], [config]]" can't be used with option "[alter]" (To alter topic configurations, the kafka-configs tool can be used.)`)
		}
		if m := missing(f.partitions); m != "" {
			return usage(&f.options, m)
		}
	}
	but := func(allowed ...*option) (others []*option) {
		for _, a := range []*option{f.alter, f.create, f.describe, f.list, f.delete} {
			if !slices.Contains(allowed, a) {
				others = append(others, a)
			}
		}
		return others
	}
	var byHand []*option
	if f.create.given {
		byHand = []*option{f.partitions, f.factor}
	}
	reports := []*option{f.underReplicated, f.underMin, f.atMin, f.unavailable}
	for _, m := range []string{
		refused(f.setting, but(f.alter, f.create)...),
		refused(f.partitions, but(f.alter, f.create)...),
		refused(f.factor, but(f.create)...),
		refused(f.assignment, but(f.alter, f.create)...),
		refused(f.assignment, byHand...),
		refused(f.underReplicated, append(but(f.describe), f.overrides)...),
		refused(f.underMin, append(but(f.describe), f.overrides)...),
		refused(f.atMin, append(but(f.describe), f.overrides)...),
		refused(f.unavailable, append(but(f.describe), f.overrides)...),
		refused(f.overrides, append(but(f.describe), reports...)...),
		refused(f.ifExists, but(f.alter, f.delete, f.describe)...),
		refused(f.ifNot, but(f.create)...),
		refused(f.external, but(f.list, f.describe)...),
	} {
		if m != "" {
			return usage(&f.options, m)
		}
	}
	return nil
}

// parseAssignment reads 1:2,2:3 as the replicas of partitions 0 and 1.
func parseAssignment(s string) ([][]int32, error) {
	var out [][]int32
	for i, part := range strings.Split(s, ",") {
		var ids, twice []int32
		for word := range strings.SplitSeq(part, ":") {
			n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
			if err != nil {
				return nil, numberFormat(strings.TrimSpace(word))
			}
			if slices.Contains(ids, int32(n)) && !slices.Contains(twice, int32(n)) {
				twice = append(twice, int32(n))
			}
			ids = append(ids, int32(n))
		}
		if len(twice) > 0 {
			return nil, &javaError{class: "org.apache.kafka.tools.AdminCommandFailedException", message: "Partition replica lists may not contain duplicate entries: " + joined(twice, ",")}
		}
		if out = append(out, ids); len(ids) != len(out[0]) {
			return nil, &javaError{class: "org.apache.kafka.tools.AdminOperationException", message: fmt.Sprintf("Partition %d has different replication factor: [%s]", i, joined(ids, ", "))}
		}
	}
	return out, nil
}

func numberFormat(word string) error {
	return &javaError{class: "java.lang.NumberFormatException", message: fmt.Sprintf("For input string: %q", word)}
}

// number is an Integer flag that may be left out.
func (f *option) number() (n int32, given bool, err error) {
	if !f.given {
		return 0, false, nil
	}
	v, err := f.integer(32)
	return int32(v), true, err
}

func (f *topicFlags) settings() (map[string]string, []string, error) {
	set := map[string]string{}
	var names []string
	for _, v := range f.setting.values {
		key, value, ok := strings.Cut(v, "=")
		if key, value = strings.TrimSpace(key), strings.TrimSpace(value); !ok || value == "" || strings.Contains(value, "=") {
			return nil, nil, illegalArgument(`requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".`)
		}
		if _, twice := set[key]; !twice {
			names = append(names, key)
		}
		set[key] = value
	}
	return set, names, nil
}

func (f *topicFlags) runCreate(c *call, k *cluster) error {
	name, err := f.topic.one()
	if err != nil {
		return err
	}
	partitions, havePartitions, err := f.partitions.number()
	if err != nil {
		return err
	}
	factor, haveFactor, err := f.factor.number()
	if err != nil {
		return err
	}
	var byHand [][]int32
	if f.assignment.given {
		word, err := f.assignment.one()
		if err != nil {
			return err
		}
		if byHand, err = parseAssignment(word); err != nil {
			return err
		}
	}
	set, names, err := f.settings()
	if err != nil {
		return err
	}
	if strings.ContainsAny(name, "._") {
		c.printf("WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid issues it is best to use either, but not both.\n")
	}
	if haveFactor && (factor < 1 || factor > math.MaxInt16) {
		return illegalArgument("The replication factor must be between 1 and %d inclusive", math.MaxInt16)
	}
	if havePartitions && partitions < 1 {
		return illegalArgument("The partitions must be greater than 0")
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	if havePartitions {
		t.NumPartitions = partitions
	}
	if haveFactor {
		t.ReplicationFactor = int16(factor)
	}
	for i, ids := range byHand {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), ids
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for _, n := range names {
		s := kmsg.NewCreateTopicsRequestTopicConfig()
		s.Name, s.Value = n, kmsg.StringPtr(set[n])
		t.Configs = append(t.Configs, s)
	}
	req.Topics = append(req.Topics, t)
	resp, err := ask[*kmsg.CreateTopicsResponse](k, "createTopics", req)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if t.ErrorCode == codeTopicExists && f.ifNot.given {
			return nil
		}
		if err := answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	c.printf("Created topic %s.\n", name)
	return nil
}

// Error codes that tools look at.
const (
	codeUnknownTopic   = 3
	codeGroupNotEmpty  = 68
	codeGroupNotFound  = 69
	codeTopicExists    = 36
	codeUnsupported    = 35
	codeNoReassignment = 85
	codeNotNeeded      = 84
	codeUnknownTopicID = 100
)

// found are the topics that --topic means, in the order of their names.
func (f *topicFlags) found(k *cluster) ([]string, error) {
	word, err := f.topic.one()
	if err != nil {
		return nil, err
	}
	md, err := k.metadata("listTopics", nil)
	if err != nil {
		return nil, err
	}
	keep := func(string) bool { return true }
	if f.topic.given {
		re, err := includeList(word)
		if err != nil {
			return nil, err
		}
		keep = re.MatchString
	}
	var names []string
	for _, t := range md.Topics {
		if t.Topic != nil && keep(*t.Topic) && !(f.external.given && (t.IsInternal || internal(*t.Topic))) {
			names = append(names, *t.Topic)
		}
	}
	slices.Sort(names)
	return names, nil
}

// mustFind is found where a topic that was asked for has to be there.
func (f *topicFlags) mustFind(k *cluster) ([]string, error) {
	names, err := f.found(k)
	if err == nil && len(names) == 0 && !f.ifExists.given && len(f.topic.values) == 1 && f.topic.values[0] != "" {
		return nil, illegalArgument("Topic '%s' does not exist as expected", f.topic.values[0])
	}
	return names, err
}

func (f *topicFlags) runList(c *call, k *cluster) error {
	names, err := f.found(k)
	if err != nil {
		return err
	}
	c.printf("%s\n", strings.Join(names, "\n"))
	return nil
}

func (f *topicFlags) runAlter(k *cluster) error {
	var byHand [][]int32
	if f.assignment.given {
		word, err := f.assignment.one()
		if err != nil {
			return err
		}
		if byHand, err = parseAssignment(word); err != nil {
			return err
		}
	}
	partitions, _, err := f.partitions.number()
	if err != nil {
		return err
	}
	names, err := f.mustFind(k)
	if err != nil || len(names) == 0 {
		return err
	}
	has := map[string]int{}
	if byHand != nil {
		md, err := k.metadata("describeTopics", names)
		if err != nil {
			return err
		}
		for _, t := range md.Topics {
			has[*t.Topic] = len(t.Partitions)
		}
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 30000
	for _, n := range names {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = n, partitions
		for i := has[n]; i < len(byHand); i++ {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = byHand[i]
			t.Assignment = append(t.Assignment, a)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := ask[*kmsg.CreatePartitionsResponse](k, "createPartitions", req)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

func (f *topicFlags) runDelete(k *cluster) error {
	names, err := f.mustFind(k)
	if err != nil || len(names) == 0 {
		return err
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 30000
	req.TopicNames = names
	for _, n := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = kmsg.StringPtr(n)
		req.Topics = append(req.Topics, t)
	}
	resp, err := ask[*kmsg.DeleteTopicsResponse](k, "deleteTopics", req)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := answered(t.ErrorCode, t.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}
