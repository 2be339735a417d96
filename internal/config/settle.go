package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/kafka"
)

var protocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// settle works out what several keys say together, and returns everything that
// does not fit.
func (s *Static) settle(hostname string) (errs []error) {
	s.base = &View{static: s, values: s.values}
	bad := func(key, reason string) {
		k := mustKey(key)
		e := k.refuse(s.values[k.index].raw, reason)
		e.Allowed, e.Try, e.Where = "", "", s.wheres[key]
		errs = append(errs, e)
	}
	s.settleID(bad)
	for i, d := range s.LogDirs() {
		if slices.Contains(s.LogDirs()[:i], d) {
			bad("log.dirs", "names "+d+" twice")
		}
	}
	if s.IsSet("log.dirs") && len(s.List("log.dirs")) == 0 || len(s.LogDirs()) == 0 {
		bad("log.dirs", "must name at least one directory")
	}
	s.settleListeners(hostname, bad)
	s.settleBounds(bad)
	s.settleNodes(bad)
	return errs
}

// settleID makes one number of node.id and broker.id.
func (s *Static) settleID(bad func(key, reason string)) {
	node, old := mustKey("node.id").index, mustKey("broker.id").index
	switch {
	case s.origins[old] == FromDefault || s.values[old].n == -1:
		s.values[old], s.origins[old] = s.values[node], s.origins[node]
	case s.values[old].n < 0:
		bad("broker.id", "must be at least 0, or -1 for not set")
	case s.origins[node] == FromDefault:
		s.values[node], s.origins[node] = s.values[old], s.origins[old]
	case s.values[old].n != s.values[node].n:
		bad("broker.id", fmt.Sprintf("must be the same as node.id, which is %d; leave one of them out", s.values[node].n))
	}
}

func (s *Static) settleListeners(hostname string, bad func(key, reason string)) {
	security, err := parseSecurityMap(s.Str("listener.security.protocol.map"))
	if err != nil {
		return // the key's own check has said so
	}
	key := "listeners"
	if s.IsSet("advertised.listeners") && !s.IsSet("listeners") {
		key = "advertised.listeners"
	}
	listeners, reasons := s.parseListeners(key, security)
	if key == "advertised.listeners" {
		for i := range listeners {
			listeners[i].Host = ""
		}
		reasons = nil // advertise says them
	}
	unread := len(reasons) > 0
	for i, a := range listeners {
		reasons = append(reasons, clashes(a, listeners[:i])...)
		if why := unserved(a.Security); why != "" {
			reasons = append(reasons, a.Name+" speaks "+a.Security+", and "+why)
		}
	}
	clients := slices.ContainsFunc(listeners, func(l Listener) bool { return !l.Controller })
	if !clients && len(reasons) == 0 {
		reasons = append(reasons, "must have a listener that is not in controller.listener.names")
	}
	for _, r := range reasons {
		bad(key, r)
	}
	s.listeners = listeners
	if key == "listeners" && (unread || !clients) {
		// What to compare with is not known: only the form can be looked at.
		_, reasons = s.parseListeners("advertised.listeners", security)
	} else {
		s.advert, reasons = s.advertise(hostname, security)
	}
	for _, r := range reasons {
		bad("advertised.listeners", r)
	}
}

// unserved says why a security protocol is not served, or nothing.
func unserved(protocol string) string {
	switch {
	case strings.HasPrefix(protocol, "SASL"):
		return needsSASL.why
	case protocol == "SSL":
		return needsTLS.why
	}
	return ""
}

// settleBounds compares keys that bound each other.
func (s *Static) settleBounds(bad func(key, reason string)) {
	atMost := func(low, high string) {
		if s.Long(low) > s.Long(high) {
			bad(low, fmt.Sprintf("must not be above %s, which is %d", high, s.Long(high)))
		}
	}
	atMost("group.min.session.timeout.ms", "group.max.session.timeout.ms")
	atMost("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")
	atMost("replica.fetch.wait.max.ms", "replica.lag.time.max.ms")
	if why := tooFewKeys(s.base); why != "" {
		bad("log.cleaner.dedupe.buffer.size", why)
	}
	if q := s.Long("queued.max.request.bytes"); q > 0 && q < s.Long("socket.request.max.bytes") {
		bad("queued.max.request.bytes", fmt.Sprintf("must be at least socket.request.max.bytes, which is %d, or the largest request never fits", s.Long("socket.request.max.bytes")))
	}
}

