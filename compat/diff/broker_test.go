//go:build compat

package diff

// The two brokers: a weir built from this checkout and the real Kafka, both new and
// with the same settings.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// settings are the same on both. Logs are not looked at for retention meanwhile:
// the records of the scenarios are years old.
var settings = []string{
	"group.initial.rebalance.delay.ms=0",
	"offsets.topic.replication.factor=1",
	"transaction.state.log.replication.factor=1",
	"transaction.state.log.min.isr=1",
	"log.retention.check.interval.ms=3600000",
}

// peersSets are what the tool that starts the real one sets besides.
var peersSets = []string{
	"node.id=1",
	"process.roles=broker,controller",
	"controller.listener.names=CONTROLLER",
	"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
	"share.coordinator.state.topic.replication.factor=1",
	"share.coordinator.state.topic.min.isr=1",
}

func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l2, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+101)) // Kafka's controller
		l.Close()
		if err == nil {
			l2.Close()
			return port
		}
	}
	t.Fatal("no free pair of ports")
	return 0
}

func startWeir(t testing.TB, dir string) (addr string) {
	t.Helper()
	if addr := os.Getenv("WEIR_DIFF_WEIR"); addr != "" {
		return addr
	}
	bin := os.Getenv("WEIR_COMPAT_BIN")
	if bin == "" {
		bin = filepath.Join(dir, "weir")
		cmd := exec.Command("go", "build", "-o", bin, "./cmd/weir")
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build ./cmd/weir: %v\n%s", err, out)
		}
	} else if !filepath.IsAbs(bin) {
		bin, _ = filepath.Abs(filepath.Join("..", "..", bin))
	}
	addr = "127.0.0.1:" + strconv.Itoa(freePort(t))
	args := []string{"serve", "--data-dir", filepath.Join(dir, "weir-data"),
		"--override", "listeners=PLAINTEXT://" + addr, "--override", "weir.http.listener="}
	for _, kv := range append(settings[:len(settings):len(settings)], peersSets...) {
		args = append(args, "--override", kv)
	}
	logPath := filepath.Join(dir, "weir.log")
	out, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "KAFKA_") && !strings.HasPrefix(kv, "WEIR_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("weir after SIGTERM: %v", err)
		}
		out.Close()
		if b, _ := os.ReadFile(logPath); t.Failed() {
			t.Logf("weir's last words:\n%s", b[max(0, len(b)-2000):])
		}
	})
	waitOpen(t, addr)
	return addr
}

// startKafka gives "" where the real one is not at hand; CI must have it.
func startKafka(t testing.TB, dir string) (addr string) {
	t.Helper()
	if addr := os.Getenv("WEIR_DIFF_KAFKA"); addr != "" {
		return addr
	}
	peers := os.Getenv("WEIR_PEERS")
	if peers == "" {
		peers = filepath.Join("..", "..", "..", "shared", "peers")
	}
	tool := filepath.Join(peers, "kafka")
	_, err := os.Stat(tool)
	if err == nil {
		_, err = exec.LookPath("java")
	}
	if err != nil {
		if os.Getenv("CI") == "true" || *recording {
			t.Fatalf("the real Kafka must be here: %v", err)
		}
		t.Logf("no real Kafka (%v): Weir is compared with the answers kept in testdata/kafka", err)
		return ""
	}
	port := freePort(t)
	home := filepath.Join(dir, "kafka")
	args := append([]string{"up", "-p", strconv.Itoa(port), "-d", home, "-H", "512m"}, settings[4:]...)
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Fatalf("kafka %v: %v\n%s", args, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(tool, "down", "-d", home).CombinedOutput(); err != nil {
			t.Errorf("kafka down: %v\n%s", err, out)
		}
	})
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	waitOpen(t, addr)
	return addr
}

func waitOpen(t testing.TB, addr string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens on %s: %v", addr, err)
		}
	}
}
