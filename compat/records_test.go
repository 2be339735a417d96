//go:build compat

package compat

// Shows: a record comes back as it went in, whoever wrote it and whoever reads
// it. B038: null and empty stay apart in keys, values and header values. B039:
// every codec of every client is read by every other, in batches of one byte,
// just over a block, and a megabyte.

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// oddRecords is every pair of null, empty and x for key, value and header
// value, then names that repeat, and a thousand headers.
func oddRecords() []rec {
	three := [][]byte{nil, {}, []byte("x")}
	now := time.Now().UnixMilli()
	var out []rec
	for _, k := range three {
		for _, v := range three {
			for _, h := range three {
				out = append(out, rec{key: k, value: v, headers: []hdr{{"h", h}}, ts: now})
			}
		}
	}
	out = append(out, rec{key: []byte("twice"), headers: []hdr{{"b", []byte("1")}, {"a", []byte("2")}, {"b", []byte("3")}, {"", []byte("4")}}, ts: now})
	many := rec{key: []byte("many"), value: []byte{}, ts: now}
	for i := range 1000 {
		many.headers = append(many.headers, hdr{fmt.Sprint("h", i%7), []byte(fmt.Sprint(i))})
	}
	return append(out, many, rec{value: []byte("no headers"), ts: now})
}

// show writes a field so that null and empty differ.
func show(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

func (r rec) String() string {
	s := show(r.key) + "=" + show(r.value)
	for _, h := range r.headers {
		s += " " + h.name + ":" + show(h.value)
	}
	return s
}

// lister collects the records of a topic's partition 0 as rec.String shows them.
type lister func(t *testing.T, topic string, n int) []string

func listRaw(t *testing.T, topic string, n int) []string {
	r := dial(t, sharedBroker(t).addr)
	var out []string
	for next := int64(0); len(out) < n; {
		all := readBatches(t, r.fetch(topic, next).RecordBatches)
		if len(all) == 0 {
			break
		}
		for _, s := range all {
			for _, one := range s.records {
				out = append(out, one.String())
			}
			next = s.last + 1
		}
	}
	return out
}

func listFranz(t *testing.T, topic string, n int) []string {
	cl := franz(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out []string
	for len(out) < n && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			one := rec{key: r.Key, value: r.Value}
			for _, h := range r.Headers {
				one.headers = append(one.headers, hdr{h.Key, h.Value})
			}
			out = append(out, one.String())
		})
	}
	return out
}

