package metadata

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

// Shows, over random histories of requests on five brokers: replay and snapshot
// give the live state; images built change by change are the same as one built
// at once and never change afterwards; deltas tell exactly what differs; every
// partition keeps its invariants. A failure names its seed.
func TestRandomHistories(t *testing.T) {
	n := uint64(25)
	if testing.Short() {
		n = 10
	}
	for seed := range n {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { history(t, seed) })
	}
}

func history(t *testing.T, seed uint64) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(seed, 7))
	names := []string{"a", "b", "c.d", "c_d", "e", "f", "g"}
	pick := func() string { return names[r.IntN(len(names))] }
	reps := func() string {
		p := r.Perm(5)[:1+r.IntN(3)]
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(p), " ", ","), "[]")
	}
	img := NewImage("C")
	type kept struct {
		img   *Image
		bytes string
	}
	var old []kept
	for range 120 {
		before := len(w.log)
		var cmd string
		switch r.IntN(14) {
		case 0, 1:
			cmd = fmt.Sprintf("broker %d inc=%d", r.IntN(5), r.IntN(3))
			if r.IntN(3) == 0 {
				cmd += " fenced="
			}
			if r.IntN(3) == 0 {
				cmd += " unclean="
			}
		case 2, 3:
			cmd = fmt.Sprintf("create %s %s p=%d rf=%d", pick(), pick(), 1+r.IntN(4), 1+r.IntN(3))
		case 4:
			cmd = fmt.Sprintf("create %s assign=0:%s c:retention.ms=%d", pick(), reps(), r.IntN(9))
		case 5:
			cmd = "delete " + pick()
		case 6:
			cmd = fmt.Sprintf("grow %s %d", pick(), 1+r.IntN(9))
		case 7:
			cmd = fmt.Sprintf("config 2 %s retention.ms=%d cleanup.policy+=x / 4 %d log.retention.ms=%d", pick(), r.IntN(5), r.IntN(5), r.IntN(5))
		case 8:
			cmd = fmt.Sprintf("replace-config 2 %s min.lag=%d", pick(), r.IntN(3))
		case 9:
			cmd = fmt.Sprintf("heartbeat %d", r.IntN(5))
			cmd += []string{"", " fence=", " stop="}[r.IntN(3)]
		case 10:
			cmd = fmt.Sprintf("isr %s %d %s from=%d", pick(), r.IntN(3), reps(), r.IntN(5))
		case 11:
			cmd = fmt.Sprintf("move %s %d %s", pick(), r.IntN(3), []string{reps(), "cancel"}[r.IntN(2)])
		case 12:
			cmd = fmt.Sprintf("elect all type=%d", r.IntN(2))
		case 13:
			cmd = []string{"after 3", fmt.Sprintf("ids %d", r.IntN(5)), fmt.Sprintf("unregister %d", r.IntN(5))}[r.IntN(3)]
		}
		w.command(strings.Fields(cmd))
		invariants(t, cmd, w.c.img())

		was := img
		d := img.Edit()
		for _, rec := range w.log[before:] {
			d.Apply(rec)
		}
		var delta *Delta
		img, delta = d.Done(int64(len(w.log)))
		if imageBytes(img) != imageBytes(w.c.img()) {
			t.Fatalf("%s: image and controller differ", cmd)
		}
		checkDelta(t, cmd, was, img, delta)
		old = append(old, kept{img, imageBytes(img)})
	}
	w.check()
	for _, k := range old {
		if imageBytes(k.img) != k.bytes {
			t.Fatalf("an image changed after it was made")
		}
	}
	if c := NewController(w.c.cfg, img); imageBytes(c.img()) != imageBytes(w.c.img()) {
		t.Fatal("a controller begun from the image differs")
	}
}

