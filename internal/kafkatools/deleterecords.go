package kafkatools

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// needs answers --help, --version and a command line that lacks what the tool needs.
func needs(c *call, o *options, about string, need ...*option) error {
	if err := helpOrVersion(c, o, about); err != nil {
		return err
	}
	if m := missing(need...); m != "" {
		return usage(o, m)
	}
	return nil
}

// deleteRecords is kafka-delete-records.
func deleteRecords(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "server(s) to use for bootstrapping", "REQUIRED: The brokers to start from.")
	path := o.value("offset-json-file", "String", "Offset json file path", `REQUIRED: What to delete: {"partitions":[{"topic":"t","partition":0,"offset":1}],"version":1}.`)
	config := o.value("command-config", "String", "command config property file path", "A properties file for the client.")
	common(o)
	if err := o.parse(c.args); err != nil {
		return thrown(err)
	}
	if err := needs(c, o, "This tool helps to delete records of the given partitions down to the specified offset.", server, path); err != nil {
		return err
	}
	return thrownIf(func() error {
		servers, err := server.one()
		if err != nil {
			return err
		}
		name, err := path.one()
		if err != nil {
			return err
		}
		file, err := config.one()
		if err != nil {
			return err
		}
		body, err := os.ReadFile(name)
		if err != nil {
			e := java("", noSuchFile(name, err))
			return &javaError{class: "java.io.IOException", message: "Unable to read file " + name, cause: e}
		}
		wanted, err := offsetFile(body)
		if err != nil {
			return err
		}
		k, err := c.admin(servers, file)
		if err != nil {
			return err
		}
		defer k.close()
		return k.deleteBefore(c, wanted)
	}())
}

type partitionOffset struct {
	tp topicPartition
	at int64
}

// offsetFile reads --offset-json-file.
func offsetFile(body []byte) ([]partitionOffset, error) {
	operation := func(m string) error {
		return &javaError{class: "org.apache.kafka.tools.AdminOperationException", message: m}
	}
	var doc struct {
		Version    *int
		Partitions *[]struct {
			Topic     *string
			Partition *int32
			Offset    *int64
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, operation("The input string is not a valid JSON")
	}
	if doc.Version != nil && *doc.Version != 1 {
		return nil, operation("Not supported version field value " + itoa(int64(*doc.Version)))
	}
	if doc.Partitions == nil {
		return nil, operation("Missing partitions field")
	}
	var out []partitionOffset
	var twice []string
	for _, p := range *doc.Partitions {
		if p.Topic == nil || p.Partition == nil || p.Offset == nil {
			return nil, operation("The input string is not a valid JSON")
		}
		tp := topicPartition{*p.Topic, *p.Partition}
		if slices.ContainsFunc(out, func(o partitionOffset) bool { return o.tp == tp }) {
			twice = append(twice, tp.String())
		}
		out = append(out, partitionOffset{tp, *p.Offset})
	}
	if len(twice) > 0 {
		return nil, &javaError{class: "org.apache.kafka.tools.AdminCommandFailedException",
			message: "Offset json file contains duplicate topic partitions: " + strings.Join(twice, ",")}
	}
	return out, nil
}

func (k *cluster) deleteBefore(c *call, wanted []partitionOffset) error {
	c.printf("Executing records delete operation\n")
	byTopic := map[string][]kmsg.DeleteRecordsRequestTopicPartition{}
	for _, w := range wanted {
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = w.tp.partition, w.at
		byTopic[w.tp.topic] = append(byTopic[w.tp.topic], p)
	}
	// A topic that is not there would be looked for until the client gives up.
	md, err := k.metadata("deleteRecords(api=METADATA)", sortedNames(byTopic))
	if err != nil {
		return err
	}
	done := map[topicPartition]string{}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 30000
	for _, t := range md.Topics {
		rt := kmsg.NewDeleteRecordsRequestTopic()
		rt.Topic = *t.Topic
		for _, p := range byTopic[rt.Topic] {
			there := slices.ContainsFunc(t.Partitions, func(x kmsg.MetadataResponseTopicPartition) bool { return x.Partition == p.Partition })
			if err := answered(t.ErrorCode, nil); err != nil {
				done[topicPartition{rt.Topic, p.Partition}] = "error: " + java("", err).line()
			} else if !there {
				done[topicPartition{rt.Topic, p.Partition}] = "error: " + java("", answered(codeUnknownTopic, nil)).line()
			} else {
				rt.Partitions = append(rt.Partitions, p)
			}
		}
		if len(rt.Partitions) > 0 {
			req.Topics = append(req.Topics, rt)
		}
	}
	if len(req.Topics) > 0 {
		for _, shard := range k.cl.RequestSharded(k.ctx, req) {
			if shard.Err != nil {
				return java("deleteRecords(api=DELETE_RECORDS)", shard.Err)
			}
			for _, t := range shard.Resp.(*kmsg.DeleteRecordsResponse).Topics {
				for _, p := range t.Partitions {
					tp := topicPartition{t.Topic, p.Partition}
					if err := answered(p.ErrorCode, nil); err != nil {
						done[tp] = "error: " + java("", err).line()
					} else {
						done[tp] = "low_watermark: " + itoa(p.LowWatermark)
					}
				}
			}
		}
	}
	c.printf("Records delete operation completed:\n")
	for _, w := range wanted {
		c.printf("partition: %s\t%s\n", w.tp, done[w.tp])
	}
	return nil
}
