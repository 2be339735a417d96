package kafkatools

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type configFlags struct {
	options
	server, controller, config, alter, describe, all, kind, name, defaults *option
	addConfig, addFile, deleteConfig, force                                *option
	short                                                                  []shortEntity
	entities                                                               []entity
}

// shortEntity is a flag that names a type and an entity at once.
type shortEntity struct {
	flag     *option
	kind     string
	defaults bool
}

// entity is what is described or altered; without a name every one of its type.
type entity struct {
	kind     string
	name     string
	named    bool
	defaults bool
}

var (
	entityKinds = []string{"broker-loggers", "topics", "clients", "users", "brokers", "ips", "client-metrics", "groups"}
	entityWords = map[string]string{"broker-loggers": "broker-logger", "topics": "topic", "clients": "client", "users": "user", "brokers": "broker",
		"ips": "ip", "client-metrics": "client-metric", "groups": "group"}
	resourceKinds = map[string]kmsg.ConfigResourceType{"topics": kmsg.ConfigResourceTypeTopic, "brokers": kmsg.ConfigResourceTypeBroker,
		"broker-loggers": kmsg.ConfigResourceTypeBrokerLogger, "client-metrics": kmsg.ConfigResourceTypeClientMetrics, "groups": kmsg.ConfigResourceTypeGroupConfig}
	sourceNames = map[kmsg.ConfigSource]string{kmsg.ConfigSourceDynamicTopicConfig: "DYNAMIC_TOPIC_CONFIG", kmsg.ConfigSourceDynamicBrokerConfig: "DYNAMIC_BROKER_CONFIG",
		kmsg.ConfigSourceDynamicDefaultBrokerConfig: "DYNAMIC_DEFAULT_BROKER_CONFIG", kmsg.ConfigSourceStaticBrokerConfig: "STATIC_BROKER_CONFIG",
		kmsg.ConfigSourceDefaultConfig: "DEFAULT_CONFIG", kmsg.ConfigSourceDynamicBrokerLoggerConfig: "DYNAMIC_BROKER_LOGGER_CONFIG",
		kmsg.ConfigSourceClientMetricsConfig: "DYNAMIC_CLIENT_METRICS_CONFIG", kmsg.ConfigSourceGroupConfig: "DYNAMIC_GROUP_CONFIG"}
)

func newConfigFlags() *configFlags {
	f := &configFlags{}
	f.server = f.value("bootstrap-server", "String", "server to connect to", "The brokers to start from.")
	f.controller = f.value("bootstrap-controller", "String", "controller to connect to", "Controllers to start from; not served here.")
	f.config = f.value("command-config", "String", "command config property file", "A properties file for the client.")
	f.alter = f.flag("alter", "Change configs of one entity.")
	f.describe = f.flag("describe", "Show configs.")
	f.all = f.flag("all", "Show all configs, the defaults too.")
	f.kind = f.value("entity-type", "String", "", strings.Join(entityKinds, ", ")+".")
	f.name = f.value("entity-name", "String", "", "The topic, broker id, client id, user, IP, metrics subscription or group.")
	f.defaults = f.flag("entity-default", "The default of the type.")
	f.addConfig = f.value("add-config", "String", "", "key=value,… to set; square brackets hold values with commas: k=[a,b].")
	f.addFile = f.value("add-config-file", "String", "", "A properties file with configs to set.")
	f.deleteConfig = f.value("delete-config", "String", "", "Keys to remove, with commas between.")
	f.force = f.flag("force", "Do not ask.")
	for _, s := range []struct {
		name, kind string
		defaults   bool
	}{{"topic", "topics", false}, {"client", "clients", false}, {"client-defaults", "clients", true}, {"user", "users", false}, {"user-defaults", "users", true},
		{"broker", "brokers", false}, {"broker-defaults", "brokers", true}, {"broker-logger", "broker-loggers", false}, {"ip", "ips", false}, {"ip-defaults", "ips", true},
		{"group", "groups", false}, {"client-metrics", "client-metrics", false}} {
		var o *option
		if s.defaults {
			o = f.flag(s.name, "The default of the type.")
		} else {
			o = f.value(s.name, "String", "", "The entity, by its type's name.")
		}
		f.short = append(f.short, shortEntity{o, s.kind, s.defaults})
	}
	common(&f.options)
	return f
}

// configs is kafka-configs.
func configs(c *call) error {
	f := newConfigFlags()
	if err := f.parse(c.args); err != nil {
		return &exit{code: 1, stderr: err.Error() + "\n"}
	}
	if err := helpOrVersion(c, &f.options, "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or group"); err != nil {
		return err
	}
	if f.alter.given == f.describe.given {
		return usage(&f.options, "Command must include exactly one action: --describe, --alter")
	}
	// What the user did wrong is told alone, what went wrong then with the command line.
	if err := f.check(); err != nil {
		return &exit{code: 1, stderr: java("", err).message + "\n"}
	}
	err := f.run(c)
	if err == nil {
		return nil
	}
	if e, ok := err.(*exit); ok {
		return e
	}
	e := java("", err)
	if e.class == "java.lang.IllegalArgumentException" {
		return &exit{code: 1, stderr: e.message + "\n"}
	}
	return &exit{code: 1, stderr: "Error while executing config command with args '" + strings.Join(c.args, " ") + "'\n" + e.line() + "\n"}
}

