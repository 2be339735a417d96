package kafkatools

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// arguments is a command line read as argparse4j reads it: flags with their
// beginnings, --name=value, values that are negative numbers, groups of flags of
// which one must be given, commands with flags of their own.
type arguments struct {
	prog     string
	about    string
	all      []*argument
	commands []*arguments // at most one level
	parent   *arguments

	chosen *arguments // the command that was given
}

// argument is one flag, or a word that is none.
type argument struct {
	name    string // --topic; a word without hyphens is positional
	metavar string
	dest    string // what a positional is called
	kind    string // Long, Integer, Double, String; empty: no value
	many    bool   // takes one value or more
	need    bool
	oneOf   string // group of which exactly one must be given
	choices []string
	def     string
	help    string
	hidden  bool

	given  bool
	values []string
}

func (a *arguments) add(f argument) *argument {
	f2 := &f
	a.all = append(a.all, f2)
	return f2
}

// command adds a command.
func (a *arguments) command(name, about string) *arguments {
	c := &arguments{prog: name, about: about, parent: a}
	a.commands = append(a.commands, c)
	return c
}

func (f *argument) positional() bool { return !strings.HasPrefix(f.name, "-") }

// argError is a wrong command line, told with the usage of whose flags it was.
type argError struct {
	of      *arguments
	message string
}

func (e *argError) Error() string { return e.message }

// helpAsked is -h.
type helpAsked struct{ of *arguments }

func (e *helpAsked) Error() string { return "help" }

var negative = regexp.MustCompile(`^-(\d+|\d*\.\d+)$`)

func flagLike(s string) bool {
	return len(s) > 1 && s[0] == '-' && !negative.MatchString(s) && !strings.Contains(s, " ")
}

func (a *arguments) fail(format string, args ...any) error {
	return &argError{a, fmt.Sprintf(format, args...)}
}

// find gives the flag of a name or of a name's beginning.
func (a *arguments) find(name string) (*argument, error) {
	var near []string
	var found *argument
	for _, f := range a.all {
		if f.positional() {
			continue
		}
		if f.name == name {
			return f, nil
		}
		if strings.HasPrefix(name, "--") && strings.HasPrefix(f.name, name) {
			near, found = append(near, f.name), f
		}
	}
	if len(near) > 1 {
		slices.Sort(near)
		return nil, a.fail("ambiguous option: %s could match %s", name, strings.Join(near, ", "))
	}
	return found, nil
}

// parse reads a command line. It may be called once.
func (a *arguments) parse(args []string) error {
	var words []*argument
	for _, f := range a.all {
		if f.positional() {
			words = append(words, f)
		}
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !flagLike(w) {
			switch {
			case len(words) > 0:
				if err := a.take(words[0], w); err != nil {
					return err
				}
				words = words[1:]
				continue
			case len(a.commands) > 0:
				j := slices.IndexFunc(a.commands, func(c *arguments) bool { return c.prog == w })
				if j < 0 {
					var names []string
					for _, c := range a.commands {
						names = append(names, "'"+c.prog+"'")
					}
					return a.fail("invalid choice: '%s' (choose from %s)", w, strings.Join(names, ", "))
				}
				a.chosen = a.commands[j]
				if err := a.chosen.parse(args[i+1:]); err != nil {
					return err
				}
				return a.required()
			}
			return a.fail("unrecognized arguments: '%s'", w)
		}
		if w == "-h" || w == "--help" {
			return &helpAsked{a}
		}
		name, value, eq := strings.Cut(w, "=")
		f, err := a.find(name)
		if err != nil {
			return err
		}
		if f == nil {
			return a.fail("unrecognized arguments: '%s'", w)
		}
		if f.oneOf != "" {
			for _, o := range a.all {
				if o != f && o.oneOf == f.oneOf && o.given {
					return a.fail("argument %s: not allowed with argument %s", f.name, o.name)
				}
			}
		}
		f.given = true
		if f.kind == "" {
			if eq {
				return a.fail("argument %s: ignore implicit argument '%s'", f.name, value)
			}
			continue
		}
		f.values = nil
		if eq {
			if err := a.take(f, value); err != nil {
				return err
			}
			continue
		}
		for i+1 < len(args) && !flagLike(args[i+1]) && (f.many || len(f.values) == 0) {
			i++
			if err := a.take(f, args[i]); err != nil {
				return err
			}
		}
		if len(f.values) == 0 && f.many {
			return a.fail("argument %s: expected 1 argument(s)", f.name)
		}
		if len(f.values) == 0 {
			return a.fail("argument %s: expected one argument", f.name)
		}
	}
	if len(a.commands) > 0 {
		return a.fail("too few arguments")
	}
	return a.required()
}

func (a *arguments) take(f *argument, v string) error {
	var err error
	switch f.kind {
	case "Long":
		_, err = strconv.ParseInt(v, 10, 64)
	case "Integer":
		_, err = strconv.ParseInt(v, 10, 32)
	case "Double":
		_, err = strconv.ParseFloat(strings.TrimSpace(v), 64)
	}
	if err != nil {
		return a.fail("argument %s: could not convert '%s' to %s (For input string: \"%s\")", f.label(), v, f.kind, v)
	}
	if len(f.choices) > 0 && !slices.Contains(f.choices, v) {
		return a.fail("argument %s: invalid choice: '%s' (choose from {%s})", f.label(), v, strings.Join(f.choices, ","))
	}
	f.given = true
	f.values = append(f.values, v)
	return nil
}

func (f *argument) label() string {
	if f.positional() {
		return f.metavar
	}
	return f.name
}

