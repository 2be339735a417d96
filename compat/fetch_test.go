//go:build compat

package compat

// Shows: what a reader gets, when, and with which numbers beside it. Cases B002,
// B003, B006, B018, B042, B045, B047, B048, B051, B055 and B058.

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestFetch(t *testing.T) {
	b := sharedBroker(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *rawConn)
	}{
		{"every version", fetchAll},
		{"B002 first batch bigger than the limits", bigFirstBatch},
		{"B003 B053 empty is not null", emptyNotNull},
		{"B006 look-up by time", lookUpByTime},
		{"B018 no throttle time", noThrottle},
		{"B042 min bytes and max wait", longPoll},
		{"B045 watermarks beside the data", watermarks},
		{"B047 byte limits", byteLimits},
		{"B048 sessions", sessions},
		{"B051 forgetting nothing", forgetNothing},
		{"B055 leader epochs", leaderEpochs},
		{"B058 special timestamps", specialTimestamps},
		{"middle of a batch", middleOfBatch},
		{"out of range", outOfRange},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, dial(t, b.addr)) })
	}
}

func fetchAll(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	id := r.topicID(topic)
	for i := range 3 {
		r.put(topic, batchSpec{recs: values(2, 10+i)})
	}
	for v := int16(0); v <= r.newest(kmsg.Fetch, 18); v++ {
		if !r.offers(kmsg.Fetch, v) {
			continue
		}
		p := at(topic, 0, 2)
		p.id = id
		resp := ask[*kmsg.FetchResponse](r, fetchRequest(v, 100, 1, 1<<20, p))
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			t.Fatalf("v%d: %+v", v, resp)
		}
		got := resp.Topics[0].Partitions[0]
		if resp.ErrorCode != 0 || got.ErrorCode != 0 || got.HighWatermark != 6 || v >= 4 && got.LastStableOffset != 6 || v >= 5 && got.LogStartOffset != 0 {
			t.Errorf("v%d: error %d %d, watermark %d, LSO %d, start %d", v, resp.ErrorCode, got.ErrorCode, got.HighWatermark, got.LastStableOffset, got.LogStartOffset)
		}
		if v >= 4 {
			if s := readBatches(t, got.RecordBatches); len(s) != 2 || s[0].base != 2 || s[1].last != 5 {
				t.Errorf("v%d: %v", v, s)
			}
		}
	}
	if v := r.newest(kmsg.Fetch, 18); v >= 13 {
		p := at("", 0, 0)
		p.id = [16]byte{7}
		resp := ask[*kmsg.FetchResponse](r, fetchRequest(v, 100, 1, 1<<20, p))
		code(t, "unknown topic id", resp.Topics[0].Partitions[0].ErrorCode, 100)
	}
	code(t, "unknown topic", r.fetch(unique(t), 0).ErrorCode, 3)
}

func bigFirstBatch(t *testing.T, r *rawConn) {
	topic := r.topic(2, "max.message.bytes=8000000")
	big := batchSpec{recs: values(1, 5_000_000)}.bytes()
	resp := ask[*kmsg.ProduceResponse](r, produceRequest(8, 1, topic, big, big))
	for _, p := range resp.Topics[0].Partitions {
		code(t, "produce", p.ErrorCode, 0)
	}
	p0, p1 := part{topic, [16]byte{}, 0, 0, 1, -1}, part{topic, [16]byte{}, 1, 0, 1, -1}
	for _, order := range [][]part{{p0, p1}, {p1, p0}} {
		resp := ask[*kmsg.FetchResponse](r, fetchRequest(12, 500, 1, 1, order...))
		parts := resp.Topics[0].Partitions
		if len(parts) != 2 || parts[0].Partition != order[0].p {
			t.Fatalf("asked %v, got %d partitions", order, len(parts))
		}
		if s := readBatches(t, parts[0].RecordBatches); len(s) != 1 || s[0].size != len(big) {
			t.Errorf("first asked (%d): %v in %d bytes, want the whole batch of %d", order[0].p, s, len(parts[0].RecordBatches), len(big))
		}
		if parts[1].ErrorCode != 0 || len(parts[1].RecordBatches) != 0 {
			t.Errorf("second asked: error %d, %d bytes; want nothing", parts[1].ErrorCode, len(parts[1].RecordBatches))
		}
	}
}

