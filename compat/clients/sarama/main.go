// Sarama as judge: sarama VERSION BOOTSTRAP PREFIX, or, as a member of a group,
// sarama VERSION BOOTSTRAP member GROUP TOPIC. VERSION is what users pin a
// client to (B022): 2.1.0, 2.8.0, 3.6.0, 4.0.0, or max.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/weirmq/weir/compat/clients/judge"
)

var (
	boot    []string
	version sarama.KafkaVersion
	prefix  string
)

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = version
	c.ClientID = "judge"
	c.Producer.Return.Successes = true
	c.Producer.Flush.Frequency = 5 * time.Millisecond
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	c.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	return c
}

func main() {
	if os.Args[1] == "max" {
		version = sarama.MaxVersion
	} else {
		v, err := sarama.ParseKafkaVersion(os.Args[1])
		judge.Must(err)
		version = v
	}
	boot = []string{os.Args[2]}
	if os.Args[3] == "member" {
		member(os.Args[4], os.Args[5])
		return
	}
	prefix = os.Args[3]
	client, err := sarama.NewClient(boot, config())
	judge.Must(err)
	admin, err := sarama.NewClusterAdminFromClient(client)
	judge.Must(err)
	defer admin.Close()
	codecs()
	judge.Check("B038 nulls and headers", nulls)
	judge.Check("B011 base offset 0 in every batch", func() error { return oneByOne(admin) })
	judge.Check("commit and resume", func() error { return resume(admin) })
	judge.Check("seek by time", func() error { return byTime(client, admin) })
	topics(client, admin)
	groups(admin)
	judge.Done()
}

func topic(admin sarama.ClusterAdmin, name string, partitions int32) (string, error) {
	name = prefix + "-" + name
	return name, admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

func produce(topic, prefix string, n int, change func(*sarama.Config)) error {
	c := config()
	if change != nil {
		change(c)
	}
	p, err := sarama.NewSyncProducer(boot, c)
	if err != nil {
		return err
	}
	var all []*sarama.ProducerMessage
	for i := range n {
		all = append(all, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("k", i)), Value: sarama.ByteEncoder(judge.Value(prefix, i))})
	}
	return errors.Join(p.SendMessages(all), p.Close())
}

// read reads n records of every partition together, from the start.
func read(topic string, partitions int32, n int) ([]*sarama.ConsumerMessage, error) {
	c, err := sarama.NewConsumer(boot, config())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := make(chan *sarama.ConsumerMessage)
	stop := make(chan struct{})
	defer close(stop)
	for p := range partitions {
		pc, err := c.ConsumePartition(topic, p, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		defer pc.Close()
		go func() {
			for m := range pc.Messages() {
				select {
				case in <- m:
				case <-stop:
					return
				}
			}
		}()
	}
	var out []*sarama.ConsumerMessage
	patience := time.After(30 * time.Second)
	for len(out) < n {
		select {
		case m := <-in:
			out = append(out, m)
		case <-patience:
			return out, fmt.Errorf("read %d of %d", len(out), n)
		}
	}
	return out, nil
}

func codecs() {
	for _, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD} {
		name := codec.String()
		to := prefix + "-" + name
		n := 0
		for acks, a := range map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll} {
			judge.Check("produce "+name+" acks="+acks, func() error {
				n += judge.PerRound
				return produce(to, name+acks+"-", judge.PerRound, func(c *sarama.Config) {
					c.Producer.Compression, c.Producer.RequiredAcks = codec, a
				})
			})
		}
		judge.Check("produce "+name+" idempotent", func() error {
			n += judge.PerRound
			return produce(to, name+"idem-", judge.PerRound, func(c *sarama.Config) {
				c.Producer.Compression, c.Producer.RequiredAcks = codec, sarama.WaitForAll
				c.Producer.Idempotent, c.Net.MaxOpenRequests = true, 1
			})
		})
		judge.Check("consume "+name, func() error {
			got, err := read(to, 2, n)
			seen := map[string]bool{}
			for _, m := range got {
				seen[string(m.Value)] = true
			}
			if err == nil && len(seen) != n {
				err = fmt.Errorf("%d different values of %d", len(seen), n)
			}
			return err
		})
	}
}

// bytes is an Encoder that can be null and can be empty.
func bytes(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func nulls() error {
	to := prefix + "-nulls"
	p, err := sarama.NewSyncProducer(boot, config())
	if err != nil {
		return err
	}
	defer p.Close()
	for _, kv := range judge.Nulls() {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: to, Key: bytes(kv[0]), Value: bytes(kv[1]),
			Headers: []sarama.RecordHeader{{Key: []byte("h")}, {Key: []byte("h"), Value: []byte{}}, {Key: []byte("h"), Value: []byte("x")}}})
		if err != nil {
			return err
		}
	}
	got, err := read(to, 1, 9)
	if err != nil {
		return err
	}
	for i, kv := range judge.Nulls() {
		m := got[i]
		if !judge.Same(m.Key, kv[0]) || !judge.Same(m.Value, kv[1]) || len(m.Headers) != 3 {
			err = errors.Join(err, fmt.Errorf("record %d: %q %q %d headers, want %q %q", i, m.Key, m.Value, len(m.Headers), kv[0], kv[1]))
			continue
		}
		for j, want := range [][]byte{nil, {}, []byte("x")} {
			if h := m.Headers[j]; string(h.Key) != "h" || !judge.Same(h.Value, want) {
				err = errors.Join(err, fmt.Errorf("record %d header %d: %q %#v", i, j, h.Key, h.Value))
			}
		}
	}
	return err
}

