package weir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/metadata"
)

// Shows: whatever bytes follow the header of a request of any API and version
// that is offered, the broker answers with a response of that version that
// decodes to its last byte, or closes the connection, or waits; and it lives on.
// Everything is real, from the connection to the log, but for the disk, which is
// memory. The seeds are a request of each version with every field filled.

// fuzzBroker is a broker on a memory disk and how much it has been through.
type fuzzBroker struct {
	s    *Server
	runs int
}

// get gives the broker, a new one when the last has grown old: topics that were
// made on the way stay.
func (b *fuzzBroker) get(t *testing.T) *Server {
	if b.s != nil {
		img := b.s.quorum.Image()
		partitions := 0
		img.EachTopic(func(topic *metadata.Topic) bool {
			partitions += len(topic.Partitions)
			return true
		})
		if b.runs++; b.runs < 20_000 && partitions < 500 {
			return b.s
		}
		b.close(t)
	}
	s, err := Start(context.Background(), Options{fs: disk.NewMem(1), DataDir: "/data", Overrides: []string{
		"group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=2", "num.partitions=1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.s, b.runs = s, 0
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 4, 10000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 2, 1
	create.Topics = append(create.Topics, topic)
	if _, err := b.exchange(t, s, 19, 4, create.AppendTo(nil), 5*time.Second); err != nil {
		t.Fatalf("create: %v", err)
	}
	return s
}

func (b *fuzzBroker) close(t *testing.T) {
	if b.s == nil {
		return
	}
	if err := b.s.Close(); err != nil {
		t.Errorf("the broker does not stop in order: %v", err)
	}
	b.s = nil
}

var errWaits = errors.New("no answer yet")

// exchange sends one request and, behind it, one for ApiVersions. It gives the
// first one's response body; nil when that has none or the connection closed.
func (b *fuzzBroker) exchange(t *testing.T, s *Server, key, version int16, body []byte, patience time.Duration) ([]byte, error) {
	client, server := net.Pipe()
	defer client.Close()
	s.wire.ServeConn(server, "PLAINTEXT")
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	frame := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(key))
	frame = binary.BigEndian.AppendUint16(frame, uint16(version))
	frame = append(frame, 0, 0, 0, 1, 0, 1, 'f')
	if req.IsFlexible() {
		frame = append(frame, 0)
	}
	frame = append(frame, body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	go func() { _, _ = client.Write(append(frame, 0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 2, 0xff, 0xff)) }()

	_ = client.SetReadDeadline(time.Now().Add(patience))
	var head [8]byte
	if _, err := io.ReadFull(client, head[:]); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, errWaits
		}
		return nil, nil
	}
	n, corr := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
	if n < 4 || n > 64<<20 {
		t.Fatalf("a response of %d bytes to %d", n, len(body))
	}
	resp := make([]byte, n-4)
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(client, resp); err != nil {
		t.Fatalf("a response of %d bytes breaks off: %v", n, err)
	}
	switch {
	case corr == 2 && key == 0: // acks=0
		return nil, nil
	case corr != 1:
		t.Fatalf("the response to request %d comes first", corr)
	}
	return resp, nil
}

// check decodes a response and encodes it again.
func check(t *testing.T, key, version int16, b []byte) {
	resp := kmsg.ResponseForKey(key)
	resp.SetVersion(version)
	if resp.IsFlexible() && key != 18 {
		if len(b) == 0 || b[0] != 0 {
			t.Fatalf("no tags end the response header: % x", b[:min(len(b), 20)])
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		t.Fatalf("the response does not decode: %v: % x", err, b[:min(len(b), 200)])
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, b) {
		t.Fatalf("the response has %d bytes, and %d when encoded again", len(b), len(again))
	}
}

// fill sets every field of a request to something a server has to look at.
func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && v.Type().Field(i).Name != "Version" && v.Type().Field(i).Name != "UnknownTags" {
				fill(f, v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if b := []byte("bytes"); name == "Records" {
				v.SetBytes(aBatch())
			} else {
				v.SetBytes(b)
			}
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.String:
		v.SetString("t")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}

func aBatch() []byte {
	b := batch.NewBuilder(batch.Plain(batch.NoCodec))
	b.Add(1, []byte("k"), []byte("v"))
	return b.Bytes()
}

func FuzzRequests(f *testing.F) {
	var b fuzzBroker
	f.Cleanup(func() {
		if b.s != nil {
			_ = b.s.Close()
		}
	})
	versions := make(map[int16][2]int16)
	s, err := Start(context.Background(), Options{fs: disk.NewMem(1), DataDir: "/data"})
	if err != nil {
		f.Fatal(err)
	}
	s.broker.Table().Each(func(key, lo, hi int16) {
		versions[key] = [2]int16{lo, hi}
		for v := lo; v <= hi; v++ {
			for _, full := range []bool{false, true} {
				req := kmsg.RequestForKey(key)
				req.SetVersion(v)
				if full {
					fill(reflect.ValueOf(req).Elem(), "")
				}
				f.Add(uint8(key), uint8(v), req.AppendTo(nil))
			}
		}
	})
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, version uint8, body []byte) {
		r, ok := versions[int16(key)]
		if !ok {
			return
		}
		v := r[0] + int16(version)%(r[1]-r[0]+1)
		resp, err := b.exchange(t, b.get(t), int16(key), v, body, 20*time.Millisecond)
		if err == nil && resp != nil {
			check(t, int16(key), v, resp)
		}
	})
}

// A meta.properties that is taken is written and read again as the same.
func FuzzIdentity(f *testing.F) {
	f.Add(identity{cluster: "abc", node: 3, dir: "d", dirs: []string{"d", "e"}}.text())
	f.Add([]byte("version=1\ncluster.id=x\nbroker.id=1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		id, err := parseIdentity("p", text)
		if err != nil || strings.ContainsFunc(id.cluster+id.dir+strings.Join(id.dirs, ""), func(r rune) bool { return r <= ' ' || r == '\\' || r > '~' }) {
			return // properties escape these; ids do not have them
		}
		if again, err := parseIdentity("p", id.text()); err != nil || !reflect.DeepEqual(again, id) {
			t.Fatalf("%+v became %+v, %v", id, again, err)
		}
	})
}
