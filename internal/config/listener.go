package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Listener is one address of a broker.
type Listener struct {
	Name       string // in capitals, as Kafka has it
	Host       string // without brackets; empty: all addresses
	Port       int32  // 0: any free port
	Security   string // PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Controller bool   // named in controller.listener.names
}

// Address is host:port as the net package takes it.
func (l Listener) Address() string {
	if strings.Contains(l.Host, ":") {
		return "[" + l.Host + "]:" + strconv.Itoa(int(l.Port))
	}
	return l.Host + ":" + strconv.Itoa(int(l.Port))
}

func (l Listener) String() string { return l.Name + "://" + l.Address() }

// Wildcard says that the host stands for all addresses of the machine.
func (l Listener) Wildcard() bool {
	if l.Host == "" {
		return true
	}
	ip, err := netip.ParseAddr(l.Host)
	return err == nil && ip.IsUnspecified()
}

// DefaultPort is the port of an address that names none.
const DefaultPort = 9092

// ParseListener reads NAME://host:port. IPv6 hosts may stand in brackets or
// bare; without a port it is DefaultPort; without NAME:// it is PLAINTEXT.
func ParseListener(s string) (Listener, error) {
	name, addr, ok := strings.Cut(strings.TrimSpace(s), "://")
	if !ok {
		name, addr = "PLAINTEXT", name
	}
	l := Listener{Name: strings.ToUpper(name)}
	if name == "" {
		return l, fmt.Errorf("%q has no name before ://; try PLAINTEXT://%s", s, addr)
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.') {
			return l, fmt.Errorf("%q is no listener name: letters, digits, '_', '-' and '.' are", name)
		}
	}
	var err error
	l.Host, l.Port, err = ParseHostPort(addr, DefaultPort)
	if err != nil {
		return l, fmt.Errorf("%q: %w", s, err)
	}
	return l, nil
}

// ParseHostPort reads host:port, [v6]:port, a bare IPv6 address or a host alone;
// the last two get defaultPort. The host may be empty. It comes back without
// brackets.
func ParseHostPort(s string, defaultPort int32) (host string, port int32, err error) {
	text := ""
	if rest, ok := strings.CutPrefix(s, "["); ok {
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return "", 0, fmt.Errorf("the '[' is not closed")
		}
		host, text = rest[:end], rest[end+1:]
		if !ipv6(host) {
			return "", 0, fmt.Errorf("%q is no IPv6 address", host)
		}
		if text != "" && text[0] != ':' {
			return "", 0, fmt.Errorf("%q after ']'; a port stands there as in [::1]:9092", text)
		}
		if text == "" {
			return host, defaultPort, nil
		}
		text = text[1:]
	} else if strings.Count(s, ":") > 1 {
		if ipv6(s) { // 2001:db8::1:9092 too is one address without a port
			return s, defaultPort, nil
		}
		return "", 0, fmt.Errorf("%q is neither host:port nor an IPv6 address; write [address]:port", s)
	} else {
		var ok bool
		if host, text, ok = strings.Cut(s, ":"); !ok {
			return host, defaultPort, checkHost(host)
		}
		if err := checkHost(host); err != nil {
			return "", 0, err
		}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number from 0 to 65535", text)
	}
	return host, int32(n), nil
}

func ipv6(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is6() && checkHost(a.Zone()) == nil
}

func checkHost(host string) error {
	for _, c := range []byte(host) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-%", c) >= 0) {
			return fmt.Errorf("%q is no host name", host)
		}
	}
	return nil
}

// Listeners are the addresses to open, in the order of the key.
func (s *Static) Listeners() ([]Listener, error) { return slices.Clone(s.listeners), nil }

// Advertised are the addresses clients are told, one for each client listener
// unless advertised.listeners leaves some out. A port 0 stands for the port that
// was bound.
func (s *Static) Advertised() ([]Listener, error) { return slices.Clone(s.advert), nil }
