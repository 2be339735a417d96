//go:build compat

package compat

// Shows: every segment Weir leaves behind is one that Kafka's own tool reads,
// records and all. Runs last (TestZ...): it stops the shared broker, then dumps
// the directories of every broker of this run.

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// segmentFiles names the .log files of a topic's partition 0, in order.
func segmentFiles(t testing.TB, logs, topic string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(logs, topic+"-0", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	slices.Sort(paths)
	return paths
}

const shallow = "batches only"

// recordsIn counts a segment's records by its batches' headers.
func recordsIn(t testing.TB, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return 0 // of a topic that was deleted
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, head := 0, make([]byte, 61)
	for at := int64(0); ; at += 12 + int64(binary.BigEndian.Uint32(head[8:])) {
		if _, err := f.ReadAt(head, at); err != nil {
			return n
		}
		n += int(binary.BigEndian.Uint32(head[57:]))
	}
}

var dumpComplaint = regexp.MustCompile(`(?im)^.*(exception|mismatch|corrupt|invalid|could not|failed|isvalid: false|error).*$`)

func TestZDumpLog(t *testing.T) {
	kafka := filepath.Join(peers(t), "kafka")
	shortJVM(t)
	suite.mu.Lock()
	brokers := slices.Clone(suite.brokers)
	suite.mu.Unlock()
	if len(brokers) == 0 {
		t.Skip("no broker of ours ran")
	}
	byKind := map[string][]string{}
	for _, b := range brokers {
		if b.pid != 0 {
			b.stop(t)
		}
		err := filepath.WalkDir(b.logs, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil // directories of deleted topics go while we look
			}
			dir := filepath.Base(filepath.Dir(path))
			switch ext := filepath.Ext(path); {
			case strings.HasPrefix(dir, "__cluster_metadata") || strings.HasPrefix(dir, "__weir"):
			case ext == ".log" && strings.HasPrefix(dir, "__consumer_offsets-"):
				if info, err := d.Info(); err == nil && info.Size() > 0 {
					byKind["--offsets-decoder"] = append(byKind["--offsets-decoder"], path)
				}
			case ext == ".log" && strings.HasPrefix(dir, "__transaction_state-"):
				byKind["--transaction-log-decoder"] = append(byKind["--transaction-log-decoder"], path)
			case ext == ".log":
				switch n := recordsIn(t, path); {
				case n > 300_000: // the tool writes a line for each, 25,000 a second
					byKind[shallow] = append(byKind[shallow], path)
				case n > 0:
					byKind["--deep-iteration"] = append(byKind["--deep-iteration"], path)
				}
			case ext == ".index" || ext == ".timeindex":
				byKind["--index-sanity-check"] = append(byKind["--index-sanity-check"], path)
				if info, err := d.Info(); err == nil && info.Size() > 0 {
					byKind["--verify-index-only"] = append(byKind["--verify-index-only"], path)
				}
			case ext == ".txnindex" || ext == ".snapshot":
				byKind["--deep-iteration"] = append(byKind["--deep-iteration"], path)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", b.logs, err)
		}
	}
	if len(byKind["--deep-iteration"]) == 0 {
		t.Error("no segment was left to read")
	}
	for kind, paths := range byKind {
		for chunk := range slices.Chunk(paths, 1000) {
			args := []string{"kafka-dump-log", "--files", strings.Join(chunk, ",")}
			if kind != shallow {
				args = append(args, kind)
			}
			if kind == "--offsets-decoder" || kind == "--transaction-log-decoder" {
				args = append(args, "--deep-iteration")
			}
			began := time.Now()
			out, err := tryRun("", kafka, args...)
			t.Logf("%s: %d files, %d MiB said in %v", kind, len(chunk), len(out)>>20, time.Since(began).Round(time.Second))
			if err != nil {
				t.Errorf("%s: %v\n%s", kind, err, out[max(0, len(out)-3000):])
			}
			dumped, file := 0, ""
			for line := range strings.Lines(out) {
				if rest, ok := strings.CutPrefix(line, "Dumping "); ok {
					file = strings.TrimSpace(rest) // a topic may be called anything, "fetch-errors" too
					dumped++
					continue
				}
				if strings.HasPrefix(line, "| ") && kind == "--deep-iteration" {
					continue // the records themselves
				}
				if dumpComplaint.MatchString(strings.ReplaceAll(line, file, "")) {
					t.Errorf("%s of %s: %.300s", kind, file, line)
				}
			}
			if dumped != len(chunk) {
				t.Errorf("%s: dumped %d of %d files\n%.2000s", kind, dumped, len(chunk), out)
			}
		}
	}
}
