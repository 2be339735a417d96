package broker

// Fetch 0 to 3 below the sockets: what is made of a region of the log, wherever
// batches fall in it, and the hand-written answer against kmsg's decoding.
// compat/old_test.go shows the rest, with clients of that time.

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
	unpack := 1 << 30
	for _, v := range data {
		var err error
		if out, _, err = batch.DownConvert(out, v, magic, 0, 1<<30, &unpack); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestConversionOfARegion(t *testing.T) {
	log, data, end := oldLog(t)
	for magic := range int8(2) {
		want := wholeSet(t, data, magic)
		c := conversion{unpack: 1 << 30, magic: magic, limit: 1 << 30, whole: true}
		if err := c.region(region(t, string(log))); err != nil || c.full || c.at != end || !bytes.Equal(c.out, want) {
			t.Fatalf("whole log: %v, at %d of %d, %d bytes of %d", err, c.at, end, len(c.out), len(want))
		}
		// Cut anywhere: what is whole is given, the tail is for the next read.
		for range 200 {
			cut := rand.IntN(len(log))
			c := conversion{unpack: 1 << 30, magic: magic, limit: 1 << 30, whole: true}
			if err := c.region(region(t, string(log[:cut]))); err != nil || !bytes.HasPrefix(want, c.out) {
				t.Fatalf("cut at %d: %v, %d bytes", cut, err, len(c.out))
			}
		}
		// Whatever the limit, going on from where it stopped gives all.
		for _, limit := range []int{0, 1, 200, 1000, oldFetchWindow, 1 << 30} {
			var got []byte
			for at := kafka.Offset(0); at < end; {
				c := conversion{unpack: 1 << 30, magic: magic, at: at, limit: limit, whole: true}
				if err := c.region(region(t, string(log))); err != nil || c.at <= at {
					t.Fatalf("limit %d: at %d to %d, %v", limit, at, c.at, err)
				}
				got, at = append(got, c.out...), c.at
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("limit %d: %d bytes, want %d", limit, len(got), len(want))
			}
		}
		c = conversion{unpack: 1 << 30, magic: magic, limit: 10}
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

// Old fetches of small batches that unpack to 40 MB each: an answer is made of a
// bounded part of them, whoever begins deep in one waits for the large batches of
// others while the ordinary ones go on, and an answer with records waits for nobody.
func TestOldFetchOfWellPackedBatches(t *testing.T) {
	f := newFetching(t, 2)
	const n, size = 40, 1 << 20
	for _, part := range []int32{0, 1} {
		b := batch.NewBuilder(batch.Plain(batch.Gzip))
		for range n {
			b.Add(1, nil, make([]byte, size))
		}
		if _, err := f.part(part).Append(time.Now(), b.Bytes(), -1); err != nil {
			t.Fatal(err)
		}
	}
	fetch := func(offsets ...int64) *oldFetch {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.MaxBytes, req.ReplicaID = 3, 1<<30, -1
		top := kmsg.NewFetchRequestTopic()
		top.Topic = "t"
		for i, at := range offsets {
			top.Partitions = append(top.Partitions, ask(int32(i), at))
		}
		req.Topics = append(req.Topics, top)
		return f.b.fetch(nil, req).Pending.(*oldFetch)
	}
	// last is the last offset that each partition's set reaches, -1 without one: a
	// megabyte of messages is one packed message, which has it in front.
	last := func(o *oldFetch) (out []int64) {
		raw := o.Response(time.Now()).Raw
		for i, set := range o.sets {
			out = append(out, -1)
			for ; len(set) > 0; set = set[12+binary.BigEndian.Uint32(set[8:]):] {
				out[i] = int64(binary.BigEndian.Uint64(set))
			}
			if code := o.parts[i].code; code != kafka.NoError {
				t.Errorf("partition %d: %v", i, code)
			}
		}
		if raw.Release != nil {
			raw.Release()
		}
		return out
	}
	if got := last(fetch(0, 0)); !slices.Equal(got, []int64{14, -1}) {
		t.Errorf("from the start of both: up to %v", got)
	}
	f.b.unpackLarge <- struct{}{} // somebody unpacks a large one
	done := make(chan []int64)
	go func() { done <- last(fetch(30)) }()
	for range 2 * cap(f.b.unpack) {
		if got := last(fetch(0)); !slices.Equal(got, []int64{14}) {
			t.Errorf("while another waits: up to %v", got)
		}
	}
	select {
	case got := <-done:
		t.Errorf("deep in a batch, it waited for nobody: %v", got)
	default:
	}
	<-f.b.unpackLarge
	if got := <-done; !slices.Equal(got, []int64{n - 1}) {
		t.Errorf("deep in a batch: up to %v", got)
	}
	if len(f.b.unpack) != 0 || len(f.b.unpackLarge) != 0 || len(f.b.oldFetches) != 0 {
		t.Error("a token is gone")
	}
}
