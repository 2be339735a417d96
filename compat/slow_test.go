//go:build compat

package compat

// Shows: what only a broker with short limits shows in a test's time. Cases
// B085 (group size), B121, B140, B142, B143, B014, B054.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestShortLimits(t *testing.T) {
	b := startBroker(t, "log.retention.check.interval.ms=300", "log.initial.task.delay.ms=100", "log.segment.delete.delay.ms=100",
		"producer.id.expiration.ms=3000", "producer.id.expiration.check.interval.ms=300", "group.max.size=2", "log.segment.bytes=1048576")
	t.Run("all", func(t *testing.T) {
		for _, c := range []struct {
			name string
			run  func(t *testing.T, r *rawConn)
		}{
			{"B085 group over its size", groupSize},
			{"B121 producer idle past its expiry", idleProducer},
			{"B140 a record from the future", fromTheFuture},
			{"B142 limits at their edges", retentionEdges},
			{"B014 everything expired", allExpired},
			{"B054 tiny batches", tinyBatches},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, dial(t, b.addr))
			})
		}
	})
}

func groupSize(t *testing.T, r *rawConn) {
	group := unique(t)
	r.coordinator(group)
	addr := r.c.RemoteAddr().String()
	a, c := dial(t, addr).member(group), dial(t, addr).member(group)
	rebalance(t, a, c)
	third := dial(t, addr)
	code(t, "third member of two", ask[*kmsg.JoinGroupResponse](third, joinRequest(3, group, "", nil, "consumer", "range")).ErrorCode, 81)
}

func idleProducer(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	pid, epoch := r.producerID()
	send := func(seq int32) int16 {
		return r.produce(8, topic, batchSpec{idem: true, pid: pid, pepoch: epoch, seq: seq, recs: values(1, 10)}.bytes()).ErrorCode
	}
	for seq := range int32(7) {
		code(t, "first seven", send(seq), 0)
	}
	code(t, "a gap while remembered", send(9), 45)
	time.Sleep(7 * time.Second)
	for seq := int32(7); seq < 15; seq++ {
		code(t, fmt.Sprintf("sequence %d after the silence", seq), send(seq), 0)
	}
	if got := r.latest(topic); got != 15 {
		t.Errorf("%d records, want 15", got)
	}
}

// fill writes n batches of about 300 KiB, four to a segment.
func (r *rawConn) fill(topic string, n int, ts func(i int) int64) {
	r.t.Helper()
	for i := range n {
		r.put(topic, batchSpec{recs: []rec{{value: make([]byte, 300_000), ts: ts(i)}}})
	}
}

func fromTheFuture(t *testing.T, r *rawConn) {
	topic := r.topic(1, "retention.ms=1000", "segment.bytes=1048576", "file.delete.delay.ms=100", "message.timestamp.after.max.ms=9223372036854775807")
	now := time.Now().UnixMilli()
	year2100 := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	r.fill(topic, 12, func(i int) int64 {
		if i == 5 {
			return year2100
		}
		return now
	})
	// The first segment goes; the second holds the record of 2100 and with it
	// everything behind.
	eventually(t, 15*time.Second, "the segment ahead of it goes", func() (string, bool) {
		from := r.earliest(topic)
		return fmt.Sprint("starts at ", from), from > 0
	})
	time.Sleep(2500 * time.Millisecond)
	if from := r.earliest(topic); from > 5 {
		t.Errorf("log starts at %d: the record at 5 is not old", from)
	}
	code(t, "retention.bytes", r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"retention.bytes", 0, ptr("1")}).ErrorCode, 0)
	eventually(t, 15*time.Second, "size retention removes it", func() (string, bool) {
		from := r.earliest(topic)
		return fmt.Sprint("starts at ", from), from > 5
	})
	code(t, "a limit", r.alter(kmsg.ConfigResourceTypeTopic, topic, false, change{"message.timestamp.after.max.ms", 0, ptr("3600000")}).ErrorCode, 0)
	eventually(t, 5*time.Second, "the limit at work", func() (string, bool) {
		c := r.produce(8, topic, batchSpec{recs: []rec{{value: []byte("x"), ts: year2100}}}.bytes()).ErrorCode
		return fmt.Sprint("error ", c), c == 32
	})
}

