//go:build compat

package compat

// Shows: what an operator sees. B240: lag is never negative, however fast a
// group commits. B241: no lag where there is no commit. B243: series go with
// what they counted. B246: the page parses whatever clients call themselves.
// B022, B027: one warning for a version nobody offered, with the client's id
// escaped. Weir alone: the real Kafka has no such page.

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var sampleLine = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*\})? (NaN|[+-]Inf|[-+0-9.eE]+)$`)

// scrape reads the metrics page; every line must be a comment or a sample
// without a timestamp.
func scrape(t *testing.T, addr string) map[string]float64 {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if !sampleLine.MatchString(line) {
			t.Fatalf("not a sample without timestamp: %q", line)
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, twice := out[line[:at]]; twice {
			t.Fatalf("twice: %s", line)
		}
		out[line[:at]] = v
	}
	return out
}

// naming gives the samples whose labels hold a value.
func naming(page map[string]float64, label, value string) map[string]float64 {
	out := map[string]float64{}
	for k, v := range page {
		if strings.Contains(k, fmt.Sprintf("%s=%q", label, value)) {
			out[k] = v
		}
	}
	return out
}

func TestWatched(t *testing.T) {
	if onKafka {
		t.Skip("about Weir's own page and log")
	}
	httpAddr := "127.0.0.1:" + strconv.Itoa(freePort(t))
	b := startBroker(t, "weir.http.listener="+httpAddr)
	t.Run("B240 lag under load", func(t *testing.T) {
		r := dial(t, b.addr)
		topic, group := r.topic(1), unique(t)
		r.coordinator(group)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		writer, reader := dial(t, b.addr), dial(t, b.addr)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					writer.put(topic, batchSpec{recs: values(1, 10)})
				}
			}
		})
		wg.Go(func() { // commits the end it has just seen, all the time
			for {
				select {
				case <-stop:
					return
				default:
					outsider(reader, group).commit(commit{topic, 0, reader.latest(topic), -1, ""})
				}
			}
		})
		seen := 0
		for range 300 {
			for k, v := range naming(scrape(t, httpAddr), "consumergroup", group) {
				if strings.HasPrefix(k, "kafka_consumergroup_lag{") {
					seen++
					if v < 0 {
						t.Errorf("%s = %v", k, v)
					}
				}
			}
		}
		close(stop)
		wg.Wait()
		if seen < 100 {
			t.Errorf("the lag was shown %d times in 300 scrapes", seen)
		}
	})
	t.Run("B241 no commit, no lag", func(t *testing.T) {
		r := dial(t, b.addr)
		topic, group := r.topic(3), unique(t)
		r.coordinator(group)
		fillAll(t, r, topic, 3, batchSpec{recs: values(10, 10)}.bytes(), 3)
		m := r.member(group)
		m.stable()
		code(t, "commit", m.commit(commit{topic, 1, 4, -1, ""})[0], 0)
		got := naming(scrape(t, httpAddr), "consumergroup", group)
		sum, n := 0.0, 0
		for k, v := range got {
			if strings.HasPrefix(k, "kafka_consumergroup_lag{") {
				n++
				sum += v
			}
		}
		if n != 1 || sum != 6 {
			t.Errorf("%d lags, sum %v; want one of 6: %v", n, sum, got)
		}
	})
	t.Run("B243 series go", func(t *testing.T) {
		r := dial(t, b.addr)
		topic, group := r.topic(2), unique(t)
		r.coordinator(group)
		r.put(topic, batchSpec{recs: values(1, 10)})
		r.fetch(topic, 0)
		code(t, "commit", outsider(r, group).commit(commit{topic, 0, 1, -1, ""})[0], 0)
		page := scrape(t, httpAddr)
		if len(naming(page, "topic", topic)) < 6 || len(naming(page, "consumergroup", group)) < 2 {
			t.Fatalf("before: %v, %v", naming(page, "topic", topic), naming(page, "consumergroup", group))
		}
		del := kmsg.NewPtrDeleteGroupsRequest()
		del.Version, del.Groups = 1, []string{group}
		code(t, "delete the group", ask[*kmsg.DeleteGroupsResponse](r, del).Groups[0].ErrorCode, 0)
		if left := naming(scrape(t, httpAddr), "consumergroup", group); len(left) > 0 {
			t.Errorf("of a deleted group: %v", left)
		}
		code(t, "delete the topic", r.delete(topic), 0)
		if left := naming(scrape(t, httpAddr), "topic", topic); len(left) > 0 {
			t.Errorf("of a deleted topic: %v", left)
		}
		r.produce(8, topic, batchSpec{recs: values(1, 10)}.bytes()) // a late producer
		r.fetch(topic, 0)
		if left := naming(scrape(t, httpAddr), "topic", topic); len(left) > 0 {
			t.Errorf("of a deleted topic that somebody still writes to: %v", left)
		}
	})
	t.Run("B246 hostile names", func(t *testing.T) {
		r := dial(t, b.addr)
		topic := r.topic(1)
		for i, name := range []string{`a"b`, `a\b`, "a\nb", "a\r\n# HELP x", strings.Repeat("n", 300), "\xff\xfe", "{}", "日本", "a\x00b"} {
			r.clientID = &name
			group := name + unique(t)
			r.coordinator(group)
			code(t, fmt.Sprintf("commit of group %q", name), outsider(r, group).commit(commit{topic, 0, int64(i), -1, ""})[0], 0)
		}
		r.metadata(topic) // its own series
		before := len(scrape(t, httpAddr))
		for i := range 10_000 {
			r.clientID = ptr(fmt.Sprint("client-", i))
			r.metadata(topic)
		}
		if after := len(scrape(t, httpAddr)); after > before+10 {
			t.Errorf("10,000 client ids took the page from %d to %d series", before, after)
		}
	})
	t.Run("B022 B027 one warning, escaped", func(t *testing.T) {
		r := dial(t, b.addr)
		top := r.versions()[3][1]
		r.clientID = ptr("evil\ntime=now level=ERROR msg=\"all is lost\" \x1b[31m")
		f := header(3, top+1, 9, r.clientID, true, nil)
		f = append(f, 0, 0, 0, 0)
		f[3] = byte(len(f) - 4)
		from, err := os.ReadFile(b.outPath())
		if err != nil {
			t.Fatal(err)
		}
		r.write(f)
		if _, err := r.closed(5 * time.Second); err != nil {
			t.Error(err)
		}
		eventually(t, 5*time.Second, "the warning", func() (string, bool) {
			all, _ := os.ReadFile(b.outPath())
			said := string(all[len(from):])
			return said, strings.HasSuffix(said, "\n")
		})
		all, _ := os.ReadFile(b.outPath())
		said := string(all[len(from):])
		for _, want := range []string{"WARN", `evil\ntime=now`, r.c.LocalAddr().String(), "Metadata", fmt.Sprint(top + 1), fmt.Sprint(top)} {
			if !strings.Contains(said, want) {
				t.Errorf("the warning lacks %s: %s", want, said)
			}
		}
		if strings.Count(said, "\n") != 1 || strings.Contains(said, "\x1b") {
			t.Errorf("not one line of plain text: %q", said)
		}
	})
}
