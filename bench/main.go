package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == floorArg {
		return floorServe(args[1:])
	}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	var targets []target
	fs.Func("t", "`NAME=HOST:PORT[@PID]`, once per broker; the first is the base", func(s string) error {
		t, err := parseTarget(s)
		targets = append(targets, t)
		return err
	})
	rounds := fs.Int("r", 3, "rounds that count")
	scale := fs.Float64("s", 1, "times the records of each case")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "bench -t NAME=HOST:PORT[@PID]... [-r ROUNDS] [-s SCALE] [CASE...]")
		fs.PrintDefaults()
		fmt.Fprintln(fs.Output(), "Cases (all when none is named):")
		for _, c := range cases {
			fmt.Fprintf(fs.Output(), "  %-16s %s\n", c.name, c.what)
		}
		fmt.Fprintln(fs.Output(), "bench [-s SCALE] floor: what reading, writing to files and answering cost here without any broker")
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() == 1 && fs.Arg(0) == "floor" {
		return floor(ctx, *scale)
	}
	if len(targets) == 0 || *rounds < 1 || *scale <= 0 {
		fs.Usage()
		return errors.New("name at least one broker with -t; rounds and scale are above 0")
	}
	chosen := cases
	if fs.NArg() > 0 {
		chosen = nil
		for _, name := range fs.Args() {
			i := slices.IndexFunc(cases, func(c benchCase) bool { return c.name == name })
			if i < 0 {
				return fmt.Errorf("no case %q: bench -h lists them", name)
			}
			chosen = append(chosen, cases[i])
		}
	}
	fmt.Println("| case | figure | " + strings.Join(names(targets), " | ") + " | ratio |")
	fmt.Println("|---|---|" + strings.Repeat("---|", len(targets)+1))
	for _, c := range chosen {
		if err := c.compare(ctx, targets, *rounds, *scale); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func names(ts []target) []string {
	var out []string
	for _, t := range ts {
		out = append(out, t.name)
	}
	return out
}
