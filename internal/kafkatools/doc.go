// Package kafkatools gives the command line tools that come with Kafka: the same
// names, flags, lines on stdout and stderr, and exit codes.
//
// Owns: the tools' surfaces; a flag parser that reads as joptsimple does, one
// that reads as argparse4j does, and their help layouts; the Java clients'
// property names, defaults and the sentences they say; docs/tools.md says what
// is served and where a tool differs from Kafka's on purpose.
//
// Does not know: the broker. Everything goes through franz-go's client, so the
// tools work against any Kafka; kafka-dump-log and kafka-storage alone touch
// files, through the rooms that own them. It reads no environment and never
// ends the process: Run returns the exit code, main exits.
//
// Goroutines: the client's own, gone when a tool returns; one that prints a
// producer's refusals in order; one for a reader of stdin that may block, left
// behind in its Read when the tool is interrupted. A tool runs in its caller's
// goroutine and ends when its context does.
//
// Invariants: stdout carries what Kafka's tool prints there and nothing else,
// byte for byte where scripts parse it; a stack trace of Java is never printed,
// the line above it is. Nothing is initialised at start that a tool does not use:
// `weir kafka-topics --version` must end within 30 ms.
//
// Sources: Kafka 4.4's tools run beside ours; KIP-1147 (the names of options
// since 4.2), KIP-1161, KIP-222, KIP-396, KIP-460, KIP-455.
//
// Tested with tables for parsing and layout, with a broker in process, and behind
// the build tag compat with Kafka's own tools against one broker
// (compat/kafkatools_test.go).
package kafkatools
