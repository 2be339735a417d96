package group_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// The player reads one command a line and prints what it brings about: replies
// ("a: join NONE gen=1 ...") and records ("+ commit g t-0 ..."). A name stands
// for a client: its member id and generation are those of its last JoinGroup.
// The same commands can be played against a real Kafka, see kafka_test.go.
//
//	config delay=1000 sessionmin=1000 maxsize=2 retention=60000 check=5000 metamax=10 recmax=1000
//	topics t:3 u:1               the topics that exist, with partitions
//	join a [v=9] [group=g] [member=] [instance=i] [type=consumer] [protos=range(t+u),rr=bytes] [session=30000] [rebalance=60000]
//	sync a [v=5] [gen=] [member=] [instance=] [type=] [proto=] [assign=a:x,b:y]
//	beat a, leave a [v=5] [members=a,zzz,/i,zzz/i]
//	commit a [v=9] [gen=] [member=] [retention=] t:0=5@3/meta t:1=6
//	fetch a [v=9] [all] t:0 t:1     (v8+: one group)
//	offsetdelete a t:0
//	describe, list [states=] [types=], delete
//	droptopic t                  TopicDeleted
//	tick 3s                      the clock goes on; deadlines fire
//	reload                       a new coordinator loads the records
type command struct {
	verb, who string
	opt       map[string]string
	args      []string
}

func parse(line string) command {
	f := strings.Fields(line)
	c := command{verb: f[0], opt: map[string]string{}}
	for i, w := range f[1:] {
		k, v, eq := strings.Cut(w, "=")
		switch {
		case eq && !strings.ContainsAny(k, ":"):
			c.opt[k] = v
		case i == 0:
			c.who = w
			c.args = append(c.args, w)
		default:
			c.args = append(c.args, w)
		}
	}
	return c
}

func (c command) str(key, def string) string {
	if v, ok := c.opt[key]; ok {
		return v
	}
	return def
}

func (c command) int(key string, def int) int {
	if v, ok := c.opt[key]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		return n
	}
	return def
}

func (c command) ptr(key string) *string {
	if v, ok := c.opt[key]; ok {
		if v == "null" {
			return nil
		}
		return &v
	}
	return nil
}

// names is what the player remembers of clients and topics.
type names struct {
	member map[string]string
	gen    map[string]int32
	topics map[string]int32
}

func newNames() *names {
	return &names{member: map[string]string{}, gen: map[string]int32{}, topics: map[string]int32{"t": 3, "u": 1}}
}

func (n *names) id(who string) string {
	if id, ok := n.member[who]; ok {
		return id
	}
	return who
}

func topicID(name string) (id [16]byte) {
	copy(id[:], "id-of-"+name)
	return id
}

func (n *names) TopicExists(name string, id kafka.TopicID, p int32) bool {
	if name == "" {
		name, _ = n.TopicName(id)
	}
	return p >= 0 && p < n.topics[name]
}

func (n *names) TopicName(id kafka.TopicID) (string, bool) {
	for t := range n.topics {
		if topicID(t) == id {
			return t, true
		}
	}
	return "", false
}

func (n *names) TopicID(name string) (kafka.TopicID, bool) {
	_, ok := n.topics[name]
	return topicID(name), ok
}

func protocols(s string) []kmsg.JoinGroupRequestProtocol {
	ps := []kmsg.JoinGroupRequestProtocol{}
	for _, p := range strings.Split(s, ",") {
		if p == "" {
			continue
		}
		if name, topics, ok := strings.Cut(strings.TrimSuffix(p, ")"), "("); ok {
			m := kmsg.NewConsumerMemberMetadata()
			m.Topics = strings.Split(topics, "+")
			ps = append(ps, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: m.AppendTo(nil)})
			continue
		}
		name, raw, _ := strings.Cut(p, "=")
		ps = append(ps, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: []byte(raw)})
	}
	return ps
}

