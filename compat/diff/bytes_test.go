//go:build compat

package diff

// Record batches from a scenario's JSON, and back from a fetch. Source: the
// protocol guide's record batch and message set pages.

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
)

// batchSpec is {"batch": ...} in a scenario. What is left out is right and plain.
type batchSpec struct {
	Records   []any  // values; null is a tombstone without a key; {"k":..,"v":..,"h":n headers}
	TS        *int64 // of the first record; 1 ms more each
	Now       bool   // the first record is of this moment
	PID       *int64
	PEpoch    int16
	Seq       int32
	Codec     string // gzip, zstd
	CodecBits *int16 // whatever the body is
	Attrs     int16  // or'ed
	Base      int64
	Epoch     int32
	Magic     int8 // 2
	BadCRC    bool
	Count     *int32
	LastDelta *int32
	Length    *int32
	Cut       int // bytes off the end
	MaxTS     *int64
	FirstID   int64 // offset delta of the first record
	Body      string
}

const firstTimestamp = 1_700_000_000_000

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func makeBatch(spec any) ([]byte, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	s := batchSpec{Magic: 2}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, err
	}
	ts := int64(firstTimestamp)
	if s.TS != nil {
		ts = *s.TS
	}
	if s.Now {
		ts = time.Now().UnixMilli()
	}
	if s.Magic < 2 {
		return messageSet(s, ts), nil
	}
	var body []byte
	for i, r := range s.Records {
		key, value, headers := fields(r)
		var b []byte
		b = append(b, 0)
		b = binary.AppendVarint(b, int64(i))
		b = binary.AppendVarint(b, int64(i)+s.FirstID)
		b = appendField(b, key)
		b = appendField(b, value)
		b = binary.AppendVarint(b, int64(headers))
		for h := range headers {
			b = appendField(b, []byte(fmt.Sprint("h", h)))
			b = appendField(b, nil)
		}
		body = binary.AppendVarint(body, int64(len(b)))
		body = append(body, b...)
	}
	if s.Body != "" {
		if body, err = hex.DecodeString(s.Body); err != nil {
			return nil, err
		}
	}
	codec := int16(0)
	switch s.Codec {
	case "":
	case "gzip":
		codec = 1
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(body)
		w.Close()
		body = z.Bytes()
	case "zstd":
		codec = 4
		w, _ := zstd.NewWriter(nil)
		body = w.EncodeAll(body, nil)
		w.Close()
	default:
		return nil, fmt.Errorf("codec %q", s.Codec)
	}
	if s.CodecBits != nil {
		codec = *s.CodecBits
	}
	pid, pepoch, seq := int64(-1), int16(-1), int32(-1)
	if s.PID != nil {
		pid, pepoch, seq = *s.PID, s.PEpoch, s.Seq
	}
	n := int32(len(s.Records))
	b := binary.BigEndian.AppendUint64(nil, uint64(s.Base))
	b = binary.BigEndian.AppendUint32(b, uint32(or(s.Length, int32(49+len(body)))))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Epoch))
	b = append(b, byte(s.Magic), 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(s.Attrs|codec))
	b = binary.BigEndian.AppendUint32(b, uint32(or(s.LastDelta, n-1)))
	b = binary.BigEndian.AppendUint64(b, uint64(ts))
	b = binary.BigEndian.AppendUint64(b, uint64(or(s.MaxTS, ts+int64(max(n-1, 0)))))
	b = binary.BigEndian.AppendUint64(b, uint64(pid))
	b = binary.BigEndian.AppendUint16(b, uint16(pepoch))
	b = binary.BigEndian.AppendUint32(b, uint32(seq))
	b = binary.BigEndian.AppendUint32(b, uint32(or(s.Count, n)))
	b = append(b, body...)
	crc := crc32.Checksum(b[21:], castagnoli)
	if s.BadCRC {
		crc ^= 1
	}
	binary.BigEndian.PutUint32(b[17:], crc)
	return b[:max(0, len(b)-s.Cut)], nil
}

