package config

import (
	"fmt"
	"strings"

	"github.com/weirmq/weir/internal/kafka"
)

// Refusal is a change of a setting that is refused, with the code Kafka answers:
// INVALID_CONFIG for a topic's value, INVALID_REQUEST for a broker's.
type Refusal struct {
	Code    kafka.Error
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Unwrap gives the code, for the one table from errors to codes.
func (r *Refusal) Unwrap() error { return r.Code }

// ValidateTopic checks one override of a topic. A nil value asks to remove the
// override, which any known key may. The error is a *Refusal.
func ValidateTopic(key string, val *string) error {
	k := topicIndex[key]
	if k == nil {
		return &Refusal{kafka.ErrInvalidConfig, "Unknown topic config name: " + key + nearestTopic(key)}
	}
	if val == nil {
		return nil
	}
	if _, err := k.parse(*val); err != nil {
		return &Refusal{kafka.ErrInvalidConfig, err.Error()}
	}
	return nil
}

func nearestTopic(key string) string {
	if near := Nearest(key); near != "" && topicIndex[near] != nil {
		return "; the nearest is " + near
	}
	return ""
}

// ValidateTopicAll checks a topic's overrides against each other, after the
// change: base is the broker's view.
func ValidateTopicAll(base *View, overrides map[string]string) error {
	for key, val := range overrides {
		if err := ValidateTopic(key, &val); err != nil {
			return err
		}
	}
	t := base.Topic(overrides)
	switch {
	case t.MinCompactionLagMs > t.MaxCompactionLagMs:
		return &Refusal{kafka.ErrInvalidConfig, fmt.Sprintf("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)",
			t.MinCompactionLagMs, t.MaxCompactionLagMs)}
	case t.RemoteStorage:
		return &Refusal{kafka.ErrInvalidConfig, "remote.storage.enable cannot be true: " + needsTiering.why + "."}
	}
	return nil
}

// ValidateBrokerDynamic checks one dynamic setting of a broker (perBroker) or of
// the cluster's default. A nil value asks to remove it. The error is a *Refusal.
func ValidateBrokerDynamic(key string, val *string, perBroker bool) error {
	k, prefix, ok := resolve(key)
	refuse := func(format string, args ...any) error {
		return &Refusal{kafka.ErrInvalidRequest, fmt.Sprintf(format, args...)}
	}
	switch {
	case !ok || k == nil:
		if near := Nearest(key); near != "" {
			return refuse("Unknown broker config name: %s; the nearest is %s", key, near)
		}
		return refuse("Unknown broker config name: %s", key)
	case k.Scope == ReadOnly:
		return refuse("Cannot update these configs dynamically: [%s]", key)
	case k.Scope == PerBroker && !perBroker:
		return refuse("Cannot update these configs at default cluster level, broker id must be specified: [%s]", key)
	case prefix == "" && listenerOnly(k.Name):
		return refuse("These security configs can be dynamically updated only per-listener using the listener prefix: [%s]", key)
	case val == nil:
		return nil
	}
	if _, err := k.parse(*val); err != nil {
		return refuse("%s", err)
	}
	return nil
}

// ValidateBrokerAll checks a broker's dynamic settings (perBroker), or the cluster's
// default, against each other and all others in force, after the change. What did not
// fit before and is left alone is not the change's fault. The error is a *Refusal.
func (v *View) ValidateBrokerAll(set map[string]string, perBroker bool) error {
	cluster, broker := raw(v.cluster), raw(v.broker)
	if perBroker {
		broker = set
	} else {
		cluster = set
	}
	after := v.static.With(cluster, broker)
	if why := tooFewKeys(after); why != "" && why != tooFewKeys(v) {
		return &Refusal{kafka.ErrInvalidRequest, fmt.Sprintf("Invalid value %d for configuration log.cleaner.dedupe.buffer.size: %s", after.Long("log.cleaner.dedupe.buffer.size"), why)}
	}
	return nil
}

func raw(values map[string]value) map[string]string {
	out := make(map[string]string, len(values))
	for name, val := range values {
		out[name] = val.raw
	}
	return out
}

// keysPerThread is what the memory for keys of one cleaner thread must exceed.
const keysPerThread = 1 << 20

// tooFewKeys says why the memory for keys does not suffice, or "".
func tooFewKeys(v *View) string {
	threads := v.Long("log.cleaner.threads")
	if bytes := v.Long("log.cleaner.dedupe.buffer.size"); threads > 0 && bytes/threads <= keysPerThread {
		return fmt.Sprintf("must be more than %d for each of log.cleaner.threads, which is %d; try %d or more", keysPerThread, threads, (keysPerThread+1)*threads)
	}
	return ""
}

// listenerOnly keys change while running only with "listener.name.x." before
// them.
func listenerOnly(name string) bool {
	return strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl.") || name == "principal.builder.class"
}
