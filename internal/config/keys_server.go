package config

// Keys of the server as a whole.
var serverKeys = []spec{
	{"alter.config.policy.class.name", Class, null, "", Low, ReadOnly, "", live, ""},
	{"auto.create.topics.enable", Bool, "true", "", High, ReadOnly, "", live, ""},
	{"background.threads", Int, "10", "[1,...]", High, ClusterWide, "", live, ""},
	{"client.quota.callback.class", Class, null, "", Low, ReadOnly, "", live, ""},
	{"config.providers", List, "", "", Low, ClusterWide, "", live, ""},
	{"create.topic.policy.class.name", Class, null, "", Low, ReadOnly, "", live, ""},
	{"delete.topic.enable", Bool, "true", "", High, ReadOnly, "", live, ""},
	{"kafka.metrics.polling.interval.secs", Int, "10", "[1,...]", Low, ReadOnly, "", live, ""},
	{"kafka.metrics.reporters", List, "", "", Low, ReadOnly, "", live, ""},
	{"metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", "", Low, ClusterWide, "", live, ""},
	{"metrics.num.samples", Int, "2", "[1,...]", Low, ReadOnly, "", live, ""},
	{"metrics.recording.level", String, "INFO", "", Low, ReadOnly, "", live, ""},
	{"metrics.sample.window.ms", Long, "30000", "[1,...]", Low, ReadOnly, "", live, ""},
	{"num.partitions", Int, "1", "[1,...]", Medium, ReadOnly, "", live, ""},
	{"quota.window.num", Int, "11", "[1,...]", Low, ReadOnly, "", live, ""},
	{"quota.window.size.seconds", Int, "1", "[1,...]", Low, ReadOnly, "", live, ""},
	{"server.max.startup.time.ms", Long, "9223372036854775807", "[0,...]", Medium, ReadOnly, "", live, ""},
	{"telemetry.max.bytes", Int, "1048576", "[1,...]", Low, ReadOnly, "", live, ""},
	{"unstable.api.versions.enable", Bool, "false", "", High, ReadOnly, "", live, ""},
	{"unstable.feature.versions.enable", Bool, "false", "", High, ReadOnly, "", live, ""},
}
