package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/metadata"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/wire"
)

// Fetch, versions 4 to 18 (0 to 3: fetch_old.go). 5: log start offset. 7:
// sessions (KIP-227). 9: leader epoch (KIP-320). 10: zstd (KIP-110). 11: rack.
// 12: flexible, diverging epoch (KIP-595). 13: topic ids (KIP-516). 15: replica
// state tag. 16: leader tags (KIP-951). 17, 18: replica fields, which consumers
// do not send.
//
// Sketch, 1 MiB of 1 KiB records: a read of the position (about 1 us), some
// hundred bytes of header, and sendfile of the rest; the records never pass
// through this process.

// fetchPart is one partition of a fetch: the request's part, where it is, and
// what was read.
type fetchPart struct {
	key      sessionKey
	ask      kmsg.FetchRequestTopicPartition
	p        *partition.Partition // nil: code says why
	code     kafka.Error
	read     partition.Read
	held     *sessionPart // in a session
	followed bool         // the session will be told of changes
	more     bool         // there are records at the offset, told or not
}

// fetch is one request under way.
type fetch struct {
	b         *Broker
	req       *kmsg.FetchRequest
	ses       *session
	round     uint32 // of the session
	parts     []fetchPart
	maxBytes  int
	committed bool

	w        *partition.Waiter
	deadline time.Time
}

func (b *Broker) fetch(r *wire.Request, req *kmsg.FetchRequest) wire.Response {
	if req.Version < 4 {
		return b.oldFetch(req)
	}
	now := time.Now()
	var ses *session
	code := kafka.ErrInvalidRequest // for an isolation level without a meaning
	if req.IsolationLevel == 0 || req.IsolationLevel == 1 {
		ses, code = b.sessions.begin(req, now)
	}
	if code != kafka.NoError {
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		resp.ErrorCode = int16(code)
		return respond(resp)
	}
	f := &fetch{b: b, req: req, ses: ses, committed: req.IsolationLevel == 1}
	f.maxBytes = min(int(req.MaxBytes), b.o.Config().Static().Int("fetch.max.bytes"))
	if ses == nil {
		for i := range req.Topics {
			t := &req.Topics[i]
			for _, ask := range t.Partitions {
				f.parts = append(f.parts, fetchPart{key: sessionKey{t.Topic, t.TopicID, ask.Partition}, ask: ask})
			}
		}
		f.parts = lastOfEach(f.parts)
	}
	req.Topics, req.ForgottenTopics = nil, nil // it may wait for long, and they may be large
	got, answer := f.look()
	if answer || got >= int64(req.MinBytes) || req.MaxWaitMillis <= 0 || f.empty() {
		return f.respond()
	}
	f.release() // it is read again; the wait may be long
	f.w = partition.NewWaiter(int64(req.MinBytes) - got)
	f.deadline = now.Add(time.Duration(req.MaxWaitMillis) * time.Millisecond)
	if ses != nil {
		if earlier := ses.waiter.Swap(f.w); earlier != nil {
			earlier.Fire() // a second fetch of the session before the first was answered
		}
		if ses.anyNoted() {
			f.w.Fire() // it moved since: read again at once
		}
		return wire.Response{Pending: f}
	}
	for i := range f.parts {
		fp := &f.parts[i]
		if !fp.p.Watch(f.w, fp.read.HighWatermark) {
			f.w.Fire() // it moved since: read again at once
			break
		}
	}
	return wire.Response{Pending: f}
}

// look finds the partitions and reads them; of a session those that may have news.
func (f *fetch) look() (got int64, answer bool) {
	img := f.b.o.Quorum.Image()
	if f.ses == nil {
		f.locate(img)
		return f.readAll()
	}
	f.ses.mu.Lock()
	defer f.ses.mu.Unlock()
	f.ses.gatherLocked()
	f.ses.round++
	f.round = f.ses.round
	f.parts = make([]fetchPart, len(f.ses.hot))
	for i, sp := range f.ses.hot {
		sp.by = f.round
		f.parts[i] = fetchPart{key: sp.key(), ask: sp.ask(), held: sp}
	}
	f.locate(img)
	for i := range f.parts { // before they are read
		fp := &f.parts[i]
		fp.followed = f.ses.followLocked(fp.held, fp.p)
	}
	return f.readAll()
}

