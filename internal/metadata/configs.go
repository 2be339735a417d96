package metadata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

// One change of one key, whatever request it came in.
type configOp struct {
	key   string
	op    kmsg.IncrementalAlterConfigOp
	value *string
}

// alterConfigs serves AlterConfigs 0-2 (KIP-133): what is not named is deleted.
func (c *Controller) alterConfigs(req *kmsg.AlterConfigsRequest) (*kmsg.AlterConfigsResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	seen := map[ConfigKey]int{}
	for i := range req.Resources {
		r := &req.Resources[i]
		seen[ConfigKey{ConfigKind(r.ResourceType), r.ResourceName}]++
	}
	var rs []Record
	for i := range req.Resources {
		r := &req.Resources[i]
		key := ConfigKey{ConfigKind(r.ResourceType), r.ResourceName}
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		ops := make([]configOp, 0, len(r.Configs))
		named := make(map[string]bool, len(r.Configs))
		for _, kv := range r.Configs {
			ops = append(ops, configOp{kv.Name, kmsg.IncrementalAlterConfigOpSet, kv.Value})
			named[kv.Name] = true
		}
		for _, k := range slices.Sorted(maps.Keys(c.img().Config(key.Kind, key.Name))) {
			if !named[k] {
				ops = append(ops, configOp{k, kmsg.IncrementalAlterConfigOpDelete, nil})
			}
		}
		rec, f := c.changeConfigs(key, ops, seen[key])
		if f == nil && rec != nil {
			rs = append(rs, rec)
		}
		out.ErrorCode, out.ErrorMessage = f.parts()
		resp.Resources = append(resp.Resources, out)
	}
	if req.ValidateOnly {
		rs = nil
	}
	return resp, rs
}

// incrementalAlterConfigs serves IncrementalAlterConfigs 0-1 (KIP-339).
func (c *Controller) incrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest) (*kmsg.IncrementalAlterConfigsResponse, []Record) {
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	seen := map[ConfigKey]int{}
	for i := range req.Resources {
		r := &req.Resources[i]
		seen[ConfigKey{ConfigKind(r.ResourceType), r.ResourceName}]++
	}
	var rs []Record
	for i := range req.Resources {
		r := &req.Resources[i]
		key := ConfigKey{ConfigKind(r.ResourceType), r.ResourceName}
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		ops := make([]configOp, len(r.Configs))
		for j, kv := range r.Configs {
			ops[j] = configOp{kv.Name, kv.Op, kv.Value}
		}
		rec, f := c.changeConfigs(key, ops, seen[key])
		if f == nil && rec != nil {
			rs = append(rs, rec)
		}
		out.ErrorCode, out.ErrorMessage = f.parts()
		resp.Resources = append(resp.Resources, out)
	}
	if req.ValidateOnly {
		rs = nil
	}
	return resp, rs
}

// changeConfigs checks all changes of one resource and makes one record of
// them, nil when nothing would change.
func (c *Controller) changeConfigs(key ConfigKey, ops []configOp, seen int) (*ConfigRecord, *failure) {
	if seen > 1 {
		return nil, fail(kafka.ErrInvalidRequest, "Each resource must appear at most once.")
	}
	if f := checkOps(ops); f != nil {
		return nil, f
	}
	if f := c.checkResource(key); f != nil {
		return nil, f
	}
	if key.Kind == BrokerConfig && key.Name != "" { // "01" is broker 1; checkResource has parsed it
		id, _ := strconv.ParseInt(key.Name, 10, 32)
		key.Name = strconv.FormatInt(id, 10)
	}
	old := c.img().Config(key.Kind, key.Name)
	rec := &ConfigRecord{Key: key, Set: map[string]string{}}
	for _, op := range ops {
		value := op.value
		switch op.op {
		case kmsg.IncrementalAlterConfigOpDelete:
			if _, set := old[op.key]; set { // else nothing to do, even for a key that does not exist
				rec.Delete = append(rec.Delete, op.key)
			}
			continue
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			v, f := c.editList(key, op, old)
			if f != nil {
				return nil, f
			}
			value = &v
		}
		v := strings.ToValidUTF8(*value, "\uFFFD") // as Java reads it; JSON could not keep the bytes
		if f := c.checkConfig(key, op.key, &v); f != nil {
			return nil, f
		}
		if was, set := old[op.key]; !set || was != v {
			rec.Set[op.key] = v
		}
	}
	if f := c.checkConfigSet(key, old, rec); f != nil {
		return nil, f
	}
	sort.Strings(rec.Delete)
	if len(rec.Set)+len(rec.Delete) == 0 {
		return nil, nil
	}
	return rec, nil
}

func checkOps(ops []configOp) *failure {
	var nulls []string
	twice := false
	seen := map[string]bool{}
	for _, op := range ops {
		if op.op < kmsg.IncrementalAlterConfigOpSet || op.op > kmsg.IncrementalAlterConfigOpSubtract {
			return fail(kafka.ErrInvalidRequest, "Unknown operation type %d for config %s.", op.op, op.key)
		}
		if op.op != kmsg.IncrementalAlterConfigOpDelete && op.value == nil {
			nulls = append(nulls, op.key)
		}
		twice = twice || seen[op.key]
		seen[op.key] = true
	}
	if twice {
		return fail(kafka.ErrInvalidRequest, "Error due to duplicate config keys")
	}
	if len(nulls) > 0 {
		return fail(kafka.ErrInvalidRequest, "Null value not supported for : %s", strings.Join(nulls, ","))
	}
	return nil
}

