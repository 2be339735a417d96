//go:build compat

package compat

// Shows: the versions that Kafka 4 took away (KIP-896), as bytes. Fetch 0 to 3
// answers message sets that a reader of the old formats takes: codecs, offsets,
// nulls, times, limits, waiting, refusals. Groups, topics and configs are driven
// from version 0 up. oldclients_test.go has the clients of that time.

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// oldRec is a record as an old client sees it.
type oldRec struct {
	offset     int64
	magic      int8
	codec      int8 // of the wrapper
	ts         int64
	key, value []byte
}

// readSet reads a message set by the protocol guide: CRC, wrappers, relative
// offsets. A cut message at the end is left alone, as clients do.
func readSet(t testing.TB, b []byte) []oldRec {
	t.Helper()
	var out []oldRec
	for len(b) >= 12 {
		size := 12 + int(int32(binary.BigEndian.Uint32(b[8:])))
		if size < 26 {
			t.Fatalf("message of %d bytes", size)
		}
		if size > len(b) {
			break
		}
		m := b[:size]
		b = b[size:]
		if sum := crc32.ChecksumIEEE(m[16:]); sum != binary.BigEndian.Uint32(m[12:]) {
			t.Fatalf("message: CRC %08x stated, %08x of the bytes", binary.BigEndian.Uint32(m[12:]), sum)
		}
		r := oldRec{offset: int64(binary.BigEndian.Uint64(m)), magic: int8(m[16]), codec: int8(m[17] & 7), ts: -1}
		rest := m[18:]
		if r.magic == 1 {
			r.ts, rest = int64(binary.BigEndian.Uint64(rest)), rest[8:]
		}
		for _, f := range []*[]byte{&r.key, &r.value} {
			n := int32(binary.BigEndian.Uint32(rest))
			if rest = rest[4:]; n >= 0 {
				*f, rest = rest[:n:n], rest[n:]
			}
		}
		if len(rest) > 0 || r.magic > 1 {
			t.Fatalf("message of magic %d, %d bytes left in it", r.magic, len(rest))
		}
		if r.codec == 0 {
			out = append(out, r)
			continue
		}
		inner := readSet(t, unpackOld(t, r))
		shift := int64(0)
		if r.magic == 1 {
			shift = r.offset - inner[len(inner)-1].offset
		} else if last := inner[len(inner)-1].offset; last != r.offset {
			t.Fatalf("wrapper of magic 0 at %d, last message at %d", r.offset, last)
		}
		for i := range inner {
			if inner[i].magic != r.magic || inner[i].codec != 0 {
				t.Fatalf("wrapper of magic %d has a message of magic %d, codec %d", r.magic, inner[i].magic, inner[i].codec)
			}
			inner[i].codec = r.codec
			inner[i].offset += shift
		}
		out = append(out, inner...)
	}
	return out
}

func unpackOld(t testing.TB, r oldRec) []byte {
	t.Helper()
	var out []byte
	var err error
	switch r.codec {
	case 1:
		var z io.Reader
		if z, err = gzip.NewReader(bytes.NewReader(r.value)); err == nil {
			out, err = io.ReadAll(z)
		}
	case 2: // as snappy-java frames it
		if !bytes.HasPrefix(r.value, []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")) {
			t.Fatalf("snappy without the frame of Java clients: % x", r.value[:min(16, len(r.value))])
		}
		for b := r.value[16:]; len(b) > 0 && err == nil; {
			n := binary.BigEndian.Uint32(b)
			var block []byte
			block, err = snappy.Decode(nil, b[4:4+n])
			out, b = append(out, block...), b[4+n:]
		}
	case 3:
		if r.magic == 0 {
			t.Fatal("lz4 in magic 0: Kafka's clients of that time and others do not agree on its checksum")
		}
		out, err = io.ReadAll(lz4.NewReader(bytes.NewReader(r.value)))
	default:
		t.Fatalf("wrapper of codec %d", r.codec)
	}
	if err != nil {
		t.Fatalf("wrapper of codec %d: %v", r.codec, err)
	}
	return out
}

