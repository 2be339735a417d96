package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Sources are asked when Prometheus scrapes. Nil functions are left out. They
// run on the scraper's goroutine and must not wait for long.
type Sources struct {
	Broker     func() Broker
	FrameBytes func() (used, max int64)
	LogFiles   func() (open, max int) // files of logs; max 0: no bound
	// Clients counts open connections by client software name and version, as
	// the clients gave them.
	Clients    func(yield func(name, version string, n int) bool)
	Partitions func(yield func(Partition) bool)
	Groups     func(yield func(Group) bool)
}

// Broker is the state of the broker as a whole.
type Broker struct {
	State                                                        int
	Partitions, Leaders, UnderReplicated, UnderMinISR, AtMinISR  int
	OfflineReplicas, Reassigning, OfflineDirs                    int
	WaitingProduce, WaitingFetch                                 int
	ActiveController                                             bool
	ClusterOffline, ClusterTopics, ClusterPartitions, Imbalanced int // of the active controller
	ActiveBrokers, FencedBrokers                                 int
	Groups, GroupOffsets                                         int
	GroupsByState                                                map[string]int
}

// Partition is one replica on this broker.
type Partition struct {
	Topic           string
	Partition       int32
	Leader          bool
	Start, End      int64
	HighWatermark   int64
	Bytes, Segments int64
}

// Group is one group that this broker coordinates.
type Group struct {
	Name    string
	Members int
	Offsets []GroupOffset
}

// GroupOffset is one committed offset. Lag below 0 is unknown and left out.
type GroupOffset struct {
	Topic     string
	Partition int32
	Offset    int64
	Lag       int64
}

// Attach sets what is asked at a scrape, once the broker has it.
func (s *Set) Attach(src Sources) {
	if s != nil {
		s.sources.Store(&src)
	}
}

// scrape is the collector of what Sources know.
type scrape struct{ set *Set }

var scraped = []*family{
	fClients, fFrameMemory, fFrameMemoryMax, fLogFiles, fLogFilesMax,
	fPartitions, fLeaders, fUnderReplicated, fUnderMinISR, fAtMinISR, fOfflineReplicas, fReassigning,
	fPurgatory, fBrokerState, fController, fOfflineParts, fGlobalTopics, fGlobalParts, fImbalance, fActiveBrokers, fFencedBrokers,
	fLogSize, fLogStart, fLogEnd, fLogSegments, fOfflineDirs, fTopicOffset, fTopicOldest,
	fGroups, fGroupOffsets, fGroupState, fGroupOffset, fGroupLag, fGroupMembers,
}

func (c scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range scraped {
		ch <- f.desc
	}
}

func (c scrape) Collect(ch chan<- prometheus.Metric) {
	src := c.set.sources.Load()
	if src == nil {
		return
	}
	emit := func(f *family, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(v), labels...)
	}
	leave := func(n int) { c.set.leftOut.Add(float64(n)) }
	if src.FrameBytes != nil {
		used, most := src.FrameBytes()
		emit(fFrameMemory, used)
		emit(fFrameMemoryMax, most)
	}
	if src.LogFiles != nil {
		open, most := src.LogFiles()
		emit(fLogFiles, int64(open))
		emit(fLogFilesMax, int64(most))
	}
	if src.Broker != nil {
		c.broker(src.Broker(), emit)
	}
	if src.Clients != nil {
		// Names that differ as sent may be equal as labels only by a collision of
		// hashes; adding them up keeps the page legal even then.
		counts := make(map[[2]string]int)
		src.Clients(func(name, version string, n int) bool {
			k := [2]string{Label(name), Label(version)}
			if _, ok := counts[k]; !ok && len(counts) >= c.set.maxLabels {
				leave(1)
				k = [2]string{"_other", ""}
			}
			counts[k] += n
			return true
		})
		for k, n := range counts {
			emit(fClients, int64(n), k[0], k[1])
		}
	}
	if src.Partitions != nil {
		left := c.set.maxLabels
		src.Partitions(func(p Partition) bool {
			if left--; left < 0 {
				leave(1)
				return true
			}
			topic, n := Label(p.Topic), strconv.Itoa(int(p.Partition))
			emit(fLogSize, p.Bytes, topic, n)
			emit(fLogStart, p.Start, topic, n)
			emit(fLogEnd, p.End, topic, n)
			emit(fLogSegments, p.Segments, topic, n)
			if p.Leader {
				emit(fTopicOffset, p.HighWatermark, topic, n)
				emit(fTopicOldest, p.Start, topic, n)
			}
			return true
		})
	}
	if src.Groups != nil {
		c.groups(src.Groups, emit, leave)
	}
}

func (c scrape) broker(b Broker, emit func(*family, int64, ...string)) {
	controller := int64(0)
	if b.ActiveController {
		controller = 1
	}
	emit(fBrokerState, int64(b.State))
	emit(fPartitions, int64(b.Partitions))
	emit(fLeaders, int64(b.Leaders))
	emit(fUnderReplicated, int64(b.UnderReplicated))
	emit(fUnderMinISR, int64(b.UnderMinISR))
	emit(fAtMinISR, int64(b.AtMinISR))
	emit(fOfflineReplicas, int64(b.OfflineReplicas))
	emit(fReassigning, int64(b.Reassigning))
	emit(fOfflineDirs, int64(b.OfflineDirs))
	emit(fPurgatory, int64(b.WaitingProduce), "Produce")
	emit(fPurgatory, int64(b.WaitingFetch), "Fetch")
	emit(fController, controller)
	emit(fOfflineParts, int64(b.ClusterOffline))
	emit(fGlobalTopics, int64(b.ClusterTopics))
	emit(fGlobalParts, int64(b.ClusterPartitions))
	emit(fImbalance, int64(b.Imbalanced))
	emit(fActiveBrokers, int64(b.ActiveBrokers))
	emit(fFencedBrokers, int64(b.FencedBrokers))
	emit(fGroups, int64(b.Groups))
	emit(fGroupOffsets, int64(b.GroupOffsets))
	for state, n := range b.GroupsByState {
		emit(fGroupState, int64(n), state)
	}
}

func (c scrape) groups(each func(func(Group) bool), emit func(*family, int64, ...string), leave func(int)) {
	left := c.set.maxLabels
	seen := make(map[string]bool)
	each(func(g Group) bool {
		name := Label(g.Name)
		cost := 1 + len(g.Offsets)
		// A group is shown whole or not at all: half a lag misleads. seen guards
		// against two names that became one.
		if cost > left || seen[name] {
			leave(cost)
			return true
		}
		left -= cost
		seen[name] = true
		emit(fGroupMembers, int64(g.Members), name)
		for _, o := range g.Offsets {
			topic, n := Label(o.Topic), strconv.Itoa(int(o.Partition))
			emit(fGroupOffset, o.Offset, name, topic, n)
			if o.Lag >= 0 {
				emit(fGroupLag, o.Lag, name, topic, n)
			}
		}
		return true
	})
}
