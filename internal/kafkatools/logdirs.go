package kafkatools

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// logDirs is kafka-log-dirs.
func logDirs(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "The server(s) to use for bootstrapping", "REQUIRED: The brokers to start from.")
	config := o.value("command-config", "String", "Admin client property file", "A properties file for the client.")
	describe := o.flag("describe", "Show the log dirs of the brokers.")
	topics := o.value("topic-list", "String", "Topic list", "Only these topics, with commas between.").withDefault("")
	brokers := o.value("broker-list", "String", "Broker list", "Only these brokers, with commas between.")
	common(o)
	if err := o.parse(c.args); err != nil {
		return thrown(err)
	}
	if err := needs(c, o, "This tool helps to query log directory usage on the specified brokers.", server, describe); err != nil {
		return err
	}
	return thrownIf(func() error {
		servers, err := server.one()
		if err != nil {
			return err
		}
		file, err := config.one()
		if err != nil {
			return err
		}
		only, err := topics.one()
		if err != nil {
			return err
		}
		list, err := brokers.one()
		if err != nil {
			return err
		}
		k, err := c.admin(servers, file)
		if err != nil {
			return err
		}
		defer k.close()
		return k.printLogDirs(c, splitList(only), splitList(list))
	}())
}

// What kafka-log-dirs prints, in its order.
type (
	logDirsJSON struct {
		Brokers []logDirBroker `json:"brokers"`
		Version int            `json:"version"`
	}
	logDirBroker struct {
		Broker  int32        `json:"broker"`
		LogDirs []logDirJSON `json:"logDirs"`
	}
	logDirJSON struct {
		Partitions []logDirPartition `json:"partitions"`
		Error      *string           `json:"error"`
		LogDir     string            `json:"logDir"`
	}
	logDirPartition struct {
		Partition string `json:"partition"`
		Size      int64  `json:"size"`
		OffsetLag int64  `json:"offsetLag"`
		IsFuture  bool   `json:"isFuture"`
	}
)

func (k *cluster) printLogDirs(c *call, topics, list []string) error {
	md, err := k.metadata("describeCluster", []string{})
	if err != nil {
		return err
	}
	var all, ask, unknown []int32
	for _, b := range md.Brokers {
		all = append(all, b.NodeID)
	}
	slices.Sort(all)
	ask = all
	if len(list) > 0 {
		ask = nil
		for _, w := range list {
			n, err := strconv.ParseInt(w, 10, 32)
			if err != nil {
				return numberFormat(w)
			}
			if !slices.Contains(all, int32(n)) {
				unknown = append(unknown, int32(n))
			}
			ask = append(ask, int32(n))
		}
	}
	if len(unknown) > 0 {
		return &exit{code: 1, stderr: "ERROR: The given brokers do not exist from --broker-list: " + joined(unknown, ",") + ". Current existent brokers: " + joined(all, ",") + "\n"}
	}
	c.printf("Querying brokers for log directories information\n")
	out := logDirsJSON{Brokers: []logDirBroker{}, Version: 1}
	for _, id := range ask {
		resp, err := k.cl.Broker(int(id)).Request(k.ctx, kmsg.NewPtrDescribeLogDirsRequest())
		if err != nil {
			return java("describeLogDirs", err)
		}
		b := logDirBroker{Broker: id, LogDirs: []logDirJSON{}}
		for _, d := range resp.(*kmsg.DescribeLogDirsResponse).Dirs {
			dir := logDirJSON{Partitions: []logDirPartition{}, LogDir: d.Dir}
			if err := answered(d.ErrorCode, nil); err != nil {
				line := java("", err).line()
				dir.Error = &line
			}
			for _, t := range d.Topics {
				if len(topics) > 0 && !slices.Contains(topics, t.Topic) {
					continue
				}
				for _, p := range t.Partitions {
					dir.Partitions = append(dir.Partitions, logDirPartition{t.Topic + "-" + itoa(int64(p.Partition)), p.Size, p.OffsetLag, p.IsFuture})
				}
			}
			slices.SortFunc(dir.Partitions, func(a, b logDirPartition) int { return strings.Compare(a.Partition, b.Partition) })
			b.LogDirs = append(b.LogDirs, dir)
		}
		out.Brokers = append(out.Brokers, b)
	}
	c.printf("Received log directory information from brokers %s\n", joined(ask, ","))
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	c.printf("%s\n", text)
	return nil
}