func TestOldVersions(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve them")
	}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r *rawConn)
	}{
		{"fetch every codec", oldFetchCodecs},
		{"fetch a message larger than the limit", oldFetchLimits},
		{"fetch serves every partition", oldFetchFair},
		{"fetch refuses zstd", oldFetchZstd},
		{"fetch waits", oldFetchWaits},
		{"fetch errors", oldFetchErrors},
		{"message sets come back as they were sent", oldRoundTrip},
		{"list offsets 0", oldListOffsets},
		{"a group at version 0", oldGroup},
		{"topics and configs at version 0", oldAdmin},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, dial(t, sharedBroker(t).addr)) })
	}
}

// oldFetch asks one partition and reads the set.
func (r *rawConn) oldFetch(version int16, topic string, offset int64, max int32) (kmsg.FetchResponseTopicPartition, []oldRec) {
	r.t.Helper()
	p := ask[*kmsg.FetchResponse](r, fetchRequest(version, 0, 0, 50<<20, part{topic: topic, offset: offset, max: max, epoch: -1})).Topics[0].Partitions[0]
	return p, readSet(r.t, p.RecordBatches)
}

func oldFetchCodecs(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	begin := time.Now().UnixMilli()
	var want []oldRec
	note := func(codec int8, recs ...rec) {
		for _, x := range recs {
			want = append(want, oldRec{offset: int64(len(want)), codec: codec, ts: x.ts, key: x.key, value: x.value})
		}
	}
	odd := []rec{
		{key: []byte("k"), value: []byte("v"), ts: begin, headers: []hdr{{"h", []byte("gone")}, {"n", nil}}},
		{key: nil, value: []byte("no key"), ts: begin + 2},
		{key: []byte("tombstone"), value: nil, ts: begin + 1},
		{key: []byte{}, value: []byte{}, ts: begin + 3},
	}
	for _, codec := range []int16{0, 1} {
		r.put(topic, batchSpec{codec: codec, recs: odd})
		note(int8(codec), odd...)
	}
	for codec, c := range map[int8]kgo.CompressionCodec{2: kgo.SnappyCompression(), 3: kgo.Lz4Compression()} {
		f := franz(t, kgo.ProducerBatchCompression(c), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(50*time.Millisecond))
		var recs []*kgo.Record
		for i := range 100 {
			recs = append(recs, &kgo.Record{Timestamp: time.UnixMilli(begin + int64(i)), Key: fmt.Appendf(nil, "%d", i), Value: bytes.Repeat([]byte("z"), 1000)})
			note(codec, rec{ts: begin + int64(i), key: recs[i].Key, value: recs[i].Value})
		}
		if err := f.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for version := int16(0); version <= 3; version++ {
		magic := int8(version / 2)
		for _, from := range []int64{0, 2, 5, 8, 11, 150, int64(len(want)) - 1} {
			var got []oldRec
			for at := from; at < int64(len(want)); at = got[len(got)-1].offset + 1 {
				p, some := r.oldFetch(version, topic, at, 64<<10)
				code(t, "fetch", p.ErrorCode, 0)
				if p.HighWatermark != int64(len(want)) || len(some) == 0 {
					t.Fatalf("v%d from %d: watermark %d, %d records", version, at, p.HighWatermark, len(some))
				}
				got = append(got, some...)
			}
			expect := slices.Clone(want[from:])
			for i := range expect {
				expect[i].magic = magic
				if magic == 0 {
					expect[i].ts = -1
					if expect[i].codec == 3 {
						expect[i].codec = 0
					}
				}
			}
			if !reflect.DeepEqual(got, expect) {
				for i := range min(len(got), len(expect)) {
					if !reflect.DeepEqual(got[i], expect[i]) {
						t.Fatalf("v%d from %d: record %d is %.300s\nwant %.300s", version, from, i, fmt.Sprintf("%#v", got[i]), fmt.Sprintf("%#v", expect[i]))
					}
				}
				t.Fatalf("v%d from %d: %d records, want %d", version, from, len(got), len(expect))
			}
		}
	}
}

func oldFetchLimits(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	for _, codec := range []int16{0, 1} {
		base := r.put(topic, batchSpec{codec: codec, recs: values(3, 20_000)})
		for version := int16(0); version <= 3; version++ {
			for _, max := range []int32{0, 1, 100} {
				p, got := r.oldFetch(version, topic, base, max)
				if p.ErrorCode != 0 || len(got) == 0 || got[0].offset != base || len(got[0].value) != 20_000 {
					t.Errorf("v%d codec %d, limit %d: error %d, %d bytes, want one message whole", version, codec, max, p.ErrorCode, len(p.RecordBatches))
				}
			}
		}
	}
	// Within the limit: whole messages, no more than fit.
	p, got := r.oldFetch(2, topic, 0, 45_000)
	if len(got) != 2 || len(p.RecordBatches) > 45_000 {
		t.Errorf("limit of 45000: %d messages, %d bytes, want 2", len(got), len(p.RecordBatches))
	}
}

// Old clients ask for all partitions in the same order each time.
func oldFetchFair(t *testing.T, r *rawConn) {
	topic := r.topic(20)
	big := values(1, 900_000)
	for p := range int32(20) {
		req := produceRequest(8, 1, topic, batchSpec{recs: big}.bytes())
		req.Topics[0].Partitions[0].Partition = p
		code(t, "produce", ask[*kmsg.ProduceResponse](r, req).Topics[0].Partitions[0].ErrorCode, 0)
	}
	for version := int16(0); version <= 3; version++ {
		seen := map[int32]bool{}
		for round := 0; len(seen) < 20; round++ {
			if round == 40 {
				t.Fatalf("v%d: after 40 fetches only %d of 20 partitions gave records", version, len(seen))
			}
			var parts []part
			for p := range int32(20) {
				if version < 3 || !seen[p] { // clients of v3 ask for what they miss first
					parts = append(parts, at(topic, p, 0))
				}
			}
			total := 0
			for _, p := range ask[*kmsg.FetchResponse](r, fetchRequest(version, 0, 0, 3<<20, parts...)).Topics[0].Partitions {
				if len(p.RecordBatches) > 0 {
					seen[p.Partition] = true
					readSet(t, p.RecordBatches)
				}
				total += len(p.RecordBatches)
			}
			if limit := 9 << 20; total > limit {
				t.Errorf("v%d: %d bytes in one answer, at most %d may be converted", version, total, limit)
			}
			if version == 3 && total > 3<<20 {
				t.Errorf("v3: %d bytes for a limit of 3 MiB", total)
			}
		}
	}
}

func oldFetchZstd(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	r.put(topic, batchSpec{recs: values(2, 10)})
	r.put(topic, batchSpec{codec: 4, recs: values(2, 10)})
	for version := int16(0); version <= 3; version++ {
		p, got := r.oldFetch(version, topic, 0, 1<<20)
		if p.ErrorCode != 0 || len(got) != 2 {
			t.Errorf("v%d: error %d, %d records before the zstd batch, want 2", version, p.ErrorCode, len(got))
		}
		p, got = r.oldFetch(version, topic, 2, 1<<20)
		if code(t, "fetch of a zstd batch", p.ErrorCode, 76); len(got) != 0 {
			t.Errorf("v%d: %d records with the refusal", version, len(got))
		}
	}
	topic = r.topic(1, "compression.type=zstd")
	r.put(topic, batchSpec{recs: values(2, 10)})
	for version, want := range map[int16]int16{1: 76, 3: 76, 4: 76, 9: 76, 10: 0, 11: 0} {
		resp := ask[*kmsg.FetchResponse](r, fetchRequest(version, 0, 0, 1<<20, at(topic, 0, 0)))
		code(t, fmt.Sprintf("v%d of a zstd topic", version), resp.Topics[0].Partitions[0].ErrorCode, want)
	}
}

func oldFetchWaits(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	for version := int16(0); version <= 3; version++ {
		end := r.latest(topic)
		began := time.Now()
		p := ask[*kmsg.FetchResponse](r, fetchRequest(version, 300, 1, 1<<20, at(topic, 0, end))).Topics[0].Partitions[0]
		if took := time.Since(began); p.ErrorCode != 0 || len(p.RecordBatches) != 0 || took < 250*time.Millisecond {
			t.Errorf("v%d of an empty log: error %d, %d bytes after %v", version, p.ErrorCode, len(p.RecordBatches), took)
		}
		req := fetchRequest(version, 10_000, 1, 1<<20, at(topic, 0, end))
		corr := r.send(req)
		dial(t, sharedBroker(t).addr).put(topic, batchSpec{recs: values(1, 10)})
		began = time.Now()
		p = r.recv(req, corr).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if got := readSet(t, p.RecordBatches); len(got) != 1 || time.Since(began) > 5*time.Second {
			t.Errorf("v%d: %d records %v after the append", version, len(got), time.Since(began))
		}
	}
}

func oldFetchErrors(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	r.put(topic, batchSpec{recs: values(3, 10)})
	for version := int16(0); version <= 3; version++ {
		for _, c := range []struct {
			topic  string
			p      int32
			offset int64
			want   int16
		}{{topic, 0, 4, 1}, {topic, 0, -1, 1}, {topic, 0, 3, 0}, {topic, 1, 0, 3}, {unique(t), 0, 0, 3}} {
			p := ask[*kmsg.FetchResponse](r, fetchRequest(version, 0, 0, 1<<20, at(c.topic, c.p, c.offset))).Topics[0].Partitions[0]
			if code(t, fmt.Sprintf("v%d of %s-%d at %d", version, c.topic, c.p, c.offset), p.ErrorCode, c.want); len(p.RecordBatches) != 0 {
				t.Errorf("%d bytes", len(p.RecordBatches))
			}
		}
		twice := ask[*kmsg.FetchResponse](r, fetchRequest(version, 0, 0, 1<<20, at(topic, 0, 0), at(topic, 0, 2))).Topics[0].Partitions
		if len(twice) != 1 || len(readSet(t, twice[0].RecordBatches)) != 1 {
			t.Errorf("v%d of a partition named twice: %+v, want the last once", version, twice)
		}
		if n := len(ask[*kmsg.FetchResponse](r, fetchRequest(version, 0, 0, 1<<20)).Topics); n != 0 {
			t.Errorf("v%d of nothing: %d topics", version, n)
		}
	}
}

func oldRoundTrip(t *testing.T, r *rawConn) {
	now := time.Now().UnixMilli()
	for version := int16(0); version <= 2; version++ {
		topic, magic := r.topic(1), int8(version/2)
		set := slices.Concat(oldMessage(magic, now, []byte("k"), []byte("v")), oldMessage(magic, now+5, nil, nil), oldMessage(magic, now+1, []byte{}, []byte("w")))
		code(t, "produce", r.produce(version, topic, set).ErrorCode, 0)
		p, got := r.oldFetch(version, topic, 0, 1<<20)
		if len(got) != 3 || got[1].key != nil || got[1].value != nil || got[2].key == nil || magic == 1 && got[1].ts != now+5 {
			t.Fatalf("v%d: %+v", version, got)
		}
		// All but the offsets is the bytes that were sent.
		back := bytes.Clone(p.RecordBatches)
		for i, at := 0, 0; at < len(back); i++ {
			if o := binary.BigEndian.Uint64(back[at:]); o != uint64(i) {
				t.Errorf("v%d: message %d has offset %d", version, i, o)
			}
			size := int(binary.BigEndian.Uint32(back[at+8:]))
			copy(back[at:at+8], make([]byte, 8))
			at += 12 + size
		}
		if !bytes.Equal(back, set) {
			t.Errorf("v%d:\n got  % x\n sent % x", version, back, set)
		}
	}
}

func oldListOffsets(t *testing.T, r *rawConn) {
	topic := r.topic(1)
	now := time.Now().UnixMilli()
	for i := range 5 {
		r.put(topic, batchSpec{recs: []rec{{value: []byte("v"), ts: now + int64(i)*10}}})
	}
	offsets := func(ts int64, n int32) []int64 {
		req := listRequest(0, topic, 0, ts)
		req.Topics[0].Partitions[0].MaxNumOffsets = n
		p := ask[*kmsg.ListOffsetsResponse](r, req).Topics[0].Partitions[0]
		code(t, "list offsets", p.ErrorCode, 0)
		return p.OldStyleOffsets
	}
	for _, c := range []struct {
		ts   int64
		n    int32
		want []int64
	}{
		{-1, 1, []int64{5}}, {-1, 10, []int64{5, 0}}, {-2, 1, []int64{0}}, {-2, 10, []int64{0}}, {-1, 0, nil},
		{now + 11, 1, []int64{2}}, {now - 1000, 3, []int64{0}}, {now + 10_000, 1, []int64{5}}, {now + 30, 5, []int64{3, 0}},
	} {
		if got := offsets(c.ts, c.n); !slices.Equal(got, c.want) {
			t.Errorf("at %d, %d of them: %v, want %v", c.ts, c.n, got, c.want)
		}
	}
}

func oldGroup(t *testing.T, r *rawConn) {
	topic, group := r.topic(2), unique(t)
	r.coordinator(group)
	req := joinRequest(0, group, "", nil, "consumer", "range")
	req.SessionTimeoutMillis = 10_000
	join := ask[*kmsg.JoinGroupResponse](r, req)
	if code(t, "join", join.ErrorCode, 0); join.MemberID == "" || join.LeaderID != join.MemberID || len(join.Members) != 1 {
		t.Fatalf("join: %+v", join)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = group, join.Generation, join.MemberID
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: join.MemberID, MemberAssignment: []byte("mine")}}
	if resp := ask[*kmsg.SyncGroupResponse](r, sync); resp.ErrorCode != 0 || string(resp.MemberAssignment) != "mine" {
		t.Fatalf("sync: %+v", resp)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.Generation, beat.MemberID = group, join.Generation, join.MemberID
	code(t, "heartbeat", ask[*kmsg.HeartbeatResponse](r, beat).ErrorCode, 0)

	m := &member{r: r, group: group, id: join.MemberID, gen: join.Generation}
	fetch := func(version int16) []kmsg.OffsetFetchResponseTopicPartition {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group, req.Topics = version, group, []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0, 1}}}
		return ask[*kmsg.OffsetFetchResponse](r, req).Topics[0].Partitions
	}
	code(t, "commit 1", ask[*kmsg.OffsetCommitResponse](r, commitRequest(1, m, commit{topic, 0, 7, -1, "meta"})).Topics[0].Partitions[0].ErrorCode, 0)
	for version, none := range map[int16]int16{0: 3, 1: 0} {
		got := fetch(version)
		if got[0].Offset != 7 || deref(got[0].Metadata) != "meta" || got[0].ErrorCode != 0 || got[1].Offset != -1 || got[1].ErrorCode != none {
			t.Errorf("fetch %d: %+v", version, got)
		}
	}
	list := ask[*kmsg.ListGroupsResponse](r, kmsg.NewPtrListGroupsRequest())
	if !slices.ContainsFunc(list.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return g.Group == group && g.ProtocolType == "consumer" }) {
		t.Errorf("list: %+v", list.Groups)
	}
	if g := r.describe(0, group)[0]; g.ErrorCode != 0 || g.State != "Stable" || g.Protocol != "range" || len(g.Members) != 1 {
		t.Errorf("describe: %+v", g)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = group, join.MemberID
	code(t, "leave", ask[*kmsg.LeaveGroupResponse](r, leave).ErrorCode, 0)
	code(t, "commit 0", ask[*kmsg.OffsetCommitResponse](r, commitRequest(0, m, commit{topic, 1, 9, -1, ""})).Topics[0].Partitions[0].ErrorCode, 0)
	if got := fetch(0); got[1].Offset != 9 || got[1].ErrorCode != 0 {
		t.Errorf("fetch after commit 0: %+v", got)
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKey = group
	if resp := ask[*kmsg.FindCoordinatorResponse](r, find); resp.ErrorCode != 0 || fmt.Sprintf("%s:%d", resp.Host, resp.Port) != sharedBroker(t).addr {
		t.Errorf("find coordinator: %+v", resp)
	}
}

func oldAdmin(t *testing.T, r *rawConn) {
	name := unique(t)
	code(t, "create 0", ask[*kmsg.CreateTopicsResponse](r, createRequest(0, name, 3, 1, "retention.ms=1000")).Topics[0].ErrorCode, 0)
	code(t, "create 1", ask[*kmsg.CreateTopicsResponse](r, createRequest(1, name, 3, 1)).Topics[0].ErrorCode, 36)
	meta := ask[*kmsg.MetadataResponse](r, metadataRequest(0, true, name))
	if len(meta.Brokers) != 1 || len(meta.Topics) != 1 || meta.Topics[0].ErrorCode != 0 || len(meta.Topics[0].Partitions) != 3 || meta.Topics[0].Partitions[0].Leader != meta.Brokers[0].NodeID {
		t.Fatalf("metadata 0: %+v", meta)
	}
	if all := ask[*kmsg.MetadataResponse](r, metadataRequest(0, true)); len(all.Topics) == 0 { // none named: all, in version 0
		t.Error("metadata 0 of all topics: none")
	}
	describe := func() map[string]string {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name}}
		resp := ask[*kmsg.DescribeConfigsResponse](r, req)
		code(t, "describe configs 0", resp.Resources[0].ErrorCode, 0)
		out := map[string]string{}
		for _, c := range resp.Resources[0].Configs {
			out[c.Name] = fmt.Sprint(deref(c.Value), " default=", c.IsDefault)
		}
		return out
	}
	if got := describe(); got["retention.ms"] != "1000 default=false" || got["cleanup.policy"] != "delete default=true" {
		t.Errorf("configs: %v", got)
	}
	alter := kmsg.NewPtrAlterConfigsRequest()
	alter.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name,
		Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: ptr("2000")}}}}
	code(t, "alter configs 0", ask[*kmsg.AlterConfigsResponse](r, alter).Resources[0].ErrorCode, 0)
	if got := describe(); got["retention.ms"] != "2000 default=false" {
		t.Errorf("configs after: %v", got)
	}
	hand := kmsg.NewPtrSASLHandshakeRequest()
	hand.Mechanism = "PLAIN"
	code(t, "sasl handshake 0", ask[*kmsg.SASLHandshakeResponse](r, hand).ErrorCode, 34)
	versions := kmsg.NewPtrApiVersionsRequest()
	if resp := ask[*kmsg.ApiVersionsResponse](r, versions); resp.ErrorCode != 0 || len(resp.ApiKeys) < 30 {
		t.Errorf("api versions 0: %+v", resp)
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.TimeoutMillis, del.TopicNames = 10_000, []string{name}
	code(t, "delete 0", ask[*kmsg.DeleteTopicsResponse](r, del).Topics[0].ErrorCode, 0)
	meta = ask[*kmsg.MetadataResponse](r, metadataRequest(4, false, name))
	code(t, "metadata of what is gone", meta.Topics[0].ErrorCode, 3)
}

