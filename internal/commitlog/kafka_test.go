package commitlog

// Kafka's own kafka-dump-log judges the files. KAFKA_DUMP_LOG holds the command,
// for instance "bin/kafka-dump-log.sh"; without it the test is skipped.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// fromProducer builds a batch of an idempotent or transactional producer.
func fromProducer(ts int64, id kafka.ProducerID, epoch int16, seq int32, n int, txn bool) batch.View {
	b := batch.NewBuilder(batch.BuilderOptions{ProducerID: id, ProducerEpoch: epoch, BaseSequence: seq, Transactional: txn})
	for i := range n {
		b.Add(ts+int64(i), []byte{byte(i)}, []byte("value"))
	}
	return b.Bytes()
}

// busyLog writes something of everything Kafka keeps.
func busyLog(w *world) {
	w.Helper()
	ts := t0.UnixMilli()
	seq := map[kafka.ProducerID]int32{}
	put := func(b batch.View, epoch kafka.Epoch) {
		w.Helper()
		if _, err := w.l.Append(t0, b, epoch); err != nil {
			w.Fatal(err)
		}
	}
	for i := range 300 {
		epoch := kafka.Epoch(i / 100)
		ts += 10
		put(recs(ts-int64(i%7)*3, 1+i%4, 120), epoch)
		id := kafka.ProducerID(100 + i%3)
		put(fromProducer(ts, id, 2, seq[id], 2, false), epoch)
		seq[id] += 2
		if i%10 == 5 {
			put(fromProducer(ts, 7, int16(i/10), 0, 3, true), epoch)
			put(batch.Control(int16(i/10%2), 7, int16(i/10), 1, ts), epoch)
		}
	}
	put(fromProducer(ts, 8, 0, 0, 1, true), 2)
}

func TestKafkaReadsOurFiles(t *testing.T) {
	command := os.Getenv("KAFKA_DUMP_LOG")
	if command == "" {
		t.Skip("KAFKA_DUMP_LOG is not set")
	}
	t.Chdir(t.TempDir())
	w := worldOn(t, disk.OS, func(o *Options) { o.SegmentBytes = 30_000; o.IndexIntervalBytes = 1000 })
	busyLog(w)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	var files []string
	names, _ := filepath.Glob("d/t-0/*")
	for _, name := range names {
		switch filepath.Ext(name) {
		case logExt, indexExt, timeExt, txnExt, snapshotExt:
			files = append(files, name)
		}
	}
	for _, args := range [][]string{{"--deep-iteration", "--verify-index-only"}, {"--index-sanity-check"}, {"--deep-iteration"}} {
		cmd := append(strings.Fields(command), append(args, "--files", strings.Join(files, ","))...)
		out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		text := string(out)
		if os.Getenv("KAFKA_DUMP_LOG_SHOW") != "" {
			t.Log(text)
		}
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, text)
		}
		for _, bad := range []string{"Mismatch", "Found ", "isvalid: false", "corrupt", "Exception", "Could not", "not monotonic", "unable"} {
			if i := strings.Index(text, bad); i >= 0 {
				t.Errorf("%v says %q: %.400s", args, bad, text[i:])
			}
		}
	}
}

// TestDumpAsKafka compares our dump with Kafka's, line by line.
func TestDumpAsKafka(t *testing.T) {
	command := os.Getenv("KAFKA_DUMP_LOG")
	if command == "" {
		t.Skip("KAFKA_DUMP_LOG is not set")
	}
	t.Chdir(t.TempDir())
	w := worldOn(t, disk.OS, func(o *Options) { o.IndexIntervalBytes = 1000 })
	busyLog(w)
	b := batch.NewBuilder(batch.Plain(batch.Zstd))
	b.Add(5, nil, nil, batch.Header{Key: "h"}, batch.Header{Key: "i", Value: []byte("x")})
	b.Add(4, []byte{}, []byte("v"))
	w.append(b.Bytes())
	v := recs(1, 1, 5)
	v.SetAppendTime(t0.UnixMilli())
	w.append(v)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		exts []string
		flag string
		o    DumpOptions
	}{
		{[]string{logExt, indexExt, timeExt, txnExt}, "--print-data-log", DumpOptions{Data: true}},
		{[]string{logExt}, "--skip-record-metadata", DumpOptions{}},
		{[]string{indexExt, timeExt}, "--index-sanity-check", DumpOptions{IndexCheck: true}},
	} {
		var ours strings.Builder
		var files []string
		for _, ext := range tc.exts {
			name := "d/t-0/" + fileName(0, ext)
			files = append(files, name)
			if err := Dump(&ours, disk.OS, name, tc.o); err != nil {
				t.Fatal(err)
			}
		}
		cmd := append(strings.Fields(command), tc.flag, "--files", strings.Join(files, ","))
		theirs, err := exec.Command(cmd[0], cmd[1:]...).Output()
		if err != nil {
			t.Fatal(err)
		}
		a, b := strings.Split(ours.String(), "\n"), strings.Split(string(theirs), "\n")
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) || a[i] != b[i] {
				t.Fatalf("%s line %d of %d and %d:\n%.500s\n%.500s", tc.flag, i, len(a), len(b), strings.Join(a[min(i, len(a)):min(i+2, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+2, len(b))], "\n"))
			}
		}
	}
}

// TestKafkaReadsCleanedFiles: compacted segments, empty batches and delete horizons
// among them, are sound to Kafka.
func TestKafkaReadsCleanedFiles(t *testing.T) {
	command := os.Getenv("KAFKA_DUMP_LOG")
	if command == "" {
		t.Skip("KAFKA_DUMP_LOG is not set")
	}
	t.Chdir(t.TempDir())
	w := compacted(t, disk.OS, func(o *Options) { o.SegmentBytes = 100_000 })
	p := batch.BuilderOptions{ProducerID: 5, Codec: batch.Zstd}
	for i := range int32(100) {
		p.BaseSequence = i
		w.append(kv(p, t0.UnixMilli(), "k=1"))
		w.append(kv(plain, t0.UnixMilli()+int64(i), "k=2", "gone", strings.Repeat("u", int(i))+"=3"))
	}
	w.roll()
	w.clean(t0)
	if err := w.l.Close(true); err != nil {
		t.Fatal(err)
	}
	cmd := append(strings.Fields(command), "--deep-iteration", "--files")
	name := "d/t-0/" + fileName(0, "")
	cmd = append(cmd, name+logExt+","+name+indexExt+","+name+timeExt)
	out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
	text := string(out)
	if err != nil || strings.Contains(text, "isvalid: false") || strings.Contains(text, "Exception") || strings.Contains(text, "Mismatch") ||
		!strings.Contains(text, "deleteHorizonMs: OptionalLong[1700086400000]") || !strings.Contains(text, "count: 0") {
		t.Fatalf("%v\n%.3000s", err, text)
	}
}
