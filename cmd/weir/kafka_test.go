package main

// Shows: the binary knows Kafka's tools by the name it is called by and by its
// first argument, and makes the links.

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirmq/weir/internal/kafkatools"
)

func TestKafkaTool(t *testing.T) {
	f := func(want string, wantRest int, args ...string) {
		t.Helper()
		name, rest, ok := kafkaTool(args)
		if ok != (want != "") || ok && (name != want || len(rest) != wantRest) {
			t.Errorf("%q: %s %q %v", args, name, rest, ok)
		}
	}
	f("kafka-topics", 1, "/opt/bin/kafka-topics.sh", "--list")
	f("kafka-topics", 1, "weir", "kafka-topics", "--list")
	f("kafka-topics", 0, "weir", "kafka-topics.sh")
	f("", 0, "weir", "topic", "kafka-topics")
	f("", 0, "weir")
	f("", 0)
}

func TestLinkTools(t *testing.T) {
	dir := t.TempDir()
	want := 2 * len(kafkatools.Names())
	for range 2 { // the second time over its own links
		if n, err := linkTools(filepath.Join(dir, "bin"), "/opt/weir"); n != want || err != nil {
			t.Fatalf("%d links of %d: %v", n, want, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "bin", "kafka-topics.sh")); to != "/opt/weir" || err != nil {
		t.Errorf("%s %v", to, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kafka-topics"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := linkTools(dir, "/opt/weir"); err == nil {
		t.Error("a file that is no link was replaced")
	}
}
