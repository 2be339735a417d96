// Package diff plays the same raw requests to the real Kafka 4.4 and to Weir and
// compares the decoded answers. All of it is tests behind the build tag compat.
//
// Owns: the scenario language, the sweeps made from a request by changing one
// field at a time, the masks (ids, times, hosts), the comparison.
// Does not know: anything under internal/. Bodies are encoded and decoded by kmsg;
// an answer must come back byte for byte when kmsg encodes it again.
//
// A scenario is a file under testdata/scenarios, one step per line; lines that
// begin with a space continue the step before them, # begins a comment:
//
//	topic @t 3 cleanup.policy=compact     make a topic and wait until it is led
//	a Metadata v12 {"Topics":[{"Topic":"@t"}]}
//	let id = Topics[0].TopicID            keep a value of the last answer as $id
//	a Metadata v* {...}                   each version that both serve; v4-9, v7 likewise
//	until Topics[0].ErrorCode = 0         ask the last step again until it says so
//	a> JoinGroup v5 {...}                 send, and
//	a<                                    take the answer later
//	a~ 200ms                              nothing must come within that time
//	a raw 0012ffff00000001ffff            a frame by its bytes; the answer is hex
//	client a NAME                         the client id of a connection
//	a close                               close it; the next step opens it anew
//	quiet a ...                           a step whose answer is not compared
//	sleep 100ms
//
// A connection is made when its name is first used. A name @x is the scenario's
// own: topics, groups; other scenarios' are left out of answers that list
// everything. @x# is new in every step of a sweep. JSON fills the fields of the
// kmsg request, what is left out keeps its default. Bytes are a string, or
// {"hex":"00ff"}, {"batch":{...}} (see bytes_test.go), or a list of these.
//
//	sweep Heartbeat                       the request below with one field changed at a time,
//	base {"Group":"@g",...}               in every version both serve; also a byte short and
//	skip TimeoutMillis                    a byte long. skip: fields not to change;
//	but Group=""                          but: a change not to make;
//	versions v2-4                         versions: not all of them
//	before topic @t# 1                    a step before each
//	end
//
// An answer is compared as a tree: arrays of structs are sorted, zero values left
// out, ids numbered in the order they come, times near now, hosts and texts
// replaced; "closed" and "silence" are answers too. testdata/allow.txt lists what
// may differ, each with the decision that says why, and a line that no longer
// differs fails. testdata/kafka holds Kafka's answers, so that the suite says
// something without a JVM; with one (`../shared/peers`) Kafka is asked live as well.
//
//	go test -tags compat ./compat/diff                       all
//	go test -tags compat ./compat/diff -run Diff/group       scenarios by name
//	go test -tags compat ./compat/diff -record               write Kafka's answers anew
//	go test -tags compat ./compat/diff -texts                and list error texts that differ
//	WEIR_DIFF_KAFKA=host:port WEIR_DIFF_WEIR=host:port ...   brokers that are up already and new
package diff
