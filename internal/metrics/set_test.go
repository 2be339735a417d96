package metrics

import (
	"flag"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Shown here: the page holds what was counted, under the names that
// docs/metrics.md lists; it parses whatever clients are called; nothing panics
// without a registry.

var rewrite = flag.Bool("rewrite", false, "write docs/metrics.md anew")

func TestDocs(t *testing.T) {
	const path = "../../docs/metrics.md"
	want := Markdown()
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("%s is out of date: run go test ./internal/metrics -run TestDocs -rewrite", path)
	}
}

// page scrapes and parses; a page that does not parse fails the test.
func page(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("/metrics: %d %s", rec.Code, rec.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	fams, err := parser.TextToMetricFamilies(rec.Body)
	if err != nil {
		t.Fatalf("page does not parse: %v", err)
	}
	out := make(map[string]float64)
	for name, f := range fams {
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += "," + l.GetName() + "=" + l.GetValue()
			}
			switch {
			case m.Counter != nil:
				out[key] = m.Counter.GetValue()
			case m.Gauge != nil:
				out[key] = m.Gauge.GetValue()
			case m.Histogram != nil:
				out[key] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return out
}

// Field cases B241 (no commit, no lag) and B243 (series go), the room's part.
func TestCounts(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := New(reg)
	topic := s.Topic("orders")
	topic.Produced(3, 300)
	s.Topic("orders").Produced(1, 100)
	s.Topic("other").Fetched(7)
	api := s.API("Produce", 0, 13)
	api.Done(9, Request{RequestBytes: 10, ResponseBytes: 20, Total: time.Millisecond})
	api.Done(99, Request{})
	l := s.Listener("PLAINTEXT")
	l.Opened()
	l.Opened()
	l.Closed()
	l.Refused("max.connections")
	s.CleanerLooked(time.Now().Add(-time.Minute), .756, []Uncleanable{{"/a", 2, 500}, {"/b", 0, 0}})
	s.Compacted(1000, 333, .5, 90*time.Second)
	s.Error("Produce", "NOT_LEADER_OR_FOLLOWER")
	s.Attach(Sources{
		Broker:     func() Broker { return Broker{State: 3, Leaders: 2, ActiveController: true} },
		FrameBytes: func() (int64, int64) { return 1, 2 },
		LogFiles:   func() (int, int) { return 3, 4 },
		Clients:    func(yield func(string, string, int) bool) { yield("apache-kafka-java", "4.4.0", 2) },
		Partitions: func(yield func(Partition) bool) {
			yield(Partition{Topic: "orders", Partition: 1, Leader: true, Start: 5, End: 9, HighWatermark: 8, Bytes: 400, Segments: 1})
		},
		Groups: func(yield func(Group) bool) {
			yield(Group{Name: "g", Members: 1, Offsets: []GroupOffset{{"orders", 1, 6, 2}, {"orders", 0, 6, -1}}})
		},
	})
	p := page(t, reg)
	for key, want := range map[string]float64{
		"kafka_server_brokertopicmetrics_messagesin_total,topic=orders":                          4,
		"kafka_server_brokertopicmetrics_messagesin_total,topic=":                                4,
		"kafka_server_brokertopicmetrics_bytesin_total,topic=orders":                             400,
		"kafka_server_brokertopicmetrics_bytesout_total,topic=":                                  7,
		"kafka_network_requestmetrics_requests_total,request=Produce,version=9":                  1,
		"kafka_network_requestmetrics_totaltimems,request=Produce":                               2,
		"kafka_network_requestmetrics_requestbytes_total,request=Produce":                        10,
		"kafka_network_requestmetrics_errors_total,error=NOT_LEADER_OR_FOLLOWER,request=Produce": 1,
		"kafka_server_socket_server_metrics_connection_count,listener=PLAINTEXT":                 1,
		"weir_connections_refused_total,listener=PLAINTEXT,reason=max.connections":               1,
		"kafka_server_replicamanager_leadercount":                                                2,
		"kafka_controller_kafkacontroller_activecontrollercount":                                 1,
		"kafka_log_log_size,partition=1,topic=orders":                                            400,
		"kafka_topic_partition_current_offset,partition=1,topic=orders":                          8,
		"kafka_consumergroup_lag,consumergroup=g,partition=1,topic=orders":                       2,
		"kafka_consumergroup_current_offset,consumergroup=g,partition=0,topic=orders":            6,
		"weir_client_connections,software=apache-kafka-java,version=4.4.0":                       2,
		"kafka_log_logcleanermanager_uncleanable_partitions_count,logdirectory=/a":               2,
		"kafka_log_logcleanermanager_uncleanable_partitions_count,logdirectory=/b":               0,
		"kafka_log_logcleanermanager_uncleanable_bytes,logdirectory=/a":                          500,
		"kafka_log_logcleanermanager_max_dirty_percent":                                          75,
		"kafka_log_logcleaner_cleaner_recopy_percent":                                            33,
		"kafka_log_logcleaner_max_clean_time_secs":                                               90,
		"kafka_log_logcleaner_max_buffer_utilization_percent":                                    50,
		"weir_log_open_files":     3,
		"weir_log_open_files_max": 4,
		"weir_frame_memory_bytes": 1,
	} {
		if got, ok := p[key]; !ok || got != want {
			t.Errorf("%s = %v (there: %v), want %v", key, got, ok, want)
		}
	}
	if ms := p["kafka_log_logcleanermanager_time_since_last_run_ms"]; ms < 60_000 || ms > 120_000 {
		t.Errorf("the cleaner looked %v ms ago, want a minute", ms)
	}
	if _, ok := p["kafka_consumergroup_lag,consumergroup=g,partition=0,topic=orders"]; ok {
		t.Error("an unknown lag is shown")
	}
	s.DropTopic("orders")
	if _, ok := page(t, reg)["kafka_server_brokertopicmetrics_bytesin_total,topic=orders"]; ok {
		t.Error("a dropped topic is still shown")
	}
	topic.Produced(1, 1) // an old handle counts on, unseen
}

// Every family that the page shows is declared, and every declared one can be
// shown.
func TestAllFamiliesRegistered(t *testing.T) {
	reg := prometheus.NewRegistry()
	New(reg)
	for _, f := range families {
		again := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.name, Help: f.help}, f.labels)
		if err := reg.Register(again); err == nil {
			t.Errorf("%s is documented but not registered", f.name)
		}
	}
}

