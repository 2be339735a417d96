package config

// Keys of transactions and producer ids.
var txnKeys = []spec{
	{"add.partitions.to.txn.retry.backoff.max.ms", Int, "100", "[0,...]", High, ReadOnly, "", live, ""},
	{"add.partitions.to.txn.retry.backoff.ms", Int, "20", "[1,...]", High, ReadOnly, "", live, ""},
	{"producer.id.expiration.check.interval.ms", Int, "600000", "[1,...]", Low, ReadOnly, "", live, ""},
	{"producer.id.expiration.ms", Int, "86400000", "[1,...]", Low, ClusterWide, "", live, ""},
	{"transaction.abort.timed.out.transaction.cleanup.interval.ms", Int, "10000", "[1,...]", Low, ReadOnly, "", live, ""},
	{"transaction.max.timeout.ms", Int, "900000", "[1,...]", High, ReadOnly, "", live, ""},
	{"transaction.partition.verification.enable", Bool, "true", "", Low, ClusterWide, "", live, ""},
	{"transaction.remove.expired.transaction.cleanup.interval.ms", Int, "3600000", "[1,...]", Low, ReadOnly, "", live, ""},
	{"transaction.state.log.load.buffer.size", Int, "5242880", "[1,...]", High, ReadOnly, "", live, ""},
	{"transaction.state.log.min.isr", Int, "2", "[1,...]", High, ReadOnly, "", live, ""},
	{"transaction.state.log.num.partitions", Int, "50", "[1,...]", High, ReadOnly, "", live, ""},
	{"transaction.state.log.replication.factor", Short, "3", "[1,...]", High, ReadOnly, "", live, ""},
	{"transaction.state.log.segment.bytes", Int, "104857600", "[1,...]", High, ReadOnly, "", live, ""},
	{"transaction.two.phase.commit.enable", Bool, "false", "", Low, ReadOnly, "", live, ""},
	{"transactional.id.expiration.ms", Int, "604800000", "[1,...]", High, ReadOnly, "", live, ""},
}
