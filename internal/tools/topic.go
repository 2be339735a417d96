package tools

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
)

func topicCommand(in IO) *cobra.Command {
	return family("topic", "Create, list, describe, alter and delete topics",
		topicCreate(in), topicList(in), topicDescribe(in), topicAlter(in), topicDelete(in))
}

// topicResult is one topic in the JSON of create, alter and delete.
type topicResult struct {
	Name        string `json:"name"`
	ID          string `json:"id,omitempty"`
	Partitions  *int32 `json:"partitions,omitempty"`
	Replication *int16 `json:"replication_factor,omitempty"`
	OK          bool   `json:"ok"`
	Error       string `json:"error,omitempty"`
	Message     string `json:"message,omitempty"`
}

type topicResults struct {
	Topics []topicResult `json:"topics"`
}

// add counts and tells one result; verb is "create", done is "created".
func (r *topicResults) add(t *tally, verb string, res topicResult, err error, message string) {
	if err != nil {
		res.Error, res.Message = errorName(err), message
		t.failed("cannot %s topic %s: %s", verb, res.Name, describeError(err, message))
	} else {
		res.OK = true
		t.ok++
	}
	r.Topics = append(r.Topics, res)
}

// parseConfigs reads key=value pairs; a pair may hold several, comma-separated
// only where each part has its own "=", because values may hold commas.
func parseConfigs(pairs []string) (map[string]*string, error) {
	m := map[string]*string{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		k = strings.TrimSpace(k)
		if !ok || k == "" {
			return nil, usagef("%q is no configuration: write key=value", p)
		}
		m[k] = &v
	}
	return m, nil
}

func topicCreate(in IO) *cobra.Command {
	var (
		conn        connFlags
		out         output
		partitions  int32
		replicas    int16
		configs     []string
		ifNotExists bool
		validate    bool
	)
	c := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Long: `Create topics.

JSON (-o json): {"topics":[{"name","id","partitions","replication_factor","ok","error","message"}]}`,
		Example: `  weir topic create orders -p 6 -c retention.ms=3600000`,
		Args:    WantArgs(1, -1, "a topic name"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := parseConfigs(configs)
			if err != nil {
				return err
			}
			if c.Flags().Changed("partitions") && partitions < 1 {
				return usagef("--partitions %d: want at least 1, or leave it out for the broker's num.partitions", partitions)
			}
			if c.Flags().Changed("replicas") && replicas < 1 {
				return usagef("--replicas %d: want at least 1, or leave it out for the broker's default.replication.factor", replicas)
			}
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			create := s.adm.CreateTopics
			if validate {
				create = s.adm.ValidateCreateTopics
			}
			resp, err := create(s.ctx, partitions, replicas, cfg, args...)
			if err != nil {
				return s.explain("create topics", err)
			}
			t := &tally{in: in}
			var res topicResults
			for _, name := range unique(args) {
				r, ok := resp[name]
				if !ok {
					r = kadm.CreateTopicResponse{Topic: name, Err: errors.New("the broker did not answer for this topic")}
				}
				tr := topicResult{Name: name}
				if r.Err == nil {
					if r.ID != (kadm.TopicID{}) {
						tr.ID = kafka.TopicID(r.ID).String()
					}
					if r.NumPartitions > 0 {
						tr.Partitions, tr.Replication = &r.NumPartitions, &r.ReplicationFactor
					}
				}
				if ifNotExists && errors.Is(r.Err, kerr.TopicAlreadyExists) {
					r.Err = nil
					tr.Message = "exists already"
				}
				res.add(t, "create", tr, r.Err, r.ErrMessage)
				if r.Err == nil && !out.json {
					switch {
					case tr.Message != "":
						fmt.Fprintf(in.Stdout, "topic %s exists already\n", name)
					case validate:
						fmt.Fprintf(in.Stdout, "topic %s can be created\n", name)
					case tr.Partitions != nil:
						fmt.Fprintf(in.Stdout, "created topic %s with %s, replication factor %d\n", name, plural(*tr.Partitions, "partition"), *tr.Replication)
					default:
						fmt.Fprintf(in.Stdout, "created topic %s\n", name)
					}
				}
			}
			if out.json {
				if err := writeJSON(in.Stdout, res); err != nil {
					return err
				}
			}
			return t.err()
		},
	}
	f := c.Flags()
	f.Int32VarP(&partitions, "partitions", "p", -1, "partitions; left out: the broker's num.partitions")
	f.Int16VarP(&replicas, "replicas", "r", -1, "replicas of each partition; left out: the broker's default.replication.factor")
	f.StringArrayVarP(&configs, "config", "c", nil, "topic configuration key=value, repeated")
	f.BoolVar(&ifNotExists, "if-not-exists", false, "a topic that exists is no error")
	f.BoolVar(&validate, "validate-only", false, "let the broker check and create nothing")
	out.flag(c)
	conn.flags(c)
	return c
}

