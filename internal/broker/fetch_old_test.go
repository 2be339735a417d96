package broker

// Fetch 0 to 3 below the sockets: what is made of a region of the log, wherever
// batches fall in it, and the hand-written answer against kmsg's decoding.
// compat/old_test.go shows the rest, with clients of that time.

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// oldLog is a log's bytes: data batches of each codec but zstd with a control batch
// and an emptied one among them, one batch larger than the reading window.
func oldLog(t *testing.T) (log []byte, data []batch.View, end kafka.Offset) {
	t.Helper()
	for i := range 8 {
		b := batch.NewBuilder(batch.Plain(batch.Codec(i % 4)))
		for range 3 {
			b.Add(1000, nil, bytes.Repeat([]byte{byte(i)}, 100))
		}
		if i == 4 {
			b.Add(1000, nil, make([]byte, oldFetchWindow+1000))
		}
		v := b.Bytes()
		switch i {
		case 2:
			v = batch.Control(batch.Commit, 1, 0, 0, 1000)
		case 5:
			var err error
			if v, _, err = batch.Filter(v, batch.NoHorizon, func(*batch.Record) (bool, error) { return false, nil }); err != nil {
				t.Fatal(err)
			}
		}
		v.Stamp(end, 0)
		end = v.LastOffset() + 1
		if i != 2 && i != 5 {
			data = append(data, v)
		}
		log = append(log, v...)
	}
	return log, data, end
}

func wholeSet(t *testing.T, data []batch.View, magic int8) []byte {
	t.Helper()
	var out []byte
	for _, v := range data {
		var err error
		if out, _, err = batch.DownConvert(out, v, magic, 0, 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestConversionOfARegion(t *testing.T) {
	log, data, end := oldLog(t)
	for magic := range int8(2) {
		want := wholeSet(t, data, magic)
		c := conversion{magic: magic, limit: 1 << 30, whole: true}
		if err := c.region(region(t, string(log))); err != nil || c.full || c.at != end || !bytes.Equal(c.out, want) {
			t.Fatalf("whole log: %v, at %d of %d, %d bytes of %d", err, c.at, end, len(c.out), len(want))
		}
		// Cut anywhere: what is whole is given, the tail is for the next read.
		for range 200 {
			cut := rand.IntN(len(log))
			c := conversion{magic: magic, limit: 1 << 30, whole: true}
			if err := c.region(region(t, string(log[:cut]))); err != nil || !bytes.HasPrefix(want, c.out) {
				t.Fatalf("cut at %d: %v, %d bytes", cut, err, len(c.out))
			}
		}
		// Whatever the limit, going on from where it stopped gives all.
		for _, limit := range []int{0, 1, 200, 1000, oldFetchWindow, 1 << 30} {
			var got []byte
			for at := kafka.Offset(0); at < end; {
				c := conversion{magic: magic, at: at, limit: limit, whole: true}
				if err := c.region(region(t, string(log))); err != nil || c.at <= at {
					t.Fatalf("limit %d: at %d to %d, %v", limit, at, c.at, err)
				}
				got, at = append(got, c.out...), c.at
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("limit %d: %d bytes, want %d", limit, len(got), len(want))
			}
		}
		c = conversion{magic: magic, limit: 10}
		if err := c.region(region(t, string(log))); err != nil || len(c.out) != 0 || c.at != 0 || !c.full {
			t.Errorf("a first message too large, not wanted whole: %v, %d bytes, at %d", err, len(c.out), c.at)
		}
	}
}

func TestConvertibleSkipsWhatClientsNeverSee(t *testing.T) {
	log, data, end := oldLog(t)
	for _, c := range []struct {
		from kafka.Offset
		skip int // data batches before the one that counts
	}{
		{0, 0}, {2, 0}, {3, 1}, {6, 2}, {7, 2}, {data[3].BaseOffset() + 1, 3}, {data[3].LastOffset() + 1, 4}, {data[4].BaseOffset(), 4},
	} {
		n, next, err := convertible(region(t, string(log)), c.from)
		want := int64(len(log) - bytes.Index(log, data[c.skip]))
		if err != nil || n != want || next != c.from {
			t.Errorf("from %d: %d bytes ahead, next %d, %v, want %d", c.from, n, next, err, want)
		}
	}
	n, next, err := convertible(region(t, string(batch.Control(batch.Abort, 1, 0, 0, 1))), 0)
	if err != nil || n != 0 || next != 1 {
		t.Errorf("a control batch alone: %d bytes, next %d, %v", n, next, err)
	}
	if n, _, err := convertible(region(t, string(log)), end); err != nil || n != 0 {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
}

func TestOldFetchReadsBack(t *testing.T) {
	for version := int16(0); version <= 3; version++ {
		req := kmsg.NewPtrFetchRequest()
		req.Version = version
		f := &oldFetch{fetch: fetch{req: req}}
		for _, topic := range []string{"a", "b"} {
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic = topic
			for n := range int32(2) {
				rp := kmsg.NewFetchRequestTopicPartition()
				rp.Partition = n
				rt.Partitions = append(rt.Partitions, rp)
				f.parts = append(f.parts, fetchPart{key: sessionKey{topic: topic, n: n}, read: partition.Read{HighWatermark: 10 + kafka.Offset(n)}})
				f.sets = append(f.sets, nil)
			}
			req.Topics = append(req.Topics, rt)
		}
		f.sets[1], f.sets[3], f.parts[2].code = []byte("hello"), []byte("x"), kafka.ErrOffsetOutOfRange
		body := joined(f.encode())
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = version
		if err := resp.ReadFrom(body); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
			t.Fatalf("version %d: % x reads back as % x", version, body, again)
		}
		a, b := resp.Topics[0].Partitions, resp.Topics[1].Partitions
		if string(a[1].RecordBatches) != "hello" || string(b[1].RecordBatches) != "x" || len(a[0].RecordBatches) != 0 ||
			b[0].ErrorCode != 1 || b[1].HighWatermark != 11 {
			t.Errorf("version %d: %+v", version, resp.Topics)
		}
	}
}

func joined(raw *wire.Raw) []byte {
	var out []byte
	for _, p := range raw.Parts {
		out = append(out, p.Bytes...)
	}
	return out
}
