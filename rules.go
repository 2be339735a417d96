package weir

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/metadata"
)

// configRules lets the controller check configs without knowing the keys.
type configRules struct{ s *Server }

var _ metadata.ConfigSetRules = configRules{}

func (r configRules) ValidateConfig(kind metadata.ConfigKind, name, key string, value *string) error {
	switch kind {
	case metadata.TopicConfig:
		return config.ValidateTopic(key, value)
	case metadata.BrokerConfig:
		return config.ValidateBrokerDynamic(key, value, name != "")
	case metadata.GroupConfig:
		return r.s.view.Load().ValidateGroup(key, value)
	case metadata.ClientMetricsConfig:
		return config.ValidateClientMetrics(key, value)
	}
	return nil
}

// ValidateConfigSet checks the values of a topic, or of a broker, against each other.
func (r configRules) ValidateConfigSet(kind metadata.ConfigKind, name string, values map[string]string) error {
	switch kind {
	case metadata.TopicConfig:
		return config.ValidateTopicAll(r.s.view.Load(), values)
	case metadata.BrokerConfig:
		return r.s.view.Load().ValidateBrokerAll(values, name != "")
	}
	return nil
}

func (configRules) ListConfig(kind metadata.ConfigKind, key string) (string, bool) {
	find := config.Lookup
	if kind == metadata.TopicConfig {
		find = config.LookupTopic
	}
	k, ok := find(key)
	if !ok || k.Type != config.List {
		return "", false
	}
	return k.Default, true
}

func (r configRules) TopicConfigs(img *metadata.Image, overrides map[string]string) []kmsg.CreateTopicsResponseTopicConfig {
	entries := r.s.view.Load().DescribeTopic(overrides)
	out := make([]kmsg.CreateTopicsResponseTopicConfig, 0, len(entries))
	for _, e := range entries {
		c := kmsg.NewCreateTopicsResponseTopicConfig()
		c.Name, c.ReadOnly, c.Source, c.IsSensitive = e.Name, e.ReadOnly, e.Source, e.Sensitive
		if !e.Null {
			v := e.Value
			c.Value = &v
		}
		out = append(out, c)
	}
	return out
}
