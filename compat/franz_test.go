//go:build compat

package compat

// Shows: franz-go at its newest versions, which go beyond librdkafka's: every
// codec and acks, groups whose members join, leave and die, commit and resume,
// seek by time, the admin calls of kadm, deletes.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func franz(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(sharedBroker(t).addr), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RequestRetries(20), kgo.RetryTimeout(20 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func franzTopic(t *testing.T, adm *kadm.Client, partitions int32, configs map[string]*string) string {
	t.Helper()
	name := unique(t)
	got, err := adm.CreateTopic(t.Context(), partitions, 1, configs, name)
	if err != nil || got.Err != nil {
		t.Fatalf("create %s: %v %v", name, err, got.Err)
	}
	eventually(t, 10*time.Second, "leaders", func() (string, bool) {
		ends, err := adm.ListEndOffsets(t.Context(), name)
		if err == nil {
			err = ends.Error()
		}
		return fmt.Sprint(err), err == nil && len(ends[name]) == int(partitions)
	})
	return name
}

func franzProduce(t *testing.T, topic string, n int, prefix string, opts ...kgo.Opt) {
	t.Helper()
	cl := franz(t, append(opts, kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(5*time.Millisecond))...)
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, prefix, i, "-", strings.Repeat("text ", 20))})
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
	cl.Close()
}

func TestFranz(t *testing.T) {
	adm := kadm.NewClient(franz(t))
	for _, c := range []struct {
		name string
		run  func(t *testing.T, adm *kadm.Client)
	}{
		{"codecs and acks", franzCodecs},
		{"commit and resume", franzResume},
		{"seek by time", franzTime},
		{"group of changing members", franzGroup},
		{"admin", franzAdmin},
		{"fetch sessions over many topics", franzWide},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, adm) })
	}
}

func franzCodecs(t *testing.T, adm *kadm.Client) {
	topic := franzTopic(t, adm, 3, nil)
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	want := 0
	for name, codec := range codecs {
		for acks, a := range map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()} {
			opts := []kgo.Opt{kgo.ProducerBatchCompression(codec), kgo.RequiredAcks(a)}
			if acks != "all" {
				opts = append(opts, kgo.DisableIdempotentWrite())
			}
			franzProduce(t, topic, 200, name+acks+"-", opts...)
			want += 200
		}
	}
	cl := franz(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	seen := map[string]bool{}
	deadline := time.Now().Add(30 * time.Second)
	for len(seen) < want && time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		fs := cl.PollFetches(ctx)
		cancel()
		fs.EachRecord(func(r *kgo.Record) {
			if seen[string(r.Value)] {
				t.Errorf("%.20s came twice", r.Value)
			}
			seen[string(r.Value)] = true
		})
	}
	if len(seen) != want {
		t.Errorf("read %d of %d", len(seen), want)
	}
}

func franzResume(t *testing.T, adm *kadm.Client) {
	topic, group := franzTopic(t, adm, 1, nil), unique(t)
	franzProduce(t, topic, 100, "r")
	next := int64(0)
	for range 5 {
		cl := franz(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		for got := 0; got < 20; {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			fs := cl.PollRecords(ctx, 20-got)
			cancel()
			if err := fs.Err(); err != nil {
				t.Fatal(err)
			}
			fs.EachRecord(func(r *kgo.Record) {
				if r.Offset != next {
					t.Errorf("offset %d, want %d", r.Offset, next)
				}
				next++
				got++
			})
		}
		if err := cl.CommitUncommittedOffsets(t.Context()); err != nil {
			t.Fatal(err)
		}
		cl.Close()
	}
	got, err := adm.FetchOffsets(t.Context(), group)
	if o, ok := got.Lookup(topic, 0); err != nil || !ok || o.At != 100 {
		t.Errorf("committed %+v, %v; want 100", o, err)
	}
}

func franzTime(t *testing.T, adm *kadm.Client) {
	topic := franzTopic(t, adm, 1, nil)
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	cl := franz(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.GzipCompression()))
	for i := range 50 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Append(nil, "at ", i), Timestamp: base.Add(time.Duration(i) * time.Second)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	after := franz(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AfterMilli(base.Add(30500 * time.Millisecond).UnixMilli())}}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	records := after.PollFetches(ctx).Records()
	if len(records) == 0 || string(records[0].Value) != "at 31" {
		t.Errorf("after the time of 30.5: %d records, first %v", len(records), records)
	}
	at, err := adm.ListOffsetsAfterMilli(t.Context(), base.Add(10*time.Second).UnixMilli(), topic)
	if o, ok := at.Lookup(topic, 0); err != nil || !ok || o.Offset != 10 {
		t.Errorf("offset of the time of 10: %+v, %v", o, err)
	}
}

