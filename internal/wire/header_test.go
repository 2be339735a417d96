package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Shown here: request headers of both kinds parse whatever the client is called
// and whatever tags it sends; response headers have the right version for every
// API and version, to the byte.

func TestResponseHeaderVersions(t *testing.T) {
	table := new(Table)
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		if req := kmsg.RequestForKey(key); req != nil {
			table.Add(key, 0, req.MaxVersion())
		}
	}
	table.Each(func(key, lo, hi int16) {
		for v := lo; v <= hi; v++ {
			resp := kmsg.ResponseForKey(key)
			resp.SetVersion(v)
			want := resp.IsFlexible() && key != 18
			if got := table.api(key).flexibleResponse(key, v); got != want {
				t.Errorf("%s v%d: flexible response header %v, want %v", kmsg.NameForKey(key), v, got, want)
			}
		}
	})

	golden := func(key, version int16, want string) {
		t.Helper()
		got := appendResponseHeader(nil, 0x01020304, table.api(key).flexibleResponse(key, version))
		if string(got) != want {
			t.Errorf("key %d v%d: header % x, want % x", key, version, got, want)
		}
	}
	const v0, v1 = "\x00\x00\x00\x00\x01\x02\x03\x04", "\x00\x00\x00\x00\x01\x02\x03\x04\x00"
	golden(18, 0, v0)
	golden(18, 2, v0)
	golden(18, 3, v0) // KIP-511: readable before versions are known
	golden(18, 4, v0)
	golden(3, 8, v0)
	golden(3, 9, v1)
	golden(0, 8, v0)
	golden(0, 9, v1)
	golden(1, 11, v0)
	golden(1, 12, v1)
	golden(17, 1, v0) // SaslHandshake never became flexible
	golden(36, 1, v0)
	golden(36, 2, v1)
}

func TestTableAdd(t *testing.T) {
	f := func(key, lo, hi int16) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("Add(%d, %d, %d) did not panic", key, lo, hi)
			}
		}()
		new(Table).Add(key, lo, hi)
	}
	f(999, 0, 0)
	f(0, 0, 99)
	f(0, 3, 2)
	f(0, -1, 2)
	table := testTable()
	if _, _, ok := table.Range(2); ok {
		t.Error("an API that was not added is offered")
	}
	if lo, hi, ok := table.Range(18); lo != 0 || hi != 4 || !ok {
		t.Errorf("ApiVersions %d to %d, %v", lo, hi, ok)
	}
	if _, _, ok := table.Range(-1); ok {
		t.Error("key -1 is offered")
	}
}

// Field case B027: no client id is special.
func TestClientIDs(t *testing.T) {
	table := testTable()
	for _, version := range []int16{0, 4} { // header v1, header v2
		for _, id := range []string{"", "x", strings.Repeat("long", 75), "größe\x00\n\"", "\xff\xfe"} {
			req := kmsg.NewPtrHeartbeatRequest()
			req.Version, req.Group = version, "group"
			h, err := parseHeader(table, frameOf(req, 7, id)[4:])
			if err != nil || !h.offered || string(h.client) != id || h.client == nil || h.correlationID != 7 || !bytes.Equal(h.body, req.AppendTo(nil)) {
				t.Errorf("v%d client id %q: %+v, %v", version, id, h, err)
			}
		}
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version = version
		h, err := parseHeader(table, kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:])
		if err != nil || h.client != nil || !bytes.Equal(h.body, req.AppendTo(nil)) {
			t.Errorf("v%d null client id: %+v, %v", version, h, err)
		}
	}
}

func TestParseHeader(t *testing.T) {
	table := testTable()
	f := func(frame, body string, wantErr bool) {
		t.Helper()
		h, err := parseHeader(table, []byte(frame))
		if (err != nil) != wantErr || err != nil && !errors.Is(err, errHeader) || string(h.body) != body {
			t.Errorf("%x: body %q, error %v; want %q, error %v", frame, h.body, err, body, wantErr)
		}
	}
	const v8, v12 = "\x00\x03\x00\x08\x00\x00\x00\x01", "\x00\x03\x00\x0c\x00\x00\x00\x01"
	f(v8+"\xff\xffbody", "body", false)
	f(v8+"\x00\x02idbody", "body", false)
	f(v8+"\x00\x02id", "", false)
	f(v8+"\x00\x09id", "", true)
	f(v8+"\xff\xfeid", "", true)
	f(v8+"\x80\x00id", "", true)
	f(v8, "", true)
	f(v8+"\x00", "", true)
	f(v8[:7], "", true)
	f("", "", true)
	// Field case B023: unknown tags are passed over, in any order.
	f(v12+"\xff\xff\x00body", "body", false)
	f(v12+"\xff\xff\x01\x63\x03abcbody", "body", false)
	f(v12+"\xff\xff\x02\x63\x00\x01\x01xbody", "body", false)
	f(v12+"\xff\xff\x01\xe8\x07\xac\x02"+strings.Repeat("t", 300)+"body", "body", false)
	f(v12+"\xff\xff", "", true)
	f(v12+"\xff\xff\x01", "", true)
	f(v12+"\xff\xff\x01\x63", "", true)
	f(v12+"\xff\xff\x01\x63\x04abc", "", true)
	f(v12+"\xff\xff\xff\xff\xff\xff\x0f\x00\x00", "", true) // four billion tags
	f(v12+"\xff\xff\x80\x80\x80\x80\x80\x80\x00body", "", true)
	// What is not offered is not parsed.
	f("\x00\x12\x00\x63\x00\x00\x00\x01\x00\x02id\xff\xff\xff\xff\xff\xff", "", false)
	f("\x00\x12\x00\x63\x00\x00\x00\x01", "", false)
	f("\x7f\xff\x00\x00\x00\x00\x00\x01\x70\x00", "", false)
	f("\xff\xff\xff\xff\x00\x00\x00\x01", "", false)
}

func TestBadPrefix(t *testing.T) {
	f := func(first string, size int, want string) {
		t.Helper()
		if got := badPrefix([]byte(first), size, 104857600); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", first, got, want)
		}
	}
	f("GET / HTTP/1.1\r\n", 0x47455420, "HTTP")
	f("\x16\x03\x01\x02\x00", 0x16030102, "TLS")
	f("\xff\xff\xff\xff", -1, "length -1")
	f("\x00\x00\x00\x00", 0, "length 0")
	f("\x7f\xff\xff\xff", 1<<31-1, "2147483647 is above socket.request.max.bytes 104857600")
}

func FuzzParseHeader(f *testing.F) {
	table := testTable()
	f.Add(heartbeat(4, 1)[4:])
	f.Add(heartbeat(0, 1)[4:])
	f.Add([]byte("\x00\x12\x00\x63\x00\x00\x00\x01\x00\x02id"))
	f.Add([]byte("\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\x02\x63\x00\x01\x01xbody"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, err := parseHeader(table, frame)
		if err != nil || !h.offered {
			return
		}
		// What was parsed and the tags that were passed over make up the frame.
		if len(h.body)+len(h.client)+headerMin+2 > len(frame) || !bytes.HasSuffix(frame, h.body) {
			t.Fatalf("%x: client %x body %x", frame, h.client, h.body)
		}
		if h.version < h.api.flexFrom {
			again := append([]byte(nil), frame[:headerMin]...)
			if h.client == nil {
				again = append(again, 0xff, 0xff)
			} else {
				again = append(again, byte(len(h.client)>>8), byte(len(h.client)))
			}
			if again = append(append(again, h.client...), h.body...); !bytes.Equal(again, frame) {
				t.Fatalf("%x came back as %x", frame, again)
			}
		}
	})
}
