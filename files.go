package weir

import "github.com/weirmq/weir/internal/wire"

// openFiles divides the descriptors of the process. Logs close files and open them
// again as they need to, so they have for sure a third, and beyond that what
// connections do not use; a reserve is for what is opened for a moment. Connections
// take only theirs, for a log that cannot open its file to sync it is taken for a
// broken disk.
type openFiles struct {
	limit, logs, connections, reserve int // connections: wire.NoLimit where limit is not known
}

// fewOpenFiles is the limit below which the log says what it comes to.
const fewOpenFiles = 4096

func divideOpenFiles(limit int) openFiles {
	if limit <= 0 {
		return openFiles{connections: wire.NoLimit}
	}
	o := openFiles{limit: limit, logs: max(limit/3, 16), reserve: min(128, limit/8+8)}
	o.connections = max(limit-o.logs-o.reserve, 16)
	return o
}

// logsBeside is how many files logs may have open beside so many connections. An
// eighth stays free for connections that come before the logs have given way.
func (o openFiles) logsBeside(connections int) int {
	if o.limit <= 0 {
		return 0
	}
	return max(o.logs, o.limit-o.reserve-o.limit/8-connections)
}

func (s *Server) logFiles() int {
	if s.wire == nil {
		return s.files.logs // partitions open before connections do
	}
	return s.files.logsBeside(s.wire.Conns())
}
