package weir_test

// Shows: the layout of docs/ARCHITECTURE.md holds. The tables below are that
// page as data; a new room, import or exception is a one-line change here, so
// that it is seen in review.
//
// How: `go list -json ./...` for imports, and a parse of every non-test file
// for calls (time.Now, go statements, global rand, os.Exit).

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weirmq/weir"

// room is one row of the table of rooms.
type room struct {
	name string
	pure bool     // no goroutine, lock, clock, os, net, global rand
	may  []string // other rooms, modules (by prefix) and, for pure rooms, std packages otherwise refused
}

// Modules by what they are for.
const (
	kmsg        = "github.com/twmb/franz-go/pkg/kmsg"
	franz       = "github.com/twmb/franz-go"
	compression = "github.com/klauspost/compress"
	lz4         = "github.com/pierrec/lz4"
	prometheus  = "github.com/prometheus"
	raft        = "go.etcd.io/raft"
	properties  = "github.com/magiconair/properties"
	histogram   = "github.com/HdrHistogram/hdrhistogram-go"
	xsys        = "golang.org/x/sys"
	xsync       = "golang.org/x/sync"
	cobra       = "github.com/spf13/cobra"
	pflag       = "github.com/spf13/pflag"
)

// rooms under internal/, from the bottom up: a room imports only rooms above
// it in this list, and of those only the ones in its row.
var rooms = []room{
	{"kafka", true, nil},
	{"batch", true, []string{"kafka", compression, lz4, "sync"}}, // sync: the pools of codecs
	{"config", true, []string{"kafka", properties}},
	{"machine", true, []string{"kafka"}},
	{"metadata", true, []string{"kafka", "config", "machine", kmsg}},
	{"replica", true, []string{"kafka"}},
	{"group", true, []string{"kafka", "machine", "metadata", kmsg}},
	{"txn", true, []string{"kafka", "machine", "metadata", kmsg}},
	{"auth", true, []string{"kafka", "config", "metadata", kmsg, "golang.org/x/crypto"}},
	{"advise", true, []string{"kafka", "config"}},

	{"metrics", false, []string{prometheus}},
	{"disk", false, []string{xsys}},
	{"commitlog", false, []string{"kafka", "batch", "disk", "metrics"}},
	{"partition", false, []string{"kafka", "batch", "machine", "metadata", "replica", "disk", "commitlog", "metrics", kmsg}},
	{"quorum", false, []string{"kafka", "machine", "metadata", "disk", "metrics", kmsg, raft}},
	{"wire", false, []string{"kafka", "disk", "metrics", kmsg, xsys}},
	{"broker", false, []string{"kafka", "batch", "config", "machine", "metadata", "replica", "group", "txn", "auth",
		"metrics", "disk", "commitlog", "partition", "quorum", "wire", kmsg}},
	{"lab", false, []string{"kafka", "config", "metrics", franz, histogram, prometheus, xsys, xsync}},
	{"host", false, []string{"kafka", "config", "advise", "lab", xsys}},
	{"tools", false, []string{"kafka", "batch", "config", "disk", "commitlog", "quorum", "lab", franz, histogram, cobra, pflag}},
	{"kafkatools", false, []string{"kafka", "batch", "config", "disk", "commitlog", "tools", franz}},
	{"console", false, []string{"kafka", "config", "metadata", "metrics", "advise", "lab", prometheus}},
	{"sim", false, []string{"kafka", "batch", "config", "machine", "metadata", "replica", "group", "txn", "auth",
		"metrics", "disk", "commitlog", "partition", "quorum", "wire", "broker", kmsg, raft}},
}

// Files of an edge room that are held to a pure room's rules.
var pureFiles = map[string][]string{
	"lab": {"schedule.go", "payload.go", "sizes.go", "keys.go", "latency.go", "interval.go", "warmup.go", "compare.go", "ramp.go", "rules.go",
		"knee.go", "stamp.go"},
}

// Refused in pure rooms unless their row names it: the world outside, and
// whatever makes two runs differ.
var impure = []string{"os", "net", "sync", "syscall", "log", "crypto/rand", "runtime", "io/ioutil", "os/exec", "testing"}

// Pure though they lie under an impure path: addresses as values, a logger handed in.
var pureAll = []string{"net/netip", "log/slog"}

// Calls refused in pure rooms, by package.
var impureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
}

// Of math/rand these build a generator of one's own; everything else in it is
// the global one.
var ownRand = []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

type listed struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Standard   bool
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,Imports", "./...")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// within says whether path is prefix or lies under it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// roomOf gives the room of an import path, and false outside internal/.
func roomOf(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, module+"/internal/")
	name, _, _ := strings.Cut(rest, "/")
	return name, ok
}

