package broker

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// Fetch, versions 0 to 3, from before record batches (Kafka 0.8 to 0.10.2): the
// answers are message sets, of format 0 in versions 0 and 1, of format 1 in 2 and
// 3, made here of the batches in the log. 1: throttle time. 3: a limit for the
// whole answer (KIP-74).
//
// Nothing is converted before the connection is about to write the answer, so
// that a client that sends many requests at once still has one answer in memory
// (decision 0015). Sketch: unpack, pack and checksum again cost about what they
// cost a producer and a consumer together; that is the price of old clients, paid
// by them alone.

const (
	// oldFetchMax bounds the message sets of one answer, in bytes; only a first
	// message that is larger goes beyond it.
	oldFetchMax = 8 << 20
	// oldFetchSlots is how many answers may be that large at the same time. The
	// others are oldFetchSmall, so that slow readers cannot take the memory.
	oldFetchSlots = 16
	oldFetchSmall = 64 << 10
	// oldFetchUnpack bounds what is unpacked for one answer. Small batches may unpack
	// to a hundred times what the answer may hold, and be small again in it.
	oldFetchUnpack = unpackSmall
	// oldFetchWindow is how much of the log is read in one go.
	oldFetchWindow = 256 << 10
)

// oldFetch is a fetch whose records are converted. Its parts never hold regions.
type oldFetch struct {
	fetch
	sets [][]byte // by part
}

func (b *Broker) oldFetch(req *kmsg.FetchRequest) wire.Response {
	f := &oldFetch{fetch: fetch{b: b, req: req}}
	for i := range req.Topics {
		t := &req.Topics[i]
		for _, ask := range t.Partitions {
			f.parts = append(f.parts, fetchPart{key: sessionKey{topic: t.Topic, n: ask.Partition}, ask: ask})
		}
	}
	f.parts = lastOfEach(f.parts)
	f.locate(b.o.Quorum.Image())
	got, answer := f.look()
	f.w = partition.NewWaiter(max(int64(req.MinBytes)-got, 1))
	f.deadline = time.Now().Add(time.Duration(req.MaxWaitMillis) * time.Millisecond)
	if answer || got >= int64(req.MinBytes) || req.MaxWaitMillis <= 0 || len(f.parts) == 0 {
		f.w.Fire()
		return wire.Response{Pending: f}
	}
	for i := range f.parts {
		fp := &f.parts[i]
		if !fp.p.Watch(f.w, fp.read.HighWatermark) {
			f.w.Fire() // it moved since: read at once
			break
		}
	}
	return wire.Response{Pending: f}
}

// look finds out how many bytes are there for the client, before they are
// converted, and whether something must be told at once.
func (f *oldFetch) look() (got int64, answer bool) {
	for i := range f.parts {
		fp := &f.parts[i]
		fp.read = partition.Read{HighWatermark: -1}
		if fp.p == nil {
			answer = true
			continue
		}
		n, err := f.ahead(fp)
		answer = answer || err != nil
		got += n
	}
	return got, answer
}

// ahead is how many bytes of batches with records for the client come next. What
// has none, control batches and what compaction emptied, must not count: the
// client would be answered at once, with nothing, for ever.
func (f *oldFetch) ahead(fp *fetchPart) (int64, error) {
	at := kafka.Offset(fp.ask.FetchOffset)
	for {
		read, err := fp.p.Read(at, kafka.NoEpoch, int(fp.ask.PartitionMaxBytes), true, false)
		fp.read = read
		if err != nil || read.Bytes == 0 {
			return 0, err
		}
		n, next, err := convertible(read.Slice.Region, at)
		read.Slice.Region.Release()
		fp.read.Slice.Region = disk.Region{}
		if err != nil || n > 0 || next <= at {
			return n, err
		}
		at = next
	}
}