// listWeir is our own command, whose JSON keeps null, base64 and header order.
func listWeir(t *testing.T, topic string, n int) []string {
	var out []string
	for line := range strings.Lines(run(t, "", weirBinary(t), "consume", topic, "-e", "-q", "-J", "-b", sharedBroker(t).addr)) {
		var got struct {
			Key, Payload *string
			Headers      []*string
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		field := func(s *string) []byte {
			if s == nil {
				return nil
			}
			return []byte(*s)
		}
		one := rec{key: field(got.Key), value: field(got.Payload)}
		for i := 0; i+1 < len(got.Headers); i += 2 {
			one.headers = append(one.headers, hdr{*got.Headers[i], field(got.Headers[i+1])})
		}
		out = append(out, one.String())
	}
	return out
}

const pythonList = `
import sys, confluent_kafka as ck
addr, topic, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
def show(b):
    return "null" if b is None else '"' + b.decode() + '"'
c = ck.Consumer({"bootstrap.servers": addr, "group.id": "list-" + topic, "enable.auto.commit": False})
c.assign([ck.TopicPartition(topic, 0, 0)])
for _ in range(n):
    m = c.poll(20)
    if m is None or m.error(): print("nothing more:", m and m.error()); break
    print(show(m.key()) + "=" + show(m.value()) + "".join(" " + k + ":" + show(v) for k, v in m.headers() or []))
c.close()
`

func listPython(t *testing.T, topic string, n int) []string {
	out := run(t, "", "python3", "-c", pythonList, sharedBroker(t).addr, topic, fmt.Sprint(n))
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

// TestNullAndEmptyRecords is B038.
func TestNullAndEmptyRecords(t *testing.T) {
	b := sharedBroker(t)
	odd := oddRecords()
	want := make([]string, len(odd))
	for i, one := range odd {
		want[i] = one.String()
	}
	hasPython := exec.Command("python3", "-c", "import confluent_kafka").Run() == nil
	if !hasPython {
		t.Log("no confluent-kafka for Python: librdkafka is asked through kcat only")
	}
	readers := map[string]lister{"raw": listRaw, "franz-go": listFranz, "weir consume": listWeir}
	if hasPython {
		readers["librdkafka"] = listPython
	}
	same := func(t *testing.T, who string, got []string) {
		t.Helper()
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%s: record %d of %d is %.300s, want %.300s", who, i, len(got), append(got, make([]string, len(want))...)[i], want[i])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d records, want %d", who, len(got), len(want))
		}
	}
	check := func(t *testing.T, topic string) {
		t.Helper()
		for who, list := range readers {
			same(t, "read by "+who, list(t, topic, len(want)))
		}
		if kcat, err := exec.LookPath("kcat"); err == nil {
			var lines []string
			out := run(t, "", kcat, "-q", "-b", b.addr, "-C", "-t", topic, "-e", "-o", "beginning", "-f", "%K %k|%S %s|%h\n")
			for i, one := range odd {
				length := func(b []byte) string {
					if b == nil {
						return "-1 "
					}
					return fmt.Sprintf("%d %s", len(b), b)
				}
				line := length(one.key) + "|" + length(one.value) + "|"
				for j, h := range one.headers {
					if j > 0 {
						line += ","
					}
					value := string(h.value)
					if h.value == nil {
						value = "NULL"
					}
					line += h.name + "=" + value
				}
				lines = append(lines, line)
				if got := strings.Split(out, "\n"); i >= len(got) || got[i] != line {
					t.Fatalf("kcat: record %d is %.200q, want %.200q", i, append(got, make([]string, len(odd))...)[i], line)
				}
			}
			if strings.Join(lines, "\n")+"\n" != out {
				t.Errorf("kcat printed %d bytes", len(out))
			}
		}
	}
	r := dial(t, b.addr)
	raw := r.topic(1)
	r.put(raw, batchSpec{recs: odd})
	t.Run("written raw", func(t *testing.T) { check(t, raw) })
	t.Run("written raw, gzip", func(t *testing.T) {
		topic := r.topic(1)
		r.put(topic, batchSpec{codec: 1, recs: odd})
		check(t, topic)
	})
	t.Run("stored anew", func(t *testing.T) {
		topic := r.topic(1, "compression.type=zstd")
		r.put(topic, batchSpec{recs: odd})
		check(t, topic)
	})
	t.Run("written by franz-go", func(t *testing.T) {
		topic := r.topic(1)
		cl := franz(t, kgo.DefaultProduceTopic(topic))
		for _, one := range odd {
			k := &kgo.Record{Key: one.key, Value: one.value}
			for _, h := range one.headers {
				k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
			}
			if err := cl.ProduceSync(t.Context(), k).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		check(t, topic)
	})
	t.Run("written by weir produce", func(t *testing.T) {
		topic := r.topic(1)
		lines := run(t, "", weirBinary(t), "consume", raw, "-e", "-q", "-J", "-b", b.addr)
		run(t, lines, weirBinary(t), "produce", topic, "-J", "-b", b.addr, "-p", "0")
		check(t, topic)
	})
	t.Run("weir consume prints them apart", func(t *testing.T) {
		out := run(t, "", weirBinary(t), "consume", raw, "-q", "-e", "-c", "27", "-f", `%k|%s|%h\n`, "-b", b.addr)
		seen := map[string]bool{}
		for line := range strings.Lines(out) {
			if seen[line] {
				t.Errorf("%q stands for two different records", line)
			}
			seen[line] = true
		}
		if len(seen) != 27 {
			t.Errorf("%d lines, want 27:\n%s", len(seen), out)
		}
	})
	if hasPython {
		t.Run("written by librdkafka", func(t *testing.T) {
			topic := r.topic(1)
			type pair [2]*string
			type line struct {
				K, V *string
				H    []pair
			}
			text := func(b []byte) *string {
				if b == nil {
					return nil
				}
				return ptr(string(b))
			}
			var in []line
			for _, one := range odd {
				l := line{text(one.key), text(one.value), []pair{}}
				for _, h := range one.headers {
					l.H = append(l.H, pair{&h.name, text(h.value)})
				}
				in = append(in, l)
			}
			js, _ := json.Marshal(in)
			run(t, string(js), "python3", "-c", `
import sys, json, confluent_kafka as ck
p = ck.Producer({"bootstrap.servers": sys.argv[1], "enable.idempotence": True})
e = lambda s: None if s is None else s.encode()
for r in json.load(sys.stdin):
    p.produce(sys.argv[2], key=e(r["K"]), value=e(r["V"]), headers=[(k, e(v)) for k, v in r["H"]])
assert p.flush(30) == 0
`, b.addr, topic)
			check(t, topic)
		})
	}
}

// xerial frames snappy the way Java clients do: a magic, then blocks of at most
// 32 KiB, each behind its length.
func xerial(b []byte) []byte {
	out := []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}
	for len(b) > 0 {
		n := min(len(b), 32<<10)
		z := snappy.Encode(nil, b[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(z))), z...)
		b = b[n:]
	}
	return out
}

