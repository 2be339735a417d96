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
)

func groupCommand(in IO) *cobra.Command {
	return family("group", "List, describe, reset and delete consumer groups",
		groupList(in), groupDescribe(in), groupReset(in), groupDelete(in))
}

type groupItem struct {
	Group        string `json:"group"`
	Type         string `json:"type"`
	ProtocolType string `json:"protocol_type"`
	State        string `json:"state"`
	Coordinator  int32  `json:"coordinator"`
}

func groupList(in IO) *cobra.Command {
	var (
		conn   connFlags
		out    output
		states []string
		quiet  bool
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List groups",
		Long: `List groups.

JSON (-o json): {"groups":[{"group","type","protocol_type","state","coordinator"}]}`,
		Args: WantArgs(0, 0, "no argument"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			groups, err := s.adm.ListGroups(s.ctx, states...)
			partly, isPartly := errors.AsType[*kadm.ShardErrors](err)
			if err != nil && (!isPartly || partly.AllFailed) {
				return s.explain("list groups", err)
			}
			items := []groupItem{}
			for _, g := range groups.Sorted() {
				items = append(items, groupItem{g.Group, cmp.Or(g.GroupType, "classic"), g.ProtocolType, g.State, g.Coordinator})
			}
			var werr error
			switch {
			case out.json:
				werr = writeJSON(in.Stdout, map[string]any{"groups": items})
			case quiet:
				for _, g := range items {
					fmt.Fprintln(in.Stdout, g.Group)
				}
			default:
				tab := newTable("GROUP", "TYPE", "PROTOCOL", "STATE", ">COORDINATOR")
				for _, g := range items {
					tab.row(g.Group, g.Type, g.ProtocolType, g.State, g.Coordinator)
				}
				werr = tab.write(in.Stdout)
			}
			if werr == nil && isPartly {
				fmt.Fprintf(in.Stderr, "weir: some brokers did not list their groups: %v\n", partly)
				return &Failure{Code: ExitPartly}
			}
			return werr
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "only groups in these states: Empty, Stable, PreparingRebalance, …")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "names only")
	out.flag(c)
	conn.flags(c)
	return c
}

// topicPartition is a partition in JSON and a key in maps.
type topicPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

func (a topicPartition) compare(b topicPartition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

type memberView struct {
	MemberID   string           `json:"member_id"`
	InstanceID *string          `json:"instance_id"`
	ClientID   string           `json:"client_id"`
	Host       string           `json:"host"`
	Partitions []topicPartition `json:"partitions"`
}

type lagView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed_offset"`
	Metadata  string `json:"metadata"`
	End       *int64 `json:"log_end_offset"`
	Lag       *int64 `json:"lag"`
	MemberID  string `json:"member_id"`
	ClientID  string `json:"client_id"`
	Host      string `json:"host"`
	Error     string `json:"error,omitempty"`
}

type coordinatorView struct {
	ID   int32  `json:"id"`
	Host string `json:"host"`
	Port int32  `json:"port"`
}

type groupView struct {
	Group        string          `json:"group"`
	State        string          `json:"state"`
	Type         string          `json:"type"`
	ProtocolType string          `json:"protocol_type"`
	Assignor     string          `json:"assignor"`
	Coordinator  coordinatorView `json:"coordinator"`
	Members      []memberView    `json:"members"`
	Partitions   []lagView       `json:"partitions"`
	TotalLag     int64           `json:"total_lag"` // over the partitions with a commit
}

func groupDescribe(in IO) *cobra.Command {
	var (
		conn    connFlags
		out     output
		members bool
	)
	c := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show state, members, committed offsets and lag of groups",
		Long: `Show state, members, committed offsets and lag of groups.
The commits are read before the end offsets, so that lag is never negative; a
partition without a commit has no lag.

JSON (-o json): {"groups":[{"group","state","type","protocol_type","assignor",
"coordinator":{"id","host","port"},"members":[{"member_id","instance_id","client_id",
"host","partitions":[{"topic","partition"}]}],"partitions":[{"topic","partition",
"committed_offset","metadata","log_end_offset","lag","member_id","client_id","host",
"error"}],"total_lag"}]}; what is not known is null.`,
		Args: WantArgs(1, -1, "a group name"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			t := &tally{in: in}
			views := []*groupView{}
			for _, name := range unique(args) {
				v, err := s.describeGroup(name)
				if s.ctx.Err() != nil && err != nil {
					return err
				}
				if err != nil {
					t.failed("%v", err)
					continue
				}
				t.ok++
				views = append(views, v)
			}
			if out.json {
				err = writeJSON(in.Stdout, map[string]any{"groups": views})
			} else {
				err = printGroups(in, views, members)
			}
			if err != nil {
				return err
			}
			return t.err()
		},
	}
	c.Flags().BoolVarP(&members, "members", "m", false, "one line for each member instead of each partition")
	out.flag(c)
	conn.flags(c)
	return c
}

