package commitlog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// Names of the files that the owner of a log directory keeps beside the partitions.
const (
	RecoveryPointFile = "recovery-point-offset-checkpoint"
	LogStartFile      = "log-start-offset-checkpoint"
	HighWatermarkFile = "replication-offset-checkpoint"
	CleanerFile       = "cleaner-offset-checkpoint"
	CleanShutdownFile = ".kafka_cleanshutdown"
	LockFile          = ".lock"
)

// ReadCheckpoint reads an offset checkpoint: version 0, a count, then lines of
// topic, partition and offset. A missing file is an empty one. A damaged file is an
// error, with as many lines as could be read: the owner goes on with those and with
// safe defaults.
func ReadCheckpoint(fs disk.FS, path string) (map[kafka.TopicPartition]kafka.Offset, error) {
	b, err := fs.ReadFile(path)
	if isNotExist(err) {
		return map[kafka.TopicPartition]kafka.Offset{}, nil
	}
	if err != nil {
		return nil, err
	}
	offsets, err := parseCheckpoint(b)
	if err != nil {
		err = &CorruptError{path, 0, err}
	}
	return offsets, err
}

func parseCheckpoint(b []byte) (map[kafka.TopicPartition]kafka.Offset, error) {
	offsets := map[kafka.TopicPartition]kafka.Offset{}
	lines, err := checkpointLines(b)
	if err != nil {
		// Whole lines of a cut file are still good.
		if all := strings.Split(string(b), "\n"); len(all) > 3 && all[0] == "0" {
			lines = all[2 : len(all)-1]
		}
	}
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 3 {
			return offsets, fmt.Errorf("line %.80q: want topic, partition, offset", line)
		}
		p, err1 := strconv.ParseInt(f[1], 10, 32)
		off, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil || p < 0 || off < 0 {
			return offsets, fmt.Errorf("line %.80q: want topic, partition, offset", line)
		}
		offsets[kafka.TopicPartition{Topic: f[0], Partition: int32(p)}] = kafka.Offset(off)
	}
	return offsets, err
}

// Checkpoint is one line of an offset checkpoint.
type Checkpoint struct {
	TP     kafka.TopicPartition
	Offset kafka.Offset
}

// EncodeCheckpoint is the content of an offset checkpoint, its lines in this order.
func EncodeCheckpoint(lines []Checkpoint) []byte {
	b := make([]byte, 0, 16+len(lines)*40)
	b = fmt.Appendf(b, "0\n%d\n", len(lines))
	for _, c := range lines {
		b = append(b, c.TP.Topic...)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(c.TP.Partition), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(c.Offset), 10)
		b = append(b, '\n')
	}
	return b
}

// WriteCheckpoint replaces an offset checkpoint, durably and in one step.
func WriteCheckpoint(fs disk.FS, path string, offsets map[kafka.TopicPartition]kafka.Offset) error {
	tps := slices.SortedFunc(maps.Keys(offsets), func(a, b kafka.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	lines := make([]Checkpoint, len(tps))
	for i, tp := range tps {
		lines[i] = Checkpoint{tp, offsets[tp]}
	}
	return fs.WriteAtomic(path, EncodeCheckpoint(lines))
}

// PartitionDir is a partition's folder in a log directory.
type PartitionDir struct {
	Name    string
	TP      kafka.TopicPartition // of a deleted one perhaps with a shortened topic
	Deleted bool                 // to be removed
}

// PartitionDirs lists the partitions' folders of a log directory, by name. Folders
// with other names are not listed.
func PartitionDirs(fs disk.FS, dir string) ([]PartitionDir, error) {
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []PartitionDir
	for _, e := range entries {
		if !e.Dir {
			continue
		}
		name, deleted := strings.CutSuffix(e.Name, deleteDirExt)
		if deleted {
			i := strings.LastIndexByte(name, '.')
			if i < 0 {
				continue
			}
			name = name[:i]
		}
		if tp, ok := parseDirName(name); ok {
			out = append(out, PartitionDir{e.Name, tp, deleted})
		}
	}
	return out, nil
}

func parseDirName(name string) (kafka.TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return kafka.TopicPartition{}, false
	}
	p, err := strconv.ParseUint(name[i+1:], 10, 31)
	if err != nil || name[i+1:] != strconv.FormatUint(p, 10) {
		return kafka.TopicPartition{}, false
	}
	return kafka.TopicPartition{Topic: name[:i], Partition: int32(p)}, true
}

// ReadTopicID reads the topic id a partition's folder says it belongs to.
func ReadTopicID(fs disk.FS, dir string) (kafka.TopicID, error) {
	b, err := fs.ReadFile(dir + "/" + metadataFile)
	if err != nil {
		return kafka.TopicID{}, err
	}
	return parseTopicID(b)
}
