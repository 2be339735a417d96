//go:build compat

package diff

// What may differ, and the decision that says why.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// allowance is one line of allow.txt: decision | scenario | step | path. Step and path
// may hold *; a step is written as in the scenario, or as the sweep names it, and
// matches with or without its version (" v3" at its end). An answer that differs as a
// whole has the path "whole".
type allowance struct {
	line                 int
	text                 string
	scenario, step, path string
	used                 bool
}

func readAllow(t *testing.T) []*allowance {
	t.Helper()
	b, err := os.ReadFile("testdata/allow.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []*allowance
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 4 {
			t.Fatalf("allow.txt line %d: want decision | scenario | step | path", i+1)
		}
		if m, _ := filepath.Glob("../../docs/decisions/" + f[0] + "-*.md"); len(m) != 1 {
			t.Fatalf("allow.txt line %d: no decision %s", i+1, f[0])
		}
		out = append(out, &allowance{line: i + 1, text: line, scenario: f[1], step: f[2], path: f[3]})
	}
	return out
}

func allow(list []*allowance, scenario, step string, version int16, path string) bool {
	found := false
	for _, a := range list {
		if a.scenario == scenario && (match(a.step, step) || match(a.step, fmt.Sprintf("%s v%d", step, version))) && match(a.path, path) {
			a.used, found = true, true
		}
	}
	return found
}

// match knows * alone: brackets are common in steps and paths.
func match(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