// group asks for state and members, of a classic or a KIP-848 group. A group
// that is not there has state Dead and no error.
func (s *session) group(name string) (*groupView, error) {
	doing := "describe group " + name
	resp, err := s.adm.DescribeGroups(s.ctx, name)
	if err != nil {
		return nil, s.explain(doing, err)
	}
	g, ok := resp[name]
	if !ok {
		return nil, failf("%s: the broker did not answer for this group", doing)
	}
	v := &groupView{
		Group: name, State: g.State, Type: "classic", ProtocolType: g.ProtocolType, Assignor: g.Protocol,
		Coordinator: coordinatorView{g.Coordinator.NodeID, g.Coordinator.Host, g.Coordinator.Port},
		Members:     []memberView{}, Partitions: []lagView{},
	}
	absent := g.State == "Dead" || errors.Is(g.Err, kerr.GroupIDNotFound)
	switch {
	case g.Err != nil && !absent:
		return nil, failf("cannot %s: %s", doing, describeError(g.Err, g.ErrMessage))
	case absent:
		v.State = "Dead"
		// Kafka answers so as well for a group of the new protocol.
		next, err := s.adm.DescribeConsumerGroups(s.ctx, name)
		if n, ok := next[name]; err == nil && ok && n.Err == nil {
			v.State, v.Type, v.ProtocolType, v.Assignor = n.State, "consumer", "consumer", n.AssignorName
			for _, m := range n.Members {
				mv := memberView{m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, []topicPartition{}}
				for t, ps := range m.Assignment {
					for p := range ps {
						mv.Partitions = append(mv.Partitions, topicPartition{t, p})
					}
				}
				v.Members = append(v.Members, mv)
			}
		}
	}
	for _, m := range g.Members {
		mv := memberView{m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, []topicPartition{}}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				for _, p := range t.Partitions {
					mv.Partitions = append(mv.Partitions, topicPartition{t.Topic, p})
				}
			}
		}
		v.Members = append(v.Members, mv)
	}
	for i := range v.Members {
		slices.SortFunc(v.Members[i].Partitions, topicPartition.compare)
		v.Members[i].Host = strings.TrimPrefix(v.Members[i].Host, "/")
	}
	return v, nil
}

// commits fetches what a group has committed: nothing, if there is no group.
func (s *session) commits(group string) (kadm.OffsetResponses, error) {
	o, err := s.adm.FetchOffsets(s.ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return kadm.OffsetResponses{}, nil
	}
	return o, s.explain("read the commits of group "+group, err)
}

// describeGroup adds commits and lag. The order is what keeps lag at zero or
// above: members, then commits, then end offsets.
func (s *session) describeGroup(name string) (*groupView, error) {
	v, err := s.group(name)
	if err != nil {
		return nil, err
	}
	commits, err := s.commits(name)
	if err != nil {
		return nil, err
	}
	rows := map[topicPartition]*lagView{}
	at := func(tp topicPartition) *lagView {
		r := rows[tp]
		if r == nil {
			r = &lagView{Topic: tp.Topic, Partition: tp.Partition}
			rows[tp] = r
		}
		return r
	}
	commits.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.At < 0 {
			return
		}
		r := at(topicPartition{o.Topic, o.Partition})
		if o.Err != nil {
			r.Error = errorName(o.Err)
			return
		}
		r.Committed, r.Metadata = &o.At, o.Metadata
	})
	for _, m := range v.Members {
		for _, tp := range m.Partitions {
			r := at(tp)
			r.MemberID, r.ClientID, r.Host = m.MemberID, m.ClientID, m.Host
		}
	}
	if v.State == "Dead" && len(rows) == 0 {
		return nil, failf("group %s does not exist: weir group list shows what there is", name)
	}
	tps := slices.SortedFunc(maps.Keys(rows), topicPartition.compare)
	ends := s.listOffsets(tps, latestOffset, false)
	if err := s.ctx.Err(); err != nil {
		return nil, s.explain("list end offsets", err)
	}
	for _, tp := range tps {
		r, end := rows[tp], ends[tp]
		if end.err != nil {
			r.Error = cmp.Or(r.Error, errorName(end.err))
		}
		if r.End = end.known(); r.End != nil && r.Committed != nil {
			lag := max(0, *r.End-*r.Committed)
			r.Lag = &lag
			v.TotalLag += lag
		}
		v.Partitions = append(v.Partitions, *r)
	}
	return v, nil
}