func emptyNotNull(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	id := r.topicID(topic)
	empty := r.topic(1)
	emptyID := r.topicID(empty)
	r.put(topic, batchSpec{recs: values(3, 10)})
	for _, v := range r.upTo(kmsg.Fetch, 0, 18) {
		p := at(topic, 0, 3)
		p.id = id
		got := ask[*kmsg.FetchResponse](r, fetchRequest(v, 100, 1, 1<<20, p)).Topics[0].Partitions[0]
		if got.RecordBatches == nil || len(got.RecordBatches) != 0 {
			t.Errorf("v%d: records null %v, %d bytes; want empty", v, got.RecordBatches == nil, len(got.RecordBatches))
		}
		if got.ErrorCode != 0 || got.HighWatermark != 3 || v >= 4 && got.LastStableOffset != 3 || v >= 5 && got.LogStartOffset != 0 {
			t.Errorf("v%d: %+v", v, got)
		}
		if v >= 4 { // B053, as far as it needs no transaction
			committed := fetchRequest(v, 0, 1, 1<<20, p)
			committed.IsolationLevel = 1
			got = ask[*kmsg.FetchResponse](r, committed).Topics[0].Partitions[0]
			if got.ErrorCode != 0 || got.RecordBatches == nil || len(got.RecordBatches) != 0 || got.LastStableOffset != 3 {
				t.Errorf("v%d, read committed: %+v", v, got)
			}
			p.offset, committed.Topics[0].TopicID, committed.Topics[0].Topic = 0, emptyID, empty
			committed.Topics[0].Partitions[0].FetchOffset = 0
			got = ask[*kmsg.FetchResponse](r, committed).Topics[0].Partitions[0]
			if got.ErrorCode != 0 || got.RecordBatches == nil || len(got.RecordBatches) != 0 || got.LastStableOffset != 0 || got.HighWatermark != 0 {
				t.Errorf("v%d, read committed from a new partition: %+v", v, got)
			}
		}
		p.offset = 99
		got = ask[*kmsg.FetchResponse](r, fetchRequest(v, 100, 1, 1<<20, p)).Topics[0].Partitions[0]
		if got.ErrorCode != 1 || got.RecordBatches == nil {
			t.Errorf("v%d out of range: error %d, records null %v", v, got.ErrorCode, got.RecordBatches == nil)
		}
	}
}

func lookUpByTime(t *testing.T, r *rawConn) {
	all := []rec{{value: []byte("a"), ts: 10}, {value: []byte("b"), ts: 20}, {value: []byte("c"), ts: 30}, {value: []byte("d"), ts: 40}}
	single := r.topic(1, "retention.ms=-1")
	for _, one := range all {
		r.put(single, batchSpec{recs: []rec{one}})
	}
	gzipped := r.topic(1, "retention.ms=-1")
	r.put(gzipped, batchSpec{codec: 1, recs: all})
	empty := r.topic(1)
	for _, v := range r.upTo(kmsg.ListOffsets, 1, 11) {
		f := func(topic string, ts, offset, found int64) {
			t.Helper()
			got := r.list(v, topic, 0, ts)
			epochOK := v < 4 || (got.LeaderEpoch >= 0) == (offset >= 0)
			if got.ErrorCode != 0 || got.Offset != offset || got.Timestamp != found || !epochOK {
				t.Errorf("v%d %s at %d: error %d, offset %d, timestamp %d, epoch %d; want %d, %d", v, topic, ts, got.ErrorCode, got.Offset, got.Timestamp, got.LeaderEpoch, offset, found)
			}
		}
		for _, topic := range []string{single, gzipped} {
			f(topic, 5, 0, 10)
			f(topic, 10, 0, 10)
			f(topic, 15, 1, 20)
			f(topic, 40, 3, 40)
			f(topic, 41, -1, -1) // no error: B062
			if v >= 7 {
				f(topic, -3, 3, 40)
			}
		}
		f(empty, 10, -1, -1)
		for topic, end := range map[string]int64{single: 4, empty: 0} {
			if got := r.list(v, topic, 0, -1); got.Offset != end || got.ErrorCode != 0 {
				t.Errorf("v%d %s latest: %+v, want %d", v, topic, got, end)
			}
			if got := r.list(v, topic, 0, -2); got.Offset != 0 || got.ErrorCode != 0 {
				t.Errorf("v%d %s earliest: %+v, want 0", v, topic, got)
			}
		}
	}
	code(t, "unknown topic", r.list(5, unique(t), 0, -1).ErrorCode, 3)
}

