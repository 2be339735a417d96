package config

import (
	"strings"
	"testing"
)

// Addresses: what parses, what clashes, and what clients are told.

// B190, the forms.
func TestParseListener(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		l, err := ParseListener(in)
		got := l.Name + " " + l.Host + " " + l.Address()[strings.LastIndexByte(l.Address(), ':')+1:]
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %q (%v), want %q", in, got, err, want)
		}
	}
	f("PLAINTEXT://127.0.0.1:9092", "PLAINTEXT 127.0.0.1 9092")
	f("PLAINTEXT://:9092", "PLAINTEXT  9092")
	f("plaintext://host:0", "PLAINTEXT host 0")
	f("EXTERNAL-2://a.b-c_d:1", "EXTERNAL-2 a.b-c_d 1")
	f("PLAINTEXT://[::1]:9092", "PLAINTEXT ::1 9092")
	f("PLAINTEXT://[::]:9092", "PLAINTEXT :: 9092")
	f("PLAINTEXT://[fe80::1%lo]:9092", "PLAINTEXT fe80::1%lo 9092")
	f("PLAINTEXT://::1", "PLAINTEXT ::1 9092")
	f("[::1]:9092", "PLAINTEXT ::1 9092")
	f("::1", "PLAINTEXT ::1 9092")
	f("[::1]", "PLAINTEXT ::1 9092")
	f("host:9092", "PLAINTEXT host 9092")
	f("host", "PLAINTEXT host 9092")
	f("", "PLAINTEXT  9092")
	for _, bad := range []string{"://h:1", "A B://h:1", "P://h:x", "P://h:-1", "P://h:65536", "P://h:", "P://[::1:9092", "P://[::1]9092", "P://[h]:1",
		"P://1:2:3", "P://h/x:1", "P://h 1:1", "P://[::1]:", "0::0%0]"} {
		f(bad, "error")
	}
}

// B189: a wildcard is never advertised.
func TestListeners(t *testing.T) {
	f := func(file, listen, told string) {
		t.Helper()
		s, _, err := Load(Source{File: []byte(file), Hostname: "box"})
		if err != nil {
			t.Errorf("%q: %v", file, err)
			return
		}
		text := func(ls []Listener, _ error) string {
			var out []string
			for _, l := range ls {
				if l.Controller {
					l.Name += "*"
				}
				out = append(out, l.String())
			}
			return strings.Join(out, " ")
		}
		if got := text(s.Listeners()); got != listen {
			t.Errorf("%q: listens on %s, want %s", file, got, listen)
		}
		if got := text(s.Advertised()); got != told {
			t.Errorf("%q: advertises %s, want %s", file, got, told)
		}
	}
	f("listeners=PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://box:9092")
	f("listeners=PLAINTEXT://[::]:9092", "PLAINTEXT://[::]:9092", "PLAINTEXT://box:9092")
	f("listeners=PLAINTEXT://:9092", "PLAINTEXT://:9092", "PLAINTEXT://box:9092")
	f("listeners=PLAINTEXT://:0", "PLAINTEXT://:0", "PLAINTEXT://box:0")
	f("listeners=PLAINTEXT://0.0.0.0:9092,PLAINTEXT://[::]:9092", "PLAINTEXT://0.0.0.0:9092 PLAINTEXT://[::]:9092", "PLAINTEXT://box:9092")
	f("advertised.listeners=PLAINTEXT://kafka1:9094", "PLAINTEXT://:9094", "PLAINTEXT://kafka1:9094")
	f("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://[2001:db8::1]:19092", "PLAINTEXT://:9092", "PLAINTEXT://[2001:db8::1]:19092")
	f("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://:9092", "PLAINTEXT://:9092", "PLAINTEXT://box:9092")
	f("listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER", "PLAINTEXT://:9092 CONTROLLER*://:9093", "PLAINTEXT://box:9092")
	// the file that comes with Kafka 4
	f("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"+
		"inter.broker.listener.name=PLAINTEXT\nadvertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n"+
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
		"PLAINTEXT://:9092 CONTROLLER*://:9093", "PLAINTEXT://localhost:9092")
	f("listeners=INSIDE://:9092,OUTSIDE://:9093\nlistener.security.protocol.map=inside:plaintext,OUTSIDE:PLAINTEXT\nadvertised.listeners=INSIDE://a:1,OUTSIDE://b:2",
		"INSIDE://:9092 OUTSIDE://:9093", "INSIDE://a:1 OUTSIDE://b:2")

	refuse := func(file, want string) {
		t.Helper()
		_, _, err := Load(Source{File: []byte(file), Hostname: "box"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q is not in: %v", file, want, err)
		}
	}
	refuse("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "0.0.0.0 is no address a client can connect to")
	refuse("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://[::]:9092", ":: is no address")
	refuse("listeners=PLAINTEXT://:9092,PLAINTEXT://:9093", "names two listeners")
	refuse("listeners=PLAINTEXT://:9092,B://:9092\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,B:PLAINTEXT", "have the same port")
	refuse("listeners=PLAINTEXT://:9092\nadvertised.listeners=X://a:1\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,X:PLAINTEXT", "X is not one of the listeners")
	refuse("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://a:1,PLAINTEXT://b:1", "stands in it twice")
	refuse("listeners=", "must have a listener")
	refuse("listeners=C://:1\ncontroller.listener.names=C", "must have a listener that is not in controller.listener.names")
	refuse("listeners=SASL_SSL://:9093", "SASL is not served yet")
	refuse("listener.security.protocol.map=A:TCP", `"A:TCP" is not NAME:PROTOCOL`)
	refuse("listener.security.protocol.map=A:SSL,a:SSL", "A stands in it twice")

	// What follows from a wrong listener is not told again as something else.
	alone := func(file string) {
		t.Helper()
		_, _, err := Load(Source{File: []byte(file)})
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "configuration listeners") {
			t.Errorf("%q: want one sentence about listeners, got: %v", file, err)
		}
	}
	alone("listeners=PLAINTEXT://127.0.0.1:99999")
	alone("listeners=PLAINTEXT://127.0.0.1:99999\nadvertised.listeners=PLAINTEXT://a:1")
	alone("listeners=")
	alone("listeners=C://:1\ncontroller.listener.names=C")
	refuse("listeners=PLAINTEXT://127.0.0.1:99999\nadvertised.listeners=PLAINTEXT://a:x", `port "x" is not a number`)

	s, _, _ := Load(Source{File: []byte("listeners=PLAINTEXT://:9092")})
	if a, _ := s.Advertised(); a[0].Host != "localhost" {
		t.Errorf("without a host name: %v", a)
	}
}
