// Package batch reads, checks and builds Kafka's record batches (magic 2) and
// turns the older message sets (magic 0 and 1) into them and back.
//
// Owns: the byte layout of a batch and of the records in it, its CRC, the
// checks a broker makes on what a producer sent, control batches, and the
// codecs (gzip, snappy, lz4, zstd) with a bound on what they may unpack to.
//
// Does not know: logs, topics, requests. Names of topics in error texts are the
// caller's to add.
//
// Goroutines: none. All functions may be called from any goroutine; a Builder
// belongs to one at a time. The pools of codecs and scratch buffers are the only
// shared state.
//
// Invariants: a View holds exactly one batch, header and records, and its
// length equals what the header says. Nothing here allocates by a length that
// was only declared: memory follows the bytes that are there, or the caller's
// bound. Walking an uncompressed batch does not allocate.
//
// # Layout of a batch
//
//	 0  base offset           int64   } outside the CRC, so the broker can
//	 8  length of the rest    int32   } stamp offset and epoch without
//	12  leader epoch          int32   } touching the rest
//	16  magic                 int8    2
//	17  CRC-32C               uint32  of everything from 21 on
//	21  attributes            int16   bits 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon
//	23  last offset delta     int32
//	27  base timestamp        int64   ms; the delete horizon when bit 6 is set
//	35  max timestamp         int64   ms; the time of every record when bit 3 is set
//	43  producer id           int64   -1 none
//	51  producer epoch        int16   -1 none
//	53  base sequence         int32   -1 none
//	57  record count          int32
//	61  records               compressed as one block when a codec is set
//
// A record: length varint, attributes int8, timestamp delta varlong, offset
// delta varint, key (varint length, -1 null), value (the same), header count
// varint, then per header key and value. All varints are zig-zag.
//
// Sources: KIP-98 (layout), KIP-32 and KIP-31 (message format 1), KIP-390
// (levels), KIP-534 (delete horizon), KIP-74 (the first message whole), KIP-467 (record errors), Kafka's
// LogValidator and ProduceRequest for which fault gets which code, probed
// against a running Kafka 4.4.
//
// Tested by tables, by comparison with franz-go's encoder and decoder in both
// directions, and by fuzzing everything that reads bytes.
package batch
