package metadata

import (
	"fmt"
	"slices"
	"sort"

	"github.com/weirmq/weir/internal/kafka"
)

// Delta is the difference between two images that follow each other, enough to
// open, close and change partitions and to reload configs.
type Delta struct {
	Created []*Topic
	Deleted []*Topic // as they were
	Changed []TopicChange

	ConfigsChanged []ConfigKey // of deleted topics too
	BrokersChanged bool
}

// TopicChange is a topic before and after. Deleting a topic and creating
// another of that name is a Deleted and a Created, never a change.
type TopicChange struct{ Old, New *Topic }

// Empty says whether nothing changed.
func (d *Delta) Empty() bool {
	return len(d.Created)+len(d.Deleted)+len(d.Changed)+len(d.ConfigsChanged) == 0 && !d.BrokersChanged
}

// FullDelta is the delta from nothing to img, for one who begins to watch.
func (img *Image) FullDelta() *Delta {
	d := &Delta{BrokersChanged: len(img.brokers) > 0}
	img.EachTopic(func(t *Topic) bool { d.Created = append(d.Created, t); return true })
	img.EachConfig(func(k ConfigKey, _ map[string]string) { d.ConfigsChanged = append(d.ConfigsChanged, k) })
	return d
}

// Draft is an image being changed. It shares with its base what it does not
// touch. Not for concurrent use.
type Draft struct {
	img  Image
	base *Image // nil: nobody will ask for a delta
	own  *token

	ownBrokers     bool
	brokersChanged bool
	touched        touched[kafka.TopicID]
	configs        touched[ConfigKey]
}

// touched is a set in order of the first touch. Most drafts touch one thing.
type touched[K comparable] struct {
	list []K
	set  map[K]struct{} // only when the list is long
}

func (t *touched[K]) add(k K) {
	const long = 8
	if t.set == nil {
		if slices.Contains(t.list, k) {
			return
		}
		if len(t.list) == long {
			t.set = make(map[K]struct{}, 4*long)
			for _, k := range t.list {
				t.set[k] = struct{}{}
			}
		}
	} else if _, ok := t.set[k]; ok {
		return
	}
	t.list = append(t.list, k)
	if t.set != nil {
		t.set[k] = struct{}{}
	}
}

// Edit begins a draft of the next image.
func (img *Image) Edit() *Draft { return &Draft{img: *img, base: img, own: &token{}} }

// Done ends the draft: the new image and what changed. The draft must not be
// used afterwards.
func (d *Draft) Done(offset int64) (*Image, *Delta) {
	img := d.img
	img.offset = offset
	delta := &Delta{ConfigsChanged: d.configs.list, BrokersChanged: d.brokersChanged}
	for _, id := range d.touched.list {
		old, was := d.base.ids.get(id)
		now, is := img.ids.get(id)
		switch {
		case !was && is:
			delta.Created = append(delta.Created, now)
		case was && !is:
			delta.Deleted = append(delta.Deleted, old)
		case was && is:
			delta.Changed = append(delta.Changed, TopicChange{old, now})
		}
	}
	return &img, delta
}

// Apply makes one record's change. A record that does not fit the image is a
// bug or a damaged log that passed its checksum: it panics.
func (d *Draft) Apply(r Record) {
	switch r := r.(type) {
	case *ClusterRecord:
		d.img.clusterID = r.ID
		d.img.brokerEpoch = max(d.img.brokerEpoch, r.BrokerEpoch)
	case *TopicRecord:
		d.addTopic(r)
	case *PartitionsRecord:
		t := d.change(r.ID)
		if int(r.First) != len(t.Partitions) {
			panic(fmt.Sprintf("BUG: topic %s has %d partitions, record adds from %d", t.Name, len(t.Partitions), r.First))
		}
		t.Partitions = append(t.Partitions, r.Partitions...)
		d.img.partitions += len(r.Partitions)
		d.img.moving += moving(r.Partitions)
	case *PartitionRecord:
		t := d.change(r.ID)
		if r.Index < 0 || int(r.Index) >= len(t.Partitions) {
			panic(fmt.Sprintf("BUG: topic %s has %d partitions, record changes %d", t.Name, len(t.Partitions), r.Index))
		}
		p := &t.Partitions[r.Index]
		if p.reassigning() {
			d.img.moving--
		}
		if r.Partition.reassigning() {
			d.img.moving++
		}
		*p = r.Partition
	case *LeaderEpochsRecord:
		d.raiseEpochs(r.Leader)
	case *TopicRemovedRecord:
		d.removeTopic(r.ID)
	case *ConfigRecord:
		d.setConfig(r)
	case *BrokerRecord:
		d.setBroker(r.Broker)
	case *BrokerRemovedRecord:
		d.removeBroker(r.ID)
	case *ProducerIDsRecord:
		d.img.nextProducerID = max(d.img.nextProducerID, r.Next)
	default:
		panic(fmt.Sprintf("BUG: unknown metadata record %T", r))
	}
}

func moving(ps []Partition) (n int) {
	for i := range ps {
		if ps[i].reassigning() {
			n++
		}
	}
	return n
}

