package commitlog

// cleanerState is what compaction remembers between two runs.
type cleanerState struct{}