func unique(names []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

func topicList(in IO) *cobra.Command {
	var (
		conn     connFlags
		out      output
		internal bool
		quiet    bool
	)
	c := &cobra.Command{
		Use:   "list [TEXT]",
		Short: "List topics",
		Long: `List topics, or those whose name contains TEXT.

JSON (-o json): {"topics":[{"name","id","partitions","replication_factor","internal"}]}`,
		Args: WantArgs(0, 1, "one text to look for"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			topics, err := s.adm.ListTopicsWithInternal(s.ctx)
			if err != nil {
				return s.explain("list topics", err)
			}
			type item struct {
				Name        string `json:"name"`
				ID          string `json:"id"`
				Partitions  int    `json:"partitions"`
				Replication int    `json:"replication_factor"`
				Internal    bool   `json:"internal"`
			}
			list := []item{}
			for _, t := range topics.Sorted() {
				if (t.IsInternal && !internal) || (len(args) > 0 && !strings.Contains(t.Topic, args[0])) {
					continue
				}
				it := item{t.Topic, kafka.TopicID(t.ID).String(), len(t.Partitions), 0, t.IsInternal}
				for _, p := range t.Partitions {
					it.Replication = max(it.Replication, len(p.Replicas))
				}
				list = append(list, it)
			}
			switch {
			case out.json:
				return writeJSON(in.Stdout, map[string]any{"topics": list})
			case quiet:
				for _, t := range list {
					fmt.Fprintln(in.Stdout, t.Name)
				}
				return nil
			}
			tab := newTable("TOPIC", ">PARTITIONS", ">REPLICAS")
			for _, t := range list {
				tab.row(t.Name, t.Partitions, t.Replication)
			}
			return tab.write(in.Stdout)
		},
	}
	f := c.Flags()
	f.BoolVarP(&internal, "internal", "i", false, "internal topics as well")
	f.BoolVarP(&quiet, "quiet", "q", false, "names only")
	out.flag(c)
	conn.flags(c)
	return c
}

type partitionView struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"`
	LeaderEpoch int32   `json:"leader_epoch"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"isr"`
	Offline     []int32 `json:"offline_replicas"`
	Start       *int64  `json:"log_start_offset"`
	End         *int64  `json:"log_end_offset"`
	Error       string  `json:"error,omitempty"`
}

type topicView struct {
	Name        string            `json:"name"`
	ID          string            `json:"id"`
	Internal    bool              `json:"internal"`
	Replication int               `json:"replication_factor"`
	Configs     map[string]string `json:"configs"` // those set on the topic itself
	Partitions  []partitionView   `json:"partitions"`
}

func topicDescribe(in IO) *cobra.Command {
	var (
		conn connFlags
		out  output
	)
	c := &cobra.Command{
		Use:   "describe TOPIC...",
		Short: "Show partitions, leaders, replicas, offsets and configuration of topics",
		Long: `Show partitions, leaders, replicas, offsets and configuration of topics.
Only configuration set on the topic itself is shown; weir config get shows all.

JSON (-o json): {"topics":[{"name","id","internal","replication_factor","configs":{},
"partitions":[{"partition","leader","leader_epoch","replicas","isr","offline_replicas",
"log_start_offset","log_end_offset","error"}]}]}; unknown offsets are null.`,
		Args: WantArgs(1, -1, "a topic name"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			views, t, err := s.describeTopics(in, unique(args))
			if err != nil {
				return err
			}
			if out.json {
				err = writeJSON(in.Stdout, map[string]any{"topics": views})
			} else {
				err = printTopics(in, views)
			}
			if err != nil {
				return err
			}
			return t.err()
		},
	}
	out.flag(c)
	conn.flags(c)
	return c
}

