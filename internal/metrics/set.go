package metrics

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Set is the metrics of one broker. A nil *Set counts nothing.
type Set struct {
	messagesIn, bytesIn, bytesOut, bytesRejected, totalProduce, totalFetch,
	failedProduce, failedFetch, conversions *prometheus.CounterVec
	requests, errors, requestBytes, responseBytes *prometheus.CounterVec
	totalTime, localTime, remoteTime              *timesVec
	connections                                   *prometheus.GaugeVec
	connCreated, connClosed                       *prometheus.CounterVec
	connRefused, connKilled                       *prometheus.CounterVec
	replicationIn, replicationOut                 prometheus.Counter
	isrShrinks, isrExpands, elections, unclean    prometheus.Counter
	rebalances, leftOut                           prometheus.Counter
	flushTime, appendTime                         prometheus.Histogram
	build                                         *prometheus.GaugeVec
	cleaner                                       cleanerGauges
	cleanerRun                                    atomic.Int64 // when it last looked for work, in ms

	all topicCounters // topic=""

	maxLabels int // MaxLabels; tests need fewer
	sources   atomic.Pointer[Sources]

	mu     sync.Mutex
	topics map[string]*Topic
	other  *Topic // for topics beyond MaxLabels
}

var flushBuckets = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000}

var secondsBuckets = []float64{5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .1, .5, 1, 5}

