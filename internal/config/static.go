package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/kafka"
)

// Source is what a configuration is made from. Nothing is read here: the caller
// hands in the contents.
type Source struct {
	File      []byte   // text of a .properties file; nil for none
	FileName  string   // for messages; empty: "file"
	Env       []string // "NAME=value", as os.Environ gives them
	Overrides []string // "key=value", the strongest
	DataDir   string   // default of log.dirs; empty: ./weir-data
	Hostname  string   // stands for a wildcard address in advertised.listeners
}

// Kind sorts warnings.
type Kind int8

// The kinds of warnings.
const (
	UnknownKey  Kind = iota // nothing knows the key
	Ineffective             // known, and without effect here (NoEffect, ZooKeeper, JVM)
	Later                   // known, and not there yet
	Replaced                // set twice in one file; the later counts
	Advice                  // valid, and probably not what is meant
)

func (k Kind) String() string {
	return [...]string{"unknown", "no effect", "not yet", "twice", "advice"}[k]
}

// Warning is something to tell at a start that does not stop it.
type Warning struct {
	Kind    Kind
	Key     string // or the environment variable
	Where   string // "server.properties line 3"
	Message string // a sentence
}

func (w Warning) String() string {
	if w.Where == "" {
		return w.Message
	}
	return w.Where + ": " + w.Message
}

// Origin says which layer of a Source a value comes from.
type Origin int8

// The origins, the weakest first.
const (
	FromDefault Origin = iota
	FromFile
	FromEnv
	FromFlag
)

func (o Origin) String() string { return [...]string{"default", "file", "environment", "flag"}[o] }

// setting is one key as it was given.
type setting struct {
	key, raw string
	origin   Origin
	where    string
}

// Static is the configuration a broker starts with. It does not change.
type Static struct {
	values    []value           // by Key.index of broker keys, defaults filled in
	origins   []Origin          // by Key.index
	wheres    map[string]string // where a key was given, for messages
	others    map[string]value  // listener.name.x.<key>, plug-ins' and unknown keys
	clusterID string
	dataDir   string
	listeners []Listener
	advert    []Listener
	base      *View // this configuration without dynamic changes
}

// Load reads a configuration. Flags beat the environment, that beats the file,
// that beats the defaults. The error joins one *ValueError or plain error for
// each thing that is wrong, not just the first. Warnings are returned with an
// error too.
func Load(in Source) (*Static, []Warning, error) {
	var warnings []Warning
	var errs []error
	settings, clusterID, w, e := collect(in)
	warnings, errs = append(warnings, w...), append(errs, e...)

	s := &Static{values: make([]value, len(brokerKeys)), origins: make([]Origin, len(brokerKeys)),
		wheres: map[string]string{}, others: map[string]value{}, clusterID: clusterID, dataDir: in.DataDir}
	for i, k := range brokerKeys {
		s.values[i] = k.def
	}
	if s.dataDir == "" {
		s.dataDir = brokerIndex["log.dir"].Default
	} else {
		// One folder, whatever its name: a comma in it separates nothing.
		s.values[brokerIndex["log.dir"].index] = value{raw: s.dataDir, given: s.dataDir, list: []string{s.dataDir}}
	}
	for _, set := range settings {
		k, prefix, ok := resolve(set.key)
		switch {
		case !ok:
			s.others[set.key] = value{raw: set.raw, given: set.raw}
			warnings = append(warnings, set.unknownWarning())
			continue
		case k == nil: // a family of keys for plug-ins
			s.others[set.key] = value{raw: set.raw, given: set.raw}
			warnings = append(warnings, Warning{Ineffective, set.key, set.where, set.key + " has no effect: " + prefix + "."})
			continue
		}
		v, err := k.parse(set.raw)
		if err != nil {
			var bad *ValueError
			if errors.As(err, &bad) {
				bad.Where, bad.Key = set.where, set.key
				if second := runTogether(set.raw); second != "" {
					bad.Reason, bad.Allowed, bad.Try = "two lines seem to have run together", "", "a line of its own for "+second
				}
			}
			errs = append(errs, err)
			continue
		}
		if prefix != "" {
			s.others[set.key] = v
		} else {
			s.values[k.index], s.origins[k.index], s.wheres[k.Name] = v, set.origin, set.where
		}
		if w, ok := set.statusWarning(k); ok {
			warnings = append(warnings, w)
		}
	}
	errs = append(errs, s.settle(in.Hostname)...)
	s.base = s.With(nil, nil)
	warnings = append(warnings, s.advice()...)
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	return s, warnings, nil
}

// runTogether finds the setting at the end of a value that lost its line break,
// as in "8replica.fetch.max.bytes=1000".
func runTogether(raw string) (setting string) {
	before, val, ok := strings.Cut(raw, "=")
	if !ok {
		return ""
	}
	for i := range before {
		if _, known := brokerIndex[before[i:]]; known {
			return before[i:] + "=" + val
		}
	}
	return ""
}

