package broker

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/kafka"
)

// A batch that unpacks to much waits for others of its kind, and nobody waits for
// it; what it may unpack to is the setting's.
func TestUnpacking(t *testing.T) {
	of := func(n int) []byte {
		b := batch.NewBuilder(batch.Plain(batch.Zstd))
		b.Add(1, nil, make([]byte, n))
		return b.Bytes()
	}
	ordinary, large, bomb := of(1<<20), of(unpackSmall+1), of(unpackSmall+2<<20)
	rules := &batch.Rules{MaxDecompressed: unpackSmall + 1<<20, BeforeMaxMs: 1 << 62, AfterMaxMs: 1 << 62, Target: batch.TargetProducer}
	synctest.Test(t, func(t *testing.T) {
		b := &Broker{unpack: make(chan struct{}, 2), unpackLarge: make(chan struct{}, 1)}
		b.unpackLarge <- struct{}{}
		var results sync.Map
		done := func() (n int) { results.Range(func(any, any) bool { n++; return true }); return n }
		for name, records := range map[string][]byte{"large": large, "bomb": bomb} {
			go func() { _, err := b.validate(8, records, rules); results.Store(name, err) }()
		}
		synctest.Wait()
		if _, err := b.validate(8, ordinary, rules); err != nil {
			t.Errorf("an ordinary batch: %v", err)
		}
		if done() != 0 || len(b.unpack) != 0 {
			t.Fatalf("large ones did not wait, or kept the others out: %d done, %d tokens taken", done(), len(b.unpack))
		}
		<-b.unpackLarge
		synctest.Wait()
		fine, _ := results.Load("large")
		err, _ := results.Load("bomb")
		inv, _ := err.(*batch.Invalid)
		if done() != 2 || fine != nil || inv == nil || inv.Code != kafka.ErrMessageTooLarge {
			t.Errorf("%d done: large %v, bomb %v", done(), fine, err)
		}
		if len(b.unpackLarge) != 0 {
			t.Error("the token is gone")
		}
		small := *rules
		small.MaxDecompressed = 1000
		if _, err := b.validate(8, ordinary, &small); err == nil {
			t.Error("more than a small setting allows was taken")
		}
	})
}
