package broker

// The hand-written fetch response, held against kmsg's decoding of it, in every
// version served.

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/commitlog"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/partition"
)

func region(t *testing.T, data string) disk.Region {
	t.Helper()
	f, err := disk.NewMem(1).Create("/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(data), 0); err != nil {
		t.Fatal(err)
	}
	return disk.NewShared(f).Hand(0, int64(len(data)))
}

func TestEncodeFetchReadsBack(t *testing.T) {
	id := kafka.TopicID{9, 8, 7}
	parts := []fetchPart{
		{key: sessionKey{"a", id, 0}, read: partition.Read{HighWatermark: 10, Stable: 8, LogStart: 1, Bytes: 5,
			Slice:   commitlog.Slice{Region: region(t, "hello")},
			Aborted: []commitlog.AbortedTxn{{ID: 4, First: 2}, {ID: 5, First: 3}}}},
		{key: sessionKey{"a", id, 1}, code: kafka.ErrOffsetOutOfRange, read: partition.Read{HighWatermark: 3, Stable: 3, LogStart: 3}},
		{key: sessionKey{"b", kafka.TopicID{1}, 0}, read: partition.Read{HighWatermark: 1 << 40, Stable: 1 << 40, Diverging: true, DivergeEpoch: 3, DivergeEnd: 77}},
		{key: sessionKey{"a", id, 2}, read: partition.Read{Bytes: 3, Slice: commitlog.Slice{Region: region(t, "abc")}}},
	}
	for version := int16(4); version <= 18; version++ {
		for _, committed := range []bool{false, true} {
			raw := encodeFetch(version, 42, parts, committed)
			var body bytes.Buffer
			for _, p := range raw.Parts {
				body.Write(p.Bytes)
				if p.Region.Len > 0 {
					b := make([]byte, p.Region.Len)
					if _, err := p.Region.ReadAt(b, 0); err != nil {
						t.Fatal(err)
					}
					body.Write(b)
				}
			}
			resp := kmsg.NewPtrFetchResponse()
			resp.Version = version
			if err := resp.ReadFrom(body.Bytes()); err != nil {
				t.Fatalf("version %d: %v", version, err)
			}
			if again := resp.AppendTo(nil); !bytes.Equal(again, body.Bytes()) {
				t.Fatalf("version %d committed %v: kmsg writes\n%x\nwe wrote\n%x", version, committed, again, body.Bytes())
			}
			if len(resp.Topics) != 3 || len(resp.Topics[0].Partitions) != 2 {
				t.Fatalf("version %d: topics %+v", version, resp.Topics)
			}
			p := resp.Topics[0].Partitions[0]
			if string(p.RecordBatches) != "hello" || p.HighWatermark != 10 || p.LastStableOffset != 8 {
				t.Errorf("version %d: %+v", version, p)
			}
			if got := len(p.AbortedTransactions); committed && got != 2 || !committed && p.AbortedTransactions != nil {
				t.Errorf("version %d: %d aborted transactions", version, got)
			}
			if q := resp.Topics[0].Partitions[1]; q.ErrorCode != 1 || q.RecordBatches == nil || len(q.RecordBatches) != 0 {
				t.Errorf("version %d: error partition %+v: records must be empty, not null", version, q)
			}
			if d := resp.Topics[1].Partitions[0].DivergingEpoch; version >= 12 && (d.Epoch != 3 || d.EndOffset != 77) {
				t.Errorf("version %d: diverging epoch %+v", version, d)
			}
		}
	}
}
