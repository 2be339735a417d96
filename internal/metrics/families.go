package metrics

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one metric family: the only place where its name is written.
type family struct {
	name   string
	kind   kind
	labels []string
	help   string
	desc   *prometheus.Desc
}

type kind int

const (
	counter kind = iota
	gauge
	histogram
)

func (k kind) String() string {
	return [...]string{"counter", "gauge", "histogram"}[k]
}

// families in the order of docs/metrics.md.
var families []*family

func declare(k kind, name, help string, labels ...string) *family {
	f := &family{name: name, kind: k, labels: labels, help: help, desc: prometheus.NewDesc(name, help, labels, nil)}
	families = append(families, f)
	return f
}

// Per topic; topic="" is the sum over all topics, as Kafka has it. Sum with
// topic!="" or take topic="", not both.
var (
	fMessagesIn      = declare(counter, "kafka_server_brokertopicmetrics_messagesin_total", "Records appended by producers. topic=\"\" is the sum over all topics.", "topic")
	fBytesIn         = declare(counter, "kafka_server_brokertopicmetrics_bytesin_total", "Bytes of batches appended by producers. topic=\"\" is the sum over all topics.", "topic")
	fBytesOut        = declare(counter, "kafka_server_brokertopicmetrics_bytesout_total", "Bytes of batches sent to consumers. topic=\"\" is the sum over all topics.", "topic")
	fBytesRejected   = declare(counter, "kafka_server_brokertopicmetrics_bytesrejected_total", "Bytes of batches refused as too large. topic=\"\" is the sum over all topics.", "topic")
	fTotalProduce    = declare(counter, "kafka_server_brokertopicmetrics_totalproducerequests_total", "Produce requests, once per topic in them. topic=\"\" is the sum over all topics.", "topic")
	fTotalFetch      = declare(counter, "kafka_server_brokertopicmetrics_totalfetchrequests_total", "Fetch requests of consumers, once per topic answered. topic=\"\" is the sum over all topics.", "topic")
	fFailedProduce   = declare(counter, "kafka_server_brokertopicmetrics_failedproducerequests_total", "Partitions of produce requests that failed. topic=\"\" is the sum over all topics.", "topic")
	fFailedFetch     = declare(counter, "kafka_server_brokertopicmetrics_failedfetchrequests_total", "Partitions of fetch requests that failed. topic=\"\" is the sum over all topics.", "topic")
	fConversions     = declare(counter, "kafka_server_brokertopicmetrics_producemessageconversions_total", "Records that came in an old format or had to be compressed anew. topic=\"\" is the sum over all topics.", "topic")
	fReplicationIn   = declare(counter, "kafka_server_brokertopicmetrics_replicationbytesin_total", "Bytes this broker fetched as a follower.")
	fReplicationOut  = declare(counter, "kafka_server_brokertopicmetrics_replicationbytesout_total", "Bytes sent to followers.")
	fRequests        = declare(counter, "kafka_network_requestmetrics_requests_total", "Requests answered.", "request", "version")
	fErrors          = declare(counter, "kafka_network_requestmetrics_errors_total", "Error codes in responses, once per item that carries one.", "request", "error")
	fTotalTime       = declare(histogram, "kafka_network_requestmetrics_totaltimems", "Milliseconds from the arrival of a request to the hand-over of its response for sending.", "request")
	fLocalTime       = declare(histogram, "kafka_network_requestmetrics_localtimems", "Milliseconds in which a request was worked on.", "request")
	fRemoteTime      = declare(histogram, "kafka_network_requestmetrics_remotetimems", "Milliseconds in which a request waited: for data, for followers, for its group, for the responses before it.", "request")
	fRequestBytes    = declare(counter, "kafka_network_requestmetrics_requestbytes_total", "Bytes of requests.", "request")
	fResponseBytes   = declare(counter, "kafka_network_requestmetrics_responsebytes_total", "Bytes of responses.", "request")
	fConnections     = declare(gauge, "kafka_server_socket_server_metrics_connection_count", "Open client connections.", "listener")
	fConnCreated     = declare(counter, "kafka_server_socket_server_metrics_connection_creation_total", "Client connections accepted.", "listener")
	fConnClosed      = declare(counter, "kafka_server_socket_server_metrics_connection_close_total", "Client connections ended.", "listener")
	fConnRefused     = declare(counter, "weir_connections_refused_total", "Connections closed before their first request, by the limit they met.", "listener", "reason")
	fConnKilled      = declare(counter, "weir_connections_killed_total", "Connections the broker closed: idle, stalled, unread, malformed, unsupported, failed.", "listener", "reason")
	fClients         = declare(gauge, "weir_client_connections", "Open connections by the client software they named (KIP-511).", "software", "version")
	fFrameMemory     = declare(gauge, "weir_frame_memory_bytes", "Memory held by large requests in work or on their way in.")
	fLogFiles        = declare(gauge, "weir_log_open_files", "Files of logs that are open; a log that nobody uses holds none.")
	fLogFilesMax     = declare(gauge, "weir_log_open_files_max", "Most of those allowed now, beside the open connections; 0: no bound.")
	fFrameMemoryMax  = declare(gauge, "weir_frame_memory_max_bytes", "Most of that memory allowed at one time (queued.max.request.bytes).")
	fPartitions      = declare(gauge, "kafka_server_replicamanager_partitioncount", "Partitions on this broker.")
	fLeaders         = declare(gauge, "kafka_server_replicamanager_leadercount", "Partitions this broker leads.")
	fUnderReplicated = declare(gauge, "kafka_server_replicamanager_underreplicatedpartitions", "Led partitions with fewer in-sync than assigned replicas.")
	fUnderMinISR     = declare(gauge, "kafka_server_replicamanager_underminisrpartitioncount", "Led partitions below min.insync.replicas.")
	fAtMinISR        = declare(gauge, "kafka_server_replicamanager_atminisrpartitioncount", "Led partitions at min.insync.replicas.")
	fOfflineReplicas = declare(gauge, "kafka_server_replicamanager_offlinereplicacount", "Replicas on failed log directories of this broker.")
	fReassigning     = declare(gauge, "kafka_server_replicamanager_reassigningpartitions", "Led partitions being moved.")
	fISRShrinks      = declare(counter, "kafka_server_replicamanager_isrshrinks_total", "In-sync sets that lost a replica.")
	fISRExpands      = declare(counter, "kafka_server_replicamanager_isrexpands_total", "In-sync sets that gained a replica.")
	fPurgatory       = declare(gauge, "kafka_server_delayedoperationpurgatory_purgatorysize", "Requests waiting, by what they are.", "delayedoperation")
	fBrokerState     = declare(gauge, "kafka_server_kafkaserver_brokerstate", "0 not running, 1 starting, 2 recovering, 3 running, 6 shutting down.")
	fController      = declare(gauge, "kafka_controller_kafkacontroller_activecontrollercount", "1 on the active controller.")
	fOfflineParts    = declare(gauge, "kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions of the cluster without a leader.")
	fGlobalTopics    = declare(gauge, "kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.")
	fGlobalParts     = declare(gauge, "kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.")
	fImbalance       = declare(gauge, "kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions not led by their first replica.")
	fActiveBrokers   = declare(gauge, "kafka_controller_kafkacontroller_activebrokercount", "Brokers registered and not fenced.")
	fFencedBrokers   = declare(gauge, "kafka_controller_kafkacontroller_fencedbrokercount", "Brokers registered and fenced.")
	fElections       = declare(counter, "kafka_controller_controllerstats_leaderelection_total", "Leader changes decided by this controller.")
	fUnclean         = declare(counter, "kafka_controller_controllerstats_uncleanleaderelections_total", "Leaders chosen from outside the in-sync set.")
	fLogSize         = declare(gauge, "kafka_log_log_size", "Bytes of a partition on this broker.", "topic", "partition")
	fLogStart        = declare(gauge, "kafka_log_log_logstartoffset", "First offset of a partition on this broker.", "topic", "partition")
	fLogEnd          = declare(gauge, "kafka_log_log_logendoffset", "Next offset of a partition on this broker.", "topic", "partition")
	fLogSegments     = declare(gauge, "kafka_log_log_numlogsegments", "Segments of a partition on this broker.", "topic", "partition")
	fOfflineDirs     = declare(gauge, "kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.")
	fUncleanable     = declare(gauge, "kafka_log_logcleanermanager_uncleanable_partitions_count", "Partitions of a log directory whose last compaction failed, for damage mostly; the log names them.", "logdirectory")
	fUncleanBytes    = declare(gauge, "kafka_log_logcleanermanager_uncleanable_bytes", "Bytes that wait for compaction in those.", "logdirectory")
	fMaxDirty        = declare(gauge, "kafka_log_logcleanermanager_max_dirty_percent", "Share of bytes not compacted yet in the log that has the largest.")
	fCleanerRun      = declare(gauge, "kafka_log_logcleanermanager_time_since_last_run_ms", "Milliseconds since compaction last looked for work.")
	fRecopy          = declare(gauge, "kafka_log_logcleaner_cleaner_recopy_percent", "Share of the bytes that the last compaction left.")
	fCleanTime       = declare(gauge, "kafka_log_logcleaner_max_clean_time_secs", "Seconds the last compaction took.")
	fCleanBuffer     = declare(gauge, "kafka_log_logcleaner_max_buffer_utilization_percent", "How full the memory for keys was in the last compaction (log.cleaner.dedupe.buffer.size).")
	fDeadCleaners    = declare(gauge, "kafka_log_logcleaner_deadthreadcount", "Always 0: a compaction that fails ends no thread.")
	fFlushTime       = declare(histogram, "kafka_log_logflushstats_logflushrateandtimems", "Milliseconds of an fsync of a partition's files.")
	fAppendTime      = declare(histogram, "weir_log_append_seconds", "Seconds of an append to a partition, waiting for its turn included.")
	fGroups          = declare(gauge, "kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups this broker coordinates.")
	fGroupOffsets    = declare(gauge, "kafka_coordinator_group_groupmetadatamanager_numoffsets", "Committed offsets this broker keeps.")
	fGroupState      = declare(gauge, "weir_groups", "Groups this broker coordinates, by state.", "state")
	fRebalances      = declare(counter, "weir_group_rebalances_total", "Rebalances completed.")
	fGroupOffset     = declare(gauge, "kafka_consumergroup_current_offset", "Committed offset of a group.", "consumergroup", "topic", "partition")
	fGroupLag        = declare(gauge, "kafka_consumergroup_lag", "Records between the committed offset and the high watermark.", "consumergroup", "topic", "partition")
	fGroupMembers    = declare(gauge, "kafka_consumergroup_members", "Members of a group.", "consumergroup")
	fTopicOffset     = declare(gauge, "kafka_topic_partition_current_offset", "High watermark of a led partition.", "topic", "partition")
	fTopicOldest     = declare(gauge, "kafka_topic_partition_oldest_offset", "First offset of a led partition.", "topic", "partition")
	fBuild           = declare(gauge, "weir_build_info", "1, with the version in the label.", "version")
	fLeftOut         = declare(counter, "weir_metrics_left_out_total", "Label values refused and series left out since a family had reached its limit.")
)

// Markdown is the text of docs/metrics.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n")
	b.WriteString("<!-- Written by `go test ./internal/metrics -run TestDocs -rewrite`. -->\n\n")
	b.WriteString("Weir answers Prometheus at `/metrics` of its HTTP listener (`weir.http.listener`). Names that begin with `kafka_` are\n")
	b.WriteString("those under which the usual JMX exporter rules show Kafka, and kafka_exporter shows lag, so existing dashboards and\n")
	b.WriteString("alerts fit. The request times are histograms here: take `histogram_quantile` of `_bucket` where a dashboard reads a\n")
	b.WriteString("`quantile` label. Go runtime and process metrics (`go_…`, `process_…`) come along.\n\n")
	fmt.Fprintf(&b, "Partition and group series are left out beyond %d per family; `weir_metrics_left_out_total` then rises.\n\n", MaxLabels)
	b.WriteString("| name | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range families {
		labels := make([]string, len(f.labels))
		for i, l := range f.labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, strings.Join(labels, ", "), f.help)
	}
	return b.String()
}