// TestCodecsAcrossClients is B039, and B004: what a client was told to compress
// with is what is stored.
func TestCodecsAcrossClients(t *testing.T) {
	b := sharedBroker(t)
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		missing(t, "kcat is not installed")
	}
	hasPython := exec.Command("python3", "-c", "import confluent_kafka").Run() == nil
	r := dial(t, b.addr)
	sizes := []int{1, 32<<10 + 1, 1_000_000}
	value := func(i, size int) []byte { // text that compresses by half, different for each
		v := make([]byte, size)
		for j := range v {
			v[j] = "0123456789abcdef"[(i*7+j*j>>3+j)%16]
		}
		return v
	}
	franzCodec := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	for _, kind := range []string{"producer", "zstd"} {
		for number, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
			t.Run(codec+" into "+kind, func(t *testing.T) {
				r := dial(t, b.addr)
				topic := r.topic(1, "compression.type="+kind, "max.message.bytes=8000000")
				var want [][]byte
				next := func(who, size int) []byte {
					want = append(want, value(who*10+number, size))
					return want[len(want)-1]
				}
				for _, size := range sizes {
					cl := franz(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(franzCodec[codec]), kgo.ProducerBatchMaxBytes(4<<20))
					if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: next(0, size)}).FirstErr(); err != nil {
						t.Fatalf("franz-go, %d bytes: %v", size, err)
					}
					run(t, string(next(1, size)), kcat, "-q", "-b", b.addr, "-P", "-t", topic, "-z", codec, "-D", "~", "-X", "message.max.bytes=4000000")
					file := t.TempDir() + "/v"
					if err := os.WriteFile(file, next(2, size), 0o644); err != nil {
						t.Fatal(err)
					}
					run(t, "", weirBinary(t), "produce", topic, file, "-z", codec, "-q", "-X", "message.max.bytes=4000000", "-b", b.addr)
					if hasPython { // the newest librdkafka: B004
						run(t, string(next(4, size)), "python3", "-c", `
import sys, confluent_kafka as ck
p = ck.Producer({"bootstrap.servers": sys.argv[1], "compression.type": sys.argv[3], "message.max.bytes": 4000000})
p.produce(sys.argv[2], value=sys.stdin.buffer.read())
assert p.flush(30) == 0
`, b.addr, topic, codec)
					}
					if codec == "snappy" {
						for _, pack := range []func([]byte) []byte{func(b []byte) []byte { return snappy.Encode(nil, b) }, xerial} {
							s := batchSpec{recs: []rec{{value: next(3, size), ts: time.Now().UnixMilli()}}}
							s.codec, s.body = 2, pack(s.bytes()[61:])
							r.put(topic, s)
						}
					}
				}
				end := r.latest(topic)
				if int(end) != len(want) {
					t.Fatalf("%d records, want %d", end, len(want))
				}
				stored := int16(number)
				if kind == "zstd" {
					stored = 4
				}
				for at := int64(0); at < end; {
					all := readBatches(t, r.fetch(topic, at).RecordBatches)
					for _, s := range all {
						// A client may leave one byte uncompressed: that is smaller.
						if s.codec() != stored && (kind == "zstd" || s.size > 200) {
							t.Errorf("stored with codec %d, want %d: %v", s.codec(), stored, s)
						}
						at = s.last + 1
					}
					if len(all) == 0 {
						t.Fatalf("nothing at %d", at)
					}
				}
				cl := franz(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var got [][]byte
				for len(got) < len(want) && ctx.Err() == nil {
					cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got = append(got, r.Value) })
				}
				check := func(who string, got [][]byte) {
					t.Helper()
					if len(got) != len(want) {
						t.Errorf("%s read %d of %d", who, len(got), len(want))
						return
					}
					for i := range want {
						if !bytes.Equal(got[i], want[i]) {
							t.Errorf("%s: record %d has %d bytes, want %d", who, i, len(got[i]), len(want[i]))
						}
					}
				}
				check("franz-go", got)
				split := func(out string) [][]byte {
					return bytes.Split(bytes.TrimSuffix([]byte(out), []byte("~")), []byte("~"))
				}
				check("kcat", split(run(t, "", kcat, "-q", "-b", b.addr, "-C", "-t", topic, "-o", "beginning", "-e", "-D", "~")))
				check("weir consume", split(run(t, "", weirBinary(t), "consume", topic, "-e", "-q", "-f", "%s~", "-b", b.addr)))
			})
		}
	}
	t.Run("producer keeps the bytes", func(t *testing.T) {
		for _, codec := range []int16{0, 1, 4} {
			topic := r.topic(1)
			sent := batchSpec{codec: codec, epoch: 0, recs: values(50, 100)}.bytes()
			if p := r.produce(8, topic, sent); p.ErrorCode != 0 {
				t.Fatalf("codec %d: error %d", codec, p.ErrorCode)
			}
			got := ask[*kmsg.FetchResponse](r, fetchRequest(11, 0, 0, 1<<20, at(topic, 0, 0))).Topics[0].Partitions[0].RecordBatches
			// Base offset and leader epoch are the broker's.
			if len(got) != len(sent) || !bytes.Equal(got[16:], sent[16:]) || !bytes.Equal(got[8:12], sent[8:12]) {
				t.Errorf("codec %d: %d bytes sent, %d stored, or others", codec, len(sent), len(got))
			}
		}
	})
}
