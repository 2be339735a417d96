package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/wire"
)

// DescribeConfigs 0-4 (synonyms from 1, types and texts from 3), AlterConfigs 0-2,
// IncrementalAlterConfigs 0-1 (KIP-339), ListConfigResources 0-1 (KIP-1142).

func (b *Broker) describeConfigs(r *wire.Request, req *kmsg.DescribeConfigsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	img := b.o.Quorum.Image()
	seen := make(map[resource]bool)
	for i := range req.Resources {
		in := &req.Resources[i]
		if r := resourceOf(in); seen[r] {
			continue // answered: the same again would be a small request with an endless answer
		} else {
			seen[r] = true
		}
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		entries, code, message := b.configEntries(img, in)
		out.ErrorCode, out.ErrorMessage = int16(code), &message
		wanted := make(map[string]bool, len(in.ConfigNames))
		for _, n := range in.ConfigNames {
			wanted[n] = true
		}
		for _, e := range entries {
			if len(in.ConfigNames) == 0 || wanted[e.Name] { // no names, like null, asks for all
				out.Configs = append(out.Configs, configEntry(req, &e))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return respond(resp)
}

func (b *Broker) configEntries(img *metadata.Image, in *kmsg.DescribeConfigsRequestResource) ([]config.Entry, kafka.Error, string) {
	view := b.o.Config()
	switch in.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if why := metadata.CheckTopicName(in.ResourceName); why != "" {
			return nil, kafka.ErrInvalidTopicException, why
		}
		if _, ok := img.Topic(in.ResourceName); !ok {
			return nil, kafka.ErrUnknownTopicOrPartition, ""
		}
		return view.DescribeTopic(img.Config(metadata.TopicConfig, in.ResourceName)), kafka.NoError, ""
	case kmsg.ConfigResourceTypeBroker:
		if in.ResourceName == "" {
			return view.DescribeClusterDefault(), kafka.NoError, ""
		}
		id, err := strconv.ParseInt(in.ResourceName, 10, 32)
		if err != nil {
			return nil, kafka.ErrInvalidRequest, fmt.Sprintf("Broker id must be an integer, but it is: %s", in.ResourceName)
		}
		if kafka.BrokerID(id) != b.o.Self {
			return nil, kafka.ErrInvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d or empty string, but received %s", b.o.Self, in.ResourceName)
		}
		return view.DescribeBroker(), kafka.NoError, ""
	case kmsg.ConfigResourceTypeBrokerLogger:
		if in.ResourceName == "" {
			return nil, kafka.ErrInvalidRequest, "Broker id must not be empty"
		}
		if id, err := strconv.ParseInt(in.ResourceName, 10, 32); err != nil || kafka.BrokerID(id) != b.o.Self {
			return nil, kafka.ErrInvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d but received %s", b.o.Self, in.ResourceName)
		}
		// One logger, whose level is set at the start.
		return []config.Entry{{Name: "root", Value: b.logLevel(), Source: int8(kmsg.ConfigSourceDynamicBrokerLoggerConfig),
			Type: int8(kmsg.ConfigTypeString), ReadOnly: true, Doc: "Level of the broker's log; --log-level sets it at the start."}}, kafka.NoError, ""
	case kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceType(metadata.GroupConfig):
		if in.ResourceName == "" {
			return nil, kafka.ErrInvalidRequest, "The resource name must not be empty."
		}
		set := img.Config(metadata.ConfigKind(in.ResourceType), in.ResourceName)
		if in.ResourceType == kmsg.ConfigResourceTypeClientMetrics {
			return config.DescribeClientMetrics(set), kafka.NoError, ""
		}
		return view.DescribeGroup(set), kafka.NoError, ""
	}
	return nil, kafka.ErrInvalidRequest, fmt.Sprintf("Unsupported resource type: %d", in.ResourceType)
}

// logLevel is the log's level in Kafka's words.
func (b *Broker) logLevel() string {
	for _, l := range []struct {
		level slog.Level
		name  string
	}{{slog.LevelDebug, "DEBUG"}, {slog.LevelInfo, "INFO"}, {slog.LevelWarn, "WARN"}} {
		if b.o.Log.Enabled(context.Background(), l.level) {
			return l.name
		}
	}
	return "ERROR"
}

func configEntry(req *kmsg.DescribeConfigsRequest, e *config.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.ReadOnly, c.IsSensitive = e.Name, e.ReadOnly, e.Sensitive
	c.Source, c.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	c.IsDefault = c.Source == kmsg.ConfigSourceDefaultConfig
	if !e.Null && !e.Sensitive {
		c.Value = ptr(e.Value)
	}
	if req.IncludeDocumentation {
		c.Documentation = ptr(e.Doc)
	}
	if req.IncludeSynonyms {
		for _, s := range e.Synonyms {
			cs := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			cs.Name, cs.Source = s.Name, kmsg.ConfigSource(s.Source)
			if !s.Null && !e.Sensitive {
				cs.Value = ptr(s.Value)
			}
			c.ConfigSynonyms = append(c.ConfigSynonyms, cs)
		}
	}
	return c
}

func (b *Broker) alterConfigs(r *wire.Request, req *kmsg.AlterConfigsRequest) wire.Response {
	return forward(b, req, func(out *kmsg.AlterConfigsResponse, code kafka.Error) {
		for _, in := range req.Resources {
			rr := kmsg.NewAlterConfigsResponseResource()
			rr.ResourceType, rr.ResourceName, rr.ErrorCode = in.ResourceType, in.ResourceName, int16(code)
			out.Resources = append(out.Resources, rr)
		}
	})
}

func (b *Broker) incrementalAlterConfigs(r *wire.Request, req *kmsg.IncrementalAlterConfigsRequest) wire.Response {
	return forward(b, req, func(out *kmsg.IncrementalAlterConfigsResponse, code kafka.Error) {
		for _, in := range req.Resources {
			rr := kmsg.NewIncrementalAlterConfigsResponseResource()
			rr.ResourceType, rr.ResourceName, rr.ErrorCode = in.ResourceType, in.ResourceName, int16(code)
			out.Resources = append(out.Resources, rr)
		}
	})
}

func (b *Broker) listConfigResources(r *wire.Request, req *kmsg.ListConfigResourcesRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	img := b.o.Quorum.Image()
	kinds := map[int8]bool{}
	for _, k := range req.ResourceTypes {
		if !listable[k] {
			resp.ErrorCode = int16(kafka.ErrUnsupportedVersion)
			return respond(resp)
		}
		kinds[k] = true
	}
	if req.Version == 0 {
		kinds = map[int8]bool{int8(metadata.ClientMetricsConfig): true} // all that version 0 was for (KIP-714)
	} else if len(kinds) == 0 {
		kinds = listable
	}
	add := func(kind metadata.ConfigKind, name string) {
		c := kmsg.NewListConfigResourcesResponseConfigResource()
		c.Name, c.Type = name, int8(kind)
		resp.ConfigResources = append(resp.ConfigResources, c)
	}
	if kinds[int8(metadata.TopicConfig)] {
		img.EachTopic(func(t *metadata.Topic) bool { add(metadata.TopicConfig, t.Name); return true })
	}
	for _, br := range img.Brokers() {
		for _, k := range []metadata.ConfigKind{metadata.BrokerConfig, metadata.BrokerLoggerConfig} {
			if kinds[int8(k)] {
				add(k, strconv.Itoa(int(br.ID)))
			}
		}
	}
	img.EachConfig(func(k metadata.ConfigKey, _ map[string]string) {
		if (k.Kind == metadata.ClientMetricsConfig || k.Kind == metadata.GroupConfig) && kinds[int8(k.Kind)] {
			add(k.Kind, k.Name)
		}
	})
	return respond(resp)
}

// listable are the kinds of resource that can be listed.
var listable = map[int8]bool{
	int8(metadata.TopicConfig): true, int8(metadata.BrokerConfig): true, int8(metadata.BrokerLoggerConfig): true,
	int8(metadata.ClientMetricsConfig): true, int8(metadata.GroupConfig): true,
}
