package tools

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// planned is one partition of a reset: what is committed, what would be.
type planned struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Current   *int64 `json:"current_offset"`
	New       *int64 `json:"new_offset"`
	Note      string `json:"note"`
	Error     string `json:"error,omitempty"`
}

// resetTo is the one target of a reset.
type resetTo struct {
	kind   string // earliest, latest, offset, shift, time, current
	n      int64  // of offset and shift
	moment moment // of time
}

func groupReset(in IO) *cobra.Command {
	var (
		conn                       connFlags
		out                        output
		earliest, latest, current  bool
		offset, shift              int64
		datetime, duration         string
		topics                     []string
		allTopics, execute, dryRun bool
	)
	c := &cobra.Command{
		Use:   "reset GROUP (--topic TOPIC[:0,1,…]… | --all-topics) --to-…",
		Short: "Set the committed offsets of a group without members",
		Long: `Set the committed offsets of a group without members. Without --execute it
only prints the plan. A target outside of a partition's log is moved to its nearer
end; where no record is as late as the time asked for, the target is the end.
--all-topics means all partitions with a commit.

JSON (-o json): {"group","executed","partitions":[{"topic","partition","current_offset",
"new_offset","note","error"}]}; current_offset is null where there is no commit.`,
		Example: `  weir group reset billing --topic orders --to-earliest
  weir group reset billing --topic orders:0,1 --to-datetime 2026-01-31T08:00:00Z --execute`,
		Args: WantArgs(1, 1, "one group name"),
		RunE: func(c *cobra.Command, args []string) error {
			has := c.Flags().Changed
			var to []resetTo
			if earliest {
				to = append(to, resetTo{kind: "earliest"})
			}
			if latest {
				to = append(to, resetTo{kind: "latest"})
			}
			if current {
				to = append(to, resetTo{kind: "current"})
			}
			if has("to-offset") {
				if offset < 0 {
					return usagef("--to-offset %d: offsets begin at 0; --shift-by moves back", offset)
				}
				to = append(to, resetTo{kind: "offset", n: offset})
			}
			if has("shift-by") {
				to = append(to, resetTo{kind: "shift", n: shift})
			}
			if has("to-datetime") {
				m, err := parseMoment(datetime, time.Now())
				if err != nil {
					return usagef("--to-datetime: %w", err)
				}
				to = append(to, resetTo{kind: "time", moment: m})
			}
			if has("by-duration") {
				d, err := parseDuration(duration)
				if err != nil {
					return usagef("--by-duration: %w", err)
				}
				if d < 0 {
					return usagef("--by-duration %s: it goes back from now, so it is not negative", duration)
				}
				to = append(to, resetTo{kind: "time", moment: moment{ms: time.Now().Add(-d).UnixMilli()}})
			}
			switch {
			case len(to) != 1:
				return usagef("give exactly one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --by-duration")
			case len(topics) == 0 && !allTopics:
				return usagef("say which partitions: --topic TOPIC, --topic TOPIC:0,1 or --all-topics")
			case len(topics) > 0 && allTopics:
				return usagef("--topic and --all-topics exclude each other")
			case execute && dryRun:
				return usagef("--execute and --dry-run exclude each other")
			}
			want, err := parseTopicParts(topics)
			if err != nil {
				return err
			}
			if to[0].kind == "time" {
				fmt.Fprintf(in.Stderr, "weir: the time is understood as %s\n", to[0].moment)
				if w := to[0].moment.warning; w != "" {
					fmt.Fprintf(in.Stderr, "weir: warning: %s\n", w)
				}
			}
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.reset(in, args[0], want, to[0], execute, out.json)
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&topics, "topic", "t", nil, "topic, or topic:0,1,2 for some of its partitions; repeated")
	f.BoolVar(&allTopics, "all-topics", false, "all partitions with a commit of this group")
	f.BoolVar(&earliest, "to-earliest", false, "to the first offset of the log")
	f.BoolVar(&latest, "to-latest", false, "to the end of the log")
	f.BoolVar(&current, "to-current", false, "to what is committed now, or the end where nothing is")
	f.Int64Var(&offset, "to-offset", 0, "to this offset")
	f.Int64Var(&shift, "shift-by", 0, "from what is committed, N on, or back when negative")
	f.StringVar(&datetime, "to-datetime", "", "to the first record at or after this time: a date with zone, or milliseconds since 1970")
	f.StringVar(&duration, "by-duration", "", "to the first record of the last 90m, 36h, 7d, PT1H30M")
	f.BoolVar(&execute, "execute", false, "do it; without, the plan is only printed")
	f.BoolVar(&dryRun, "dry-run", false, "only print the plan (the default)")
	out.flag(c)
	conn.flags(c)
	return c
}

// parseTopicParts reads TOPIC and TOPIC:0,1,2; nil partitions mean all.
func parseTopicParts(args []string) (map[string][]int32, error) {
	m := map[string][]int32{}
	for _, a := range args {
		topic, parts, some := strings.Cut(a, ":")
		if topic == "" {
			return nil, usagef("--topic %q has no topic name: write TOPIC or TOPIC:0,1", a)
		}
		if !some {
			m[topic] = nil
			continue
		}
		ps, err := parsePartitions(parts)
		if err != nil {
			return nil, usagef("--topic %s: %w", a, err)
		}
		if old, ok := m[topic]; !ok || old != nil {
			m[topic] = append(old, ps...)
		}
	}
	return m, nil
}

// parsePartitions reads 0,1,5-7.
func parsePartitions(s string) ([]int32, error) {
	var out []int32
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseInt(from, 10, 32)
		b, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || a < 0 || b < a || b-a > 1<<20 {
			return nil, fmt.Errorf("partitions %q: write numbers, as in 0,1,5-7", s)
		}
		for p := a; p <= b; p++ {
			if !slices.Contains(out, int32(p)) {
				out = append(out, int32(p))
			}
		}
	}
	return out, nil
}

