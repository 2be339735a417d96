package metadata

import (
	"encoding/binary"
	"sort"

	"github.com/weirmq/weir/internal/kafka"
)

// ConfigKind is a kind of resource that has configs; the numbers are the
// protocol's (KIP-133 and later).
type ConfigKind int8

// The kinds of resource.
const (
	TopicConfig         ConfigKind = 2
	BrokerConfig        ConfigKind = 4
	BrokerLoggerConfig  ConfigKind = 8
	ClientMetricsConfig ConfigKind = 16
	GroupConfig         ConfigKind = 32
)

// ConfigKey names one resource. For BrokerConfig the name "" is the default of
// all brokers.
type ConfigKey struct {
	Kind ConfigKind
	Name string
}

// Listener is one address that a broker tells its clients.
type Listener struct {
	Name     string
	Host     string
	Port     int32
	Security string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
}

// Broker is one registered broker (KIP-631).
type Broker struct {
	ID          kafka.BrokerID
	Incarnation [16]byte // a new one at each start of the process
	Listeners   []Listener
	Rack        *string
	Fenced      bool
	Leaving     bool  // in controlled shutdown: keeps serving, leads nothing new
	Epoch       int64 // rises with each registration in the cluster
}

// active brokers may lead partitions and join an ISR.
func (b *Broker) active() bool { return !b.Fenced && !b.Leaving }

// Partition is one partition's state. The slices are shared: read only.
type Partition struct {
	Leader         kafka.BrokerID // NoBroker: none
	LeaderEpoch    kafka.Epoch    // rises with each change of leader
	PartitionEpoch int32          // rises with each change of this value
	Replicas       []kafka.BrokerID
	ISR            []kafka.BrokerID
	// A running reassignment (KIP-455). Replicas holds old and new ones then.
	Adding, Removing []kafka.BrokerID
}

func (p *Partition) reassigning() bool { return len(p.Adding)+len(p.Removing) > 0 }

// Topic is one topic of an Image: read only.
type Topic struct {
	Name       string
	ID         kafka.TopicID
	Partitions []Partition

	owner *token // the Draft that made this value
}

// Image is the cluster's metadata at one offset of the metadata log. It never
// changes and may be read from any goroutine.
type Image struct {
	clusterID  string
	controller kafka.BrokerID
	offset     int64

	brokers     []Broker // by id; replaced whole by each Draft that changes one
	brokerEpoch int64    // highest ever given

	topics     table[string, *Topic]
	ids        table[kafka.TopicID, *Topic]
	collisions table[string, []string] // collisionKey -> names
	order      order
	configs    table[ConfigKey, map[string]string] // maps are replaced whole
	partitions int
	moving     int // partitions with a running reassignment

	nextProducerID kafka.ProducerID
}

// NewImage is the image of a cluster that knows only its name.
func NewImage(clusterID string) *Image {
	return &Image{
		clusterID:  clusterID,
		controller: kafka.NoBroker,
		offset:     -1,
		topics:     newTable[string, *Topic](hashString),
		ids:        newTable[kafka.TopicID, *Topic](hashID),
		collisions: newTable[string, []string](hashString),
		configs:    newTable[ConfigKey, map[string]string](hashConfigKey),
	}
}

func hashID(id kafka.TopicID) uint32 {
	// Topic ids are random; fold them.
	x := binary.LittleEndian.Uint64(id[:8]) ^ binary.LittleEndian.Uint64(id[8:])
	return uint32(x ^ x>>32)
}

func hashConfigKey(k ConfigKey) uint32 { return hashString(k.Name) ^ uint32(k.Kind)*0x9e3779b1 }

// ClusterID is the cluster's id, as Metadata replies carry it.
func (img *Image) ClusterID() string { return img.clusterID }

// Controller is the broker id of the active controller, NoBroker when unknown.
func (img *Image) Controller() kafka.BrokerID { return img.controller }

// Offset is the index of the last log entry this image contains, -1 for none.
func (img *Image) Offset() int64 { return img.offset }

// Broker finds a registered broker, fenced ones too.
func (img *Image) Broker(id kafka.BrokerID) (Broker, bool) {
	if b := img.broker(id); b != nil {
		return *b, true
	}
	return Broker{}, false
}

func (img *Image) broker(id kafka.BrokerID) *Broker {
	i := sort.Search(len(img.brokers), func(i int) bool { return img.brokers[i].ID >= id })
	if i < len(img.brokers) && img.brokers[i].ID == id {
		return &img.brokers[i]
	}
	return nil
}

func (img *Image) active(id kafka.BrokerID) bool {
	b := img.broker(id)
	return b != nil && b.active()
}

// Brokers lists the registered brokers by id. Read only.
func (img *Image) Brokers() []Broker { return img.brokers }

// Topic finds a topic by name.
func (img *Image) Topic(name string) (*Topic, bool) { return img.topics.get(name) }

// TopicByID finds a topic by id.
func (img *Image) TopicByID(id kafka.TopicID) (*Topic, bool) { return img.ids.get(id) }

// EachTopic visits the topics by name until fn returns false.
func (img *Image) EachTopic(fn func(*Topic) bool) { img.order.each(fn) }

// TopicCount is the number of topics.
func (img *Image) TopicCount() int { return img.topics.n }

// PartitionCount is the number of partitions of all topics.
func (img *Image) PartitionCount() int { return img.partitions }

// Config is what was set for a resource, without defaults: nil when nothing
// was. Read only. The name "" of BrokerConfig is the default of all brokers.
func (img *Image) Config(kind ConfigKind, name string) map[string]string {
	m, _ := img.configs.get(ConfigKey{kind, name})
	return m
}

// EachConfig visits every resource that has configs, by kind and name.
func (img *Image) EachConfig(fn func(ConfigKey, map[string]string)) {
	keys := make([]ConfigKey, 0, img.configs.n)
	img.configs.each(func(k ConfigKey, _ map[string]string) { keys = append(keys, k) })
	sort.Slice(keys, func(i, j int) bool {
		if keys[i].Kind != keys[j].Kind {
			return keys[i].Kind < keys[j].Kind
		}
		return keys[i].Name < keys[j].Name
	})
	for _, k := range keys {
		fn(k, img.Config(k.Kind, k.Name))
	}
}

// NextProducerID is the first producer id of the next block to be handed out.
func (img *Image) NextProducerID() kafka.ProducerID { return img.nextProducerID }

// WithController is this image with another active controller. Who leads the
// metadata quorum is not a record: each node learns it from the quorum itself.
func (img *Image) WithController(id kafka.BrokerID) *Image {
	if img.controller == id {
		return img
	}
	c := *img
	c.controller = id
	return &c
}
