package commitlog

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/kafka"
)

// What a partition's folder holds.
const (
	logExt      = ".log"
	indexExt    = ".index"
	timeExt     = ".timeindex"
	txnExt      = ".txnindex"
	snapshotExt = ".snapshot"

	deletedExt = ".deleted" // waits for the end of the delete delay
	cleanedExt = ".cleaned" // an unfinished result of compaction
	swapExt    = ".swap"    // a finished one that is to replace what it covers
	tmpExt     = ".tmp"     // an unfinished atomic write
	asideExt   = ".aside"   // a segment that was taken out of the log and is kept

	epochFile    = "leader-epoch-checkpoint"
	metadataFile = "partition.metadata"

	deleteDirExt = "-delete" // ends the name of a deleted partition's folder
)

// segmentExts are the files that live and die with a segment, the log first: a
// crash between two renames must never leave indexes in force without their log.
var segmentExts = [...]string{logExt, indexExt, timeExt, txnExt}

// fileName is 20 digits and the extension.
func fileName(base kafka.Offset, ext string) string {
	const zeros = "00000000000000000000"
	n := strconv.FormatInt(int64(base), 10)
	return zeros[:len(zeros)-len(n)] + n + ext
}

// parseName takes a name of the form 20 digits plus extension apart.
func parseName(name string) (base kafka.Offset, ext string, ok bool) {
	digits, ext, found := strings.Cut(name, ".")
	if !found || len(digits) < 20 {
		return 0, "", false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || fileName(kafka.Offset(n), "."+ext) != name {
		return 0, "", false // also of a sign and of more digits: fileName would not find it again
	}
	return kafka.Offset(n), "." + ext, true
}

func (l *Log) path(base kafka.Offset, ext string) string {
	return filepath.Join(l.Dir(), fileName(base, ext))
}
