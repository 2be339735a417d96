package lab

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Folder is where a run's files go.
type Folder struct{ Path string }

// MakeFolder makes path, or takes it if it is an empty folder: results are never
// written over others. It is made before the load begins, so that a wrong place
// costs no run.
func MakeFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the run folder: %w; give another --out", err)
	}
	names, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the run folder: %w; give another --out", err)
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("the run folder %s has files already: give another --out", path)
	}
	return &Folder{path}, nil
}

// Drop removes the folder if nothing was written to it.
func (f *Folder) Drop() { _ = os.Remove(f.Path) }

// Write puts report.json, summary.txt and windows.csv there, each whole or not at all.
func (f *Folder) Write(r *Run) error {
	doc, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("BUG: a run has no JSON: %w", err)
	}
	var text bytes.Buffer
	_ = r.Text(&text)
	for name, body := range map[string][]byte{"report.json": doc, "summary.txt": text.Bytes(), "windows.csv": r.csv()} {
		if len(body) == 0 {
			continue
		}
		at := filepath.Join(f.Path, name)
		if err := os.WriteFile(at+".tmp", body, 0o644); err != nil {
			_ = os.Remove(at + ".tmp")
			return err
		}
		if err := os.Rename(at+".tmp", at); err != nil {
			return err
		}
	}
	return nil
}

// ReadRun reads report.json, or that of a folder.
func ReadRun(path string) (*Run, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "report.json")
	}
	body, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such result; give the folder that --out named, or its report.json", path)
	case err != nil:
		return nil, err
	}
	return DecodeRun(body)
}

// DecodeRun reads the bytes of a report.json.
func DecodeRun(body []byte) (*Run, error) {
	var r Run
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("this is no result of weir perf: %w", err)
	}
	if r.Format != RunFormat {
		return nil, fmt.Errorf("this result has the format %q, and this weir reads %s", r.Format, RunFormat)
	}
	if r.Latency != nil && r.Latency.Produced == nil {
		return nil, errors.New("this result of weir perf latency has no load: the file was changed")
	}
	if r.Ramp != nil && len(r.Ramp.Findings) != len(r.Ramp.Steps) {
		return nil, fmt.Errorf("this ramp has %d steps and the findings of %d: the file was changed", len(r.Ramp.Steps), len(r.Ramp.Findings))
	}
	if r.Compare != nil && len(r.Compare.RunsA) != len(r.Compare.RunsB) {
		return nil, fmt.Errorf("this comparison has %d runs of A and %d of B: the file was changed", len(r.Compare.RunsA), len(r.Compare.RunsB))
	}
	return &r, nil
}

// csv is the windows as a table; nil when there are none.
func (r *Run) csv() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	num := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	p := r.Produce
	if r.Latency != nil {
		p = r.Latency.Produced
	}
	switch {
	case p != nil:
		_ = w.Write(strings.Fields("at_s seconds acked bytes failed in_flight p50_us p99_us max_us service_p99_us late_us cores"))
		for _, x := range p.Windows {
			row := []string{num(x.AtS), num(x.Seconds)}
			for _, n := range []int64{x.Acked, x.Bytes, x.Failed, x.InFlight, x.P50Us, x.P99Us, x.MaxUs, x.ServiceP99, x.LateUs} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			_ = w.Write(append(row, num(x.Cores)))
		}
	case r.Consume != nil:
		_ = w.Write(strings.Fields("at_s seconds records bytes polls"))
		for _, x := range r.Consume.Windows {
			_ = w.Write([]string{num(x.AtS), num(x.Seconds), strconv.FormatInt(x.Records, 10), strconv.FormatInt(x.Bytes, 10), strconv.FormatInt(x.Polls, 10)})
		}
	default:
		return nil
	}
	w.Flush()
	return b.Bytes()
}