func (s *session) describeTopics(in IO, names []string) ([]topicView, *tally, error) {
	t := &tally{in: in}
	topics, err := s.adm.ListTopicsWithInternal(s.ctx, names...)
	if err != nil {
		return nil, nil, s.explain("describe topics", err)
	}
	var found []string
	for _, n := range names {
		d, ok := topics[n]
		if ok && d.Err == nil {
			found = append(found, n)
			t.ok++
			continue
		}
		err := d.Err
		if err == nil {
			err = kerr.UnknownTopicOrPartition
		}
		t.failed("cannot describe topic %s: %s", n, describeError(err, ""))
	}
	views := []topicView{}
	if len(found) == 0 {
		return views, t, nil
	}
	// Offsets and configs are beside the point of the command: what is not to
	// be had is left open, and said.
	var tps []topicPartition
	for _, n := range found {
		for _, p := range topics[n].Partitions.Sorted() {
			tps = append(tps, topicPartition{n, p.Partition})
		}
	}
	starts := s.listOffsets(tps, earliestOffset, false)
	ends := s.listOffsets(tps, latestOffset, false)
	if err := cmp.Or(firstError(tps, starts), firstError(tps, ends)); err != nil {
		t.failed("some offsets are not known: %v", s.explain("", err))
	}
	configs, err := s.adm.DescribeTopicConfigs(s.ctx, found...)
	if err != nil {
		t.failed("some configuration is not known: %v", s.explain("", err))
	}
	for _, n := range found {
		d := topics[n]
		v := topicView{Name: n, ID: kafka.TopicID(d.ID).String(), Internal: d.IsInternal, Configs: map[string]string{}, Partitions: []partitionView{}}
		if rc, err := configs.On(n, nil); err == nil {
			for _, c := range rc.Configs {
				if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
					v.Configs[c.Key] = c.MaybeValue()
				}
			}
		}
		for _, p := range d.Partitions.Sorted() {
			pv := partitionView{
				Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
				Replicas: list(p.Replicas), ISR: list(p.ISR), Offline: list(p.OfflineReplicas), Error: errorName(p.Err),
			}
			v.Replication = max(v.Replication, len(p.Replicas))
			tp := topicPartition{n, p.Partition}
			pv.Start, pv.End = starts[tp].known(), ends[tp].known()
			v.Partitions = append(v.Partitions, pv)
		}
		views = append(views, v)
	}
	return views, t, nil
}

// list keeps an empty list from being null in JSON.
func list(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}

func printTopics(in IO, views []topicView) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(in.Stdout)
		}
		fmt.Fprintf(in.Stdout, "topic %s  id %s  partitions %d  replication factor %d\n", v.Name, v.ID, len(v.Partitions), v.Replication)
		for _, k := range slices.Sorted(maps.Keys(v.Configs)) {
			fmt.Fprintf(in.Stdout, "  %s=%s\n", k, v.Configs[k])
		}
		tab := newTable(">PARTITION", ">LEADER", ">EPOCH", "REPLICAS", "ISR", ">START", ">END", "NOTE")
		for _, p := range v.Partitions {
			var notes []string
			if p.Error != "" {
				notes = append(notes, p.Error)
			}
			if len(p.Offline) > 0 {
				notes = append(notes, "offline "+ints(p.Offline))
			}
			if len(p.ISR) < len(p.Replicas) {
				notes = append(notes, "under-replicated")
			}
			leader := fmt.Sprint(p.Leader)
			if p.Leader < 0 {
				leader = "none"
			}
			tab.row(p.Partition, leader, p.LeaderEpoch, ints(p.Replicas), ints(p.ISR), p.Start, p.End, strings.Join(notes, ", "))
		}
		tab.dropEmpty()
		if err := tab.write(in.Stdout); err != nil {
			return err
		}
	}
	return nil
}