// checkResource says whether a resource can have configs at all.
func (c *Controller) checkResource(key ConfigKey) *failure {
	switch key.Kind {
	case TopicConfig:
		if key.Name == "" {
			return fail(kafka.ErrInvalidRequest, "Default topic resources are not allowed.")
		}
		if why := CheckTopicName(key.Name); why != "" {
			return &failure{kafka.ErrInvalidTopicException, why}
		}
		if _, ok := c.img().Topic(key.Name); !ok {
			return fail(kafka.ErrUnknownTopicOrPartition, "The topic '%s' does not exist.", key.Name)
		}
	case BrokerConfig:
		if key.Name == "" {
			return nil
		}
		id, err := strconv.ParseInt(key.Name, 10, 32)
		if err != nil {
			return fail(kafka.ErrInvalidRequest, "Node id must be an integer, but it is: %s", key.Name)
		}
		if c.img().broker(kafka.BrokerID(id)) == nil {
			return fail(kafka.ErrInvalidRequest, "Unexpected broker id: no broker with id %d is registered", id)
		}
	case ClientMetricsConfig:
		if key.Name == "" {
			return fail(kafka.ErrInvalidRequest, "Subscription name can't be empty")
		}
	case GroupConfig:
		if key.Name == "" {
			return fail(kafka.ErrInvalidRequest, "Default group resources are not allowed.")
		}
	default:
		return fail(kafka.ErrInvalidRequest, "Unknown resource type %d", key.Kind)
	}
	return nil
}

func (c *Controller) checkConfig(key ConfigKey, name string, value *string) *failure {
	if c.cfg.Rules == nil {
		return nil
	}
	return configFailure(key.Kind, c.cfg.Rules.ValidateConfig(key.Kind, key.Name, name, value))
}

func configFailure(kind ConfigKind, err error) *failure {
	if err == nil {
		return nil
	}
	code := kafka.ErrInvalidConfig
	if kind == BrokerConfig || kind == ClientMetricsConfig {
		code = kafka.ErrInvalidRequest // so Kafka, for these two
	}
	errors.As(err, &code)
	return &failure{code, err.Error()}
}

func (c *Controller) checkConfigSet(key ConfigKey, old map[string]string, rec *ConfigRecord) *failure {
	rules, ok := c.cfg.Rules.(ConfigSetRules)
	if !ok {
		return nil
	}
	all := make(map[string]string, len(old)+len(rec.Set))
	maps.Copy(all, old)
	for _, k := range rec.Delete {
		delete(all, k)
	}
	maps.Copy(all, rec.Set)
	return configFailure(key.Kind, rules.ValidateConfigSet(key.Kind, key.Name, all))
}

// editList appends to or takes from a list, beginning with the default when
// nothing is set.
func (c *Controller) editList(key ConfigKey, op configOp, old map[string]string) (string, *failure) {
	var def string
	isList := true
	if c.cfg.Rules != nil {
		def, isList = c.cfg.Rules.ListConfig(key.Kind, op.key)
	}
	if !isList {
		verb := "APPEND"
		if op.op == kmsg.IncrementalAlterConfigOpSubtract {
			verb = "SUBTRACT"
		}
		return "", fail(kafka.ErrInvalidConfig, "Can't %s to key %s because its type is not LIST.", verb, op.key)
	}
	now, set := old[op.key]
	if !set {
		now = def
	}
	var list []string
	for _, v := range strings.Split(now, ",") {
		if v = strings.TrimSpace(v); v != "" {
			list = append(list, v)
		}
	}
	for _, v := range strings.Split(*op.value, ",") {
		v = strings.TrimSpace(v)
		i := slices.Index(list, v)
		switch {
		case op.op == kmsg.IncrementalAlterConfigOpAppend && i < 0 && v != "":
			list = append(list, v)
		case op.op == kmsg.IncrementalAlterConfigOpSubtract && i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	return strings.Join(list, ","), nil
}

// creationConfigs checks the configs of a topic to be created.
func (c *Controller) creationConfigs(t *kmsg.CreateTopicsRequestTopic) (map[string]string, *failure) {
	if len(t.Configs) == 0 {
		return nil, nil
	}
	key := ConfigKey{TopicConfig, t.Topic}
	set := make(map[string]string, len(t.Configs))
	var nulls []string
	for _, kv := range t.Configs {
		if kv.Value == nil {
			nulls = append(nulls, kv.Name)
			continue
		}
		set[kv.Name] = strings.ToValidUTF8(*kv.Value, "\uFFFD")
	}
	if len(nulls) > 0 {
		return nil, &failure{kafka.ErrInvalidConfig, fmt.Sprintf("Null value not supported for topic configs: %s", strings.Join(nulls, ","))}
	}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		v := set[k]
		if f := c.checkConfig(key, k, &v); f != nil {
			return nil, f
		}
	}
	if f := c.checkConfigSet(key, nil, &ConfigRecord{Set: set}); f != nil {
		return nil, f
	}
	return set, nil
}
