package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func configCommand(in IO) *cobra.Command {
	return family("config", "Read and change the configuration of topics and brokers, check and explain keys",
		configGet(in), configSet(in), configDelete(in), configCheck(in), configExplain(in))
}

// entity is what a configuration belongs to.
type entity struct {
	kind string // topic or broker
	name string // topic name, broker id, or empty for the default of all brokers
}

func (e entity) String() string {
	if e.kind == "broker" && e.name == "" {
		return "broker default"
	}
	return e.kind + " " + e.name
}

const entityHelp = `What it belongs to is written as two words: topic NAME, broker ID, or
broker default for the value that all brokers share.`

// parseEntity takes the first two words, or one written as topic/NAME.
func parseEntity(args []string) (entity, []string, error) {
	if len(args) > 0 {
		if k, n, ok := strings.Cut(args[0], "/"); ok && !strings.Contains(args[0], "=") {
			args = append([]string{k, n}, args[1:]...)
		}
	}
	if len(args) < 2 {
		return entity{}, nil, usagef("say whose configuration: topic NAME, broker ID or broker default")
	}
	kind, name, rest := args[0], args[1], args[2:]
	switch kind {
	case "topic", "topics":
		return entity{"topic", name}, rest, nil
	case "broker", "brokers":
		if name == "default" {
			return entity{"broker", ""}, rest, nil
		}
		if n, err := strconv.ParseInt(name, 10, 32); err != nil || n < 0 {
			return entity{}, nil, usagef("broker %q: want a broker id, or default", name)
		}
		return entity{"broker", name}, rest, nil
	}
	return entity{}, nil, usagef("%q has no configuration here: say topic NAME, broker ID or broker default", kind)
}

func (e entity) brokers() []int32 {
	if e.name == "" {
		return nil
	}
	n, _ := strconv.ParseInt(e.name, 10, 32)
	return []int32{int32(n)}
}

type configView struct {
	Key       string  `json:"key"`
	Value     *string `json:"value"`
	Source    string  `json:"source"`
	Sensitive bool    `json:"sensitive"`
}

func configGet(in IO) *cobra.Command {
	var (
		conn connFlags
		out  output
		all  bool
	)
	c := &cobra.Command{
		Use:   "get (topic NAME | broker ID | broker default) [KEY...]",
		Short: "Show configuration in force",
		Long: `Show configuration in force: what differs from the default, all with --all, or
the keys named. ` + entityHelp + `

JSON (-o json): {"entity_type","entity","configs":[{"key","value","source","sensitive"}]};
entity is null for the broker default, a sensitive value is null.`,
		Example: `  weir config get topic orders
  weir config get broker 1 log.retention.ms`,
		Args: WantArgs(1, -1, "topic NAME, broker ID or broker default"),
		RunE: func(c *cobra.Command, args []string) error {
			e, keys, err := parseEntity(args)
			if err != nil {
				return err
			}
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			views, err := s.configs(e)
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				var some []configView
				for _, k := range keys {
					i := slices.IndexFunc(views, func(v configView) bool { return v.Key == k })
					if i < 0 {
						if e.kind == "broker" && e.name == "" {
							return failf("%s is not set as broker default: weir config get broker ID %s shows what is in force", k, k)
						}
						return failf("%s has no key %s: weir config get %s --all lists them", e, k, e)
					}
					some = append(some, views[i])
				}
				views = some
			} else if !all {
				views = slices.DeleteFunc(views, func(v configView) bool { return v.Source == kmsg.ConfigSourceDefaultConfig.String() })
			}
			if out.json {
				if views == nil {
					views = []configView{}
				}
				var name *string
				if e.name != "" {
					name = &e.name
				}
				return writeJSON(in.Stdout, map[string]any{"entity_type": e.kind, "entity": name, "configs": views})
			}
			tab := newTable("KEY", "VALUE", "SOURCE")
			for _, v := range views {
				value := "null"
				switch {
				case v.Sensitive:
					value = "[hidden]"
				case v.Value != nil && *v.Value == "":
					value = `""`
				case v.Value != nil:
					value = *v.Value
				}
				tab.row(v.Key, value, v.Source)
			}
			return tab.write(in.Stdout)
		},
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "defaults as well")
	out.flag(c)
	conn.flags(c)
	return c
}

func (s *session) configs(e entity) ([]configView, error) {
	doing := "read the configuration of " + e.String()
	var (
		resp kadm.ResourceConfigs
		err  error
	)
	if e.kind == "topic" {
		resp, err = s.adm.DescribeTopicConfigs(s.ctx, e.name)
	} else {
		resp, err = s.adm.DescribeBrokerConfigs(s.ctx, e.brokers()...)
	}
	if err != nil {
		return nil, cmp.Or(s.noBroker(e), s.explain(doing, err))
	}
	if len(resp) == 0 {
		return nil, failf("cannot %s: the broker did not answer for it", doing)
	}
	r := resp[0]
	if r.Err != nil {
		return nil, failf("cannot %s: %s", doing, describeError(r.Err, r.ErrMessage))
	}
	var views []configView
	for _, c := range r.Configs {
		views = append(views, configView{c.Key, c.Value, c.Source.String(), c.Sensitive})
	}
	slices.SortFunc(views, func(a, b configView) int { return cmp.Compare(a.Key, b.Key) })
	return views, nil
}

