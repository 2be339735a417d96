package tools

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// What the room of Kafka's own tools has in common with these commands.

// Dial makes a connection, encrypted where the properties want it.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Security reads the properties that say how a client reaches its cluster:
// security.protocol, ssl.* and sasl.*, by librdkafka's or the Java client's names;
// all others are passed over. mechanism is nil without SASL. Errors are sentences.
func Security(props map[string]string, timeout time.Duration) (dial Dial, mechanism sasl.Mechanism, err error) {
	s := &settings{}
	known, _ := propertyTable()
	for key, value := range props {
		if key != "security.protocol" && !strings.HasPrefix(key, "sasl.") && !strings.HasPrefix(key, "ssl.") {
			continue
		}
		if p := known[key]; p != nil {
			if err := p.set(s, value); err != nil {
				return nil, nil, fmt.Errorf("property %s: %w", key, err)
			}
		}
	}
	conf, err := s.security.config()
	if err != nil {
		return nil, nil, err
	}
	if s.sasl.on {
		if mechanism, err = s.sasl.build(); err != nil {
			return nil, nil, err
		}
	}
	return dialer(conf, timeout), mechanism, nil
}

// Codec is a compression codec by the name that both clients give it; level 0 is
// the codec's default.
func Codec(name string, level int) (kgo.CompressionCodec, error) { return codec(name, level) }

// DialReason is one clause for why an address could not be reached.
func DialReason(err error, timeout time.Duration) string { return dialReason(err, timeout) }