// collect gathers the settings of all layers, the strongest last, one per key.
func collect(in Source) (settings []setting, clusterID string, warnings []Warning, errs []error) {
	file := in.FileName
	if file == "" {
		file = "file"
	}
	at := map[string]int{}
	put := func(s setting) {
		if i, ok := at[s.key]; ok {
			if settings[i].origin == FromFile && s.origin == FromFile {
				warnings = append(warnings, Warning{Replaced, s.key, s.where, s.key + " is set twice; this line counts, the one at " + settings[i].where + " does not."})
			}
			settings[i] = s
			return
		}
		at[s.key] = len(settings)
		settings = append(settings, s)
	}
	props, err := ParseProperties(in.File)
	if err != nil {
		errs = append(errs, fmt.Errorf("%s %w", file, err))
	}
	for _, p := range props {
		put(setting{p.Key, p.Value, FromFile, fmt.Sprintf("%s line %d", file, p.Line)})
	}
	for _, e := range in.Env {
		name, val, _ := strings.Cut(e, "=")
		switch name {
		case "CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID":
			clusterID = val
			continue
		}
		key, notice, ok := fromEnv(name)
		if notice != "" {
			warnings = append(warnings, Warning{Ineffective, name, "environment", notice})
		}
		if ok {
			put(setting{key, val, FromEnv, "environment " + name})
		}
	}
	for _, o := range in.Overrides {
		key, val, ok := strings.Cut(o, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			errs = append(errs, fmt.Errorf("--override %q is not key=value; try --override num.partitions=3", o))
			continue
		}
		put(setting{key, val, FromFlag, "--override " + key})
	}
	return settings, clusterID, warnings, errs
}

func (s setting) unknownWarning() Warning {
	m := s.key + " is no key of Kafka 4.4 or Weir and has no effect"
	if why, ok := legacy(s.key); ok {
		return Warning{Ineffective, s.key, s.where, s.key + " has no effect: " + why + "."}
	}
	if _, ok := topicIndex[s.key]; ok {
		m = s.key + " is a topic's key and has no effect for the broker"
		if b := topicIndex[s.key].Synonyms; len(b) > 0 {
			m += "; the broker's is " + b[0]
		}
	} else if near := Nearest(s.key); near != "" {
		m += "; the nearest is " + near
	}
	if second := runTogether(s.raw); second != "" {
		m += ". Two lines seem to have run together; try a line of its own for " + second
	}
	return Warning{UnknownKey, s.key, s.where, m + "."}
}

func (s setting) statusWarning(k *Key) (Warning, bool) {
	switch {
	case k.def.raw == strings.TrimSpace(s.raw):
		// a file that spells out a default asks for nothing
	case s.key == "controller.quorum.voters", s.key == "controller.quorum.bootstrap.servers":
		// every KRaft file has one of them; settleNodes looks at what they say
	case k.Status == NoEffect:
		return Warning{Ineffective, s.key, s.where, s.key + " has no effect: " + k.Why + "."}, true
	case k.Status == NotYet:
		return Warning{Later, s.key, s.where, s.key + " is accepted and does nothing: " + k.Why + "."}, true
	}
	return Warning{}, false
}

// ClusterID is the cluster's id when the environment gives one (CLUSTER_ID, as
// container images do), or empty.
func (s *Static) ClusterID() string { return s.clusterID }

// NodeID is node.id, or broker.id when only that was set.
func (s *Static) NodeID() kafka.BrokerID { return kafka.BrokerID(s.Int("node.id")) }

// LogDirs is log.dirs, or log.dir when log.dirs is not set.
func (s *Static) LogDirs() []string {
	if dirs := s.List("log.dirs"); len(dirs) > 0 {
		return dirs
	}
	return s.List("log.dir")
}

// MetadataLogDir is metadata.log.dir, or the first of LogDirs.
func (s *Static) MetadataLogDir() string {
	if d := s.Str("metadata.log.dir"); d != "" {
		return d
	}
	return s.LogDirs()[0]
}

// IsSet says whether the key was given, in whatever way.
func (s *Static) IsSet(key string) bool { return s.Source(key) != FromDefault }

// Source says where the key's value comes from.
func (s *Static) Source(key string) Origin { return s.origins[mustKey(key).index] }

// Typed getters, as those of View.
func (s *Static) Int(key string) int        { return s.base.Int(key) }
func (s *Static) Long(key string) int64     { return s.base.Long(key) }
func (s *Static) Bool(key string) bool      { return s.base.Bool(key) }
func (s *Static) Str(key string) string     { return s.base.Str(key) }
func (s *Static) Double(key string) float64 { return s.base.Double(key) }
func (s *Static) List(key string) []string  { return s.base.List(key) }
func (s *Static) View() *View               { return s.base }
func mustKey(key string) *Key {
	k := brokerIndex[key]
	if k == nil {
		panic("BUG: config has no broker key " + key)
	}
	return k
}

// resolve finds the key a full name stands for. prefix is what stood before it
// ("listener.name.internal."). k is nil with ok for families of keys that
// belong to plug-ins; then prefix is the reason they have no effect.
func resolve(name string) (k *Key, prefix string, ok bool) {
	if k = brokerIndex[name]; k != nil {
		return k, "", true
	}
	if rest, found := strings.CutPrefix(name, "listener.name."); found {
		_, rest, _ = strings.Cut(rest, ".")
		for tail := rest; tail != ""; {
			if k = brokerIndex[tail]; k != nil {
				return k, name[:len(name)-len(tail)], true
			}
			// a SASL mechanism may stand between: listener.name.x.plain.sasl.jaas.config
			_, tail, _ = strings.Cut(tail, ".")
		}
		return nil, "", false
	}
	for _, family := range []string{"config.providers.", "rsm.config.", "rlmm.config."} {
		if strings.HasPrefix(name, family) {
			return nil, "it is for a Java plug-in", true
		}
	}
	return nil, "", false
}
