// Package tools gives the commands for people: topics, groups, configs, and
// records in and out through stdin and stdout, and the performance lab's commands,
// over the Kafka protocol.
//
// Owns: the commands' names, flags, tables, JSON field names and exit codes;
// client properties (librdkafka's and the Java client's names); the diagnosis
// of a peer that does not answer as a broker.
//
// Does not know: the broker. Everything goes through franz-go's client, so the
// commands work against Weir and against any Kafka; log dump alone reads files,
// through the rooms that own them. It reads no environment
// and never ends the process: Execute returns the exit code, main exits.
//
// Goroutines: one for each bootstrap address while probing, gone when open
// returns; one for a reader that may block, left behind in its Read when the
// command is interrupted; one that watches over acknowledgements while produce
// runs; the client's own, gone when the session is closed. A command runs in
// its caller's goroutine and ends when its context does.
//
// Invariants: every wait is bounded by --timeout, except following a topic or
// reading stdin, which end on SIGINT; stdout carries the answer only, stderr
// everything else; commits are marked only after the bytes were written.
//
// Sources: KIP-396 (offset reset), KIP-122 (its plan and --execute), kcat's
// manual page for flags and format tokens of produce and consume.
//
// Tested with the fake cluster of franz-go, in process, on loopback; the
// diagnosis against small servers that speak HTTP, TLS or nothing.
package tools
