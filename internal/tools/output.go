package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// output is the -o flag of the commands that answer with a table.
type output struct{ json bool }

func (o *output) flag(c *cobra.Command) {
	c.Flags().VarP(o, "output", "o", "output: table or json")
}

func (o *output) String() string {
	if o.json {
		return "json"
	}
	return "table"
}

func (o *output) Type() string { return "format" }

func (o *output) Set(s string) error {
	switch s {
	case "json":
		o.json = true
	case "table", "text":
		o.json = false
	default:
		return fmt.Errorf("want table or json")
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints columns as wide as their widest cell. A column whose head
// begins with ">" stands to the right.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) row(cells ...any) {
	r := make([]string, len(cells))
	for i, c := range cells {
		switch v := c.(type) {
		case *int64:
			r[i] = optional(v)
		default:
			r[i] = fmt.Sprint(v)
		}
		if r[i] == "" {
			r[i] = "-"
		}
	}
	t.rows = append(t.rows, r)
}

func (t *table) write(w io.Writer) error {
	width := make([]int, len(t.head))
	right := make([]bool, len(t.head))
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = strings.TrimPrefix(h, ">")
		right[i] = head[i] != h
	}
	all := append([][]string{head}, t.rows...)
	for _, r := range all {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, r := range all {
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			switch {
			case right[i]:
				b.WriteString(pad + c)
			case i == len(r)-1:
				b.WriteString(c)
			default:
				b.WriteString(c + pad)
			}
			if i < len(r)-1 {
				b.WriteString("  ")
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// optional prints a number that may be unknown.
func optional(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func ints(ids []int32) string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = strconv.Itoa(int(id))
	}
	return strings.Join(s, ",")
}

// plural is "1 record", "2 records".
func plural[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// tally counts what became of several things that were asked for at once, and
// tells failures on stderr as they come.
type tally struct {
	in       IO
	ok, bad  int
	firstBad string
}

func (t *tally) failed(format string, args ...any) {
	t.bad++
	fmt.Fprintf(t.in.Stderr, "weir: "+format+"\n", args...)
}

// err is nil, or says by its code whether all or some failed.
func (t *tally) err() error {
	switch {
	case t.bad == 0:
		return nil
	case t.ok == 0:
		return &Failure{Code: ExitFailed}
	}
	return &Failure{Code: ExitPartly}
}

// dropEmpty leaves out columns in which no row has anything.
func (t *table) dropEmpty() {
	if len(t.rows) == 0 {
		return
	}
	var keep []int
	for i := range t.head {
		for _, r := range t.rows {
			if r[i] != "-" {
				keep = append(keep, i)
				break
			}
		}
	}
	cut := func(r []string) []string {
		out := make([]string, 0, len(keep))
		for _, i := range keep {
			out = append(out, r[i])
		}
		return out
	}
	t.head = cut(t.head)
	for i, r := range t.rows {
		t.rows[i] = cut(r)
	}
}
