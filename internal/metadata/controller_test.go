package metadata

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// Shows: what the controller answers and which records it makes, request by
// request, as transcripts in testdata. Lines are commands; indented lines below
// are the replies, and the records after "+". Run with -rewrite after a change
// that is meant, and read the diff. At the end of each transcript the records
// are replayed, and the snapshot is taken and read: both must give the live
// state.

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew")

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := transcript(t, string(want))
			if got == string(want) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range min(len(g), len(w)) {
				if g[i] != w[i] {
					t.Fatalf("line %d:\n got  %s\n want %s", i+1, g[i], w[i])
				}
			}
			t.Fatalf("%d lines, want %d", len(g), len(w))
		})
	}
}

// fakeRules know six keys.
type fakeRules struct{}

func (fakeRules) ValidateConfig(kind ConfigKind, _, key string, value *string) error {
	switch key {
	case "retention.ms", "log.retention.ms", "interval.ms", "min.lag", "max.lag":
		if value != nil {
			if _, err := strconv.Atoi(*value); err != nil {
				return fmt.Errorf("Invalid value %s for configuration %s: Not a number of type LONG", *value, key)
			}
		}
		return nil
	case "cleanup.policy":
		return nil
	case "log.dirs":
		return fmt.Errorf("Cannot update these configs dynamically: [%s]", key)
	}
	return fmt.Errorf("Unknown topic config name: %s", key)
}

func (fakeRules) ListConfig(_ ConfigKind, key string) (string, bool) {
	return "delete", key == "cleanup.policy"
}

func (fakeRules) TopicConfigs(_ *Image, overrides map[string]string) (out []kmsg.CreateTopicsResponseTopicConfig) {
	for _, k := range slices.Sorted(maps.Keys(overrides)) {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.Value, c.Source = k, kmsg.StringPtr(overrides[k]), 1
		out = append(out, c)
	}
	return out
}

func (fakeRules) ValidateConfigSet(_ ConfigKind, _ string, all map[string]string) error {
	lo, _ := strconv.Atoi(all["min.lag"])
	hi, err := strconv.Atoi(all["max.lag"])
	if err == nil && lo > hi {
		return errors.New("conflict")
	}
	return nil
}

// world is a controller with everything it did.
type world struct {
	t    testing.TB
	c    *Controller
	now  time.Time
	def  Defaults
	log  []Record
	next uint64
	out  strings.Builder
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: time.Unix(0, 0), def: Defaults{Partitions: 1, ReplicationFactor: 1}}
	w.c = NewController(Config{
		Rules:    fakeRules{},
		Defaults: func(*Image) Defaults { return w.def },
		Rand:     rand.New(rand.NewPCG(1, 2)),
		NewID: func() (id kafka.TopicID) {
			w.next++
			copy(id[:], "abcdefgh")
			copy(id[8:], fmt.Sprintf("%08d", w.next))
			return id
		},
		SessionMs: 9000,
	}, NewImage("C"))
	return w
}

// do handles a request as Core does: records are replayed at once.
func (w *world) do(req any) any {
	step := w.c.Handle(w.now, 1, req)
	w.take(step)
	return step.Replies[0].Resp
}

func (w *world) take(step machine.Step[Record]) {
	for _, r := range step.Records {
		w.c.Replay(machine.Live, r)
		w.log = append(w.log, r)
	}
}

func imageBytes(img *Image) string { return string(AppendRecords(nil, img.Records())) }

// check compares replay and snapshot with the live state.
func (w *world) check() {
	w.t.Helper()
	live := imageBytes(w.c.img())
	back, err := DecodeRecords(AppendRecords(nil, w.log))
	if err != nil {
		w.t.Fatal(err)
	}
	d := NewImage("C").Edit()
	for _, r := range back {
		d.Apply(r)
	}
	replayed, _ := d.Done(0)
	if got := imageBytes(replayed); got != live {
		w.t.Fatalf("replay gives\n%s\nlive is\n%s", got, live)
	}
	if got := imageBytes(w.c.Snapshot()); got != live {
		w.t.Fatalf("snapshot gives\n%s\nlive is\n%s", got, live)
	}
}

func (w *world) printf(format string, args ...any) {
	fmt.Fprintf(&w.out, "  "+format+"\n", args...)
}

func (w *world) item(name string, code int16, text *string) {
	s := ""
	if text != nil {
		s = " " + *text
	}
	w.printf("%s: %d%s", name, code, s)
}

