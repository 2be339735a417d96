package group_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the shard answers into testdata")

// TestTranscripts plays testdata/*.txt: commands at the margin, what they bring
// about indented below. See player_test.go for the language.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			l := newLocal(t)
			var got strings.Builder
			for _, line := range strings.Split(strings.TrimSuffix(string(want), "\n"), "\n") {
				if strings.HasPrefix(line, "  ") {
					continue
				}
				got.WriteString(line + "\n")
				if line == "" || line[0] == '#' {
					continue
				}
				for _, o := range l.play(parse(line)) {
					got.WriteString("  " + strings.ReplaceAll(o, "\n", "\n  ") + "\n")
				}
			}
			if *rewrite {
				must(t, os.WriteFile(f, []byte(got.String()), 0o644))
				return
			}
			if got.String() != string(want) {
				t.Errorf("differs; see with -rewrite and git diff\n%s", firstDiff(string(want), got.String()))
			}
		})
	}
}

func firstDiff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "\ngot  " + g[i]
		}
	}
	return "one is longer"
}