func (s *session) reset(in IO, group string, want map[string][]int32, to resetTo, execute, asJSON bool) error {
	g, err := s.group(group)
	if err != nil {
		return err
	}
	if len(g.Members) > 0 {
		return failf("group %s is %s with %s, and its offsets can only be set while it has none: stop its consumers first",
			group, g.State, plural(len(g.Members), "member"))
	}
	commits, err := s.commits(group)
	if err != nil {
		return err
	}
	if len(want) == 0 {
		commits.Each(func(o kadm.OffsetResponse) {
			if o.At >= 0 {
				want[o.Topic] = append(want[o.Topic], o.Partition)
			}
		})
		if len(want) == 0 {
			return failf("group %s has no commits, so --all-topics means nothing: name topics with --topic", group)
		}
	}
	plan, t, err := s.plan(in, commits, want, to)
	if err != nil {
		return err
	}
	if execute {
		offsets := kadm.Offsets{}
		for _, p := range plan {
			if p.New != nil {
				offsets.AddOffset(p.Topic, p.Partition, *p.New, -1)
			}
		}
		if len(offsets) > 0 {
			resp, err := s.adm.CommitOffsets(s.ctx, group, offsets)
			if err != nil {
				return s.explain("commit the offsets of group "+group, err)
			}
			for i := range plan {
				p := &plan[i]
				if p.New == nil {
					continue
				}
				r, ok := resp.Lookup(p.Topic, p.Partition)
				switch {
				case !ok:
					p.Error = "NO_ANSWER"
					t.failed("partition %d of %s: the broker did not answer for it", p.Partition, p.Topic)
				case r.Err != nil:
					p.Error = errorName(r.Err)
					why := describeError(r.Err, "")
					if errors.Is(r.Err, kerr.UnknownMemberID) || errors.Is(r.Err, kerr.RebalanceInProgress) || errors.Is(r.Err, kerr.IllegalGeneration) {
						why = errorName(r.Err) + ": the group got members meanwhile; stop its consumers first"
					}
					t.failed("partition %d of %s: %s", p.Partition, p.Topic, why)
				default:
					t.ok++
				}
			}
		}
	} else {
		for _, p := range plan {
			if p.New != nil {
				t.ok++
			}
		}
	}
	switch {
	case asJSON:
		err = writeJSON(in.Stdout, map[string]any{"group": group, "executed": execute, "partitions": plan})
	case len(plan) > 0: // else all was told as it failed
		tab := newTable("GROUP", "TOPIC", ">PARTITION", ">CURRENT-OFFSET", ">NEW-OFFSET", "NOTE")
		for _, p := range plan {
			note := p.Note
			if p.Error != "" {
				note = p.Error
			}
			tab.row(group, p.Topic, p.Partition, p.Current, p.New, note)
		}
		tab.dropEmpty()
		err = tab.write(in.Stdout)
		if !execute && t.ok > 0 {
			fmt.Fprintln(in.Stderr, "weir: this is the plan only; --execute carries it out")
		}
	}
	if err != nil {
		return err
	}
	return t.err()
}