func oneByOne(admin sarama.ClusterAdmin) error {
	to, err := topic(admin, "one", 1)
	if err != nil {
		return err
	}
	p, err := sarama.NewSyncProducer(boot, config())
	if err != nil {
		return err
	}
	defer p.Close()
	for i := range 3 {
		if _, at, err := p.SendMessage(&sarama.ProducerMessage{Topic: to, Value: sarama.StringEncoder(fmt.Sprint(i))}); err != nil || at != int64(i) {
			return fmt.Errorf("record %d went to %d: %w", i, at, err)
		}
	}
	got, err := read(to, 1, 3)
	for i, m := range got {
		if m.Offset != int64(i) || string(m.Value) != fmt.Sprint(i) {
			return fmt.Errorf("record %d: offset %d, %q", i, m.Offset, m.Value)
		}
	}
	return err
}

func byTime(client sarama.Client, admin sarama.ClusterAdmin) error {
	to, err := topic(admin, "time", 1)
	if err != nil {
		return err
	}
	base := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	c := config()
	c.Producer.Compression = sarama.CompressionLZ4
	p, err := sarama.NewSyncProducer(boot, c)
	if err != nil {
		return err
	}
	defer p.Close()
	var all []*sarama.ProducerMessage
	for i := range 50 {
		all = append(all, &sarama.ProducerMessage{Topic: to, Value: sarama.StringEncoder(fmt.Sprint("at ", i)), Timestamp: base.Add(time.Duration(i) * time.Second)})
	}
	if err := p.SendMessages(all); err != nil {
		return err
	}
	for want, ms := range map[int64]int64{31: 30_500, 10: 10_000, -1: 999_999} {
		if at, err := client.GetOffset(to, 0, base.UnixMilli()+ms); err != nil || at != want {
			return fmt.Errorf("offset of the time of %d ms: %d, want %d: %w", ms, at, want, err)
		}
	}
	oldest, err := client.GetOffset(to, 0, sarama.OffsetOldest)
	newest, err2 := client.GetOffset(to, 0, sarama.OffsetNewest)
	if oldest != 0 || newest != 50 {
		return fmt.Errorf("oldest %d, newest %d: %w", oldest, newest, errors.Join(err, err2))
	}
	got, err := read(to, 1, 50)
	if err == nil && got[31].Timestamp.UnixMilli() != base.UnixMilli()+31_000 {
		err = fmt.Errorf("record 31 is of %v", got[31].Timestamp)
	}
	return err
}

// handler hands what a group member reads to each, which says when to stop.
type handler struct {
	each func(*sarama.ConsumerMessage) bool
	stop context.CancelFunc
}

func (h *handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h *handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h *handler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, open := <-c.Messages():
			if !open {
				return nil
			}
			s.MarkMessage(m, "m")
			if h.each(m) {
				h.stop()
				return nil
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func consume(ctx context.Context, group, topic string, each func(*sarama.ConsumerMessage) bool) error {
	g, err := sarama.NewConsumerGroup(boot, group, config())
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for ctx.Err() == nil {
		if err = g.Consume(ctx, []string{topic}, &handler{each, stop}); err != nil {
			break
		}
	}
	return errors.Join(err, g.Close())
}

func member(group, topic string) {
	judge.Must(consume(judge.Signalled(), group, topic, func(m *sarama.ConsumerMessage) bool {
		fmt.Println(string(m.Value))
		return false
	}))
}

func resume(admin sarama.ClusterAdmin) error {
	to, err := topic(admin, "resume", 1)
	if err != nil {
		return err
	}
	group := prefix + "-resume"
	if err := produce(to, "r", 100, nil); err != nil {
		return err
	}
	next := int64(0)
	for range 4 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		var wrong error
		err := consume(ctx, group, to, func(m *sarama.ConsumerMessage) bool {
			if m.Offset != next {
				wrong = fmt.Errorf("offset %d, want %d", m.Offset, next)
			}
			next++
			return next%25 == 0
		})
		cancel()
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
	}
	offsets, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{to: {0}})
	if err != nil {
		return err
	}
	if b := offsets.GetBlock(to, 0); b == nil || b.Offset != 100 || b.Metadata != "m" {
		return fmt.Errorf("committed %+v", b)
	}
	return nil
}
