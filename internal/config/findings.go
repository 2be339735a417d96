package config

import (
	"errors"
	"fmt"
	"strings"
)

// Severity grades a Finding.
type Severity int8

// The grades, the worst first.
const (
	Bad   Severity = iota // the broker would not start
	Doubt                 // it would, but not with what was probably meant
	Note                  // worth knowing
)

func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// Finding is one thing `weir config check` has to say.
type Finding struct {
	Severity Severity
	Key      string // empty when it belongs to none
	Where    string // "server.properties line 3", or empty
	Message  string // a sentence
}

// Report is the result of Check: the worst findings first, each grade in the
// order of the file.
type Report struct {
	Findings []Finding
	Settings int // keys that were given
}

// OK says that the broker would start.
func (r Report) OK() bool { return r.count(Bad) == 0 }

func (r Report) count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// String is a line for each finding and one that sums up.
func (r Report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s", f.Severity.String())
		if f.Where != "" {
			fmt.Fprintf(&b, "%s: ", f.Where)
		}
		b.WriteString(f.Message + "\n")
	}
	verdict := "The broker would start with this configuration."
	if !r.OK() {
		verdict = "The broker would not start with this configuration."
	}
	fmt.Fprintf(&b, "%s: %s, %s, %s. %s\n", plural(r.Settings, "setting"), plural(r.count(Bad), "error"), plural(r.count(Doubt), "warning"), plural(r.count(Note), "note"), verdict)
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Check looks at a configuration as Load does and says everything about it: what
// would stop a start, what has no effect, what is probably not meant, and which
// settings only repeat a default.
func Check(in Source) Report {
	s, warnings, err := Load(in)
	settings, _, _, _ := collect(in)
	r := Report{Settings: len(settings)}
	for _, e := range parts(err) {
		f := Finding{Severity: Bad, Message: e.Error()}
		var bad *ValueError
		if errors.As(e, &bad) {
			f.Key, f.Where = bad.Key, bad.Where
			plain := *bad
			plain.Where = ""
			f.Message = plain.Error()
		}
		r.Findings = append(r.Findings, f)
	}
	for _, severity := range []Severity{Doubt, Note} {
		for _, w := range warnings {
			if severityOf(w.Kind) == severity {
				r.Findings = append(r.Findings, Finding{severity, w.Key, w.Where, w.Message})
			}
		}
	}
	for _, set := range settings {
		k := brokerIndex[set.key]
		if s == nil || k == nil || k.Null || s.values[k.index].raw != k.def.raw || k.Status != Effective {
			continue
		}
		r.Findings = append(r.Findings, Finding{Note, set.key, set.where, set.key + "=" + k.Default + " is the default."})
	}
	return r
}

func severityOf(k Kind) Severity {
	switch k {
	case UnknownKey, Replaced, Advice:
		return Doubt
	}
	return Note
}

// parts takes a joined error apart.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// Summary is the warnings of a start in few lines: unknown keys, twins and advice
// in a line each, and one line for all keys that have no effect and one for those
// of things not there yet.
func Summary(warnings []Warning) []string {
	var lines, none, later []string
	for _, w := range warnings {
		switch w.Kind {
		case Ineffective:
			none = append(none, w.Key)
		case Later:
			later = append(later, w.Key)
		default:
			lines = append(lines, w.String())
		}
	}
	if len(none) > 0 {
		lines = append(lines, "Without effect here: "+strings.Join(none, ", ")+". `weir config explain KEY` says why.")
	}
	if len(later) > 0 {
		lines = append(lines, "Accepted, but not there yet: "+strings.Join(later, ", ")+". `weir config explain KEY` says what.")
	}
	return lines
}
