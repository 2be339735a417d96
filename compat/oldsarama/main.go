// Sarama 1.19 (2018) as judge: oldsarama VERSION BOOTSTRAP TOPIC WANT. VERSION is
// what the client is told the brokers are, and so which protocol it speaks: 0.8.2.0
// (its default of that time, message format 0), 0.10.0.0 (format 1), 0.11.0.0 and
// 1.0.0 (batches). TOPIC has one partition and WANT records, whose values begin
// with "today-". One line for each thing shown: ok or FAIL NAME | WHY; then done.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Shopify/sarama"
)

var (
	version sarama.KafkaVersion
	boot    []string
)

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = version
	c.Producer.Return.Successes = true
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	c.Metadata.Retry.Max = 20
	return c
}

func check(name string, f func() error) {
	if err := f(); err != nil {
		fmt.Printf("FAIL %s | %v\n", name, err)
		return
	}
	fmt.Println("ok", name)
}

func main() {
	version = must(sarama.ParseKafkaVersion(os.Args[1]))
	boot = []string{os.Args[2]}
	topic, want := os.Args[3], must(strconv.Atoi(os.Args[4]))
	client := must(sarama.NewClient(boot, config()))

	check("read what today's client wrote", func() error { return read(topic, 0, want, "today-") })
	check("read from the middle of a batch", func() error { return read(topic, int64(want)-7, 7, "today-") })
	codecs := map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy}
	if version.IsAtLeast(sarama.V0_10_0_0) {
		codecs["lz4"] = sarama.CompressionLZ4
	}
	end := int64(want)
	for name, codec := range codecs {
		check("write and read "+name, func() error {
			prefix := "sarama-" + name + "-"
			if err := write(topic, prefix, 50, codec); err != nil {
				return err
			}
			end += 50
			return read(topic, end-50, 50, prefix)
		})
	}
	check("offsets", func() error {
		for at, want := range map[int64]int64{sarama.OffsetNewest: end, sarama.OffsetOldest: 0, time.Now().Add(-time.Hour).UnixMilli(): 0} {
			if got, err := client.GetOffset(topic, 0, at); err != nil || got != want {
				return fmt.Errorf("at %d: %d, %v, want %d", at, got, err, want)
			}
		}
		return nil
	})
	check("commit and fetch", func() error { return commit(client, topic) })
	if version.IsAtLeast(sarama.V0_10_2_0) {
		check("topics", topics)
	}
	fmt.Println("done")
}

// read expects n records from offset from on, in order, with values of that prefix.
func read(topic string, from int64, n int, prefix string) error {
	c, err := sarama.NewConsumer(boot, config())
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.ConsumePartition(topic, 0, from)
	if err != nil {
		return err
	}
	defer p.Close()
	late := time.After(20 * time.Second)
	for i := range n {
		select {
		case m := <-p.Messages():
			if m.Offset != from+int64(i) || !strings.HasPrefix(string(m.Value), prefix) || string(m.Key) != string(m.Value) {
				return fmt.Errorf("record %d is %q=%q at %d, want %s... at %d", i, m.Key, m.Value, m.Offset, prefix, from+int64(i))
			}
			if has := !m.Timestamp.IsZero() && time.Since(m.Timestamp) < time.Hour; has != version.IsAtLeast(sarama.V0_10_0_0) {
				return fmt.Errorf("record %d has the time %v", i, m.Timestamp)
			}
		case err := <-p.Errors():
			return err
		case <-late:
			return fmt.Errorf("%d of %d records after 20 s", i, n)
		}
	}
	return nil
}

func write(topic, prefix string, n int, codec sarama.CompressionCodec) error {
	c := config()
	c.Producer.Compression = codec
	p, err := sarama.NewSyncProducer(boot, c)
	if err != nil {
		return err
	}
	defer p.Close()
	var all []*sarama.ProducerMessage
	for i := range n {
		v := sarama.StringEncoder(prefix + strconv.Itoa(i))
		all = append(all, &sarama.ProducerMessage{Topic: topic, Key: v, Value: v})
	}
	return p.SendMessages(all)
}

func commit(client sarama.Client, topic string) error {
	group := "old-" + topic + "-" + version.String()
	for _, want := range []int64{-1, 17} {
		om, err := sarama.NewOffsetManagerFromClient(group, client)
		if err != nil {
			return err
		}
		p, err := om.ManagePartition(topic, 0)
		if err != nil {
			return err
		}
		got, _ := p.NextOffset()
		if want < 0 {
			want = sarama.OffsetOldest // what Initial says
		}
		if got != want {
			return fmt.Errorf("next offset %d, want %d", got, want)
		}
		p.MarkOffset(17, "note")
		if err := errors.Join(p.Close(), om.Close()); err != nil {
			return err
		}
	}
	return nil
}

func topics() error {
	a, err := sarama.NewClusterAdmin(boot, config())
	if err != nil {
		return err
	}
	defer a.Close()
	name := fmt.Sprintf("old-sarama-%d", time.Now().UnixNano())
	if err := a.CreateTopic(name, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false); err != nil {
		return err
	}
	if err := a.CreatePartitions(name, 3, nil, false); err != nil && version.IsAtLeast(sarama.V1_0_0_0) {
		return err
	}
	return a.DeleteTopic(name)
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return v
}
