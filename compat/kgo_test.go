//go:build compat

package compat

// Shows: franz-go's own tests of its client, as its module ships them, pass
// against Weir. A copy of the module is compiled in a scratch directory; the
// tests that cannot pass yet stand in waiting, each with its reason, and that
// list may only shrink: a test in it that passes fails this one.

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// waiting are the tests that Weir makes fail, or that skip themselves because
// of what it does not advertise. says is what such a test prints.
var waiting = map[string]struct{ why, says string }{
	"TestTxnEtl":                         {"transactions", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"},
	"TestGroupSimple/848":                {"the consumer protocol of KIP-848", ""},
	"TestGroupETL/range/848":             {"the consumer protocol of KIP-848", ""},
	"TestGroupETL/sticky/848":            {"the consumer protocol of KIP-848", ""},
	"TestGroupETL/sticky/848/static":     {"the consumer protocol of KIP-848", ""},
	"Test848RegexBrokerResolves":         {"the consumer protocol of KIP-848", ""},
	"TestShareGroup":                     {"share groups", ""},
	"TestShareGroupETL":                  {"share groups", ""},
	"TestShareGroupAckOnClose":           {"share groups", ""},
	"TestShareGroupOffsetsAdmin":         {"share groups", ""},
	"TestConsumeRegexShareSkipsInternal": {"share groups", ""},
}

// notJudged skip themselves on any broker that is set up like ours.
var notJudged = map[string]string{
	"TestIssueProduceBrokerTooOldFailsRecords": "wants a broker without Produce v3",
	"TestSCRAMAuth":               "wants a SASL listener (KGO_TEST_SCRAM_SEEDS)",
	"TestSCRAMAuthBadCredentials": "wants a SASL listener (KGO_TEST_SCRAM_SEEDS)",
	"TestOAuthAuth":               "wants a SASL listener (KGO_TEST_OAUTH_SEEDS)",
}

func TestFranzOwn(t *testing.T) {
	bin := franzOwnTests(t)
	b := startBroker(t)
	records := os.Getenv("KGO_TEST_RECORDS") // nightly sets the 500,000 that they like
	if records == "" {
		records = "100000"
	}
	own := func(timeout string, args ...string) (map[string]string, string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, bin, append(args, "-test.v", "-test.timeout", timeout)...)
		cmd.Dir = filepath.Dir(bin)
		cmd.Env = append(os.Environ(), "KGO_SEEDS="+b.addr, "KGO_TEST_RF=1", "KGO_LOG_LEVEL=none", "KGO_TEST_RECORDS="+records)
		out, err := cmd.CombinedOutput()
		verdicts := map[string]string{}
		for _, m := range verdictLine.FindAllSubmatch(out, -1) {
			verdicts[string(m[2])] = string(m[1])
		}
		if bytes.Contains(out, []byte("panic: ")) || err != nil && len(verdicts) == 0 {
			verdicts["the run as a whole"] = "FAIL"
		}
		return verdicts, string(out)
	}
	skip := "^$"
	if !onKafka {
		skip = "^(TestTxnEtl)$"
	}
	verdicts, out := own("10m", "-test.skip", skip)
	passed := 0
	for name, v := range verdicts {
		w, waits := waiting[name]
		switch {
		case v == "PASS" && waits && !onKafka:
			t.Errorf("%s passes now: take it off the list of those that wait (%s)", name, w.why)
		case v == "PASS":
			passed++
		case v == "FAIL":
			t.Errorf("%s fails:\n%s", name, about(out, name))
		case v == "SKIP" && notJudged[name] == "" && (!waits || onKafka):
			t.Errorf("%s skips itself, and nobody knows why:\n%s", name, about(out, name))
		}
	}
	if passed < 150 {
		t.Errorf("only %d tests passed:\n%.3000s", passed, out)
	}
	t.Logf("%d tests of franz-go passed, %d wait", passed, len(waiting))
	if onKafka {
		return
	}
	// What fails may also hang: it gets long enough to say why.
	verdicts, out = own("10s", "-test.run", "^TestTxnEtl$/^range$")
	if says := waiting["TestTxnEtl"].says; !strings.Contains(out, says) {
		t.Errorf("TestTxnEtl no longer says %s: take it off the list of those that wait. It is %q:\n%.3000s", says, verdicts["TestTxnEtl"], out)
	}
	for name := range waiting {
		if v := verdicts[name]; v == "PASS" {
			t.Errorf("%s passes now: take it off the list of those that wait", name)
		}
	}
}

var verdictLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// about gives the lines that follow a test's verdict.
func about(out, name string) string {
	_, rest, _ := strings.Cut(out, ": "+name+" (")
	return rest[:min(len(rest), 1500)]
}

// franzOwnTests copies the module that go.mod names and compiles the tests of
// its package kgo.
func franzOwnTests(t *testing.T) string {
	t.Helper()
	dir := strings.TrimSpace(run(t, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/twmb/franz-go"))
	copied := filepath.Join(suite.dir, "franz-go")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatalf("copy of %s: %v", dir, err)
	}
	bin := filepath.Join(copied, "pkg", "kgo", "kgo.test")
	run(t, "", "go", "test", "-C", filepath.Dir(bin), "-c", "-o", bin, ".")
	return bin
}
