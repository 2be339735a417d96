package compat

// Shows: docs/field-cases.md is true. Every case of the list stands there once
// with a verdict, and every test it names is in the source and names the case.
// Without the build tag: it runs with the others.

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fieldCases are the numbers of the list.
const fieldCases = `
001 002 003 004 006 007 011 012 014 018 019 020 022 023 024 027 028 030 031 032 034 035 036 038 039
042 045 046 047 048 051 053 054 055 058 062 063 064 065 066 068 069 072 073 074 075 077 078 080 083
084 085 087 089 091 094 095 096 098 100 102 104 107 108 110 116 117 118 119 120 121 122 123 125 130
131 132 136 138 140 142 143 145 147 149 150 152 153 155 157 159 162 164 166 167 171 174 176 178 180
181 182 187 189 190 191 194 195 196 197 198 200 202 205 206 207 208 212 214 217 218 221 223 224 225
226 228 231 232 234 235 237 240 241 243 246
`

var verdicts = []string{"same", "differs", "ours", "waits"}

func TestFieldCases(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "field-cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	source := func(path string) string {
		if _, read := sources[path]; !read {
			b, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
			if err != nil {
				t.Error(err)
			}
			sources[path] = string(b)
		}
		return sources[path]
	}
	row := regexp.MustCompile(`^\| (B\d{3}) \| (\w+) \| (.*) \| (.*) \|$`)
	named := regexp.MustCompile("^`([\\w/]+_test\\.go) (Test\\w+)`$")
	seen := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| B") {
			continue
		}
		m := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Errorf("not a row: %s", line)
			continue
		}
		id, verdict, tests, remark := m[1], m[2], m[3], m[4]
		if seen[id] {
			t.Errorf("%s stands there twice", id)
		}
		seen[id] = true
		if !slices.Contains(verdicts, verdict) {
			t.Errorf("%s: no such verdict: %s", id, verdict)
		}
		if tests == "" && verdict != "waits" || remark == "" && (verdict == "waits" || verdict == "differs") {
			t.Errorf("%s: %s needs a test, or a remark", id, verdict)
		}
		for _, one := range strings.Split(tests, "; ") {
			if tests == "" {
				break
			}
			m := named.FindStringSubmatch(one)
			if m == nil {
				t.Errorf("%s: not a file and a test: %s", id, one)
				continue
			}
			if !strings.Contains(source(m[1]), "func "+m[2]+"(") {
				t.Errorf("%s: %s has no %s", id, m[1], m[2])
			}
			if !strings.Contains(source(m[1]), id) {
				t.Errorf("%s is not named in %s", id, m[1])
			}
		}
	}
	all := strings.Fields(fieldCases)
	for _, n := range all {
		if !seen["B"+n] {
			t.Errorf("B%s is missing", n)
		}
	}
	if len(all) != 136 || len(seen) != len(all) {
		t.Errorf("%d cases in the list, %d on the page, want 136", len(all), len(seen))
	}
}
