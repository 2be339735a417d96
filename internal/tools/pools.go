package tools

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool lends the client the slices it decodes records into, so that a
// long consume allocates by the batch and not by the record. A slice comes
// back when the last of its records was recycled. Decompressed bytes are not
// lent: the client clears them on the way back, which costs as much as the
// collector does.
type recordPool struct {
	records sync.Pool // *[]kgo.Record
}

func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, ok := p.records.Get().(*[]kgo.Record); ok && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]kgo.Record, 0, max(n, 256))
}

func (p *recordPool) PutRecords(s []kgo.Record) {
	if cap(s) <= 1<<16 { // one huge batch is not kept
		p.records.Put(&s)
	}
}