func noThrottle(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	for _, wait := range []int32{500, 5000} {
		if got := ask[*kmsg.FetchResponse](r, fetchRequest(11, wait, 1, 1<<20, at(topic, 0, 0))).ThrottleMillis; got != 0 {
			t.Errorf("Fetch after a wait of %d ms: throttle %d ms", wait, got)
		}
	}
	if got := r.metadata(topic).ThrottleMillis; got != 0 {
		t.Errorf("Metadata: throttle %d ms", got)
	}
	if got := ask[*kmsg.ProduceResponse](r, produceRequest(8, 1, topic, batchSpec{recs: values(1, 1)}.bytes())).ThrottleMillis; got != 0 {
		t.Errorf("Produce: throttle %d ms", got)
	}
}

func longPoll(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	other := dial(t, r.c.RemoteAddr().String())
	waits := func(what string, maxWait, minBytes int32, from, until time.Duration, offset int64, want int) {
		t.Helper()
		begin := time.Now()
		got := ask[*kmsg.FetchResponse](r, fetchRequest(11, maxWait, minBytes, 1<<20, at(topic, 0, offset))).Topics[0].Partitions[0]
		if took := time.Since(begin); took < from || took > until {
			t.Errorf("%s: reply after %v, want %v to %v", what, took, from, until)
		}
		if n := len(readBatches(t, got.RecordBatches)); n != want {
			t.Errorf("%s: %d batches, want %d", what, n, want)
		}
	}
	waits("nothing comes", 2000, 1, 1900*time.Millisecond, 3500*time.Millisecond, 0, 0)
	waits("no wait", 0, 1, 0, 500*time.Millisecond, 0, 0)
	waits("no min bytes", 5000, 0, 0, 500*time.Millisecond, 0, 0)
	var writer sync.WaitGroup
	writer.Go(func() {
		time.Sleep(time.Second)
		other.put(topic, batchSpec{recs: values(1, 10)})
	})
	waits("a record after a second", 6000, 1, 900*time.Millisecond, 1500*time.Millisecond, 0, 1)
	writer.Wait()
	writer.Go(func() {
		for range 4 {
			time.Sleep(200 * time.Millisecond)
			other.put(topic, batchSpec{recs: values(1, 300)})
		}
	})
	waits("min bytes of three batches", 8000, 1000, 500*time.Millisecond, 2500*time.Millisecond, 1, 3)
	writer.Wait()
	waits("data is there", 5000, 1, 0, 500*time.Millisecond, 1, 4)
}

func watermarks(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	id := r.topicID(topic)
	for range 4 {
		r.put(topic, batchSpec{recs: values(5, 10)})
	}
	dr := kmsg.NewPtrDeleteRecordsRequest()
	dr.Version, dr.TimeoutMillis = 1, 5000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic, rt.Partitions = topic, []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 0, Offset: 7}}
	dr.Topics = append(dr.Topics, rt)
	code(t, "DeleteRecords", ask[*kmsg.DeleteRecordsResponse](r, dr).Topics[0].Partitions[0].ErrorCode, 0)
	same := func(what string, p kmsg.FetchResponseTopicPartition) {
		t.Helper()
		start, end := r.earliest(topic), r.latest(topic)
		if p.ErrorCode != 0 || p.HighWatermark != end || p.LastStableOffset != end || p.LogStartOffset != start || start != 7 {
			t.Errorf("%s: error %d, watermark %d, LSO %d, start %d; ListOffsets says %d to %d", what, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset, start, end)
		}
	}
	same("with data", r.fetch(topic, 7))
	same("from within the first batch left", r.fetch(topic, 8))
	same("empty", r.fetch(topic, 20))
	same("after a wait", ask[*kmsg.FetchResponse](r, fetchRequest(11, 300, 1, 1<<20, at(topic, 0, 20))).Topics[0].Partitions[0])
	p := at(topic, 0, 20)
	p.id = id
	for _, v := range []int16{12, r.newest(kmsg.Fetch, 18)} {
		req := fetchRequest(v, 0, 1, 1<<20, p)
		req.SessionEpoch = 0
		resp := ask[*kmsg.FetchResponse](r, req)
		same(fmt.Sprintf("v%d, new session", v), resp.Topics[0].Partitions[0])
		r.put(topic, batchSpec{recs: values(1, 10)})
		next := fetchRequest(v, 0, 1, 1<<20)
		next.SessionID, next.SessionEpoch = resp.SessionID, 1
		resp = ask[*kmsg.FetchResponse](r, next)
		if len(resp.Topics) != 1 {
			t.Fatalf("v%d, in a session: %d topics, error %d", v, len(resp.Topics), resp.ErrorCode)
		}
		same(fmt.Sprintf("v%d, in a session", v), resp.Topics[0].Partitions[0])
		p.offset = r.latest(topic)
	}
	got := r.fetch(topic, 3)
	code(t, "before the start", got.ErrorCode, 1)
}