func topicAlter(in IO) *cobra.Command {
	var (
		conn       connFlags
		out        output
		partitions int
		configs    []string
		deletes    []string
		validate   bool
	)
	c := &cobra.Command{
		Use:   "alter TOPIC...",
		Short: "Add partitions to topics, or set and delete their configuration",
		Long: `Add partitions to topics, or set and delete their configuration.

JSON (-o json): {"topics":[{"name","ok","error","message"}]}`,
		Example: `  weir topic alter orders --partitions 12
  weir topic alter orders -c retention.ms=3600000 --delete-config cleanup.policy`,
		Args: WantArgs(1, -1, "a topic name"),
		RunE: func(c *cobra.Command, args []string) error {
			alters, err := parseAlters(configs, deletes)
			if err != nil {
				return err
			}
			grow := c.Flags().Changed("partitions")
			switch {
			case grow && partitions < 1:
				return usagef("--partitions %d: want the new number of partitions, at least 1", partitions)
			case !grow && len(alters) == 0:
				return usagef("nothing to alter: give --partitions N, -c key=value or --delete-config key")
			}
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			t := &tally{in: in}
			var res topicResults
			names := unique(args)
			bad := map[string]bool{}
			if len(alters) > 0 {
				alter := s.adm.AlterTopicConfigs
				if validate {
					alter = s.adm.ValidateAlterTopicConfigs
				}
				resp, err := alter(s.ctx, alters, names...)
				if err != nil {
					return s.explain("alter topics", err)
				}
				for _, r := range resp {
					if r.Err != nil {
						bad[r.Name] = true
						res.add(t, "alter", topicResult{Name: r.Name}, r.Err, r.ErrMessage)
					}
				}
			}
			var rest []string
			for _, n := range names {
				if !bad[n] {
					rest = append(rest, n)
				}
			}
			if grow && len(rest) > 0 {
				update := s.adm.UpdatePartitions
				if validate {
					update = s.adm.ValidateUpdatePartitions
				}
				resp, err := update(s.ctx, partitions, rest...)
				if err != nil {
					return s.explain("add partitions", err)
				}
				for _, n := range rest {
					if r := resp[n]; r.Err != nil {
						bad[n] = true
						res.add(t, "alter", topicResult{Name: n}, r.Err, r.ErrMessage)
					}
				}
			}
			for _, n := range names {
				if bad[n] {
					continue
				}
				res.add(t, "alter", topicResult{Name: n}, nil, "")
				if out.json {
					continue
				}
				if validate {
					fmt.Fprintf(in.Stdout, "topic %s can be altered\n", n)
				} else {
					fmt.Fprintf(in.Stdout, "altered topic %s\n", n)
				}
			}
			if out.json {
				if err := writeJSON(in.Stdout, res); err != nil {
					return err
				}
			}
			return t.err()
		},
	}
	f := c.Flags()
	f.IntVarP(&partitions, "partitions", "p", 0, "new number of partitions; it can only grow")
	f.StringArrayVarP(&configs, "config", "c", nil, "set configuration key=value, repeated")
	f.StringArrayVar(&deletes, "delete-config", nil, "go back to the default of this key, repeated")
	f.BoolVar(&validate, "validate-only", false, "let the broker check and change nothing")
	out.flag(c)
	conn.flags(c)
	return c
}

func parseAlters(sets, deletes []string) ([]kadm.AlterConfig, error) {
	m, err := parseConfigs(sets)
	if err != nil {
		return nil, err
	}
	var alters []kadm.AlterConfig
	for _, k := range slices.Sorted(maps.Keys(m)) {
		alters = append(alters, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: m[k]})
	}
	for _, k := range deletes {
		if k, _, ok := strings.Cut(k, "="); ok {
			return nil, usagef("to delete a key give its name alone: %s", k)
		}
		if _, ok := m[k]; ok {
			return nil, usagef("%s is both set and deleted: decide for one", k)
		}
		alters = append(alters, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
	}
	return alters, nil
}

func topicDelete(in IO) *cobra.Command {
	var (
		conn     connFlags
		out      output
		ifExists bool
	)
	c := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics and their records",
		Long: `Delete topics and their records, at once and without asking.

JSON (-o json): {"topics":[{"name","ok","error","message"}]}`,
		Args: WantArgs(1, -1, "a topic name"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			names := unique(args)
			resp, err := s.adm.DeleteTopics(s.ctx, names...)
			if err != nil {
				return s.explain("delete topics", err)
			}
			t := &tally{in: in}
			var res topicResults
			for _, n := range names {
				r, ok := resp[n]
				if !ok {
					r.Err = errors.New("the broker did not answer for this topic")
				}
				gone := ifExists && errors.Is(r.Err, kerr.UnknownTopicOrPartition)
				if gone {
					r.Err = nil
				}
				res.add(t, "delete", topicResult{Name: n}, r.Err, r.ErrMessage)
				if r.Err == nil && !out.json {
					if gone {
						fmt.Fprintf(in.Stdout, "topic %s does not exist\n", n)
					} else {
						fmt.Fprintf(in.Stdout, "deleted topic %s\n", n)
					}
				}
			}
			if out.json {
				if err := writeJSON(in.Stdout, res); err != nil {
					return err
				}
			}
			return t.err()
		},
	}
	c.Flags().BoolVar(&ifExists, "if-exists", false, "a topic that does not exist is no error")
	out.flag(c)
	conn.flags(c)
	return c
}
