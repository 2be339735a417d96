package group_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/group"
)

// TestAgainstKafka plays the transcripts on the broker named by WEIR_KAFKA, so
// that what the shard is held to is what Kafka answers; replies are compared,
// records and times are not. The broker needs
//
//	group.min.session.timeout.ms=1000 group.initial.rebalance.delay.ms=1000
//
// A transcript whose first line is "# weir only" is left out: versions that
// Kafka dropped, or what a client cannot bring about. One that starts with
// "# needs KEY=VALUE ..." is played alone, when WEIR_KAFKA_NEEDS is that text.
// It takes real time, so it runs only when asked for.
func TestAgainstKafka(t *testing.T) {
	addr := os.Getenv("WEIR_KAFKA")
	if addr == "" {
		t.Skip("WEIR_KAFKA is not set")
	}
	ids := kafkaTopics(t, addr)
	files, _ := filepath.Glob("testdata/*.txt")
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		needs, special := strings.CutPrefix(first, "# needs ")
		if strings.HasPrefix(first, "# weir only") || special != (os.Getenv("WEIR_KAFKA_NEEDS") != "") || special && needs != os.Getenv("WEIR_KAFKA_NEEDS") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &remote{names: newNames(), t: t, addr: addr, ids: ids, out: make(chan arrival, 100),
				nonce: fmt.Sprintf("-%s-%d", name, time.Now().UnixNano()), seen: map[string]string{}}
			lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			records := map[string][]string{} // by group
			for i, line := range lines {
				if line == "" || line[0] == '#' || line[0] == ' ' {
					continue
				}
				var want []string
				for j := i + 1; j < len(lines) && strings.HasPrefix(lines[j], "  "); j++ {
					w := lines[j][2:]
					if strings.HasPrefix(w, "  ") {
						want[len(want)-1] += "\n" + w
						continue
					}
					if strings.HasPrefix(w, "@") {
						_, w, _ = strings.Cut(w, " ")
					}
					if rec, ok := strings.CutPrefix(w, "+ "); ok {
						g := strings.Split(rec, " ")[1]
						records[g] = append(records[g], undated(rec))
					} else {
						want = append(want, w)
					}
				}
				got := r.play(parse(line), len(want))
				sort.Strings(want)
				sort.Strings(got)
				if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
					t.Errorf("line %d: %s\nkafka %s\nweir  %s", i+1, line, g, w)
				}
			}
			kafka := r.records()
			for g, w := range records {
				if g == "" {
					continue // cannot be told from other runs
				}
				if k := kafka[g]; strings.Join(k, "\n") != strings.Join(w, "\n") {
					t.Errorf("records of %s\nkafka %s\nweir  %s", g, strings.Join(k, "\n      "), strings.Join(w, "\n      "))
				}
			}
		})
	}
}

type arrival struct {
	who  string
	resp kmsg.Response
	err  error
}

type remote struct {
	*names
	t     *testing.T
	addr  string
	ids   map[string][16]byte
	nonce string
	out   chan arrival
	seen  map[string]string
}