func invariants(t *testing.T, cmd string, img *Image) {
	t.Helper()
	topics, partitions, moving := 0, 0, 0
	last := ""
	img.EachTopic(func(topic *Topic) bool {
		topics++
		if topic.Name <= last {
			t.Fatalf("%s: %s after %s", cmd, topic.Name, last)
		}
		last = topic.Name
		if got, _ := img.Topic(topic.Name); got != topic {
			t.Fatalf("%s: topic %s by name", cmd, topic.Name)
		}
		if got, _ := img.TopicByID(topic.ID); got != topic {
			t.Fatalf("%s: topic %s by id", cmd, topic.Name)
		}
		for i := range topic.Partitions {
			p := &topic.Partitions[i]
			partitions++
			if p.reassigning() {
				moving++
			}
			bad := len(p.Replicas) == 0 || len(p.ISR) == 0 || p.LeaderEpoch < 0 || p.PartitionEpoch < 0
			for j, id := range p.Replicas {
				bad = bad || slices.Contains(p.Replicas[:j], id)
			}
			for j, id := range p.ISR {
				bad = bad || slices.Contains(p.ISR[:j], id) || !slices.Contains(p.Replicas, id)
			}
			if p.Leader != kafka.NoBroker {
				b := img.broker(p.Leader)
				bad = bad || !slices.Contains(p.ISR, p.Leader) || b == nil || b.Fenced
			}
			if bad {
				t.Fatalf("%s: %s-%d is %+v", cmd, topic.Name, i, *p)
			}
		}
		return true
	})
	if topics != img.TopicCount() || partitions != img.PartitionCount() || moving != img.moving {
		t.Fatalf("%s: counts %d %d %d, are %d %d %d", cmd, img.TopicCount(), img.PartitionCount(), img.moving, topics, partitions, moving)
	}
}

// checkDelta applies the delta to the topics of one image and expects those of
// the other.
func checkDelta(t *testing.T, cmd string, was, is *Image, d *Delta) {
	t.Helper()
	have := map[kafka.TopicID]*Topic{}
	was.EachTopic(func(t *Topic) bool { have[t.ID] = t; return true })
	for _, topic := range d.Deleted {
		if have[topic.ID] != topic {
			t.Fatalf("%s: delta deletes %s, which was not there", cmd, topic.Name)
		}
		delete(have, topic.ID)
	}
	for _, ch := range d.Changed {
		if have[ch.New.ID] != ch.Old {
			t.Fatalf("%s: delta changes %s from something else", cmd, ch.New.Name)
		}
		have[ch.New.ID] = ch.New
	}
	for _, topic := range d.Created {
		have[topic.ID] = topic
	}
	n := 0
	is.EachTopic(func(topic *Topic) bool {
		n++
		if have[topic.ID] != topic {
			t.Fatalf("%s: delta misses a change of %s", cmd, topic.Name)
		}
		return true
	})
	if n != len(have) {
		t.Fatalf("%s: delta leads to %d topics, there are %d", cmd, len(have), n)
	}
	configs := map[ConfigKey]bool{}
	for _, k := range d.ConfigsChanged {
		configs[k] = true
	}
	differ := func(k ConfigKey, m map[string]string) {
		if other := is.Config(k.Kind, k.Name); fmt.Sprint(other) != fmt.Sprint(m) && !configs[k] {
			t.Fatalf("%s: delta misses the configs of %v", cmd, k)
		}
	}
	was.EachConfig(differ)
	is.EachConfig(func(k ConfigKey, _ map[string]string) { differ(k, was.Config(k.Kind, k.Name)) })
	if fmt.Sprint(was.brokers) != fmt.Sprint(is.brokers) && !d.BrokersChanged {
		t.Fatalf("%s: delta misses the brokers", cmd)
	}
}

