// segmentio/kafka-go as judge: kafkago BOOTSTRAP PREFIX, or, as a member of a
// group, kafkago BOOTSTRAP member GROUP TOPIC. It speaks by three ways, each
// with versions of its own: Writer, Reader over Conn, and Client.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/weirmq/weir/compat/clients/judge"
)

var (
	boot   string
	prefix string
	client *kafka.Client
)

func main() {
	boot = os.Args[1]
	if os.Args[2] == "member" {
		member(os.Args[3], os.Args[4])
		return
	}
	prefix = os.Args[2]
	client = &kafka.Client{Addr: kafka.TCP(boot), Timeout: 20 * time.Second}
	codecs()
	judge.Check("B038 nulls and headers", nulls)
	judge.Check("B011 base offset 0 in every batch", oneByOne)
	judge.Check("B065 a topic made by its first write", auto)
	judge.Check("Conn: write, read, seek", conn)
	judge.Check("commit and resume", resume)
	judge.Check("seek by time", byTime)
	topics()
	groups()
	judge.Done()
}

func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 30*time.Second)
}

func topic(name string, partitions int) (string, error) {
	name = prefix + "-" + name
	ctx, cancel := patience()
	defer cancel()
	got, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}}})
	if err == nil {
		err = got.Errors[name]
	}
	return name, err
}

func writer(topic string) *kafka.Writer {
	return &kafka.Writer{Addr: kafka.TCP(boot), Topic: topic, BatchTimeout: 5 * time.Millisecond, BatchSize: 20, RequiredAcks: kafka.RequireAll}
}

func produce(topic, prefix string, n int) error { return write(writer(topic), prefix, n) }

func write(w *kafka.Writer, prefix string, n int) error {
	var all []kafka.Message
	for i := range n {
		all = append(all, kafka.Message{Key: fmt.Append(nil, "k", i), Value: judge.Value(prefix, i)})
	}
	ctx, cancel := patience()
	defer cancel()
	return errors.Join(w.WriteMessages(ctx, all...), w.Close())
}

func read(topic string, partition, n int) ([]kafka.Message, error) {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{boot}, Topic: topic, Partition: partition, MaxWait: 200 * time.Millisecond})
	defer r.Close()
	ctx, cancel := patience()
	defer cancel()
	var out []kafka.Message
	for len(out) < n {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return out, fmt.Errorf("read %d of %d: %w", len(out), n, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func codecs() {
	for name, codec := range map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd} {
		to := prefix + "-" + name
		for acks, a := range map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll} {
			judge.Check("produce "+name+" acks="+acks, func() error {
				w := writer(to)
				w.Compression, w.RequiredAcks = codec, a
				return write(w, name+acks+"-", judge.PerRound)
			})
		}
		judge.Check("consume "+name, func() error {
			seen := map[string]bool{}
			err := judge.Until(20*time.Second, "all stored", func() (string, bool) { // acks=0 may be on its way
				n := int64(0)
				for p := range 2 {
					n += end(to, p)
				}
				return fmt.Sprint(n), n == 3*judge.PerRound
			})
			for p := range 2 {
				got, err2 := read(to, p, int(end(to, p)))
				err = errors.Join(err, err2)
				for _, m := range got {
					seen[string(m.Value)] = true
				}
			}
			if err == nil && len(seen) != 3*judge.PerRound {
				err = fmt.Errorf("%d different values", len(seen))
			}
			return err
		})
	}
}

func end(topic string, partition int) int64 {
	ctx, cancel := patience()
	defer cancel()
	got, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(partition)}}})
	if err != nil || len(got.Topics[topic]) != 1 || got.Topics[topic][0].Error != nil {
		return -1
	}
	return got.Topics[topic][0].LastOffset
}

func nulls() error {
	to := prefix + "-nulls"
	w := writer(to)
	ctx, cancel := patience()
	defer cancel()
	for _, kv := range judge.Nulls() {
		if err := w.WriteMessages(ctx, kafka.Message{Key: kv[0], Value: kv[1],
			Headers: []kafka.Header{{Key: "h"}, {Key: "h", Value: []byte{}}, {Key: "h", Value: []byte("x")}}}); err != nil {
			return err
		}
	}
	got, err := read(to, 0, 9)
	if err != nil {
		return err
	}
	for i, kv := range judge.Nulls() {
		// The Reader itself gives empty slices for null (its readBytes), so only the contents can be compared.
		if m := got[i]; string(m.Key) != string(kv[0]) || string(m.Value) != string(kv[1]) || len(m.Headers) != 3 || string(m.Headers[2].Value) != "x" {
			err = errors.Join(err, fmt.Errorf("record %d: %q %q %v", i, m.Key, m.Value, m.Headers))
		}
	}
	return errors.Join(err, w.Close())
}

func oneByOne() error {
	to, err := topic("one", 1)
	if err != nil {
		return err
	}
	w := writer(to)
	defer w.Close()
	ctx, cancel := patience()
	defer cancel()
	for i := range 3 {
		if err := w.WriteMessages(ctx, kafka.Message{Value: fmt.Append(nil, i)}); err != nil {
			return err
		}
	}
	got, err := read(to, 0, 3)
	for i, m := range got {
		if m.Offset != int64(i) || string(m.Value) != fmt.Sprint(i) {
			return fmt.Errorf("record %d: offset %d, %q", i, m.Offset, m.Value)
		}
	}
	return err
}