func byteLimits(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	one := batchSpec{recs: values(1, 30)}.bytes()
	size := int32(len(one))
	for range 2 {
		resp := ask[*kmsg.ProduceResponse](r, produceRequest(8, 1, topic, one, one))
		code(t, "produce", resp.Topics[0].Partitions[0].ErrorCode, 0)
	}
	f := func(what string, partMax, total int32, want ...int) {
		t.Helper()
		resp := ask[*kmsg.FetchResponse](r, fetchRequest(12, 500, 1, total, part{topic, [16]byte{}, 0, 0, partMax, -1}, part{topic, [16]byte{}, 1, 0, partMax, -1}))
		for i, p := range resp.Topics[0].Partitions {
			s := readBatches(t, p.RecordBatches)
			if len(s) != want[i] {
				t.Errorf("%s: partition %d has %d whole batches in %d bytes, want %d", what, i, len(s), len(p.RecordBatches), want[i])
			}
			if len(p.RecordBatches) > int(max(partMax, size)) {
				t.Errorf("%s: partition %d has %d bytes, limit %d", what, i, len(p.RecordBatches), partMax)
			}
		}
	}
	f("both fit", 2*size, 10*size, 2, 2)
	f("one byte short", 2*size-1, 10*size, 1, 1)
	f("total is used up by the first", 2*size, 2*size, 2, 0)
	f("total of one batch", 2*size, size, 1, 0)
	f("total of three", 2*size, 3*size, 2, 1)
}

func sessions(t *testing.T, r *rawConn) {
	topic := r.topic(2)
	id := r.topicID(topic)
	for _, v := range []int16{7, 11, 12, r.newest(kmsg.Fetch, 18)} {
		f := func(what string, sid, epoch, offset int32, parts ...part) *kmsg.FetchResponse {
			t.Helper()
			for i := range parts {
				parts[i].id, parts[i].offset = id, int64(offset)
			}
			req := fetchRequest(v, 0, 1, 1<<20, parts...)
			req.SessionID, req.SessionEpoch = sid, epoch
			return ask[*kmsg.FetchResponse](r, req)
		}
		end := int32(r.latest(topic))
		full := f("full", 0, 0, end, at(topic, 0, 0))
		sid := full.SessionID
		if full.ErrorCode != 0 || sid <= 0 || len(full.Topics) != 1 {
			t.Errorf("v%d (0,0): error %d, id %d, %d topics", v, full.ErrorCode, sid, len(full.Topics))
			continue
		}
		inc := f("nothing new", sid, 1, 0)
		if inc.ErrorCode != 0 || inc.SessionID != sid || len(inc.Topics) != 0 {
			t.Errorf("v%d (id,1), nothing new: error %d, id %d, %d topics", v, inc.ErrorCode, inc.SessionID, len(inc.Topics))
		}
		code(t, fmt.Sprintf("v%d (id,1) again", v), f("again", sid, 1, 0).ErrorCode, 71)
		code(t, fmt.Sprintf("v%d (id+1,1)", v), f("unknown", sid+1, 1, 0).ErrorCode, 70)
		r.put(topic, batchSpec{recs: values(1, 10)})
		inc = f("changed", sid, 2, 0)
		if inc.ErrorCode != 0 || len(inc.Topics) != 1 || len(inc.Topics[0].Partitions) != 1 || len(inc.Topics[0].Partitions[0].RecordBatches) == 0 {
			t.Errorf("v%d (id,2), one record more: error %d, %+v", v, inc.ErrorCode, inc.Topics)
		}
		again := f("new session", sid, 0, end, at(topic, 0, 0))
		if again.ErrorCode != 0 || again.SessionID <= 0 || len(again.Topics) != 1 {
			t.Errorf("v%d (id,0): error %d, id %d, %d topics", v, again.ErrorCode, again.SessionID, len(again.Topics))
		}
		if again.SessionID != sid {
			code(t, fmt.Sprintf("v%d, the replaced session", v), f("old", sid, 3, 0).ErrorCode, 70)
		}
		add := f("one partition more", again.SessionID, 1, 0, at(topic, 1, 0))
		if add.ErrorCode != 0 {
			t.Errorf("v%d, adding a partition: error %d", v, add.ErrorCode)
		}
		last := f("no session", 0, -1, end, at(topic, 0, 0))
		if last.ErrorCode != 0 || last.SessionID != 0 || len(last.Topics) != 1 {
			t.Errorf("v%d (0,-1): error %d, id %d", v, last.ErrorCode, last.SessionID)
		}
	}
}

