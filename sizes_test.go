package weir_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir"
)

// B138: a partition of three segments of 1 GiB, in holes, and an active one: what
// DescribeLogDirs and /metrics say of it, and that retention.bytes drops the oldest alone.
func TestSizesBeyondTwoGiB(t *testing.T) {
	dir := t.TempDir()
	opts := weir.Options{DataDir: dir, Overrides: []string{"log.retention.check.interval.ms=100", "log.initial.task.delay.ms=50", "weir.http.listener=127.0.0.1:0"}}
	s := start(t, opts)
	c := client(t, s, kgo.DefaultProduceTopic("t"))
	if _, err := kadm.NewClient(c).CreateTopics(t.Context(), 1, 1, map[string]*string{"retention.ms": kadm.StringPtr("-1")}, "t"); err != nil {
		t.Fatal(err)
	}
	if err := c.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := func(base int, ext string) string { return filepath.Join(dir, "t-0", fmt.Sprintf("%020d%s", base, ext)) }
	one, err := os.ReadFile(file(0, ".log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file(1, ".snapshot"), file(301, ".snapshot")); err != nil {
		t.Fatal(err)
	}
	for base := 0; base <= 300; base += 100 {
		binary.BigEndian.PutUint64(one, uint64(base)) // outside the checksum
		write(t, file(base, ".log"), string(one))
		write(t, file(base, ".index"), "")
		write(t, file(base, ".timeindex"), string(one[35:43])+"\x00\x00\x00\x00") // the record's time and place: the holes are not read
		if base < 300 {
			if err := os.Truncate(file(base, ".log"), 1<<30); err != nil {
				t.Skip("no holes here: ", err)
			}
		}
	}
	s = start(t, opts)
	a := kadm.NewClient(client(t, s))
	seen := func() string {
		dirs, err := a.DescribeAllLogDirs(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		size := int64(-1)
		dirs.Each(func(d kadm.DescribedLogDir) {
			if p, ok := d.Topics.Lookup("t", 0); ok {
				size = p.Size
			}
		})
		resp, err := http.Get("http://" + s.HTTPAddr() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		metric := "none"
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "kafka_log_log_size{") && strings.Contains(line, `topic="t"`) {
				metric = strings.Fields(line)[1]
			}
		}
		start, err := a.ListStartOffsets(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		o, _ := start.Lookup("t", 0)
		var asFloat float64
		fmt.Sscan(metric, &asFloat)
		return fmt.Sprintf("%d %.0f from %d", size, asFloat, o.Offset)
	}
	whole := int64(3<<30 + len(one))
	if got, want := seen(), fmt.Sprintf("%d %d from 0", whole, whole); got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if _, err := a.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.bytes", Value: kadm.StringPtr(fmt.Sprint(int64(2) << 30))}}, "t"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %d from 100", whole-1<<30, whole-1<<30)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got := seen()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}
