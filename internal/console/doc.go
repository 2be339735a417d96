// Package console is the HTTP side of a broker: metrics for Prometheus, health for
// supervisors, profiles for loopback peers.
//
// Owns: paths and their answers. Does not know: how anything is counted or why it
// is unwell; it takes a gatherer and a function.
// Goroutines: none of its own; handlers run on the server's.
package console