// cutter dials for a client until it is cut; then the client is as good as
// dead.
type cutter struct {
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.dead {
		conn.Close()
		return nil, errors.New("cut")
	}
	c.conns = append(c.conns, conn)
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for _, conn := range c.conns {
		if conn != nil {
			conn.Close()
		}
	}
}

func franzGroup(t *testing.T, adm *kadm.Client) {
	for name, balancer := range map[string]kgo.GroupBalancer{"cooperative-sticky": kgo.CooperativeStickyBalancer(), "range": kgo.RangeBalancer()} {
		t.Run(name, func(t *testing.T) {
			topic, group := franzTopic(t, adm, 6, nil), unique(t)
			var mu sync.Mutex
			seen := map[string]int{}
			type franzMember struct {
				cl   *kgo.Client
				net  *cutter
				stop context.CancelFunc
				done chan struct{}
			}
			start := func() *franzMember {
				ctx, cancel := context.WithCancel(t.Context())
				m := &franzMember{net: &cutter{}, stop: cancel, done: make(chan struct{})}
				m.cl = franz(t, kgo.Dialer(m.net.dial), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancer), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
					kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond), kgo.AutoCommitInterval(200*time.Millisecond))
				go func() {
					defer close(m.done)
					for ctx.Err() == nil {
						fs := m.cl.PollFetches(ctx)
						mu.Lock()
						fs.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++ })
						mu.Unlock()
					}
				}()
				return m
			}
			members := func(n int) {
				t.Helper()
				eventually(t, 40*time.Second, fmt.Sprint(n, " members"), func() (string, bool) {
					got, err := adm.DescribeGroups(t.Context(), group)
					g := got[group]
					return fmt.Sprintf("%v %s %d", err, g.State, len(g.Members)), err == nil && g.State == "Stable" && len(g.Members) == n
				})
			}
			a := start()
			franzProduce(t, topic, 300, "one")
			members(1)
			b, c := start(), start()
			franzProduce(t, topic, 300, "two")
			members(3)
			b.stop() // leaves
			<-b.done
			b.cl.Close()
			franzProduce(t, topic, 300, "three")
			members(2)
			c.net.cut() // dies
			d := start()
			members(2)
			franzProduce(t, topic, 300, "four")
			eventually(t, 30*time.Second, "every record", func() (string, bool) {
				mu.Lock()
				defer mu.Unlock()
				return fmt.Sprint(len(seen)), len(seen) == 1200
			})
			for _, m := range []*franzMember{a, d} {
				m.stop()
				<-m.done
				if err := m.cl.CommitUncommittedOffsets(t.Context()); err != nil {
					t.Error(err)
				}
				m.cl.Close()
			}
			got, err := adm.FetchOffsets(t.Context(), group)
			sum := int64(0)
			got.Each(func(o kadm.OffsetResponse) { sum += o.At })
			if err != nil || sum != 1200 {
				t.Errorf("committed %d of 1200, %v", sum, err)
			}
			if _, err := adm.DeleteGroup(t.Context(), group); err != nil {
				t.Errorf("delete group: %v", err)
			}
			c.stop()
		})
	}
}

