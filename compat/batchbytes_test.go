//go:build compat

package compat

// Record batches v2 and message sets v0 and v1 as bytes, and a reader for the
// stored ones. Source: the protocol guide's record batch and message set pages.

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

type rec struct {
	key, value []byte // nil: null
	headers    []hdr
	ts         int64
}

type hdr struct {
	name  string
	value []byte // nil: null
}

// batchSpec is a batch to encode; the zero value with records is a plain one.
type batchSpec struct {
	base    int64
	epoch   int32
	attrs   int16
	codec   int16 // 0 none, 1 gzip, 4 zstd
	pid     int64 // with idempotent
	pepoch  int16
	seq     int32
	idem    bool
	recs    []rec
	body    []byte // instead of recs, compressed already
	count   *int32 // instead of len(recs)
	length  *int32 // instead of the right batch_length
	badCRC  bool
	maxTime *int64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func values(n, size int) []rec {
	out := make([]rec, n)
	for i := range out {
		out[i].value = bytes.Repeat([]byte{byte('a' + i%26)}, size)
		out[i].ts = time.Now().UnixMilli() + int64(i)
	}
	return out
}

func (s batchSpec) bytes() []byte {
	var body []byte
	var first, top int64
	for i, r := range s.recs {
		if i == 0 {
			first = r.ts
		}
		top = max(top, r.ts)
		var b []byte
		b = append(b, 0)
		b = binary.AppendVarint(b, r.ts-first)
		b = binary.AppendVarint(b, int64(i))
		for _, f := range [][]byte{r.key, r.value} {
			if f == nil {
				b = binary.AppendVarint(b, -1)
				continue
			}
			b = binary.AppendVarint(b, int64(len(f)))
			b = append(b, f...)
		}
		b = binary.AppendVarint(b, int64(len(r.headers)))
		for _, h := range r.headers {
			b = binary.AppendVarint(b, int64(len(h.name)))
			b = append(b, h.name...)
			if h.value == nil {
				b = binary.AppendVarint(b, -1)
				continue
			}
			b = binary.AppendVarint(b, int64(len(h.value)))
			b = append(b, h.value...)
		}
		body = binary.AppendVarint(body, int64(len(b)))
		body = append(body, b...)
	}
	switch s.codec {
	case 1:
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(body)
		w.Close()
		body = z.Bytes()
	case 4:
		w, _ := zstd.NewWriter(nil)
		body = w.EncodeAll(body, nil)
		w.Close()
	}
	if s.body != nil {
		body = s.body
	}
	pid, pepoch, seq := int64(-1), int16(-1), int32(-1)
	if s.idem {
		pid, pepoch, seq = s.pid, s.pepoch, s.seq
	}
	count := int32(len(s.recs))
	if s.count != nil {
		count = *s.count
	}
	if s.maxTime != nil {
		top = *s.maxTime
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(s.base))
	length := int32(49 + len(body))
	if s.length != nil {
		length = *s.length
	}
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	b = binary.BigEndian.AppendUint32(b, uint32(s.epoch))
	b = append(b, 2, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(s.attrs|s.codec))
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.recs)-1))
	b = binary.BigEndian.AppendUint64(b, uint64(first))
	b = binary.BigEndian.AppendUint64(b, uint64(top))
	b = binary.BigEndian.AppendUint64(b, uint64(pid))
	b = binary.BigEndian.AppendUint16(b, uint16(pepoch))
	b = binary.BigEndian.AppendUint32(b, uint32(seq))
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	b = append(b, body...)
	crc := crc32.Checksum(b[21:], castagnoli)
	if s.badCRC {
		crc ^= 1
	}
	binary.BigEndian.PutUint32(b[17:], crc)
	return b
}

