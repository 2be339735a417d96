package metadata

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/weirmq/weir/internal/kafka"
)

// recordVersion is written as "v". A reader refuses a higher one: it could not
// know what it misses.
const recordVersion = 1

// maxRecordPartitions bounds what one record may unfold to.
const maxRecordPartitions = 1 << 20

// AppendRecords writes the records one to a line, each a JSON object. The form
// is described in docs/format/metadata-log.md.
func AppendRecords(dst []byte, rs []Record) []byte {
	for _, r := range rs {
		dst = appendRecord(dst, r)
		dst = append(dst, '\n')
	}
	return dst
}

// DecodeRecords reads what AppendRecords wrote. The records do not alias b.
func DecodeRecords(b []byte) ([]Record, error) {
	rs := make([]Record, 0, bytes.Count(b, []byte{'\n'}))
	var rd jsonReader
	for n := 1; len(b) > 0; n++ {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			return nil, fmt.Errorf("metadata record %d has no end of line", n)
		}
		r, err := decodeRecord(&rd, line)
		if err != nil {
			return nil, fmt.Errorf("metadata record %d: %w", n, err)
		}
		rs = append(rs, r)
	}
	return rs, nil
}

func appendRecord(b []byte, r Record) []byte {
	b = append(b, `{"t":"`...)
	b = append(b, r.recordType()...)
	b = append(b, `","v":`...)
	b = strconv.AppendInt(b, recordVersion, 10)
	switch r := r.(type) {
	case *ClusterRecord:
		b = fieldString(b, "id", r.ID)
		b = fieldInt(b, "brokerEpoch", r.BrokerEpoch, 0)
	case *TopicRecord:
		b = fieldString(b, "name", r.Name)
		b = fieldString(b, "id", r.ID.String())
		b = fieldPartitions(b, r.Partitions)
	case *PartitionsRecord:
		b = fieldString(b, "id", r.ID.String())
		b = fieldInt(b, "first", int64(r.First), 0)
		b = fieldPartitions(b, r.Partitions)
	case *PartitionRecord:
		b = fieldString(b, "id", r.ID.String())
		b = fieldInt(b, "index", int64(r.Index), 0)
		b = append(b, `,"partition":`...)
		b = appendPartition(b, &r.Partition, 1)
	case *LeaderEpochsRecord:
		b = fieldInt(b, "leader", int64(r.Leader), -1)
	case *TopicRemovedRecord:
		b = fieldString(b, "id", r.ID.String())
	case *ConfigRecord:
		b = fieldInt(b, "kind", int64(r.Key.Kind), 0)
		b = fieldString(b, "name", r.Key.Name)
		b = fieldConfigs(b, r)
	case *BrokerRecord:
		b = fieldBroker(b, &r.Broker)
	case *BrokerRemovedRecord:
		b = fieldInt(b, "id", int64(r.ID), -1)
	case *ProducerIDsRecord:
		b = fieldInt(b, "next", int64(r.Next), 0)
	default:
		panic(fmt.Sprintf("BUG: unknown metadata record %T", r))
	}
	return append(b, '}')
}

