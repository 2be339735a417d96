package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir"
	"github.com/weirmq/weir/internal/tools"
)

func serveCommand(in tools.IO) *cobra.Command {
	var overrides []string
	var dataDir, level, format string
	c := &cobra.Command{
		Use:   "serve [server.properties] [--override key=value]... [--data-dir DIR]",
		Short: "Run a broker",
		Long: `Run a broker: with no arguments one node, Kafka on 127.0.0.1:9092, HTTP on
127.0.0.1:9192, data in ./weir-data.

Settings are Kafka's. A flag is stronger than the environment (KAFKA_NUM_PARTITIONS=12
stands for num.partitions=12), the environment than the file, the file than the
default. "weir config explain KEY" tells what a key does, "weir config check FILE"
what a file would do.

SIGTERM and SIGINT stop the broker in order: requests in flight are answered, logs
flushed and marked clean. A second signal ends it at once.

Exit codes: 0 stopped in order, 1 the broker could not start or failed, 2 usage or
configuration.`,
		Args: tools.WantArgs(0, 1, "one properties file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logger(in, level, format)
			if err != nil {
				return err
			}
			o := weir.Options{DataDir: dataDir, Env: in.Env, Overrides: overrides, StandardPorts: true, Log: log}
			if len(args) == 1 {
				if o.Properties, err = os.ReadFile(args[0]); err != nil {
					return &tools.Failure{Code: tools.ExitUsage, Err: fmt.Errorf("configuration: %w: name a .properties file, or none for the defaults", err)}
				}
				o.FileName = args[0]
			}
			return serve(cmd.Context(), in, o)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&overrides, "override", nil, "set a configuration key, as `key=value`; may be repeated")
	f.StringVar(&dataDir, "data-dir", "./weir-data", "`folder` for the data, where log.dirs is not set")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&format, "log-format", "text", "text or json")
	return c
}

func logger(in tools.IO, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, &tools.Failure{Code: tools.ExitUsage, Err: fmt.Errorf("--log-level %s: use debug, info, warn or error", level)}
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(in.Stderr, &slog.HandlerOptions{Level: l})), nil
	case "json":
		return slog.New(slog.NewJSONHandler(in.Stderr, &slog.HandlerOptions{Level: l})), nil
	}
	return nil, &tools.Failure{Code: tools.ExitUsage, Err: fmt.Errorf("--log-format %s: use text or json", format)}
}

func serve(ctx context.Context, in tools.IO, o weir.Options) error {
	begun := time.Now()
	s, err := weir.Start(ctx, o)
	if err != nil {
		if _, ok := errors.AsType[*weir.ConfigError](err); ok {
			return &tools.Failure{Code: tools.ExitUsage, Err: err}
		}
		return err
	}
	announce(in, s, time.Since(begun))
	select {
	case <-ctx.Done():
		fmt.Fprintln(in.Stdout, "stopping: answering what is in flight, flushing the logs")
	case err = <-s.Failed():
	}
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	again, release := secondSignal()
	defer release()
	for stopping := time.Now(); ; {
		select {
		case cerr := <-done:
			return errors.Join(err, cerr)
		case <-again:
			if time.Since(stopping) < sameSignal {
				continue
			}
			return errors.Join(err, errors.New("stopped at a second signal: the next start checks the logs' ends"))
		}
	}
}

// sameSignal is how soon a second signal is taken for the first once more: timeout(1)
// and some supervisors signal the process and then its whole group.
const sameSignal = 500 * time.Millisecond

// announce prints where the broker is, where data lies, and what to try next.
func announce(in tools.IO, s *weir.Server, took time.Duration) {
	var b strings.Builder
	for _, a := range s.Addrs() {
		fmt.Fprintf(&b, "kafka    %s (%s)\n", a.Addr, a.Listener)
	}
	if a := s.HTTPAddr(); a != "" {
		fmt.Fprintf(&b, "http     http://%s/\n", a)
	}
	data := s.DataDirs()
	for _, d := range s.FailedDirs() {
		data = append(data, d+" (left out)")
	}
	fmt.Fprintf(&b, "data     %s\n", strings.Join(data, ", "))
	fmt.Fprintf(&b, "ready    in %d ms, node %d of cluster %s\n", took.Milliseconds(), s.NodeID(), s.ClusterID())
	bootstrap := ""
	if s.Addr() != "127.0.0.1:9092" {
		bootstrap = " --bootstrap-server " + s.Addr()
	}
	fmt.Fprintf(&b, "try      echo hello | weir produce%s greetings && weir consume%s greetings -o beginning -e\n", bootstrap, bootstrap)
	fmt.Fprint(in.Stdout, b.String())
}
