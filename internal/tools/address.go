package tools

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const defaultPort = "9092"

// parseServers reads a bootstrap list: comma-separated host, host:port, IPv4,
// [IPv6]:port, [IPv6] or a bare IPv6 address, with a zone or without. A missing
// port is 9092. The results are in the form net.Dial takes.
func parseServers(list string) ([]string, error) {
	var out []string
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if i := strings.Index(s, "://"); i >= 0 {
			s = s[i+3:] // PLAINTEXT://host:port, copied from a listeners line
		}
		a, err := parseServer(s)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--bootstrap-server %q names no address: give host:port", list)
	}
	return out, nil
}

func parseServer(s string) (string, error) {
	host, port := s, defaultPort
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", fmt.Errorf("bootstrap address %q has no closing bracket: write [::1]:9092", s)
		}
		host = s[1:end]
		if rest := s[end+1:]; rest != "" {
			if rest[0] != ':' {
				return "", fmt.Errorf("bootstrap address %q: after the bracket comes a colon and the port, as in [::1]:9092", s)
			}
			port = rest[1:]
		}
	case strings.Count(s, ":") > 1: // a bare IPv6 address
		addr, _, _ := strings.Cut(s, "%")
		if net.ParseIP(addr) == nil {
			return "", fmt.Errorf("bootstrap address %q has several colons and is no IPv6 address: write [::1]:9092, or host:port", s)
		}
	case strings.Contains(s, ":"):
		host, port, _ = strings.Cut(s, ":")
	}
	if host == "" {
		return "", fmt.Errorf("bootstrap address %q has no host: write host:port", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("bootstrap address %q has port %q: want a number from 1 to 65535", s, port)
	}
	return net.JoinHostPort(host, port), nil
}