// Field case B246.
func TestHostileLabels(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := New(reg)
	s.maxLabels = 100
	long := strings.Repeat("x", 300)
	names := []string{`a"b`, `a\b`, "a\nb", "", "\xff\xfe", "\xff\xfd", long + "1", long + "2", strings.Repeat("é", 200), strings.Repeat("\xff", 300), "a\x00b", "_other"}
	s.Attach(Sources{
		Clients: func(yield func(string, string, int) bool) {
			for i := range s.maxLabels + 500 {
				yield("client"+strconv.Itoa(i), "\xff", 1)
			}
			for _, n := range names {
				yield(n, n, 1)
			}
		},
		Groups: func(yield func(Group) bool) {
			for _, n := range names {
				yield(Group{Name: n, Offsets: []GroupOffset{{"t", 0, 1, 1}}})
			}
			yield(Group{Name: "twice"})
			yield(Group{Name: "twice"})
		},
	})
	p := page(t, reg)
	clients, groups := 0, 0
	for key := range p {
		if strings.HasPrefix(key, "weir_client_connections,") {
			clients++
		}
		if strings.HasPrefix(key, "kafka_consumergroup_members,") {
			groups++
		}
	}
	if clients != s.maxLabels+1 {
		t.Errorf("%d client series, want %d and one for the rest", clients, s.maxLabels)
	}
	if groups != len(names)+1 {
		t.Errorf("%d group series, want %d: different names must stay different", groups, len(names)+1)
	}
	if p["weir_client_connections,software=_other,version="] != 500+float64(len(names)) {
		t.Errorf("rest counted as %v", p["weir_client_connections,software=_other,version="])
	}
	for range s.maxLabels + 10 {
		s.Topic(strconv.Itoa(len(s.topics)))
	}
	if n := len(s.topics); n != s.maxLabels {
		t.Errorf("%d topics held, want at most %d", n, s.maxLabels)
	}
	page(t, reg)
}

func TestLabel(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := Label(in); got != want {
			t.Errorf("Label(%q) = %q, want %q", in, got, want)
		}
	}
	f("", "")
	f("orders", "orders")
	f(strings.Repeat("a", 128), strings.Repeat("a", 128))
	for _, s := range []string{strings.Repeat("a", 129), "\xff", strings.Repeat("é", 100)} {
		if got := Label(s); len(got) > labelMax || got == s || !strings.Contains(got, "~") {
			t.Errorf("Label(%q) = %q", s, got)
		}
	}
}

func TestNilSet(t *testing.T) {
	var s *Set
	s.Build("1")
	s.Error("a", "b")
	s.ReplicatedIn(1)
	s.ReplicatedOut(1)
	s.ISRShrunk()
	s.ISRExpanded()
	s.LeaderElected(true)
	s.Rebalanced()
	s.Flushed(1)
	s.Appended(1)
	s.DropTopic("t")
	s.Attach(Sources{})
	topic := s.Topic("t")
	topic.Produced(1, 1)
	topic.Fetched(1)
	topic.Rejected(1)
	topic.Converted(1)
	topic.ProduceRequest()
	topic.FetchRequest()
	topic.ProduceFailed()
	topic.FetchFailed()
	s.API("a", 0, 1).Done(0, Request{})
	l := s.Listener("l")
	l.Opened()
	l.Closed()
	l.Refused("r")
	l.Killed("k")
}

func BenchmarkDone(b *testing.B) {
	a := New(prometheus.NewRegistry()).API("Produce", 0, 13)
	r := Request{RequestBytes: 1, ResponseBytes: 1, Local: 30 * time.Microsecond, Total: 50 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		a.Done(9, r)
	}
}
