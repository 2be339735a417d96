//go:build compat

package compat

// Shows: frames, versions, tags and order as every client relies on them; what
// strangers send does not hurt. Cases B001, B007, B022, B023, B027, B028, B063
// to B066, B176 and B181 of the field list, each a raw socket conversation.

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestWire(t *testing.T) {
	b := sharedBroker(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b *broker)
	}{
		{"B001 ApiVersions newer than the broker", apiVersionsTooNew},
		{"every version of ApiVersions", apiVersionsAll},
		{"B007 strangers", strangers},
		{"B022 a version never advertised", versionNeverAdvertised},
		{"B023 unknown tags", unknownTags},
		{"B027 client ids", clientIDs},
		{"B028 replies in request order", pipelined},
		{"B063 null and empty topic lists", nullAndEmpty},
		{"B065 auto-create", autoCreate},
		{"B066 topic names", topicNames},
		{"B181 SASL without SASL", saslOnPlaintext},
		{"every Metadata version", metadataAll},
		{"garbage bodies", garbage},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, b) })
	}
}

func apiVersionsTooNew(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	frame := header(18, 99, 7, r.clientID, true, nil)
	for range 20 {
		frame = append(frame, byte(rand.Uint32()))
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	r.write(frame)
	got, err := r.readFrame()
	if err != nil {
		t.Fatalf("no reply to ApiVersions v99: %v", err)
	}
	// corr(4) error(2) count(4) then key(2) min(2) max(2) per entry, nothing after
	if len(got) < 16 || (len(got)-10)%6 != 0 {
		t.Fatalf("reply is not laid out as v0: % x", got)
	}
	if corr := binary.BigEndian.Uint32(got); corr != 7 {
		t.Errorf("correlation id %d, want 7", corr)
	}
	code(t, "ApiVersions v99", int16(binary.BigEndian.Uint16(got[4:])), 35)
	offered := r.versions() // v3, on the same connection
	if len(offered) < 30 {
		t.Errorf("ApiVersions v3 after it: %d keys", len(offered))
	}
	field := func(at int) int16 { return int16(binary.BigEndian.Uint16(got[at:])) }
	if len(got) != 16 || field(10) != 18 || field(12) != offered[18][0] || field(14) != offered[18][1] {
		t.Errorf("reply must hold key 18 with %v and nothing else: % x", offered[18], got)
	}
}

func apiVersionsAll(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	for _, v := range r.upTo(kmsg.ApiVersions, 0, 5) {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = v, "weir-compat", "1.0"
		resp := ask[*kmsg.ApiVersionsResponse](r, req)
		code(t, fmt.Sprintf("ApiVersions v%d", v), resp.ErrorCode, 0)
		keys := map[int16][2]int16{}
		for _, k := range resp.ApiKeys {
			keys[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
		}
		if keys[0][0] != 0 { // librdkafka up to 2.11.0 turns compression off otherwise
			t.Errorf("v%d: Produce advertised from version %d, must be 0", v, keys[0][0])
		}
		for _, must := range []int16{0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 42, 43, 44, 45, 46, 47, 60, 61, 75} {
			if _, ok := keys[must]; !ok {
				t.Errorf("v%d: %s is not advertised", v, kmsg.NameForKey(must))
			}
		}
	}
	for _, bad := range []string{"", "-x", "a b"} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, bad, "1.0"
		code(t, fmt.Sprintf("ApiVersions v3 of software %q", bad), ask[*kmsg.ApiVersionsResponse](dial(t, b.addr), req).ErrorCode, 42)
	}
}

func strangers(t *testing.T, b *broker) {
	steady := dial(t, b.addr)
	topic := steady.topic(1)
	stop, wait := make(chan struct{}), sync.WaitGroup{}
	wait.Add(1)
	go func() { // a normal producer meanwhile
		defer wait.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			resp := ask[*kmsg.ProduceResponse](steady, produceRequest(8, 1, topic, batchSpec{recs: values(1, 100)}.bytes()))
			if c := resp.Topics[0].Partitions[0].ErrorCode; c != 0 {
				t.Errorf("the steady producer got error %d", c)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	defer func() { close(stop); wait.Wait() }()

	for _, first := range [][]byte{
		{0xff, 0xff, 0xff, 0xff},
		{0x80, 0, 0, 0},
		{0x7f, 0xff, 0xff, 0xff},
		{0x06, 0x40, 0x00, 0x01},
		{0, 0, 0, 0},
		{0, 0, 0, 3, 0, 18, 0},
		{0, 0, 0, 8, 0x7f, 0xff, 0, 0, 0, 0, 0, 1},         // no such API
		{0, 0, 0, 10, 0, 18, 0, 3, 0, 0, 0, 1, 0x7f, 0xff}, // client id longer than the frame
		{0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xfe},  // client id of length -2
		{0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 127, 255, 255, 255}, // two billion topics
		[]byte("GET /metrics HTTP/1.1\r\nHost: weir\r\n\r\n"),
		{0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03},
	} {
		r := dial(t, b.addr)
		r.write(first)
		if _, err := r.closed(8 * time.Second); err != nil {
			t.Errorf("after % x: %v", first[:min(len(first), 18)], err)
		}
	}

	if onKafka || b.foreign {
		t.Log("Kafka allocates what a stranger declares: the trickle is for Weir only")
		return
	}
	files, before := b.openFiles(t), b.residentKiB(t)
	var conns []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte{0x06, 0x40, 0x00, 0x00}) // a legal 100 MiB
		conns = append(conns, c)
	}
	for range 4 {
		time.Sleep(500 * time.Millisecond)
		for _, c := range conns {
			c.Write([]byte{0})
		}
	}
	if grown := b.residentKiB(t) - before; grown > 64<<10 {
		t.Errorf("200 half frames of 100 MiB made the broker grow by %d KiB", grown)
	}
	for _, c := range conns {
		c.Close()
	}
	eventually(t, 10*time.Second, "descriptors go back", func() (string, bool) {
		n := b.openFiles(t)
		return fmt.Sprintf("%d, at first %d", n, files), n <= files+5
	})
}

func versionNeverAdvertised(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	top := r.versions()[3][1]
	frame := header(3, top+1, 9, r.clientID, true, nil)
	frame = append(frame, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	r.write(frame)
	if got, err := r.closed(5 * time.Second); err != nil || len(got) > 0 {
		t.Errorf("Metadata v%d: %d bytes, %v; want a closed connection", top+1, len(got), err)
	}
}

func unknownTags(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	r.need(kmsg.Metadata, 12)
	topic := r.topic(2)
	plain := ask[*kmsg.MetadataResponse](r, metadataRequest(12, false, topic))

	r.corr++
	f := header(3, 12, r.corr, r.clientID, true, []byte{1, 99, 3, 'x', 'y', 'z'})
	f = append(f, 2)                   // one topic
	f = append(f, make([]byte, 16)...) // no id
	f = append(f, byte(len(topic)+1))
	f = append(f, topic...)
	f = append(f, 1, 7, 0)              // a tag of the topic: 7, no bytes
	f = append(f, 0, 0)                 // allow auto creation, authorized operations
	f = append(f, 1, 0xe8, 0x07)        // a tag of the body: 1000,
	f = append(f, 0xac, 0x02)           // of 300 bytes
	f = append(f, make([]byte, 300)...) //
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	r.write(f)
	tagged := r.recv(metadataRequest(12, false, topic), r.corr).(*kmsg.MetadataResponse)
	if p, q := fmt.Sprintf("%v", plain.AppendTo(nil)), fmt.Sprintf("%v", tagged.AppendTo(nil)); p != q {
		t.Errorf("tags changed the answer:\n%s\n%s", p, q)
	}
}

func clientIDs(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	topic := r.topic(1)
	for _, id := range []*string{nil, ptr(""), ptr("x"), ptr(strings.Repeat("i", 300)), ptr("käfka\"\\\n\t日本"), ptr("\xff\xfe\x00")} {
		r.clientID = id
		if got := r.metadata(topic).Topics[0].ErrorCode; got != 0 {
			t.Errorf("Metadata as client %q: error %d", deref(id), got)
		}
		group := unique(t)
		r.coordinator(group)
		m := &member{r: r, group: group}
		m.stable()
		code(t, "leave", m.leave(), 0)
	}
}

// Fetch waits half a second at the log end; quick requests behind it wait too.
func pipelined(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	topic := r.topic(1)
	conns, rounds := 40, 4
	var wg sync.WaitGroup
	for i := range conns {
		c := dial(t, b.addr)
		c.versions()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range rounds {
				type sent struct {
					req  kmsg.Request
					corr int32
				}
				var queue []sent
				push := func(req kmsg.Request) {
					queue = append(queue, sent{req, 0})
				}
				push(fetchRequest(11, 500, 1, 1<<20, at(topic, 0, 1<<40)))
				queue[0].req.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset = 0
				for range 49 {
					switch rng.IntN(4) {
					case 0:
						push(metadataRequest(8, false, topic))
					case 1:
						push(listRequest(5, topic, 0, -1))
					case 2:
						req := kmsg.NewPtrFindCoordinatorRequest()
						req.Version, req.CoordinatorKey = 2, "g"
						push(req)
					default:
						req := kmsg.NewPtrDescribeConfigsRequest()
						req.Version = 1
						rr := kmsg.NewDescribeConfigsRequestResource()
						rr.ResourceType, rr.ResourceName, rr.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{"retention.ms"}
						req.Resources = append(req.Resources, rr)
						push(req)
					}
				}
				var all []byte
				for i := range queue {
					all = append(all, c.frame(queue[i].req)...)
					queue[i].corr = c.corr
				}
				if _, err := c.c.Write(all); err != nil {
					t.Error(err)
					return
				}
				for i, q := range queue {
					b, err := c.readFrame()
					if err != nil {
						t.Errorf("reply %d: %v", i, err)
						return
					}
					if got := int32(binary.BigEndian.Uint32(b)); got != q.corr {
						t.Errorf("reply %d has correlation id %d, want %d", i, got, q.corr)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func nullAndEmpty(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	for range 3 {
		r.topic(1)
	}
	for _, v := range r.upTo(kmsg.Metadata, 0, 12) {
		empty := metadataRequest(v, false)
		resp := ask[*kmsg.MetadataResponse](r, empty)
		if v == 0 && len(resp.Topics) < 3 || v > 0 && len(resp.Topics) != 0 {
			t.Errorf("v%d, empty list: %d topics", v, len(resp.Topics))
		}
		if len(resp.Brokers) != 1 {
			t.Errorf("v%d, empty list: %d brokers", v, len(resp.Brokers))
		}
		if v > 0 {
			empty.Topics = nil
			resp = ask[*kmsg.MetadataResponse](r, empty)
			if len(resp.Topics) < 3 || len(resp.Brokers) != 1 {
				t.Errorf("v%d, null list: %d topics, %d brokers", v, len(resp.Topics), len(resp.Brokers))
			}
		}
	}
}

func metadataAll(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	topic := r.topic(3)
	host, port, _ := net.SplitHostPort(b.addr)
	for _, v := range r.upTo(kmsg.Metadata, 0, 13) {
		resp := ask[*kmsg.MetadataResponse](r, metadataRequest(v, false, topic))
		if len(resp.Brokers) != 1 || resp.Brokers[0].Host != host || fmt.Sprint(resp.Brokers[0].Port) != port {
			t.Errorf("v%d: brokers %+v, want %s", v, resp.Brokers, b.addr)
		}
		rt := resp.Topics[0]
		if rt.ErrorCode != 0 || deref(rt.Topic) != topic || len(rt.Partitions) != 3 || rt.IsInternal {
			t.Errorf("v%d: topic %+v", v, rt)
		}
		for i, p := range rt.Partitions {
			if p.ErrorCode != 0 || int(p.Partition) != i || p.Leader != resp.Brokers[0].NodeID || len(p.Replicas) != 1 || len(p.ISR) != 1 || len(p.OfflineReplicas) != 0 {
				t.Errorf("v%d: partition %d %+v", v, i, p)
			}
		}
		if v >= 2 && deref(resp.ClusterID) == "<null>" {
			t.Errorf("v%d: no cluster id", v)
		}
		if v >= 1 && resp.ControllerID != resp.Brokers[0].NodeID {
			t.Errorf("v%d: controller %d", v, resp.ControllerID)
		}
		if v >= 10 && rt.TopicID == [16]byte{} {
			t.Errorf("v%d: no topic id", v)
		}
		if v >= 12 { // by id
			req := metadataRequest(v, false)
			byID := kmsg.NewMetadataRequestTopic()
			byID.TopicID, byID.Topic = rt.TopicID, ptr("") // as the Java client sends it: the id counts, not the empty name
			unknown := kmsg.NewMetadataRequestTopic()
			unknown.TopicID = [16]byte{1, 2, 3}
			req.Topics = append(req.Topics, byID, unknown)
			resp := ask[*kmsg.MetadataResponse](r, req)
			for _, got := range resp.Topics {
				switch {
				case got.TopicID == rt.TopicID && got.ErrorCode == 0 && deref(got.Topic) == topic:
				case got.TopicID == unknown.TopicID && got.ErrorCode == 100 && got.Topic == nil:
				default:
					t.Errorf("v%d by id: %x %s error %d", v, got.TopicID, deref(got.Topic), got.ErrorCode)
				}
			}
			if len(resp.Topics) != 2 {
				t.Errorf("v%d by two ids: %d topics", v, len(resp.Topics))
			}
		}
		if v >= 8 {
			req := metadataRequest(v, false, topic)
			req.IncludeTopicAuthorizedOperations = true
			if got := ask[*kmsg.MetadataResponse](r, req).Topics[0].AuthorizedOperations; got == -2147483648 {
				t.Errorf("v%d: authorized operations were asked for and not given", v)
			}
			if rt.AuthorizedOperations != -2147483648 {
				t.Errorf("v%d: authorized operations %d were not asked for", v, rt.AuthorizedOperations)
			}
		}
	}
}

func autoCreate(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	for _, v := range r.upTo(kmsg.Metadata, 4, 12) {
		name := unique(t)
		got := ask[*kmsg.MetadataResponse](r, metadataRequest(v, false, name)).Topics[0]
		code(t, fmt.Sprintf("v%d, not allowed", v), got.ErrorCode, 3)
		if r.exists(name) {
			t.Errorf("v%d: created although not allowed", v)
		}
		got = ask[*kmsg.MetadataResponse](r, metadataRequest(v, true, name)).Topics[0]
		code(t, fmt.Sprintf("v%d, allowed, first answer", v), got.ErrorCode, 3, 5, 0)
		eventually(t, 2*time.Second, "leader of the created topic", func() (string, bool) {
			got := ask[*kmsg.MetadataResponse](r, metadataRequest(v, true, name)).Topics[0]
			return fmt.Sprintf("error %d", got.ErrorCode), got.ErrorCode == 0 && len(got.Partitions) > 0 && got.Partitions[0].Leader >= 0
		})
	}
}

func topicNames(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	for _, bad := range []string{"", ".", "..", "a b", "a/b", "größe", strings.Repeat("x", 250), "a\x00b"} {
		code(t, fmt.Sprintf("Metadata of %.20q", bad), ask[*kmsg.MetadataResponse](r, metadataRequest(8, true, bad)).Topics[0].ErrorCode, 17)
		code(t, fmt.Sprintf("CreateTopics of %.20q", bad), r.create(bad, 1, 1).ErrorCode, 17)
		code(t, fmt.Sprintf("Produce to %.20q", bad), r.produce(8, bad, batchSpec{recs: values(1, 1)}.bytes()).ErrorCode, 3)
		if r.exists(bad) {
			t.Errorf("%.20q was created", bad)
		}
	}
	for _, good := range []string{"a.b_c-D9", strings.Repeat("y", 249)} {
		if got := r.create(good, 1, 1); got.ErrorCode != 0 {
			t.Errorf("create %.20q: error %d", good, got.ErrorCode)
		}
		r.settle(good, 1)
		if p := r.produce(8, good, batchSpec{recs: values(1, 1)}.bytes()); p.ErrorCode != 0 {
			t.Errorf("produce to %.20q: error %d", good, p.ErrorCode)
		}
		code(t, "delete", r.delete(good), 0)
	}
}

func saslOnPlaintext(t *testing.T, b *broker) {
	r := dial(t, b.addr)
	r.need(kmsg.SASLHandshake, 1)
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version, hs.Mechanism = 1, "SCRAM-SHA-256"
	code(t, "SaslHandshake", ask[*kmsg.SASLHandshakeResponse](r, hs).ErrorCode, 34)
	if r.offers(kmsg.SASLAuthenticate, 2) {
		au := kmsg.NewPtrSASLAuthenticateRequest()
		au.Version, au.SASLAuthBytes = 2, []byte("n,,n=u,r=x")
		code(t, "SaslAuthenticate", ask[*kmsg.SASLAuthenticateResponse](r, au).ErrorCode, 34)
	}
	if len(r.metadata().Brokers) != 1 {
		t.Error("connection is of no use afterwards")
	}
}

// Every advertised API with a body of noise: the broker answers or closes, and
// lives. The seed is fixed so that a finding can be repeated.
func garbage(t *testing.T, b *broker) {
	rng := rand.New(rand.NewPCG(20, 26))
	first := dial(t, b.addr)
	for key, v := range first.versions() {
		if key == 7 || kmsg.RequestForKey(key) == nil {
			continue
		}
		for version := v[0]; version <= v[1]; version++ {
			req := kmsg.RequestForKey(key)
			req.SetVersion(version)
			for round := range 4 {
				f := header(key, version, 1, ptr("noise"), req.IsFlexible() && key != 18 || key == 18 && version >= 3, nil)
				noise := make([]byte, rng.IntN(60))
				for i := range noise {
					if round%2 == 0 {
						noise[i] = byte(rng.Uint32())
					} else {
						noise[i] = []byte{0, 1, 2, 127, 128, 255}[rng.IntN(6)]
					}
				}
				f = append(f, noise...)
				binary.BigEndian.PutUint32(f, uint32(len(f)-4))
				c, err := net.DialTimeout("tcp", b.addr, 5*time.Second)
				if err != nil {
					t.Fatalf("after %s v%d: %v", kmsg.NameForKey(key), version, err)
				}
				c.Write(f)
				c.(*net.TCPConn).CloseWrite()
				c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // a long poll may be among them
				io.Copy(io.Discard, c)
				c.Close()
			}
		}
	}
	if len(dial(t, b.addr).versions()) < 30 || b.died() {
		t.Error("the broker did not survive")
	}
}

// B064: the first answers of a broker that has nothing yet. Needs one of its
// own.
func TestFreshBroker(t *testing.T) {
	b := startBroker(t)
	r := dial(t, b.addr)
	for _, v := range r.upTo(kmsg.Metadata, 0, 13) {
		req := metadataRequest(v, false)
		req.Topics = nil
		resp := ask[*kmsg.MetadataResponse](r, req)
		if len(resp.Brokers) != 1 || resp.Brokers[0].Port == 0 {
			t.Errorf("B064 v%d: brokers %+v", v, resp.Brokers)
		}
		if v >= 1 && resp.ControllerID < 0 || v >= 2 && deref(resp.ClusterID) == "" {
			t.Errorf("B064 v%d: controller %d, cluster %s", v, resp.ControllerID, deref(resp.ClusterID))
		}
		if len(resp.Topics) != 0 {
			t.Errorf("B064 v%d: %d topics", v, len(resp.Topics))
		}
	}
	for _, v := range r.upTo(kmsg.ListGroups, 0, 5) { // B084
		req := kmsg.NewPtrListGroupsRequest()
		req.Version = v
		for _, states := range [][]string{nil, {"Stable"}, {"NoSuchState"}} {
			if states != nil && v < 4 {
				continue
			}
			req.StatesFilter = states
			resp := ask[*kmsg.ListGroupsResponse](r, req)
			if resp.ErrorCode != 0 || len(resp.Groups) != 0 {
				t.Errorf("B084 v%d states %v: error %d, %d groups", v, states, resp.ErrorCode, len(resp.Groups))
			}
		}
	}
}
