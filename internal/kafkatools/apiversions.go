package kafkatools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// apiVersions is kafka-broker-api-versions.
func apiVersions(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "server(s) to use for bootstrapping", "REQUIRED: The brokers to start from.")
	config := o.value("command-config", "String", "command config property file", "A properties file for the client.")
	common(o)
	if err := o.parse(c.args); err != nil {
		e := java("", err)
		return &exit{code: 1, stderr: e.message + "\n" + e.line() + "\n\n"}
	}
	if err := helpOrVersion(c, o, "This tool helps to retrieve broker version information."); err != nil {
		return err
	}
	if m := missing(server); m != "" {
		return usage(o, m)
	}
	servers, err := server.one()
	if err != nil {
		return thrown(err)
	}
	file, err := config.one()
	if err != nil {
		return thrown(err)
	}
	k, err := c.admin(servers, file)
	if err != nil {
		return thrown(err)
	}
	defer k.close()
	md, err := k.metadata("describeCluster", []string{})
	if err != nil {
		return thrown(err)
	}
	slices.SortFunc(md.Brokers, func(a, b kmsg.MetadataResponseBroker) int { return int(a.NodeID - b.NodeID) })
	for _, b := range md.Brokers {
		rack := "null"
		if b.Rack != nil {
			rack = *b.Rack
		}
		head := fmt.Sprintf("%s:%d (id: %d rack: %s isFenced: false)", b.Host, b.Port, b.NodeID, rack)
		resp, err := k.cl.Broker(int(b.NodeID)).Request(k.ctx, versionsRequest())
		if err != nil {
			c.printf("%s -> ERROR: %s\n", head, java("apiVersions", err).line())
			continue
		}
		c.printf("%s -> %s\n", head, versionTable(resp.(*kmsg.ApiVersionsResponse)))
	}
	return nil
}

// versionTable is what a broker offers, and of what this tool knows how much can be used.
func versionTable(resp *kmsg.ApiVersionsResponse) string {
	offered := map[int16]kmsg.ApiVersionsResponseApiKey{}
	last := int16(kmsg.MaxKey)
	for _, a := range resp.ApiKeys {
		offered[a.ApiKey] = a
		last = max(last, a.ApiKey)
	}
	var lines []string
	for key := int16(0); key <= last; key++ {
		name := javaName(kmsg.NameForKey(key))
		known := name != "Unknown"
		a, has := offered[key]
		switch {
		case !known && !has, known && !has && !clientAPI(key):
		case !known:
			lines = append(lines, fmt.Sprintf("UNKNOWN(%d): %s", key, versionRange(a.MinVersion, a.MaxVersion)))
		case !has:
			lines = append(lines, fmt.Sprintf("%s(%d): UNSUPPORTED", name, key))
		default:
			usable := min(a.MaxVersion, kmsg.RequestForKey(key).MaxVersion())
			use := fmt.Sprint(usable)
			if usable < a.MinVersion {
				use = "node too new"
			}
			lines = append(lines, fmt.Sprintf("%s(%d): %s [usable: %s]", name, key, versionRange(a.MinVersion, a.MaxVersion), use))
		}
	}
	return "(\n\t" + strings.Join(lines, ",\n\t") + "\n)"
}

func versionRange(a, b int16) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d to %d", a, b)
}

// clientAPI says that Kafka's tool lists a request although the broker lacks it:
// those that brokers answer, not those that controllers or brokers speak of themselves.
func clientAPI(key int16) bool {
	switch key {
	case 4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82:
		return false
	}
	return true
}

// javaName is a request's name as Kafka writes it.
func javaName(name string) string {
	if name == "AlterPartitionAssignments" {
		return "AlterPartitionReassignments"
	}
	return strings.NewReplacer("SASL", "Sasl", "ACLs", "Acls", "SCRAM", "Scram", "ProducerID", "ProducerId").Replace(name)
}

func versionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "weir", "1"
	return req
}
