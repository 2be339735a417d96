package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type consumeFlags struct {
	conn       connFlags
	topic      string
	partitions string
	offsets    []string
	count      int64
	exit       bool
	format     string
	delim      string
	keyDelim   string
	null       string
	envelope   bool
	group      string
	quiet      bool
	verbose    bool
	unbuffered bool
}

func consumeCommand(in IO) *cobra.Command {
	var f consumeFlags
	c := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Print the records of topics on stdout",
		Long: `Print the records of topics on stdout: each value and a newline, unless told
otherwise. Reads on for new records until interrupted, or to the end with -e.

` + offsetHelp + `

` + formatHelp + `

` + envelopeHelp + `

A null key or value prints NULL, so that it differs from an empty one; -Z=TEXT or
--null=TEXT prints another text, --null= nothing, as kcat does without its -Z.
With -G the records are committed once they are written; with -G and no commit yet,
it begins at the beginning, unless -o end.
` + exitHelp,
		Example: `  weir consume orders -e
  weir consume orders -p 0 -o -10 -e -f '%o %k=%s\n'
  weir consume -G billing orders -J`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			topics := args
			if f.topic != "" {
				topics = append([]string{f.topic}, args...)
			}
			if len(topics) == 0 {
				return usagef("say which topic: weir consume TOPIC; see weir consume --help")
			}
			var keyDelim *string
			if c.Flags().Changed("key-delim") {
				keyDelim = &f.keyDelim
			}
			return f.run(c.Context(), in, unique(topics), keyDelim)
		},
	}
	fs := c.Flags()
	fs.StringVarP(&f.topic, "topic", "t", "", "topic; the same as naming it as an argument")
	fs.StringVarP(&f.partitions, "partition", "p", "", "only these partitions: 0 or 0,1,5-7")
	fs.StringArrayVarP(&f.offsets, "offset", "o", nil, "where to begin and stop; see above (default beginning)")
	fs.Int64VarP(&f.count, "count", "c", 0, "end after this many records")
	fs.BoolVarP(&f.exit, "exit", "e", false, "end at the end that the partitions have now")
	fs.StringVarP(&f.format, "format", "f", "", "output format; see above")
	fs.StringVarP(&f.delim, "delim", "D", `\n`, "text behind each record")
	fs.StringVarP(&f.keyDelim, "key-delim", "K", "", "print the key and this text before each value")
	fs.StringVarP(&f.null, "null", "Z", "NULL", "text for a null key, value or header value")
	fs.Lookup("null").NoOptDefVal = "NULL"
	fs.BoolVarP(&f.envelope, "json", "J", false, "JSON envelope, one object a line")
	fs.StringVarP(&f.group, "group", "G", "", "consume as a member of this group")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "nothing on stderr but errors")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "rebalances and where each partition begins, on stderr")
	fs.BoolVarP(&f.unbuffered, "unbuffered", "u", false, "write each record by itself")
	f.conn.flags(c)
	return c
}

// consumer is one run of consume.
type consumer struct {
	*session
	in        IO
	f         *consumeFlags
	cursors   map[topicPartition]*cursor
	committed bool // read_committed
	commits   bool // of the group
	write     func(b []byte, r *kgo.Record) []byte

	buf     []byte
	out     io.Writer
	printed int64
	marks   []*kgo.Record // last printed of each partition of this poll
	left    int           // partitions not at their limit yet; -1: no limit set
	bad     map[topicPartition]time.Time

	start    startAt                            // of a group without commits
	assigned atomic.Pointer[map[string][]int32] // new assignment to look at, with -G -e
}

// outMax is when the output is written even before the end of a fetch.
const outMax = 256 << 10

