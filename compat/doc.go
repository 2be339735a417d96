// Package compat holds the foreign judges of Weir: Kafka's own Java clients and
// tools, kcat and confluent-kafka (librdkafka), franz-go and its own tests,
// sarama, kafka-go, kafkajs, aiokafka, kafka-python and rdkafka, and raw bytes
// over a socket. All of it is tests behind the build tag compat; `make compat`
// runs it. Judges that are programs lie in clients/, with what they need in
// files of their own languages, so that the main module does not carry it.
//
// Owns: a harness that starts, kills and restarts the broker under test; an
// encoder of frames and record batches that shares no code with Weir's, so that
// both sides cannot make the same mistake (request bodies are kmsg's, and every
// response must come back byte for byte when kmsg encodes it again).
// Does not know: anything under internal/. A broker is an address, a data
// directory and a process.
//
// The package diff below compares answers with the real Kafka's (`make diff`).
//
// What each file shows stands on top of it. docs/field-cases.md says which test
// shows which field case; cases_test.go, without the tag, keeps that page true.
// FINDINGS.md lists where Weir differs from Kafka 4.4 on purpose, and what the
// real one taught us.
//
// Run it:
//
//	make compat                                   everything, against a weir built from this checkout
//	make compat RUN='TestWire/B002'               one case
//	WEIR_COMPAT=kafka make compat                 the same against the real Kafka: are the checks right?
//	WEIR_COMPAT_BIN=./weir make compat            a binary built elsewhere
//	WEIR_COMPAT_BOOTSTRAP=host:port make compat   a broker that is up already, where a test needs none of its own
//	WEIR_COMPAT_KEEP=1 make compat                keep data directories and logs of the brokers
//	WEIR_PEERS=DIR                                where the foreign tools lie (default ../shared/peers)
//	eval "$(compat/clients/install DIR)"          what the judges in clients/ need, put into DIR
//	KGO_TEST_RECORDS=500000 make compat RUN=TestFranzOwn   as many records as franz-go's own tests like (here 100,000)
//	WEIR_OLD_PYTHON=DIR                           pip install --target DIR kafka-python==1.4.7 lz4 python-snappy xxhash
//
// It needs a JDK 17 or newer, Maven, kcat, Python with confluent-kafka, and for
// clients/ Node, Rust, a C compiler and the headers of zlib and libzstd. A
// missing one skips its tests with the reason, and fails them when CI=true.
package compat
