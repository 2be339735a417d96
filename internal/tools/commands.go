package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	root.SetIn(in.Stdin)
	root.SetOut(in.Stdout)
	root.SetErr(in.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok && strings.HasPrefix(err.Error(), "unknown command") {
		f, ok = &Failure{ExitUsage, fmt.Errorf("%s; weir --help lists the commands", strings.Join(strings.Fields(err.Error()), " "))}, true
	}
	if !ok {
		f = &Failure{ExitFailed, err}
	}
	if f.Err != nil {
		fmt.Fprintf(in.Stderr, "weir: %v\n", f.Err)
	}
	return f.Code
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
		configCommand(in),
		logCommand(in),
	}
	for _, c := range cmds {
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetFlagErrorFunc(flagError)
	}
	return cmds
}

// family is a command that only holds others.
func family(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  short + "." + exitHelp,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var names []string
			for _, s := range c.Commands() {
				names = append(names, s.Name())
			}
			return usagef("unknown command %q for %s: it has %s", args[0], c.CommandPath(), strings.Join(names, ", "))
		},
		Args: cobra.ArbitraryArgs,
	}
	for _, s := range subs {
		s.SilenceErrors, s.SilenceUsage = true, true
		s.Long = strings.TrimRight(s.Long, "\n") + "\n" + exitHelp
		c.AddCommand(s)
	}
	return c
}

// wantArgs refuses a number of arguments outside [min, max]; max < 0: no bound.
func wantArgs(min, max int, what string) cobra.PositionalArgs {
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
