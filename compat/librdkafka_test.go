//go:build compat

package compat

// Shows: confluent-kafka, that is the newest librdkafka, through librdkafka.py:
// every codec and acks, groups whose members join, leave and die as processes,
// commit and resume, seek by time, its admin calls, deletes.

import (
	"os/exec"
	"strings"
	"testing"
)

func TestLibrdkafka(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		missing(t, "python3 is not installed")
	}
	version, err := tryRun("", python, "-c", "import confluent_kafka as c; print(c.version(), c.libversion()[0])")
	if err != nil {
		missing(t, "Python has no confluent-kafka (pip install confluent-kafka)")
	}
	t.Logf("confluent-kafka %s", version)
	out, err := tryRun("", python, "librdkafka.py", sharedBroker(t).addr)
	seen, done := 0, false
	for line := range strings.Lines(out) {
		verdict, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verdict {
		case "ok", "FAIL":
			seen++
			name, why, _ := strings.Cut(name, " | ")
			t.Run(name, func(t *testing.T) {
				if verdict == "FAIL" {
					t.Error(why)
				}
			})
		case "done":
			done = true
		}
	}
	if err != nil || !done {
		t.Errorf("%v after %d checks", err, seen)
	}
	if t.Failed() {
		t.Logf("librdkafka.py says:\n%s", out)
	}
}