// convertible looks for the first batch with records for clients and returns the
// bytes from there on, or 0 and the offset at which to look further.
func convertible(r disk.Region, from kafka.Offset) (n int64, next kafka.Offset, err error) {
	var head [batch.HeaderLen]byte
	next = from
	for at := int64(0); at+batch.HeaderLen <= r.Len; {
		if _, err := r.ReadAt(head[:], at); err != nil {
			return 0, next, err
		}
		size, err := batch.HeaderSize(head[:])
		if err != nil {
			return 0, next, err
		}
		if v := batch.View(head[:]); v.LastOffset() >= from {
			if !v.Control() && v.Count() > 0 {
				return r.Len - at, from, nil
			}
			next = v.LastOffset() + 1
		}
		at += int64(size)
	}
	return 0, next, nil
}

// Response reads and converts. Versions 0 to 2 name their partitions in the same
// order each time, so whichever is read first would be served for ever where the
// limit is reached: they are read from another one on each time. From 3 on
// clients rotate themselves.
func (f *oldFetch) Response(time.Time) wire.Response {
	f.unwatch()
	f.locate(f.b.o.Quorum.Image())
	left, done := f.b.oldFetchRoom()
	first := 0
	if f.req.Version >= 3 {
		left = min(left, int(f.req.MaxBytes))
	} else if len(f.parts) > 1 {
		first = rand.IntN(len(f.parts))
	}
	f.sets = make([][]byte, len(f.parts))
	empty, unpack := true, oldFetchUnpack
	for i := range f.parts {
		n := (first + i) % len(f.parts)
		fp := &f.parts[n]
		fp.read = partition.Read{HighWatermark: -1}
		if fp.p == nil {
			continue
		}
		limit := min(int(fp.ask.PartitionMaxBytes), left)
		// A first message larger than the limit comes whole, or the client could
		// never pass it: once an answer where the client can tell what is one too
		// large from no limit being left, for each partition where it cannot.
		whole := empty || f.req.Version < 3 && left > 0
		c := conversion{at: kafka.Offset(fp.ask.FetchOffset), limit: max(limit, 0), whole: whole, unpack: unpack}
		if empty {
			c.alone = f.b.unpackAlone
		}
		set, err := f.convert(fp, &c)
		if unpack = c.unpack; c.spent {
			left = 0
		}
		if err != nil {
			fp.code = f.b.code(err, "fetch", "partition", fp.p.TP.String(), "offset", fp.ask.FetchOffset)
			fp.read.HighWatermark = -1
		}
		if len(set) > 0 {
			empty = false
			left = max(left-len(set), 0)
			fp.p.Meter.Fetched(int64(len(set)))
			f.sets[n] = set
		}
	}
	raw := f.encode()
	raw.Release = done
	return wire.Response{Raw: raw}
}

// oldFetchRoom is how large an answer may be, and what to call when it is sent.
func (b *Broker) oldFetchRoom() (limit int, done func()) {
	limit = min(oldFetchMax, b.o.Config().Static().Int("fetch.max.bytes"))
	select {
	case b.oldFetches <- struct{}{}:
		return limit, func() { <-b.oldFetches }
	default:
		return min(limit, oldFetchSmall), nil
	}
}

// unpackAlone does what unpacks to more than unpackSmall, one at a time, with the
// large batches of producers. The token that the caller has for its small ones is
// another's meanwhile.
func (b *Broker) unpackAlone(do func()) {
	<-b.unpack
	b.unpackLarge <- struct{}{}
	do()
	<-b.unpackLarge
	b.unpack <- struct{}{}
}

