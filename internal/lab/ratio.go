package lab

import (
	"bytes"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Ratio is what a codec leaves of a batch of about n bytes of this payload:
// compressed over plain, 1 when nothing is gained. Codecs are named as in
// compression.type.
func (p *Pool) Ratio(codec string, n int) (float64, error) {
	codecs := map[string]kgo.CompressionCodec{"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	c, ok := codecs[codec]
	if !ok {
		if codec == "none" || codec == "" {
			return 1, nil
		}
		return 0, fmt.Errorf("codec %q: want none, gzip, snappy, lz4 or zstd", codec)
	}
	comp, err := kgo.DefaultCompressor(c)
	if err != nil {
		return 0, err
	}
	var plain, packed bytes.Buffer
	w := p.Walk(0, 1)
	for records := 0; plain.Len() < n && records < n; records++ {
		plain.Write(w.Next())
	}
	if plain.Len() == 0 {
		return 1, nil
	}
	out, used := comp.Compress(&packed, plain.Bytes())
	if used == kgo.CodecNone {
		return 1, nil
	}
	return float64(len(out)) / float64(plain.Len()), nil
}
