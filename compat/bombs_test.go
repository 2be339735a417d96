//go:build compat

package compat

// Shows: batches that unfold a thousandfold, and batches of a million records,
// cost a bounded time and memory. Sources of the numbers: deflate makes at most
// 1,032 bytes of one, an lz4 block 255, snappy 21, zstd has no bound.

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

type nothing struct{}

func (nothing) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// packed compresses first and then n zeros.
func packed(t testing.TB, codec int16, first []byte, n int64) []byte {
	t.Helper()
	var z bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case 1:
		w, _ = gzip.NewWriterLevel(&z, 9)
	case 2:
		return snappy.Encode(nil, append(first, make([]byte, n)...))
	case 3:
		w = lz4.NewWriter(&z)
	case 4:
		w, _ = zstd.NewWriter(&z, zstd.WithEncoderConcurrency(1))
	}
	if _, err := w.Write(first); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(struct{ io.Writer }{w}, nothing{}, n); err != nil { // lz4 takes no ReadFrom after a Write
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// rawBatch is a batch around a body, whatever that is.
func rawBatch(codec int16, count int32, body []byte) []byte {
	b := make([]byte, 61, 61+len(body))
	binary.BigEndian.PutUint32(b[8:], uint32(49+len(body)))
	b[16] = 2
	binary.BigEndian.PutUint16(b[21:], uint16(codec))
	binary.BigEndian.PutUint32(b[23:], uint32(count-1))
	now := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint64(b[27:], now)
	binary.BigEndian.PutUint64(b[35:], now)
	copy(b[43:], bytes.Repeat([]byte{0xff}, 14)) // no producer, no sequence
	binary.BigEndian.PutUint32(b[57:], uint32(count))
	b = append(b, body...)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// bigRecord is the start of one record with n bytes of value, which end it but
// for the header count; that is a zero as well.
func bigRecord(n int64) []byte {
	rest := binary.AppendVarint([]byte{0, 0, 0, 1}, n) // attributes, time, offset, null key
	out := binary.AppendVarint(nil, int64(len(rest))+n+1)
	return append(out, rest...)
}

func TestBombs(t *testing.T) {
	if onKafka {
		t.Skip("Kafka takes what they unfold to")
	}
	b := startBroker(t)
	r := dial(t, b.addr)
	r.timeout = time.Minute
	topic := r.topic(1)
	const mib = 1 << 20
	nested := oldMessage(1, 1, nil, packed(t, 1, nil, 300*mib))
	bombs := map[string][]byte{
		"gzip to 400 MiB":      rawBatch(1, 1, packed(t, 1, bigRecord(400*mib), 400*mib+1)),
		"zstd to 2,000 MiB":    rawBatch(4, 1, packed(t, 4, bigRecord(2000*mib), 2000*mib+1)),
		"lz4 to 240 MiB":       rawBatch(3, 1, packed(t, 3, bigRecord(240*mib), 240*mib+1)),
		"snappy to 19 MiB":     rawBatch(2, 1, packed(t, 2, bigRecord(19*mib), 19*mib+1)),
		"gzip, 1 of 2^31 recs": rawBatch(1, 1<<31-1, packed(t, 1, bigRecord(10), 11)),
		"gzip in gzip":         rawBatch(1, 1, packed(t, 1, bigRecord(int64(len(nested))), 300*mib)),
	}
	conns := crowd(t, b, 6)
	for name, bomb := range bombs {
		if len(bomb) > 1<<20+12 {
			t.Fatalf("%s is of %d bytes: too large to be taken at all", name, len(bomb))
		}
		grown := b.peak(t)
		one := time.Now()
		p := r.produce(8, topic, bomb)
		alone := time.Since(one)
		all(t, name, len(conns), func(i int) error {
			return conns[i].exchange(produceRequest(8, 1, topic, bomb))
		})
		t.Logf("%s (%d bytes): error %d after %v", name, len(bomb), p.ErrorCode, alone)
		if want := map[string]int16{"lz4 to 240 MiB": 0, "snappy to 19 MiB": 0}; p.ErrorCode != 0 {
			if _, legal := want[name]; legal {
				t.Errorf("%s is legal, got error %d", name, p.ErrorCode)
			}
		} else if _, legal := want[name]; !legal {
			t.Errorf("%s was taken", name)
		}
		bound(t, name+", 6 at once", grown(), 900)
		b.sense(t)
	}
	// Old message sets: a wrapper in a wrapper in a wrapper is refused, one that
	// unfolds for ever as well.
	inner := oldMessage(1, 1, nil, bytes.Repeat([]byte{'x'}, 100))
	for range 3 {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(inner)
		w.Close()
		inner = gzipMessage(z.Bytes())
	}
	for name, set := range map[string][]byte{"three wrappers": inner, "a wrapper of 300 MiB": gzipMessage(packed(t, 1, nil, 300*mib))} {
		p := r.produce(2, topic, set)
		if p.ErrorCode == 0 {
			t.Errorf("%s was taken", name)
		}
	}
	b.sense(t)
}

// gzipMessage is a message of magic 1 whose value is compressed messages.
func gzipMessage(value []byte) []byte {
	m := oldMessage(1, 1, nil, value)
	m[17] = 1 // attributes
	binary.BigEndian.PutUint32(m[12:], crc32.ChecksumIEEE(m[16:]))
	return m
}

// A million records of no content are taken, plain where max.message.bytes
// allows and compressed to a few kilobytes, and come back in whole.
func TestMillionRecords(t *testing.T) {
	const n = 1_000_000
	b := startBroker(t)
	r := dial(t, b.addr)
	plain := r.topic(1, "max.message.bytes=20000000")
	small := r.topic(1)
	var body []byte
	for i := range int64(n) {
		rec := binary.AppendVarint([]byte{0, 0}, i)
		rec = append(rec, 1, 1, 0) // null key and value, no headers
		body = binary.AppendVarint(body, int64(len(rec)))
		body = append(body, rec...)
	}
	for _, c := range []struct {
		name  string
		topic string
		batch []byte
		want  int16
	}{
		{"plain", plain, rawBatch(0, n, body), 0},
		{"plain, above max.message.bytes", small, rawBatch(0, n, body), 10},
		{"zstd", small, rawBatch(4, n, packed(t, 4, body, 0)), 0},
		{"plain, one short of its count", plain, rawBatch(0, n+1, body), 87},
	} {
		grown := b.peak(t)
		begun := time.Now()
		p := r.produce(8, c.topic, c.batch)
		t.Logf("%s, %d bytes: error %d after %v", c.name, len(c.batch), p.ErrorCode, time.Since(begun))
		code(t, c.name, p.ErrorCode, c.want)
		bound(t, c.name, grown(), 150)
		if c.want != 0 {
			continue
		}
		if got := r.list(5, c.topic, 0, -1).Offset; got != n {
			t.Errorf("%s: log end %d", c.name, got)
		}
		got := r.fetch(c.topic, n/2)
		if !bytes.Equal(got.RecordBatches[57:], c.batch[57:]) {
			t.Errorf("%s: the batch came back otherwise", c.name)
		}
	}
	// 50 at once, of 65 KB each: the others are served meanwhile.
	conns := crowd(t, b, 50)
	batch := rawBatch(4, n, packed(t, 4, body, 0))
	grown := b.peak(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		all(t, "50 at once", len(conns), func(i int) error { return conns[i].exchange(produceRequest(8, 1, small, batch)) })
	}()
	b.sense(t)
	<-done
	bound(t, "50 batches of a million records at once", grown(), 300)
	if got := r.list(5, small, 0, -1).Offset; got != 51*n {
		t.Errorf("log end %d after 51 million records", got)
	}
}
