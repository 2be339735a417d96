package tools

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir/internal/lab"
)

func perfConsumeCommand(in IO) *cobra.Command {
	f := &perfFlags{}
	var group string
	var latest bool
	var idle time.Duration
	c := &cobra.Command{
		Use:   "consume",
		Short: "Read a topic as fast as it goes",
		Long: `Read a topic from its beginning and measure how many records and bytes a second come.
Without --duration and --num-records it reads what the topic holds when it starts. The time
until the first record (connecting, joining a group, seeking) is told apart and is no part of
the rate.

Without --group the partitions are dealt out to the consumers and nothing is left behind in
the cluster; with it the consumers join that group and commit as consumers do.
` + perfHelp,
		Example: `  weir perf consume -t load
  weir perf consume -t load --consumers 3 --group readers --duration 1m`,
		Args: WantArgs(0, 0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error { return f.consume(c.Context(), in, group, latest, idle) },
	}
	fs := c.Flags()
	fs.DurationVar(&f.duration, "duration", 0, "how long to read")
	fs.Int64VarP(&f.records, "num-records", "n", 0, "end after this many records")
	fs.IntVar(&f.consumers, "consumers", 1, "clients that read, each with connections of its own")
	fs.StringVarP(&group, "group", "G", "", "consumer group to join; empty: none")
	fs.BoolVar(&latest, "from-latest", false, "begin at the end instead of the beginning")
	fs.DurationVar(&idle, "idle", 10*time.Second, "end when nothing came for so long")
	f.common(c)
	return c
}

func (f *perfFlags) consume(ctx context.Context, in IO, group string, latest bool, idle time.Duration) error {
	switch {
	case f.duration < 0 || f.records < 0:
		return usagef("--duration and --num-records must not be negative")
	case f.consumers < 1 || f.consumers > 1000:
		return usagef("--consumers %d: want 1 to 1000", f.consumers)
	case latest && f.duration == 0 && f.records == 0:
		return usagef("--from-latest needs --duration or --num-records: nothing is there yet to read")
	case idle <= 0:
		return usagef("--idle %v: want more than 0", idle)
	}
	r, err := f.begin(ctx, in, "consume")
	if err != nil {
		return err
	}
	defer r.Close()
	offsets, stored, err := r.positions(latest)
	if err != nil {
		r.drop()
		return err
	}
	if group == "" {
		group = r.props.group
	}
	reading := lab.Reading{Duration: f.duration, Records: f.records, Idle: idle, Live: r.readLine}
	if reading.Duration == 0 && reading.Records == 0 {
		if reading.Records = stored; stored == 0 {
			r.drop()
			return failf("topic %s is empty: there is nothing to read; weir perf produce -t %s fills it, or give --duration", f.topic, f.topic)
		}
	}
	s := r.run.Spec
	s["consumers"], s["group"], s["from_latest"], s["duration_s"], s["num_records"] = f.consumers, group, latest, f.duration.Seconds(), reading.Records
	s["properties"] = safeProperties(f.conn.props)
	readers, err := r.readers(f.consumers, group, latest, offsets)
	if err != nil {
		r.drop()
		return err
	}
	c, err := lab.Consume(r.session.ctx, reading, readers)
	if err != nil {
		r.drop()
		return usagef("%w", err)
	}
	r.run.Consume = c
	return r.finish(0, c.Interrupted)
}

// positions are where each partition begins, or ends with latest, and how many
// records lie between.
func (r *perfRun) positions(latest bool) (map[int32]int64, int64, error) {
	ctx, stop := r.within()
	defer stop()
	starts, err := r.adm.ListStartOffsets(ctx, r.f.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, 0, r.explain("list offsets of "+r.f.topic, err)
	}
	ends, err := r.adm.ListEndOffsets(ctx, r.f.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, 0, r.explain("list offsets of "+r.f.topic, err)
	}
	out := map[int32]int64{}
	stored := int64(0)
	for p, end := range ends[r.f.topic] {
		start := starts[r.f.topic][p].Offset
		stored += end.Offset - start
		out[p] = start
		if latest {
			out[p] = end.Offset
		}
	}
	return out, stored, nil
}

// readers makes the consuming clients: in a group, or with the partitions dealt out.
func (r *perfRun) readers(n int, group string, latest bool, offsets map[int32]int64) ([]lab.Poller, error) {
	var out []lab.Poller
	for i := range n {
		opts := []kgo.Opt{kgo.FetchMaxWait(500 * time.Millisecond)}
		if group != "" {
			reset := kgo.NewOffset().AtStart()
			if latest {
				reset = kgo.NewOffset().AtEnd()
			}
			opts = append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics(r.f.topic), kgo.ConsumeResetOffset(reset))
			if r.props.noCommit {
				opts = append(opts, kgo.DisableAutoCommit())
			}
		} else {
			mine := map[int32]kgo.Offset{}
			for p, at := range offsets {
				if int(p)%n == i {
					mine[p] = kgo.NewOffset().At(at)
				}
			}
			if len(mine) == 0 {
				continue // more consumers than partitions
			}
			opts = append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.f.topic: mine}))
		}
		if r.props.committed {
			opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
		}
		cl, err := r.client(append(opts, r.props.consumer...)...)
		if err != nil {
			return nil, err
		}
		out = append(out, cl)
	}
	if len(out) < n {
		r.run.Notes = append(r.run.Notes, plural(int64(n-len(out)), "consumer")+" had no partition to read")
	}
	return out, nil
}

func (r *perfRun) readLine(w lab.ReadWindow) {
	r.say("%6.1f s  %10s records/s  %8.2f MB/s", w.AtS+w.Seconds, lab.Count(w.Rate()), float64(w.Bytes)/w.Seconds/(1<<20))
}
