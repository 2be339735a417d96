package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/wire"
)

// SaslHandshake 0-1 and SaslAuthenticate 0-2 on a listener without SASL: refused
// as Kafka does, and the connection stays usable. Authentication itself is not
// served yet.

func (b *Broker) saslHandshake(r *wire.Request, req *kmsg.SASLHandshakeRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	resp.ErrorCode = int16(kafka.ErrIllegalSaslState)
	return respond(resp)
}

func (b *Broker) saslAuthenticate(r *wire.Request, req *kmsg.SASLAuthenticateRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	resp.ErrorCode = int16(kafka.ErrIllegalSaslState)
	resp.ErrorMessage = ptr("SaslAuthenticate request received on a listener without SASL: use security.protocol=PLAINTEXT.")
	return respond(resp)
}
