package lab

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// PayloadSpec says what values look like, as data.
type PayloadSpec struct {
	Kind  string   `json:"kind"`            // random, text, json, letters, zero, ratio, lines
	Share float64  `json:"share,omitempty"` // ratio: how much of each record is random, from 0 to 1
	Sizes SizeSpec `json:"sizes"`
	Lines [][]byte `json:"-"` // lines: the values themselves, in turn; Sizes is not used
	Seed  uint64   `json:"seed,omitempty"`
}

// PayloadKinds are the kinds with what they stand for; the measured ratio of a
// codec is Ratio's to tell.
const PayloadKinds = `random   bytes without any pattern; no codec gains anything
text     words of a small language, the usual ones often
json     small documents with fields of several types
letters  A to Z at random, as kafka-producer-perf-test sends: at best 0.59 of its size, and
         this client's codecs leave more
zero     zeros; compresses without bound, and so says nothing about a codec
ratio:S  a share S (0 to 1) of each record is random, the rest is zero`

// ParsePayload reads the kinds above.
func ParsePayload(s string) (PayloadSpec, error) {
	kind, arg, has := strings.Cut(s, ":")
	p := PayloadSpec{Kind: kind, Seed: 1}
	switch kind {
	case "random", "text", "json", "letters", "zero":
		if has {
			return p, fmt.Errorf("payload %s takes no argument", kind)
		}
	case "ratio":
		var err error
		if p.Share, err = strconv.ParseFloat(arg, 64); err != nil || !(p.Share >= 0 && p.Share <= 1) {
			return p, fmt.Errorf("payload %q: write ratio:SHARE with a share of random bytes from 0 to 1", s)
		}
	default:
		return p, fmt.Errorf("payload %q: want random, text, json, letters, zero or ratio:SHARE", s)
	}
	return p, nil
}

// poolBytes of content are made before the run. Producers walk through them, so
// that a batch never holds the same bytes twice unless it spans more than this.
const poolBytes = 16 << 20

// Pool is the content of a run, made once and then only read: any number of
// producers may share it.
type Pool struct {
	spec  PayloadSpec
	bytes []byte
	sizes []int
}

// NewPool makes the content. It takes up to a second and 16 MiB, more when a
// record is larger.
func NewPool(spec PayloadSpec) (*Pool, error) { return newPool(spec, poolBytes) }

func newPool(spec PayloadSpec, atLeast int) (*Pool, error) {
	p := &Pool{spec: spec}
	if spec.Kind == "lines" {
		if len(spec.Lines) == 0 {
			return nil, fmt.Errorf("the payload file has no lines")
		}
		return p, nil
	}
	var err error
	if p.sizes, err = spec.Sizes.table(spec.Seed); err != nil {
		return nil, err
	}
	largest := slices.Max(p.sizes)
	n := max(atLeast, 2*largest)
	random := rand.NewChaCha8([32]byte{0: byte(spec.Seed), 1: byte(spec.Seed >> 8)})
	switch spec.Kind {
	case "random":
		p.bytes = make([]byte, n)
		_, _ = random.Read(p.bytes)
	case "letters":
		p.bytes = make([]byte, n)
		_, _ = random.Read(p.bytes)
		for i, b := range p.bytes {
			p.bytes[i] = 'A' + byte(int(b)*26>>8)
		}
	case "zero":
		p.bytes = make([]byte, n)
	case "ratio":
		// Spread over the record in runs of 64, so that any record cut out of the
		// pool has the share, whatever its size.
		p.bytes = make([]byte, n)
		_, _ = random.Read(p.bytes)
		const run = 64
		keep := int(spec.Share*run + 0.5)
		for i := range p.bytes {
			if i%run >= keep {
				p.bytes[i] = 0
			}
		}
	case "text":
		p.bytes = text(rand.New(random), n)
	case "json":
		p.bytes = documents(rand.New(random), n)
	default:
		return nil, fmt.Errorf("payload of kind %q: want random, text, json, letters, zero or ratio", spec.Kind)
	}
	return p, nil
}

// MeanSize is the bytes of a value in the mean.
func (p *Pool) MeanSize() float64 {
	sum, n := 0, len(p.sizes)
	for _, s := range p.sizes {
		sum += s
	}
	if p.spec.Kind == "lines" {
		n = len(p.spec.Lines)
		for _, l := range p.spec.Lines {
			sum += len(l)
		}
	}
	return float64(sum) / float64(n)
}

// Walk gives one producer's values. Not for several goroutines.
type Walk struct {
	p    *Pool
	at   int
	size int
}

// Walk begins at another place for each share.
func (p *Pool) Walk(share, of int) *Walk {
	w := &Walk{p: p}
	if len(p.bytes) > 0 {
		w.at = len(p.bytes) / of * share
		w.size = len(p.sizes) / of * share
	} else {
		w.size = len(p.spec.Lines) / of * share
	}
	return w
}

// Next gives the next value. It is a part of the pool: not to be written to.
func (w *Walk) Next() []byte {
	if w.p.spec.Kind == "lines" {
		v := w.p.spec.Lines[w.size%len(w.p.spec.Lines)]
		w.size++
		return v
	}
	n := w.p.sizes[w.size%len(w.p.sizes)]
	w.size++
	if w.at+n > len(w.p.bytes) {
		w.at = 0
	}
	v := w.p.bytes[w.at : w.at+n : w.at+n]
	w.at += n
	return v
}

// text is words of two to nine letters, word number k about 1/k as often as the first.
func text(r *rand.Rand, n int) []byte {
	const vowels, consonants = "aeiou", "bcdfghklmnprstvw"
	words := make([]string, 2000)
	for i := range words {
		w := make([]byte, 2+r.IntN(8))
		for j := range w {
			if j%2 == i%2 {
				w[j] = consonants[r.IntN(len(consonants))]
			} else {
				w[j] = vowels[r.IntN(len(vowels))]
			}
		}
		words[i] = string(w)
	}
	pick := newZipf(len(words), 1)
	out := make([]byte, 0, n+16)
	for len(out) < n {
		out = append(out, words[pick.index(r.Float64())]...)
		out = append(out, ' ')
	}
	return out[:n]
}

// documents are lines of JSON as services log them.
func documents(r *rand.Rand, n int) []byte {
	states := []string{"created", "paid", "packed", "shipped", "delivered", "returned"}
	out := make([]byte, 0, n+256)
	for id := uint64(1); len(out) < n; id++ {
		var user [8]byte
		binary.BigEndian.PutUint64(user[:], r.Uint64())
		out = fmt.Appendf(out, `{"id":%d,"user":"%x","state":%q,"amount":%d.%02d,"items":%d,"ok":%t,"ts":%d}`+"\n",
			id*7, user, states[r.IntN(len(states))], r.IntN(500), r.IntN(100), 1+r.IntN(9), r.IntN(10) > 0, 1_760_000_000_000+id*13+uint64(r.IntN(13)))
	}
	return out[:n]
}
