package tools

import (
	"bytes"
	"io"
	"math/rand"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Shows: what users type is read as they mean it, and refused with a sentence
// otherwise. How: tables of input and result; lines against bytes.Split.

func TestParseServers(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := parseServers(in)
		s := strings.Join(got, " ")
		if err != nil {
			s = "error"
		}
		if s != want {
			t.Errorf("%q: got %s (%v), want %s", in, s, err, want)
		}
	}
	f("localhost", "localhost:9092")
	f("localhost:1", "localhost:1")
	f("a:1, b:2 ,c", "a:1 b:2 c:9092")
	f("[::1]:9092", "[::1]:9092")
	f("[::1]", "[::1]:9092")
	f("::1", "[::1]:9092")
	f("fe80::1%lo", "[fe80::1%lo]:9092")
	f("[fe80::1%lo]:29092,::1", "[fe80::1%lo]:29092 [::1]:9092")
	f("2001:db8::1:9092", "[2001:db8::1:9092]:9092")
	f("PLAINTEXT://h:1", "h:1")
	f("", "error")
	f(",", "error")
	f(":9092", "error")
	f("h:", "error")
	f("h:0", "error")
	f("h:70000", "error")
	f("h:x", "error")
	f("[::1", "error")
	f("[::1]9092", "error")
	f("a:b:c", "error")
}

// B194: seconds, micro- and nanoseconds are told apart from milliseconds.
func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f := func(in, want, warning string) {
		t.Helper()
		m, err := parseMoment(in, now)
		got := m.String()
		if err != nil {
			got = "error"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s (%v), want %s", in, got, err, want)
		}
		if !strings.Contains(m.warning, warning) || (warning == "") != (m.warning == "") {
			t.Errorf("%q: warning %q, want %q in it", in, m.warning, warning)
		}
	}
	f("1700000000000", "2023-11-14T22:13:20.000Z (1700000000000 ms)", "")
	f("1700000000", "1970-01-20T16:13:20.000Z", "if it is seconds, write 1700000000000 (2023-11-14T22:13:20Z)")
	f("1700000000000000", "55840-", "if it is microseconds, write 1700000000000")
	f("1700000000000000000", "", "if it is nanoseconds, write 1700000000000")
	f("0", "1970-01-01", "not between")
	f("2023-11-14T22:13:20Z", "2023-11-14T22:13:20.000Z", "")
	f("2023-11-14T22:13:20.5+02:00", "2023-11-14T20:13:20.500Z", "")
	f("2023-11-14T22:13:20.123+0200", "2023-11-14T20:13:20.123Z", "")
	f("2023-11-14 22:13", "2023-11-14T22:13:00.000Z", "no time zone")
	f("2023-11-14", "2023-11-14T00:00:00.000Z", "no time zone")
	f("now", "2026-05-01T12:00:00.000Z", "")
	f("yesterday", "error", "")
	f("", "error", "")
}

func TestParseDuration(t *testing.T) {
	f := func(in string, want time.Duration) {
		t.Helper()
		got, err := parseDuration(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %v (%v), want %v", in, got, err, want)
		}
	}
	f("90m", 90*time.Minute)
	f("7d", 168*time.Hour)
	f("1d2h", 26*time.Hour)
	f("PT1H30M", 90*time.Minute)
	f("P1DT2H", 26*time.Hour)
	f("P2W", 14*24*time.Hour)
	f("pt0.5s", 500*time.Millisecond)
	f("-PT1S", -time.Second)
	f("P", -1)
	f("PT", -1)
	f("P1DT", -1)
	f("5", -1)
	f("d", -1)
	f("999999999999W", -1)
	f("P99999999999W", -1)
}

