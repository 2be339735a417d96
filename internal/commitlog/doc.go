// Package commitlog keeps one partition's records in files: Kafka's own files,
// readable by Kafka and its tools.
//
// Owns: a partition's folder. Segments (.log), offset and time index, aborted
// transactions, snapshots of producer state, the chain of leader epochs, the
// topic id; appending, reading, rolling, recovery after a crash, retention,
// truncation, compaction, and a dump of every file kind. Also the small files of
// a log directory (recovery points, log starts), which its owner writes.
// Does not know: replicas, in-sync sets, configuration keys, requests. The high
// watermark comes in where a decision needs it.
//
// Goroutines: none of its own (Files starts some for a batch of syncs and waits). One writer at a time (the partition's lock):
// Append, AppendAt, TruncateTo, TruncateFullyAt, DeleteBefore, Retain, Sweep,
// Clean, Checkpoint, SetOptions, AssignEpoch, Close, Delete. Everything else may
// run beside the writer from any goroutine.
//
// How a write goes: producer checks, stamp, at most one roll, one positional
// write, then producer state, then the new size and end are published together
// under the segment's lock. Index entries wait in memory and go to their files by
// the hundreds: after a kill they are rebuilt from the batches, so they need not
// be there, only be right.
//
// How a read goes: the list of segments is an immutable slice behind an atomic
// pointer. A batch near the end is found in a ring of the last few batches, any
// other by the index and a walk over a few headers. The answer is a Region, which
// keeps the file open.
//
// Invariants:
//   - Segments are sorted by base offset, do not overlap, and only the last grows.
//   - End is published after the bytes are in the file.
//   - Everything below Flushed survives a power cut: bytes, names and the epochs
//     of these batches. Recovery reads only what lies at or above the recovery
//     point its caller saved, and trusts no index it did not check.
//   - Side files (indexes, snapshots, epochs, topic id) can always be rebuilt or
//     defaulted; a damaged one costs a warning and time, never records.
//   - After a failed sync or a write error other than a full disk the log takes no
//     more writes: what the file holds is no longer known.
//
// Formats: Kafka 4.4's (record batch v2; OffsetIndex, TimeIndex, TransactionIndex,
// ProducerStateManager snapshot v1, LeaderEpochCheckpointFile, OffsetCheckpointFile,
// PartitionMetadataFile). Rules: KIP-98 (producers), KIP-101 and KIP-320 (epochs),
// KIP-534 (tombstones), KIP-516 (topic ids).
//
// Tested by: tables, crash clones of a memory disk after random operations, faults
// of every disk call, fuzzing of recovery and of the side files' parsers, and
// Kafka's own kafka-dump-log where it is at hand.
package commitlog
