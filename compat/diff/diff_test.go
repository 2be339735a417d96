//go:build compat

package diff

// Shows: what the real Kafka 4.4 answers, Weir answers, scenario by scenario, but
// for what testdata/allow.txt names.

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	recording = flag.Bool("record", false, "write the real Kafka's answers to testdata/kafka")
	texts     = flag.Bool("texts", false, "list error texts that differ")
	verbose   = flag.Bool("answers", false, "print the answers of steps that differ, and the steps that take long")
)

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	var kafka, weir string
	var wg sync.WaitGroup
	wg.Go(func() { kafka = startKafka(t, dir) })
	weir = startWeir(t, dir)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	weirServes := serves(t, weir)
	kafkaServes := readVersions(t)
	if kafka != "" {
		kafkaServes = serves(t, kafka)
		if *recording {
			writeVersions(t, kafkaServes)
		}
	}
	both := ranges{}
	for k, v := range kafkaServes {
		w, ok := weirServes[k]
		req := kmsg.RequestForKey(k)
		if ok && req != nil {
			from, to := max(v[0], w[0]), min(v[1], w[1], req.MaxVersion())
			if k == 0 {
				from = max(from, 3) // listed by Kafka for librdkafka's sake, and refused
			}
			both[k] = [2]int16{from, to}
		}
	}
	allowed := readAllow(t)
	files, _ := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txt"))
	begin, steps, differences := time.Now(), 0, 0
	played := make(map[string]bool)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list, err := parse(string(text), both)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			played[name] = true
			since := time.Now()
			var theirs []record
			real, own := newPlayer(kafka, name), newPlayer(weir, name)
			var wg sync.WaitGroup
			if kafka != "" {
				wg.Go(func() { theirs = real.play(list) })
			}
			ours := own.play(list)
			spent := time.Since(since)
			wg.Wait()
			for who, p := range map[string]*player{"kafka": real, "weir": own} {
				if len(p.problems) > 0 {
					t.Errorf("%s: %s", who, strings.Join(p.problems, "\n"))
				}
			}
			kept := filepath.Join("testdata", "kafka", name+".txt")
			if *recording {
				if err := os.WriteFile(kept, []byte(golden(theirs)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			was, err := readGolden(kept)
			if err != nil {
				t.Fatalf("%v: run with -record", err)
			}
			if kafka == "" {
				theirs = was.records(t, ours)
			} else if g := golden(theirs); g != was.text {
				t.Errorf("%s is not what Kafka answers now: run with -record\n%s", kept, firstDifference(was.text, g))
			}
			n := compare(t, name, theirs, ours, allowed)
			steps, differences = steps+len(ours), differences+n
			t.Logf("%d answers compared, %d differences allowed or not; weir took %v, both %v", len(ours), n, spent.Round(time.Millisecond), time.Since(since).Round(time.Millisecond))
		})
	}
	for _, a := range allowed {
		if played[a.scenario] && !a.used {
			t.Errorf("allow.txt line %d: no longer differs: %s", a.line, a.text)
		}
	}
	t.Logf("%d answers compared in %v", steps, time.Since(begin).Round(time.Millisecond))
}