// plan works out the new offset of every wanted partition.
func (s *session) plan(in IO, commits kadm.OffsetResponses, want map[string][]int32, to resetTo) ([]planned, *tally, error) {
	t := &tally{in: in}
	names := slices.Sorted(maps.Keys(want))
	topics, err := s.adm.ListTopicsWithInternal(s.ctx, names...)
	if err != nil {
		return nil, nil, s.explain("look up the topics", err)
	}
	var tps []topicPartition
	var found []string
	for _, name := range names {
		d := topics[name]
		if d.Err != nil || len(d.Partitions) == 0 {
			err := d.Err
			if err == nil {
				err = kerr.UnknownTopicOrPartition
			}
			t.failed("topic %s: %s", name, describeError(err, ""))
			continue
		}
		found = append(found, name)
		parts := want[name]
		if parts == nil {
			parts = d.Partitions.Numbers()
		}
		for _, p := range parts {
			if _, ok := d.Partitions[p]; !ok {
				t.failed("topic %s has no partition %d, only 0 to %d", name, p, len(d.Partitions)-1)
				continue
			}
			tps = append(tps, topicPartition{name, p})
		}
	}
	slices.SortFunc(tps, topicPartition.compare)
	tps = slices.Compact(tps)
	plan := []planned{}
	if len(tps) == 0 {
		return plan, t, nil
	}
	starts := s.listOffsets(tps, earliestOffset, false)
	ends := s.listOffsets(tps, latestOffset, false)
	times := map[topicPartition]listed{}
	if to.kind == "time" {
		// A negative time would be one of the protocol's special ones.
		times = s.listOffsets(tps, max(to.moment.ms, 0), false)
	}
	if err := s.ctx.Err(); err != nil {
		return nil, nil, s.explain("list offsets", err)
	}
	for _, tp := range tps {
		p := planned{Topic: tp.Topic, Partition: tp.Partition}
		if o, ok := commits.Lookup(tp.Topic, tp.Partition); ok && o.Err == nil && o.At >= 0 {
			p.Current = &o.At
		}
		start, end, at := starts[tp], ends[tp], times[tp]
		if err := cmp.Or(start.err, end.err, at.err); err != nil {
			p.Error = errorName(err)
			t.failed("partition %d of %s: its offsets are not to be had (%s)", tp.Partition, tp.Topic, p.Error)
			plan = append(plan, p)
			continue
		}
		n, note := target(to, p.Current, start.offset, end.offset, at.offset)
		if n == nil {
			p.Note, p.Error = note, "NO_COMMIT"
			t.failed("partition %d of %s: %s", tp.Partition, tp.Topic, note)
		}
		p.New, p.Note = n, note
		plan = append(plan, p)
	}
	return plan, t, nil
}

// target is the new offset of one partition and a note when it is not simply
// what was asked for. Nil: there is nothing to shift from.
func target(to resetTo, current *int64, start, end, at int64) (*int64, string) {
	var n int64
	note := ""
	switch to.kind {
	case "earliest":
		n = start
	case "latest":
		n = end
	case "current":
		if current == nil {
			return &end, "no commit: the end"
		}
		n = *current
	case "offset":
		n = to.n
	case "shift":
		if current == nil {
			return nil, "no commit to shift from; use --to-offset or --to-earliest"
		}
		n = *current + to.n
		if to.n > 0 && n < *current { // overflow
			n = end
		}
	case "time":
		if at < 0 {
			return &end, "no record at or after that time: the end"
		}
		n = at
	}
	switch {
	case n < start:
		note = fmt.Sprintf("%d is before the log: its start", n)
		n = start
	case n > end:
		note = fmt.Sprintf("%d is beyond the log: its end", n)
		n = end
	}
	return &n, note
}
