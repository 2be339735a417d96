package kafkatools

import (
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// topicPartition names a partition.
type topicPartition struct {
	topic     string
	partition int32
}

func (tp topicPartition) String() string { return tp.topic + "-" + itoa(int64(tp.partition)) }

func byName(a, b topicPartition) int {
	if a.topic != b.topic {
		return strings.Compare(a.topic, b.topic)
	}
	return int(a.partition - b.partition)
}

// partitions are what --topic names: topic, or topic:0,1.
func (f *groupFlags) partitions(k *cluster) ([]topicPartition, error) {
	var out []topicPartition
	var whole []string
	for _, arg := range f.topic.values {
		topic, list, some := strings.Cut(arg, ":")
		if !some {
			whole = append(whole, topic)
			continue
		}
		for part := range strings.SplitSeq(list, ",") {
			n, err := strconv.ParseInt(part, 10, 32)
			if err != nil {
				return nil, usage(&f.options, fmt.Sprintf("Invalid partition '%s' specified in topic arg '%s''", part, arg))
			}
			out = append(out, topicPartition{topic, int32(n)})
		}
	}
	if len(whole) > 0 {
		md, err := k.metadata("describeTopics", whole)
		if err != nil {
			return nil, err
		}
		for _, t := range md.Topics {
			if err := answered(t.ErrorCode, nil); err != nil {
				return nil, err
			}
			for _, p := range t.Partitions {
				out = append(out, topicPartition{*t.Topic, p.Partition})
			}
		}
	}
	slices.SortFunc(out, byName)
	return slices.Compact(out), nil
}

// bounds are the first and the last offset of partitions that must exist.
func (k *cluster) bounds(tps []topicPartition) (starts, ends kadm.ListedOffsets, err error) {
	var topics []string
	for _, tp := range tps {
		topics = append(topics, tp.topic)
	}
	slices.Sort(topics)
	topics = slices.Compact(topics)
	adm := kadm.NewClient(k.cl)
	if starts, err = adm.ListStartOffsets(k.ctx, topics...); err == nil {
		ends, err = adm.ListEndOffsets(k.ctx, topics...)
	}
	if err != nil {
		return nil, nil, inFuture(java("listOffsets", err))
	}
	var unknown []string
	for _, tp := range tps {
		if _, ok := ends.Lookup(tp.topic, tp.partition); !ok {
			unknown = append(unknown, tp.String())
		}
	}
	if len(unknown) > 0 {
		return nil, nil, &javaError{class: apiErrors + "UnknownTopicOrPartitionException", message: `The partitions "` + strings.Join(unknown, ",") + `" do not exist`}
	}
	return starts, ends, nil
}

func (f *groupFlags) runReset(c *call, k *cluster) error {
	names, err := f.names(k)
	if err != nil {
		return err
	}
	type line struct {
		group string
		tp    topicPartition
		at    int64
	}
	var lines []line
	for _, name := range names {
		v, err := k.view(name)
		if err != nil && java("", err).class != apiErrors+"GroupIdNotFoundException" {
			return inFuture(err)
		}
		if v != nil && v.state != "Empty" && v.state != "Dead" {
			c.printf("\nError: Assignments can only be reset if the group '%s' is inactive, but the current state is %s.\n", name, v.state)
			continue
		}
		plan, err := f.plan(c, k, name)
		if err != nil {
			return err
		}
		tps := make([]topicPartition, 0, len(plan))
		for tp := range plan {
			tps = append(tps, tp)
		}
		slices.SortFunc(tps, byName)
		if f.execute.given && len(tps) > 0 {
			var offsets kadm.Offsets
			for _, tp := range tps {
				offsets.Add(kadm.Offset{Topic: tp.topic, Partition: tp.partition, At: plan[tp], LeaderEpoch: -1})
			}
			got, err := kadm.NewClient(k.cl).CommitOffsets(k.ctx, name, offsets)
			if err == nil {
				err = got.Error()
			}
			if err != nil {
				return inFuture(java("alterConsumerGroupOffsets", err))
			}
		}
		for _, tp := range tps {
			lines = append(lines, line{name, tp, plan[tp]})
		}
	}
	if f.export.given {
		for _, l := range lines {
			if len(names) > 1 || f.allGroups.given {
				c.printf("%s,", l.group)
			}
			c.printf("%s,%d,%d\n", l.tp.topic, l.tp.partition, l.at)
		}
		c.printf("\n")
		return nil
	}
	group, topic := 15, 15
	for _, l := range lines {
		group, topic = max(group, len(l.group)), max(topic, len(l.tp.topic))
	}
	c.printf("\n%-*s %-*s %-10s %s\n", group, "GROUP", topic, "TOPIC", "PARTITION", "NEW-OFFSET")
	for _, l := range lines {
		c.printf("%-*s %-*s %-10d %d\n", group, l.group, topic, l.tp.topic, l.tp.partition, l.at)
	}
	return nil
}

// plan is where the group's offsets are to be.
func (f *groupFlags) plan(c *call, k *cluster, group string) (map[topicPartition]int64, error) {
	if f.fromFile.given {
		return f.fromCSV(k, group)
	}
	offsets, err := k.committed(group)
	if err != nil {
		return nil, inFuture(err)
	}
	var tps []topicPartition
	switch {
	case f.allTopics.given:
		for _, o := range offsets.Sorted() {
			tps = append(tps, topicPartition{o.Topic, o.Partition})
		}
	case f.topic.given:
		if tps, err = f.partitions(k); err != nil {
			return nil, err
		}
	default:
		return nil, usage(&f.options, "One of the reset scopes should be defined: --all-topics, --topic.")
	}
	if len(tps) == 0 {
		return nil, nil
	}
	starts, ends, err := k.bounds(tps)
	if err != nil {
		return nil, err
	}
	out := map[topicPartition]int64{}
	clamp := func(tp topicPartition, at int64) int64 {
		s, _ := starts.Lookup(tp.topic, tp.partition)
		e, _ := ends.Lookup(tp.topic, tp.partition)
		switch {
		case at > e.Offset:
			c.errorf("%s", logLine("WARN", fmt.Sprintf("New offset (%d) is higher than latest offset for topic partition %s. Value will be set to %d", at, tp, e.Offset), "org.apache.kafka.tools.OffsetsUtils"))
			return e.Offset
		case at < s.Offset:
			c.errorf("%s", logLine("WARN", fmt.Sprintf("New offset (%d) is lower than earliest offset for topic partition %s. Value will be set to %d", at, tp, s.Offset), "org.apache.kafka.tools.OffsetsUtils"))
			return s.Offset
		}
		return at
	}
	var when int64 = -1
	switch {
	case f.toDate.given:
		word, err := f.toDate.one()
		if err != nil {
			return nil, err
		}
		if when, err = dateTime(word); err != nil {
			return nil, err
		}
	case f.byDuration.given:
		word, err := f.byDuration.one()
		if err != nil {
			return nil, err
		}
		d, err := isoDuration(word)
		if err != nil {
			return nil, err
		}
		when = time.Now().Add(-d).UnixMilli()
	}
	var at kadm.ListedOffsets
	if when >= 0 {
		var topics []string
		for _, tp := range tps {
			topics = append(topics, tp.topic)
		}
		slices.Sort(topics)
		if at, err = kadm.NewClient(k.cl).ListOffsetsAfterMilli(k.ctx, when, slices.Compact(topics)...); err != nil {
			return nil, inFuture(java("listOffsets", err))
		}
	}
	for _, tp := range tps {
		s, _ := starts.Lookup(tp.topic, tp.partition)
		e, _ := ends.Lookup(tp.topic, tp.partition)
		o, has := offsets.Lookup(tp.topic, tp.partition)
		has = has && o.At >= 0
		switch {
		case f.toEarliest.given:
			out[tp] = s.Offset
		case f.toLatest.given:
			out[tp] = e.Offset
		case f.toOffset.given:
			n, err := f.toOffset.integer(64)
			if err != nil {
				return nil, err
			}
			out[tp] = clamp(tp, n)
		case f.shiftBy.given:
			n, err := f.shiftBy.integer(64)
			if err != nil {
				return nil, err
			}
			if !has {
				return nil, illegalArgument("Cannot shift offset for partition %s since there is no current committed offset", tp)
			}
			out[tp] = clamp(tp, o.At+n)
		case f.toCurrent.given:
			if out[tp] = e.Offset; has {
				out[tp] = clamp(tp, o.At)
			}
		case when >= 0:
			out[tp] = e.Offset
			// Without a record at or after the time, a listing gives the end.
			if l, ok := at.Lookup(tp.topic, tp.partition); ok && l.Err == nil && l.Offset >= 0 && l.Offset < e.Offset {
				out[tp] = l.Offset
			} else {
				c.printf("\nWarn: Partition %d from topic %s is empty. Falling back to latest known offset.\n", tp.partition, tp.topic)
			}
		default:
			return nil, usage(&f.options, "Option '[reset-offsets]' requires one of the following scenarios: [[to-datetime], [by-duration], [to-latest], [to-current], [to-earliest], [to-offset], [shift-by], [from-file]]")
		}
	}
	return out, nil
}

// fromCSV reads what --export printed: topic,partition,offset or group,topic,partition,offset.
func (f *groupFlags) fromCSV(k *cluster, group string) (map[topicPartition]int64, error) {
	path, err := f.fromFile.one()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, noSuchFile(path, err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.FieldsPerRecord = -1
	all, err := r.ReadAll()
	if err != nil {
		return nil, illegalArgument("%s: %v", path, err)
	}
	out := map[topicPartition]int64{}
	var tps []topicPartition
	for i, row := range all {
		if len(row) == 4 {
			if row[0] != group {
				continue
			}
			row = row[1:]
		}
		if len(row) != 3 {
			return nil, illegalArgument("%s line %d: want topic,partition,offset", path, i+1)
		}
		p, perr := strconv.ParseInt(strings.TrimSpace(row[1]), 10, 32)
		at, oerr := strconv.ParseInt(strings.TrimSpace(row[2]), 10, 64)
		if perr != nil || oerr != nil {
			return nil, illegalArgument("%s line %d: want topic,partition,offset", path, i+1)
		}
		tp := topicPartition{row[0], int32(p)}
		out[tp] = at
		tps = append(tps, tp)
	}
	if len(tps) == 0 {
		return out, nil
	}
	starts, ends, err := k.bounds(tps)
	if err != nil {
		return nil, err
	}
	for tp, at := range out {
		s, _ := starts.Lookup(tp.topic, tp.partition)
		e, _ := ends.Lookup(tp.topic, tp.partition)
		out[tp] = min(max(at, s.Offset), e.Offset)
	}
	return out, nil
}

// dateTime reads YYYY-MM-DDTHH:mm:SS.sss with or without a zone (then UTC) as ms since 1970.
func dateTime(s string) (int64, error) {
	parse := func(format string, args ...any) error {
		e := &javaError{class: "java.text.ParseException", message: fmt.Sprintf(format, args...)}
		return &javaError{class: "java.lang.RuntimeException", message: e.line(), cause: e}
	}
	if !strings.Contains(s, "T") {
		return 0, parse("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
	}
	for _, layout := range []string{"2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.000-0700", "2006-01-02T15:04:05.000-07", "2006-01-02T15:04:05.000", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, parse("Unparseable date: \"%s\"", s)
}

var durationForm = regexp.MustCompile(`^(-)?[Pp](?:(-?\d+)[Dd])?(?:[Tt](?:(-?\d+)[Hh])?(?:(-?\d+)[Mm])?(?:(-?\d+(?:\.\d{1,9})?)[Ss])?)?$`)

// isoDuration reads PnDTnHnMn.nS.
func isoDuration(s string) (time.Duration, error) {
	m := durationForm.FindStringSubmatch(s)
	if m == nil || m[2]+m[3]+m[4]+m[5] == "" {
		return 0, &javaError{class: "java.time.format.DateTimeParseException", message: "Text cannot be parsed to a Duration"}
	}
	var sum float64
	for i, unit := range []float64{24 * 3600, 3600, 60, 1} {
		v, _ := strconv.ParseFloat(m[i+2], 64)
		sum += v * unit
	}
	if m[1] != "" {
		sum = -sum
	}
	return time.Duration(sum * float64(time.Second)), nil
}

func (f *groupFlags) runDeleteOffsets(c *call, k *cluster) error {
	group, err := f.group.one()
	if err != nil {
		return err
	}
	tps, err := f.partitions(k)
	if err != nil {
		return err
	}
	set := kadm.TopicsSet{}
	for _, tp := range tps {
		set.Add(tp.topic, tp.partition)
	}
	got, err := kadm.NewClient(k.cl).DeleteOffsets(k.ctx, group, set)
	failed := map[topicPartition]error{}
	if err != nil {
		e := java("deleteConsumerGroupOffsets", err)
		if e.class == apiErrors+"TimeoutException" {
			return inFuture(e)
		}
		c.printf("\nError: %s\n", e.message)
		for _, tp := range tps {
			failed[tp] = e
		}
	} else {
		for _, tp := range tps {
			if perr, ok := got.Lookup(tp.topic, tp.partition); ok && perr != nil {
				failed[tp] = perr
			}
		}
		if len(failed) > 0 {
			c.printf("\nError: Encountered some partition-level error, see the follow-up details.\n")
		} else {
			c.printf("Request succeeded for deleting offsets from group %s.\n", group)
		}
	}
	c.printf("\n%-15s %-10s %-15s\n", "TOPIC", "PARTITION", "STATUS")
	for _, tp := range tps {
		status := "Successful"
		if err := failed[tp]; err != nil {
			status = "Error: " + java("", err).line()
		}
		c.printf("%-15s %-10d %-15s\n", tp.topic, tp.partition, status)
	}
	return nil
}
