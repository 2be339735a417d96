package config

// Weir's own keys, what Kafka keeps as dynamic-only keys, and where our defaults
// differ from Kafka's.

var weirKeys = []spec{
	{"weir.http.listener", String, "127.0.0.1:9192", "", Medium, ReadOnly, "", live, "Address of the HTTP side (console, /metrics, /health); empty serves none."},
}

// Kafka holds these outside its table of broker keys: they can only be set while
// the broker runs.
var dynamicOnlyKeys = []spec{
	{"leader.replication.throttled.rate", Long, "9223372036854775807", "[0,...]", Medium, ClusterWide, "bytes/s", needsCluster, "Upper bound for what a leader sends to the throttled replicas of its partitions."},
	{"follower.replication.throttled.rate", Long, "9223372036854775807", "[0,...]", Medium, ClusterWide, "bytes/s", needsCluster, "Upper bound for what a follower fetches for its throttled replicas."},
	{"replica.alter.log.dirs.io.max.bytes.per.second", Long, "9223372036854775807", "[0,...]", Medium, ClusterWide, "bytes/s", noDirMoves, "Upper bound for moving a replica between two log directories of one broker."},
}

var brokerGroups = []struct {
	title string
	specs []spec
}{
	{"Weir's own keys", weirKeys},
	{"Listeners, connections and requests", netKeys},
	{"The log on disk", logKeys},
	{"Topics and the server as a whole", serverKeys},
	{"Groups and their offsets", groupKeys},
	{"Producer ids and transactions", txnKeys},
	{"Several nodes, the quorum and replication", clusterKeys},
	{"Bounds on replication traffic, set only while the broker runs", dynamicOnlyKeys},
	{"Login, tokens and who may do what", saslKeys},
	{"TLS", tlsKeys},
	{"Tiered storage", remoteKeys},
	{"Share groups and streams groups", shareKeys},
}

var (
	live           = state{}
	noThreads      = state{NoEffect, "Weir has goroutines where Kafka has a pool of threads; nothing needs a count"}
	noJVM          = state{NoEffect, "it configures a class inside a Java process; Weir is one binary without a JVM"}
	noPurgatory    = state{NoEffect, "Weir keeps no purgatory: a waiting request is dropped the moment it is answered"}
	noMetricsLib   = state{NoEffect, "it tunes Kafka's own metrics library; Weir's metrics are at /metrics"}
	noLoadBuffer   = state{NoEffect, "Weir sizes its read buffer when it loads a partition by what is there"}
	noDirMoves     = state{NotYet, "replicas cannot be moved between log directories yet"}
	noCoordBuf     = state{NoEffect, "Weir's coordinators write each decision at once, as one batch, and keep no buffer"}
	noDowntime     = state{NoEffect, "a Weir broker is up or it has ended with an error; there is no such wait"}
	noQuorumFiles  = state{NoEffect, "the metadata log is Weir's own, with its own snapshots"}
	noUnstable     = state{NoEffect, "Weir offers no unstable versions"}
	needsTLS       = state{NotYet, "TLS is not served yet"}
	needsSASL      = state{NotYet, "SASL is not served yet"}
	needsACL       = state{NotYet, "access control is not there yet"}
	needsTokens    = state{NotYet, "delegation tokens are not there yet"}
	needsCluster   = state{NotYet, "several nodes are not there yet"}
	needsTxn       = state{NotYet, "transactions are not there yet"}
	needsTiering   = state{NotYet, "tiered storage is not there yet"}
	needsShare     = state{NotYet, "share groups are not there yet"}
	needsStreams   = state{NotYet, "streams groups are not there yet"}
	needsNewGroup  = state{NotYet, "groups of the new consumer protocol are not there yet"}
	needsQuota     = state{NotYet, "quotas are not there yet"}
	needsTelemetry = state{NotYet, "client telemetry is not there yet"}
)

type ownDefault struct{ value, why string }

var ownDefaults = map[string]ownDefault{
	"max.decompressed.message.bytes": {"268435456", "a batch of a few kilobytes must not be able to take 2 GiB"},
	"socket.receive.buffer.bytes":    {"-1", "the system adapts the buffer to the connection; a fixed size is a bound on fast and long links"},
	"socket.send.buffer.bytes":       {"-1", "the system adapts the buffer to the connection; a fixed size is a bound on fast and long links"},
	"socket.listen.backlog.size":     {"4096", "many clients that connect again at once must all fit; a connection that does not is lost for a second or more"},
	"listeners":                      {"PLAINTEXT://127.0.0.1:9092", "nothing is opened to the network unasked; when only advertised.listeners is set, the same ports are opened on all addresses"},
	"node.id":                        {"1", "a single node starts without a configuration"},
	"process.roles":                  {"broker,controller", "a single node starts without a configuration"},
	"log.dir":                        {"./weir-data", "--data-dir replaces it; data must not lie in /tmp"},
	"controller.listener.names":      {"", "a quorum of one needs no controller listener"},
}

// needsRestart are keys Kafka can change while running and Weir cannot.
var needsRestart = setOf("listeners", "listener.security.protocol.map")

// internalKeys are those Kafka hides from DescribeConfigs while they have their
// default.
var internalKeys = setOf(
	"controller.performance.always.log.threshold.ms", "controller.performance.sample.period.ms",
	"group.consumer.assignor.offload.enable", "group.consumer.regex.refresh.interval.ms",
	"group.share.assignor.offload.enable", "group.share.dlq.manager.class.name",
	"group.share.initialize.retry.interval.ms", "group.share.persister.class.name",
	"group.streams.acceptable.recovery.lag", "group.streams.assignor.offload.enable",
	"group.streams.max.warmup.replicas", "group.streams.min.task.offset.interval.ms",
	"group.streams.num.warmup.replicas", "group.streams.task.offset.interval.ms",
	"internal.metadata.delete.delay.millis", "internal.metadata.log.segment.bytes",
	"internal.metadata.max.batch.size.in.bytes", "internal.segment.bytes",
	"leader.replication.throttled.rate", "follower.replication.throttled.rate",
	"log.initial.task.delay.ms", "producer.id.expiration.check.interval.ms",
	"remote.log.index.file.cache.ttl.ms", "remote.log.manager.task.retry.backoff.max.ms",
	"remote.log.manager.task.retry.backoff.ms", "remote.log.manager.task.retry.jitter",
	"replica.alter.log.dirs.io.max.bytes.per.second", "server.max.startup.time.ms",
	"share.coordinator.cold.partition.snapshot.interval.ms", "share.coordinator.state.topic.prune.interval.ms",
	"unclean.leader.election.interval.ms", "unstable.api.versions.enable", "unstable.feature.versions.enable",
)

func setOf(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