func (a *arguments) required() error {
	groups := map[string][]string{}
	met := map[string]bool{}
	for _, f := range a.all {
		if f.need && !f.given {
			if f.positional() {
				return a.fail("too few arguments")
			}
			return a.fail("argument %s is required", f.name)
		}
		if f.oneOf != "" {
			groups[f.oneOf] = append(groups[f.oneOf], f.name)
			met[f.oneOf] = met[f.oneOf] || f.given
		}
	}
	for _, f := range a.all {
		if f.oneOf != "" && !met[f.oneOf] {
			return a.fail("one of the arguments %s is required", strings.Join(groups[f.oneOf], " "))
		}
	}
	return nil
}

// text is the value, or the default.
func (f *argument) text() string {
	if len(f.values) == 0 {
		return f.def
	}
	return f.values[len(f.values)-1]
}

// long is the value of a Long or Integer, which parse has checked.
func (f *argument) long() int64 {
	n, _ := strconv.ParseInt(f.text(), 10, 64)
	return n
}

// double is the value of a Double.
func (f *argument) double() float64 {
	v, _ := strconv.ParseFloat(strings.TrimSpace(f.text()), 64)
	return v
}

const helpWidth = 75

// form is the flag as the usage line shows it.
func (f *argument) form() string {
	s := f.name
	switch {
	case f.positional():
		s = f.metavar
	case f.kind != "":
		s += " " + f.meta()
	}
	return s
}

func (f *argument) meta() string {
	m := f.metavar
	if f.many {
		m += " [" + m + " ...]"
	}
	return m
}

// path is the program's name with the command.
func (a *arguments) path() string {
	if a.parent != nil {
		return a.parent.path() + " " + a.prog
	}
	return a.prog
}

// usage is the usage in its lines, each ended.
func (a *arguments) usage() string {
	parts := []string{"[-h]"}
	groups := map[string][]string{}
	var order []string
	for _, f := range a.all {
		switch {
		case f.positional() || f.hidden:
		case f.oneOf != "":
			if groups[f.oneOf] == nil {
				order = append(order, f.oneOf)
			}
			groups[f.oneOf] = append(groups[f.oneOf], f.form())
		case f.need:
			parts = append(parts, f.form())
		default:
			parts = append(parts, "["+f.form()+"]")
		}
	}
	for _, g := range order {
		forms := groups[g]
		forms[0] = "(" + forms[0]
		forms[len(forms)-1] += ")"
		for i := range forms[:len(forms)-1] {
			forms[i] += " |"
		}
		parts = append(parts, forms...)
	}
	for _, f := range a.all {
		if f.positional() {
			if f.need {
				parts = append(parts, f.form())
			} else {
				parts = append(parts, "["+f.form()+"]")
			}
		}
	}
	if len(a.commands) > 0 {
		var names []string
		for _, c := range a.commands {
			names = append(names, c.prog)
		}
		parts = append(parts, "{"+strings.Join(names, ",")+"}", "...")
	}
	head := "usage: " + a.path()
	if one := head + " " + strings.Join(parts, " "); len(one) <= helpWidth {
		return one + "\n"
	}
	indent := strings.Repeat(" ", len("usage: "))
	var b strings.Builder
	at := head
	if len(head)+1 > helpWidth/3 {
		b.WriteString(head + "\n")
		at = ""
	} else {
		indent = strings.Repeat(" ", len(head))
	}
	for _, p := range parts {
		if at != "" && at != indent && len(at)+1+len(p) > helpWidth {
			b.WriteString(at + "\n")
			at = ""
		}
		if at == "" {
			at = indent[:len(indent)-1]
			if len(head)+1 > helpWidth/3 {
				at = indent[:len(indent)-1]
			} else {
				at = indent
			}
		}
		at += " " + p
	}
	b.WriteString(at + "\n")
	return b.String()
}

// message is a wrong command line as it is told.
func (e *argError) text() string {
	return e.of.usage() + justified(e.of.path()+": error: "+e.message+"\n", helpWidth)
}

// help is the whole help.
func (a *arguments) helpText() string {
	var b strings.Builder
	b.WriteString(a.usage())
	if a.about != "" {
		b.WriteString("\n" + justified(a.about, helpWidth) + "\n")
	}
	row := func(left, help string) {
		b.WriteString("  " + left)
		if help == "" {
			b.WriteString("\n")
			return
		}
		if len(left)+2 > 23 {
			b.WriteString("\n" + strings.Repeat(" ", 25))
		} else {
			b.WriteString(strings.Repeat(" ", 23-len(left)))
		}
		b.WriteString(strings.ReplaceAll(justified(help, helpWidth-25), "\n", "\n"+strings.Repeat(" ", 25)) + "\n")
	}
	if len(a.commands) > 0 {
		b.WriteString("\npositional arguments:\n")
		var names []string
		for _, c := range a.commands {
			names = append(names, c.prog)
		}
		row("{"+strings.Join(names, ",")+"}", "")
		for _, c := range a.commands {
			row("  "+c.prog, c.about)
		}
	}
	first := true
	for _, f := range a.all {
		if f.positional() {
			if first {
				b.WriteString("\npositional arguments:\n")
				first = false
			}
			row(f.metavar, f.help)
		}
	}
	b.WriteString("\noptional arguments:\n")
	row("-h, --help", "show this help message and exit")
	for _, f := range a.all {
		if f.positional() || f.hidden {
			continue
		}
		help := f.help
		if f.def != "" {
			help += " (default: " + f.def + ")"
		}
		row(f.form(), help)
	}
	return b.String()
}
