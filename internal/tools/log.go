package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/commitlog"
)

func logCommand(in IO) *cobra.Command {
	return family("log", "Look into the files of a log directory", logDump(in))
}

func logDump(in IO) *cobra.Command {
	var (
		out output
		o   commitlog.DumpOptions
	)
	c := &cobra.Command{
		Use:   "dump FILE...",
		Short: "Print what files of a log hold, in the lines of Kafka's DumpLogSegments",
		Long: `Print what files of a log hold, in the lines of Kafka's DumpLogSegments: .log,
.index, .timeindex, .txnindex, .snapshot, and the checkpoints; and the files of the
metadata log in __weir_metadata, a line for each frame, entry and record. It reads the
files only, also while a broker runs; the last batch may then be half written.

JSON (-o json): one object a line, with "file", "kind" (batch, record, entry or note)
and the names of the text form; a note, as every line of the metadata log, has "text". With --data a record has also
key, payload and headers as weir consume -J writes them.

It exits 1 when a file is damaged, after what could be read of it, and 3 when others
were sound.`,
		Example: `  weir log dump weir-data/orders-0/00000000000000000000.log --data`,
		Args:    WantArgs(1, -1, "a file"),
		RunE: func(c *cobra.Command, args []string) error {
			t := &tally{in: in}
			for _, name := range args {
				st, err := os.Stat(name)
				if err == nil && st.IsDir() {
					return usagef("%s is a directory: name its files, as in %s/*.log", name, strings.TrimSuffix(name, "/"))
				}
				w, opts := in.Stdout, o
				var lines *dumpLines
				if out.json {
					lines = &dumpLines{w: in.Stdout, file: name}
					w, opts.Render = lines, renderJSON
				}
				if err == nil {
					err = dumpFile(w, name, opts)
				}
				if lines != nil && lines.err != nil {
					return failf("cannot write to stdout: %w", lines.err)
				}
				d, isDamaged := errors.AsType[*damage](err)
				switch {
				case isDamaged:
					t.failed("%s is damaged at byte %d: %v", name, d.at, d.err)
				case err != nil:
					t.failed("cannot dump %s: %v", name, unwrapPath(err))
				default:
					t.ok++
				}
			}
			return t.err()
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Deep, "records", false, "records, not only batches")
	f.BoolVar(&o.Data, "data", false, "keys and values as well")
	f.BoolVar(&o.IndexCheck, "index-sanity-check", false, "of an index only say whether it is sound")
	f.BoolVar(&o.VerifyIndex, "verify-index", false, "of an index only compare it with the log beside it")
	f.Int64Var(&o.MaxBytes, "max-bytes", 0, "read so much of a .log file at most; 0: all")
	out.flag(c)
	return c
}

// unwrapPath leaves out the path that the sentence names already.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// renderMark parts the text of a dumped line from what renderJSON wrote.
const renderMark = "\x00"

func renderJSON(w io.Writer, r *batch.Record) {
	b := []byte(renderMark)
	if len(r.Headers) > 0 {
		hs := make([]kgo.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			hs[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
		}
		b = appendHeaders(b, hs)
	}
	b = appendField(b, "key", r.Key)
	b = appendField(b, "payload", r.Value)
	w.Write(b)
}

// dumpLines makes each line of a dump into an object.
type dumpLines struct {
	w    io.Writer
	file string
	rest []byte
	err  error
}

func (d *dumpLines) Write(p []byte) (int, error) {
	d.rest = append(d.rest, p...)
	for d.err == nil {
		line, rest, ok := bytes.Cut(d.rest, []byte("\n"))
		if !ok {
			break
		}
		if object := d.object(string(line)); object != nil {
			_, d.err = d.w.Write(object)
		}
		d.rest = rest
	}
	return len(p), d.err
}

var (
	dumpPair     = regexp.MustCompile(`(\w+): (\[[^\]]*\]|\S+)`)
	optionalLong = regexp.MustCompile(`^OptionalLong\[(\d+)\]$`)
)

func (d *dumpLines) object(line string) []byte {
	text, extra, _ := strings.Cut(line, renderMark)
	kind := "note"
	switch {
	case strings.HasPrefix(text, "Dumping "):
		return nil
	case strings.HasPrefix(text, "| "):
		kind, text = "record", text[2:]
	case strings.HasPrefix(text, "baseOffset: "):
		kind = "batch"
	case dumpPair.ReplaceAllString(strings.TrimSpace(text), "") == strings.Repeat(" ", max(0, len(dumpPair.FindAllString(text, -1))-1)) && text != "":
		kind = "entry"
	}
	b := []byte(`{"file":`)
	b = appendString(b, []byte(d.file))
	b = append(b, fmt.Sprintf(`,"kind":%q`, kind)...)
	if kind == "note" {
		b = append(b, `,"text":`...)
		b = appendString(b, []byte(text))
		return append(b, '}', '\n')
	}
	for _, m := range dumpPair.FindAllStringSubmatch(text, -1) {
		b = append(b, ',')
		b = appendString(b, []byte(m[1]))
		b = append(b, ':')
		v := m[2]
		if o := optionalLong.FindStringSubmatch(v); o != nil {
			v = o[1]
		}
		_, err := strconv.ParseInt(v, 10, 64)
		switch {
		case err == nil, v == "true", v == "false":
			b = append(b, v...)
		case v == "OptionalLong.empty":
			b = append(b, "null"...)
		default:
			b = appendString(b, []byte(v))
		}
	}
	b = append(b, extra...)
	return append(b, '}', '\n')
}
