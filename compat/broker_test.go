//go:build compat

package compat

// The broker under test as a process: started on a free port with a data
// directory of its own, killed, restarted, stopped. The same handle drives a
// weir binary built from this checkout or, with WEIR_COMPAT=kafka, the real
// Kafka, which proves the checks.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// onKafka is true when the real Kafka stands in for Weir.
var onKafka = os.Getenv("WEIR_COMPAT") == "kafka"

// suite is what TestMain owns: one scratch directory, one binary, the brokers
// that are up and the data directories to dump at the end.
var suite struct {
	dir    string
	build  sync.Once
	bin    string
	binErr error

	mu      sync.Mutex
	started int
	brokers []*broker
	shared  *broker
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-compat-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	suite.dir = dir
	code := m.Run()
	for _, b := range suite.brokers {
		b.end()
	}
	if os.Getenv("WEIR_COMPAT_KEEP") == "" {
		os.RemoveAll(dir)
	} else {
		fmt.Println("kept:", dir)
	}
	os.Exit(code)
}

// missing skips the test, or fails it where everything must be installed.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI must have it: "+format, args...)
	}
	t.Skipf(format, args...)
}

// peers gives the directory of the foreign tools.
func peers(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("WEIR_PEERS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "peers")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "kafka"))
	}
	if err != nil {
		missing(t, "no foreign tools (%v): put them beside the checkout or set WEIR_PEERS", err)
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, "%s is not installed: Kafka's tools need it", tool)
		}
	}
	return dir
}

func weirBinary(t testing.TB) string {
	t.Helper()
	suite.build.Do(func() {
		if suite.bin = os.Getenv("WEIR_COMPAT_BIN"); suite.bin != "" {
			suite.bin, suite.binErr = filepath.Abs(suite.bin)
			return
		}
		suite.bin = filepath.Join(suite.dir, "weir")
		cmd := exec.Command("go", "build", "-o", suite.bin, "./cmd/weir")
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			suite.binErr = fmt.Errorf("go build ./cmd/weir: %v\n%s", err, out)
		}
	})
	if suite.binErr != nil {
		t.Fatal(suite.binErr)
	}
	return suite.bin
}

// broker is one process of the broker under test. Methods that fail end the
// test; a broker is used by one test at a time, except the shared one.
type broker struct {
	t    testing.TB // the test it was started for; nil for the shared one
	addr string     // host:port of the Kafka listener
	dir  string     // everything of this broker
	logs string     // the Kafka log directory within
	args []string   // key=value settings
	wrap []string   // a command that runs weir, such as prlimit and its flags

	cmd  *exec.Cmd // weir
	done chan struct{}
	err  error // of cmd, once done is closed
	pid  int   // 0: down

	foreign bool // not ours to end
}

// sharedBroker is the one most tests use: settings at their defaults, but for
// the first rebalance, which does not wait three seconds.
func sharedBroker(t testing.TB) *broker {
	t.Helper()
	suite.mu.Lock()
	defer suite.mu.Unlock()
	if addr := os.Getenv("WEIR_COMPAT_BOOTSTRAP"); suite.shared == nil && addr != "" {
		// A broker somebody else runs; it is neither stopped nor dumped.
		suite.shared = &broker{addr: addr, pid: os.Getpid(), foreign: true}
	}
	if suite.shared == nil {
		suite.shared = newBroker(t, "group.initial.rebalance.delay.ms=0")
		suite.shared.start(t)
	}
	if suite.shared.pid == 0 {
		t.Fatal("the shared broker is down")
	}
	return suite.shared
}

// startBroker starts one with settings of its own, stopped when the test ends.
func startBroker(t *testing.T, settings ...string) *broker {
	t.Helper()
	suite.mu.Lock()
	b := newBroker(t, append([]string{"group.initial.rebalance.delay.ms=0"}, settings...)...)
	suite.mu.Unlock()
	b.t = t
	t.Cleanup(func() {
		if b.pid != 0 {
			b.stop(t)
		}
		if t.Failed() {
			t.Logf("broker's last words:\n%s", tail(b.outPath(), 3000))
		}
	})
	b.start(t)
	return b
}