// request makes the request of a command; nil: not a request.
func (n *names) request(c command) any {
	g := c.str("group", "g")
	member := n.id(c.who)
	if _, known := n.member[c.who]; !known {
		member = ""
	}
	member = c.str("member", member)
	member = n.id(member)
	gen := n.gen[c.who]
	if member == "" {
		gen = -1
	}
	gen = int32(c.int("gen", int(gen)))
	switch c.verb {
	case "join":
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version = int16(c.int("v", 9))
		q.Group, q.MemberID, q.InstanceID = g, member, c.ptr("instance")
		q.ProtocolType = c.str("type", "consumer")
		q.Protocols = protocols(c.str("protos", "range(t)"))
		q.SessionTimeoutMillis = int32(c.int("session", 30000))
		q.RebalanceTimeoutMillis = int32(c.int("rebalance", 60000))
		return q
	case "sync":
		q := kmsg.NewPtrSyncGroupRequest()
		q.Version = int16(c.int("v", 5))
		q.Group, q.MemberID, q.InstanceID, q.Generation = g, member, c.ptr("instance"), gen
		q.ProtocolType, q.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
		if _, ok := c.opt["type"]; ok {
			q.ProtocolType = c.ptr("type")
		}
		if _, ok := c.opt["proto"]; ok {
			q.Protocol = c.ptr("proto")
		}
		for _, a := range strings.Split(c.str("assign", ""), ",") {
			if who, what, ok := strings.Cut(a, ":"); ok {
				q.GroupAssignment = append(q.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: n.id(who), MemberAssignment: []byte(what)})
			}
		}
		return q
	case "beat":
		q := kmsg.NewPtrHeartbeatRequest()
		q.Version = int16(c.int("v", 4))
		q.Group, q.MemberID, q.InstanceID, q.Generation = g, member, c.ptr("instance"), gen
		return q
	case "leave":
		q := kmsg.NewPtrLeaveGroupRequest()
		q.Version = int16(c.int("v", 5))
		q.Group, q.MemberID = g, member
		for _, e := range strings.Split(c.str("members", c.who), ",") {
			id, inst, static := strings.Cut(e, "/")
			m := kmsg.LeaveGroupRequestMember{MemberID: n.id(id)}
			if static {
				m.InstanceID = &inst
			}
			q.Members = append(q.Members, m)
		}
		return q
	case "commit":
		q := kmsg.NewPtrOffsetCommitRequest()
		q.Version = int16(c.int("v", 9))
		q.Group, q.MemberID, q.InstanceID, q.Generation = g, member, c.ptr("instance"), gen
		q.RetentionTimeMillis = int64(c.int("retention", -1))
		for _, a := range c.args[1:] {
			tp, what, _ := strings.Cut(a, "=")
			t, p, _ := strings.Cut(tp, ":")
			what, meta, hasMeta := strings.Cut(what, "/")
			off, epoch, hasEpoch := strings.Cut(what, "@")
			x := kmsg.NewOffsetCommitRequestTopicPartition()
			x.Partition, x.Offset = int32(atoi(p)), int64(atoi(off))
			x.Timestamp = int64(c.int("ts", -1))
			if hasEpoch {
				x.LeaderEpoch = int32(atoi(epoch))
			}
			if hasMeta {
				x.Metadata = &meta
			}
			if k := len(q.Topics); k == 0 || q.Topics[k-1].Topic != t {
				q.Topics = append(q.Topics, kmsg.OffsetCommitRequestTopic{Topic: t, TopicID: topicID(t)})
			}
			last := &q.Topics[len(q.Topics)-1]
			last.Partitions = append(last.Partitions, x)
		}
		return q
	case "fetch":
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version = int16(c.int("v", 9))
		q.RequireStable = c.int("stable", 0) == 1
		fg := kmsg.NewOffsetFetchRequestGroup()
		fg.Group, q.Group = g, g
		fg.Topics, q.Topics = []kmsg.OffsetFetchRequestGroupTopic{}, []kmsg.OffsetFetchRequestTopic{}
		for _, a := range c.args[1:] {
			if a == "all" {
				fg.Topics, q.Topics = nil, nil
				break
			}
			t, ps, _ := strings.Cut(a, ":")
			var list []int32
			for _, p := range strings.Split(ps, ",") {
				list = append(list, int32(atoi(p)))
			}
			fg.Topics = append(fg.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t, TopicID: topicID(t), Partitions: list})
			q.Topics = append(q.Topics, kmsg.OffsetFetchRequestTopic{Topic: t, Partitions: list})
		}
		q.Groups = append(q.Groups, fg)
		return q
	case "offsetdelete":
		q := kmsg.NewPtrOffsetDeleteRequest()
		q.Group = g
		for _, a := range c.args[1:] {
			t, p, _ := strings.Cut(a, ":")
			q.Topics = append(q.Topics, kmsg.OffsetDeleteRequestTopic{Topic: t, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: int32(atoi(p))}}})
		}
		return q
	case "list":
		q := kmsg.NewPtrListGroupsRequest()
		q.Version = int16(c.int("v", 5))
		if v := c.str("states", ""); v != "" {
			q.StatesFilter = strings.Split(v, ",")
		}
		if v := c.str("types", ""); v != "" {
			q.TypesFilter = strings.Split(v, ",")
		}
		return q
	case "describe":
		q := kmsg.NewPtrDescribeGroupsRequest()
		q.Version = int16(c.int("v", 6))
		q.Groups = []string{g}
		return q
	case "delete":
		q := kmsg.NewPtrDeleteGroupsRequest()
		q.Version = int16(c.int("v", 3))
		q.Groups = []string{g}
		return q
	case "droptopic":
		delete(n.topics, c.who)
		return group.TopicDeleted{Topic: c.who}
	}
	panic("command " + c.verb)
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func str(p *string) string {
	if p == nil {
		return "null"
	}
	return *p
}

