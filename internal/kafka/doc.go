// Package kafka holds the nouns of Kafka's protocol: names, ids, offsets,
// epochs and error codes.
//
// Owns: the named types that keep an offset from being passed for an epoch, and
// the table of error codes.
// Does not know: bytes on the wire or on disk, requests, state.
// Goroutines: none. A noun moves here only when the protocol names it and three
// rooms use it.
package kafka