func TestParseStart(t *testing.T) {
	now := time.Now()
	f := func(in, kind string, n int64, stop bool) {
		t.Helper()
		st, _, err := parseStart(strings.Fields(in), now)
		if err != nil {
			st.kind = "error"
			if ExitCode(err) != ExitUsage {
				t.Errorf("%q: exit code %d", in, ExitCode(err))
			}
		}
		if st.kind != kind || (err == nil && (st.n != n || (st.stop != nil) != stop)) {
			t.Errorf("%q: got %+v (%v)", in, st, err)
		}
	}
	f("", "", 0, false)
	f("beginning", "beginning", 0, false)
	f("earliest", "beginning", 0, false)
	f("end", "end", 0, false)
	f("stored", "stored", 0, false)
	f("5", "offset", 5, false)
	f("-5", "back", 5, false)
	f("s@1700000000000", "time", 0, false)
	f("e@2026-01-01T00:00:00Z", "", 0, true)
	f("s@1700000000000 e@1700000000001", "time", 0, true)
	f("e@1700000000001 s@1700000000000", "time", 0, true)
	f("5 json", "offset", 5, false)
	f("5 6", "error", 0, false)
	f("e@1 e@2", "error", 0, false)
	f("middle", "error", 0, false)
	f("s@soon", "error", 0, false)
	f("-9223372036854775808", "error", 0, false)
}

func TestParsePartitions(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		ps, err := parsePartitions(in)
		got := ints(ps)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	f("0", "0")
	f("0,2,5-7", "0,2,5,6,7")
	f("1,1", "1")
	f("7-5", "error")
	f("-1", "error")
	f("", "error")
	f("0-99999999", "error")
}

func TestFormat(t *testing.T) {
	full := &kgo.Record{
		Topic: "t", Partition: 3, Offset: 7, Key: []byte("k"), Value: []byte("val"),
		Timestamp: time.UnixMilli(1234),
		Headers:   []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}, {Key: "a", Value: []byte{}}},
	}
	null := &kgo.Record{Topic: "t", Timestamp: time.UnixMilli(0)}
	empty := &kgo.Record{Topic: "t", Key: []byte{}, Value: []byte{}, Timestamp: time.UnixMilli(0)}
	f := func(in string, r *kgo.Record, want string) {
		t.Helper()
		fm, err := compileFormat(in, "NULL")
		if err != nil {
			if want != "error" {
				t.Errorf("%q: %v", in, err)
			}
			return
		}
		if got := string(fm.append(nil, r)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	f(`%t %p %o %k %s %h %T %S %K %R\n`, full, "t 3 7 k val a=1,b=NULL,a= 1234 3 1 \x00\x00\x00\x03\n")
	f(`%k %s %S %K %R`, null, "NULL NULL -1 -1 \xff\xff\xff\xff")
	f(`%k|%s|%S|%K`, empty, "||0|0")
	f(`100%%\t\x41\\`, full, "100%\tA\\")
	f(``, full, "")
	f(`%`, full, "error")
	f(`%z`, full, "error")
	f(`\q`, full, "error")
	f(`\x4`, full, "error")

	k := ":"
	if got := string(lineFormat(&k, "\n", "NULL").append(nil, null)); got != "NULL:NULL\n" {
		t.Errorf("line: %q", got)
	}
}

func TestEnvelope(t *testing.T) {
	f := func(r *kgo.Record, want string) {
		t.Helper()
		r.Topic, r.Timestamp = "t", time.UnixMilli(5)
		got := string(appendEnvelope(nil, r))
		if want = `{"topic":"t","partition":0,"offset":0,"tstype":"create","ts":5` + want + "}\n"; got != want {
			t.Errorf("got  %swant %s", got, want)
		}
		var back kgo.Record
		if err := readEnvelope([]byte(got), &back); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		same := func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
		if !same(back.Key, r.Key) || !same(back.Value, r.Value) || len(back.Headers) != len(r.Headers) || !back.Timestamp.Equal(r.Timestamp) {
			t.Errorf("%s reads back as %+v", got, back)
		}
		for i := range r.Headers {
			if back.Headers[i].Key != r.Headers[i].Key || !same(back.Headers[i].Value, r.Headers[i].Value) {
				t.Errorf("%s: header %d reads back as %+v", got, i, back.Headers[i])
			}
		}
	}
	h := func(k string, v []byte) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: v} }
	f(&kgo.Record{}, `,"key":null,"payload":null`)
	f(&kgo.Record{Key: []byte{}, Value: []byte("x")}, `,"key":"","payload":"x"`)
	f(&kgo.Record{Value: []byte("\"\\\n\r\t\x01é€😀")}, `,"key":null,"payload":"\"\\\n\r\t\u0001é€😀"`)
	f(&kgo.Record{Key: []byte{0xff}, Value: []byte{0xc3, 0x28}}, `,"key_base64":"/w==","payload_base64":"wyg="`)
	f(&kgo.Record{Headers: []kgo.RecordHeader{h("a", []byte("1")), h("a", nil), h("", []byte{})}},
		`,"headers":["a","1","a",null,"",""],"key":null,"payload":null`)
	f(&kgo.Record{Headers: []kgo.RecordHeader{h("a", []byte{0xfe}), h("b", nil)}},
		`,"headers_base64":["a","/g==","b",null],"key":null,"payload":null`)
}

