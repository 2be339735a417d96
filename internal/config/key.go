package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is a key's type, by the numbers DescribeConfigs sends.
type Type int8

// The types of the protocol.
const (
	Unknown  Type = 0
	Bool     Type = 1
	String   Type = 2
	Int      Type = 3 // 32 bits
	Short    Type = 4 // 16 bits
	Long     Type = 5 // 64 bits
	Double   Type = 6
	List     Type = 7 // separated by commas
	Class    Type = 8 // a Java class's name
	Password Type = 9 // never shown
)

var typeNames = [...]string{"unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password"}

func (t Type) String() string { return typeNames[t] }

// Importance is Kafka's own grading.
type Importance int8

// The three grades.
const (
	High Importance = iota
	Medium
	Low
)

func (i Importance) String() string { return [...]string{"high", "medium", "low"}[i] }

// Scope says where a broker key may be changed while the broker runs.
type Scope int8

// The scopes, by Kafka's "update mode". Topic keys have OnTopic.
const (
	ReadOnly    Scope = iota // only at a start
	PerBroker                // for one broker
	ClusterWide              // for one broker or for all as the default
	OnTopic
)

func (s Scope) String() string {
	return [...]string{"read-only", "per-broker", "cluster-wide", "topic"}[s]
}

// Status says what a key does in Weir.
type Status int8

// A key that is not Effective is still accepted, checked, and shown by
// DescribeConfigs, so that files and tools for Kafka work unchanged.
const (
	Effective Status = iota
	NoEffect         // has no meaning here; Key.Why tells the reason
	NotYet           // belongs to something Weir does not do yet; Key.Why names it
)

func (s Status) String() string { return [...]string{"effective", "no effect", "not yet"}[s] }

// Key describes one setting. All keys are shared and must not be changed.
type Key struct {
	Name       string
	Type       Type
	Default    string // as text; empty with Null
	Null       bool   // the default is no value
	Allowed    string // the range in Kafka's notation, empty: anything of the type
	Importance Importance
	Scope      Scope
	Unit       string // ms, bytes, ..., or empty
	Status     Status
	Why        string // reason when Status is not Effective
	Doc        string // one line
	Topic      bool   // a topic key; else a broker key
	Internal   bool   // left out of DescribeConfigs unless it is set
	// KafkaDefault is Kafka's default where ours differs on purpose, and
	// DiffersBecause says why; both empty otherwise.
	KafkaDefault, DiffersBecause string
	// Synonyms of a topic key: the broker keys that give its default, the
	// strongest first. Of a broker key: the keys that stand in when it is not
	// set, in Kafka's order.
	Synonyms []string

	index   int // in brokerKeys or topicKeys
	min     float64
	max     float64
	special string   // one more number allowed outside [min,max]
	oneOf   []string // strings or list members
	fold    bool     // oneOf without regard to case
	filled  bool     // a list or string must not be empty
	check   func(v value) (reason string)
	def     value // the default, parsed
}

// Sensitive says that the value must never be shown.
func (k *Key) Sensitive() bool { return k.Type == Password }

var (
	brokerKeys, topicKeys, allKeys []*Key
	brokerIndex, topicIndex        map[string]*Key
)

func init() {
	brokerIndex, topicIndex = map[string]*Key{}, map[string]*Key{}
	for _, group := range brokerGroups {
		for _, s := range group.specs {
			brokerKeys = append(brokerKeys, s.key(false))
		}
	}
	for _, s := range topicSpecs {
		topicKeys = append(topicKeys, s.key(true))
	}
	byName := func(a, b *Key) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(brokerKeys, byName)
	slices.SortFunc(topicKeys, byName)
	for i, k := range brokerKeys {
		if brokerIndex[k.Name] != nil {
			panic("BUG: key " + k.Name + " twice in the table")
		}
		k.index, brokerIndex[k.Name] = i, k
		k.Synonyms = brokerSynonyms[k.Name]
		if d, ok := ownDefaults[k.Name]; ok {
			k.KafkaDefault, k.DiffersBecause = k.Default, d.why
			if k.Null {
				k.KafkaDefault = "null"
			}
			k.Default, k.Null = d.value, false
		}
	}
	for i, k := range topicKeys {
		k.index, topicIndex[k.Name] = i, k
		for _, s := range topicSynonyms[k.Name] {
			k.Synonyms = append(k.Synonyms, s.name)
		}
	}
	allKeys = append(append(allKeys, brokerKeys...), topicKeys...)
	for name, f := range checks {
		for _, index := range []map[string]*Key{brokerIndex, topicIndex} {
			if k := index[name]; k != nil {
				k.check = f
			}
		}
	}
	for _, k := range allKeys {
		k.def = k.parseDefault()
	}
}

// Lookup finds a key by its full name: a broker key, or else a topic key.
func Lookup(name string) (*Key, bool) {
	k := brokerIndex[name]
	if k == nil {
		k = topicIndex[name]
	}
	return k, k != nil
}

// LookupTopic finds a topic key.
func LookupTopic(name string) (*Key, bool) { k := topicIndex[name]; return k, k != nil }

// Keys are all broker keys in the order of their names, then all topic keys.
func Keys() []*Key { return slices.Clone(allKeys) }

// BrokerKeys are the broker keys in the order of their names.
func BrokerKeys() []*Key { return slices.Clone(brokerKeys) }

// TopicKeys are the topic keys in the order of their names.
func TopicKeys() []*Key { return slices.Clone(topicKeys) }

// state pairs a status with its reason, so that the table can name it in a word.
type state struct {
	status Status
	why    string
}

// null stands in the table for a default that is no value.
const null = "\x00"

// spec is a line of the table.
type spec struct {
	name       string
	typ        Type
	def        string
	allowed    string
	importance Importance
	scope      Scope
	unit       string
	state      state
	doc        string
}

func (s spec) key(topic bool) *Key {
	k := &Key{Name: s.name, Type: s.typ, Default: s.def, Allowed: s.allowed, Importance: s.importance,
		Scope: s.scope, Unit: s.unit, Status: s.state.status, Why: s.state.why, Doc: s.doc, Topic: topic,
		Internal: internalKeys[s.name]}
	switch {
	case topic:
		k.Scope = OnTopic
	case needsRestart[s.name]:
		k.Scope = ReadOnly
	}
	if k.Default == null {
		k.Default, k.Null = "", true
	}
	k.bounds()
	return k
}

// bounds reads Kafka's notation of a range: "[1,...]", "[1,...,9] or -1",
// "[a, b]", "(case insensitive) [a, b]", "non-empty list", "non-null string".
func (k *Key) bounds() {
	k.min, k.max = math.Inf(-1), math.Inf(1)
	a := k.Allowed
	switch {
	case a == "":
		return
	case strings.HasPrefix(a, "non-empty"):
		k.filled = true
		return
	case !strings.Contains(a, "[") || strings.HasPrefix(a, "[partitionId]"):
		return // the check table has it
	}
	if rest, ok := strings.CutPrefix(a, "(case insensitive) "); ok {
		a, k.fold = rest, true
	}
	a, after, _ := strings.Cut(strings.TrimPrefix(a, "["), "]")
	k.special = strings.TrimPrefix(after, " or ")
	switch k.Type {
	case Int, Short, Long, Double:
		lo, hi, _ := strings.Cut(a, ",...")
		k.min = mustFloat(lo)
		if hi = strings.TrimPrefix(hi, ","); hi != "" {
			k.max = mustFloat(hi)
		}
	default:
		k.oneOf = strings.Split(a, ", ")
	}
}

func mustFloat(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("BUG: bad bound in the key table: " + s)
	}
	return f
}
