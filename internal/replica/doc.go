// Package replica holds the rules of replication of one partition: when a
// record is committed, who is in sync, and what a follower has to cut off.
//
// Owns: Leader (progress of followers, high watermark, changes of the in-sync
// set to propose, whether a write may be taken and is acknowledged) and Follower
// (what to do with a leader's answer, the follower's watermark).
//
// Does not know: bytes, files, requests, connections. The log is told about, in
// offsets, or asked through EpochChain.
//
// Goroutines: none, no locks; the partition's writer lock guards each value. Time
// arrives as now.
//
// Invariants, per leader epoch: the high watermark never falls; it never passes
// the log end of a member of the maximal in-sync set, which is the committed set
// and whoever was proposed to join it (KIP-497); it never passes an end smaller
// than the minimum in-sync set would have (KIP-966). At most one proposal is out
// at a time.
//
// Sources: KIP-101 and KIP-279 (epochs and truncation), KIP-320, KIP-497
// (AlterPartition), KIP-595 (divergence told in the fetch answer), KIP-966
// (no advance below min.insync.replicas); Kafka's Partition and
// AbstractFetcherThread for the order of checks.
//
// Tested by tables and by a model of several replicas under random faults.
package replica