func (f *configFlags) check() error {
	if err := f.findEntities(); err != nil {
		return err
	}
	for _, e := range f.entities {
		if !slices.Contains(entityKinds, e.kind) {
			return illegalArgument("Invalid entity type %s, the entity type must be one of %s with a --bootstrap-server or --bootstrap-controller argument", e.kind, strings.Join(entityKinds, ", "))
		}
	}
	if len(f.entities) == 0 {
		return illegalArgument("At least one entity type must be specified")
	}
	if len(f.entities) > 1 && slices.ContainsFunc(f.entities, func(e entity) bool { return e.kind != "users" && e.kind != "clients" }) {
		return illegalArgument("Only 'users' and 'clients' entity types may be specified together")
	}
	if !f.server.given && !f.controller.given {
		return illegalArgument("Either --bootstrap-server or --bootstrap-controller must be specified.")
	}
	first := f.entities[0]
	if (first.kind == "brokers" || first.kind == "broker-loggers") && first.named {
		if _, err := strconv.ParseInt(first.name, 10, 32); err != nil {
			return illegalArgument("The entity name for %s must be a valid integer broker id, but it is: %s", first.kind, first.name)
		}
	}
	if f.describe.given && (f.addConfig.given || f.addFile.given || f.deleteConfig.given) {
		return illegalArgument("--add-config, --add-config-file, and --delete-config can only be used with --alter")
	}
	if f.alter.given {
		for _, e := range f.entities {
			if !e.named && !e.defaults {
				if e.kind == "brokers" {
					return illegalArgument("An entity name or default entity must be specified with --alter of %s", e.kind)
				}
				return illegalArgument("An entity name must be specified with --alter of %s", e.kind)
			}
		}
		if !f.addConfig.given && !f.addFile.given && !f.deleteConfig.given {
			return illegalArgument("At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter")
		}
		if f.addConfig.given && f.addFile.given {
			return illegalArgument("Only one of --add-config or --add-config-file must be specified")
		}
	}
	return nil
}

func (f *configFlags) findEntities() error {
	names := f.name.values
	for i, kind := range f.kind.values {
		e := entity{kind: kind}
		switch {
		case i < len(names):
			e.name, e.named = names[i], true
		case f.defaults.given:
			e.defaults = true
		}
		f.entities = append(f.entities, e)
	}
	if len(names) > len(f.kind.values) {
		return illegalArgument("--entity-name or --entity-default must be specified with or after each --entity-type")
	}
	for _, s := range f.short {
		if !s.flag.given {
			continue
		}
		e := entity{kind: s.kind, defaults: s.defaults}
		if !s.defaults {
			e.name, e.named = s.flag.values[0], true
		}
		f.entities = append(f.entities, e)
	}
	return nil
}

func (f *configFlags) run(c *call) error {
	if f.controller.given {
		return &exit{code: 1, stderr: "--bootstrap-controller is not served by this tool: give a broker with --bootstrap-server\n"}
	}
	servers, err := f.server.one()
	if err != nil {
		return err
	}
	file, err := f.config.one()
	if err != nil {
		return err
	}
	var add []keyValue
	if f.alter.given {
		if add, err = f.toAdd(); err != nil {
			return err
		}
	}
	k, err := c.admin(servers, file)
	if err != nil {
		return err
	}
	defer k.close()
	switch first := f.entities[0]; {
	case first.kind == "users" || first.kind == "clients" || first.kind == "ips":
		if f.alter.given {
			return f.alterQuotas(c, k, add)
		}
		return f.describeQuotas(c, k)
	case f.alter.given:
		return f.alterOne(c, k, first, add)
	default:
		return f.describeAll(c, k, first)
	}
}

type keyValue struct{ key, value string }

const badAdd = `Invalid entity config: all configs to be added must be in the format "key=val" or  "key=[val1,val2]" to group values which contain commas.`

// toAdd are the configs to set.
func (f *configFlags) toAdd() (out []keyValue, err error) {
	if f.addFile.given {
		path, err := f.addFile.one()
		if err != nil {
			return nil, err
		}
		return propertyPairs(path)
	}
	word, err := f.addConfig.one()
	if err != nil {
		return nil, err
	}
	depth, start := 0, 0
	part := func(s string) error {
		if s = strings.TrimSpace(s); s == "" {
			return nil
		}
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return illegalArgument("%s", badAdd)
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
			value = value[1 : len(value)-1]
		}
		out = append(out, keyValue{strings.TrimSpace(key), value})
		return nil
	}
	for i := range len(word) {
		switch word[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				if err := part(word[start:i]); err != nil {
					return nil, err
				}
				start = i + 1
			}
		}
	}
	return out, part(word[start:])
}

