// Package config knows every setting of the broker: Kafka 4.4's own keys under
// their own names, the topic keys, and Weir's few keys that begin with "weir.".
//
// Owns: the table of keys (name, type, default, range, importance, where it may
// be changed, whether it has an effect here), the parsers for .properties files,
// environment variables, lists and listeners, the layers a value comes from, and
// the texts of `weir config check`, `weir config explain` and docs/config.md.
//
// Does not know: files, the environment, the host's name, the clock; the caller
// hands their contents in through Source. It does not know who uses a value
// either: storage rooms take plain Options filled from a TopicConfig.
//
// Goroutines: none, and no locks. Static, View and TopicConfig never change once
// made, so any goroutine may read them.
//
// Invariants: a Static holds only values that passed their check. A View drops a
// dynamic value that does not pass (with the layer below in its place): what an
// older version let into the metadata log must not stop a start. A getter called
// with an unknown key or the wrong type panics with "BUG:".
//
// Sources: Kafka 4.4's generated tables of broker and topic keys (a copy is in
// testdata), and the answers of a running Kafka 4.4 to DescribeConfigs and
// IncrementalAlterConfigs, for the shape and order of synonyms and for which
// change is refused how. Where Weir differs on purpose, Key.KafkaDefault tells
// Kafka's value and docs/config.md says why.
//
// Tested by tables against testdata, by fuzzing the four parsers, and by a
// recorded DescribeConfigs answer of the real broker.
package config
