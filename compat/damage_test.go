//go:build compat

package compat

// Shows: what a disk can do to a broker. B136: a full disk refuses writes and
// nothing else, and gives all back when there is room. B130: a small side file
// that was lost, zeroed or cut blocks nobody. Weir alone: the real Kafka halts
// on a full disk.

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestFullDisk(t *testing.T) { // B136
	if onKafka {
		t.Skip("the real Kafka halts")
	}
	suite.mu.Lock()
	b := newBroker(t, "group.initial.rebalance.delay.ms=0", "log.segment.delete.delay.ms=200", "log.retention.check.interval.ms=300", "log.initial.task.delay.ms=100")
	suite.mu.Unlock()
	if err := os.MkdirAll(b.logs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", b.logs, "tmpfs", 0, "size=64m"); err != nil {
		missing(t, "cannot mount a small file system (%v): run as root", err)
	}
	t.Cleanup(func() {
		if b.pid != 0 {
			b.stop(t)
		}
		if err := syscall.Unmount(b.logs, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("broker's last words:\n%s", tail(b.outPath(), 3000))
		}
	})
	b.start(t)
	r := dial(t, b.addr)
	kept, filler := r.topic(1, "segment.bytes=1048576", "file.delete.delay.ms=100"), r.topic(1)
	group := unique(t)
	r.coordinator(group)
	var acked []string
	write := func(what string) int16 {
		value := fmt.Sprintf("%s %d %s", what, len(acked), strings.Repeat("x", 100_000))
		req := produceRequest(8, -1, kept, batchSpec{recs: []rec{{value: []byte(value), ts: time.Now().UnixMilli()}}}.bytes())
		p := ask[*kmsg.ProduceResponse](r, req).Topics[0].Partitions[0]
		if p.ErrorCode == 0 {
			if int(p.BaseOffset) != len(acked) {
				t.Fatalf("offset %d, want %d", p.BaseOffset, len(acked))
			}
			acked = append(acked, value)
		}
		return p.ErrorCode
	}
	for range 100 {
		code(t, "with room", write("room"), 0)
	}
	full := func() {
		t.Helper()
		refused := 0
		for range 5000 {
			c := r.produce(8, filler, batchSpec{recs: values(1, 200_000)}.bytes()).ErrorCode
			if c != 0 {
				code(t, "a write on a full disk", c, 56)
				if refused++; refused == 5 {
					return
				}
			}
		}
		t.Fatal("the disk never got full")
	}
	all := func(when string) {
		t.Helper()
		got := listRawAt(t, b.addr, kept, len(acked))
		if len(got) < len(acked) {
			t.Fatalf("%s: %d of %d acknowledged records", when, len(got), len(acked))
		}
		for i, v := range acked {
			if got[i] != v {
				t.Fatalf("%s: record %d is %.30q, want %.30q", when, i, got[i], v)
			}
		}
	}
	full()
	for range 5 {
		if c := write("full"); c != 0 {
			code(t, "another topic on the full disk", c, 56)
		}
	}
	all("while full")
	if got := r.metadata(kept).Topics[0]; got.ErrorCode != 0 {
		t.Errorf("Metadata while full: error %d", got.ErrorCode)
	}
	c := outsider(r, group).commit(commit{kept, 0, 1, -1, ""})[0]
	t.Logf("a commit on the full disk: error %d", c)

	// A restart while full: it serves, or says what is the matter.
	b.kill(t)
	b.start(t)
	r = dial(t, b.addr)
	eventually(t, 20*time.Second, "led after a start on a full disk", func() (string, bool) {
		got := r.list(5, kept, 0, -2).ErrorCode
		return fmt.Sprint("error ", got), got == 0
	})
	all("after a restart on the full disk")

	// Room again: DeleteRecords first, then the whole topic.
	end := r.latest(filler)
	if got := r.deleteRecords(filler, 0, end); got.ErrorCode != 0 {
		t.Logf("DeleteRecords on a full disk: error %d", got.ErrorCode)
	}
	code(t, "delete a topic on a full disk", r.delete(filler), 0)
	eventually(t, 30*time.Second, "writes go on", func() (string, bool) {
		c := write("room again")
		return fmt.Sprint("error ", c), c == 0
	})
	all("with room again")
	for range 20 {
		code(t, "with room again", write("more"), 0)
	}
	b.stop(t)
	b.start(t)
	r = dial(t, b.addr)
	all("after a clean restart")
}

