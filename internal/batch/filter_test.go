package batch

// Shows: a filtered batch keeps everything but the records taken out, under
// every codec, with and without a delete horizon, and franz-go reads it.

import (
	"testing"

	"github.com/weirmq/weir/internal/kafka"
)

func TestFilter(t *testing.T) {
	for _, c := range everyCodec {
		for _, horizon := range []int64{NoHorizon, nowMs + 86400_000} {
			opts := BuilderOptions{Codec: c, ProducerID: 9, ProducerEpoch: 2, BaseSequence: 50, Transactional: true}
			b := NewBuilder(opts)
			for i := range 20 {
				b.Add(nowMs+int64(i), []byte{byte(i)}, []byte("v"), Header{"h", []byte{byte(i)}})
			}
			v := b.Bytes()
			v.Stamp(1000, 7)
			all := ours(t, v)
			got, kept, err := Filter(v, horizon, func(r *Record) (bool, error) { return r.OffsetDelta%3 == 1, nil })
			if err != nil || kept != 7 || !got.CRCOK() {
				t.Fatalf("%s: %d records, %v", c, kept, err)
			}
			var want []plainRecord
			for i := 1; i < 20; i += 3 {
				want = append(want, all[i])
			}
			same(t, c.String(), ours(t, got), want)
			same(t, c.String()+", franz-go", theirs(t, got), want)
			if got.BaseOffset() != 1000 || got.LastOffset() != 1019 || got.LeaderEpoch() != 7 || got.Codec() != c || !got.Transactional() ||
				got.ProducerID() != 9 || got.LastSequence() != 69 || got.MaxTimestamp() != nowMs+19 {
				t.Errorf("%s: %s", c, got)
			}
			if ms, ok := got.DeleteHorizon(); ok != (horizon != NoHorizon) || ok && ms != horizon {
				t.Errorf("%s: horizon %d %v", c, ms, ok)
			}
			again, _, err := Filter(got, nowMs, func(r *Record) (bool, error) { return r.OffsetDelta == 19, nil })
			if err != nil {
				t.Fatal(err)
			}
			if ms, _ := again.DeleteHorizon(); horizon != NoHorizon && ms != horizon {
				t.Errorf("%s: a horizon was replaced by %d", c, ms)
			}
			same(t, c.String()+", twice", ours(t, again), all[19:])
			none, kept, err := Filter(again, NoHorizon, func(*Record) (bool, error) { return false, nil })
			if err != nil || kept != 0 || len(none) != HeaderLen || none.LastOffset() != 1019 || len(ours(t, none)) != 0 {
				t.Errorf("%s: empty: %s %v", c, none, err)
			}
		}
	}
	if _, _, err := Filter(three(Gzip), NoHorizon, func(*Record) (bool, error) { return true, kafka.ErrUnknownServerError }); err != kafka.ErrUnknownServerError {
		t.Errorf("keep's error: %v", err)
	}
}

// What compaction makes of any stored batch reads back as the records it kept.
func FuzzFilter(f *testing.F) {
	seedBatches(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		checked, err := Validate(sealed(data), fuzzRules())
		if err != nil {
			return
		}
		before, n := ours(t, checked.Batch), 0
		out, kept, err := Filter(checked.Batch, NoHorizon, func(*Record) (bool, error) { n++; return n%2 == 1, nil })
		if err != nil {
			t.Fatalf("good, then not: %v", err)
		}
		after := ours(t, out)
		if !out.CRCOK() || len(after) != kept || kept != (len(before)+1)/2 || out.LastOffset() != checked.Batch.LastOffset() {
			t.Fatalf("%d of %d records kept, %d found: %s", kept, len(before), len(after), out)
		}
		for i, r := range after {
			if want := before[2*i]; r.Offset != want.Offset || r.Timestamp != want.Timestamp || string(r.Value) != string(want.Value) {
				t.Fatalf("record %d was %+v and is %+v", i, want, r)
			}
		}
	})
}
