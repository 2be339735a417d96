// Package partition holds partitions alive: each joins a commit log with the
// replication rules under one writer lock, hands out tickets for what was
// appended, and wakes those who wait for the high watermark to move.
//
// Owns: which partition is open in which log dir, its lock, its waiters, its
// flushes; the pump that runs a state machine on an internal topic's partition
// (Shard); the Manager, which turns metadata Deltas into open, closed and deleted
// partitions and runs retention, checkpoints and flushes.
// Does not know: requests, connections, config keys (it takes Settings), groups
// or transactions (it takes shard factories).
//
// Goroutines: one housekeeping loop and a few flush workers per Manager, one
// pump per Shard. Manager.Close stops and waits for all of them.
//
// Invariants:
//   - The writer lock of a partition is never held across a channel wait. It is
//     held across the log's own pwrite, which is what it serialises.
//   - The high watermark never passes what the settings promise: with a flush due
//     (flush.messages), records become visible and acknowledged only after the
//     fdatasync that covers them. One fdatasync serves every append that came
//     before it (group commit).
//   - A failed fdatasync ends the log dir: its partitions refuse everything until
//     a restart has read the files again. It is never tried twice, because the
//     kernel may have dropped the dirty pages (PostgreSQL's fsync finding, 2018).
//   - A full disk refuses the append and leaves the log as it was: reads go on,
//     and writes do as soon as there is room.
package partition
