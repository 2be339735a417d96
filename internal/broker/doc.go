// Package broker answers requests: one handler file per API or family of APIs,
// one table of versions, one table from Go errors to protocol codes.
//
// Owns: the version table, request checks, fetch sessions (KIP-227), the mapping
// of errors to codes.
// Does not know: sockets, files, Raft. State that must survive or be agreed on
// lives in a machine (metadata, group), never here.
//
// Goroutines: none of its own. Handlers run on the connections' read goroutines
// and return at once; what must wait is a wire.Pending, finished by whoever it
// waits for (a partition's watermark, a shard's pump, the quorum).
//
// Sources: the protocol guide of Kafka 4.4 and the KIPs named at each handler.
// Tested by requests through Handle over a memory disk, and from outside by
// compat/.
package broker
