package config

import (
	"slices"
	"strings"
)

// The sources of a value, by the numbers DescribeConfigs sends.
const (
	SourceTopic          int8 = 1
	SourceDynamicBroker  int8 = 2
	SourceDynamicDefault int8 = 3
	SourceStatic         int8 = 4
	SourceDefault        int8 = 5
)

// Entry is one setting as DescribeConfigs shows it.
type Entry struct {
	Name      string
	Value     string
	Null      bool // no value, or one that must not be shown
	Source    int8
	Sensitive bool
	ReadOnly  bool
	Type      int8
	Doc       string
	Synonyms  []Synonym // where the value comes from, the strongest first
}

// Synonym is a layer that has a value for an Entry.
type Synonym struct {
	Name   string
	Value  string
	Null   bool // the value must not be shown
	Source int8
}

// DescribeTopic is a topic's settings, in the order of their names: each topic
// key but the internal ones that are not set.
func (v *View) DescribeTopic(overrides map[string]string) []Entry {
	entries := make([]Entry, 0, len(topicKeys))
	for _, k := range topicKeys {
		val := v.topics[k.index]
		var syn []Synonym
		if len(k.Synonyms) > 0 {
			syn = v.brokerSynonyms(brokerIndex[k.Synonyms[0]])
		}
		raw, set := overrides[k.Name]
		if set {
			if parsed, err := k.parse(raw); err == nil {
				val = parsed
				syn = slices.Insert(syn, 0, Synonym{Name: k.Name, Value: val.raw, Source: SourceTopic})
			} else {
				set = false
			}
		}
		if k.Internal && !set {
			continue
		}
		entries = append(entries, entry(k, k.Name, val, syn, false))
	}
	return entries
}

// DescribeBroker is this broker's settings in the order of their names: each
// broker key but the internal ones that are not set, and the dynamic settings
// that only a listener has or that nothing knows.
func (v *View) DescribeBroker() []Entry {
	entries := make([]Entry, 0, len(brokerKeys))
	seen := map[string]bool{}
	for _, k := range brokerKeys {
		syn := v.brokerSynonyms(k)
		if k.Internal && (len(syn) == 0 || syn[0].Source == SourceDefault) {
			continue
		}
		seen[k.Name] = true
		entries = append(entries, entry(k, k.Name, v.values[k.index], syn, k.Scope == ReadOnly))
	}
	for _, layer := range []map[string]value{v.static.others, v.cluster, v.broker} {
		for name := range layer {
			if !seen[name] {
				seen[name] = true
				entries = append(entries, v.odd(name))
			}
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// DescribeClusterDefault is the dynamic settings for all brokers, as
// DescribeConfigs of broker "" shows them.
func (v *View) DescribeClusterDefault() []Entry {
	entries := make([]Entry, 0, len(v.cluster))
	for name, val := range v.cluster {
		k, prefix, ok := resolve(name)
		if !ok || k == nil {
			entries = append(entries, Entry{Name: name, Null: true, Source: SourceDynamicDefault, Sensitive: true, ReadOnly: true,
				Synonyms: []Synonym{{Name: name, Null: true, Source: SourceDynamicDefault}}})
			continue
		}
		val.raw = val.given // Kafka shows it so in this one list
		syn := []Synonym{shown(k, name, val, SourceDynamicDefault)}
		entries = append(entries, entry(k, name, val, syn, prefix != ""))
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// odd is the entry of a name that is not in the table: with a listener's prefix,
// or unknown. What nothing knows could be a secret and is not shown.
func (v *View) odd(name string) Entry {
	k, _, _ := resolve(name)
	var syn []Synonym
	var val *value
	for i, layer := range []map[string]value{v.broker, v.cluster, v.static.others} {
		found, ok := layer[name]
		if !ok {
			continue
		}
		if val == nil {
			val = &found
		}
		if k == nil {
			syn = append(syn, Synonym{Name: name, Null: true, Source: SourceDynamicBroker + int8(i)})
		} else {
			syn = append(syn, shown(k, name, found, SourceDynamicBroker+int8(i)))
		}
	}
	if k == nil {
		return Entry{Name: name, Null: true, Source: syn[0].Source, Sensitive: true, ReadOnly: true, Synonyms: syn}
	}
	return entry(k, name, *val, append(syn, v.brokerSynonyms(k)...), true)
}

func entry(k *Key, name string, val value, syn []Synonym, readOnly bool) Entry {
	e := Entry{Name: name, Value: val.raw, Null: val.null, Source: SourceDefault, Sensitive: k.Sensitive(), ReadOnly: readOnly,
		Type: int8(k.Type), Doc: k.Doc, Synonyms: syn}
	if len(syn) > 0 {
		e.Source = syn[0].Source
	}
	if e.Sensitive {
		e.Value, e.Null = "", true
	}
	return e
}

// brokerSynonyms are the layers a broker key gets its value from, the strongest
// first.
func (v *View) brokerSynonyms(k *Key) []Synonym {
	names := []string{k.Name}
	if !hidden[k.Name] {
		names = append(names, k.Synonyms...)
	}
	var syn []Synonym
	add := func(layer map[string]value, source int8) {
		for _, n := range names {
			if val, ok := layer[n]; ok {
				syn = append(syn, shown(mustKey(n), n, val, source))
			}
		}
	}
	add(v.broker, SourceDynamicBroker)
	add(v.cluster, SourceDynamicDefault)
	for _, n := range names {
		k := mustKey(n)
		if v.static.origins[k.index] != FromDefault {
			syn = append(syn, shown(k, n, v.static.values[k.index], SourceStatic))
		}
	}
	for _, n := range names {
		if d := mustKey(n).def; !d.null {
			syn = append(syn, shown(mustKey(n), n, d, SourceDefault))
		}
	}
	// Kafka drops what comes before the key's own first entry. So log.retention.ms
	// that is not set shows no synonyms even when log.retention.hours is.
	for len(syn) > 0 && syn[0].Name != k.Name {
		syn = syn[1:]
	}
	return syn
}

func shown(k *Key, name string, val value, source int8) Synonym {
	if k.Sensitive() {
		return Synonym{Name: name, Null: true, Source: source}
	}
	return Synonym{Name: name, Value: val.given, Source: source}
}
