// Package machine is the contract of a replicated state machine and the Core
// that runs one over a log.
//
// A coordinator (groups, transactions, the metadata controller) is a Machine:
// plain functions of state, time and input. Hard state is what can be rebuilt
// from the machine's records; soft state (waiting requests, deadlines) is lost
// with the machine. Handle and Expire decide and return records; only Replay
// touches hard state, so the state after a crash is the state before it.
//
// Owns: the order load, submit, replay, append, park, release. Does not know:
// any machine, any real log, goroutines, clocks. A Core is used from one
// goroutine at a time; the caller is that goroutine (the pump).
//
// Invariants: a reply leaves the Core only when every record that existed when
// the reply was decided lies below the watermark, so no client learns of a
// state that a fail-over could take back (reads wait too). Every submitted
// token is answered exactly once: by the machine, or by Fail. A failed append
// ends the Core, because the machine has already replayed what the log lacks.
//
// Source: Kafka's CoordinatorRuntime in shape; etcd raft's RawNode for the
// split of core and pump. Tested by tables over a scripted log.
package machine