// empty says that the fetch names no partition.
func (f *fetch) empty() bool {
	if f.ses == nil {
		return len(f.parts) == 0
	}
	f.ses.mu.Lock()
	defer f.ses.mu.Unlock()
	return len(f.ses.index) == 0
}

// lastOfEach leaves of a partition that is named twice the last, as Kafka does.
func lastOfEach(parts []fetchPart) []fetchPart {
	if len(parts) < 2 {
		return parts
	}
	at := make(map[sessionKey]int, len(parts))
	out := parts[:0]
	for _, p := range parts {
		if i, ok := at[p.key]; ok {
			out[i].ask = p.ask
			continue
		}
		at[p.key] = len(out)
		out = append(out, p)
	}
	return out
}

// replicaID is the broker that fetches as a follower; -1 is a client.
func replicaID(req *kmsg.FetchRequest) int32 {
	if req.Version >= 15 {
		return req.ReplicaState.ID
	}
	return req.ReplicaID
}

// claimed is an epoch of a request: every negative one says nothing.
func claimed(epoch int32) kafka.Epoch { return kafka.Epoch(max(epoch, -1)) }

// locate finds the partitions.
func (f *fetch) locate(img *metadata.Image) {
	for i := range f.parts {
		fp := &f.parts[i]
		if f.req.Version >= 13 {
			fp.p, fp.code = f.b.partitionByID(img, fp.key.id, fp.key.n)
		} else {
			fp.p, fp.code = f.b.partitionOf(img, fp.key.topic, fp.key.n)
		}
		if fp.code == kafka.NoError {
			if fp.code = fp.p.CheckEpoch(claimed(fp.ask.CurrentLeaderEpoch)); fp.code != kafka.NoError {
				fp.p = nil
			} else if replicaID(f.req) >= 0 {
				fp.p, fp.code = nil, kafka.ErrNotLeaderOrFollower // no partition has followers yet
			} else if f.req.Version < 10 && fp.p.Settings().Rules.Target == batch.Zstd {
				fp.p, fp.code = nil, kafka.ErrUnsupportedCompressionType // as Kafka: the client cannot know zstd
			}
		}
	}
}

// readAll reads the partitions in order. It returns the bytes that are there, and
// whether something must be told at once: an error, a divergence.
func (f *fetch) readAll() (got int64, answer bool) {
	left, files, loaded := f.maxBytes, 0, int64(0)
	first := true // the first partition with data gives its first batch whole (KIP-74)
	for i := range f.parts {
		fp := &f.parts[i]
		fp.read = partition.Read{HighWatermark: -1, Stable: -1, LogStart: -1}
		if fp.p == nil {
			answer = true
			continue
		}
		lastFetched := kafka.NoEpoch
		if f.req.Version >= 12 {
			lastFetched = claimed(fp.ask.LastFetchedEpoch)
		}
		limit := min(int(fp.ask.PartitionMaxBytes), max(left, 0))
		read, err := fp.p.Read(kafka.Offset(fp.ask.FetchOffset), lastFetched, limit, first, f.committed)
		fp.read = read
		fp.code = kafka.NoError
		if disk.IsNoDescriptor(err) {
			left, first, err = 0, false, nil // what is left is told as if the answer were full
		}
		if err != nil {
			fp.code = f.b.code(err, "fetch", "partition", fp.p.TP.String(), "offset", fp.ask.FetchOffset)
			fp.read = partition.Read{HighWatermark: -1, Stable: -1, LogStart: -1} // as Kafka: an error tells no offsets
			answer = true
		}
		answer = answer || read.Diverging
		bound := read.HighWatermark
		if f.committed {
			bound = read.Stable
		}
		fp.more = kafka.Offset(fp.ask.FetchOffset) < bound
		if read.Bytes == 0 {
			continue
		}
		if files++; files > answerFiles {
			if loaded += read.Bytes; read.Bytes > loadMost || loaded > loadedMost {
				read.Slice.Region.Release()
				fp.read.Slice.Region, fp.read.Bytes, fp.read.Aborted = disk.Region{}, 0, nil
				left = 0
				continue
			}
			if fp.read.Slice.Region, err = read.Slice.Region.Load(); err != nil {
				fp.code = f.b.code(err, "fetch", "partition", fp.p.TP.String(), "offset", fp.ask.FetchOffset)
				fp.read = partition.Read{HighWatermark: -1, Stable: -1, LogStart: -1}
				answer = true
				continue
			}
		}
		first = false
		left -= int(read.Bytes)
		got += read.Bytes
	}
	return got, answer
}

