package broker

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/wire"
)

// InitProducerId, versions 0 to 5 (KIP-98, KIP-360). Ids come in blocks from the
// controller, so that none is given twice even after a kill.

// pidBlockSize is Kafka's: what a kill wastes at most.
const pidBlockSize = 1000

// pidBlock is what is left of the block this broker holds. While a new one is
// asked for, requests queue.
type pidBlock struct {
	mu        sync.Mutex
	next, end kafka.ProducerID
	asking    bool
	waiting   []func(kafka.ProducerID, kafka.Error)
}

// pidWaiting bounds the queue; past it the client is told to try again.
const pidWaiting = 10000

func (b *Broker) initProducerID(r *wire.Request, req *kmsg.InitProducerIDRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = int16(kafka.ErrTransactionalIDAuthorizationFailed)
		if *req.TransactionalID == "" {
			resp.ErrorCode = int16(kafka.ErrInvalidRequest)
		}
		return respond(resp)
	}
	if (req.ProducerID == -1) != (req.ProducerEpoch == -1) { // half an identity (KIP-360)
		resp.ErrorCode = int16(kafka.ErrInvalidRequest)
		return respond(resp)
	}
	l := newLater()
	b.producerID(func(id kafka.ProducerID, code kafka.Error) {
		resp.ErrorCode = int16(code)
		if code == kafka.NoError {
			resp.ProducerID, resp.ProducerEpoch = int64(id), 0
		}
		l.finish(respond(resp))
	})
	return wire.Response{Pending: l}
}

// producerID calls done with a new id, at once when the block has one left.
func (b *Broker) producerID(done func(kafka.ProducerID, kafka.Error)) {
	p := &b.pids
	p.mu.Lock()
	if p.next < p.end {
		id := p.next
		p.next++
		p.mu.Unlock()
		done(id, kafka.NoError)
		return
	}
	if len(p.waiting) >= pidWaiting {
		p.mu.Unlock()
		done(kafka.NoProducer, kafka.ErrCoordinatorLoadInProgress)
		return
	}
	p.waiting = append(p.waiting, done)
	ask := !p.asking
	p.asking = true
	p.mu.Unlock()
	if ask {
		b.o.Quorum.Submit(&metadata.AllocateProducerIDs{Broker: b.o.Self, Count: pidBlockSize}, b.producerIDsArrived)
	}
}

func (b *Broker) producerIDsArrived(resp any) {
	p := &b.pids
	p.mu.Lock()
	block, ok := resp.(*metadata.AllocateProducerIDsReply)
	code := kafka.ErrCoordinatorNotAvailable
	if ok && block.Err == kafka.NoError {
		p.next, p.end = block.First, block.First+kafka.ProducerID(block.Count)
		code = kafka.NoError
	}
	p.asking = false
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	for _, done := range waiting {
		if code != kafka.NoError {
			done(kafka.NoProducer, code)
		} else {
			b.producerID(done)
		}
	}
}
