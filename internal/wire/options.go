package wire

import (
	"log/slog"
	"time"

	"github.com/weirmq/weir/internal/metrics"
)

// Options of a Server. Zero means the default in the comment.
type Options struct {
	// MaxRequestBytes bounds a frame without its length prefix
	// (socket.request.max.bytes; 104857600).
	MaxRequestBytes int
	// InflightBytes bounds the memory of all large frames together, but for one
	// of up to 8 MiB and one larger one, which may overdraw it
	// (queued.max.request.bytes; 256 MiB).
	InflightBytes int64
	// QueueMax bounds the requests of one connection that wait for their
	// response; reading stops there (100).
	QueueMax int
	// QueueBytes bounds what those requests and responses hold in memory, one
	// always allowed (32 MiB).
	QueueBytes int64
	// EncodedBytes bounds the responses of all connections that are ready and
	// wait behind others. Above it each connection keeps one (64 MiB).
	EncodedBytes int64

	// IdleTimeout closes a connection on which nothing arrived and for which
	// nothing is in work (connections.max.idle.ms; 10 minutes). Below 0: never.
	IdleTimeout time.Duration
	// StallTimeout closes a connection that began a frame and within this time
	// neither finished it nor sent 16 KiB more (30 seconds).
	StallTimeout time.Duration
	// WriteTimeout closes a connection that takes no bytes of its response
	// (IdleTimeout, as in Kafka: an application that pauses reads nothing).
	WriteTimeout time.Duration
	// CloseGrace is how long Close waits for requests in work (5 seconds).
	CloseGrace time.Duration

	// Limits bound connections from the start on (nil: none; see SetLimits).
	Limits *Limits

	// SendBuf and RecvBuf set the socket buffers in bytes; 0 and -1 leave them
	// to the kernel, which then tunes them itself.
	SendBuf, RecvBuf int

	Log     *slog.Logger // slog.Default
	Metrics *metrics.Set // nil: nothing is counted
}

func (o Options) withDefaults() Options {
	def := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 104857600
	}
	if o.InflightBytes <= 0 {
		o.InflightBytes = 256 << 20
	}
	if o.QueueMax <= 0 {
		o.QueueMax = 100
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 32 << 20
	}
	if o.EncodedBytes <= 0 {
		o.EncodedBytes = 64 << 20
	}
	def(&o.IdleTimeout, 10*time.Minute)
	if o.IdleTimeout < 0 {
		o.IdleTimeout = never
	}
	def(&o.StallTimeout, 30*time.Second)
	def(&o.WriteTimeout, o.IdleTimeout)
	def(&o.CloseGrace, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// never is far enough not to happen and near enough not to overflow.
const never = 100 * 365 * 24 * time.Hour