// An answer holds the files of its records until it is sent, and each takes a
// descriptor. From answerFiles partitions on, records of up to loadMost bytes are
// read at once, loadedMost in all, and what is larger waits for the next fetch.
const (
	answerFiles = 64
	loadMost    = 64 << 10
	loadedMost  = 2 << 20
)

// release gives back what was read.
func (f *fetch) release() {
	for i := range f.parts {
		if r := &f.parts[i].read; r.Slice.Region.Len > 0 {
			r.Slice.Region.Release()
			r.Slice.Region.Len = 0
		}
	}
}

func (f *fetch) Ready() <-chan struct{} { return f.w.Ready() }
func (f *fetch) Deadline() time.Time    { return f.deadline }

// Cancel gives up: the connection is gone.
func (f *fetch) Cancel() {
	f.unwatch()
	f.release()
}

func (f *fetch) unwatch() {
	if f.ses != nil {
		f.ses.waiter.CompareAndSwap(f.w, nil)
		return
	}
	for i := range f.parts {
		if p := f.parts[i].p; p != nil {
			p.Unwatch(f.w)
		}
	}
}

// Response reads again, with what came meanwhile.
func (f *fetch) Response(time.Time) wire.Response {
	f.unwatch()
	f.release()
	f.look()
	return f.respond()
}

// respond encodes what was read. In a session's later rounds only partitions with
// news are told.
func (f *fetch) respond() wire.Response {
	told := f.parts
	sessionID := int32(0)
	if f.ses != nil {
		sessionID = f.ses.id
		told = f.news()
	}
	raw := encodeFetch(f.req.Version, sessionID, told, f.committed)
	raw.Release = f.release
	for i := range told {
		if n := told[i].read.Bytes; n > 0 {
			told[i].p.Meter.Fetched(n)
		}
	}
	return wire.Response{Raw: raw}
}

// news picks the partitions a session's client does not know yet, and notes what
// it is told.
func (f *fetch) news() []fetchPart {
	f.ses.mu.Lock()
	defer f.ses.mu.Unlock()
	full := f.req.SessionEpoch == sessionInitial
	told := f.parts[:0:0]
	for i := range f.parts {
		fp := &f.parts[i]
		r, sp := &fp.read, fp.held
		changed := fp.code != kafka.NoError || r.Diverging || r.Bytes > 0 ||
			sp.hw != int64(r.HighWatermark) || sp.start != int64(r.LogStart) || sp.lso != int64(r.Stable)
		sp.gave = r.Bytes > 0
		sp.cool = fp.followed && !fp.more && fp.code == kafka.NoError && !r.Diverging
		if !full && !changed {
			continue
		}
		sp.hw, sp.start, sp.lso = int64(r.HighWatermark), int64(r.LogStart), int64(r.Stable)
		if fp.code != kafka.NoError {
			sp.hw = -2 // tell again until it is mended
		}
		told = append(told, *fp)
	}
	f.ses.coolLocked(f.round)
	return told
}
