// Package metadata is what the cluster knows about itself, and the machine that
// decides how that changes.
//
// Owns: the metadata records and their JSON form; the immutable Image and the
// Delta between two of them; the Controller: topics, placement, leaders, ISR
// (KIP-497), broker registration and fencing (KIP-631), configs (KIP-339),
// blocks of producer ids (KIP-730), reassignments (KIP-455).
// Does not know: Raft, files, partitions that are open, sockets, config keys
// (it asks an interface).
// Goroutines: none, and no clock, no lock, no randomness of its own.
//
// Invariants:
//   - an Image and everything reachable from it never changes; a Draft copies
//     what it changes, once per Draft, so a change costs what it touches and not
//     what the cluster holds;
//   - Draft.Apply is the only writer of state and cannot fail on a record that
//     the Controller made; replaying the records gives the live state;
//   - partitions of a topic are numbered 0..n-1 without gaps;
//   - a broker epoch and a producer id are never handed out twice.
//
// Tested by tables and transcripts that assert replies and records, by a random
// history whose replay and whose snapshot must equal the live state, and by
// fuzzing the record decoder. The byte form is in docs/format/metadata-log.md.
package metadata
