//go:build compat

package compat

// Shows: the tools in the binary print what Kafka's own print. For every command
// line of testdata/kafkatools both run against one broker, and stdout, stderr and
// exit code are compared after ids, times and rates are masked, with right and
// with wrong input. The help's words are our own, so of a help only the line
// above it is compared; stack traces and the Java log are left out.
//
// A file is one tool's run: a line is a command line, the same for both, with
// {x} in it for a name of one's own (topic x of Kafka's run is not ours). Marks
// before a command line, each with a space behind:
//
//	sort    the lines may come in any order
//	differ  ours is meant to differ (docs/tools.md): only ours is run, and the next
//	        lines that begin with > (stdout), ! (stderr) or = (code) say what it prints
//	alone   in a JVM of its own: the tool ends the process
//	err-    stderr is not compared (the clients' own words)
//	<<<     at the end: what stdin holds, with \n and \t

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// javaTools is one JVM that runs Kafka's tools one after another (java/RunTools.java).
type javaTools struct {
	t     *testing.T
	class map[string]string
	cmd   *exec.Cmd
	in    interface {
		Write([]byte) (int, error)
		Close() error
	}
	out *bufio.Reader
}

type toolRun struct {
	code           int
	stdout, stderr string
}

func newJavaTools(t *testing.T) *javaTools {
	j := &javaTools{t: t, class: map[string]string{}}
	script, err := os.ReadFile(filepath.Join(peers(t), "kafka"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +(kafka-[a-z0-9-]+|connect-[a-z-]+)\) echo (\S+);;`).FindAllStringSubmatch(string(script), -1) {
		j.class[m[1]] = m[2]
	}
	t.Cleanup(j.end)
	return j
}

func (j *javaTools) end() {
	if j.cmd != nil {
		j.in.Close()
		timer := time.AfterFunc(10*time.Second, func() { j.cmd.Process.Kill() })
		j.cmd.Wait()
		timer.Stop()
		j.cmd = nil
	}
}

func (j *javaTools) start() {
	source, err := filepath.Abs(filepath.Join("java", "RunTools.java"))
	if err != nil {
		j.t.Fatal(err)
	}
	j.cmd = exec.Command(filepath.Join(peers(j.t), "kafka"), source)
	j.cmd.Env = append(os.Environ(), "TOOL_HEAP=256m", "KAFKA_OPTS=-XX:TieredStopAtLevel=1")
	in, err := j.cmd.StdinPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	if err := j.cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.in, j.out = in, bufio.NewReader(out)
}

// run runs one tool; alone in a JVM of its own.
func (j *javaTools) run(name, stdin string, args []string, alone bool) toolRun {
	j.t.Helper()
	if alone {
		return runTool(j.t, stdin, filepath.Join(peers(j.t), "kafka"), append([]string{name}, args...)...)
	}
	if j.class[name] == "" {
		j.t.Fatalf("no class is known for %s", name)
	}
	if j.cmd == nil {
		j.start()
	}
	var words []string
	for _, w := range append([]string{j.class[name], stdin}, args...) {
		if w = base64.StdEncoding.EncodeToString([]byte(w)); w == "" {
			w = "-"
		}
		words = append(words, w)
	}
	fmt.Fprintln(j.in, strings.Join(words, " "))
	timer := time.AfterFunc(2*time.Minute, func() { j.cmd.Process.Kill() })
	line, err := j.out.ReadString('\n')
	timer.Stop()
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 {
		j.end()
		j.t.Fatalf("%s %q ended the JVM that runs many (mark it alone): %v", name, args, err)
	}
	code, _ := strconv.Atoi(fields[0])
	text := func(s string) string {
		b, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "-"))
		return string(b)
	}
	return toolRun{code, text(fields[1]), text(fields[2])}
}

func runTool(t *testing.T, stdin, name string, args ...string) toolRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 2 * time.Second
	cmd.Env = append(os.Environ(), "TOOL_HEAP=128m", "KAFKA_OPTS=-XX:TieredStopAtLevel=1")
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s %q did not end in two minutes\n%s%s", name, args, out.String(), errs.String())
	}
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return toolRun{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// What two right runs may differ in.
var toolMasks = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(\d+ (?:steady state )?records sent), [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency\.`), "N records sent, WINDOW."},
	{regexp.MustCompile(`(\d+ (?:steady state )?records sent), \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, \d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.`), "$1, TOTAL."},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}`), "TIME"},
	{regexp.MustCompile(`TIME, TIME, (\d+\.\d{4}), [\d.Na]+, (\d+), [\d.Na]+, \d+, \d+, [\d.Na]+, [\d.Na]+`), "TIME, TIME, $1, RATE, $2, RATES"},
	{regexp.MustCompile(`TIME, 0, (\d+\.\d{4}), \d+\.\d{4}, (\d+), \d+\.\d{4}, \d+, \d+, \d+\.\d{4}, \d+\.\d{4}`), "TIME, 0, $1, RATE, $2, RATES"},
	// Java prints sets in no order.
	{regexp.MustCompile(`(Valid \w+ are|scenarios|options): .*`), "$1: …"},
	{regexp.MustCompile(`Option combination "\[\[.*\]\]"`), `Option combination "…"`},
	{regexp.MustCompile(`perf-consumer-\d+`), "perf-consumer-N"},
	{regexp.MustCompile(`console-consumer-\d+`), "console-consumer-N"},
	{regexp.MustCompile(`TopicId: [\w-]{22}`), "TopicId: ID"},
	{regexp.MustCompile(`"timestamp":\d+`), `"timestamp":N`},
	{regexp.MustCompile(`(CreateTime|LogAppendTime):\d+`), "$1:N"},
	{regexp.MustCompile(`"avg_throughput":[\d.E-]+`), `"avg_throughput":N`},
	{regexp.MustCompile(`Avg latency: \d+\.\d{4} ms`), "Avg latency: N ms"},
	{regexp.MustCompile(`50th = \d+, 99th = \d+, 99.9th = \d+`), "50th = N, 99th = N, 99.9th = N"},
	{regexp.MustCompile(`(?m)^(\d+)\t\d+\.\d+$`), "$1\tMS"},
	{regexp.MustCompile(`(Last(?:Fetch|CaughtUp)Timestamp\S*|MaxFollowerLagTimeMs|HighWatermark|LeaderEpoch):?\s+-?\d+`), "$1 N"},
}

var (
	javaLog  = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d[^\]]*\] (?:WARN|ERROR|INFO) `)
	helpHead = regexp.MustCompile(`^Option(?: \(\* = required\))? +Description`)
	javaMore = regexp.MustCompile(`^\s+\.\.\. \d+ more$|^\tat |^Caused by: joptsimple|^Caused by: java\.lang\.NumberFormat|^exit$|^RunTools\$Ended`)
)