// settleNodes refuses what only several nodes can do, so that nobody believes to
// have a cluster that is not one.
func (s *Static) settleNodes(bad func(key, reason string)) {
	if roles := s.List("process.roles"); len(roles) != 2 {
		bad("process.roles", "must be broker,controller: "+needsCluster.why)
	}
	var others []string
	for _, voter := range s.List("controller.quorum.voters") {
		id, _, ok := strings.Cut(voter, "@")
		n, err := strconv.ParseInt(strings.TrimSpace(id), 10, 32)
		switch {
		case !ok || err != nil:
			bad("controller.quorum.voters", fmt.Sprintf("%q is not id@host:port", voter))
		case kafka.BrokerID(n) != s.NodeID():
			others = append(others, strconv.FormatInt(n, 10))
		}
	}
	if len(others) > 0 {
		bad("controller.quorum.voters", fmt.Sprintf("names node %s; this is node %d: %s; name this node alone, or leave the key out",
			strings.Join(others, " and "), s.NodeID(), needsCluster.why))
	}
	if len(s.List("controller.quorum.bootstrap.servers")) > 1 {
		bad("controller.quorum.bootstrap.servers", "names several: "+needsCluster.why)
	}
}

// parseSecurityMap reads NAME:PROTOCOL,NAME:PROTOCOL.
func parseSecurityMap(text string) (map[string]string, error) {
	m := map[string]string{}
	for _, pair := range SplitList(text) {
		name, protocol, ok := strings.Cut(pair, ":")
		name, protocol = strings.ToUpper(strings.TrimSpace(name)), strings.ToUpper(strings.TrimSpace(protocol))
		if !ok || name == "" || !slices.Contains(protocols, protocol) {
			return nil, fmt.Errorf("%q is not NAME:PROTOCOL with a protocol of %s", pair, strings.Join(protocols, ", "))
		}
		if _, ok := m[name]; ok {
			return nil, fmt.Errorf("%s stands in it twice", name)
		}
		m[name] = protocol
	}
	return m, nil
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
			reasons = append(reasons, fmt.Sprintf("the security protocol of %s is not known; if it is the controllers' own, set controller.listener.names=%s, else add %s:PLAINTEXT to listener.security.protocol.map", l.Name, l.Name, l.Name))
			continue
		}
		ls = append(ls, l)
	}
	return ls, reasons
}

// clashes finds the names and ports of a that earlier listeners have too. One
// name and port may serve an IPv4 and an IPv6 address.
func clashes(a Listener, earlier []Listener) (reasons []string) {
	for _, b := range earlier {
		if families(a.Host, b.Host) {
			continue
		}
		if a.Port != 0 && a.Port == b.Port {
			reasons = append(reasons, fmt.Sprintf("%s and %s have the same port", b, a))
		}
		if a.Name == b.Name {
			reasons = append(reasons, a.Name+" names two listeners")
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

// advertise works out what clients are told. A wildcard that was asked for is
// refused; one that comes from the listeners becomes this host's name.
func (s *Static) advertise(hostname string, security map[string]string) (adverts []Listener, reasons []string) {
	for _, l := range s.listeners {
		if !l.Controller {
			adverts = append(adverts, l)
		}
	}
	if s.IsSet("advertised.listeners") {
		if adverts, reasons = s.parseListeners("advertised.listeners", security); len(reasons) > 0 {
			return nil, reasons
		}
	}
	var told []Listener
	for _, a := range adverts {
		has := func(l Listener) bool { return l.Name == a.Name }
		switch {
		case !slices.ContainsFunc(s.listeners, has):
			reasons = append(reasons, a.Name+" is not one of the listeners")
		case s.IsSet("advertised.listeners") && a.Wildcard() && a.Host != "":
			reasons = append(reasons, a.Host+" is no address a client can connect to; give the name or address clients reach this broker by")
		case slices.ContainsFunc(told, has):
			if s.IsSet("advertised.listeners") {
				reasons = append(reasons, a.Name+" stands in it twice")
			} // else it is the second address of an IPv4 and IPv6 pair
		default:
			if a.Wildcard() {
				a.Host = cmp.Or(hostname, "localhost")
			}
			told = append(told, a)
		}
	}
	told = slices.DeleteFunc(told, func(l Listener) bool { return l.Controller })
	if len(told) == 0 && len(reasons) == 0 {
		reasons = append(reasons, "must have an address for clients")
	}
	return told, reasons
}