// oldMessage is one entry of a message set v0 or v1.
func oldMessage(magic int8, ts int64, key, value []byte) []byte {
	m := []byte{byte(magic), 0}
	if magic == 1 {
		m = binary.BigEndian.AppendUint64(m, uint64(ts))
	}
	for _, f := range [][]byte{key, value} {
		if f == nil {
			m = append(m, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		m = binary.BigEndian.AppendUint32(m, uint32(len(f)))
		m = append(m, f...)
	}
	b := make([]byte, 8, 16+len(m))
	b = binary.BigEndian.AppendUint32(b, uint32(4+len(m)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(m))
	return append(b, m...)
}

// stored is a batch as the broker gave it back.
type stored struct {
	base    int64
	epoch   int32
	attrs   int16
	last    int64
	first   int64 // timestamp
	top     int64 // timestamp
	pid     int64
	pepoch  int16
	seq     int32
	count   int32
	size    int
	records []rec
}

func (s stored) codec() int16 { return s.attrs & 7 }

// readBatches reads whole batches, checks their CRC, and leaves a cut tail
// alone. Records are read where the codec is none, gzip, snappy or zstd.
func readBatches(t testing.TB, b []byte) []stored {
	t.Helper()
	var out []stored
	for len(b) >= 61 {
		size := 12 + int(int32(binary.BigEndian.Uint32(b[8:])))
		if size < 61 {
			t.Fatalf("stored batch of %d bytes", size)
		}
		if size > len(b) {
			break
		}
		if b[16] != 2 {
			t.Fatalf("stored batch has magic %d", b[16])
		}
		if crc := crc32.Checksum(b[21:size], castagnoli); crc != binary.BigEndian.Uint32(b[17:]) {
			t.Fatalf("stored batch: CRC %08x in the header, %08x of the bytes", binary.BigEndian.Uint32(b[17:]), crc)
		}
		s := stored{
			base:   int64(binary.BigEndian.Uint64(b)),
			epoch:  int32(binary.BigEndian.Uint32(b[12:])),
			attrs:  int16(binary.BigEndian.Uint16(b[21:])),
			first:  int64(binary.BigEndian.Uint64(b[27:])),
			top:    int64(binary.BigEndian.Uint64(b[35:])),
			pid:    int64(binary.BigEndian.Uint64(b[43:])),
			pepoch: int16(binary.BigEndian.Uint16(b[51:])),
			seq:    int32(binary.BigEndian.Uint32(b[53:])),
			count:  int32(binary.BigEndian.Uint32(b[57:])),
			size:   size,
		}
		s.last = s.base + int64(int32(binary.BigEndian.Uint32(b[23:])))
		s.records = readRecords(t, s, b[61:size])
		out = append(out, s)
		b = b[size:]
	}
	return out
}

func readRecords(t testing.TB, s stored, b []byte) []rec {
	t.Helper()
	switch s.codec() {
	case 0:
	case 1:
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err == nil {
			b, err = io.ReadAll(z)
		}
		if err != nil {
			t.Fatalf("stored gzip batch: %v", err)
		}
	case 2:
		plain, err := snappy.Decode(nil, b)
		if err != nil {
			return nil // framed as Java clients do: not read here
		}
		b = plain
	case 4:
		z, _ := zstd.NewReader(nil)
		defer z.Close()
		var err error
		if b, err = z.DecodeAll(b, nil); err != nil {
			t.Fatalf("stored zstd batch: %v", err)
		}
	default:
		return nil
	}
	var out []rec
	for range s.count {
		size, n := binary.Varint(b)
		if n <= 0 || size < 0 || int(size) > len(b)-n {
			t.Fatalf("stored record of size %d in %d bytes", size, len(b))
		}
		r := b[n+1 : n+int(size)]
		b = b[n+int(size):]
		dt, n := binary.Varint(r)
		r = r[n:]
		_, n = binary.Varint(r)
		r = r[n:]
		field := func() []byte {
			size, n := binary.Varint(r)
			r = r[n:]
			if size < 0 {
				return nil
			}
			f := r[:size:size]
			r = r[size:]
			return f
		}
		one := rec{ts: s.first + dt}
		one.key, one.value = field(), field()
		count, n := binary.Varint(r)
		r = r[n:]
		for range count {
			one.headers = append(one.headers, hdr{string(field()), field()})
		}
		if len(r) > 0 {
			t.Fatalf("stored record has %d bytes too many", len(r))
		}
		out = append(out, one)
	}
	return out
}

func (s stored) String() string {
	return fmt.Sprintf("[%d-%d epoch %d attrs %#x count %d size %d]", s.base, s.last, s.epoch, s.attrs, s.count, s.size)
}
