// Package lab is the performance lab: it loads any cluster that speaks Kafka's
// protocol, measures what the load met, and says what the figures carry.
//
// Owns: arrival schedules, payloads, the books of latency, the cut of the
// warm-up, intervals, the paired comparison, the ramp with its stop rules, the
// load generator, and the forms of a run's result (JSON, text, run folder).
//
// Does not know: the broker, flags, exit codes. It is handed clients.
//
// Two halves, by file. Plain functions and values without goroutine, clock or
// I/O: schedule, payload, keys, sizes, latency, warmup, interval, compare,
// ramp, rules, knee, threshold. The edge: generate, collect, consume, probe, folder.
//
// Goroutines: one for each producer or consumer of a run and one that collects
// their windows; all have ended when Produce, Consume or Probe returns. The
// client calls acknowledgements on a goroutine of its own, one at a time for
// each client, and the lab relies on that.
//
// Invariants: latency of an open loop counts from the time a record was due, a
// late record is sent late and never skipped, and no schedule begins anew after
// a stall. Failed records are counted by code and stand in the denominator.
// Histograms are merged, percentiles never averaged; a percentile that fewer
// than ten records lie beyond is not given. Nothing is allocated per record.
//
// Units: times within a run are time.Duration since its start, latencies whole
// microseconds, rates records per second, sizes bytes.
//
// Sources: Tene, "How not to measure latency" (coordinated omission); Satopää
// et al. 2011 (Kneedle); Jones and Kenward (crossover trials).
//
// Tested with tables, seeded series and, for the generator, a target that
// stalls on command under testing/synctest.
package lab