func (f *consumeFlags) run(ctx context.Context, in IO, topics []string, keyDelim *string) error {
	st, asJSON, err := parseStart(f.offsets, time.Now())
	if err != nil {
		return err
	}
	props, err := f.conn.load(in)
	if err != nil {
		return err
	}
	c := &consumer{in: in, f: f, out: in.Stdout, committed: props.committed, bad: map[topicPartition]time.Time{}}
	if c.write, err = f.writer(asJSON, keyDelim); err != nil {
		return err
	}
	if f.count < 0 {
		return usagef("--count %d: want at least 1, or leave it out", f.count)
	}
	var parts []int32
	if f.partitions != "" && f.partitions != "-1" {
		if parts, err = parsePartitions(f.partitions); err != nil {
			return usagef("%w", err)
		}
	}
	group := props.group
	if f.group != "" {
		group = f.group
		switch {
		case parts != nil:
			return usagef("-G shares out all partitions, so it cannot go with -p: leave one out")
		case st.stop != nil || st.kind == "offset" || st.kind == "back":
			return usagef("-G begins at the group's commits, so -o can only be beginning, end, stored or s@TIME: weir group reset moves the commits")
		}
	} else if st.kind == "stored" && group == "" {
		return usagef("-o stored needs a group: give -G GROUP, or -X group.id=GROUP to only read its commits")
	}
	if st.kind == "" && f.group == "" {
		st.kind = props.reset
		if st.kind == "none" {
			st.kind = ""
		}
	}
	for _, m := range []*moment{&st.from, st.stop} {
		if m != nil && m.ms != 0 {
			c.note("time understood as %s", m)
			if m.warning != "" {
				c.note("warning: %s", m.warning)
			}
		}
	}

	pool := &recordPool{}
	opts := []kgo.Opt{
		kgo.WithPools(pool),
		kgo.KeepControlRecords(), // to see that the end was passed; they are not printed
		kgo.KeepRetryableFetchErrors(),
		kgo.FetchMaxPartitionBytes(2 << 20),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if props.committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if f.group != "" {
		opts = append(opts, c.groupOptions(st, props, topics)...)
	}
	opts = append(opts, props.consumer...)
	if c.session, err = f.conn.open(ctx, in, props, false, opts...); err != nil {
		return err
	}
	defer c.Close()
	c.w.note = func(s string) { c.note("%s", s) }
	tps, err := c.partitions(topics, parts)
	if err != nil {
		return err
	}
	if f.group == "" {
		if err := c.assign(tps, st, group); err != nil {
			return err
		}
	}
	return c.finish(c.loop())
}

// writer chooses what a record looks like.
func (f *consumeFlags) writer(asJSON bool, keyDelim *string) (func([]byte, *kgo.Record) []byte, error) {
	if f.envelope || asJSON {
		if f.format != "" {
			return nil, usagef("-f and -J exclude each other: leave one out")
		}
		return appendEnvelope, nil
	}
	delim, err := unescape(f.delim)
	if err != nil {
		return nil, usagef("--delim: %w", err)
	}
	if keyDelim != nil {
		k, err := unescape(*keyDelim)
		if err != nil {
			return nil, usagef("--key-delim: %w", err)
		}
		keyDelim = &k
	}
	if f.format == "" {
		return lineFormat(keyDelim, delim, f.null).append, nil
	}
	fm, err := compileFormat(f.format, f.null)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return fm.append, nil
}

func (c *consumer) note(format string, args ...any) {
	if !c.f.quiet {
		fmt.Fprintf(c.in.Stderr, "%% "+format+"\n", args...)
	}
}

func (c *consumer) detail(format string, args ...any) {
	if c.f.verbose {
		c.note(format, args...)
	}
}

// bound limits one step of the setup by --timeout; the session itself has no
// bound, because following a topic has none.
func (s *session) bound() (*session, context.CancelFunc) {
	if s.timeout == 0 {
		return s, func() {}
	}
	b := *s
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(s.ctx, s.timeout)
	return &b, cancel
}

// partitions lists what is to be read, and refuses what does not exist.
func (c *consumer) partitions(topics []string, parts []int32) ([]topicPartition, error) {
	s, cancel := c.bound()
	defer cancel()
	found, err := s.adm.ListTopicsWithInternal(s.ctx, topics...)
	if err != nil {
		return nil, s.explain("look up topic "+strings.Join(topics, ", "), err)
	}
	var tps []topicPartition
	for _, name := range topics {
		t := found[name]
		switch {
		case t.Err == nil && len(t.Partitions) > 0:
		case t.Err == nil, errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			return nil, failf("topic %s does not exist: weir topic list shows what there is, weir topic create %s makes it", name, name)
		default:
			return nil, failf("cannot read topic %s: %s", name, describeError(t.Err, ""))
		}
		ps := parts
		if ps == nil {
			ps = t.Partitions.Numbers()
		}
		for _, p := range ps {
			if _, ok := t.Partitions[p]; !ok {
				return nil, failf("topic %s has no partition %d: it has 0 to %d", name, p, len(t.Partitions)-1)
			}
			tps = append(tps, topicPartition{name, p})
		}
	}
	return tps, nil
}

// assign begins reading the given partitions directly.
func (c *consumer) assign(tps []topicPartition, st startAt, group string) error {
	s, cancel := c.bound()
	defer cancel()
	cursors, notes, err := s.cursors(tps, st, c.f.exit, c.committed, group)
	if err != nil {
		return err
	}
	for _, n := range notes {
		c.note("%s", n)
	}
	c.cursors = cursors
	c.left = -1
	if c.f.exit || st.stop != nil {
		c.left = 0
	}
	begin := map[string]map[int32]kgo.Offset{}
	for _, tp := range tps {
		cur := cursors[tp]
		if cur.done {
			continue
		}
		if c.left >= 0 {
			c.left++
		}
		c.detail("reading %s [%d] from offset %d", tp.Topic, tp.Partition, cur.pos)
		if begin[tp.Topic] == nil {
			begin[tp.Topic] = map[int32]kgo.Offset{}
		}
		begin[tp.Topic][tp.Partition] = kgo.NewOffset().At(cur.pos)
	}
	c.cl.AddConsumePartitions(begin)
	return nil
}

var errDone = errors.New("done")

// idle is how long -e waits without records before it looks whether the rest
// of a partition holds none to print.
const idle = 500 * time.Millisecond

// loop reads until the end, the count, an error or the end of the context.
func (c *consumer) loop() error {
	if c.left == 0 {
		return nil
	}
	quiet, next := 0, 2 // polls without a record, and when to look by hand
	last := time.Now()
	for {
		pctx, cancel := c.ctx, context.CancelFunc(func() {})
		if c.left >= 0 {
			pctx, cancel = context.WithTimeout(c.ctx, idle)
		}
		fetches := c.cl.PollFetches(pctx)
		cancel()
		before := c.printed
		err := c.fetched(fetches)
		if werr := c.flush(); werr != nil {
			return werr
		}
		if c.commits {
			c.cl.MarkCommitRecords(c.marks...)
			c.marks = c.marks[:0]
		}
		for i := range fetches {
			recycle(&fetches[i])
		}
		if err == nil && c.ctx.Err() != nil {
			err = context.Cause(c.ctx)
		}
		if err != nil {
			return err
		}
		if m := c.assigned.Swap(nil); m != nil {
			if err := c.assignedNow(*m); err != nil {
				return err
			}
		}
		if c.left == 0 {
			return errDone
		}
		if c.f.group != "" {
			c.cl.AllowRebalance()
		}
		if c.printed != before {
			quiet, next, last = 0, 2, time.Now()
			continue
		}
		if c.left < 0 {
			continue
		}
		if quiet++; quiet >= next && len(c.cursors) > 0 {
			next = 2 * quiet
			more, err := c.skipInvisible()
			if err != nil {
				return err
			}
			if c.left == 0 {
				return errDone
			}
			if more { // the broker is well, the records are on their way
				last = time.Now()
			}
		}
		if c.timeout > 0 && time.Since(last) > c.timeout {
			if f := c.w.blame(); f != nil {
				return f
			}
			return failf("no record came for %v, though the end is not reached: look at the broker's log, or give a longer --timeout", c.timeout)
		}
	}
}

// fetched prints the records of one poll.
func (c *consumer) fetched(fetches kgo.Fetches) error {
	var stop error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if stop != nil {
			return
		}
		tp := topicPartition{p.Topic, p.Partition}
		if p.Err != nil {
			stop = c.fetchError(tp, p.Err)
			return
		}
		if len(p.Records) > 0 {
			delete(c.bad, tp)
			stop = c.print(tp, p.Records)
		}
	})
	return stop
}

