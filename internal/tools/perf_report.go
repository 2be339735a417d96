package tools

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/lab"
)

func perfReportCommand(in IO) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use:   "report RUN...",
		Short: "Show results again, or several side by side",
		Long: `Show what a run folder (or its report.json) holds; several side by side. A table of single
runs says nothing about what helped: weir perf compare does.` + "\n",
		Example: `  weir perf report weir-perf/20261201-120000.000-produce
  weir perf report weir-perf/*`,
		Args: WantArgs(1, -1, "a run folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			var runs []*lab.Run
			for _, a := range args {
				r, err := lab.ReadRun(a)
				if err != nil {
					return failf("%w", err)
				}
				runs = append(runs, r)
			}
			switch {
			case o.json && len(runs) == 1:
				return writeJSON(in.Stdout, runs[0])
			case o.json:
				return writeJSON(in.Stdout, runs)
			case len(runs) == 1:
				return runs[0].Text(in.Stdout)
			}
			return reportTable(args, runs).write(in.Stdout)
		},
	}
	o.flag(c)
	return c
}

func reportTable(names []string, runs []*lab.Run) *table {
	t := newTable("RUN", "KIND", "TOPIC", ">RECORDS/S", ">MB/S", ">P50", ">P99", ">P99.9", ">FAILED")
	for i, r := range runs {
		f := r.Figures()
		show := func(name string) string {
			us, ok := f[name]
			if r.Latency != nil {
				us, ok = f["e2e."+name]
			}
			if !ok || r.Produce != nil && !r.Produce.OpenLoop && r.Produce.Window > 1 {
				return "-" // not carried, or of a full queue
			}
			return lab.Millis(us)
		}
		number := func(name, form string) string {
			if v, ok := f[name]; ok {
				return fmt.Sprintf(form, v)
			}
			return "-"
		}
		rate := "-"
		if v, ok := f["rate"]; ok {
			rate = lab.Count(v)
		}
		t.row(names[i], r.Kind, r.Environment.Topic, rate, number("mb", "%.2f"), show("p50"), show("p99"), show("p99.9"), number("errors", "%.0f"))
	}
	return t
}