// noBroker says that the broker of e does not exist, if that is so: the client
// knows it and says it of its own, without which there are.
func (s *session) noBroker(e entity) error {
	if e.kind != "broker" || e.name == "" {
		return nil
	}
	all, err := s.adm.ListBrokers(s.ctx)
	if err != nil {
		return nil
	}
	ids := all.NodeIDs()
	if len(ids) == 0 || slices.Contains(ids, e.brokers()[0]) {
		return nil
	}
	noun := "broker"
	if len(ids) > 1 {
		noun = "brokers"
	}
	return failf("%s does not exist: the cluster has %s %s", e, noun, ints(ids))
}

func configSet(in IO) *cobra.Command {
	var (
		conn     connFlags
		out      output
		deletes  []string
		validate bool
	)
	c := &cobra.Command{
		Use:   "set (topic NAME | broker ID | broker default) KEY=VALUE...",
		Short: "Set configuration",
		Long: `Set configuration, all given keys or none. ` + entityHelp + `

JSON (-o json): {"entity_type","entity","ok","error","message"}`,
		Example: `  weir config set topic orders retention.ms=3600000 cleanup.policy=compact,delete
  weir config set broker default log.retention.ms=86400000 --delete log.segment.bytes`,
		Args: WantArgs(1, -1, "topic NAME, broker ID or broker default, and KEY=VALUE"),
		RunE: func(c *cobra.Command, args []string) error {
			e, sets, err := parseEntity(args)
			if err != nil {
				return err
			}
			alters, err := parseAlters(sets, deletes)
			if err != nil {
				return err
			}
			if len(alters) == 0 {
				return usagef("nothing to set: give KEY=VALUE or --delete KEY")
			}
			return alterConfig(c, in, &conn, out, e, alters, validate)
		},
	}
	c.Flags().StringArrayVar(&deletes, "delete", nil, "go back to the default of this key, repeated")
	c.Flags().BoolVar(&validate, "validate-only", false, "let the broker check and change nothing")
	out.flag(c)
	conn.flags(c)
	return c
}

func configDelete(in IO) *cobra.Command {
	var (
		conn connFlags
		out  output
	)
	c := &cobra.Command{
		Use:   "delete (topic NAME | broker ID | broker default) KEY...",
		Short: "Go back to defaults",
		Long: `Go back to the default of the keys named. ` + entityHelp + `

JSON (-o json): {"entity_type","entity","ok","error","message"}`,
		Args: WantArgs(2, -1, "topic NAME, broker ID or broker default, and KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			e, keys, err := parseEntity(args)
			if err != nil {
				return err
			}
			alters, err := parseAlters(nil, keys)
			if err != nil {
				return err
			}
			if len(alters) == 0 {
				return usagef("say which keys go back to their default")
			}
			return alterConfig(c, in, &conn, out, e, alters, false)
		},
	}
	out.flag(c)
	conn.flags(c)
	return c
}

func alterConfig(c *cobra.Command, in IO, conn *connFlags, out output, e entity, alters []kadm.AlterConfig, validate bool) error {
	s, err := conn.admin(c.Context(), in)
	if err != nil {
		return err
	}
	defer s.Close()
	var resp kadm.AlterConfigsResponses
	switch {
	case e.kind == "topic" && validate:
		resp, err = s.adm.ValidateAlterTopicConfigs(s.ctx, alters, e.name)
	case e.kind == "topic":
		resp, err = s.adm.AlterTopicConfigs(s.ctx, alters, e.name)
	case validate:
		resp, err = s.adm.ValidateAlterBrokerConfigs(s.ctx, alters, e.brokers()...)
	default:
		resp, err = s.adm.AlterBrokerConfigs(s.ctx, alters, e.brokers()...)
	}
	doing := "change the configuration of " + e.String()
	if err != nil {
		return cmp.Or(s.noBroker(e), s.explain(doing, err))
	}
	r := kadm.AlterConfigsResponse{Err: kerr.UnknownServerError, ErrMessage: "the broker did not answer for it"}
	if len(resp) > 0 {
		r = resp[0]
	}
	if out.json {
		v := struct {
			Kind    string  `json:"entity_type"`
			Name    *string `json:"entity"`
			OK      bool    `json:"ok"`
			Error   string  `json:"error,omitempty"`
			Message string  `json:"message,omitempty"`
		}{Kind: e.kind, OK: r.Err == nil, Error: errorName(r.Err), Message: r.ErrMessage}
		if e.name != "" {
			v.Name = &e.name
		}
		if err := writeJSON(in.Stdout, v); err != nil {
			return err
		}
	}
	if r.Err != nil {
		return failf("cannot %s: %s", doing, describeError(r.Err, r.ErrMessage))
	}
	if !out.json {
		verb := "changed"
		if validate {
			verb = "can be changed:"
		}
		fmt.Fprintf(in.Stdout, "%s %s\n", verb, e)
	}
	return nil
}