func transcript(t *testing.T, in string) string {
	w := newWorld(t)
	for _, line := range strings.Split(strings.TrimRight(in, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue // an old reply
		}
		fmt.Fprintln(&w.out, line)
		if line == "" || line[0] == '#' {
			continue
		}
		before := len(w.log)
		w.command(strings.Fields(line))
		for _, r := range w.log[before:] {
			w.printf("+ %s", bytes.TrimSpace(AppendRecords(nil, []Record{r})))
		}
	}
	w.check()
	return w.out.String()
}

// command runs one line: the verb, then arguments; key=value ones are options.
func (w *world) command(words []string) {
	var args []string
	opt := map[string]string{}
	has := func(k string) bool { _, ok := opt[k]; return ok }
	for _, a := range words[1:] {
		if k, v, ok := strings.Cut(a, "="); ok && !strings.Contains(words[0], "config") {
			opt[k] = v
		} else {
			args = append(args, a)
		}
	}
	num := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			w.t.Fatalf("%v: %v", words, err)
		}
		return n
	}
	ids := func(s string) []int32 {
		out := []int32{}
		for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
			out = append(out, int32(num(f)))
		}
		return out
	}
	epoch := func(id int) int64 {
		b, _ := w.c.img().Broker(kafka.BrokerID(id))
		return b.Epoch
	}
	switch words[0] {
	case "defaults":
		w.def = Defaults{int32(num(opt["partitions"])), int16(num(opt["rf"])), has("undeletable")}
	case "broker": // register: id [rack=] [fenced=] [unclean=] [inc=]
		b := Broker{ID: kafka.BrokerID(num(args[0])), Fenced: has("fenced"), Listeners: []Listener{{"L", "h", 9, "PLAINTEXT"}}}
		if has("rack") {
			b.Rack = kmsg.StringPtr(opt["rack"])
		}
		copy(b.Incarnation[:], opt["inc"])
		r := w.do(&RegisterBroker{Broker: b, ClusterID: opt["cluster"], Unclean: has("unclean")}).(*RegisterBrokerReply)
		w.printf("epoch %d, %d", r.Epoch, r.Err)
	case "unregister":
		w.printf("%d", w.do(&UnregisterBroker{ID: kafka.BrokerID(num(args[0]))}).(*UnregisterBrokerReply).Err)
	case "heartbeat": // id [fence=] [stop=]
		id := num(args[0])
		r := w.do(&Heartbeat{ID: kafka.BrokerID(id), Epoch: epoch(id), WantFence: has("fence"), WantShutdown: has("stop")}).(*HeartbeatReply)
		w.printf("fenced %v, may stop %v, %d", r.Fenced, r.MayStop, r.Err)
	case "after": // seconds
		w.now = w.now.Add(time.Duration(num(args[0])) * time.Second)
		for !w.c.NextDeadline().IsZero() && !w.now.Before(w.c.NextDeadline()) {
			w.take(w.c.Expire(w.now))
		}
	case "ids":
		r := w.do(&AllocateProducerIDs{Broker: kafka.BrokerID(num(args[0]))}).(*AllocateProducerIDsReply)
		w.printf("%d..%d, %d", r.First, int64(r.First)+int64(r.Count)-1, r.Err)
	case "create": // names, p= rf= assign=0:1,2;1:2 [validate=], c:key=value for configs
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.ValidateOnly = 7, has("validate")
		for _, name := range args {
			t := kmsg.NewCreateTopicsRequestTopic()
			t.Topic, t.NumPartitions, t.ReplicationFactor = strings.Trim(name, "'"), 1, 1
			if has("assign") {
				t.NumPartitions, t.ReplicationFactor = -1, -1
				for _, a := range strings.Split(opt["assign"], ";") {
					p, reps, _ := strings.Cut(a, ":")
					ra := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
					ra.Partition, ra.Replicas = int32(num(p)), ids(reps)
					t.ReplicaAssignment = append(t.ReplicaAssignment, ra)
				}
			}
			if has("p") {
				t.NumPartitions = int32(num(opt["p"]))
			}
			if has("rf") {
				t.ReplicationFactor = int16(num(opt["rf"]))
			}
			for _, k := range slices.Sorted(maps.Keys(opt)) {
				if key, ok := strings.CutPrefix(k, "c:"); ok {
					c := kmsg.NewCreateTopicsRequestTopicConfig()
					c.Name = key
					if opt[k] != "null" {
						c.Value = kmsg.StringPtr(opt[k])
					}
					t.Configs = append(t.Configs, c)
				}
			}
			req.Topics = append(req.Topics, t)
		}
		for _, t := range w.do(req).(*kmsg.CreateTopicsResponse).Topics {
			w.item(fmt.Sprintf("%q", t.Topic), t.ErrorCode, t.ErrorMessage)
			if t.ErrorCode == 0 {
				w.printf("  partitions %d rf %d configs %d", t.NumPartitions, t.ReplicationFactor, len(t.Configs))
			}
		}
	case "delete": // names, or id:name, or none
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version = 6
		if has("v") {
			req.Version = int16(num(opt["v"]))
			req.TopicNames = args
		}
		for _, a := range args {
			t := kmsg.NewDeleteTopicsRequestTopic()
			if name, ok := strings.CutPrefix(a, "id:"); ok {
				if topic, ok := w.c.img().Topic(name); ok {
					t.TopicID = topic.ID
				} else if name != "" {
					copy(t.TopicID[:], name)
				}
			} else if name, ok := strings.CutPrefix(a, "both:"); ok {
				t.Topic, t.TopicID = &name, [16]byte{1}
			} else {
				t.Topic = &a
			}
			req.Topics = append(req.Topics, t)
		}
		for _, t := range w.do(req).(*kmsg.DeleteTopicsResponse).Topics {
			name := "-"
			if t.Topic != nil {
				name = *t.Topic
			}
			w.item(name+" "+kafka.TopicID(t.TopicID).String(), t.ErrorCode, t.ErrorMessage)
		}
	case "grow": // name count [assign=1,2;2,1] [validate=]
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.ValidateOnly = has("validate")
		for _, name := range strings.Split(args[0], "+") {
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic, t.Count = name, int32(num(args[1]))
			if has("assign") {
				for _, a := range strings.Split(opt["assign"], ";") {
					ta := kmsg.NewCreatePartitionsRequestTopicAssignment()
					ta.Replicas = ids(a)
					t.Assignment = append(t.Assignment, ta)
				}
			}
			req.Topics = append(req.Topics, t)
		}
		for _, t := range w.do(req).(*kmsg.CreatePartitionsResponse).Topics {
			w.item(t.Topic, t.ErrorCode, t.ErrorMessage)
		}
	case "config", "config-validate": // kind name key=value | key-| key+=v | key-=v | key (null) ...; "/" begins the next resource
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = words[0] == "config-validate"
		for _, part := range strings.Split(strings.Join(args, " "), " / ") {
			f := strings.Fields(part)
			r := kmsg.NewIncrementalAlterConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(num(f[0])), strings.Trim(f[1], "'")
			for _, kv := range f[2:] {
				c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
				k, v, ok := strings.Cut(kv, "=")
				switch {
				case ok && strings.HasSuffix(k, "+"):
					c.Op, k = kmsg.IncrementalAlterConfigOpAppend, k[:len(k)-1]
				case ok && strings.HasSuffix(k, "-"):
					c.Op, k = kmsg.IncrementalAlterConfigOpSubtract, k[:len(k)-1]
				case !ok && strings.HasSuffix(k, "-"):
					c.Op, k = kmsg.IncrementalAlterConfigOpDelete, k[:len(k)-1]
				}
				c.Name = k
				if ok {
					c.Value = &v
				}
				r.Configs = append(r.Configs, c)
			}
			req.Resources = append(req.Resources, r)
		}
		for _, r := range w.do(req).(*kmsg.IncrementalAlterConfigsResponse).Resources {
			w.item(fmt.Sprintf("%d %q", r.ResourceType, r.ResourceName), r.ErrorCode, r.ErrorMessage)
		}
	case "replace-config": // kind name key=value...
		req := kmsg.NewPtrAlterConfigsRequest()
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(num(args[0])), strings.Trim(args[1], "'")
		for _, kv := range args[2:] {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			k, v, ok := strings.Cut(kv, "=")
			c.Name = k
			if ok {
				c.Value = &v
			}
			r.Configs = append(r.Configs, c)
		}
		req.Resources = append(req.Resources, r)
		for _, r := range w.do(req).(*kmsg.AlterConfigsResponse).Resources {
			w.item(fmt.Sprintf("%d %q", r.ResourceType, r.ResourceName), r.ErrorCode, r.ErrorMessage)
		}
	case "elect": // topic:partitions..., or all; [type=]
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version = 2
		if has("type") {
			req.ElectionType = int8(num(opt["type"]))
		}
		for _, a := range args {
			if a == "all" {
				break
			}
			t := kmsg.NewElectLeadersRequestTopic()
			name, ps, _ := strings.Cut(a, ":")
			t.Topic, t.Partitions = name, ids(ps)
			req.Topics = append(req.Topics, t)
		}
		resp := w.do(req).(*kmsg.ElectLeadersResponse)
		if resp.ErrorCode != 0 {
			w.printf("error %d", resp.ErrorCode)
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				w.item(fmt.Sprintf("%s-%d", t.Topic, p.Partition), p.ErrorCode, p.ErrorMessage)
			}
		}
	case "move": // topic partition replicas | cancel; [resize=no]
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		req.Version, req.AllowReplicationFactorChange = 1, opt["resize"] != "no"
		t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		t.Topic = args[0]
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition = int32(num(args[1]))
		if args[2] == "cancel" {
			p.Replicas = nil
		} else {
			p.Replicas = ids(args[2])
		}
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		for _, t := range w.do(req).(*kmsg.AlterPartitionAssignmentsResponse).Topics {
			for _, p := range t.Partitions {
				w.item(fmt.Sprintf("%s-%d", t.Topic, p.Partition), p.ErrorCode, p.ErrorMessage)
			}
		}
	case "moves": // [topic:partitions ...]
		req := kmsg.NewPtrListPartitionReassignmentsRequest()
		for _, a := range args {
			name, ps, _ := strings.Cut(a, ":")
			t := kmsg.NewListPartitionReassignmentsRequestTopic()
			t.Topic, t.Partitions = name, ids(ps)
			req.Topics = append(req.Topics, t)
		}
		for _, t := range w.do(req).(*kmsg.ListPartitionReassignmentsResponse).Topics {
			for _, p := range t.Partitions {
				w.printf("%s-%d replicas %v adding %v removing %v", t.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas)
			}
		}
	case "isr": // topic partition isr from= [epoch=] [version=] [bepoch=] [stale=id]
		req := kmsg.NewPtrAlterPartitionRequest()
		req.Version = 3
		from := num(opt["from"])
		req.BrokerID, req.BrokerEpoch = int32(from), epoch(from)
		if has("bepoch") {
			req.BrokerEpoch = int64(num(opt["bepoch"]))
		}
		rt := kmsg.NewAlterPartitionRequestTopic()
		part := int32(num(args[1]))
		p := kmsg.NewAlterPartitionRequestTopicPartition()
		p.Partition = part
		if t, ok := w.c.img().Topic(args[0]); ok {
			rt.TopicID = t.ID
			if int(part) < len(t.Partitions) {
				p.LeaderEpoch, p.PartitionEpoch = int32(t.Partitions[part].LeaderEpoch), t.Partitions[part].PartitionEpoch
			}
		}
		if has("epoch") {
			p.LeaderEpoch += int32(num(opt["epoch"]))
		}
		if has("version") {
			p.PartitionEpoch += int32(num(opt["version"]))
		}
		for _, id := range ids(args[2]) {
			e := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			e.BrokerID, e.BrokerEpoch = id, epoch(int(id))
			if opt["stale"] == strconv.Itoa(int(id)) {
				e.BrokerEpoch--
			}
			p.NewEpochISR = append(p.NewEpochISR, e)
		}
		rt.Partitions = append(rt.Partitions, p)
		req.Topics = append(req.Topics, rt)
		resp := w.do(req).(*kmsg.AlterPartitionResponse)
		if resp.ErrorCode != 0 {
			w.printf("error %d", resp.ErrorCode)
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				w.printf("%d: %d leader %d epoch %d isr %v version %d", p.Partition, p.ErrorCode, p.LeaderID, p.LeaderEpoch, p.ISR, p.PartitionEpoch)
			}
		}
	case "show": // topic
		t, ok := w.c.img().Topic(args[0])
		if !ok {
			w.printf("none")
			return
		}
		for i, p := range t.Partitions {
			w.printf("%d leader %d epoch %d version %d replicas %v isr %v", i, p.Leader, p.LeaderEpoch, p.PartitionEpoch, p.Replicas, p.ISR)
		}
	default:
		w.t.Fatalf("unknown command %q", words[0])
	}
}
