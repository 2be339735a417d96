package kafkatools

import (
	"slices"
	"time"
)

// perfStats counts as kafka-producer-perf-test does: latencies in whole
// milliseconds, every so many-th kept for the percentiles. One goroutine at a time.
type perfStats struct {
	c        *call
	steady   bool
	quiet    bool  // windows are not printed
	interval int64 // ms
	start    time.Time
	every    int64
	kept     []int32

	count, bytes, latency, most int64
	seen                        int64 // records, for every

	winStart                            time.Time
	winCount, winBytes, winLat, winMost int64
}

// samples is how many latencies are kept at most, about.
const samples = 500_000

func newPerfStats(c *call, records, interval int64, steady bool) *perfStats {
	now := time.Now()
	every := max(1, records/min(records, samples))
	return &perfStats{c: c, steady: steady, interval: interval, start: now, winStart: now, every: every, kept: make([]int32, 0, records/every+1)}
}

// record counts one acknowledged record.
func (s *perfStats) record(latencyMs int64, size int, now time.Time) {
	s.count++
	s.bytes += int64(size)
	s.latency += latencyMs
	s.most = max(s.most, latencyMs)
	s.winCount++
	s.winBytes += int64(size)
	s.winLat += latencyMs
	s.winMost = max(s.winMost, latencyMs)
	if s.seen%s.every == 0 {
		s.kept = append(s.kept, int32(latencyMs))
	}
	s.seen++
	if elapsed := now.UnixMilli() - s.winStart.UnixMilli(); elapsed >= s.interval {
		if s.steady && s.count == s.winCount {
			s.c.printf("In steady state.\n")
		}
		if !s.quiet {
			s.window(elapsed)
		}
		s.winStart, s.winCount, s.winBytes, s.winLat, s.winMost = now, 0, 0, 0, 0
	}
}

func (s *perfStats) window(elapsedMs int64) {
	e := float64(elapsedMs)
	s.c.printf("%d records sent, %s records/sec (%s MB/sec), %s ms avg latency, %s ms max latency.\n", s.winCount,
		fixed(1000*float64(s.winCount)/e, 1), fixed(1000*float64(s.winBytes)/e/(1024*1024), 2),
		fixed(float64(s.winLat)/float64(s.winCount), 1), fixed(float64(s.winMost), 1))
}

// total prints the last line.
func (s *perfStats) total() {
	e := float64(max(1, time.Now().UnixMilli()-s.start.UnixMilli()))
	slices.Sort(s.kept)
	at := func(p float64) int32 {
		if len(s.kept) == 0 {
			return 0
		}
		return s.kept[int(p*float64(len(s.kept)))]
	}
	mean := 0.0
	if s.count > 0 {
		mean = float64(s.latency) / float64(s.count)
	}
	state := ""
	if s.steady {
		state = " steady state"
	}
	s.c.printf("%d%s records sent, %s records/sec (%s MB/sec), %s ms avg latency, %s ms max latency, %d ms 50th, %d ms 95th, %d ms 99th, %d ms 99.9th.\n",
		s.count, state, fixed(1000*float64(s.count)/e, 6), fixed(1000*float64(s.bytes)/e/(1024*1024), 2),
		fixed(mean, 2), fixed(float64(s.most), 2), at(0.5), at(0.95), at(0.99), at(0.999))
}

// throttle holds a loop to a rate as Kafka's tools do: by the average since the
// start, in pauses of 2 ms and more.
type throttle struct {
	rate    float64 // records a second; below 0 none, 0 stops
	start   time.Time
	each    time.Duration
	deficit time.Duration
}

func newThrottle(rate float64, now time.Time) *throttle {
	t := &throttle{rate: rate, start: now}
	if rate > 0 {
		t.each = time.Duration(float64(time.Second) / rate)
	}
	return t
}

// should says that i records by now are too many.
func (t *throttle) should(i int64, now time.Time) bool {
	if t.rate < 0 {
		return false
	}
	ms := now.UnixMilli() - t.start.UnixMilli()
	return t.rate == 0 || ms > 0 && float64(i)/(float64(ms)/1000) > t.rate
}

// wait pauses for one record; false when the tool is interrupted.
func (t *throttle) wait(c *call) bool {
	if t.rate == 0 {
		<-c.ctx.Done()
		return false
	}
	if t.deficit += t.each; t.deficit < 2*time.Millisecond {
		return true
	}
	begun := time.Now()
	ok := c.sleep(t.deficit)
	t.deficit -= time.Since(begun)
	return ok
}

// metric is one line of --print-metrics.
type metric struct {
	group, name string
	value       float64
}

// printMetrics prints in the form of Kafka's tools. The client counts other
// things than Java's does: names it shares are printed, no others.
func printMetrics(c *call, all []metric, clientID string) {
	width := 0
	var names []string
	for _, m := range all {
		n := m.group + ":" + m.name + ":{client-id=" + clientID + "}"
		names = append(names, n)
		width = max(width, len(n))
	}
	c.printf("\n%-*s   %s\n", width, "Metric Name", "Value")
	for i, m := range all {
		c.printf("%-*s : %s\n", width, names[i], fixed(m.value, 3))
	}
}