func (d *Draft) touch(id kafka.TopicID) {
	if d.base != nil {
		d.touched.add(id)
	}
}

func (d *Draft) addTopic(r *TopicRecord) {
	if _, ok := d.img.topics.get(r.Name); ok {
		panic(fmt.Sprintf("BUG: topic %s exists already", r.Name))
	}
	if _, ok := d.img.ids.get(r.ID); ok {
		panic(fmt.Sprintf("BUG: topic id %s exists already", r.ID))
	}
	t := &Topic{Name: r.Name, ID: r.ID, Partitions: append([]Partition(nil), r.Partitions...), owner: d.own}
	d.store(t)
	if k := collisionKey(t.Name); k != "" {
		names, _ := d.img.collisions.get(k)
		d.img.collisions.put(d.own, k, append(names[:len(names):len(names)], t.Name))
	}
	d.img.partitions += len(t.Partitions)
	d.img.moving += moving(t.Partitions)
	d.touch(t.ID)
}

func (d *Draft) store(t *Topic) {
	d.img.topics.put(d.own, t.Name, t)
	d.img.ids.put(d.own, t.ID, t)
	d.img.order.put(d.own, t)
}

// change gives a copy of the topic that this draft may write to.
func (d *Draft) change(id kafka.TopicID) *Topic {
	t, ok := d.img.ids.get(id)
	if !ok {
		panic(fmt.Sprintf("BUG: record for unknown topic id %s", id))
	}
	d.touch(id)
	if t.owner == d.own {
		return t
	}
	c := &Topic{Name: t.Name, ID: t.ID, Partitions: append([]Partition(nil), t.Partitions...), owner: d.own}
	d.store(c)
	return c
}

func (d *Draft) removeTopic(id kafka.TopicID) {
	t, ok := d.img.ids.get(id)
	if !ok {
		panic(fmt.Sprintf("BUG: removal of unknown topic id %s", id))
	}
	d.touch(id)
	d.img.topics.del(d.own, t.Name)
	d.img.ids.del(d.own, id)
	d.img.order.del(d.own, t.Name)
	if k := collisionKey(t.Name); k != "" {
		names, _ := d.img.collisions.get(k)
		var left []string
		for _, n := range names {
			if n != t.Name {
				left = append(left, n)
			}
		}
		if len(left) == 0 {
			d.img.collisions.del(d.own, k)
		} else {
			d.img.collisions.put(d.own, k, left)
		}
	}
	d.img.partitions -= len(t.Partitions)
	d.img.moving -= moving(t.Partitions)
	if ck := (ConfigKey{TopicConfig, t.Name}); d.img.Config(ck.Kind, ck.Name) != nil {
		d.img.configs.del(d.own, ck)
		d.touchConfig(ck)
	}
}

func (d *Draft) raiseEpochs(leader kafka.BrokerID) {
	var led []kafka.TopicID
	d.img.EachTopic(func(t *Topic) bool {
		for i := range t.Partitions {
			if t.Partitions[i].Leader == leader {
				led = append(led, t.ID)
				break
			}
		}
		return true
	})
	for _, id := range led {
		t := d.change(id)
		for i := range t.Partitions {
			if p := &t.Partitions[i]; p.Leader == leader {
				p.LeaderEpoch++
				p.PartitionEpoch++
			}
		}
	}
}

func (d *Draft) touchConfig(k ConfigKey) {
	if d.base != nil {
		d.configs.add(k)
	}
}

func (d *Draft) setConfig(r *ConfigRecord) {
	old := d.img.Config(r.Key.Kind, r.Key.Name)
	m := make(map[string]string, len(old)+len(r.Set))
	for k, v := range old {
		m[k] = v
	}
	for _, k := range r.Delete {
		delete(m, k)
	}
	for k, v := range r.Set {
		m[k] = v
	}
	if len(m) == 0 {
		d.img.configs.del(d.own, r.Key)
	} else {
		d.img.configs.put(d.own, r.Key, m)
	}
	d.touchConfig(r.Key)
}

func (d *Draft) setBroker(b Broker) {
	d.changeBrokers()
	d.img.brokerEpoch = max(d.img.brokerEpoch, b.Epoch)
	bs := d.img.brokers
	i := sort.Search(len(bs), func(i int) bool { return bs[i].ID >= b.ID })
	if i < len(bs) && bs[i].ID == b.ID {
		bs[i] = b
		return
	}
	bs = append(bs, Broker{})
	copy(bs[i+1:], bs[i:])
	bs[i] = b
	d.img.brokers = bs
}

func (d *Draft) removeBroker(id kafka.BrokerID) {
	d.changeBrokers()
	bs := d.img.brokers
	i := sort.Search(len(bs), func(i int) bool { return bs[i].ID >= id })
	if i < len(bs) && bs[i].ID == id {
		d.img.brokers = append(bs[:i], bs[i+1:]...)
	}
}

func (d *Draft) changeBrokers() {
	d.brokersChanged = true
	if !d.ownBrokers {
		d.ownBrokers = true
		d.img.brokers = append([]Broker(nil), d.img.brokers...)
	}
}