// New registers everything with reg, Go runtime and process metrics included.
// It panics when reg holds one of the names already.
func New(reg prometheus.Registerer) *Set {
	s := &Set{topics: make(map[string]*Topic), maxLabels: MaxLabels}
	counters := func(f *family) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.name, Help: f.help}, f.labels)
		reg.MustRegister(v)
		return v
	}
	one := func(f *family) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: f.name, Help: f.help})
		reg.MustRegister(c)
		return c
	}
	gauges := func(f *family) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.name, Help: f.help}, f.labels)
		reg.MustRegister(v)
		return v
	}
	timing := func(f *family, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: f.name, Help: f.help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	s.messagesIn, s.bytesIn, s.bytesOut, s.bytesRejected = counters(fMessagesIn), counters(fBytesIn), counters(fBytesOut), counters(fBytesRejected)
	s.totalProduce, s.totalFetch = counters(fTotalProduce), counters(fTotalFetch)
	s.failedProduce, s.failedFetch, s.conversions = counters(fFailedProduce), counters(fFailedFetch), counters(fConversions)
	s.requests, s.errors = counters(fRequests), counters(fErrors)
	s.requestBytes, s.responseBytes = counters(fRequestBytes), counters(fResponseBytes)
	s.totalTime, s.localTime, s.remoteTime = newTimesVec(reg, fTotalTime), newTimesVec(reg, fLocalTime), newTimesVec(reg, fRemoteTime)
	s.connections = gauges(fConnections)
	s.connCreated, s.connClosed, s.connRefused, s.connKilled = counters(fConnCreated), counters(fConnClosed), counters(fConnRefused), counters(fConnKilled)
	s.replicationIn, s.replicationOut = one(fReplicationIn), one(fReplicationOut)
	s.isrShrinks, s.isrExpands, s.elections, s.unclean = one(fISRShrinks), one(fISRExpands), one(fElections), one(fUnclean)
	s.rebalances, s.leftOut = one(fRebalances), one(fLeftOut)
	s.flushTime, s.appendTime = timing(fFlushTime, flushBuckets), timing(fAppendTime, secondsBuckets)
	s.build = gauges(fBuild)
	number := func(f *family) prometheus.Gauge { return gauges(f).WithLabelValues() }
	s.cleaner = cleanerGauges{gauges(fUncleanable), gauges(fUncleanBytes), number(fMaxDirty), number(fRecopy), number(fCleanBuffer), number(fCleanTime), number(fDeadCleaners)}
	s.cleanerRun.Store(time.Now().UnixMilli())
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: fCleanerRun.name, Help: fCleanerRun.help}, func() float64 {
		return float64(max(time.Now().UnixMilli()-s.cleanerRun.Load(), 0))
	}))
	s.all = s.counters("")
	reg.MustRegister(scrape{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Build names the running version.
func (s *Set) Build(version string) {
	if s != nil {
		s.build.WithLabelValues(Label(version)).Set(1)
	}
}

// Error counts an error code by its name ("NONE" included, as Kafka does) in a
// response to a request of that name.
func (s *Set) Error(request, code string) {
	if s != nil {
		s.errors.WithLabelValues(request, code).Inc()
	}
}

// ReplicatedIn counts bytes fetched as a follower.
func (s *Set) ReplicatedIn(bytes int) {
	if s != nil {
		s.replicationIn.Add(float64(bytes))
	}
}

// ReplicatedOut counts bytes sent to followers.
func (s *Set) ReplicatedOut(bytes int) {
	if s != nil {
		s.replicationOut.Add(float64(bytes))
	}
}

// ISRShrunk and ISRExpanded count changes of in-sync sets.
func (s *Set) ISRShrunk() {
	if s != nil {
		s.isrShrinks.Inc()
	}
}

// ISRExpanded counts a replica that came back.
func (s *Set) ISRExpanded() {
	if s != nil {
		s.isrExpands.Inc()
	}
}

// LeaderElected counts leader changes.
func (s *Set) LeaderElected(unclean bool) {
	if s == nil {
		return
	}
	s.elections.Inc()
	if unclean {
		s.unclean.Inc()
	}
}

// Rebalanced counts a completed rebalance.
func (s *Set) Rebalanced() {
	if s != nil {
		s.rebalances.Inc()
	}
}

// Flushed takes the duration of an fsync.
func (s *Set) Flushed(d time.Duration) {
	if s != nil {
		s.flushTime.Observe(ms(d))
	}
}

// Appended takes the duration of an append to a partition.
func (s *Set) Appended(d time.Duration) {
	if s != nil {
		s.appendTime.Observe(d.Seconds())
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Topic counts what happens to one topic. Hold it with the topic. A nil *Topic
// counts nothing.
type Topic struct {
	all *topicCounters
	topicCounters
}

type topicCounters struct {
	messagesIn, bytesIn, bytesOut, bytesRejected, totalProduce, totalFetch,
	failedProduce, failedFetch, conversions prometheus.Counter
}

func (s *Set) counters(topic string) topicCounters {
	return topicCounters{
		messagesIn: s.messagesIn.WithLabelValues(topic), bytesIn: s.bytesIn.WithLabelValues(topic),
		bytesOut: s.bytesOut.WithLabelValues(topic), bytesRejected: s.bytesRejected.WithLabelValues(topic),
		totalProduce: s.totalProduce.WithLabelValues(topic), totalFetch: s.totalFetch.WithLabelValues(topic),
		failedProduce: s.failedProduce.WithLabelValues(topic), failedFetch: s.failedFetch.WithLabelValues(topic),
		conversions: s.conversions.WithLabelValues(topic),
	}
}

// Topic returns the counters of a topic, the same for the same name until
// DropTopic.
func (s *Set) Topic(name string) *Topic {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name]; t != nil {
		return t
	}
	if len(s.topics) >= s.maxLabels {
		s.leftOut.Inc()
		if s.other == nil {
			s.other = &Topic{all: &s.all, topicCounters: s.counters("_other")}
		}
		return s.other
	}
	t := &Topic{all: &s.all, topicCounters: s.counters(Label(name))}
	s.topics[name] = t
	return t
}

// DropTopic removes a deleted topic's series.
func (s *Set) DropTopic(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[name] == nil {
		return
	}
	delete(s.topics, name)
	for _, v := range []*prometheus.CounterVec{s.messagesIn, s.bytesIn, s.bytesOut, s.bytesRejected, s.totalProduce,
		s.totalFetch, s.failedProduce, s.failedFetch, s.conversions} {
		v.DeleteLabelValues(Label(name))
	}
}

// Produced counts one appended batch.
func (t *Topic) Produced(records, bytes int) {
	if t == nil {
		return
	}
	t.messagesIn.Add(float64(records))
	t.bytesIn.Add(float64(bytes))
	t.all.messagesIn.Add(float64(records))
	t.all.bytesIn.Add(float64(bytes))
}

// Fetched counts bytes sent to a consumer.
func (t *Topic) Fetched(bytes int64) {
	if t == nil {
		return
	}
	t.bytesOut.Add(float64(bytes))
	t.all.bytesOut.Add(float64(bytes))
}

// Rejected counts a batch that was too large.
func (t *Topic) Rejected(bytes int) {
	if t == nil {
		return
	}
	t.bytesRejected.Add(float64(bytes))
	t.all.bytesRejected.Add(float64(bytes))
}

// Converted counts records that had to be written anew.
func (t *Topic) Converted(records int) {
	if t == nil {
		return
	}
	t.conversions.Add(float64(records))
	t.all.conversions.Add(float64(records))
}

// ProduceRequest counts a request that produces to the topic.
func (t *Topic) ProduceRequest() {
	if t != nil {
		t.totalProduce.Inc()
		t.all.totalProduce.Inc()
	}
}

// FetchRequest counts a request that fetches from the topic.
func (t *Topic) FetchRequest() {
	if t != nil {
		t.totalFetch.Inc()
		t.all.totalFetch.Inc()
	}
}

// ProduceFailed counts a partition of a produce request that failed.
func (t *Topic) ProduceFailed() {
	if t != nil {
		t.failedProduce.Inc()
		t.all.failedProduce.Inc()
	}
}

// FetchFailed counts a partition of a fetch request that failed.
func (t *Topic) FetchFailed() {
	if t != nil {
		t.failedFetch.Inc()
		t.all.failedFetch.Inc()
	}
}

// API counts the requests of one API in all its versions. Hold it. A nil *API
// counts nothing.
type API struct {
	set      *Set
	name     string
	min      int16
	versions []atomic.Pointer[prometheus.Counter] // resolved when first used
	times    atomic.Pointer[apiTimes]
}

type apiTimes struct {
	total, local, remote    *times
	requestBytes, respBytes prometheus.Counter
}

// Request is the account of one request. Sizes count whole frames in bytes.
type Request struct {
	RequestBytes, ResponseBytes int64
	// Local is the time in which it was worked on, Remote what it waited for
	// afterwards, Total from its arrival to the hand-over of its response.
	Local, Remote, Total time.Duration
}

// API returns counters for an API's versions min to max. Series appear when
// first used.
func (s *Set) API(name string, min, max int16) *API {
	if s == nil || max < min {
		return nil
	}
	return &API{set: s, name: name, min: min, versions: make([]atomic.Pointer[prometheus.Counter], int(max)-int(min)+1)}
}

// Done counts one answered request. It is called for every request of a broker.
func (a *API) Done(version int16, r Request) {
	if a == nil {
		return
	}
	t := a.times.Load()
	if t == nil {
		t = &apiTimes{
			total: a.set.totalTime.with(a.name), local: a.set.localTime.with(a.name),
			remote:       a.set.remoteTime.with(a.name),
			requestBytes: a.set.requestBytes.WithLabelValues(a.name), respBytes: a.set.responseBytes.WithLabelValues(a.name),
		}
		a.times.Store(t)
	}
	if i := int(version) - int(a.min); i >= 0 && i < len(a.versions) {
		c := a.versions[i].Load()
		if c == nil {
			n := a.set.requests.WithLabelValues(a.name, strconv.Itoa(int(version)))
			c = &n
			a.versions[i].Store(c)
		}
		(*c).Inc()
	}
	t.requestBytes.Add(float64(r.RequestBytes))
	t.respBytes.Add(float64(r.ResponseBytes))
	t.total.observe(r.Total)
	t.local.observe(r.Local)
	t.remote.observe(r.Remote)
}

// Listener counts the connections of one listener. Hold it. A nil *Listener
// counts nothing.
type Listener struct {
	set     *Set
	name    string
	open    prometheus.Gauge
	created prometheus.Counter
	closed  prometheus.Counter
}

// Listener returns the counters of a listener.
func (s *Set) Listener(name string) *Listener {
	if s == nil {
		return nil
	}
	l := Label(name)
	return &Listener{set: s, name: l, open: s.connections.WithLabelValues(l), created: s.connCreated.WithLabelValues(l), closed: s.connClosed.WithLabelValues(l)}
}

// Opened counts an accepted connection.
func (l *Listener) Opened() {
	if l != nil {
		l.open.Inc()
		l.created.Inc()
	}
}

// Closed counts the end of an accepted connection.
func (l *Listener) Closed() {
	if l != nil {
		l.open.Dec()
		l.closed.Inc()
	}
}

// Refused counts a connection that was not accepted. Reasons are constants.
func (l *Listener) Refused(reason string) {
	if l != nil {
		l.set.connRefused.WithLabelValues(l.name, reason).Inc()
	}
}

// Killed counts a connection the broker ended. Reasons are constants.
func (l *Listener) Killed(reason string) {
	if l != nil {
		l.set.connKilled.WithLabelValues(l.name, reason).Inc()
	}
}
