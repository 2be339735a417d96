package weir

import "github.com/weirmq/weir/internal/wire"

// openFiles divides the descriptors of the process: a third for the logs, which
// close files and open them again as they need to, a reserve for what is opened for
// a moment, the rest for connections. Connections take only theirs, for a log that
// cannot open its file to sync it is taken for a broken disk.
type openFiles struct {
	limit, logs, connections int // connections: wire.NoLimit where limit is not known
}

// fewOpenFiles is the limit below which the log says what it comes to.
const fewOpenFiles = 4096

func divideOpenFiles(limit int) openFiles {
	if limit <= 0 {
		return openFiles{0, 0, wire.NoLimit}
	}
	logs := max(limit/3, 16)
	reserve := min(128, limit/8+8)
	return openFiles{limit, logs, max(limit-logs-reserve, 16)}
}