func (c *consumer) print(tp topicPartition, records []*kgo.Record) error {
	cur := c.cursors[tp]
	if cur == nil && c.f.exit { // of a group, before assignedNow
		cur = &cursor{limit: math.MaxInt64}
		c.cursors[tp] = cur
	}
	var marked *kgo.Record
	defer func() {
		if marked != nil && c.commits {
			c.marks = append(c.marks, marked)
		}
	}()
	for _, r := range records {
		if cur != nil {
			if cur.done {
				return nil
			}
			cur.pos = r.Offset + 1
			if r.Offset >= cur.limit {
				c.reached(tp, cur)
				return nil
			}
		}
		marked = r
		if !r.Attrs.IsControl() {
			c.buf = c.write(c.buf, r)
			c.printed++
			if len(c.buf) >= outMax || c.f.unbuffered {
				if err := c.flush(); err != nil {
					return err
				}
			}
			if c.printed == c.f.count {
				return errDone
			}
		}
		if cur != nil && cur.pos >= cur.limit {
			c.reached(tp, cur)
			return nil
		}
	}
	return nil
}

func (c *consumer) reached(tp topicPartition, cur *cursor) {
	cur.done = true
	c.left--
	c.detail("reached the end of %s [%d] at offset %d", tp.Topic, tp.Partition, cur.limit)
	if c.f.group == "" {
		c.cl.PauseFetchPartitions(map[string][]int32{tp.Topic: {tp.Partition}})
	}
}