// listRawAt gives the values of partition 0 from its start.
func listRawAt(t *testing.T, addr, topic string, n int) []string {
	t.Helper()
	r := dial(t, addr)
	var out []string
	for next := int64(0); len(out) < n; {
		all := readBatches(t, r.fetch(topic, next).RecordBatches)
		if len(all) == 0 {
			break
		}
		for _, s := range all {
			for _, one := range s.records {
				out = append(out, string(one.value))
			}
			next = s.last + 1
		}
	}
	return out
}

// TestSideFilesDamaged is B130: every file that is neither a log nor the
// identity, damaged in each way, one at a time.
func TestSideFilesDamaged(t *testing.T) {
	if onKafka {
		t.Skip("about Weir's own files")
	}
	b := startBroker(t, "log.segment.delete.delay.ms=100", "log.flush.offset.checkpoint.interval.ms=200", "log.flush.start.offset.checkpoint.interval.ms=200")
	r := dial(t, b.addr)
	hurt, other := r.topic(1, "segment.bytes=1048576"), r.topic(1)
	pid, epoch := r.producerID()
	r.fill(hurt, 8, func(int) int64 { return time.Now().UnixMilli() })
	for seq := range int32(5) {
		code(t, "produce", r.produce(8, hurt, batchSpec{idem: true, pid: pid, pepoch: epoch, seq: seq, recs: values(1, 10)}.bytes()).ErrorCode, 0)
	}
	r.put(other, batchSpec{recs: values(3, 10)})
	if got := r.deleteRecords(other, 0, 1); got.ErrorCode != 0 {
		t.Fatalf("DeleteRecords: error %d", got.ErrorCode)
	}
	b.stop(t) // writes snapshots and checkpoints
	var files []string
	err := filepath.WalkDir(b.logs, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(b.logs, path)
		dir, base := filepath.Split(rel)
		if err != nil || d.IsDir() || strings.HasPrefix(dir, "__") || strings.HasPrefix(base, ".") ||
			filepath.Ext(base) == ".log" || base == "meta.properties" {
			return err
		}
		files = append(files, rel)
		return nil
	})
	if err != nil || len(files) < 5 {
		t.Fatalf("side files: %v, %v", files, err)
	}
	t.Logf("side files: %v", files)
	ways := []struct {
		name string
		do   func(old []byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"zeros", func(old []byte) []byte { return make([]byte, len(old)) }},
		{"last line gone", func(old []byte) []byte {
			lines := bytes.SplitAfter(bytes.TrimSuffix(old, []byte("\n")), []byte("\n"))
			return bytes.Join(lines[:len(lines)-1], nil)
		}},
		{"half", func(old []byte) []byte { return old[:len(old)/2] }},
	}
	for round, file := range files {
		for i, way := range ways {
			what := file + ": " + way.name
			path := filepath.Join(b.logs, file)
			old, err := os.ReadFile(path)
			if err != nil {
				continue // gone since: a snapshot of an older end
			}
			if err := os.WriteFile(path, way.do(old), 0o644); err != nil {
				t.Fatal(err)
			}
			os.WriteFile(path+".tmp", []byte("half a li"), 0o644)
			b.start(t)
			r := dial(t, b.addr)
			for topic, end := range map[string]int64{hurt: 13, other: 3} {
				if got := r.list(5, topic, 0, -1); got.ErrorCode != 0 || got.Offset != end {
					t.Errorf("%s: %s ends at %d, error %d, want %d", what, topic, got.Offset, got.ErrorCode, end)
				}
				if from := r.earliest(topic); from > 1 || topic == hurt && from != 0 {
					t.Errorf("%s: %s starts at %d", what, topic, from)
				}
			}
			if s := readBatches(t, r.fetch(hurt, 12).RecordBatches); len(s) != 1 || s[0].last != 12 {
				t.Errorf("%s: %v", what, s)
			}
			p := r.produce(8, hurt, batchSpec{idem: true, pid: pid, pepoch: epoch, seq: 4, recs: values(1, 10)}.bytes())
			if p.ErrorCode != 0 || p.BaseOffset != 12 {
				t.Errorf("%s: a resend got error %d at %d, want 12", what, p.ErrorCode, p.BaseOffset)
			}
			if got := r.list(5, hurt, 0, time.Now().Add(-time.Hour).UnixMilli()); got.ErrorCode != 0 || got.Offset != 0 {
				t.Errorf("%s: look-up by time: %d, error %d", what, got.Offset, got.ErrorCode)
			}
			if (round+i)%2 == 0 {
				b.kill(t)
			} else {
				b.stop(t)
			}
		}
	}
	b.start(t)
}
