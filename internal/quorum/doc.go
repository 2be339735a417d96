// Package quorum keeps the metadata log: it runs metadata.Controller over Raft
// and publishes what is committed as Images and Deltas. A broker that is alone
// is a quorum of one: the same path, leader as soon as Open returns.
//
// Owns: etcd-io/raft's RawNode (this is the only room that imports it), the log
// and snapshot files of docs/format/metadata-log.md, the order append, sync,
// commit, publish, answer.
// Does not know: what a record means, how a message travels.
//
// Goroutines: one, the pump, from Open to Close. Only it touches the RawNode,
// the Core and the files. Submit hands over through a bounded queue; Image is an
// atomic pointer; watchers and done functions run on the pump and must not wait
// for it.
//
// Invariants:
//   - a reply leaves only after its records are synced here (by a majority, with
//     several voters), applied, and seen by every watcher;
//   - everything that one turn of the pump takes from the queue is one entry, one
//     frame and one sync, so changes that wait for a sync share the next;
//   - a turn writes one frame, so at most the last frame of the last file can be
//     torn by a crash; a bad frame that a good one follows is damage, and damage
//     is refused, never skipped;
//   - a sync that fails ends the node: nothing is written after it.
//
// Tested on a memory disk that is crash-cloned at every write and cut at every
// byte, with injected errors, and by fuzzing the frame reader.
package quorum
