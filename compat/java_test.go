//go:build compat

package compat

// Shows: Kafka 4.4's Java clients, through java/Judge.java: every codec and
// acks, groups whose members change (both rebalance protocols), commit and
// resume, seek by time, nulls, and the AdminClient call by call.

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var judge struct {
	once      sync.Once
	classpath string
	err       error
	out       string
}

// judgeClasspath compiles Judge.java against the jars of the foreign tools.
func judgeClasspath(t *testing.T) string {
	t.Helper()
	dir := peers(t)
	if _, err := exec.LookPath("javac"); err != nil {
		missing(t, "javac is not installed: the Java clients need it")
	}
	judge.once.Do(func() {
		if out, err := tryRun("", filepath.Join(dir, "kafka"), "setup"); err != nil {
			judge.err, judge.out = err, out
			return
		}
		jars, err := jarDir(dir)
		if err != nil {
			judge.err = err
			return
		}
		classes := filepath.Join(suite.dir, "classes")
		judge.classpath = classes + ":" + filepath.Join(jars, "*")
		judge.out, judge.err = tryRun("", "javac", "-nowarn", "-Xlint:none", "-d", classes, "-cp", judge.classpath, filepath.Join("java", "Judge.java"))
	})
	if judge.err != nil {
		t.Fatalf("%v\n%s", judge.err, judge.out)
	}
	return judge.classpath
}

// jarDir is where the tools' script keeps the newest jars.
func jarDir(peers string) (string, error) {
	home := os.Getenv("PEERS_HOME")
	if home == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		home = filepath.Join(cache, "weir-peers")
	}
	pom, err := os.ReadFile(filepath.Join(peers, "pom.xml"))
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(pom), "<kafka.version>")
	version, _, _ := strings.Cut(rest, "<")
	return filepath.Join(home, "kafka-"+version), nil
}

// runJudge makes a subtest of every line of Judge's.
func runJudge(t *testing.T, what string) {
	classpath := judgeClasspath(t)
	b := sharedBroker(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-Dlog4j2.configurationFile="+filepath.Join(peers(t), "log4j2.xml"),
		"-Dpeer.log.level=WARN", "-cp", classpath, "Judge", what, b.addr)
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	seen, done := 0, false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		verdict, name, _ := strings.Cut(line, " ")
		switch verdict {
		case "ok", "FAIL", "unsupported":
			seen++
			name, why, _ := strings.Cut(name, " | ")
			t.Run(name, func(t *testing.T) {
				switch verdict {
				case "FAIL":
					t.Error(why)
				case "unsupported":
					t.Skip("the broker does not advertise the API")
				}
			})
		case "done":
			done = true
		}
	}
	if err != nil || !done || seen == 0 {
		t.Errorf("Judge %s: %v, %d checks\n%s", what, err, seen, out)
	}
	if t.Failed() {
		t.Logf("Judge %s says:\n%s", what, out)
	}
}

func TestJavaClients(t *testing.T) { runJudge(t, "clients") }

func TestJavaAdmin(t *testing.T) { runJudge(t, "admin") }