func newBroker(t testing.TB, settings ...string) *broker {
	t.Helper()
	suite.started++
	b := &broker{args: settings, dir: filepath.Join(suite.dir, "broker-"+strconv.Itoa(suite.started))}
	suite.brokers = append(suite.brokers, b)
	b.addr = "127.0.0.1:" + strconv.Itoa(freePort(t))
	if onKafka {
		b.logs = filepath.Join(b.dir, "node-1", "data")
	} else {
		b.logs = filepath.Join(b.dir, "data")
		if err := os.MkdirAll(b.dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// freePort finds a port that is free, as is the one 101 above it, where the
// real Kafka puts its controller.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l2, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+101))
		l.Close()
		if err == nil {
			l2.Close()
			return port
		}
	}
	t.Fatal("no free pair of ports")
	return 0
}

func (b *broker) outPath() string {
	if onKafka {
		return filepath.Join(b.dir, "node-1", "out.log")
	}
	return filepath.Join(b.dir, "out.log")
}

// start brings the broker up on its data directory and waits until it answers
// ApiVersions; it returns how long that took.
func (b *broker) start(t testing.TB) time.Duration {
	t.Helper()
	begin := time.Now()
	if onKafka {
		b.startKafka(t)
	} else {
		b.startWeir(t)
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := ping(b.addr); err == nil {
			return time.Since(begin)
		} else if time.Now().After(deadline) || b.died() {
			t.Fatalf("broker on %s does not answer: %v\n%s", b.addr, err, tail(b.outPath(), 3000))
		}
	}
}

func (b *broker) startWeir(t testing.TB) {
	t.Helper()
	args := []string{"serve", "--data-dir", b.logs,
		"--override", "listeners=PLAINTEXT://" + b.addr, "--override", "weir.http.listener="}
	for _, kv := range b.args {
		args = append(args, "--override", kv)
	}
	out, err := os.OpenFile(b.outPath(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	argv := append(append(b.wrap[:len(b.wrap):len(b.wrap)], weirBinary(t)), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = b.dir
	for _, kv := range os.Environ() { // Weir reads settings from there; these are the suite's
		if !strings.HasPrefix(kv, "KAFKA_") && !strings.HasPrefix(kv, "WEIR_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	b.cmd, b.done, b.pid = cmd, done, cmd.Process.Pid
	go func() {
		b.err = cmd.Wait()
		close(done)
	}()
}

func (b *broker) startKafka(t testing.TB) {
	t.Helper()
	kafka := filepath.Join(peers(t), "kafka")
	_, port, _ := net.SplitHostPort(b.addr)
	args := []string{"start", "1", "-d", b.dir, "-H", "640m"}
	if _, err := os.Stat(b.dir); err != nil {
		args = append([]string{"up", "-p", port, "-d", b.dir, "-H", "640m"}, b.args...)
	}
	if out, err := exec.Command(kafka, args...).CombinedOutput(); err != nil {
		t.Fatalf("kafka %v: %v\n%s", args, err, out)
	}
	pid, err := os.ReadFile(filepath.Join(b.dir, "node-1", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if b.pid, err = strconv.Atoi(strings.TrimSpace(string(pid))); err != nil {
		t.Fatal(err)
	}
}

// died says whether the process is gone although nobody ended it.
func (b *broker) died() bool {
	if b.foreign {
		return ping(b.addr) != nil
	}
	if onKafka {
		return !alive(b.pid)
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// alive is false for zombies: the real Kafka's parent is gone or does not wait.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(after, []byte("Z"))
}

func (b *broker) signal(t testing.TB, sig syscall.Signal, patience time.Duration) {
	t.Helper()
	if b.pid == 0 {
		t.Fatal("broker is not up")
	}
	if err := syscall.Kill(b.pid, sig); err != nil {
		t.Fatalf("signal %v: %v\n%s", sig, err, tail(b.outPath(), 3000))
	}
	for deadline := time.Now().Add(patience); !b.died(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("broker still up %v after signal %v\n%s", patience, sig, tail(b.outPath(), 3000))
		}
	}
	b.pid = 0
}

// kill is kill -9.
func (b *broker) kill(t testing.TB) {
	t.Helper()
	b.signal(t, syscall.SIGKILL, 10*time.Second)
}

// stop is SIGTERM; the process must end by itself, and a weir with status 0.
func (b *broker) stop(t testing.TB) {
	t.Helper()
	b.signal(t, syscall.SIGTERM, 30*time.Second)
	if !onKafka && b.err != nil {
		t.Errorf("weir after SIGTERM: %v\n%s", b.err, tail(b.outPath(), 3000))
	}
}

// end is for TestMain: no test is left to fail.
func (b *broker) end() {
	if b.pid != 0 {
		syscall.Kill(b.pid, syscall.SIGKILL)
		for range 1000 {
			if b.died() {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		b.pid = 0
	}
}

// residentKiB is the process's resident memory.
func (b *broker) residentKiB(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(b.pid) + "/status")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

func (b *broker) openFiles(t testing.TB) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(b.pid) + "/fd")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	return len(fds)
}

// ping asks for ApiVersions v0.
func ping(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff}); err != nil {
		return err
	}
	var head [10]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if head[8] != 0 || head[9] != 0 {
		return fmt.Errorf("ApiVersions v0: error code bytes % x", head[8:])
	}
	return nil
}

// run runs a command to its end and fails the test when it fails. Stdin may be
// empty. It gives stdout and stderr together.
func run(t testing.TB, stdin string, name string, args ...string) string {
	t.Helper()
	out, err := tryRun(stdin, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

func tryRun(stdin string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 2 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.New("did not end in five minutes")
	}
	return string(out), err
}

func tail(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}

// eventually polls until ok says so, and fails with what it last said.
func eventually(t testing.TB, within time.Duration, what string, ok func() (string, bool)) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		last, good := ok()
		if good {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v; last: %s", what, within, last)
		}
	}
}
