package config

// Keys of transactions and producer ids.
var txnKeys = []spec{
	{"add.partitions.to.txn.retry.backoff.max.ms", Int, "100", "[0,...]", High, ReadOnly, "ms", needsTxn, "Longest time the broker keeps trying to add a partition to a transaction that is just ending."},
	{"add.partitions.to.txn.retry.backoff.ms", Int, "20", "[1,...]", High, ReadOnly, "ms", needsTxn, "Wait between two tries to add a partition to a transaction that is just ending."},
	{"producer.id.expiration.check.interval.ms", Int, "600000", "[1,...]", Low, ReadOnly, "ms", live, "How often a partition looks for producers it may forget."},
	{"producer.id.expiration.ms", Int, "86400000", "[1,...]", Low, ClusterWide, "ms", live, "Silence after which a partition forgets an idempotent producer's sequence."},
	{"transaction.abort.timed.out.transaction.cleanup.interval.ms", Int, "10000", "[1,...]", Low, ReadOnly, "ms", needsTxn, "How often transactions are looked at for having timed out."},
	{"transaction.max.timeout.ms", Int, "900000", "[1,...]", High, ReadOnly, "ms", needsTxn, "Longest transaction timeout a producer may ask for."},
	{"transaction.partition.verification.enable", Bool, "true", "", Low, ClusterWide, "", needsTxn, "Whether a partition asks the coordinator if a transaction really covers it before it takes records."},
	{"transaction.remove.expired.transaction.cleanup.interval.ms", Int, "3600000", "[1,...]", Low, ReadOnly, "ms", needsTxn, "How often transactional ids are looked at for being unused."},
	{"transaction.state.log.load.buffer.size", Int, "5242880", "[1,...]", High, ReadOnly, "bytes", needsTxn, "Bytes read at a time when a partition of transaction states is loaded."},
	{"transaction.state.log.min.isr", Int, "2", "[1,...]", High, ReadOnly, "", needsTxn, "min.insync.replicas of __transaction_state."},
	{"transaction.state.log.num.partitions", Int, "50", "[1,...]", High, ReadOnly, "", needsTxn, "Partitions of __transaction_state when it is created; must not change later."},
	{"transaction.state.log.replication.factor", Short, "3", "[1,...]", High, ReadOnly, "", needsTxn, "Replicas of __transaction_state when it is created."},
	{"transaction.state.log.segment.bytes", Int, "104857600", "[1,...]", High, ReadOnly, "bytes", needsTxn, "Segment size of __transaction_state."},
	{"transaction.two.phase.commit.enable", Bool, "false", "", Low, ReadOnly, "", needsTxn, "Whether a producer may leave the end of its transaction to another coordinator."},
	{"transactional.id.expiration.ms", Int, "604800000", "[1,...]", High, ReadOnly, "ms", needsTxn, "Age at which an unused transactional id is forgotten."},
}