func (f *configFlags) toDelete() []string {
	var out []string
	for _, v := range f.deleteConfig.values {
		out = append(out, splitList(v)...)
	}
	return out
}

func (f *configFlags) alterOne(c *call, k *cluster, e entity, add []keyValue) error {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = resourceKinds[e.kind], e.name
	for _, kv := range add {
		s := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		s.Name, s.Op, s.Value = kv.key, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(kv.value)
		r.Configs = append(r.Configs, s)
	}
	for _, key := range f.toDelete() {
		s := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		s.Name, s.Op = key, kmsg.IncrementalAlterConfigOpDelete
		r.Configs = append(r.Configs, s)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, r)
	resp, err := ask[*kmsg.IncrementalAlterConfigsResponse](k, "incrementalAlterConfigs", req)
	if err != nil {
		return inFuture(err)
	}
	for _, r := range resp.Resources {
		if err := answered(r.ErrorCode, r.ErrorMessage); err != nil {
			return inFuture(err)
		}
	}
	if e.named {
		c.printf("Completed updating config for %s %s.\n", entityWords[e.kind], e.name)
	} else {
		c.printf("Completed updating default config for %s in the cluster.\n", e.kind)
	}
	return nil
}

// described are the names whose configs --describe shows, and whether one that was
// asked for is there.
func (f *configFlags) described(k *cluster, e entity) (names []string, there bool, err error) {
	if e.named {
		names = []string{e.name}
	}
	switch e.kind {
	case "topics":
		md, err := k.metadata("listTopics", nil)
		if err != nil {
			return nil, false, err
		}
		var all []string
		for _, t := range md.Topics {
			all = append(all, *t.Topic)
		}
		if e.named {
			return names, slices.Contains(all, e.name), nil
		}
		slices.Sort(all)
		return hashOrder(all), true, nil
	case "brokers", "broker-loggers":
		if e.named || e.defaults {
			return append(names, make([]string, max(0, 1-len(names)))...), true, nil
		}
		md, err := k.metadata("describeCluster", []string{})
		if err != nil {
			return nil, false, err
		}
		for _, b := range md.Brokers {
			names = append(names, itoa(int64(b.NodeID)))
		}
		slices.Sort(names)
		if e.kind == "brokers" {
			names = append(names, "")
		}
		return names, true, nil
	}
	// Groups and metrics subscriptions: those that have configs, and groups that exist.
	req := kmsg.NewPtrListConfigResourcesRequest()
	req.ResourceTypes = []int8{int8(resourceKinds[e.kind])}
	var all []string
	if !k.unsupported(kmsg.ListConfigResources) {
		resp, err := ask[*kmsg.ListConfigResourcesResponse](k, "listConfigResources", req)
		if err != nil {
			return nil, false, inFuture(err)
		}
		for _, r := range resp.ConfigResources {
			all = append(all, r.Name)
		}
	}
	if e.kind == "groups" {
		gs, err := k.groups(nil, nil)
		if err != nil {
			return nil, false, inFuture(err)
		}
		for _, g := range gs {
			all = append(all, g.Group)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if e.named {
		return names, slices.Contains(all, e.name), nil
	}
	return all, true, nil
}

func (f *configFlags) describeAll(c *call, k *cluster, e entity) error {
	names, there, err := f.described(k, e)
	if err != nil {
		return err
	}
	if !there {
		c.printf("The %s '%s' doesn't exist and doesn't have dynamic config.\n", entityWords[e.kind], e.name)
		return nil
	}
	for _, name := range names {
		got, err := k.configs(resourceKinds[e.kind], []string{name})
		if err != nil {
			return inFuture(err)
		}
		all := got[name]
		slices.SortFunc(all, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
		what := "Dynamic"
		if f.all.given {
			what = "All"
		}
		if name == "" {
			c.printf("Default configs for %s in the cluster are:\n", e.kind)
		} else {
			c.printf("%s configs for %s %s are:\n", what, entityWords[e.kind], name)
		}
		for _, s := range all {
			own := e.kind == "broker-loggers"
			switch s.source {
			case kmsg.ConfigSourceDynamicTopicConfig, kmsg.ConfigSourceClientMetricsConfig, kmsg.ConfigSourceGroupConfig:
				own = true
			case kmsg.ConfigSourceDynamicBrokerConfig:
				own = own || name != "" && e.kind == "brokers"
			case kmsg.ConfigSourceDynamicDefaultBrokerConfig:
				own = own || name == "" && e.kind == "brokers"
			}
			if own || f.all.given {
				var from []string
				for _, y := range s.synonyms {
					v := "null"
					if y.Value != nil {
						v = *y.Value
					}
					from = append(from, sourceNames[y.Source]+":"+y.Name+"="+v)
				}
				c.printf("  %s=%s sensitive=%t synonyms={%s}\n", s.name, s.text(), s.secret, strings.Join(from, ", "))
			}
		}
	}
	return nil
}