func auto() error {
	to := prefix + "-auto"
	w := writer(to)
	w.AllowAutoTopicCreation = true
	err := write(w, "auto", 10)
	if os.Getenv("WEIR_COMPAT") == "kafka" && errors.Is(err, kafka.UnknownTopicOrPartition) {
		return nil // Kafka answers so while the topic is being made, and kafka-go does not try again
	}
	if err != nil {
		return err
	}
	if n := end(to, 0); n != 10 {
		return fmt.Errorf("%d records", n)
	}
	return nil
}

// conn goes the oldest way, with a connection to the leader of a partition.
func conn() error {
	to, err := topic("conn", 1)
	if err != nil {
		return err
	}
	ctx, cancel := patience()
	defer cancel()
	c, err := kafka.DialLeader(ctx, "tcp", boot, to, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	for _, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Zstd} {
		var all []kafka.Message
		for i := range 10 {
			all = append(all, kafka.Message{Key: []byte("k"), Value: judge.Value(fmt.Sprint("c", codec, "-"), i)})
		}
		if codec == 0 {
			_, err = c.WriteMessages(all...)
		} else {
			_, err = c.WriteCompressedMessages(codec.Codec(), all...)
		}
		if err != nil {
			return fmt.Errorf("write, codec %v: %w", codec, err)
		}
	}
	first, last, err := c.ReadOffsets()
	if err != nil || first != 0 || last != 30 {
		return fmt.Errorf("ReadOffsets: %d %d %w", first, last, err)
	}
	if _, err := c.Seek(12, kafka.SeekAbsolute); err != nil { // in the middle of a gzip batch
		return err
	}
	batch := c.ReadBatch(1, 1<<20)
	m, err := batch.ReadMessage()
	if err != nil || m.Offset != 12 || !strings.HasPrefix(string(m.Value), "c1-2-") && !strings.HasPrefix(string(m.Value), "cgzip-2-") {
		return fmt.Errorf("after Seek(12): offset %d, %.20q, %w", m.Offset, m.Value, err)
	}
	if err := batch.Close(); err != nil {
		return err
	}
	if _, err := c.ReadPartitions(to); err != nil {
		return fmt.Errorf("ReadPartitions: %w", err)
	}
	if _, err := c.Controller(); err != nil {
		return fmt.Errorf("Controller: %w", err)
	}
	if _, err := c.ApiVersions(); err != nil {
		return fmt.Errorf("ApiVersions: %w", err)
	}
	return c.DeleteTopics(to)
}

func byTime() error {
	to, err := topic("time", 1)
	if err != nil {
		return err
	}
	base := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	w := writer(to)
	w.Compression, w.BatchSize = kafka.Lz4, 50
	var all []kafka.Message
	for i := range 50 {
		all = append(all, kafka.Message{Value: fmt.Append(nil, "at ", i), Time: base.Add(time.Duration(i) * time.Second)})
	}
	ctx, cancel := patience()
	defer cancel()
	if err := errors.Join(w.WriteMessages(ctx, all...), w.Close()); err != nil {
		return err
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{boot}, Topic: to})
	defer r.Close()
	if err := r.SetOffsetAt(ctx, base.Add(30500*time.Millisecond)); err != nil {
		return err
	}
	m, err := r.ReadMessage(ctx)
	if err != nil || string(m.Value) != "at 31" || m.Time.UnixMilli() != base.UnixMilli()+31_000 {
		return fmt.Errorf("after the time of 30.5: %q of %v, %w", m.Value, m.Time, err)
	}
	if lag, err := r.ReadLag(ctx); err != nil || lag != 18 {
		return fmt.Errorf("lag %d, %w", lag, err)
	}
	return nil
}

func group(id, topic string) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{Brokers: []string{boot}, GroupID: id, GroupTopics: []string{topic}, StartOffset: kafka.FirstOffset, MaxWait: 200 * time.Millisecond,
		SessionTimeout: 6 * time.Second, HeartbeatInterval: 500 * time.Millisecond, RebalanceTimeout: 10 * time.Second})
}

func member(id, topic string) {
	r := group(id, topic)
	ctx := judge.Signalled()
	for {
		m, err := r.FetchMessage(ctx)
		if ctx.Err() != nil {
			break
		}
		judge.Must(err)
		fmt.Println(string(m.Value))
		if err := r.CommitMessages(context.Background(), m); err != nil {
			fmt.Fprintln(os.Stderr, "commit:", err) // the generation is over: somebody else reads it again
		}
	}
	judge.Must(r.Close())
}

func resume() error {
	to, err := topic("resume", 1)
	if err != nil {
		return err
	}
	if err := produce(to, "r", 100); err != nil {
		return err
	}
	id, next := prefix+"-resume", int64(0)
	ctx, cancel := patience()
	defer cancel()
	for range 4 {
		r := group(id, to)
		for range 25 {
			m, err := r.FetchMessage(ctx)
			if err != nil || m.Offset != next {
				return fmt.Errorf("offset %d, want %d: %w", m.Offset, next, err)
			}
			next++
			if next%25 == 0 {
				if err := r.CommitMessages(ctx, m); err != nil {
					return err
				}
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	got, err := client.ConsumerOffsets(ctx, kafka.TopicAndGroup{Topic: to, GroupId: id})
	if err != nil || got[0] != 100 {
		return fmt.Errorf("committed %v, %w", got, err)
	}
	return nil
}
