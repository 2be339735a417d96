//go:build compat

package compat

// A raw connection: frames and headers written here, bodies by kmsg. Every
// response must be read to its last byte and come back the same when kmsg
// encodes it again, so a field too many or too few cannot hide.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type rawConn struct {
	t        testing.TB
	c        net.Conn
	corr     int32
	clientID *string
	tags     []byte // of the request header, when it has any (count first)
	offered  map[int16][2]int16
	timeout  time.Duration
}

func dial(t testing.TB, addr string) *rawConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	id := "compat"
	return &rawConn{t: t, c: c, clientID: &id, timeout: 15 * time.Second}
}

// frame is the bytes of a whole request, length first.
func (r *rawConn) frame(req kmsg.Request) []byte {
	r.corr++
	b := header(req.Key(), req.GetVersion(), r.corr, r.clientID, req.IsFlexible(), r.tags)
	b = req.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// header is a request header v1 or v2 behind four bytes for the length.
func header(key, version int16, corr int32, clientID *string, flexible bool, tags []byte) []byte {
	b := make([]byte, 4, 64)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(corr))
	if clientID == nil {
		b = append(b, 0xff, 0xff)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(*clientID)))
		b = append(b, *clientID...)
	}
	if flexible {
		if tags == nil {
			tags = []byte{0}
		}
		b = append(b, tags...)
	}
	return b
}

func (r *rawConn) write(b []byte) {
	r.t.Helper()
	r.c.SetWriteDeadline(time.Now().Add(r.timeout))
	if _, err := r.c.Write(b); err != nil {
		r.t.Fatalf("write: %v", err)
	}
}

// send writes a request and gives its correlation id.
func (r *rawConn) send(req kmsg.Request) int32 {
	r.t.Helper()
	r.write(r.frame(req))
	return r.corr
}

// readFrame reads one response frame without its length.
func (r *rawConn) readFrame() ([]byte, error) {
	r.c.SetReadDeadline(time.Now().Add(r.timeout))
	var size [4]byte
	if _, err := io.ReadFull(r.c, size[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(size[:]))
	if n < 4 || n > 200<<20 {
		return nil, fmt.Errorf("response frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r.c, b)
	return b, err
}

// recv reads the response to the request with correlation id corr.
func (r *rawConn) recv(req kmsg.Request, corr int32) kmsg.Response {
	r.t.Helper()
	b, err := r.readFrame()
	if err != nil {
		r.t.Fatalf("%s v%d: no response: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != corr {
		r.t.Fatalf("%s v%d: correlation id %d, want %d", kmsg.NameForKey(req.Key()), req.GetVersion(), got, corr)
	}
	return r.decode(req, b[4:])
}

// decode reads a response body strictly.
func (r *rawConn) decode(req kmsg.Request, b []byte) kmsg.Response {
	r.t.Helper()
	name := kmsg.NameForKey(req.Key())
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && req.Key() != 18 {
		if len(b) == 0 || b[0] != 0 {
			r.t.Fatalf("%s v%d: response header v1 must end in a zero tag count, body % x", name, req.GetVersion(), b[:min(len(b), 16)])
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		r.t.Fatalf("%s v%d: response does not decode: %v (% x)", name, req.GetVersion(), err, b[:min(len(b), 200)])
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, b) {
		at := 0
		for at < min(len(again), len(b)) && again[at] == b[at] {
			at++
		}
		r.t.Errorf("%s v%d: response of %d bytes encodes to %d bytes, first difference at %d\n got  % x\n want % x",
			name, req.GetVersion(), len(b), len(again), at, b[at:min(len(b), at+48)], again[at:min(len(again), at+48)])
	}
	// B018: nobody has a quota here, so no response of any API may tell a client to wait.
	if th, ok := resp.(kmsg.ThrottleResponse); ok {
		if ms, _ := th.Throttle(); ms != 0 {
			r.t.Errorf("%s v%d: throttle time %d ms without a quota", name, req.GetVersion(), ms)
		}
	}
	return resp
}

// ask sends and receives.
func ask[R kmsg.Response](r *rawConn, req kmsg.Request) R {
	r.t.Helper()
	corr := r.send(req)
	return r.recv(req, corr).(R)
}

// closed waits for the broker to close the connection and says what came
// before that.
func (r *rawConn) closed(within time.Duration) ([]byte, error) {
	r.c.SetReadDeadline(time.Now().Add(within))
	b, err := io.ReadAll(r.c)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return b, fmt.Errorf("still open after %v", within)
	}
	return b, nil // EOF or reset
}

// versions asks ApiVersions once.
func (r *rawConn) versions() map[int16][2]int16 {
	r.t.Helper()
	if r.offered == nil {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = 3
		req.ClientSoftwareName, req.ClientSoftwareVersion = "weir-compat", "1"
		resp := ask[*kmsg.ApiVersionsResponse](r, req)
		if resp.ErrorCode != 0 {
			r.t.Fatalf("ApiVersions v3: error %d", resp.ErrorCode)
		}
		r.offered = map[int16][2]int16{}
		for _, k := range resp.ApiKeys {
			r.offered[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
		}
	}
	return r.offered
}

// offers says whether the broker advertises this version of an API.
func (r *rawConn) offers(key kmsg.Key, version int16) bool {
	r.t.Helper()
	v, ok := r.versions()[int16(key)]
	return ok && v[0] <= version && version <= v[1]
}

// upTo lists the advertised versions of an API within [from, to].
func (r *rawConn) upTo(key kmsg.Key, from, to int16) []int16 {
	r.t.Helper()
	var out []int16
	for v := from; v <= to; v++ {
		if r.offers(key, v) {
			out = append(out, v)
		}
	}
	return out
}

// need skips the test when an API version is not advertised.
func (r *rawConn) need(key kmsg.Key, version int16) {
	r.t.Helper()
	if !r.offers(key, version) {
		r.t.Skipf("%s v%d is not advertised", key.Name(), version)
	}
}

// newest is the highest version both sides know, at most limit.
func (r *rawConn) newest(key kmsg.Key, limit int16) int16 {
	r.t.Helper()
	v, ok := r.versions()[int16(key)]
	if !ok {
		r.t.Skipf("%s is not advertised", key.Name())
	}
	return min(v[1], limit, kmsg.RequestForKey(int16(key)).MaxVersion())
}

func ptr[T any](v T) *T { return &v }

func deref(s *string) string {
	if s == nil {
		return "<null>"
	}
	return *s
}

// code compares an error code and names it.
func code(t testing.TB, what string, got int16, want ...int16) bool {
	t.Helper()
	for _, w := range want {
		if got == w {
			return true
		}
	}
	want = slices.DeleteFunc(slices.Clone(want), func(c int16) bool { return c == 32767 })
	t.Errorf("%s: error %d, want %d", what, got, want)
	return false
}

// onlyKafka is a code that is right for the real Kafka and wrong for Weir.
func onlyKafka(c int16) int16 {
	if onKafka {
		return c
	}
	return 32767
}