func (c *consumer) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.out.Write(c.buf)
	c.buf = c.buf[:0]
	if err != nil {
		return failf("cannot write to stdout: %w", err)
	}
	return nil
}

func recycle(f *kgo.Fetch) {
	for i := range f.Topics {
		for j := range f.Topics[i].Partitions {
			for _, r := range f.Topics[i].Partitions[j].Records {
				r.Recycle()
			}
		}
	}
}

// fetchError decides whether an error of a partition ends the command. What a
// client gets over by itself (a new leader, a restart) is given --timeout.
func (c *consumer) fetchError(tp topicPartition, err error) error {
	if tp.Partition < 0 || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if c.ctx.Err() == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return c.explain("consume", err)
		}
		return nil // the poll's own end
	}
	if loss, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		c.note("warning: %v", loss)
		return nil
	}
	doing := fmt.Sprintf("read %s [%d]", tp.Topic, tp.Partition)
	if !kerr.IsRetriable(err) && !kgo.IsRetryableBrokerErr(err) {
		return c.explain(doing, err)
	}
	since, again := c.bad[tp]
	if !again {
		c.bad[tp] = time.Now()
		c.detail("cannot %s just now (%v), trying again", doing, err)
		return nil
	}
	if c.timeout > 0 && time.Since(since) > c.timeout {
		if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
			return failf("topic %s is gone: it was deleted while it was read", tp.Topic)
		}
		return c.explain(doing, err)
	}
	return nil
}

// finish commits, and turns the ends that are no errors into success.
func (c *consumer) finish(err error) error {
	if c.f.group != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), 5*time.Second)
		defer cancel()
		if c.commits {
			cerr := c.cl.CommitMarkedOffsets(ctx)
			if cerr != nil && (err == nil || err == errDone) {
				err = failf("the records were printed, and committing them failed: %w", cerr)
			}
		}
		c.cl.AllowRebalance()
		c.cl.LeaveGroupContext(ctx)
	}
	if err == nil || err == errDone {
		if c.left == 0 && !c.f.verbose && c.f.exit && c.f.group == "" {
			for _, tp := range slices.SortedFunc(maps.Keys(c.cursors), topicPartition.compare) {
				c.note("Reached end of topic %s [%d] at offset %d", tp.Topic, tp.Partition, c.cursors[tp].limit)
			}
		}
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if f, ok := errors.AsType[*Failure](context.Cause(c.ctx)); ok {
		return f
	}
	if c.ctx.Err() != nil {
		return nil // SIGINT is how one stops following a topic
	}
	return c.explain("consume", err)
}
