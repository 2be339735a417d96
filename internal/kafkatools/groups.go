package kafkatools

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type groupFlags struct {
	options
	server, config, group, topic, allTopics, allGroups, timeout                      *option
	list, describe, delete, reset, deleteOffsets, validate                           *option
	toDate, toOffset, toEarliest, toLatest, byDuration, shiftBy, fromFile, toCurrent *option
	dryRun, execute, export, members, offsets, state, kind, verbose                  *option
}

func newGroupFlags() *groupFlags {
	f := &groupFlags{}
	f.server = f.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The brokers to start from.")
	f.config = f.value("command-config", "String", "command config property file", "A properties file for the client.")
	f.group = f.value("group", "String", "group id", "The group; may be repeated.")
	f.topic = f.value("topic", "String", "topic", "A topic, or topic:0,1 for some of its partitions; may be repeated.")
	f.allTopics = f.flag("all-topics", "All topics the group has offsets of.")
	f.allGroups = f.flag("all-groups", "All groups.")
	f.list = f.flag("list", "List the groups.")
	f.describe = f.flag("describe", "Show a group's offsets and lag, its members or its state.")
	f.delete = f.flag("delete", "Delete groups.")
	f.deleteOffsets = f.flag("delete-offsets", "Delete a group's offsets of topics.")
	f.reset = f.flag("reset-offsets", "Move a group's offsets. Without --execute nothing is changed.")
	f.validate = f.value("validate-regex", "String", "regex", "Check a regular expression of topics.")
	f.timeout = f.value("timeout", "Long", "timeout (ms)", "How long to wait for the group to be described.").withDefault("30000")
	f.dryRun = f.flag("dry-run", "Only show what --reset-offsets would do.")
	f.execute = f.flag("execute", "Do it.")
	f.export = f.flag("export", "Print the new offsets as CSV.")
	f.toDate = f.value("to-datetime", "String", "datetime", "Reset to the first record at or after YYYY-MM-DDTHH:mm:SS.sss.")
	f.byDuration = f.value("by-duration", "String", "duration", "Reset to that long ago: PnDTnHnMnS.")
	f.toEarliest = f.flag("to-earliest", "Reset to the beginning.")
	f.toLatest = f.flag("to-latest", "Reset to the end.")
	f.toOffset = f.value("to-offset", "Long", "offset", "Reset to that offset.")
	f.shiftBy = f.value("shift-by", "Long", "number-of-offsets", "Move by so many records, back if negative.")
	f.fromFile = f.value("from-file", "String", "path to CSV file", "Reset to what the file says, as --export prints it.")
	f.toCurrent = f.flag("to-current", "Reset to where the group is.")
	f.members = f.flag("members", "Describe the members.")
	f.offsets = f.flag("offsets", "Describe the offsets; the default.")
	f.state = f.value("state", "String", "", "Describe the state; with --list show it, or only groups in these states.").optional()
	f.kind = f.value("type", "String", "", "With --list show the type, or only groups of these types.").optional()
	f.verbose = f.flag("verbose", "Show more.")
	common(&f.options)
	return f
}

// consumerGroups is kafka-consumer-groups.
func consumerGroups(c *call) error {
	f := newGroupFlags()
	if err := f.parse(c.args); err != nil {
		return err
	}
	if err := f.check(c); err != nil {
		return err
	}
	if f.validate.given {
		return f.runValidate(c)
	}
	server, err := f.server.one()
	if err != nil {
		return err
	}
	file, err := f.config.one()
	if err != nil {
		return err
	}
	k, err := c.admin(server, file)
	if err != nil {
		return err
	}
	defer k.close()
	switch {
	case f.list.given:
		err = f.runList(c, k)
	case f.describe.given:
		err = f.runDescribe(c, k)
	case f.delete.given:
		err = f.runDelete(c, k)
	case f.deleteOffsets.given:
		err = f.runDeleteOffsets(c, k)
	default:
		err = f.runReset(c, k)
	}
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	if err != nil {
		// As in Kafka this is no failure: the exit code stays 0.
		e := java("", err)
		why := e.message
		if e.cause != nil {
			why = e.cause.line()
		}
		c.printf("\nError: Executing consumer group command failed due to %s\n", why)
		c.errorf("%s\n", e.line())
	}
	return nil
}

// inFuture wraps an error as Java's futures do.
func inFuture(err error) error {
	return wrapped("java.util.concurrent.ExecutionException", err)
}

