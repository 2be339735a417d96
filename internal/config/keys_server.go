package config

// Keys of the server as a whole.
var serverKeys = []spec{
	{"alter.config.policy.class.name", Class, null, "", Low, ReadOnly, "", noJVM, "Class that may refuse changes of settings."},
	{"auto.create.topics.enable", Bool, "true", "", High, ReadOnly, "", live, "Whether asking for a topic that is not there creates it, when the client allows it too."},
	{"background.threads", Int, "10", "[1,...]", High, ClusterWide, "", noThreads, "Threads for work on the side."},
	{"client.quota.callback.class", Class, null, "", Low, ReadOnly, "", noJVM, "Class that works out client quotas."},
	{"config.providers", List, "", "", Low, ClusterWide, "", noJVM, "Classes that fetch values from elsewhere."},
	{"create.topic.policy.class.name", Class, null, "", Low, ReadOnly, "", noJVM, "Class that may refuse new topics."},
	{"delete.topic.enable", Bool, "true", "", High, ReadOnly, "", live, "Whether topics may be deleted."},
	{"kafka.metrics.polling.interval.secs", Int, "10", "[1,...]", Low, ReadOnly, "s", noMetricsLib, "How often metrics reporters are asked."},
	{"kafka.metrics.reporters", List, "", "", Low, ReadOnly, "", noMetricsLib, "Classes that report the older metrics."},
	{"metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", "", Low, ClusterWide, "", noMetricsLib, "Classes that report metrics."},
	{"metrics.num.samples", Int, "2", "[1,...]", Low, ReadOnly, "", noMetricsLib, "Samples a metric is worked out from."},
	{"metrics.recording.level", String, "INFO", "", Low, ReadOnly, "", noMetricsLib, "Which metrics are recorded: INFO, DEBUG or TRACE."},
	{"metrics.sample.window.ms", Long, "30000", "[1,...]", Low, ReadOnly, "ms", noMetricsLib, "Length of a sample."},
	{"num.partitions", Int, "1", "[1,...]", Medium, ReadOnly, "", live, "Partitions of a topic that names no number."},
	{"quota.window.num", Int, "11", "[1,...]", Low, ReadOnly, "", needsQuota, "Windows kept for client quotas."},
	{"quota.window.size.seconds", Int, "1", "[1,...]", Low, ReadOnly, "s", needsQuota, "Length of such a window."},
	{"server.max.startup.time.ms", Long, "9223372036854775807", "[0,...]", Medium, ReadOnly, "ms", noDowntime, "Longest a start may take before the broker ends itself."},
	{"telemetry.max.bytes", Int, "1048576", "[1,...]", Low, ReadOnly, "bytes", needsTelemetry, "Largest metrics report a client may push."},
	{"unstable.api.versions.enable", Bool, "false", "", High, ReadOnly, "", noUnstable, "Whether request versions still in the making are offered."},
	{"unstable.feature.versions.enable", Bool, "false", "", High, ReadOnly, "", noUnstable, "Whether feature levels still in the making may be set."},
}
