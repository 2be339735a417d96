package lab

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Shows: a run is written whole, read back the same, and never over another.

func sampleRun(t *testing.T) *Run {
	p := run(t, &fake{latency: 2 * time.Millisecond}, Load{Arrivals: constant(500), Duration: 8 * time.Second})
	return &Run{Format: RunFormat, Kind: "produce", Produce: p, Wire: &Wire{Batches: 10, Records: 40, RecordsBatch: 4, Plain: 100, Packed: 50}}
}

func TestFolder(t *testing.T) {
	at := filepath.Join(t.TempDir(), "a", "b")
	f, err := MakeFolder(at)
	if err != nil {
		t.Fatal(err)
	}
	r := sampleRun(t)
	if err := f.Write(r); err != nil {
		t.Fatal(err)
	}
	back, err := ReadRun(at)
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	_, _ = r.Text(&one), back.Text(&two)
	if one.String() != two.String() || !strings.Contains(one.String(), "compressed to 50 %") {
		t.Errorf("read back it says\n%s, not\n%s", two.String(), one.String())
	}
	rows, err := os.ReadFile(filepath.Join(at, "windows.csv"))
	if err != nil || bytes.Count(rows, []byte("\n")) != 1+len(r.Produce.Windows) {
		t.Errorf("windows.csv: %v\n%s", err, rows)
	}
	if _, err := MakeFolder(at); err == nil {
		t.Error("a folder with results was taken")
	}
	if _, err := ReadRun(filepath.Join(at, "nothing")); err == nil || !strings.Contains(err.Error(), "no such result") {
		t.Errorf("%v", err)
	}
	joined := Join(back.Produce.Windows)
	if joined.Records != r.Produce.All.Records || math.Abs(joined.Intended.MeanUs-r.Produce.All.Intended.MeanUs) > 1 {
		t.Errorf("windows joined: %d records, mean %v", joined.Records, joined.Intended.MeanUs)
	}
}

func FuzzDecodeRun(f *testing.F) {
	f.Add([]byte(`{"format":"weir-perf/1","ramp":{"steps":[{"offered":1}],"findings":[[]]}}`))
	f.Add([]byte(`{"format":"weir-perf/1","compare":{"runs_a":[{"rate":1}],"runs_b":[{"rate":2}],"verdicts":{"rate":{}}}}`))
	f.Add([]byte(`{"format":"weir-perf/1","produce":{},"latency":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeRun(body)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := r.Text(&b); err != nil {
			t.Error(err)
		}
		_ = r.csv()
	})
}
