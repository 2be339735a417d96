package quorum

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
)

// controller is what a controller needs, repeatable from a seed.
func controller(seed uint64) metadata.Config {
	rnd := rand.New(rand.NewPCG(seed, 1))
	return metadata.Config{
		Defaults: func(*metadata.Image) metadata.Defaults {
			return metadata.Defaults{Partitions: 1, ReplicationFactor: 1}
		},
		Rand: rnd,
		NewID: func() (id kafka.TopicID) {
			for i := range id {
				id[i] = byte(rnd.Uint32())
			}
			return id
		},
	}
}

func options(fs disk.FS, dir string) Options {
	return Options{FS: fs, Dir: dir, Self: 1, ClusterID: "cluster", Controller: controller(1)}
}

func open(t testing.TB, o Options) *Node {
	t.Helper()
	n, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func call[R any](t testing.TB, n *Node, req any) R {
	t.Helper()
	resp, err := n.Call(context.Background(), req)
	if err != nil {
		t.Fatalf("%T: %v", req, err)
	}
	return resp.(R)
}

func register(t testing.TB, n *Node) {
	t.Helper()
	r := call[*metadata.RegisterBrokerReply](t, n, &metadata.RegisterBroker{Broker: metadata.Broker{
		ID: 1, Listeners: []metadata.Listener{{Name: "PLAINTEXT", Host: "localhost", Port: 9092, Security: "PLAINTEXT"}},
	}})
	if r.Err != kafka.NoError {
		t.Fatal(r.Err)
	}
}

func createReq(names ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	for _, name := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, 3, 1
		req.Topics = append(req.Topics, t)
	}
	return req
}

func create(t testing.TB, n *Node, name string) {
	t.Helper()
	r := call[*kmsg.CreateTopicsResponse](t, n, createReq(name))
	if c := r.Topics[0].ErrorCode; c != 0 {
		t.Fatalf("create %s: %v", name, kafka.Error(c))
	}
}

func TestOpenIsQuickAndDurable(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		begin := time.Now()
		n := open(t, options(disk.OS, dir))
		took := time.Since(begin)
		register(t, n)
		t.Logf("open %v, with registration %v", took, time.Since(begin))
		create(t, n, fmt.Sprint("t", round))
		if got := n.Image().TopicCount(); got != round+1 {
			t.Fatalf("%d topics after round %d", got, round)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