func retentionEdges(t *testing.T, r *rawConn) {
	old := func(int) int64 { return time.Now().Add(-90 * 24 * time.Hour).UnixMilli() }
	now := func(int) int64 { return time.Now().UnixMilli() }
	keep := r.topic(1, "retention.ms=-1", "retention.bytes=-1", "segment.bytes=1048576")
	zeroMs := r.topic(1, "retention.ms=0", "segment.bytes=1048576", "file.delete.delay.ms=100")
	oneByte := r.topic(1, "retention.ms=-1", "retention.bytes=1", "segment.bytes=1048576", "file.delete.delay.ms=100")
	zeroBytes := r.topic(1, "retention.ms=-1", "retention.bytes=0", "segment.bytes=1048576", "file.delete.delay.ms=100")
	r.fill(keep, 12, old)
	for _, topic := range []string{zeroMs, oneByte, zeroBytes} {
		r.fill(topic, 12, now)
	}
	eventually(t, 15*time.Second, "retention.ms=0", func() (string, bool) {
		from, to := r.earliest(zeroMs), r.latest(zeroMs)
		return fmt.Sprintf("%d to %d", from, to), from == to && to == 12
	})
	for _, topic := range []string{oneByte, zeroBytes} {
		eventually(t, 15*time.Second, "a tiny retention.bytes", func() (string, bool) {
			from := r.earliest(topic)
			return fmt.Sprint("starts at ", from), from >= 6 && from <= 12
		})
		code(t, "still takes records", r.produce(8, topic, batchSpec{recs: values(1, 10)}.bytes()).ErrorCode, 0)
	}
	if from := r.earliest(keep); from != 0 {
		t.Errorf("retention of -1: log starts at %d", from)
	}
}

func allExpired(t *testing.T, r *rawConn) {
	topic := r.topic(1, "retention.ms=1000", "segment.bytes=1048576", "file.delete.delay.ms=100")
	for i := range 2 {
		for range 10 {
			r.put(topic, batchSpec{recs: []rec{{value: []byte("x"), ts: time.Now().UnixMilli()}}})
		}
		end := int64(10 * (i + 1))
		eventually(t, 15*time.Second, "all gone", func() (string, bool) {
			from, to := r.earliest(topic), r.latest(topic)
			if to != end || from > to {
				t.Fatalf("log of %d to %d, end must be %d", from, to, end)
			}
			return fmt.Sprintf("%d to %d", from, to), from == to
		})
		if got := r.fetch(topic, end); got.ErrorCode != 0 || len(got.RecordBatches) != 0 {
			t.Errorf("fetch at the end: error %d, %d bytes", got.ErrorCode, len(got.RecordBatches))
		}
		code(t, "fetch before it", r.fetch(topic, end-1).ErrorCode, 1)
	}
}

func tinyBatches(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	const n = 10_000
	batch := batchSpec{recs: values(1, 20)}.bytes()
	var corr []int32
	for i := range n { // pipelined, at most 100 in flight
		corr = append(corr, r.send(produceRequest(8, 1, topic, batch)))
		if len(corr) == 100 || i == n-1 {
			for _, c := range corr {
				r.recv(produceRequest(8, 1, topic), c)
			}
			corr = corr[:0]
		}
	}
	begin := time.Now()
	got := ask[*kmsg.FetchResponse](r, fetchRequest(11, 500, 1, 50<<20, part{topic: topic, max: 50 << 20, epoch: -1})).Topics[0].Partitions[0]
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("one fetch of tiny batches took %v", took)
	}
	if s := readBatches(t, got.RecordBatches); len(s) != n {
		t.Errorf("%d batches of %d in %d bytes", len(s), n, len(got.RecordBatches))
	}
	begin = time.Now()
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.c.RemoteAddr().String()), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	read := 0
	for read < n && ctx.Err() == nil {
		read += cl.PollFetches(ctx).NumRecords()
	}
	if took := time.Since(begin); read != n || took > 10*time.Second {
		t.Errorf("the whole topic: %d records in %v", read, took)
	}
}

// B143: DeleteRecords is remembered, and frees whole segments.
func TestDeletedRecordsStayDeleted(t *testing.T) {
	b := startBroker(t, "log.segment.delete.delay.ms=100", "log.retention.check.interval.ms=300", "log.initial.task.delay.ms=100")
	r := dial(t, b.addr)
	topic := r.topic(1, "segment.bytes=1048576", "file.delete.delay.ms=100")
	r.fill(topic, 12, func(int) int64 { return time.Now().UnixMilli() })
	if got := r.deleteRecords(topic, 0, 7); got.ErrorCode != 0 || got.LowWatermark != 7 {
		t.Fatalf("DeleteRecords: %+v", got)
	}
	for _, how := range []string{"clean restart", "kill -9"} {
		if how == "kill -9" {
			b.kill(t)
		} else {
			b.stop(t)
		}
		b.start(t)
		r = dial(t, b.addr)
		eventually(t, 30*time.Second, "start after a "+how, func() (string, bool) {
			got := r.list(5, topic, 0, -2)
			return fmt.Sprintf("%d, error %d", got.Offset, got.ErrorCode), got.ErrorCode == 0 && got.Offset == 7
		})
	}
	eventually(t, 15*time.Second, "whole segments below it are freed", func() (string, bool) {
		names := segmentFiles(t, b.logs, topic)
		first := ""
		if len(names) > 0 {
			first = names[0]
		}
		return strings.Join(names, " "), first != "" && first != "00000000000000000000.log"
	})
}