func printGroups(in IO, views []*groupView, members bool) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(in.Stdout)
		}
		fmt.Fprintf(in.Stdout, "group %s  state %s  type %s  assignor %s  coordinator %d (%s:%d)  members %d  total lag %d\n",
			v.Group, v.State, v.Type, cmp.Or(v.Assignor, "-"), v.Coordinator.ID, v.Coordinator.Host, v.Coordinator.Port, len(v.Members), v.TotalLag)
		var tab *table
		if members {
			tab = newTable("MEMBER", "INSTANCE", "CLIENT", "HOST", ">PARTITIONS", "ASSIGNED")
			for _, m := range v.Members {
				inst := ""
				if m.InstanceID != nil {
					inst = *m.InstanceID
				}
				tab.row(m.MemberID, inst, m.ClientID, m.Host, len(m.Partitions), compact(m.Partitions))
			}
		} else {
			tab = newTable("TOPIC", ">PARTITION", ">COMMITTED", ">END", ">LAG", "MEMBER", "CLIENT", "HOST", "NOTE")
			for _, p := range v.Partitions {
				note := p.Error
				if note == "" && p.Committed != nil && p.End != nil && *p.Committed > *p.End {
					note = "commit beyond the end"
				}
				tab.row(p.Topic, p.Partition, p.Committed, p.End, p.Lag, p.MemberID, p.ClientID, p.Host, note)
			}
			tab.dropEmpty()
		}
		if len(tab.rows) == 0 {
			continue
		}
		if err := tab.write(in.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// compact writes partitions as topic:0,1,2 topic2:0.
func compact(tps []topicPartition) string {
	var b strings.Builder
	last := ""
	for i, tp := range tps {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "%s:%d", tp.Topic, tp.Partition)
		case tp.Topic == last:
			fmt.Fprintf(&b, ",%d", tp.Partition)
		default:
			fmt.Fprintf(&b, " %s:%d", tp.Topic, tp.Partition)
		}
		last = tp.Topic
	}
	return b.String()
}

func groupDelete(in IO) *cobra.Command {
	var (
		conn     connFlags
		out      output
		ifExists bool
	)
	c := &cobra.Command{
		Use:   "delete GROUP...",
		Short: "Delete groups without members, and their commits",
		Long: `Delete groups without members, and their commits, at once and without asking.

JSON (-o json): {"groups":[{"group","ok","error"}]}`,
		Args: WantArgs(1, -1, "a group name"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := conn.admin(c.Context(), in)
			if err != nil {
				return err
			}
			defer s.Close()
			names := unique(args)
			resp, err := s.adm.DeleteGroups(s.ctx, names...)
			partly, isPartly := errors.AsType[*kadm.ShardErrors](err)
			if err != nil && (!isPartly || partly.AllFailed) {
				return s.explain("delete groups", err)
			}
			type item struct {
				Group string `json:"group"`
				OK    bool   `json:"ok"`
				Error string `json:"error,omitempty"`
			}
			t := &tally{in: in}
			items := []item{}
			for _, n := range names {
				r, ok := resp[n]
				if !ok {
					r.Err = errors.New("the broker did not answer for this group")
				}
				gone := ifExists && errors.Is(r.Err, kerr.GroupIDNotFound)
				if gone {
					r.Err = nil
				}
				items = append(items, item{n, r.Err == nil, errorName(r.Err)})
				switch {
				case r.Err != nil:
					t.failed("cannot delete group %s: %s", n, describeError(r.Err, ""))
					continue
				case out.json:
				case gone:
					fmt.Fprintf(in.Stdout, "group %s does not exist\n", n)
				default:
					fmt.Fprintf(in.Stdout, "deleted group %s\n", n)
				}
				t.ok++
			}
			if out.json {
				if err := writeJSON(in.Stdout, map[string]any{"groups": items}); err != nil {
					return err
				}
			}
			return t.err()
		},
	}
	c.Flags().BoolVar(&ifExists, "if-exists", false, "a group that does not exist is no error")
	out.flag(c)
	conn.flags(c)
	return c
}
