package machine

import "time"

// Token names one request waiting for its answer. The caller makes it, unique
// among the unanswered tokens of a Core.
type Token uint64

// Reply answers one token. Resp is the machine's response, or a kafka.Error
// when the Core answers by itself (loading, failed).
type Reply struct {
	Token Token
	Resp  any
}

// Step is what a machine decided: records to replay and append, answers that
// hold once those records are safe, and effects for the outer world that are
// wanted then. A Step may answer tokens of earlier steps, and need not answer
// its own.
type Step[R any] struct {
	Records []R
	Replies []Reply
	Effects []any
}

// Add joins what another step decided to s, in order.
func (s *Step[R]) Add(o Step[R]) {
	s.Records = append(s.Records, o.Records...)
	s.Replies = append(s.Replies, o.Replies...)
	s.Effects = append(s.Effects, o.Effects...)
}

// Reply adds one answer to the step.
func (s *Step[R]) Reply(t Token, resp any) {
	s.Replies = append(s.Replies, Reply{Token: t, Resp: resp})
}

// A Machine reads no clock, starts nothing, does no I/O, and cannot fail to
// replay. It is used from one goroutine at a time.
type Machine[R any] interface {
	// Handle decides one input and leaves hard state alone: the records of
	// the Step are replayed before the next call. Inputs that want no answer
	// come with token 0.
	Handle(now time.Time, from Token, req any) Step[R]
	// Expire decides what the deadlines up to now bring about.
	Expire(now time.Time) Step[R]
	// NextDeadline is when Expire is next wanted; zero: not at all.
	NextDeadline() time.Time
	// Replay is the only writer of hard state. offset is the record's place
	// in the log while loading, and Live for a record not yet appended.
	Replay(offset int64, r R)
	// Loaded ends the load: deadlines are armed, soft state is made.
	Loaded(now time.Time)
}

// Live is the offset of a replayed record that the log does not hold yet.
const Live int64 = -1

// Log is what a Core appends to.
type Log[R any] interface {
	// Append writes the records as one batch, all or nothing, and gives the
	// offset of the last. An error means that none of them may ever show up
	// as committed state of this Core: the Core ends.
	Append(now time.Time, records []R) (last int64, err error)
}
