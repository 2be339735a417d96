package config

import (
	"fmt"
	"strings"
	"testing"
)

// The parsers: tables, and fuzzing with what must hold for any text.

func TestParseProperties(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		props, err := ParseProperties([]byte(text))
		var got []string
		for _, p := range props {
			got = append(got, fmt.Sprintf("%d %s=%s", p.Line, p.Key, p.Value))
		}
		if err != nil {
			got = append(got, err.Error())
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%q: got %q, want %q", text, s, want)
		}
	}
	f("", "")
	f("a=b", "1 a=b")
	f("a = b ", "1 a=b ")
	f("  a : b\r\nc d\re", "1 a=b; 2 c=d; 3 e=")
	f("# x\n! y\n\n \t\na=b", "5 a=b")
	f("a=b \\\n   c\nd=e", "1 a=b c; 3 d=e")
	f("a=b\\\\\nc=d", `1 a=b\; 2 c=d`)
	f("a=b\\", "1 a=b")
	f("a\\ b\\=c = d=e", "1 a b=c=d=e")
	f(`a=\t\n\u00e9\q`, "1 a=\t\néq")
	f(`a=\ud83d\ude00`, "1 a=😀")
	f(`a=\ud83dx`, "1 a=\ufffdx")
	f(`a=1`+"\n"+`b=\u12`, `1 a=1; 2 b=; line 2: \u needs four hexadecimal digits`)
	f(`b=\uzzzz`, `1 b=; line 1: \uzzzz: not four hexadecimal digits`)
	f("=x", "1 =x")
	f("a==b", "1 a==b")
	f("a # no comment = b", "1 a=# no comment = b")
	f("\ufeffa=b", "1 a=b")
	f("listeners=PLAINTEXT://:9092,CONTROLLER://:9093", "1 listeners=PLAINTEXT://:9092,CONTROLLER://:9093")
}

func FuzzProperties(f *testing.F) {
	f.Add("a=b\\\n c\n#x\nd:\\u0041", "k", "v")
	f.Fuzz(func(t *testing.T, text, key, val string) {
		if len(text) > 1<<16 {
			return
		}
		props, _ := ParseProperties([]byte(text))
		last := 0
		for _, p := range props {
			if p.Line <= last {
				t.Fatalf("line %d after %d", p.Line, last)
			}
			last = p.Line
		}
		// What is escaped comes back as it was.
		props, err := ParseProperties([]byte(escape(key) + "=" + escape(val)))
		if err != nil || len(props) != 1 || props[0].Key != key || props[0].Value != val {
			t.Fatalf("%q=%q came back as %v, %v", key, val, props, err)
		}
		// No text makes Load panic, and an error tells something.
		if s, _, err := Load(Source{File: []byte(text), Overrides: []string{key + "=" + val}}); err == nil && s == nil || err != nil && err.Error() == "" {
			t.Fatal("neither a configuration nor an error")
		}
	})
}

// escape puts a backslash before every byte that could mean something.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\f':
			b.WriteString(`\f`)
		case strings.IndexByte(` =:#!\`, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return strings.Replace(b.String(), "\ufeff", `\ufeff`, 1)
}

func FuzzEnv(f *testing.F) {
	f.Add("KAFKA_NUM_PARTITIONS")
	f.Add("KAFKA_A__B___C")
	f.Fuzz(func(t *testing.T, name string) {
		key, notice, ok := fromEnv(name)
		if ok && (key == "" || notice != "") || !ok && key != "" {
			t.Fatalf("%q: %q %q %t", name, key, notice, ok)
		}
		if _, found := brokerIndex[key]; found {
			if again, _, _ := fromEnv(EnvName(key)); again != key {
				t.Fatalf("%q: %q and back %q", name, key, again)
			}
		}
	})
}

func FuzzList(f *testing.F) {
	f.Add("a, b ,c")
	f.Add(" ")
	f.Fuzz(func(t *testing.T, s string) {
		list := SplitList(s)
		for _, item := range list {
			if strings.Contains(item, ",") || strings.TrimSpace(item) != item {
				t.Fatalf("%q: %q", s, item)
			}
		}
		if again := SplitList(strings.Join(list, ",")); strings.Join(again, ",") != strings.Join(list, ",") {
			t.Fatalf("%q: %q and again %q", s, list, again)
		}
	})
}

func FuzzListener(f *testing.F) {
	for _, s := range []string{"PLAINTEXT://127.0.0.1:9092", "a://[::1%lo]:0", "::1", "x:1", "[fe80::1%a]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseListener(s)
		if err != nil {
			return
		}
		if l.Port < 0 || l.Port > 65535 || strings.ContainsAny(l.Host, "[] /") {
			t.Fatalf("%q: %+v", s, l)
		}
		again, err := ParseListener(l.String())
		if err != nil || again != l {
			t.Fatalf("%q: %+v and again %+v, %v", s, l, again, err)
		}
		if _, err := parseSecurityMap(s); err == nil && s != "" && strings.TrimSpace(s) != "" && !strings.Contains(s, ":") {
			t.Fatalf("%q is a security map", s)
		}
	})
}