var uuid = regexp.MustCompile(`-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// play sends a command and collects the answers: as many as are wanted, however
// long a busy machine takes, and what else comes within a moment.
func (r *remote) play(c command, want int) []string {
	const moment = 200 * time.Millisecond
	wait := 3 * time.Second
	if want == 0 {
		wait = moment
	}
	switch c.verb {
	case "tick":
		d, err := time.ParseDuration(c.who)
		must(r.t, err)
		wait, want = d, -1
	case "config":
		return nil // set when it was started
	case "topics", "droptopic", "reload":
		r.t.Fatalf("%s cannot be played on Kafka: mark the transcript", c.verb)
	default:
		req := r.request(c).(kmsg.Request)
		r.adapt(req)
		go func() {
			resp, err := ask(r.addr, c.str("client", c.who), req)
			r.out <- arrival{c.who, resp, err}
		}()
	}
	var got, raw []string
	timeout := time.After(wait)
	for {
		select {
		case a := <-r.out:
			if a.err != nil {
				got = append(got, fmt.Sprintf("%s: %v", a.who, a.err))
				continue
			}
			r.restore(a.resp)
			raw = append(raw, r.render(a.who, a.resp))
			if len(raw) == want {
				timeout = time.After(moment)
			}
		case <-timeout:
			sort.Strings(raw)
			for _, s := range raw {
				got = append(got, r.plain(s))
			}
			return got
		}
	}
}

// plain takes what is random out of a line: this run's mark and the UUIDs of
// member ids, which become numbers in order of showing up.
func (r *remote) plain(s string) string {
	s = strings.ReplaceAll(s, r.nonce, "")
	return uuid.ReplaceAllStringFunc(s, func(u string) string {
		if r.seen[u] == "" {
			r.seen[u] = "-" + strconv.Itoa(len(r.seen)+1)
		}
		return r.seen[u]
	})
}

var dates = regexp.MustCompile(` (at|expires)=\S+`)

func undated(s string) string { return dates.ReplaceAllString(s, "") }

// records reads what Kafka wrote about the groups of this run.
func (r *remote) records() map[string][]string {
	out := map[string][]string{}
	for _, rec := range kafkaRecords(r.t, r.addr) {
		if !strings.Contains(string(rec.Key), r.nonce) {
			continue
		}
		s := record(r.t, time.Now(), rec)
		for t, id := range r.ids {
			s = strings.ReplaceAll(s, idName(id), idName(topicID(t)))
		}
		s = undated(r.plain(s))
		g := strings.Split(s, " ")[1]
		out[g] = append(out[g], s)
	}
	return out
}

// kafkaRecords reads all of __consumer_offsets.
func kafkaRecords(t testing.TB, addr string) []group.Record {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("__consumer_offsets"), kgo.FetchMaxWait(100*time.Millisecond))
	must(t, err)
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), "__consumer_offsets")
	must(t, err)
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var out []group.Record
	for len(left) > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		fs := cl.PollFetches(ctx)
		cancel()
		must(t, fs.Err())
		fs.EachRecord(func(rec *kgo.Record) {
			out = append(out, group.Record{Key: rec.Key, Value: rec.Value})
			if rec.Offset >= left[rec.Partition]-1 {
				delete(left, rec.Partition)
			}
		})
	}
	return out
}

// adapt puts the names of this run into a request.
func (r *remote) adapt(req kmsg.Request) {
	own := func(g *string) {
		if *g != "" {
			*g += r.nonce
		}
	}
	switch q := req.(type) {
	case *kmsg.JoinGroupRequest:
		own(&q.Group)
	case *kmsg.SyncGroupRequest:
		own(&q.Group)
	case *kmsg.HeartbeatRequest:
		own(&q.Group)
	case *kmsg.LeaveGroupRequest:
		own(&q.Group)
	case *kmsg.OffsetCommitRequest:
		own(&q.Group)
		for i := range q.Topics {
			q.Topics[i].TopicID = r.id(q.Topics[i].Topic)
		}
	case *kmsg.OffsetFetchRequest:
		own(&q.Group)
		for i := range q.Groups {
			own(&q.Groups[i].Group)
			for j := range q.Groups[i].Topics {
				q.Groups[i].Topics[j].TopicID = r.id(q.Groups[i].Topics[j].Topic)
			}
		}
	case *kmsg.OffsetDeleteRequest:
		own(&q.Group)
	case *kmsg.DescribeGroupsRequest:
		own(&q.Groups[0])
	case *kmsg.DeleteGroupsRequest:
		own(&q.Groups[0])
	}
}

func (r *remote) id(topic string) [16]byte {
	if id, ok := r.ids[topic]; ok {
		return id
	}
	return topicID(topic)
}

// restore makes a response look as if the topics had the player's ids.
func (r *remote) restore(resp kmsg.Response) {
	name := func(id *[16]byte) {
		for t, known := range r.ids {
			if known == *id && *id != [16]byte{} {
				*id = topicID(t)
			}
		}
	}
	switch p := resp.(type) {
	case *kmsg.OffsetCommitResponse:
		for i := range p.Topics {
			name(&p.Topics[i].TopicID)
		}
	case *kmsg.OffsetFetchResponse:
		for i := range p.Groups {
			for j := range p.Groups[i].Topics {
				name(&p.Groups[i].Topics[j].TopicID)
			}
		}
	case *kmsg.ListGroupsResponse:
		var mine []kmsg.ListGroupsResponseGroup
		for _, g := range p.Groups {
			if strings.HasSuffix(g.Group, r.nonce) {
				mine = append(mine, g)
			}
		}
		p.Groups = mine
	}
}

// ask sends one request on a connection of its own and reads its answer.
func ask(addr, client string, req kmsg.Request) (kmsg.Response, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(client)).AppendRequest(nil, req, 7)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, body); err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	body = body[4:] // correlation id
	if resp.IsFlexible() {
		body = body[1:] // no header tags
	}
	return resp, resp.ReadFrom(body)
}

var topicsOnce sync.Once

func kafkaTopics(t *testing.T, addr string) map[string][16]byte {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 5, 5000
	for name, parts := range newNames().topics {
		q.Topics = append(q.Topics, kmsg.CreateTopicsRequestTopic{Topic: name, NumPartitions: parts, ReplicationFactor: 1})
	}
	m := kmsg.NewPtrMetadataRequest()
	m.Version = 12
	for name := range newNames().topics {
		m.Topics = append(m.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(name)})
	}
	f := kmsg.NewPtrFindCoordinatorRequest() // makes __consumer_offsets
	f.Version, f.CoordinatorKeys = 4, []string{"g"}
	d := kmsg.NewPtrDescribeGroupsRequest()
	d.Version, d.Groups = 6, []string{"no such group"}
	ids := map[string][16]byte{}
	for range 50 {
		topicsOnce.Do(func() { _, err := ask(addr, "t", q); must(t, err) })
		resp, err := ask(addr, "t", m)
		must(t, err)
		for _, x := range resp.(*kmsg.MetadataResponse).Topics {
			ids[*x.Topic] = x.TopicID
		}
		_, err = ask(addr, "t", f)
		must(t, err)
		resp, err = ask(addr, "t", d)
		must(t, err)
		if resp.(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode == 69 && ids["t"] != [16]byte{} {
			return ids
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the broker gets no coordinator going")
	return nil
}
