package kafkatools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// options is a set of flags read as joptsimple reads them: --name value,
// --name=value, -name, single letters in a row, and -- ends the flags. The
// words that are no flags are kept in rest.
type options struct {
	abbreviate bool // take a name's beginning, where only one name begins so
	all        []*option
	byName     map[string]*option
	rest       []string
}

// option is one flag and what the command line said of it.
type option struct {
	names []string
	help  string
	kind  string // of the value as the help shows it, "String" or "Integer"; empty: no value
	arg   string // what the value is, for the help
	maybe bool   // the value may be left out
	def   string // used when the flag is not given; shown in the help

	given  bool
	values []string
}

// flag adds a flag without a value.
func (o *options) flag(name, help string) *option { return o.add(&option{help: help}, name) }

// value adds a flag with a value. kind is String, Integer, Long or Double.
func (o *options) value(name, kind, arg, help string) *option {
	return o.add(&option{kind: kind, arg: arg, help: help}, name)
}

func (o *options) add(f *option, name string) *option {
	if o.byName == nil {
		o.byName = map[string]*option{}
	}
	f.names = strings.Fields(name)
	for _, n := range f.names {
		if o.byName[n] != nil {
			panic("BUG: flag " + n + " twice")
		}
		o.byName[n] = f
	}
	o.all = append(o.all, f)
	return f
}

// withDefault sets what the flag is when it is not given.
func (f *option) withDefault(v string) *option { f.def = v; return f }

// optional lets the value be left out.
func (f *option) optional() *option { f.maybe = true; return f }

// optionError is what joptsimple says of a wrong command line.
type optionError struct{ class, message string }

func (e *optionError) Error() string { return e.message }

func unrecognized(name string) error {
	return &optionError{"joptsimple.UnrecognizedOptionException", name + " is not a recognized option"}
}

func (o *options) find(name string) *option {
	if f := o.byName[name]; f != nil || !o.abbreviate || name == "" {
		return f
	}
	var found *option
	for n, f := range o.byName {
		if strings.HasPrefix(n, name) {
			if found != nil {
				return nil
			}
			found = f
		}
	}
	return found
}

// parse reads a command line. It may be called once.
func (o *options) parse(args []string) error {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			o.rest = append(o.rest, args[i+1:]...)
			return nil
		}
		if a == "-" || !strings.HasPrefix(a, "-") {
			o.rest = append(o.rest, a)
			continue
		}
		long := strings.HasPrefix(a, "--")
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		f := o.find(name)
		if f == nil && long {
			return unrecognized(name)
		}
		if f == nil {
			// Letters in a row: the first that wants a value takes the rest of the word.
			word := a[1:]
			for at, r := range word {
				one := string(r)
				f := o.find(one)
				if f == nil {
					return unrecognized(one)
				}
				tail := word[at+len(one):]
				if f.kind != "" && tail != "" {
					f.take(tail)
					break
				}
				n, err := f.read("", args[i+1:], o)
				if err != nil {
					return err
				}
				i += n
			}
			continue
		}
		n, err := f.read(value, args[i+1:], o)
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

func (f *option) take(v string) {
	f.given = true
	f.values = append(f.values, v)
}

// read notes one occurrence and says how many of the words that follow it took.
func (f *option) read(value string, next []string, o *options) (int, error) {
	f.given = true
	switch {
	case f.kind == "":
		return 0, nil
	case value != "":
		f.take(value)
		return 0, nil
	case f.maybe:
		if len(next) > 0 && (next[0] == "-" || !strings.HasPrefix(next[0], "-")) {
			f.take(next[0])
			return 1, nil
		}
		return 0, nil
	case len(next) == 0:
		name := f.names[0]
		if len(f.names) > 1 {
			name = "[" + strings.Join(slices.Sorted(slices.Values(f.names)), ", ") + "]"
		}
		return 0, &optionError{"joptsimple.OptionMissingRequiredArgumentException", "Option " + name + " requires an argument"}
	}
	f.take(next[0])
	return 1, nil
}

// one is the flag's value or its default; it errs when several were given.
func (f *option) one() (string, error) {
	switch len(f.values) {
	case 0:
		return f.def, nil
	case 1:
		return f.values[0], nil
	}
	return "", &optionError{"joptsimple.MultipleArgumentsForOptionException", "Found multiple arguments for option " + f.names[0] + ", but you asked for only one"}
}

// integer is the value as a number of the given bits.
func (f *option) integer(bits int) (int64, error) {
	s, err := f.one()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return 0, conversion(s, f.names[0])
	}
	return n, nil
}

// integers are all values as numbers.
func (f *option) integers() ([]int32, error) {
	var out []int32
	for _, s := range f.values {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return nil, conversion(s, f.names[0])
		}
		out = append(out, int32(n))
	}
	return out, nil
}

func conversion(value, name string) error {
	return &optionError{"joptsimple.OptionArgumentConversionException", "Cannot parse argument '" + value + "' of option " + name}
}

// refused says which of others was given beside used, as Kafka's tools do; empty
// when none was.
func refused(used *option, others ...*option) string {
	if !used.given {
		return ""
	}
	for _, f := range others {
		if f.given {
			return fmt.Sprintf("Option %q can't be used with option %q", "["+used.label()+"]", "["+f.label()+"]")
		}
	}
	return ""
}

func (f *option) label() string { return strings.Join(f.names, ", ") }

// missing names the first of wanted that was not given; empty when all were.
func missing(wanted ...*option) string {
	for _, f := range wanted {
		if !f.given {
			return fmt.Sprintf("Missing required argument %q", "["+f.label()+"]")
		}
	}
	return ""
}

// table is the help in joptsimple's two columns.
func (o *options) table() string {
	const overall, gap = 80, 2
	type row struct{ left, right string }
	var rows []row
	hyphens := func(n string) string {
		if len(n) == 1 {
			return "-" + n
		}
		return "--" + n
	}
	all := slices.Clone(o.all)
	slices.SortFunc(all, func(a, b *option) int { return cmp.Compare(a.names[0], b.names[0]) })
	for _, f := range all {
		names := slices.Clone(f.names)
		slices.Sort(names)
		for i := range names {
			names[i] = hyphens(names[i])
		}
		left := strings.Join(names, ", ")
		if f.kind != "" {
			open, end := " <", ">"
			if f.maybe {
				open, end = " [", "]"
			}
			left += open + f.kind
			if f.arg != "" {
				left += ": " + f.arg
			}
			left += end
		}
		right := f.help
		if f.def != "" {
			right = strings.TrimSpace(right + " (default: " + f.def + ")")
		}
		rows = append(rows, row{left, right})
	}
	width, wide := len("Option"), len("Description")
	for _, r := range rows {
		width = max(width, len(r.left))
		for l := range strings.SplitSeq(r.right, "\n") {
			wide = max(wide, len(l))
		}
	}
	width = min((overall-gap)/2, width)
	wide = min((overall-gap)/2, wide, overall-width-gap)
	var b strings.Builder
	print := func(left, right string) {
		ls, rs := pieces(left, width), pieces(right, wide)
		for i := range max(len(ls), len(rs)) {
			l, r := "", ""
			if i < len(ls) {
				l = ls[i]
			}
			if i < len(rs) {
				r = rs[i]
			}
			fmt.Fprintf(&b, "%-*s%-*s\n", width+gap, l, wide, r)
		}
	}
	print("Option", "Description")
	print("------", "-----------")
	for _, r := range rows {
		print(r.left, r.right)
	}
	return b.String()
}

// names are all names, sorted; for tests and for hints.
func (o *options) names() []string { return slices.Sorted(maps.Keys(o.byName)) }