func forgetNothing(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	id := r.topicID(topic)
	for _, v := range r.upTo(kmsg.Fetch, 7, 18) {
		p := at(topic, 0, 0)
		p.id = id
		req := fetchRequest(v, 0, 1, 1<<20, p)
		req.SessionEpoch = 0
		sid := ask[*kmsg.FetchResponse](r, req).SessionID
		next := fetchRequest(v, 0, 1, 1<<20)
		next.SessionID, next.SessionEpoch = sid, 1
		forget := kmsg.NewFetchRequestForgottenTopic()
		forget.Partitions = []int32{0}
		next.ForgottenTopics = append(next.ForgottenTopics, forget)
		got := ask[*kmsg.FetchResponse](r, next)
		if got.ErrorCode == -1 {
			t.Errorf("v%d: forgetting a zero id: error -1", v)
		}
		next.ForgottenTopics, next.SessionEpoch = nil, 2
		if got := ask[*kmsg.FetchResponse](r, next); got.ErrorCode != 0 && got.ErrorCode != 70 && got.ErrorCode != 71 {
			t.Errorf("v%d: session afterwards: error %d", v, got.ErrorCode)
		}
	}
}

func leaderEpochs(t *testing.T, r *rawConn) { checkEpochs(t, r, r.topic(1)) }

// checkEpochs tries the current epoch, its neighbours and "none".
func checkEpochs(t *testing.T, r *rawConn, topic string) {
	r.put(topic, batchSpec{recs: values(1, 10)})
	now := r.metadata(topic).Topics[0].Partitions[0].LeaderEpoch
	f := func(epoch int32, want int16) {
		t.Helper()
		p := at(topic, 0, 0)
		p.epoch = epoch
		code(t, fmt.Sprintf("Fetch, epoch %d of %d", epoch, now), ask[*kmsg.FetchResponse](r, fetchRequest(11, 0, 1, 1<<20, p)).Topics[0].Partitions[0].ErrorCode, want)
		lr := listRequest(5, topic, 0, -1)
		lr.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		code(t, fmt.Sprintf("ListOffsets, epoch %d of %d", epoch, now), ask[*kmsg.ListOffsetsResponse](r, lr).Topics[0].Partitions[0].ErrorCode, want)
		for _, replica := range []int32{-1, -2} {
			el := kmsg.NewPtrOffsetForLeaderEpochRequest()
			el.Version, el.ReplicaID = r.newest(kmsg.OffsetForLeaderEpoch, 4), replica
			rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
			rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			rp.CurrentLeaderEpoch, rp.LeaderEpoch = epoch, now
			rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
			el.Topics = append(el.Topics, rt)
			got := ask[*kmsg.OffsetForLeaderEpochResponse](r, el).Topics[0].Partitions[0]
			code(t, fmt.Sprintf("OffsetForLeaderEpoch of replica %d, epoch %d of %d", replica, epoch, now), got.ErrorCode, want)
			if want == 0 && (got.EndOffset != r.latest(topic) || got.LeaderEpoch != now) {
				t.Errorf("end of epoch %d: %d in epoch %d, want %d", now, got.EndOffset, got.LeaderEpoch, r.latest(topic))
			}
		}
	}
	f(-1, 0)
	f(now, 0)
	f(now+1, 75)
	if now > 0 {
		f(now-1, 74)
	} else {
		t.Log("leader epoch is 0: none older to try")
	}
}