// Answers are made in memory, and old clients that do not read them must not take
// it: 150 of them ask for all there is. When they are gone, all is as before.
func TestOldFetchMemory(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve them")
	}
	b := startBroker(t)
	r := dial(t, b.addr)
	topic := r.topic(1)
	for range 20 {
		r.put(topic, batchSpec{recs: values(50, 18_000)})
	}
	ask50 := func() *kmsg.FetchRequest {
		return fetchRequest(2, 0, 0, 50<<20, part{topic: topic, offset: 0, max: 50 << 20, epoch: -1})
	}
	before := residentMiB(t, b.pid)
	var idle []*rawConn
	for range 150 {
		c := dial(t, b.addr)
		c.c.(*net.TCPConn).SetReadBuffer(4096)
		for range 10 {
			c.send(ask50())
		}
		idle = append(idle, c)
	}
	small := len(ask[*kmsg.FetchResponse](r, ask50()).Topics[0].Partitions[0].RecordBatches)
	if small == 0 || small > 1<<20 {
		t.Errorf("%d bytes while others hold the memory, want some, and few", small)
	}
	time.Sleep(time.Second)
	if grown := residentMiB(t, b.pid) - before; grown > 450 {
		t.Errorf("the broker grew by %d MiB", grown)
	} else {
		t.Logf("the broker grew by %d MiB for 1500 fetches of 150 clients that do not read", grown)
	}
	for _, c := range idle {
		c.c.Close()
	}
	eventually(t, 10*time.Second, "a large answer again", func() (string, bool) {
		n := len(ask[*kmsg.FetchResponse](r, ask50()).Topics[0].Partitions[0].RecordBatches)
		return fmt.Sprintf("%d bytes", n), n > 7<<20
	})
}

