// Package disk is the seam between Weir and the files it keeps.
//
// Owns: FS and File, the few operations a log needs (positional read and write,
// data sync, directory sync, atomic replace, preallocation, locks, free space);
// Region, a stretch of a file that is on its way to a socket; the operating
// system's implementation (OS), one in memory that can lose what was not synced
// (Mem), and one that fails on demand (Faulty).
// Does not know: what any file contains.
// Goroutines: none. Every type may be used from several goroutines at once.
//
// Invariants:
//   - Sync on a file makes its bytes and size durable, not its name: a new,
//     renamed or removed name is durable after SyncDir of its directory. Mem holds
//     callers to that, although ext4 is kinder.
//   - A file behind a Region stays readable until the Region is released, whatever
//     happens to its name.
//   - Reads never see a torn write of the same process; after a crash they may.
//
// Tested by: the same table of operations against OS and Mem, crash clones with
// many seeds, and the faults of Faulty one by one.
package disk
