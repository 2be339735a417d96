// Command weir is the broker, its tools, its lab and its monitoring in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/kafkatools"
	"github.com/weirmq/weir/internal/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals...)
	in := tools.IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
	var code int
	if name, args, ok := kafkaTool(os.Args); ok {
		code = kafkatools.Run(ctx, name, args, in)
	} else {
		code = tools.Execute(ctx, root(in), in)
	}
	stop()
	os.Exit(code)
}

func root(in tools.IO) *cobra.Command {
	c := &cobra.Command{
		Use:     "weir",
		Short:   "Holds event streams and measures their flow",
		Version: version(),
		Long: `weir is a broker that speaks Kafka's protocol, in one binary, with its tools.

  weir serve                                   start a broker on 127.0.0.1:9092
  weir topic create orders --partitions 3      make a topic
  echo hello | weir produce orders             write
  weir consume orders -o beginning -e          read to the end
  weir kafka-topics --help                     Kafka's own tools, by their names; docs/tools.md

Exit codes: 0 done, 1 the thing asked for failed, 2 usage or configuration, 3 partly done.`,
	}
	c.CompletionOptions.HiddenDefaultCmd = true
	c.AddCommand(serveCommand(in))
	c.AddCommand(tools.Commands(in)...)
	c.AddCommand(linkToolsCommand(in))
	return c
}

// version is the module's, with the commit where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}

// secondSignal tells when another stop signal comes while the broker stops.
func secondSignal() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, stopSignals...)
	return c, func() { signal.Stop(c) }
}