// masked is a tool's output as it is compared.
func masked(out string, names map[string]string) string {
	for own, plain := range names {
		out = strings.ReplaceAll(out, own, "{"+plain+"}")
	}
	for _, m := range toolMasks {
		out = m.re.ReplaceAllString(out, m.with)
	}
	// Groups that nobody named come and go while the two run.
	out = regexp.MustCompile(`(?m)^(?:console|perf)-consumer-N .*\n`).ReplaceAllString(out, "")
	out = regexp.MustCompile(`(?m)^(GROUP|\S+) +(TYPE|Classic) +(PROTOCOL|consumer|) *$`).ReplaceAllString(out, "$1 $2 $3")
	var lines []string
	log := false
	for line := range strings.SplitSeq(out, "\n") {
		if javaLog.MatchString(line) {
			log = true
		}
		switch {
		case log:
			log = !strings.HasSuffix(line, ")") || strings.HasPrefix(line, "\tat ")
			continue
		case javaMore.MatchString(line):
			continue
		}
		if helpHead.MatchString(line) {
			lines = append(lines, "HELP")
			break
		}
		lines = append(lines, strings.TrimRight(line, "\r"))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// words cuts a command line as a shell does: spaces, '…' and "…".
func words(line string) (out []string) {
	var word strings.Builder
	var quote rune
	open := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			if open || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
		}
	}
	if open || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

func TestKafkaTools(t *testing.T) {
	b, bin := startBroker(t), weirBinary(t)
	files, err := filepath.Glob(filepath.Join("testdata", "kafkatools", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	java := newJavaTools(t)
	// Records that the files read: ten, in the first partition.
	r := dial(t, b.addr)
	for topic, partitions := range map[string]string{"golden-groups": "2", "golden-records": "2", "golden-one": "1"} {
		r.delete(topic)
		runTool(t, "", bin, "kafka-topics", "--bootstrap-server", b.addr, "--create", "--topic", topic, "--partitions", partitions)
		r.put(topic, batchSpec{recs: values(10, 10)})
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			java.t = t
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			salt := strconv.FormatInt(time.Now().UnixNano()%1e9+1e9, 36)
			dir := map[string]string{"k": t.TempDir(), "w": t.TempDir()}
			// side gives the command line of one of the two, and what its names stand for.
			side := func(who, line string) (string, map[string]string) {
				names := map[string]string{}
				line = placeholder.ReplaceAllStringFunc(line, func(m string) string {
					switch plain := m[1 : len(m)-1]; plain {
					case "b":
						return b.addr
					case "dir":
						names[dir[who]] = "dir"
						return dir[who]
					default:
						own := plain + "-" + who + salt
						names[own] = plain
						return own
					}
				})
				return line, names
			}
			all := strings.Split(string(body), "\n")
			for i := 0; i < len(all); i++ {
				line := all[i]
				if strings.TrimSpace(line) == "" || line[0] == '#' {
					continue
				}
				marks := map[string]bool{}
				for {
					first, rest, _ := strings.Cut(line, " ")
					if !slices.Contains([]string{"sort", "differ", "alone", "err-"}, first) {
						break
					}
					marks[first], line = true, rest
				}
				line, stdin, _ := strings.Cut(line, " <<< ")
				if path, content, ok := strings.Cut(line, " FILE "); ok {
					// path FILE content: a file for the command lines that follow
					for _, who := range []string{"k", "w"} {
						p, _ := side(who, path)
						c, _ := side(who, content)
						if err := os.WriteFile(p, []byte(c), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					continue
				}
				stdin = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(stdin)
				read := func(r toolRun, names map[string]string) (out, errs string) {
					out, errs = masked(r.stdout, names), masked(r.stderr, names)
					if marks["sort"] {
						ls := strings.Split(out, "\n")
						slices.Sort(ls)
						out = strings.Join(ls, "\n")
					}
					if marks["err-"] {
						errs = ""
					}
					return out, errs
				}
				ownLine, ownNames := side("w", line)
				ours := runTool(t, stdin, bin, append([]string{name}, words(ownLine)...)...)
				ourOut, ourErr := read(ours, ownNames)
				var theirs toolRun
				var theirOut, theirErr string
				if marks["differ"] {
					for i+1 < len(all) && all[i+1] != "" && strings.ContainsRune(">!=", rune(all[i+1][0])) {
						i++
						switch text := strings.TrimPrefix(all[i][1:], " "); all[i][0] {
						case '>':
							theirOut += text + "\n"
						case '!':
							theirErr += text + "\n"
						default:
							theirs.code, _ = strconv.Atoi(text)
						}
					}
					theirOut, theirErr = strings.TrimSuffix(theirOut, "\n"), strings.TrimSuffix(theirErr, "\n")
				} else {
					theirLine, theirNames := side("k", line)
					theirs = java.run(name, stdin, words(theirLine), marks["alone"])
					theirOut, theirErr = read(theirs, theirNames)
				}
				if ours.code != theirs.code || ourOut != theirOut || ourErr != theirErr {
					t.Errorf("%s %s\nKafka's: exit %d\n%s\n%s\nours: exit %d\n%s\n%s", name, line,
						theirs.code, quoted("> ", theirOut), quoted("! ", theirErr), ours.code, quoted("> ", ourOut), quoted("! ", ourErr))
				}
			}
		})
	}
}

func quoted(mark, text string) string {
	if text == "" {
		return mark + "(nothing)"
	}
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark)
}
