// Command bench loads brokers turn about with franz-go's client, or with prepared
// requests where a client's own work would hide the broker, and prints medians,
// spreads and ratios as a Markdown table: for the figures that Kafka's own tools
// cannot show because a JVM pauses, or because they need a hundred clients in one
// process.
//
//	bench -t kafka=127.0.0.1:19092@PID -t weir=127.0.0.1:9092@PID [-r ROUNDS] [-s SCALE] [CASE...]
//
// A target is NAME=BOOTSTRAP[@PID]; with a process id it also gets the broker's
// CPU seconds and resident memory (Linux). The first target is the base of the
// ratios; above 1 the other is better, whatever the figure. Round 0 warms all
// targets and is thrown away; the order turns round each time. `make bench`
// starts both brokers and runs this and the load by Kafka's own tools.
//
// The load shares the machine with the broker. Percentiles come from HDR
// histograms with three digits; latency of an open loop counts from the time the
// record was due, so that a stall is paid by every record it delayed.
package main