// residentMiB is a process's memory.
func residentMiB(t testing.TB, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	var size, resident int
	fmt.Sscan(string(b), &size, &resident)
	return resident * os.Getpagesize() >> 20
}

// Clients of 0.8.1 know no coordinator: the first thing a broker hears of groups
// may be a commit of theirs.
func TestOldOffsetsWithoutCoordinator(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve them")
	}
	for _, commitFirst := range []bool{true, false} {
		r := dial(t, startBroker(t).addr)
		topic, group := r.topic(1), unique(t)
		commits := func() {
			resp := ask[*kmsg.OffsetCommitResponse](r, commitRequest(0, outsider(r, group), commit{topic, 0, 4, -1, ""}))
			code(t, "commit", resp.Topics[0].Partitions[0].ErrorCode, 0)
		}
		fetch := func(offset int64, want int16) {
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Group, req.Topics = group, []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{0}}}
			p := ask[*kmsg.OffsetFetchResponse](r, req).Topics[0].Partitions[0]
			if code(t, "fetch", p.ErrorCode, want); p.Offset != offset {
				t.Errorf("offset %d, want %d", p.Offset, offset)
			}
		}
		if !commitFirst {
			fetch(-1, 3)
		}
		commits()
		fetch(4, 0)
	}
}

// Offsets that compaction has left out are left out of message sets too.
func TestOldFetchAcrossGaps(t *testing.T) {
	if onKafka {
		t.Skip("Kafka 4 does not serve them")
	}
	b := startBroker(t, "log.cleaner.backoff.ms=100")
	r := dial(t, b.addr)
	topic := r.topic(1, "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01", "segment.bytes=1048576")
	now := time.Now().UnixMilli()
	for i := range 40 {
		var recs []rec
		for k := range 10 {
			recs = append(recs, rec{key: fmt.Appendf(nil, "%d", (i*k)%37), value: bytes.Repeat([]byte{byte(i)}, 10_000), ts: now + int64(i)})
		}
		r.put(topic, batchSpec{codec: int16(i % 2), recs: recs})
	}
	end := r.latest(topic)
	list := func() (out []int64) { // as a client of today reads them
		f := franz(t, kgo.SeedBrokers(b.addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
		defer f.Close()
		for len(out) == 0 || out[len(out)-1] < end-1 {
			f.PollFetches(t.Context()).EachRecord(func(x *kgo.Record) { out = append(out, x.Offset) })
		}
		return out
	}
	var want []int64
	eventually(t, 20*time.Second, "compaction", func() (string, bool) {
		want = list()
		return fmt.Sprintf("%d of %d records left", len(want), end), len(want) < int(end)*9/10
	})
	for version := int16(0); version <= 3; version++ {
		var got []int64
		for at := int64(0); at < end; {
			p, some := r.oldFetch(version, topic, at, 100_000)
			if p.ErrorCode != 0 || len(some) == 0 {
				t.Fatalf("v%d at %d of %d: error %d, %d records", version, at, end, p.ErrorCode, len(some))
			}
			for _, x := range some {
				got = append(got, x.offset)
			}
			at = got[len(got)-1] + 1
		}
		if !slices.Equal(got, want) {
			t.Errorf("v%d: offsets %v\nwant %v", version, got, want)
		}
	}
}