func specialTimestamps(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	r.put(topic, batchSpec{recs: values(3, 10)})
	top := r.newest(kmsg.ListOffsets, 11)
	f := func(v int16, ts int64, want int16, offset int64) {
		t.Helper()
		if !r.offers(kmsg.ListOffsets, v) {
			return
		}
		got := r.list(v, topic, 0, ts)
		if code(t, fmt.Sprintf("%d in v%d", ts, v), got.ErrorCode, want) && want == 0 && got.Offset != offset {
			t.Errorf("%d in v%d: offset %d, want %d", ts, v, got.Offset, offset)
		}
	}
	f(6, -3, 35, 0)
	f(7, -3, 0, 2)
	f(7, -4, 35, 0)
	f(8, -4, 0, 0)
	f(8, -5, 35, 0)
	f(9, -5, 0, -1)
	f(top, -7, 35, 0)
}

func middleOfBatch(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	r.put(topic, batchSpec{recs: values(10, 10)})
	r.put(topic, batchSpec{codec: 1, recs: values(10, 10)})
	for off := range int64(20) {
		s := readBatches(t, r.fetch(topic, off).RecordBatches)
		if len(s) == 0 || s[0].base != off/10*10 || len(s[0].records) != 10 {
			t.Errorf("from %d: %v", off, s)
		}
		if want := bytes.Repeat([]byte{byte('a' + off%10)}, 10); !bytes.Equal(s[0].records[off%10].value, want) {
			t.Errorf("at %d: %q, want %q", off, s[0].records[off%10].value, want)
		}
	}
}

func outOfRange(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	r.put(topic, batchSpec{recs: values(2, 10)})
	for _, off := range []int64{-1, 3, 1 << 60} {
		begin := time.Now()
		got := ask[*kmsg.FetchResponse](r, fetchRequest(11, 5000, 1, 1<<20, at(topic, 0, off))).Topics[0].Partitions[0]
		code(t, fmt.Sprintf("from %d", off), got.ErrorCode, 1)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("from %d: an error is told at once, not after %v", off, took)
		}
	}
}

// B055 again where there is an older epoch to ask with: after restarts.
func TestEpochsAfterRestart(t *testing.T) {
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	for range 2 {
		r.put(topic, batchSpec{recs: values(1, 10)})
		b.kill(t)
		b.start(t)
		r = dial(t, b.addr)
		eventually(t, 20*time.Second, "leader", func() (string, bool) {
			got := r.list(5, topic, 0, -1).ErrorCode
			return fmt.Sprint("error ", got), got == 0
		})
	}
	if now := r.metadata(topic).Topics[0].Partitions[0].LeaderEpoch; now == 0 {
		t.Error("leader epoch 0 after two kills: nothing older to ask for")
	}
	checkEpochs(t, r, topic)

	// B157 and B131: one batch was written in each epoch; ask for the ends of
	// all, of those without records, and of what never was.
	r.put(topic, batchSpec{recs: values(1, 10)})
	stored := readBatches(t, r.fetch(topic, 0).RecordBatches)
	now := stored[len(stored)-1].epoch
	ask := func(epoch, current int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.Version, req.ReplicaID = r.newest(kmsg.OffsetForLeaderEpoch, 4), -1
		rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
		rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		rp.CurrentLeaderEpoch, rp.LeaderEpoch = current, epoch
		rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return ask[*kmsg.OffsetForLeaderEpochResponse](r, req).Topics[0].Partitions[0]
	}
	for epoch := int32(-1); epoch <= now+1; epoch++ {
		wantEpoch, wantEnd := int32(-1), int64(-1)
		if epoch >= 0 && epoch <= now {
			wantEpoch, wantEnd = epoch, r.latest(topic)
			for i := len(stored) - 1; i >= 0; i-- { // the largest epoch not above it, and where the next begins
				if stored[i].epoch > epoch {
					wantEnd, wantEpoch = stored[i].base, -1
				} else if wantEpoch == -1 || wantEpoch == epoch {
					wantEpoch = stored[i].epoch
					break
				}
			}
			if wantEpoch == -1 { // before the first: nothing of it is here
				wantEpoch, wantEnd = epoch, stored[0].base
			}
		}
		if got := ask(epoch, -1); got.ErrorCode != 0 || got.LeaderEpoch != wantEpoch || got.EndOffset != wantEnd {
			t.Errorf("end of epoch %d: error %d, (%d, %d), want (%d, %d)", epoch, got.ErrorCode, got.LeaderEpoch, got.EndOffset, wantEpoch, wantEnd)
		}
	}
	code(t, "an older current epoch", ask(0, now-1).ErrorCode, 74)
	code(t, "the current epoch", ask(0, now).ErrorCode, 0)
	code(t, "a newer current epoch", ask(0, now+4).ErrorCode, 75)
}
