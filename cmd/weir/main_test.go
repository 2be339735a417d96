package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/tools"
)

// Shows: a wrong command line is answered by one sentence and exit code 2,
// whatever the command. How: whole command lines against the real root.

func run(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	in := tools.IO{Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e}
	c := root(in)
	c.SetArgs(args)
	code = tools.Execute(context.Background(), c, in)
	return code, o.String(), e.String()
}

func TestUsage(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		code, out, errs := run(strings.Fields(line)...)
		if code != tools.ExitUsage || out != "" || errs != "weir: "+want+"\n" {
			t.Errorf("weir %s: exit code %d\nstdout: %s\nstderr: %s", line, code, out, errs)
		}
	}
	f("serve a b", `weir serve takes one properties file, and "b" is too much; see weir serve --help`)
	f("serve --port 1", `unknown flag: --port; see weir serve --help`)
	f("serv a", `unknown command "serv" for weir: did you mean serve?`)
	f("frobnicate", `unknown command "frobnicate" for weir; weir --help lists the commands`)
	f("group list a", `weir group list takes no argument, and "a" is too much; see weir group list --help`)
	f("group reset", `weir group reset needs one group name; see weir group reset --help`)
	f("topic lst -b X", `unknown command "lst" for weir topic: did you mean list? It has alter, create, delete, describe, list`)
	f("topic -b X lst", `unknown command "lst" for weir topic: did you mean list? It has alter, create, delete, describe, list`)
	f("topic --bootstrap-server=X frobnicate", `unknown command "frobnicate" for weir topic: it has alter, create, delete, describe, list`)
	f("topic -b X", `unknown flag -b for weir topic: say first what to do, one of alter, create, delete, describe, list`)
	f("log dmp f", `unknown command "dmp" for weir log: did you mean dump? It has dump`)
	f("completion bash x", `unknown command "x" for weir completion bash; weir --help lists the commands`)
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"topic", "topic --help", "topic -h", "help topic", "topic help"} {
		code, out, errs := run(strings.Fields(line)...)
		if code != tools.ExitOK || errs != "" || !strings.Contains(out, "weir topic [command]") {
			t.Errorf("weir %s: exit code %d\nstdout: %s\nstderr: %s", line, code, out, errs)
		}
	}
	code, out, errs := run("topic", "list", "--help")
	if code != tools.ExitOK || errs != "" || !strings.Contains(out, "weir topic list [TEXT]") {
		t.Errorf("weir topic list --help: exit code %d\nstdout: %s\nstderr: %s", code, out, errs)
	}
}

// A configuration that stops a start is exit code 2, with the broker's sentence.
func TestServeConfig(t *testing.T) {
	code, _, errs := run("serve", "--override", "listeners=PLAINTEXT://127.0.0.1:99999", "--data-dir", t.TempDir())
	if code != tools.ExitUsage || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, `port "99999" is not a number from 0 to 65535`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, _ = run("serve", filepath.Join(t.TempDir(), "none.properties")); code != tools.ExitUsage {
		t.Errorf("no file: exit code %d", code)
	}
}

// served is what serve printed until it was ready, or ended.
func served(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var o, e bytes.Buffer
	in := tools.IO{Stdin: strings.NewReader(""), Stdout: writer(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("ready ")) {
			cancel()
		}
		return o.Write(p)
	}), Stderr: &e}
	c := root(in)
	c.SetArgs(append([]string{"serve", "--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", "weir.http.listener="}, args...))
	code = tools.Execute(ctx, c, in)
	return code, o.String(), e.String()
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// The start block names the log dirs in use, and those that failed as left out.
func TestServeLeavesOut(t *testing.T) {
	good, bad := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(bad, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := served(t, "--override", "log.dirs="+good+","+bad)
	if want := "\ndata     " + good + ", " + bad + " (left out)\n"; code != tools.ExitOK || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q in it\nstdout: %s\nstderr: %s", code, want, out, errs)
	}
}

// A warning says where a key was set, or nothing of it.
func TestServeWarning(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "weir-test-")
	if err != nil {
		t.Skip("no /tmp here")
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	code, _, errs := served(t, "--data-dir", dir)
	if code != tools.ExitOK || !strings.Contains(errs, "is in /tmp") || strings.Contains(errs, "where=") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	_, _, errs = served(t, "--override", "log.dirs="+dir)
	if !strings.Contains(errs, `where="--override log.dirs"`) {
		t.Error(errs)
	}
}