// convert gives one partition's message set. An error is one only where there is
// nothing to give before it.
func (f *oldFetch) convert(fp *fetchPart, c *conversion) ([]byte, error) {
	limit := c.limit
	if limit <= 0 && !c.whole {
		fp.read = partition.Read{HighWatermark: fp.p.HighWatermark()}
		return nil, nil
	}
	if f.req.Version >= 2 {
		c.magic = 1
	}
	f.b.unpack <- struct{}{}
	defer func() { <-f.b.unpack }()
	for {
		read, err := fp.p.Read(c.at, kafka.NoEpoch, limit, true, false)
		if c.at == kafka.Offset(fp.ask.FetchOffset) || err == nil {
			fp.read = read
		}
		if err != nil || read.Bytes == 0 {
			return nil, err
		}
		before := c.at
		err = c.region(read.Slice.Region)
		read.Slice.Region.Release()
		fp.read.Slice.Region = disk.Region{}
		if len(c.out) > 0 {
			return c.out, nil
		}
		if err != nil || c.full || c.at <= before {
			return nil, err
		}
	}
}

// conversion makes one message set of the batches of regions.
type conversion struct {
	magic int8
	at    kafka.Offset // where to go on
	limit int
	whole bool // the first message whatever its size
	full  bool // the next message does not fit
	out   []byte

	unpack int             // bytes that may still be unpacked
	spent  bool            // they were not enough
	alone  func(do func()) // for what comes first and needs more; nil: it waits for the next fetch
}

func (c *conversion) region(r disk.Region) error {
	buf := make([]byte, min(r.Len, oldFetchWindow))
	for off := int64(0); off < r.Len && !c.full; {
		n := min(r.Len-off, int64(len(buf)))
		if _, err := r.ReadAt(buf[:n], off); err != nil {
			return err
		}
		rest, used := buf[:n], 0
		for !c.full {
			v, after, err := batch.Next(rest)
			if errors.Is(err, batch.ErrShort) {
				break
			}
			if err == nil {
				err = c.batch(v)
			}
			if err != nil {
				return err
			}
			used, rest = used+len(v), after
		}
		if used == 0 && !c.full {
			size, err := batch.HeaderSize(rest)
			if err != nil || off+int64(size) > r.Len {
				return nil // the cut end of what was read
			}
			buf = make([]byte, size)
		}
		off += int64(used)
	}
	return nil
}

func (c *conversion) batch(v batch.View) error {
	out, next, err := batch.DownConvert(c.out, v, c.magic, c.at, c.limit, &c.unpack)
	if errors.Is(err, batch.ErrTooLarge) {
		c.spent = true
		if len(c.out) > 0 || c.alone == nil {
			c.full = true
			return nil
		}
		c.alone(func() {
			all := batch.DefaultMaxDecompressed
			out, next, err = batch.DownConvert(nil, v, c.magic, c.at, c.limit, &all)
		})
	}
	if err != nil {
		return err
	}
	if len(c.out) == 0 && len(out) > c.limit && !c.whole {
		c.full = true
		return nil
	}
	c.out, c.at, c.full = out, max(next, c.at), next <= v.LastOffset()
	return nil
}

func (f *oldFetch) encode() *wire.Raw {
	e := fetchEncoder{version: f.req.Version, buf: make([]byte, 0, 64+len(f.parts)*32)}
	if e.version >= 1 {
		e.i32(0) // throttle time
	}
	topics := 0
	for i := range f.parts {
		if i == 0 || !e.sameTopic(&f.parts[i], &f.parts[i-1]) {
			topics++
		}
	}
	e.arrayLen(topics)
	for i := 0; i < len(f.parts); {
		j := i + 1
		for j < len(f.parts) && e.sameTopic(&f.parts[j], &f.parts[i]) {
			j++
		}
		e.str(f.parts[i].key.topic)
		e.arrayLen(j - i)
		for ; i < j; i++ {
			fp, set := &f.parts[i], f.sets[i]
			e.i32(fp.key.n)
			e.i16(int16(fp.code))
			e.i64(int64(fp.read.HighWatermark))
			e.i32(int32(len(set)))
			if len(set) > 0 {
				e.cut(nil)
				e.parts = append(e.parts, wire.Part{Bytes: set})
			}
		}
	}
	e.cut(nil)
	return &wire.Raw{Parts: e.parts}
}
