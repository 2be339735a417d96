package tools

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/config"
)

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
		addr := s
		if i := strings.Index(s, "://"); i >= 0 {
			addr = s[i+3:] // PLAINTEXT://host:port, copied from a listeners line
		}
		host, port, err := config.ParseHostPort(addr, config.DefaultPort)
		switch {
		case err != nil:
			return nil, fmt.Errorf("bootstrap address %q: %w", s, err)
		case host == "":
			return nil, fmt.Errorf("bootstrap address %q has no host: write host:port", s)
		case port == 0:
			return nil, fmt.Errorf("bootstrap address %q has port 0: want a number from 1 to 65535", s)
		}
		out = append(out, net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--bootstrap-server %q names no address: give host:port", list)
	}
	return out, nil
}