func franzAdmin(t *testing.T, adm *kadm.Client) {
	ctx := t.Context()
	topic := franzTopic(t, adm, 2, map[string]*string{"retention.ms": ptr("777000")})
	franzProduce(t, topic, 100, "a")
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	is := func(what string, err error, want *kerr.Error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %s", what, err, want.Message)
		}
	}
	meta, err := adm.Metadata(ctx, topic)
	ok("Metadata", err)
	if len(meta.Brokers) != 1 || meta.Cluster == "" || len(meta.Topics[topic].Partitions) != 2 {
		t.Errorf("Metadata: %+v", meta)
	}
	_, err = adm.BrokerMetadata(ctx)
	ok("BrokerMetadata", err)
	versions, err := adm.ApiVersions(ctx)
	ok("ApiVersions", err)
	versions.Each(func(v kadm.BrokerApiVersions) { ok("ApiVersions of a broker", v.Err) })
	again, err := adm.CreateTopics(ctx, 1, 1, nil, topic)
	ok("CreateTopics", err)
	is("CreateTopics again", again[topic].Err, kerr.TopicAlreadyExists)
	dry, err := adm.ValidateCreateTopics(ctx, 1, 1, nil, topic+"-dry")
	ok("ValidateCreateTopics", err)
	ok("ValidateCreateTopics", dry.Error())
	up, err := adm.UpdatePartitions(ctx, 4, topic)
	ok("UpdatePartitions", err)
	ok("UpdatePartitions", up.Error())
	cfg, err := adm.DescribeTopicConfigs(ctx, topic)
	ok("DescribeTopicConfigs", err)
	rc, err := cfg.On(topic, nil)
	ok("DescribeTopicConfigs", err)
	if len(rc.Configs) < 25 {
		t.Errorf("%d topic configs", len(rc.Configs))
	}
	_, err = adm.DescribeBrokerConfigs(ctx, meta.Controller)
	ok("DescribeBrokerConfigs", err)
	alter, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: ptr("888000")}}, topic)
	ok("AlterTopicConfigs", err)
	for _, a := range alter {
		ok("AlterTopicConfigs", a.Err)
	}
	_, err = adm.ListStartOffsets(ctx, topic)
	ok("ListStartOffsets", err)
	ends, err := adm.ListEndOffsets(ctx, topic)
	ok("ListEndOffsets", err)
	_, err = adm.ListCommittedOffsets(ctx, topic)
	ok("ListCommittedOffsets", err)
	_, err = adm.ListMaxTimestampOffsets(ctx, topic)
	ok("ListMaxTimestampOffsets", err)
	total := int64(0)
	ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
	if total != 100 {
		t.Errorf("end offsets add up to %d", total)
	}
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: topic, Partition: 0, At: 3})
	del, err := adm.DeleteRecords(ctx, to)
	ok("DeleteRecords", err)
	ok("DeleteRecords", del.Error())
	dirs, err := adm.DescribeAllLogDirs(ctx, nil)
	ok("DescribeAllLogDirs", err)
	for _, d := range dirs {
		if d.Error() != nil || d.Size() <= 0 {
			t.Errorf("DescribeAllLogDirs: %v, size %d", d.Error(), d.Size())
		}
	}
	group := unique(t)
	var commits kadm.Offsets
	commits.Add(kadm.Offset{Topic: topic, Partition: 0, At: 7, LeaderEpoch: -1, Metadata: "m"})
	ok("CommitAllOffsets", adm.CommitAllOffsets(ctx, group, commits))
	fetched, err := adm.FetchOffsets(ctx, group)
	if o, found := fetched.Lookup(topic, 0); err != nil || !found || o.At != 7 || o.Metadata != "m" {
		t.Errorf("FetchOffsets: %+v %v", o, err)
	}
	lags, err := adm.Lag(ctx, group)
	ok("Lag", err)
	ok("Lag", lags.Error())
	groups, err := adm.ListGroups(ctx)
	ok("ListGroups", err)
	if _, found := groups[group]; !found {
		t.Errorf("ListGroups lacks %s", group)
	}
	var drop kadm.TopicsSet
	drop.Add(topic, 0)
	dropped, err := adm.DeleteOffsets(ctx, group, drop)
	ok("DeleteOffsets", err)
	ok("DeleteOffsets", dropped.Error())
	_, err = adm.DeleteGroups(ctx, group)
	ok("DeleteGroups", err)
	elected, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, meta.Topics.TopicsSet())
	ok("ElectLeaders", err)
	for _, ps := range elected {
		for _, p := range ps {
			is("ElectLeaders", p.Err, kerr.ElectionNotNeeded)
		}
	}
	_, err = adm.ListPartitionReassignments(ctx, nil)
	ok("ListPartitionReassignments", err)
	_, err = adm.DescribeProducers(ctx, meta.Topics.TopicsSet())
	ok("DescribeProducers", err)
	_, err = adm.DescribeClientQuotas(ctx, false, nil)
	ok("DescribeClientQuotas", err)
	_, err = adm.OffsetForLeaderEpoch(ctx, kadm.OffsetForLeaderEpochRequest{topic: {0: 0}})
	ok("OffsetForLeaderEpoch", err)
	gone, err := adm.DeleteTopics(ctx, topic)
	ok("DeleteTopics", err)
	ok("DeleteTopics", gone.Error())
	gone, err = adm.DeleteTopics(ctx, topic)
	ok("DeleteTopics", err)
	is("DeleteTopics again", gone[topic].Err, kerr.UnknownTopicOrPartition)
}

func franzWide(t *testing.T, adm *kadm.Client) {
	var topics []string
	for range 20 {
		topics = append(topics, franzTopic(t, adm, 5, nil))
	}
	cl := franz(t, kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))
	prod := franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	want := 0
	seen := map[string]bool{}
	for round := range 5 {
		var rs []*kgo.Record
		for i, topic := range topics {
			if (i+round)%3 == 0 {
				rs = append(rs, &kgo.Record{Topic: topic, Partition: int32((i + round) % 5), Value: fmt.Append(nil, i, " ", round)})
			}
		}
		if err := prod.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want += len(rs)
		for deadline := time.Now().Add(20 * time.Second); len(seen) < want && time.Now().Before(deadline); {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { seen[r.Topic+string(r.Value)] = true })
			cancel()
		}
		if len(seen) != want {
			t.Fatalf("round %d: saw %d of %d", round, len(seen), want)
		}
	}
	if _, err := adm.DeleteTopics(t.Context(), topics...); err != nil {
		t.Error(err)
	}
}
