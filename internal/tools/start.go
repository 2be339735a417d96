package tools

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// startAt is where consume begins in each partition: the -o flag.
type startAt struct {
	kind string // beginning, end, stored, offset, back, time
	n    int64  // of offset and back
	from moment // of time
	stop *moment
}

const offsetHelp = `Start (-o): beginning | end | stored (the group's commit) | N (that offset) | -N (the
last N of each partition) | s@TIME (first record at or after) ; and e@TIME, also beside
another -o: stop there. TIME is ms since 1970 or a date with zone. -o json is -J.`

// parseStart reads the -o flags. asJSON reports that one of them was "json".
func parseStart(flags []string, now time.Time) (st startAt, asJSON bool, err error) {
	set := func(s startAt) error {
		if st.kind != "" {
			return usagef("-o says twice where to begin: give one start, and at most one e@TIME")
		}
		s.stop = st.stop
		st = s
		return nil
	}
	for _, f := range flags {
		switch {
		case f == "json":
			asJSON = true
		case f == "beginning" || f == "earliest" || f == "start":
			err = set(startAt{kind: "beginning"})
		case f == "end" || f == "latest":
			err = set(startAt{kind: "end"})
		case f == "stored":
			err = set(startAt{kind: "stored"})
		case strings.HasPrefix(f, "s@") || strings.HasPrefix(f, "e@"):
			m, merr := parseMoment(f[2:], now)
			switch {
			case merr != nil:
				err = usagef("-o %s: %w", f, merr)
			case f[0] == 's':
				err = set(startAt{kind: "time", from: m})
			case st.stop != nil:
				err = usagef("-o says twice where to stop: give one e@TIME")
			default:
				st.stop = &m
			}
		default:
			n, perr := strconv.ParseInt(f, 10, 64)
			switch {
			case perr != nil || n == math.MinInt64:
				err = usagef("-o %s is no offset: write beginning, end, stored, N, -N, s@TIME or e@TIME", f)
			case strings.HasPrefix(f, "-"):
				err = set(startAt{kind: "back", n: -n})
			default:
				err = set(startAt{kind: "offset", n: n})
			}
		}
		if err != nil {
			return st, asJSON, err
		}
	}
	return st, asJSON, nil
}

// cursor is one partition while it is read: the next offset, and where to
// stop. limit is the end seen at the start, for -e and e@.
type cursor struct {
	pos   int64
	limit int64 // records at and after it are not printed; MaxInt64: none
	done  bool
}

// cursors works out start and limit of every partition before anything is
// read. notes are for people: what was moved, and why.
func (s *session) cursors(tps []topicPartition, st startAt, exitAtEnd, committed bool, group string) (map[topicPartition]*cursor, []string, error) {
	var notes []string
	starts := s.listOffsets(tps, earliestOffset, false)
	ends := s.listOffsets(tps, latestOffset, committed)
	var from, stop map[topicPartition]listed
	if st.kind == "time" {
		from = s.listOffsets(tps, max(st.from.ms, 0), committed)
	}
	if st.stop != nil {
		stop = s.listOffsets(tps, max(st.stop.ms, 0), committed)
	}
	stored := map[topicPartition]int64{}
	if st.kind == "stored" {
		commits, err := s.commits(group)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range commits.Sorted() {
			if o.Err == nil && o.At >= 0 {
				stored[topicPartition{o.Topic, o.Partition}] = o.At
			}
		}
	}
	out := make(map[topicPartition]*cursor, len(tps))
	for _, tp := range tps {
		if err := cmp.Or(starts[tp].err, ends[tp].err, from[tp].err, stop[tp].err); err != nil {
			return nil, nil, s.explain(fmt.Sprintf("list offsets of %s [%d]", tp.Topic, tp.Partition), err)
		}
		start, end := starts[tp].offset, ends[tp].offset
		c := &cursor{limit: math.MaxInt64}
		if exitAtEnd || st.stop != nil {
			c.limit = end
		}
		if st.stop != nil && stop[tp].offset >= 0 {
			c.limit = min(c.limit, stop[tp].offset)
		}
		switch st.kind {
		case "", "beginning":
			c.pos = start
		case "end":
			c.pos = end
		case "back":
			c.pos = max(start, end-st.n)
		case "offset":
			c.pos = st.n
			if c.pos > end {
				return nil, nil, failf("offset %d is beyond the end of %s [%d], which has %d to %d: give another -o", st.n, tp.Topic, tp.Partition, start, end)
			}
		case "stored":
			at, ok := stored[tp]
			if !ok {
				notes = append(notes, fmt.Sprintf("group %s has no commit for %s [%d]: beginning at %d", group, tp.Topic, tp.Partition, start))
				at = start
			}
			c.pos = at
		case "time":
			c.pos = from[tp].offset
			if c.pos < 0 {
				c.pos = end
				notes = append(notes, fmt.Sprintf("%s [%d] has no record at or after that time: beginning at its end, %d", tp.Topic, tp.Partition, end))
			}
		}
		if c.pos < start {
			notes = append(notes, fmt.Sprintf("offset %d of %s [%d] is no longer there: beginning at %d", c.pos, tp.Topic, tp.Partition, start))
			c.pos = start
		}
		c.done = c.pos >= c.limit
		out[tp] = c
	}
	return out, notes, nil
}