// serves asks ApiVersions, and waits until groups are served.
func serves(t *testing.T, addr string) ranges {
	t.Helper()
	p := newPlayer(addr, "harness")
	defer p.close()
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "diff", "1"
	resp, err := ask[*kmsg.ApiVersionsResponse](p, req)
	if err != nil {
		t.Fatalf("ApiVersions of %s: %v", addr, err)
	}
	out := ranges{}
	for _, k := range resp.ApiKeys {
		out[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey = 3, "warm"
		found, err := ask[*kmsg.FindCoordinatorResponse](p, find)
		if err == nil && found.ErrorCode == 0 {
			of := kmsg.NewPtrOffsetFetchRequest()
			of.Version = 8
			for i := range 300 { // enough names to come to every shard
				g := kmsg.NewOffsetFetchRequestGroup()
				g.Group = fmt.Sprint("warm-", i)
				of.Groups = append(of.Groups, g)
			}
			var got *kmsg.OffsetFetchResponse
			if got, err = ask[*kmsg.OffsetFetchResponse](p, of); err == nil &&
				!slices.ContainsFunc(got.Groups, func(g kmsg.OffsetFetchResponseGroup) bool { return g.ErrorCode != 0 }) {
				return out
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("groups of %s are not served: %v", addr, err)
		}
	}
}

const versionsFile = "testdata/kafka/versions.tsv"

func writeVersions(t *testing.T, r ranges) {
	var lines []string
	for k, v := range r {
		lines = append(lines, fmt.Sprintf("%03d\t%d\t%d\t%s\n", k, v[0], v[1], kmsg.NameForKey(k)))
	}
	slices.Sort(lines)
	os.MkdirAll(filepath.Dir(versionsFile), 0o755)
	if err := os.WriteFile(versionsFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readVersions(t *testing.T) ranges {
	b, err := os.ReadFile(versionsFile)
	if err != nil && !*recording {
		t.Fatalf("%v: run with -record", err)
	}
	out := ranges{}
	for line := range strings.Lines(string(b)) {
		var k, from, to int16
		fmt.Sscanf(line, "%d\t%d\t%d", &k, &from, &to)
		out[k] = [2]int16{from, to}
	}
	return out
}

// golden is a scenario's answers as text: each step once, and the versions that were
// answered the same together.
func golden(records []record) string {
	var out strings.Builder
	for i := 0; i < len(records); {
		r := records[i]
		j := i
		text := asJSON(r.answer)
		for j+1 < len(records) && records[j+1].name == r.name && r.version >= 0 && records[j+1].version == records[j].version+1 && asJSON(records[j+1].answer) == text {
			j++
		}
		if i == 0 || records[i-1].name != r.name || r.version <= records[i-1].version {
			fmt.Fprintf(&out, "> %s\n", r.name)
		}
		switch {
		case r.version < 0:
			fmt.Fprintf(&out, "%s\n", text)
		case i == j:
			fmt.Fprintf(&out, "v%d %s\n", r.version, text)
		default:
			fmt.Fprintf(&out, "v%d-%d %s\n", r.version, records[j].version, text)
		}
		i = j + 1
	}
	return out.String()
}

type kept struct {
	text  string
	steps []keptStep
}

type keptStep struct {
	name     string
	from, to int16
	answer   any
}

func readGolden(path string) (kept, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return kept{}, err
	}
	k := kept{text: string(b)}
	name := ""
	for line := range strings.Lines(k.text) {
		line = strings.TrimSuffix(line, "\n")
		if n, ok := strings.CutPrefix(line, "> "); ok {
			name = n
			continue
		}
		s := keptStep{name: name, from: -1, to: -1}
		if line[0] == 'v' {
			word, rest, _ := strings.Cut(line, " ")
			if n, _ := fmt.Sscanf(word, "v%d-%d", &s.from, &s.to); n < 2 {
				s.to = s.from
			}
			line = rest
		}
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&s.answer); err != nil {
			return k, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		k.steps = append(k.steps, s)
	}
	return k, nil
}

// records lays what was kept beside the steps played.
func (k *kept) records(t *testing.T, ours []record) []record {
	out := make([]record, len(ours))
	at := 0
	for i, r := range ours {
		out[i] = record{name: r.name, version: r.version, answer: "not kept: run with -record"}
		if at < len(k.steps) && k.steps[at].name == r.name && k.steps[at].from <= r.version && r.version <= k.steps[at].to {
			out[i].answer = k.steps[at].answer
			if r.version == k.steps[at].to {
				at++
			}
		}
	}
	return out
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for i := 0; i < max(len(x), len(y)) && len(out) < 6; i++ {
		var l, r string
		if i < len(x) {
			l = x[i]
		}
		if i < len(y) {
			r = y[i]
		}
		if l != r {
			out = append(out, fmt.Sprintf("line %d\n  kept %s\n  now  %s", i+1, clip(l, 600), clip(r, 600)))
		}
	}
	return strings.Join(out, "\n")
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "..."
	}
	return s
}

// compare tells every difference that is not allowed, versions that differ alike
// together, and gives how many there are in all.
func compare(t *testing.T, scenario string, theirs, ours []record, allowed []*allowance) int {
	t.Helper()
	type found struct{ name, path, kafka, weir string }
	var order []found
	at := make(map[found][]int16)
	count := 0
	for i, r := range ours {
		k := theirs[i]
		if *texts {
			for path, text := range r.texts {
				if k.texts[path] != "" && k.texts[path] != text {
					fmt.Printf("text %s: %s v%d %s\n  kafka %s\n  weir  %s\n", scenario, clip(r.name, 100), r.version, path, k.texts[path], text)
				}
			}
		}
		a, b := asJSON(k.answer), asJSON(r.answer)
		if a == b {
			continue
		}
		for _, d := range treeDiff(k.answer, r.answer, "", nil) {
			count++
			if d.path == "" {
				d.path = "whole"
			}
			if allow(allowed, scenario, r.name, r.version, d.path) {
				continue
			}
			f := found{r.name, d.path, d.a, d.b}
			if _, ok := at[f]; !ok {
				order = append(order, f)
			}
			at[f] = append(at[f], r.version)
		}
		if *verbose {
			t.Logf("%s v%d\n  kafka %s\n  weir  %s", r.name, r.version, a, b)
		}
	}
	last := ""
	var out strings.Builder
	for _, f := range order {
		if f.name != last {
			fmt.Fprintf(&out, "%s\n", clip(f.name, 300))
			last = f.name
		}
		fmt.Fprintf(&out, "    %s %s: kafka %s, weir %s\n", span(at[f]), f.path, clip(missing(f.kafka), 300), clip(missing(f.weir), 300))
	}
	if len(order) > 0 {
		t.Errorf("%d differences\n%s", len(order), out.String())
	}
	return count
}

func missing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// span writes versions short: v3-7,9.
func span(v []int16) string {
	if len(v) == 0 || v[0] < 0 {
		return ""
	}
	out := "v"
	for i := 0; i < len(v); {
		j := i
		for j+1 < len(v) && v[j+1] == v[j]+1 {
			j++
		}
		if i > 0 {
			out += ","
		}
		out += fmt.Sprint(v[i])
		if j > i {
			out += fmt.Sprintf("-%d", v[j])
		}
		i = j + 1
	}
	return out
}
