package config

import "strings"

// View is a configuration with the dynamic changes of the metadata image on top:
// those of this broker, then the cluster's default, then Static. It does not
// change; a change of the image makes a new one. The getters are a map look-up
// and no more.
type View struct {
	static  *Static
	values  []value
	cluster map[string]value // dynamic default, by name, only what passed its check
	broker  map[string]value // dynamic of this broker
	topics  []value          // by Key.index of topic keys: what a topic has without overrides
	topic   TopicConfig      // the same, typed
}

// With lays the image's dynamic settings over s. Values that do not pass their
// check are left out, and so are read-only keys: see ValidateBrokerDynamic.
func (s *Static) With(clusterDefault, broker map[string]string) *View {
	v := &View{static: s, values: s.values, cluster: map[string]value{}, broker: map[string]value{}}
	if len(clusterDefault)+len(broker) > 0 {
		v.values = append([]value(nil), s.values...)
	}
	v.overlay(clusterDefault, v.cluster)
	v.overlay(broker, v.broker)
	v.topics = make([]value, len(topicKeys))
	for i, k := range topicKeys {
		v.topics[i] = v.topicDefault(k)
	}
	v.topic = v.topicBase()
	return v
}

func (v *View) overlay(from map[string]string, to map[string]value) {
	for name, raw := range from {
		k, prefix, ok := resolve(name)
		if !ok || k == nil {
			to[name] = value{raw: raw, given: raw}
			continue
		}
		if k.Scope == ReadOnly {
			continue
		}
		val, err := k.parse(raw)
		if err != nil {
			continue
		}
		to[name] = val
		if prefix == "" {
			v.values[k.index] = val
		}
	}
}

// Static is the configuration below the dynamic settings.
func (v *View) Static() *Static { return v.static }

func (v *View) get(key string, types ...Type) *value {
	k := mustKey(key)
	for _, t := range types {
		if k.Type == t {
			return &v.values[k.index]
		}
	}
	panic("BUG: config key " + key + " is of type " + k.Type.String())
}

// Int is the value of a key of type int or short; 0 when it has no value.
func (v *View) Int(key string) int { return int(v.get(key, Int, Short).n) }

// Long is the value of a key of type long, int or short; 0 when it has no value.
func (v *View) Long(key string) int64 { return v.get(key, Long, Int, Short).n }

// Bool is the value of a boolean key.
func (v *View) Bool(key string) bool { return v.get(key, Bool).n == 1 }

// Double is the value of a key of type double.
func (v *View) Double(key string) float64 { return v.get(key, Double).f }

// Str is the value of a string, class or password key; empty when it has none.
func (v *View) Str(key string) string { return v.get(key, String, Class, Password).raw }

// List is the value of a list; nil when it has none. The caller must not change it.
func (v *View) List(key string) []string { return v.get(key, List).list }

// Null says that the key has no value, by default or otherwise.
func (v *View) Null(key string) bool { return v.values[mustKey(key).index].null }

// ForListener is the value of a key for one listener, as text: what
// listener.name.<name>.<key> says, or the key itself.
func (v *View) ForListener(listener, key string) string {
	name := "listener.name." + strings.ToLower(listener) + "." + key
	for _, layer := range []map[string]value{v.broker, v.cluster, v.static.others} {
		if val, ok := layer[name]; ok {
			return val.raw
		}
	}
	return v.values[mustKey(key).index].raw
}

// OfListener is the number that listener.name.<name>.<key> sets; ok is false when
// nothing does.
func (v *View) OfListener(listener, key string) (n int64, ok bool) {
	name := "listener.name." + strings.ToLower(listener) + "." + key
	for _, layer := range []map[string]value{v.broker, v.cluster, v.static.others} {
		if val, ok := layer[name]; ok {
			return val.n, true
		}
	}
	return 0, false
}
