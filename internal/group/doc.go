// Package group is the group coordinator: classic consumer groups and committed
// offsets, as one Shard per partition of __consumer_offsets.
//
// Owns: membership, generations, the join and sync phases, sessions, commits
// and their expiry, and the records that carry all this, in Kafka's own schemas
// (kmsg), so that Kafka's tools read them and a shard can take over from Kafka.
// Assignments and subscriptions are opaque, except that a consumer's
// subscription is read for the topics it names. Does not know: which partition
// it is, connections, authorization, topics beyond the Topics view of a request.
// Goroutines: none; no clock either, see package machine.
//
// Invariants: hard state is the last record of each group and its commits, and
// only Replay writes it; the running group (members, waiting requests,
// deadlines) is soft and is taken up from the record after a load. A Stable or
// Empty group is described alike before and after a load.
//
// Sources: KIP-345, 394, 211, 496, 559, 814, 1043; Kafka 4.4's answers. Tested
// by transcripts of requests, answers and records (testdata), and by random runs
// that compare a live shard with one loaded from its records.
package group