func fieldName(b []byte, name string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func fieldString(b []byte, name, s string) []byte { return appendString(fieldName(b, name), s) }

// fieldInt leaves the field out when it has its default.
func fieldInt(b []byte, name string, n, def int64) []byte {
	if n == def {
		return b
	}
	return strconv.AppendInt(fieldName(b, name), n, 10)
}

func fieldTrue(b []byte, name string, on bool) []byte {
	if !on {
		return b
	}
	return append(fieldName(b, name), "true"...)
}

func fieldIDs(b []byte, name string, ids []kafka.BrokerID) []byte {
	b = append(fieldName(b, name), '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

// fieldPartitions writes a run of equal neighbours once, with its length: on
// one node a topic of 1000 partitions is one short line.
func fieldPartitions(b []byte, ps []Partition) []byte {
	b = append(fieldName(b, "partitions"), '[')
	for i := 0; i < len(ps); {
		n := 1
		for i+n < len(ps) && equalPartition(&ps[i], &ps[i+n]) {
			n++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendPartition(b, &ps[i], n)
		i += n
	}
	return append(b, ']')
}

func equalPartition(a, b *Partition) bool {
	return a.Leader == b.Leader && a.LeaderEpoch == b.LeaderEpoch && a.PartitionEpoch == b.PartitionEpoch &&
		slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.ISR, b.ISR) &&
		slices.Equal(a.Adding, b.Adding) && slices.Equal(a.Removing, b.Removing)
}

// appendPartition leaves out what a fresh partition has: all replicas in sync,
// the first leading, epochs 0.
func appendPartition(b []byte, p *Partition, count int) []byte {
	at := len(b)
	b = fieldInt(b, "count", int64(count), 1)
	b = fieldIDs(b, "replicas", p.Replicas)
	if !slices.Equal(p.ISR, p.Replicas) {
		b = fieldIDs(b, "isr", p.ISR)
	}
	if len(p.Replicas) == 0 || p.Leader != p.Replicas[0] {
		b = fieldInt(b, "leader", int64(p.Leader), -2)
	}
	b = fieldInt(b, "leaderEpoch", int64(p.LeaderEpoch), 0)
	b = fieldInt(b, "partitionEpoch", int64(p.PartitionEpoch), 0)
	if len(p.Adding) > 0 {
		b = fieldIDs(b, "adding", p.Adding)
	}
	if len(p.Removing) > 0 {
		b = fieldIDs(b, "removing", p.Removing)
	}
	b[at] = '{' // in place of the first field's comma
	return append(b, '}')
}

func fieldConfigs(b []byte, r *ConfigRecord) []byte {
	if len(r.Set) > 0 {
		keys := make([]string, 0, len(r.Set))
		for k := range r.Set {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b = fieldName(b, "set")
		for i, k := range keys {
			b = append(b, ",{"[btoi(i == 0)])
			b = append(appendString(b, k), ':')
			b = appendString(b, r.Set[k])
		}
		b = append(b, '}')
	}
	if len(r.Delete) > 0 {
		b = fieldName(b, "delete")
		for i, k := range r.Delete {
			b = append(b, ",["[btoi(i == 0)])
			b = appendString(b, k)
		}
		b = append(b, ']')
	}
	return b
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func fieldBroker(b []byte, r *Broker) []byte {
	b = fieldInt(b, "id", int64(r.ID), -1)
	b = fieldString(b, "incarnation", base64.RawURLEncoding.EncodeToString(r.Incarnation[:]))
	b = fieldInt(b, "epoch", r.Epoch, 0)
	b = append(fieldName(b, "listeners"), '[')
	for i, l := range r.Listeners {
		if i > 0 {
			b = append(b, ',')
		}
		at := len(b)
		b = fieldString(b, "name", l.Name)
		b = fieldString(b, "host", l.Host)
		b = fieldInt(b, "port", int64(l.Port), 0)
		b = fieldString(b, "security", l.Security)
		b[at] = '{'
		b = append(b, '}')
	}
	b = append(b, ']')
	if r.Rack != nil {
		b = fieldString(b, "rack", *r.Rack)
	}
	b = fieldTrue(b, "fenced", r.Fenced)
	return fieldTrue(b, "leaving", r.Leaving)
}

// raw gathers the fields of all record types; which of them count depends on
// the type, which may stand anywhere in the object.
type raw struct {
	typ, id, name     string
	version           int64
	partitions        []Partition
	partition         *Partition
	first, index      int32
	leader            int32
	kind              int64
	set               map[string]string
	del               []string
	number            int64 // a numeric id
	broker            Broker
	incarnation       string
	brokerEpoch, next int64
}

func decodeRecord(rd *jsonReader, line []byte) (Record, error) {
	rd.b, rd.i, rd.err = line, 0, nil
	var w raw
	rd.object(func(key []byte) { w.field(rd, key) })
	if rd.err == nil {
		if rd.space(); rd.i != len(rd.b) {
			rd.fail("more after the object")
		}
	}
	if rd.err != nil {
		return nil, rd.err
	}
	if w.version > recordVersion {
		return nil, fmt.Errorf("%s is of version %d and this program knows %d: it was written by a newer one", w.typ, w.version, recordVersion)
	}
	if w.version < 1 {
		return nil, fmt.Errorf("%q has no version", w.typ)
	}
	return w.record()
}

func (w *raw) field(rd *jsonReader, key []byte) {
	switch string(key) {
	case "t":
		w.typ = rd.str()
	case "v":
		w.version = rd.int(32)
	case "id":
		if rd.peek() == '"' {
			w.id = rd.str()
		} else {
			w.number = rd.int(32)
		}
	case "name":
		w.name = rd.str()
	case "partitions":
		w.partitions = readPartitions(rd)
	case "partition":
		p, _ := readPartition(rd)
		w.partition = &p
	case "first":
		w.first = rd.int32()
	case "index":
		w.index = rd.int32()
	case "kind":
		w.kind = rd.int(8)
	case "set":
		w.set = map[string]string{}
		rd.object(func(k []byte) { key := string(k); w.set[key] = rd.str() })
	case "delete":
		rd.array(func() { w.del = append(w.del, rd.str()) })
	case "incarnation":
		w.incarnation = rd.str()
	case "epoch":
		w.broker.Epoch = rd.int(64)
	case "listeners":
		rd.array(func() { w.broker.Listeners = append(w.broker.Listeners, readListener(rd)) })
	case "rack":
		rack := rd.str()
		w.broker.Rack = &rack
	case "leader":
		w.leader = rd.int32()
	case "fenced":
		w.broker.Fenced = rd.bool()
	case "leaving":
		w.broker.Leaving = rd.bool()
	case "brokerEpoch":
		w.brokerEpoch = rd.int(64)
	case "next":
		w.next = rd.int(64)
	default:
		rd.skip(0)
	}
}

func (w *raw) record() (Record, error) {
	switch w.typ {
	case "cluster":
		return &ClusterRecord{ID: w.id, BrokerEpoch: w.brokerEpoch}, nil
	case "topic", "partitions", "partition", "topic-removed":
		id, err := kafka.ParseTopicID(w.id)
		if err != nil {
			return nil, err
		}
		switch w.typ {
		case "topic":
			return &TopicRecord{Name: w.name, ID: id, Partitions: w.partitions}, nil
		case "partitions":
			return &PartitionsRecord{ID: id, First: w.first, Partitions: w.partitions}, nil
		case "partition":
			if w.partition == nil {
				return nil, fmt.Errorf("partition record without a partition")
			}
			return &PartitionRecord{ID: id, Index: w.index, Partition: *w.partition}, nil
		}
		return &TopicRemovedRecord{ID: id}, nil
	case "config":
		r := &ConfigRecord{Key: ConfigKey{ConfigKind(w.kind), w.name}, Delete: w.del}
		if len(w.set) > 0 {
			r.Set = w.set
		}
		return r, nil
	case "broker":
		b := w.broker
		b.ID = kafka.BrokerID(w.number)
		raw, err := base64.RawURLEncoding.DecodeString(w.incarnation)
		if err != nil || len(raw) != len(b.Incarnation) {
			return nil, fmt.Errorf("broker %d: incarnation %q: want 22 characters of URL-safe base64", b.ID, w.incarnation)
		}
		copy(b.Incarnation[:], raw)
		return &BrokerRecord{Broker: b}, nil
	case "leader-epochs":
		return &LeaderEpochsRecord{Leader: kafka.BrokerID(w.leader)}, nil
	case "broker-removed":
		return &BrokerRemovedRecord{ID: kafka.BrokerID(w.number)}, nil
	case "producer-ids":
		return &ProducerIDsRecord{Next: kafka.ProducerID(w.next)}, nil
	}
	return nil, fmt.Errorf("record type %q is not known", w.typ)
}

func readPartitions(rd *jsonReader) (ps []Partition) {
	rd.array(func() {
		p, n := readPartition(rd)
		if n < 1 || n > maxRecordPartitions-len(ps) {
			rd.fail("more than %d partitions or a count below 1", maxRecordPartitions)
			return
		}
		ps = slices.Grow(ps, n)
		for range n {
			ps = append(ps, p)
		}
	})
	return ps
}

func readPartition(rd *jsonReader) (p Partition, count int) {
	count = 1
	var isr, leader bool
	rd.object(func(key []byte) {
		switch string(key) {
		case "count":
			count = int(rd.int32())
		case "replicas":
			p.Replicas = readIDs(rd)
		case "isr":
			p.ISR, isr = readIDs(rd), true
		case "leader":
			p.Leader, leader = kafka.BrokerID(rd.int32()), true
		case "leaderEpoch":
			p.LeaderEpoch = kafka.Epoch(rd.int32())
		case "partitionEpoch":
			p.PartitionEpoch = rd.int32()
		case "adding":
			p.Adding = readIDs(rd)
		case "removing":
			p.Removing = readIDs(rd)
		default:
			rd.skip(0)
		}
	})
	if !isr {
		p.ISR = p.Replicas
	}
	if !leader {
		p.Leader = kafka.NoBroker
		if len(p.Replicas) > 0 {
			p.Leader = p.Replicas[0]
		}
	}
	return p, count
}

func readIDs(rd *jsonReader) []kafka.BrokerID {
	rd.scratch = rd.scratch[:0]
	rd.array(func() { rd.scratch = append(rd.scratch, kafka.BrokerID(rd.int32())) })
	if len(rd.scratch) == 0 {
		return nil
	}
	if !slices.Equal(rd.ids, rd.scratch) {
		rd.ids = slices.Clone(rd.scratch)
	}
	return rd.ids
}

func readListener(rd *jsonReader) (l Listener) {
	rd.object(func(key []byte) {
		switch string(key) {
		case "name":
			l.Name = rd.str()
		case "host":
			l.Host = rd.str()
		case "port":
			l.Port = rd.int32()
		case "security":
			l.Security = rd.str()
		default:
			rd.skip(0)
		}
	})
	return l
}