func isStd(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// refusal says why a package of room r must not import path, or "".
func (r room) refusal(path string) string {
	allowed := func(p string) bool {
		return slices.ContainsFunc(r.may, func(m string) bool { return within(p, m) })
	}
	if other, ok := roomOf(path); ok {
		if other == r.name || slices.Contains(r.may, other) {
			return ""
		}
		return fmt.Sprintf("room %s may not import room %s", r.name, other)
	}
	if within(path, module) {
		return fmt.Sprintf("room %s may not import %s: imports point down", r.name, path)
	}
	if isStd(path) {
		if r.pure && !allowed(path) && slices.ContainsFunc(impure, func(p string) bool { return path == p || within(path, p) && !slices.Contains(pureAll, path) }) {
			return fmt.Sprintf("room %s is pure and may not import %s", r.name, path)
		}
		return ""
	}
	if !allowed(path) {
		return fmt.Sprintf("room %s may not import module %s", r.name, path)
	}
	return ""
}

func TestLayoutImports(t *testing.T) {
	byName := map[string]int{}
	for i, r := range rooms {
		byName[r.name] = i
		for _, m := range r.may {
			if j, isRoom := byName[m]; isRoom && j >= i {
				t.Errorf("table: %s is listed before %s", r.name, m)
			}
		}
	}
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if within(imp, raft) && p.ImportPath != module+"/internal/quorum" && !within(p.ImportPath, module+"/internal/sim") {
				t.Errorf("%s imports %s: only quorum knows the Raft library", p.ImportPath, imp)
			}
			if within(imp, module+"/cmd") || within(imp, module+"/compat") || within(imp, module+"/internal/sim") && !within(p.ImportPath, module+"/internal/sim") {
				t.Errorf("%s imports %s: nobody may", p.ImportPath, imp)
			}
		}
		name, ok := roomOf(p.ImportPath)
		if !ok {
			continue
		}
		i, known := byName[name]
		if !known {
			t.Errorf("%s: room %q is not in the table of rooms", p.ImportPath, name)
			continue
		}
		for _, imp := range p.Imports {
			if why := rooms[i].refusal(imp); why != "" {
				t.Errorf("%s: %s", p.ImportPath, why)
			}
		}
	}
}

func TestLayoutCalls(t *testing.T) {
	pure := map[string]bool{}
	for _, r := range rooms {
		pure[r.name] = r.pure
	}
	for _, p := range packages(t) {
		name, _ := roomOf(p.ImportPath)
		for _, f := range pureFiles[name] {
			if p.ImportPath == module+"/internal/"+name && !slices.Contains(p.GoFiles, f) {
				t.Errorf("table: %s has no file %s", name, f)
			}
		}
		for _, f := range p.GoFiles {
			for _, fault := range faults(t, filepath.Join(p.Dir, f), pure[name] || slices.Contains(pureFiles[name], f), p.Name == "main") {
				t.Error(fault)
			}
		}
	}
}

// faults parses one file and lists the calls it must not make.
func faults(t *testing.T, path string, pure, mayExit bool) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // local name of an import -> its path
	for _, spec := range file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		local := full[strings.LastIndexByte(full, '/')+1:]
		if local == "v2" {
			local = "rand"
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = full
	}
	var out []string
	fault := func(n ast.Node, text string) {
		out = append(out, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), text))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if pure {
				fault(n, "a pure room starts no goroutine")
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			from := names[id.Name]
			switch {
			case !mayExit && (from == "os" && n.Sel.Name == "Exit" || from == "log" && strings.HasPrefix(n.Sel.Name, "Fatal")):
				fault(n, "only a main package ends the process")
			case pure && slices.Contains(impureCalls[from], n.Sel.Name):
				fault(n, "a pure room reads no clock: "+from+"."+n.Sel.Name)
			case pure && (from == "math/rand" || from == "math/rand/v2") && !slices.Contains(ownRand, n.Sel.Name):
				fault(n, "a pure room uses no global random numbers: rand."+n.Sel.Name)
			}
		}
		return true
	})
	return out
}

// The checks themselves: one wrong line each.
func TestLayoutRefuses(t *testing.T) {
	f := func(name, imp string, wantRefused bool) {
		t.Helper()
		i := slices.IndexFunc(rooms, func(r room) bool { return r.name == name })
		if why := rooms[i].refusal(imp); (why != "") != wantRefused {
			t.Errorf("%s importing %s: %q, want refused %v", name, imp, why, wantRefused)
		}
	}
	f("batch", "sync", false)
	f("group", "sync", true)
	f("group", "net/netip", false)
	f("group", "net/http", true)
	f("group", "log/slog", false)
	f("group", module+"/internal/partition", true)
	f("group", module+"/internal/kafka", false)
	f("metadata", raft+"/v3", true)
	f("quorum", raft+"/v3/raftpb", false)
	f("disk", "os", false)
	f("broker", module+"/internal/advise", true)
	f("kafka", module, true)
}