func TestLines(t *testing.T) {
	f := func(in, delim string, r io.Reader) {
		t.Helper()
		l := newLines(r, delim, 64<<20)
		var got []string
		for {
			p, ok, err := l.next()
			if err != nil {
				t.Fatalf("%.80q: %v", in, err)
			}
			if !ok {
				break
			}
			got = append(got, string(p))
		}
		want := strings.Split(in, delim)
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") || len(got) != len(want) {
			t.Errorf("%.80q by %q: got %d parts, want %d", in, delim, len(got), len(want))
		}
	}
	for _, in := range []string{"", "a", "a\n", "\n", "\n\n", "a\nb", "a\n\nb\n"} {
		f(in, "\n", strings.NewReader(in))
		f(in, "\n", iotest.OneByteReader(strings.NewReader(in)))
		f(in, "\n", iotest.DataErrReader(strings.NewReader(in)))
	}
	rnd := rand.New(rand.NewSource(1))
	for range 30 {
		var b strings.Builder
		for range rnd.Intn(40) {
			b.WriteString(strings.Repeat("x", rnd.Intn(200_000)))
			b.WriteString([]string{"\n", "--", "-", "-\n-"}[rnd.Intn(4)])
		}
		f(b.String(), "\n", strings.NewReader(b.String()))
		f(b.String(), "--", strings.NewReader(b.String()))
	}
	l := newLines(strings.NewReader(strings.Repeat("x", 3<<20)), "\n", 1<<20)
	if _, _, err := l.next(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an endless line: %v", err)
	}
}

func TestSettings(t *testing.T) {
	f := func(pair, want string) {
		t.Helper()
		_, err := loadSettings("", []string{pair}, io.Discard)
		got := ""
		if err != nil {
			got = err.Error()
			if ExitCode(err) != ExitUsage {
				t.Errorf("%s: exit code %d", pair, ExitCode(err))
			}
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", pair, got, want)
		}
	}
	f("acks=all", "")
	f("topic.request.required.acks=1", "")
	f("topic.metadata.refresh.interval.ms=1000", "")
	f("linger.ms=0.5", "")
	f("bootstrap.servers=x", "")
	f("acks=2", "want all, 1 or 0")
	f("lingr.ms=5", "the nearest is linger.ms")
	f("foo=bar", "property foo is not known: give a client property by librdkafka's")
	f("quite.another.thing=1", "quite.another.thing is not known: give")
	f("linger.ms", "write key=value")
	f("fetch.min.bytes=x", "want a number from 1")
	f("ssl.truststore.type=JKS", "want PEM")
	f("sasl.mechanism=GSSAPI", "want PLAIN")
	f("sasl.jaas.config=x", "[hidden]")
	f("transactional.id=x", "leave it out")

	s, err := loadSettings("", []string{`sasl.jaas.config=org.x.ScramLoginModule required username="u" password="p\"q";`}, io.Discard)
	if err != nil || s.sasl.user != "u" || s.sasl.password != `p"q` {
		t.Errorf("jaas: %+v, %v", s, err)
	}
}
