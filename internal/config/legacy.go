package config

import "strings"

// legacyKeys are keys of earlier Kafka versions that files and images still
// carry. They are accepted and do nothing.
var legacyKeys = map[string]string{
	"broker.id.generation.enable":             "ids are given by node.id",
	"reserved.broker.max.id":                  "ids are given by node.id",
	"inter.broker.protocol.version":           "Kafka removed it in 4.0, and versions are agreed on at run time",
	"log.message.format.version":              "Kafka removed it in 4.0, and the record format is always v2",
	"log.message.downconversion.enable":       "Kafka removed it in 4.0, and records are stored in format v2 only",
	"log.message.timestamp.difference.max.ms": "Kafka removed it in 4.0; use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
	"control.plane.listener.name":             "it belonged to ZooKeeper mode; use controller.listener.names",
	"host.name":                               "Kafka removed it in 3.0; use listeners",
	"port":                                    "Kafka removed it in 3.0; use listeners",
	"advertised.host.name":                    "Kafka removed it in 3.0; use advertised.listeners",
	"advertised.port":                         "Kafka removed it in 3.0; use advertised.listeners",
	"delegation.token.master.key":             "Kafka removed it in 4.0; use delegation.token.secret.key",
	"offsets.commit.required.acks":            "Kafka removed it in 4.0, and a commit always waits for all in-sync replicas",
	"quota.producer.default":                  "Kafka removed it in 3.0",
	"quota.consumer.default":                  "Kafka removed it in 3.0",
	"queued.max.requests.per.connection":      "Weir bounds the requests of a connection by itself",
	"group.coordinator.new.enable":            "there is one coordinator",
	"group.coordinator.new.rebalance.enable":  "there is one coordinator",
	"log.cleaner.min.cleanable.dirty.ratio":   "the key is log.cleaner.min.cleanable.ratio",
	"replica.high.watermark.max.lag.messages": "Kafka removed it in 0.9",
	"replica.lag.max.messages":                "Kafka removed it in 0.9",
	"enable.zookeeper":                        "Weir has no ZooKeeper",
	"eligible.leader.replicas.enable":         "it is a feature level in Kafka, not a key",
	"java.home":                               "Weir has no JVM",
}

// legacy returns why a key of an earlier Kafka, of ZooKeeper, of the JVM or of a
// vendor's edition has no effect.
func legacy(key string) (why string, ok bool) {
	if why, ok = legacyKeys[key]; ok {
		return why, true
	}
	for prefix, why := range map[string]string{
		"zookeeper.":         "Weir has no ZooKeeper; its nodes keep the metadata among themselves",
		"password.encoder.":  "it protected passwords kept in ZooKeeper, and Weir has none",
		"confluent.":         "it belongs to a vendor's edition of Kafka",
		"log4j.":             "it configures Kafka's logging library",
		"log4j2.":            "it configures Kafka's logging library",
		"com.sun.management": "it configures a JVM, and Weir has none",
		"kafka.csv.metrics.": "it configures Kafka's own metrics reporter; Weir's metrics are at /metrics",
		"auto.include.jmx.":  "it configures a JVM, and Weir has none",
	} {
		if strings.HasPrefix(key, prefix) {
			return why, true
		}
	}
	return "", false
}
