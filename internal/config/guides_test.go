package config

// What `weir config check` says of the broker configurations that tuning guides
// publish, word for word. testdata/guides has them as they stand there (a .env as
// container images take it), and beside each its report.
//
// With -rewrite the reports are written anew; read the diff.

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the reports in testdata/guides anew")

func TestGuides(t *testing.T) {
	for _, name := range []string{"compose.env", "broker.properties", "run-together.properties", "kraft.properties"} {
		file := "testdata/guides/" + name
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in := Source{FileName: filepath.Base(file), File: text}
		if filepath.Ext(file) == ".env" {
			in = Source{Env: strings.Split(strings.TrimSpace(string(text)), "\n")}
		}
		got := Check(in).String()
		if *rewrite {
			if err := os.WriteFile(file+".report", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file + ".report")
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s\n--- got\n%s--- want\n%s", file, got, want)
		}
	}
}
