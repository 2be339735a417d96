// Package metrics holds the numbers Weir shows to Prometheus.
//
// Owns: their names, units and help texts, the resolved counters that hot paths
// raise, and the collector that asks for the rest when it is scraped. The names
// are those which the usual JMX exporter rules give Kafka's own beans, so that
// dashboards fit; consumer lag has the names of kafka_exporter; what Kafka does
// not have begins with weir_.
// Does not know: who counts, or what a topic, partition or group is. The
// registry is handed in; nothing is global.
//
// Goroutines: none. All methods are safe for use by several, and do nothing on a
// nil *Set or a nil handle of one, so that tests and tools need no registry.
//
// Invariants:
//   - Nothing is counted per record, only per batch, request or connection, and
//     hot paths hold handles (Topic, API, Listener) instead of looking up labels.
//   - A label value that a client chose is made valid and short by Label, and a
//     family that carries one has at most MaxLabels values; the rest goes under
//     "_other" or is left out and counted in weir_metrics_left_out_total.
//
// Tested: names and values through a registry, hostile label values through the
// text parser, docs/metrics.md against the families declared here.
package metrics
