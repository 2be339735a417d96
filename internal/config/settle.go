package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

var protocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// settle works out what several keys say together, and returns everything that
// does not fit.
func (s *Static) settle(hostname string) (errs []error) {
	s.base = &View{static: s, values: s.values}
	bad := func(key, reason string) {
		k := mustKey(key)
		e := k.refuse(s.values[k.index].raw, reason)
		e.Try = ""
		errs = append(errs, e)
	}
	if s.IsSet("node.id") && s.IsSet("broker.id") && s.Int("broker.id") >= 0 && s.Int("broker.id") != s.Int("node.id") {
		bad("broker.id", fmt.Sprintf("must be the same as node.id, which is %d; leave one of them out", s.Int("node.id")))
	}
	if len(s.LogDirs()) == 0 {
		bad("log.dirs", "must name at least one directory")
	}
	for i, d := range s.LogDirs() {
		if slices.Contains(s.LogDirs()[:i], d) {
			bad("log.dirs", "names "+d+" twice")
		}
	}
	security, reason := s.securityMap()
	if reason != "" {
		bad("listener.security.protocol.map", reason)
	}
	listeners, reasons := s.parseListeners("listeners", security)
	if s.IsSet("advertised.listeners") && !s.IsSet("listeners") {
		listeners, _ = s.parseListeners("advertised.listeners", security)
		for i := range listeners {
			listeners[i].Host = ""
		}
		reasons = nil
	}
	reasons = append(reasons, clashes(listeners)...)
	if len(listeners) == 0 && len(reasons) == 0 {
		reasons = append(reasons, "must name at least one listener")
	}
	for _, r := range reasons {
		bad("listeners", r)
	}
	s.listeners = listeners
	s.advert, reasons = s.advertise(hostname, security)
	for _, r := range reasons {
		bad("advertised.listeners", r)
	}
	return errs
}

// securityMap reads listener.security.protocol.map: NAME:PROTOCOL,...
func (s *Static) securityMap() (map[string]string, string) {
	m := map[string]string{}
	for _, pair := range SplitList(s.Str("listener.security.protocol.map")) {
		name, protocol, ok := strings.Cut(pair, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || name == "" || !slices.Contains(protocols, protocol) {
			return m, fmt.Sprintf("%q is not NAME:PROTOCOL with a protocol of %s", pair, strings.Join(protocols, ", "))
		}
		if _, ok := m[name]; ok {
			return m, name + " stands in it twice"
		}
		m[name] = protocol
	}
	return m, ""
}

func (s *Static) parseListeners(key string, security map[string]string) (ls []Listener, reasons []string) {
	controllers := s.List("controller.listener.names")
	for _, text := range s.List(key) {
		l, err := ParseListener(text)
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		l.Controller = slices.ContainsFunc(controllers, func(c string) bool { return strings.EqualFold(c, l.Name) })
		protocol, ok := security[l.Name]
		switch {
		case ok:
			l.Security = protocol
		case l.Controller && !s.IsSet("listener.security.protocol.map"):
			l.Security = "PLAINTEXT" // as Kafka does
		case slices.Contains(protocols, l.Name):
			l.Security = l.Name
		default:
			reasons = append(reasons, fmt.Sprintf("the security protocol of %s is not known; add %s:PLAINTEXT to listener.security.protocol.map", l.Name, l.Name))
			continue
		}
		ls = append(ls, l)
	}
	return ls, reasons
}

// clashes finds names and ports used twice. One port may serve an IPv4 and an
// IPv6 address.
func clashes(ls []Listener) (reasons []string) {
	for i, a := range ls {
		for _, b := range ls[:i] {
			if a.Port != 0 && a.Port == b.Port && !families(a.Host, b.Host) {
				reasons = append(reasons, fmt.Sprintf("%s and %s have the same port", b, a))
			}
			if a.Name == b.Name && !families(a.Host, b.Host) {
				reasons = append(reasons, a.Name+" names two listeners")
			}
		}
	}
	return reasons
}

// families says that one host is an IPv4 and the other an IPv6 address.
func families(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	return errX == nil && errY == nil && x.Is4() != y.Is4()
}

// advertise works out what clients are told.
func (s *Static) advertise(hostname string, security map[string]string) (adverts []Listener, reasons []string) {
	if s.IsSet("advertised.listeners") {
		if adverts, reasons = s.parseListeners("advertised.listeners", security); len(reasons) > 0 {
			return nil, reasons
		}
		for _, a := range adverts {
			known := slices.ContainsFunc(s.listeners, func(l Listener) bool { return l.Name == a.Name })
			switch {
			case !known:
				reasons = append(reasons, a.Name+" is not one of the listeners")
			case a.Wildcard() && a.Host != "":
				reasons = append(reasons, a.Host+" is no address a client can connect to; give the name or address clients reach this broker by")
			}
		}
	} else {
		for _, l := range s.listeners {
			if !l.Controller {
				adverts = append(adverts, l)
			}
		}
	}
	var named []Listener
	for _, a := range adverts {
		if a.Wildcard() {
			a.Host = cmp.Or(hostname, "localhost")
		}
		if slices.ContainsFunc(named, func(b Listener) bool { return b.Name == a.Name }) {
			continue // the second of an IPv4 and IPv6 pair
		}
		if !a.Controller {
			named = append(named, a)
		}
	}
	return named, reasons
}
