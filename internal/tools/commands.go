package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	ExitOK     = 0 // done
	ExitFailed = 1 // the thing asked for failed
	ExitUsage  = 2 // usage or configuration
	ExitPartly = 3 // partly done
)

const exitHelp = `
Exit codes: 0 done, 1 the thing asked for failed, 2 usage or configuration, 3 partly done.`

// IO is all that a command sees of the process it runs in.
type IO struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    []string // KEY=value, as os.Environ gives it
}

// Failure is an error that knows its exit code.
type Failure struct {
	Code int
	Err  error // one sentence that says what to try; nil when all was told already
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

func usagef(format string, args ...any) error {
	return &Failure{ExitUsage, fmt.Errorf(format, args...)}
}

func failf(format string, args ...any) error {
	return &Failure{ExitFailed, fmt.Errorf(format, args...)}
}

// ExitCode is the process exit code for what a command returned.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Code
	}
	return ExitFailed
}

// Execute runs root with the process's arguments (or those given to SetArgs),
// prints the error, if any, as one line on stderr and returns the exit code.
// Errors that cobra finds itself, such as an unknown command, are usage errors.
func Execute(ctx context.Context, root *cobra.Command, in IO) int {
	root.SilenceErrors, root.SilenceUsage, root.DisableSuggestions = true, true, true
	root.SetFlagErrorFunc(flagError)
	root.SetIn(in.Stdin)
	root.SetOut(in.Stdout)
	root.SetErr(in.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	f, ok := errors.AsType[*Failure](err)
	if m := unknownCommand.FindStringSubmatch(err.Error()); !ok && m != nil {
		say := "; " + root.Name() + " --help lists the commands"
		if near := nearest(m[1], subcommands(root)); near != "" && m[2] == root.Name() {
			say = ": did you mean " + near + "?"
		}
		f, ok = &Failure{ExitUsage, fmt.Errorf("unknown command %q for %s%s", m[1], m[2], say)}, true
	}
	if !ok {
		f = &Failure{ExitFailed, err}
	}
	if f.Err != nil {
		fmt.Fprintf(in.Stderr, "weir: %v\n", f.Err)
	}
	return f.Code
}

// unknownCommand is cobra's sentence for a word below the root that is none.
var unknownCommand = regexp.MustCompile(`^unknown command "(.*)" for "(.*)"$`)

func subcommands(c *cobra.Command) (names []string) {
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			names = append(names, s.Name())
		}
	}
	return names
}

func flagError(c *cobra.Command, err error) error {
	return usagef("%w; see %s --help", err, c.CommandPath())
}

// Commands returns the commands to mount under weir.
func Commands(in IO) []*cobra.Command {
	cmds := []*cobra.Command{
		topicCommand(in),
		groupCommand(in),
		produceCommand(in),
		consumeCommand(in),
		perfCommand(in),
		configCommand(in),
		logCommand(in),
	}
	for _, c := range cmds {
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetFlagErrorFunc(flagError)
	}
	return cmds
}

// family is a command that only holds others. It takes its arguments as they
// come: flags belong behind the command's name, and a wrong name must not be
// told as a wrong flag.
func family(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  short + "." + exitHelp,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "help" || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			names := subcommands(c)
			has := strings.Join(names, ", ")
			word := firstWord(args)
			if word == "" {
				flag, _, _ := strings.Cut(args[0], "=")
				return usagef("unknown flag %s for %s: say first what to do, one of %s", flag, c.CommandPath(), has)
			}
			if near := nearest(word, names); near != "" {
				return usagef("unknown command %q for %s: did you mean %s? It has %s", word, c.CommandPath(), near, has)
			}
			return usagef("unknown command %q for %s: it has %s", word, c.CommandPath(), has)
		},
		Args:               cobra.ArbitraryArgs,
		DisableFlagParsing: true,
	}
	for _, s := range subs {
		s.SilenceErrors, s.SilenceUsage = true, true
		s.Long = strings.TrimRight(s.Long, "\n") + "\n" + exitHelp
		c.AddCommand(s)
	}
	return c
}

// firstWord is the first argument that is neither a flag nor, as far as can be
// told without knowing the flags, the value of one.
func firstWord(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case !strings.HasPrefix(a, "-"):
			return a
		case !strings.Contains(a, "=") && (len(a) == 2 || strings.HasPrefix(a, "--")):
			i++
		}
	}
	return ""
}

// nearest is the name that was probably meant, or empty when none is near: the
// only one that begins so, or the one with the fewest letters to change.
func nearest(given string, names []string) string {
	best, cost, begin := "", len(given)/3+1, []string(nil)
	for _, n := range names {
		if d := distance(given, n); d < cost {
			best, cost = n, d
		}
		if len(given) > 1 && strings.HasPrefix(n, given) {
			begin = append(begin, n)
		}
	}
	if best == "" && len(begin) == 1 {
		return begin[0]
	}
	return best
}

// distance is the number of letters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(diag+cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// WantArgs refuses a number of arguments outside [min, max]; max < 0: no bound.
func WantArgs(min, max int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < min:
			return usagef("%s needs %s; see %s --help", c.CommandPath(), what, c.CommandPath())
		case max >= 0 && len(args) > max:
			return usagef("%s takes %s, and %q is too much; see %s --help", c.CommandPath(), what, args[max], c.CommandPath())
		}
		return nil
	}
}
