package wire

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/disk"
)

// Request is one request whose version is offered. It is valid during Handle;
// when Handle returns a Pending, Request and Body stay valid until that Pending
// was asked for its Response or cancelled.
type Request struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is as sent: any bytes, up to 32767 of them. Escape it for logs.
	ClientID     string
	ClientIDNull bool
	// Body is what follows the header. It aliases pooled frame memory.
	Body     []byte
	Conn     *Conn
	Received time.Time
}

// Response is what a handler returns: one of Msg, Raw, None and Pending.
type Response struct {
	// Msg is encoded with AppendTo before Handle's caller goes on; its version
	// must be the request's. It may alias Request.Body.
	Msg kmsg.Response
	// Raw is sent instead of Msg.
	Raw *Raw
	// None sends nothing (Produce with acks=0).
	None bool
	// Close ends the connection once this and all earlier responses are sent.
	Close bool
	// Pending is asked for the response later.
	Pending Pending
}

// Raw is a response body in pieces. Parts follow the response header in order;
// their bytes must not change until Release, which wire calls exactly once, sent
// or not. Wire does not release the regions itself.
type Raw struct {
	Parts   []Part
	Release func() // may be nil
}

// Part is bytes, or a piece of a file when Region.Len > 0.
type Part struct {
	Bytes  []byte
	Region disk.Region
}

// Pending is a response that is not there yet. Ready is closed (or sent to)
// when it is; at Deadline (zero: none) it is asked all the same. Either
// Response is called once, from the connection's write goroutine, or Cancel is
// called once when the connection died first.
type Pending interface {
	Ready() <-chan struct{}
	Deadline() time.Time
	Response(now time.Time) Response
	Cancel()
}

// Handler decides requests. Handle is called from the read goroutine of the
// connection, in order of arrival and one at a time per connection, many at a
// time over all of them; whatever must happen in order happens before it
// returns. It must not block for long: the connection reads nothing meanwhile.
// A panic in Handle is not recovered.
type Handler interface {
	Handle(req *Request) Response
}