// Shows: tables and order stay right over many topics, with growth, in one
// draft and in many, and removal in another order.
func TestManyTopics(t *testing.T) {
	const n = 3000
	r := rand.New(rand.NewPCG(3, 3))
	topic := func(i int) *TopicRecord {
		rec := &TopicRecord{Name: fmt.Sprintf("t.%d", i), Partitions: []Partition{{Leader: 1, Replicas: []kafka.BrokerID{1}, ISR: []kafka.BrokerID{1}}}}
		copy(rec.ID[:], fmt.Sprintf("%016d", i))
		return rec
	}
	img := NewImage("C")
	d := img.Edit()
	d.Apply(&BrokerRecord{Broker{ID: 1}})
	img, _ = d.Done(0)
	for i, k := range r.Perm(n) {
		if i == n/3 { // a third one by one, the rest at once
			d := img.Edit()
			for _, k := range r.Perm(n) {
				if _, ok := d.img.Topic(fmt.Sprintf("t.%d", k)); !ok {
					d.Apply(topic(k))
				}
			}
			img, _ = d.Done(1)
			break
		}
		d := img.Edit()
		d.Apply(topic(k))
		img, _ = d.Done(1)
	}
	invariants(t, "all", img)
	if img.TopicCount() != n {
		t.Fatal(img.TopicCount())
	}
	full := img
	for _, k := range r.Perm(n) {
		d := img.Edit()
		d.Apply(&TopicRemovedRecord{ID: topic(k).ID})
		img, _ = d.Done(2)
		if k%500 == 0 {
			invariants(t, "removing", img)
		}
	}
	if img.TopicCount() != 0 || img.collisions.n != 0 || len(img.order.chunks) != 0 {
		t.Fatal("something is left")
	}
	invariants(t, "full", full)
}

// Shows: placement is even and keeps racks apart.
func TestPlacement(t *testing.T) {
	var brokers []Broker
	for i := range 6 {
		rack := []string{"a", "b", "c"}[i/2]
		brokers = append(brokers, Broker{ID: kafka.BrokerID(i), Rack: &rack})
	}
	for seed := range uint64(20) {
		p := newPlacer(brokers, rand.New(rand.NewPCG(seed, 0)))
		lead, all := map[kafka.BrokerID]int{}, map[kafka.BrokerID]int{}
		for range 60 {
			rs := p.place(3)
			lead[rs[0]]++
			racks := map[string]bool{}
			for _, id := range rs {
				all[id]++
				racks[*brokers[id].Rack] = true
			}
			if len(racks) != 3 {
				t.Fatalf("seed %d: replicas %v share a rack", seed, rs)
			}
		}
		for id := range kafka.BrokerID(6) {
			if lead[id] != 10 || all[id] < 20 || all[id] > 40 {
				t.Fatalf("seed %d: leaders %v, replicas %v", seed, lead, all)
			}
		}
	}
}

// One request per topic, as a client that creates them one after another.
func BenchmarkCreateTopicsOneByOne(b *testing.B) {
	for b.Loop() {
		w := newWorld(b)
		w.command([]string{"broker", "1"})
		img := NewImage("C")
		for i := range 10_000 {
			step := w.c.createOne(fmt.Sprintf("topic-%d", i))
			d := img.Edit()
			for _, r := range step.Records {
				w.c.Replay(machine.Live, r)
				d.Apply(r)
			}
			img, _ = d.Done(int64(i))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10_000, "us/topic")
}

func BenchmarkCreateTopicsAtOnce(b *testing.B) {
	for b.Loop() {
		w := newWorld(b)
		w.command([]string{"broker", "1"})
		req := createRequest()
		for i := range 10_000 {
			addTopic(req, fmt.Sprintf("topic-%d", i))
		}
		step := w.c.Handle(time.Time{}, 1, req)
		d := NewImage("C").Edit()
		for _, r := range step.Records {
			w.c.Replay(machine.Live, r)
			d.Apply(r)
		}
		d.Done(1)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10_000, "us/topic")
}

func BenchmarkDecodeTopics(b *testing.B) {
	w := newWorld(b)
	w.command([]string{"broker", "1"})
	for i := range 10_000 {
		step := w.c.createOne(fmt.Sprintf("topic-%d", i))
		w.take(step)
	}
	data := AppendRecords(nil, w.log)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		rs, err := DecodeRecords(data)
		if err != nil {
			b.Fatal(err)
		}
		d := NewImage("C").Edit()
		for _, r := range rs {
			d.Apply(r)
		}
	}
}
