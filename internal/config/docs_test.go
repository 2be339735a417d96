package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:generate go test -run TestDocs -write

var write = flag.Bool("write", false, "write docs/config.md anew")

// docs/config.md is what Markdown says; -write brings it up to date.
func TestDocs(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "config.md")
	text := Markdown()
	if *write {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != text {
		t.Error("docs/config.md is stale; run: go generate ./internal/config")
	}
}

func TestExplain(t *testing.T) {
	f := func(name string, want ...string) {
		t.Helper()
		got := Explain(name)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("Explain(%q) lacks %q:\n%s", name, w, got)
			}
		}
	}
	f("log.retention.ms", "long, ms", "log.retention.minutes, then log.retention.hours", "retention.ms", "KAFKA_LOG_RETENTION_MS", "effective")
	f("compression.type", "broker key", "topic key", "[uncompressed, zstd")
	f("num.io.threads", "no effect: ")
	f("listeners", "in Kafka", "PLAINTEXT://:9092;")
	f("weir.http.listener", "WEIR_HTTP_LISTENER")
	f("listener.name.internal.max.connections", "listener.name.internal.max.connections (broker key)")
	f("zookeeper.connect", "has no effect: Weir has no ZooKeeper")
	f("rsm.config.bucket", "plug-in")
	f("num.partitons", "The nearest is num.partitions.")
	f("", "num.partitions", "retention.ms (topic)")
	for _, k := range allKeys {
		if !strings.Contains(Explain(k.Name), k.Doc) {
			t.Errorf("Explain(%s) lacks its text", k.Name)
		}
	}
}