func errName(c int16) string {
	if c == 0 {
		return "NONE"
	}
	return kafka.Error(c).Name()
}

// show prints bytes: a consumer's subscription by its topics.
func show(b []byte) string {
	var m kmsg.ConsumerMemberMetadata
	if len(b) > 2 && m.ReadFrom(b) == nil {
		return "(" + strings.Join(m.Topics, "+") + ")"
	}
	return strconv.Quote(string(b))
}

func static(id *string) string {
	if id == nil {
		return ""
	}
	return "/" + *id
}

func msg(p *string) string {
	if p == nil {
		return ""
	}
	return " (" + *p + ")"
}

// render prints a response and takes a join's member id and generation up.
func (n *names) render(who string, resp any) string {
	b := &strings.Builder{}
	switch p := resp.(type) {
	case *kmsg.JoinGroupResponse:
		fmt.Fprintf(b, "%s: join %s", who, errName(p.ErrorCode))
		if p.ErrorCode == 0 {
			n.gen[who] = p.Generation
		}
		if p.ErrorCode == 0 || p.ErrorCode == 79 {
			n.member[who] = p.MemberID
		}
		fmt.Fprintf(b, " gen=%d me=%s", p.Generation, p.MemberID)
		if p.ErrorCode != 0 {
			fmt.Fprintf(b, " type=%s proto=%s", str(p.ProtocolType), str(p.Protocol))
			break
		}
		fmt.Fprintf(b, " leader=%s type=%s proto=%s", p.LeaderID, str(p.ProtocolType), str(p.Protocol))
		if p.SkipAssignment {
			b.WriteString(" skip")
		}
		var ms []string
		for _, m := range p.Members {
			ms = append(ms, m.MemberID+static(m.InstanceID)+show(m.ProtocolMetadata))
		}
		sort.Strings(ms)
		fmt.Fprintf(b, " members=%v", ms)
	case *kmsg.SyncGroupResponse:
		fmt.Fprintf(b, "%s: sync %s type=%s proto=%s %q", who, errName(p.ErrorCode), str(p.ProtocolType), str(p.Protocol), p.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		fmt.Fprintf(b, "%s: beat %s", who, errName(p.ErrorCode))
	case *kmsg.LeaveGroupResponse:
		fmt.Fprintf(b, "%s: leave %s", who, errName(p.ErrorCode))
		for _, m := range p.Members {
			fmt.Fprintf(b, " %s%s=%s", m.MemberID, static(m.InstanceID), errName(m.ErrorCode))
		}
	case *kmsg.OffsetCommitResponse:
		fmt.Fprintf(b, "%s: commit", who)
		var xs []string
		for _, t := range p.Topics {
			if t.Topic == "" {
				t.Topic = idName(t.TopicID)
			}
			for _, x := range t.Partitions {
				xs = append(xs, fmt.Sprintf(" %s:%d=%s", t.Topic, x.Partition, errName(x.ErrorCode)))
			}
		}
		b.WriteString(sorted(xs))
	case *kmsg.OffsetFetchResponse:
		fmt.Fprintf(b, "%s: fetch %s", who, errName(p.ErrorCode))
		var xs []string
		for _, t := range p.Topics {
			for _, x := range t.Partitions {
				xs = append(xs, fetched(t.Topic, kmsg.OffsetFetchResponseGroupTopicPartition(x)))
			}
		}
		b.WriteString(sorted(xs))
		for _, g := range p.Groups {
			fmt.Fprintf(b, " [%s %s", g.Group, errName(g.ErrorCode))
			var xs []string
			for _, t := range g.Topics {
				if t.Topic == "" {
					t.Topic = idName(t.TopicID)
				}
				for _, x := range t.Partitions {
					xs = append(xs, fetched(t.Topic, x))
				}
			}
			b.WriteString(sorted(xs) + "]")
		}
	case *kmsg.OffsetDeleteResponse:
		fmt.Fprintf(b, "%s: offsetdelete %s", who, errName(p.ErrorCode))
		var xs []string
		for _, t := range p.Topics {
			for _, x := range t.Partitions {
				xs = append(xs, fmt.Sprintf(" %s:%d=%s", t.Topic, x.Partition, errName(x.ErrorCode)))
			}
		}
		b.WriteString(sorted(xs))
	case *kmsg.ListGroupsResponse:
		fmt.Fprintf(b, "%s: list %s", who, errName(p.ErrorCode))
		for _, g := range p.Groups {
			fmt.Fprintf(b, " %s/%s/%s/%s", g.Group, g.ProtocolType, g.GroupState, g.GroupType)
		}
	case *kmsg.DescribeGroupsResponse:
		for _, d := range p.Groups {
			fmt.Fprintf(b, "%s: describe %s %s%s state=%s type=%q proto=%q", who, d.Group, errName(d.ErrorCode), msg(d.ErrorMessage), d.State, d.ProtocolType, d.Protocol)
			var ms []string
			for _, m := range d.Members {
				ms = append(ms, fmt.Sprintf("%s%s client=%s%s %s %q", m.MemberID, static(m.InstanceID), m.ClientID, m.ClientHost, show(m.ProtocolMetadata), m.MemberAssignment))
			}
			sort.Strings(ms)
			for _, m := range ms {
				b.WriteString("\n  " + m)
			}
		}
	case *kmsg.DeleteGroupsResponse:
		for _, d := range p.Groups {
			fmt.Fprintf(b, "%s: delete %s %s%s", who, d.Group, errName(d.ErrorCode), msg(d.ErrorMessage))
		}
	case kafka.Error:
		fmt.Fprintf(b, "%s: refused %s", who, p.Name())
	case group.TopicDeleted:
		fmt.Fprintf(b, "%s: topic gone", who)
	default:
		fmt.Fprintf(b, "%s: %T", who, resp)
	}
	return b.String()
}

// sorted joins what an answer may hold in any order.
func sorted(xs []string) string {
	sort.Strings(xs)
	return strings.Join(xs, "")
}

func fetched(topic string, x kmsg.OffsetFetchResponseGroupTopicPartition) string {
	s := fmt.Sprintf(" %s:%d=%d@%d/%s", topic, x.Partition, x.Offset, x.LeaderEpoch, str(x.Metadata))
	if x.ErrorCode != 0 {
		s += "!" + errName(x.ErrorCode)
	}
	return s
}

func idName(id [16]byte) string { return "#" + strings.TrimRight(string(id[:]), "\x00") }

// viaWire encodes and decodes a message, as a connection would, and wants no
// byte left over and nothing lost twice.
func viaWire[M wired](m M) (M, error) {
	first := m.AppendTo(nil)
	n := reflect.New(reflect.TypeOf(m).Elem()).Interface().(M)
	n.SetVersion(m.GetVersion())
	if err := n.ReadFrom(first); err != nil {
		return n, err
	}
	if again := n.AppendTo(nil); !slices.Equal(first, again) {
		return n, errors.New("encodes differently after decoding")
	}
	return n, nil
}

type wired interface {
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
	SetVersion(int16)
	GetVersion() int16
}

// memLog is the log of the player: all records, all safe at once.
type memLog struct{ records []group.Record }

func (l *memLog) Append(_ time.Time, rs []group.Record) (int64, error) {
	l.records = append(l.records, rs...)
	return int64(len(l.records)) - 1, nil
}

// local plays commands on a shard.
type local struct {
	*names
	t       testing.TB
	cfg     group.Config
	start   time.Time
	now     time.Time
	log     *memLog
	seen    int // records already printed
	core    *machine.Core[group.Record]
	shard   *group.Shard
	ids     int
	tok     machine.Token
	asked   map[machine.Token]string
	version int16 // of the last request: replies for one group carry none
}

func newLocal(t testing.TB) *local {
	l := &local{
		names: newNames(), t: t, log: &memLog{}, asked: map[machine.Token]string{},
		start: time.UnixMilli(1_700_000_000_000),
		cfg:   group.Config{MinSessionMs: 1000, InitialRebalanceDelayMs: 1000},
	}
	l.now = l.start
	l.boot()
	return l
}

func (l *local) boot() {
	l.shard = group.NewShard(l.cfg, func(prefix string) string {
		l.ids++
		return fmt.Sprintf("%s-%d", prefix, l.ids)
	})
	l.core = machine.NewCore(l.shard, l.log)
	for i, r := range l.log.records {
		l.core.Load(int64(i), r)
	}
	l.core.Watermark(int64(len(l.log.records)) - 1)
	l.core.Start(l.now)
	if l.shard.Skipped() != 0 {
		l.t.Errorf("%d records were not understood", l.shard.Skipped())
	}
}

func (l *local) play(c command) []string {
	switch c.verb {
	case "config":
		l.cfg.InitialRebalanceDelayMs = int32(c.int("delay", int(l.cfg.InitialRebalanceDelayMs)))
		l.cfg.MinSessionMs = int32(c.int("sessionmin", int(l.cfg.MinSessionMs)))
		l.cfg.MaxSize = c.int("maxsize", l.cfg.MaxSize)
		l.cfg.OffsetsRetentionMs = int64(c.int("retention", int(l.cfg.OffsetsRetentionMs)))
		l.cfg.RetentionCheckMs = int64(c.int("check", int(l.cfg.RetentionCheckMs)))
		l.cfg.OffsetMetadataMaxBytes = c.int("metamax", l.cfg.OffsetMetadataMaxBytes)
		l.cfg.RecordsBytesMax = c.int("recmax", l.cfg.RecordsBytesMax)
		l.boot()
		return nil
	case "topics":
		l.topics = map[string]int32{}
		for _, a := range c.args {
			t, n, _ := strings.Cut(a, ":")
			l.topics[t] = int32(atoi(n))
		}
		return nil
	case "tick":
		d, err := time.ParseDuration(c.who)
		if err != nil {
			l.t.Fatal(err)
		}
		end := l.now.Add(d)
		var out []string
		for {
			next := l.core.NextDeadline()
			if next.IsZero() || next.After(end) {
				break
			}
			l.now = maxTime(l.now, next)
			l.core.Expire(l.now)
			for _, s := range l.collect() {
				out = append(out, fmt.Sprintf("@%v %s", l.now.Sub(l.start), s))
			}
		}
		l.now = end
		return out
	case "reload":
		replies := l.core.Fail()
		out := l.show(replies)
		l.boot()
		return out
	}
	req := l.request(c)
	if k, ok := req.(kmsg.Request); ok {
		k, err := viaWire(k)
		if err != nil {
			l.t.Fatalf("%s: %v", c.verb, err)
		}
		l.version = k.GetVersion()
		req = k
	}
	switch q := req.(type) {
	case *kmsg.DescribeGroupsRequest:
		req = group.DescribeGroup{Version: q.Version, Group: q.Groups[0]}
	case *kmsg.DeleteGroupsRequest:
		req = group.DeleteGroup{Version: q.Version, Group: q.Groups[0]}
	}
	l.tok++
	l.asked[l.tok] = c.who
	l.core.Submit(l.now, l.tok, &group.Request{
		Req: req, ClientID: c.str("client", c.who), ClientHost: "/127.0.0.1", Topics: l.names,
	})
	return l.collect()
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *local) collect() []string {
	released, _, err := l.core.Drain(l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	released = append(released, l.core.Watermark(int64(len(l.log.records))-1)...)
	var out []string
	for ; l.seen < len(l.log.records); l.seen++ {
		out = append(out, "+ "+record(l.t, l.start, l.log.records[l.seen]))
	}
	return append(l.show(released), out...)
}

func (l *local) show(rs []machine.Reply) []string {
	var out []string
	for _, r := range rs {
		resp := r.Resp
		switch g := resp.(type) {
		case kmsg.DescribeGroupsResponseGroup:
			p := kmsg.NewPtrDescribeGroupsResponse()
			p.Version = l.version
			p.Groups = append(p.Groups, g)
			resp = p
		case kmsg.DeleteGroupsResponseGroup:
			p := kmsg.NewPtrDeleteGroupsResponse()
			p.Version = l.version
			p.Groups = append(p.Groups, g)
			resp = p
		}
		if k, ok := resp.(kmsg.Response); ok {
			k, err := viaWire(k)
			if err != nil {
				l.t.Errorf("%T: %v", resp, err)
			}
			resp = k
		}
		out = append(out, l.render(l.asked[r.Token], resp))
		delete(l.asked, r.Token)
	}
	return out
}

// record prints a record, with times since the start.
func record(t testing.TB, start time.Time, r group.Record) string {
	since := func(ms int64) string {
		if ms < 0 {
			return "-"
		}
		return time.UnixMilli(ms).Sub(start).String()
	}
	switch r.Key[1] {
	case 0, 1:
		var k kmsg.OffsetCommitKey
		var v kmsg.OffsetCommitValue
		must(t, k.ReadFrom(r.Key))
		if r.Value == nil {
			return fmt.Sprintf("commit %s %s-%d gone", k.Group, k.Topic, k.Partition)
		}
		must(t, v.ReadFrom(r.Value))
		s := fmt.Sprintf("commit %s %s-%d v%d offset=%d epoch=%d %q at=%s", k.Group, k.Topic, k.Partition, v.Version, v.Offset, v.LeaderEpoch, v.Metadata, since(v.CommitTimestamp))
		if v.Version == 1 {
			s += " expires=" + since(v.ExpireTimestamp)
		}
		if v.TopicID != [16]byte{} {
			s += " " + idName(v.TopicID)
		}
		return s
	case 2:
		var k kmsg.GroupMetadataKey
		var v kmsg.GroupMetadataValue
		must(t, k.ReadFrom(r.Key))
		if r.Value == nil {
			return fmt.Sprintf("group %s gone", k.Group)
		}
		must(t, v.ReadFrom(r.Value))
		s := fmt.Sprintf("group %s v%d type=%q gen=%d proto=%s leader=%s at=%s", k.Group, v.Version, v.ProtocolType, v.Generation, str(v.Protocol), str(v.Leader), since(v.CurrentStateTimestamp))
		slices.SortFunc(v.Members, func(a, b kmsg.GroupMetadataValueMember) int { return strings.Compare(a.MemberID, b.MemberID) })
		for _, m := range v.Members {
			s += fmt.Sprintf(" %s%s(%s%s %d/%d)%s%q", m.MemberID, static(m.InstanceID), m.ClientID, m.ClientHost, m.SessionTimeoutMillis, m.RebalanceTimeoutMillis, show(m.Subscription), m.Assignment)
		}
		return s
	}
	return fmt.Sprintf("%q", r.Key)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