func messageSet(s batchSpec, ts int64) []byte {
	var out []byte
	for i, r := range s.Records {
		key, value, _ := fields(r)
		m := []byte{byte(s.Magic), 0}
		if s.Magic == 1 {
			m = binary.BigEndian.AppendUint64(m, uint64(ts+int64(i)))
		}
		for _, f := range [][]byte{key, value} {
			if f == nil {
				m = append(m, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			m = binary.BigEndian.AppendUint32(m, uint32(len(f)))
			m = append(m, f...)
		}
		out = binary.BigEndian.AppendUint64(out, uint64(i))
		out = binary.BigEndian.AppendUint32(out, uint32(4+len(m)))
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(m))
		out = append(out, m...)
	}
	return out
}

func fields(r any) (key, value []byte, headers int) {
	switch v := r.(type) {
	case string:
		return nil, []byte(v), 0
	case map[string]any:
		if k, ok := v["k"].(string); ok {
			key = []byte(k)
		}
		if x, ok := v["v"].(string); ok {
			value = []byte(x)
		}
		if h, ok := v["h"].(float64); ok {
			headers = int(h)
		}
	}
	return key, value, headers
}

func appendField(b, f []byte) []byte {
	if f == nil {
		return binary.AppendVarint(b, -1)
	}
	b = binary.AppendVarint(b, int64(len(f)))
	return append(b, f...)
}

func or[T any](p *T, v T) T {
	if p != nil {
		return *p
	}
	return v
}

// showBatches renders fetched bytes: every batch with its header, its records where
// they can be read, and how many bytes of a cut one follow.
func showBatches(b []byte) any {
	out := []any{}
	for len(b) > 0 {
		if len(b) < 17 || len(b) < 12+int(int32(binary.BigEndian.Uint32(b[8:]))) {
			out = append(out, fmt.Sprintf("%d bytes of a cut batch", len(b)))
			break
		}
		size := 12 + int(int32(binary.BigEndian.Uint32(b[8:])))
		if size < 61 || b[16] != 2 {
			out = append(out, "x'"+hex.EncodeToString(b[:max(size, 0)])+"'")
			break
		}
		one := b[:size]
		b = b[size:]
		attrs := int16(binary.BigEndian.Uint16(one[21:]))
		m := map[string]any{
			"Base":       int64(binary.BigEndian.Uint64(one)),
			"Epoch":      int64(int32(binary.BigEndian.Uint32(one[12:]))),
			"Attrs":      int64(attrs),
			"LastDelta":  int64(int32(binary.BigEndian.Uint32(one[23:]))),
			"FirstTime":  stamp(int64(binary.BigEndian.Uint64(one[27:]))),
			"MaxTime":    stamp(int64(binary.BigEndian.Uint64(one[35:]))),
			"ProducerID": int64(binary.BigEndian.Uint64(one[43:])),
			"PEpoch":     int64(int16(binary.BigEndian.Uint16(one[51:]))),
			"Seq":        int64(int32(binary.BigEndian.Uint32(one[53:]))),
			"Count":      int64(int32(binary.BigEndian.Uint32(one[57:]))),
		}
		if pid := m["ProducerID"].(int64); pid >= 0 {
			m["ProducerID"] = ordinal{"pid", fmt.Sprint(pid)}
		}
		if attrs&7 == 0 {
			m["Size"] = int64(size)
		}
		if crc32.Checksum(one[21:], castagnoli) != binary.BigEndian.Uint32(one[17:]) {
			m["CRC"] = "wrong"
		}
		body := one[61:]
		if c := attrs & 7; c != 0 {
			if plain, err := kgo.DefaultDecompressor().Decompress(body, kgo.CompressionCodecType(c)); err == nil {
				body = plain
			} else {
				m["Body"] = err.Error()
			}
		}
		m["Records"] = showBytes(body)
		if attrs&0x20 != 0 {
			delete(m, "Records")
		}
		out = append(out, m)
	}
	return out
}
