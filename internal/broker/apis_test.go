package broker

// The version table against Kafka 4.4's, and docs/compat.md against the table.

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write docs/compat.md anew")

const compatPage = "../../docs/compat.md"

func TestTableCoversKafka(t *testing.T) {
	last := int16(-1)
	for _, a := range apis {
		if a.key <= last {
			t.Errorf("key %d out of order", a.key)
		}
		last = a.key
		k, ok := kafkaRanges[a.key]
		if !ok || a.min > k[0] || a.max != k[1] {
			t.Errorf("key %d: served %d-%d, Kafka 4.4 serves %v", a.key, a.min, a.max, k)
		}
	}
}

func TestCompatPage(t *testing.T) {
	page, err := os.ReadFile(compatPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- table -->\n", "<!-- end of table -->"
	head, rest, ok1 := strings.Cut(string(page), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks of the table", compatPage)
	}
	want := head + begin + CompatTable() + end + tail
	if want == string(page) {
		return
	}
	if !*write {
		t.Fatalf("%s differs from the version table: go test ./internal/broker -run CompatPage -write", compatPage)
	}
	if err := os.WriteFile(compatPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
