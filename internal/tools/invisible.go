package tools

import (
	"encoding/binary"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// skipInvisible moves cursors over what holds no record to print. Compaction
// leaves empty batches, and read_committed hides aborted ones; the client
// passes over both without a word, and -e would wait for an end that no record
// announces. So where nothing came for a while, the batch headers are read by
// hand. A batch that has records is left to the client; more says there is one.
func (c *consumer) skipInvisible() (more bool, err error) {
	s, cancel := c.bound()
	defer cancel()
	topics := map[string]bool{}
	var names []string
	for tp, cur := range c.cursors {
		if !cur.done && !topics[tp.Topic] {
			topics[tp.Topic] = true
			names = append(names, tp.Topic)
		}
	}
	meta, err := s.adm.ListTopicsWithInternal(s.ctx, names...)
	if err != nil {
		return false, s.explain("look up the topics", err)
	}
	for tp, cur := range c.cursors {
		if cur.done {
			continue
		}
		t := meta[tp.Topic]
		p, ok := t.Partitions[tp.Partition]
		if !ok || p.Leader < 0 {
			continue
		}
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.MinBytes, req.MaxWaitMillis = 1<<20, 0, 0
		req.SessionEpoch = -1
		if c.committed {
			req.IsolationLevel = 1
		}
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic, rt.TopicID = tp.Topic, t.ID
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = tp.Partition, cur.pos, 1<<20
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp, err := s.cl.Broker(int(p.Leader)).RetriableRequest(s.ctx, req)
		if err != nil {
			return false, s.explain("read "+tp.Topic, err)
		}
		f := resp.(*kmsg.FetchResponse)
		if len(f.Topics) != 1 || len(f.Topics[0].Partitions) != 1 || f.Topics[0].Partitions[0].ErrorCode != 0 {
			continue // the client meets the same error and handles it
		}
		got := f.Topics[0].Partitions[0]
		aborted := map[int64]int64{}
		for _, a := range got.AbortedTransactions {
			if first, ok := aborted[a.ProducerID]; !ok || a.FirstOffset < first {
				aborted[a.ProducerID] = a.FirstOffset
			}
		}
		if cur.pos = pastInvisible(got.RecordBatches, cur.pos, aborted); cur.pos >= cur.limit {
			c.reached(tp, cur)
		} else if len(got.RecordBatches) > 0 {
			more = true
		}
	}
	return more, nil
}

// pastInvisible returns the offset behind the batches at the front of b that
// hold nothing to print: none, control records, or those of an aborted
// transaction whose first offset is in aborted by producer id.
func pastInvisible(b []byte, pos int64, aborted map[int64]int64) int64 {
	const header = 61
	for len(b) >= header {
		base := int64(binary.BigEndian.Uint64(b))
		size := int64(binary.BigEndian.Uint32(b[8:])) + 12
		if b[16] != 2 || size < header || size > int64(len(b)) {
			return pos
		}
		attrs := binary.BigEndian.Uint16(b[21:])
		last := base + int64(binary.BigEndian.Uint32(b[23:]))
		producer := int64(binary.BigEndian.Uint64(b[43:]))
		count := int32(binary.BigEndian.Uint32(b[57:]))
		first := int64(math.MaxInt64)
		if f, ok := aborted[producer]; ok {
			first = f
		}
		control, transactional := attrs&0x20 != 0, attrs&0x10 != 0
		if last >= pos && count > 0 && !control && !(transactional && base >= first) {
			return pos
		}
		if last >= pos {
			pos = last + 1
		}
		if control {
			delete(aborted, producer)
		}
		b = b[size:]
	}
	return pos
}