const noExecute = "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require either --dry-run or --execute to be specified. " +
	"You should add the --dry-run option explicitly if you are scripting this command and want to keep the current default behavior without prompting.\n"

var (
	groupStates = []string{"Empty", "CompletingRebalance", "Dead", "Stable", "Assigning", "PreparingRebalance", "Reconciling"}
	groupTypes  = []string{"Consumer", "Classic"}
)

// chosen are the words of a list that are among known, whatever their case.
func chosen(list string, known []string, what, plural string) ([]string, error) {
	var out []string
	for _, w := range splitList(list) {
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, w) })
		if i < 0 {
			return nil, fmt.Errorf("Invalid %s list '%s'. Valid %s are: %s", what, list, plural, strings.Join(known, ", "))
		}
		out = append(out, known[i])
	}
	return out, nil
}

func (f *groupFlags) check(c *call) error {
	bad := func(m string) error { return usage(&f.options, m) }
	if err := helpOrVersion(c, &f.options, "This tool helps to list, describe, delete and manage the offsets of consumer groups."); err != nil {
		return err
	}
	actions := 0
	for _, a := range []*option{f.list, f.describe, f.delete, f.reset, f.deleteOffsets, f.validate} {
		if a.given {
			actions++
		}
	}
	if actions != 1 && !(actions > 1 && f.describe.given && !f.group.given && !f.allGroups.given) {
		return bad("Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex")
	}
	if !f.validate.given {
		if m := missing(f.server); m != "" {
			return bad(m)
		}
	}
	if f.describe.given {
		if !f.group.given && !f.allGroups.given {
			return bad("Option [describe] takes one of these options: [group], [all-groups]")
		}
		n := 0
		for _, o := range []*option{f.members, f.offsets, f.state} {
			if o.given {
				n++
			}
		}
		if n > 1 {
			return bad("Option [describe] takes at most one of these options: [members], [offsets], [state]")
		}
		if len(f.state.values) > 0 {
			return bad("Option [describe] does not take a value for [state]")
		}
	}
	if f.delete.given {
		if !f.group.given && !f.allGroups.given {
			return bad("Option [delete] takes one of these options: [group], [all-groups]")
		}
		if f.topic.given {
			return bad("The consumer does not support topic-specific offset deletion from a consumer group.")
		}
	}
	if f.deleteOffsets.given && (!f.group.given || !f.topic.given) {
		return bad("Option [delete-offsets] takes the following options: [topic], [group]")
	}
	if f.reset.given {
		if f.dryRun.given && f.execute.given {
			return bad("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
		}
		if !f.dryRun.given && !f.execute.given {
			c.errorf("%s", noExecute)
		}
		if !f.group.given && !f.allGroups.given {
			return bad("Option [reset-offsets] takes one of these options: [group], [all-groups]")
		}
		how := []*option{f.toOffset, f.toDate, f.byDuration, f.toEarliest, f.toLatest, f.shiftBy, f.toCurrent, f.fromFile}
		for i, o := range how {
			if m := refused(o, slices.Delete(slices.Clone(how), i, i+1)...); m != "" {
				return bad(m)
			}
		}
	}
	for _, m := range []string{
		refused(f.group, f.list),
		refused(f.group, f.allGroups),
		refused(f.topic, f.list),
	} {
		if m != "" {
			return bad(m)
		}
	}
	return nil
}

func (f *groupFlags) runValidate(c *call) error {
	re, err := f.validate.one()
	if err != nil {
		return err
	}
	if _, err := regexp.Compile(re); err != nil {
		c.printf("\nError: The regular expression `%s` is invalid: %v.\n", re, err)
		return nil
	}
	c.printf("The regular expression `%s` is valid.\n", re)
	return nil
}

// groups lists the consumer groups as the brokers give them.
func (k *cluster) groups(states, types []string) ([]kmsg.ListGroupsResponseGroup, error) {
	req := kmsg.NewPtrListGroupsRequest()
	req.StatesFilter, req.TypesFilter = states, types
	var out []kmsg.ListGroupsResponseGroup
	for _, shard := range k.cl.RequestSharded(k.ctx, req) {
		if shard.Err != nil {
			return nil, java("listGroups", shard.Err)
		}
		resp := shard.Resp.(*kmsg.ListGroupsResponse)
		if err := answered(resp.ErrorCode, nil); err != nil {
			return nil, err
		}
		out = append(out, resp.Groups...)
	}
	return out, nil
}

// consumers are those of the groups that consumers make.
func consumers(all []kmsg.ListGroupsResponseGroup) []kmsg.ListGroupsResponseGroup {
	return slices.DeleteFunc(all, func(g kmsg.ListGroupsResponseGroup) bool { return g.ProtocolType != "consumer" && g.ProtocolType != "" })
}

func (f *groupFlags) runList(c *call, k *cluster) error {
	state, err := f.state.one()
	if err != nil {
		return err
	}
	kind, err := f.kind.one()
	if err != nil {
		return err
	}
	types, err := chosen(kind, groupTypes, "types", "types")
	if err != nil {
		return usage(&f.options, err.Error())
	}
	states, err := chosen(state, groupStates, "state", "states")
	if err != nil {
		return usage(&f.options, err.Error())
	}
	all, err := k.groups(states, types)
	if err != nil {
		return inFuture(err)
	}
	all = consumers(all)
	width := 15
	for _, g := range all {
		width = max(width, len(g.Group))
	}
	if !f.state.given && !f.kind.given {
		for _, g := range all {
			c.printf("%s\n", g.Group)
		}
		return nil
	}
	row := func(group, kind, state string) {
		c.printf("%-*s", width+10, group)
		if f.kind.given {
			c.printf(" %-20s", kind)
		}
		if f.state.given {
			c.printf(" %-20s", state)
		}
		c.printf("\n")
	}
	row("GROUP", "TYPE", "STATE")
	for _, g := range all {
		row(g.Group, typeName(g.GroupType), g.GroupState)
	}
	return nil
}

// typeName is a group's type as Java writes it.
func typeName(s string) string {
	if s == "" {
		return "Classic" // a broker that does not say has no other
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// names are the groups the command is about.
func (f *groupFlags) names(k *cluster) ([]string, error) {
	if !f.allGroups.given {
		return f.group.values, nil
	}
	all, err := k.groups(nil, nil)
	if err != nil {
		return nil, inFuture(err)
	}
	var out []string
	for _, g := range consumers(all) {
		out = append(out, g.Group)
	}
	return out, nil
}

// groupView is a group, classic or not, as it is described.
type groupView struct {
	name, state, assignor string
	coordinator           kadm.BrokerDetail
	epoch, target         string
	members               []memberView
}

type memberView struct {
	id, instance, host, client string
	has, wants                 map[string][]int32
	epoch, target              string
}

// view describes one group.
func (k *cluster) view(name string) (*groupView, error) {
	adm := kadm.NewClient(k.cl)
	if !k.unsupported(kmsg.ConsumerGroupDescribe) {
		if got, err := adm.DescribeConsumerGroups(k.ctx, name); err == nil {
			if g, ok := got[name]; ok && g.Err == nil {
				v := &groupView{name: name, state: g.State, assignor: g.AssignorName, coordinator: g.Coordinator,
					epoch: itoa(int64(g.Epoch)), target: itoa(int64(g.AssignmentEpoch))}
				for _, m := range g.Members {
					v.members = append(v.members, memberView{id: m.MemberID, instance: value(m.InstanceID), host: m.ClientHost, client: m.ClientID,
						has: byTopic(m.Assignment), wants: byTopic(m.TargetAssignment), epoch: itoa(int64(m.MemberEpoch)), target: itoa(int64(g.AssignmentEpoch))})
				}
				return v, nil
			}
		}
	}
	got, err := adm.DescribeGroups(k.ctx, name)
	if err != nil {
		return nil, java("describeConsumerGroups(api=FIND_COORDINATOR)", err)
	}
	g := got[name]
	if g.State == "Dead" {
		return nil, &javaError{class: apiErrors + "GroupIdNotFoundException", message: "Group " + name + " not found."}
	}
	if g.Err != nil {
		return nil, java("", g.Err)
	}
	v := &groupView{name: name, state: g.State, assignor: g.Protocol, coordinator: g.Coordinator, epoch: "-", target: "-"}
	for _, m := range g.Members {
		one := memberView{id: m.MemberID, instance: value(m.InstanceID), host: m.ClientHost, client: m.ClientID, epoch: "-", target: "-", has: map[string][]int32{}}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				one.has[t.Topic] = append(one.has[t.Topic], t.Partitions...)
			}
		}
		v.members = append(v.members, one)
	}
	return v, nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func byTopic(s kadm.TopicsSet) map[string][]int32 {
	out := map[string][]int32{}
	for t, ps := range s {
		out[t] = slices.Sorted(maps.Keys(ps))
	}
	return out
}

// assignment is a member's partitions in words, topic by topic.
func assignment(has map[string][]int32) string {
	if len(has) == 0 {
		return "-"
	}
	var parts []string
	for _, t := range sortedNames(has) {
		ps := slices.Sorted(slices.Values(has[t]))
		parts = append(parts, t+":"+joined(ps, ","))
	}
	return strings.Join(parts, ";")
}

func (f *groupFlags) runDescribe(c *call, k *cluster) error {
	names, err := f.names(k)
	if err != nil {
		return err
	}
	slices.Sort(names)
	if len(names) == 0 {
		c.printf("\nError: No consumer groups found.\n")
	}
	for _, name := range slices.Compact(names) {
		v, err := k.view(name)
		if err != nil {
			return inFuture(err)
		}
		var show func() error
		switch {
		case f.members.given:
			show = func() error { f.showMembers(c, v); return nil }
		case f.state.given:
			show = func() error { f.showState(c, v); return nil }
		default:
			show = func() error { return f.showOffsets(c, k, v) }
		}
		if err := show(); err != nil {
			return err
		}
	}
	return nil
}

// remark tells on stderr of a group that is not at work.
func remark(c *call, v *groupView) {
	switch v.state {
	case "Empty":
		c.errorf("\nConsumer group '%s' has no active members.\n", v.name)
	case "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling":
		c.errorf("\nWarning: Consumer group '%s' is rebalancing.\n", v.name)
	}
}

func (f *groupFlags) showState(c *call, v *groupView) {
	remark(c, v)
	at := fmt.Sprintf("%s:%d  (%d)", v.coordinator.Host, v.coordinator.Port, v.coordinator.NodeID)
	group, wide := max(15, len(v.name)), max(25, len(at))
	row := func(a, b, assignor, state, epoch, target, members string) {
		c.printf("%-*s %-*s %-20s %-20s ", group, a, wide, b, assignor, state)
		if f.verbose.given {
			c.printf("%-15s %-25s ", epoch, target)
		}
		c.printf("%s\n", members)
	}
	c.printf("\n")
	row("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")
	row(v.name, at, cmp.Or(v.assignor, "-"), v.state, v.epoch, v.target, strconv.Itoa(len(v.members)))
}

func (f *groupFlags) showMembers(c *call, v *groupView) {
	remark(c, v)
	group, id, inst, host, client := 15, 15, 17, 15, 15
	static := false
	for _, m := range v.members {
		group, id, inst, host, client = max(group, len(v.name)), max(id, len(m.id)), max(inst, len(m.instance)), max(host, len(m.host)), max(client, len(m.client))
		static = static || m.instance != ""
	}
	row := func(a, b, instance, d, e, n, epoch, has, target, wants string) {
		c.printf("%-*s %-*s ", group, a, id, b)
		if static {
			c.printf("%-*s ", inst, instance)
		}
		c.printf("%-*s %-*s %-15s ", host, d, client, e, n)
		if f.verbose.given {
			c.printf("%-15s %-20s %-15s %-20s", epoch, has, target, wants)
		}
		c.printf("\n")
	}
	c.printf("\n")
	row("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")
	for _, m := range v.members {
		n := 0
		for _, ps := range m.has {
			n += len(ps)
		}
		row(v.name, m.id, m.instance, m.host, m.client, strconv.Itoa(n), m.epoch, assignment(m.has), m.target, assignment(m.wants))
	}
}

// committed are a group's offsets.
func (k *cluster) committed(group string) (kadm.OffsetResponses, error) {
	got, err := kadm.NewClient(k.cl).FetchOffsets(k.ctx, group)
	if err != nil {
		return nil, java("listConsumerGroupOffsets", err)
	}
	return got, nil
}

type groupRow struct {
	topic                         string
	partition                     int32
	epoch, current, end, lag      string
	consumer, instance, host, cid string
}

func (f *groupFlags) showOffsets(c *call, k *cluster, v *groupView) error {
	offsets, err := k.committed(v.name)
	if err != nil {
		return inFuture(err)
	}
	topics := map[string]bool{}
	for _, m := range v.members {
		for t := range m.has {
			topics[t] = true
		}
	}
	offsets.Each(func(o kadm.OffsetResponse) { topics[o.Topic] = true })
	ends := kadm.ListedOffsets{}
	if len(topics) > 0 {
		if ends, err = kadm.NewClient(k.cl).ListEndOffsets(k.ctx, sortedNames(topics)...); err != nil {
			return inFuture(java("listOffsets", err))
		}
	}
	var rows []groupRow
	static := false
	add := func(topic string, p int32, m *memberView) {
		r := groupRow{topic: topic, partition: p, epoch: "-", current: "-", end: "-", lag: "-", consumer: "-", instance: "-", host: "-", cid: "-"}
		o, has := offsets.Lookup(topic, p)
		has = has && o.Err == nil && o.At >= 0
		if has {
			r.current = itoa(o.At)
			if o.LeaderEpoch >= 0 {
				r.epoch = itoa(int64(o.LeaderEpoch))
			}
		}
		if e, ok := ends.Lookup(topic, p); ok && e.Err == nil {
			r.end = itoa(e.Offset)
			if has {
				r.lag = itoa(e.Offset - o.At)
			}
		}
		if m != nil {
			r.consumer, r.host, r.cid = m.id, m.host, m.client
			if m.instance != "" {
				r.instance, static = m.instance, true
			}
		}
		rows = append(rows, r)
	}
	seen := map[string]bool{}
	members := slices.Clone(v.members)
	slices.SortStableFunc(members, func(a, b memberView) int { return cmp.Compare(count(b.has), count(a.has)) })
	for i := range members {
		m := &members[i]
		for _, t := range sortedNames(m.has) {
			for _, p := range slices.Sorted(slices.Values(m.has[t])) {
				seen[t+"/"+itoa(int64(p))] = true
				add(t, p, m)
			}
		}
		if len(m.has) == 0 {
			rows = append(rows, groupRow{topic: "-", partition: -1, epoch: "-", current: "-", end: "-", lag: "-", consumer: m.id, instance: "-", host: m.host, cid: m.client})
		}
	}
	for _, o := range offsets.Sorted() {
		if !seen[o.Topic+"/"+itoa(int64(o.Partition))] {
			add(o.Topic, o.Partition, nil)
		}
	}
	remark(c, v)
	if len(rows) == 0 {
		return nil
	}
	group, topic, consumer, inst, host := max(15, len(v.name)), 15, 15, 17, 15
	for _, r := range rows {
		topic, consumer, inst, host = max(topic, len(r.topic)), max(consumer, len(r.consumer)), max(inst, len(r.instance)), max(host, len(r.host))
	}
	row := func(g string, r groupRow, partition string) {
		c.printf("%-*s %-*s %-10s ", group, g, topic, r.topic, partition)
		if f.verbose.given {
			c.printf("%-15s ", r.epoch)
		}
		c.printf("%-15s %-15s %-15s %-*s ", r.current, r.end, r.lag, consumer, r.consumer)
		if static {
			c.printf("%-*s ", inst, r.instance)
		}
		c.printf("%-*s %s\n", host, r.host, r.cid)
	}
	c.printf("\n")
	row("GROUP", groupRow{"TOPIC", 0, "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID"}, "PARTITION")
	for _, r := range rows {
		p := "-"
		if r.partition >= 0 {
			p = itoa(int64(r.partition))
		}
		row(v.name, r, p)
	}
	return nil
}

func count(has map[string][]int32) (n int) {
	for _, ps := range has {
		n += len(ps)
	}
	return n
}

func (f *groupFlags) runDelete(c *call, k *cluster) error {
	names, err := f.names(k)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		c.printf("Deletion of requested consumer groups () was successful.\n")
		return nil
	}
	got, err := kadm.NewClient(k.cl).DeleteGroups(k.ctx, names...)
	if err != nil {
		return inFuture(java("deleteConsumerGroups(api=FIND_COORDINATOR)", err))
	}
	var good []string
	var bad strings.Builder
	for _, n := range names {
		if g := got[n]; g.Err != nil {
			fmt.Fprintf(&bad, "\n* Group '%s' could not be deleted due to: %s", n, java("", g.Err).line())
		} else {
			good = append(good, "'"+n+"'")
		}
	}
	if bad.Len() == 0 {
		c.printf("Deletion of requested consumer groups (%s) was successful.\n", strings.Join(good, ", "))
		return nil
	}
	c.printf("\nError: Deletion of some consumer groups failed:%s\n", bad.String())
	if len(good) > 0 {
		c.printf("\nThese consumer groups were deleted successfully: %s\n", strings.Join(good, ", "))
	}
	return nil
}
