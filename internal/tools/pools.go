package tools

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool lends the client the slices it decodes fetches into, so that a
// long consume allocates by the fetch and not by the record. A slice comes
// back when the last of its records was recycled.
type recordPool struct {
	records sync.Pool // *[]kgo.Record
	bytes   sync.Pool // *[]byte
}

// poolMax keeps one huge batch from staying for ever.
const poolMax = 16 << 20

func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, ok := p.records.Get().(*[]kgo.Record); ok && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]kgo.Record, 0, max(n, 256))
}

func (p *recordPool) PutRecords(s []kgo.Record) {
	if cap(s) <= 1<<16 {
		p.records.Put(&s)
	}
}

func (p *recordPool) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	if s, ok := p.bytes.Get().(*[]byte); ok && cap(*s) >= len(compressed) {
		return (*s)[:0]
	}
	return make([]byte, 0, max(64<<10, 4*len(compressed)))
}

func (p *recordPool) PutDecompressBytes(s []byte) {
	if cap(s) <= poolMax {
		s = s[:0]
		p.bytes.Put(&s)
	}
}
