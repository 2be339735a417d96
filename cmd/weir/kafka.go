package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/kafkatools"
	"github.com/weirmq/weir/internal/tools"
)

// kafkaTool says which of Kafka's tools the process was started as: under its
// name (a link to the binary), or as the first argument.
func kafkaTool(args []string) (name string, rest []string, ok bool) {
	for i := range min(2, len(args)) {
		if name, ok := kafkatools.Tool(args[i]); ok {
			return name, args[i+1:], true
		}
	}
	return "", nil, false
}

func linkToolsCommand(in tools.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "link-tools DIR",
		Short: "Link Kafka's tools to this binary",
		Long: `Make a link to this binary for each of Kafka's tools, as kafka-topics and as
kafka-topics.sh. Links that are there already are made anew; other files are left
alone, and then the command exits 1.`,
		Args: tools.WantArgs(1, 1, "a folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			n, err := linkTools(args[0], self)
			if err == nil {
				fmt.Fprintf(in.Stdout, "%d links in %s\n", n, args[0])
			}
			return err
		},
	}
}

// linkTools makes the links and counts them.
func linkTools(dir, target string) (n int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("cannot make the folder for the links: %w", err)
	}
	for _, name := range kafkatools.Names() {
		for _, ext := range []string{"", ".sh"} {
			path := filepath.Join(dir, name+ext)
			if fi, err := os.Lstat(path); err == nil {
				if fi.Mode()&os.ModeSymlink == 0 {
					return n, fmt.Errorf("%s exists and is no link: move it away, or name another folder", path)
				}
				if err := os.Remove(path); err != nil {
					return n, err
				}
			}
			if err := os.Symlink(target, path); err != nil {
				return n, fmt.Errorf("cannot make the link: %w", err)
			}
			n++
		}
	}
	return n, nil
}
