package metadata

import (
	"slices"
	"sort"
	"strings"
)

// order keeps the topics sorted by name, in chunks that images share: a change
// copies one chunk and the short list of chunks.
type order struct {
	owner  *token // of the slice chunks
	chunks []*chunk
}

type chunk struct {
	owner  *token
	topics []*Topic // never empty
}

const orderChunk = 128

// find gives the chunk that holds or would hold name, and the place in it.
func (o *order) find(name string) (c, i int, ok bool) {
	c = sort.Search(len(o.chunks), func(c int) bool { return o.chunks[c].topics[0].Name > name }) - 1
	if c < 0 {
		return 0, 0, false
	}
	ts := o.chunks[c].topics
	i = sort.Search(len(ts), func(i int) bool { return ts[i].Name >= name })
	return c, i, i < len(ts) && ts[i].Name == name
}

// own gives a chunk that may be written to.
func (o *order) own(w *token, c int) *chunk {
	if o.owner != w {
		o.chunks, o.owner = slices.Clone(o.chunks), w
	}
	ch := o.chunks[c]
	if ch.owner != w {
		ch = &chunk{w, append(make([]*Topic, 0, len(ch.topics)+1), ch.topics...)}
		o.chunks[c] = ch
	}
	return ch
}

func (o *order) put(w *token, t *Topic) {
	if len(o.chunks) == 0 {
		o.chunks, o.owner = []*chunk{{w, []*Topic{t}}}, w
		return
	}
	c, i, ok := o.find(t.Name)
	ch := o.own(w, c)
	if ok {
		ch.topics[i] = t
		return
	}
	ch.topics = slices.Insert(ch.topics, i, t)
	if len(ch.topics) <= orderChunk {
		return
	}
	// Names often arrive in rising order: leave the left part full then.
	cut := len(ch.topics) / 2
	if i == len(ch.topics)-1 {
		cut = i
	}
	right := &chunk{w, append(make([]*Topic, 0, orderChunk+1), ch.topics[cut:]...)}
	ch.topics = ch.topics[:cut:cut]
	o.chunks = slices.Insert(o.chunks, c+1, right)
}

func (o *order) del(w *token, name string) {
	c, i, ok := o.find(name)
	if !ok {
		return
	}
	ch := o.own(w, c)
	ch.topics = slices.Delete(ch.topics, i, i+1)
	if len(ch.topics) == 0 {
		o.chunks = slices.Delete(o.chunks, c, c+1)
	}
}

func (o *order) each(fn func(*Topic) bool) {
	for _, ch := range o.chunks {
		for _, t := range ch.topics {
			if !fn(t) {
				return
			}
		}
	}
}

// collisionKey is the form in which two names that differ only by '.' and '_'
// are equal: both become the same metric name. "" for a name with neither.
func collisionKey(name string) string {
	if !strings.ContainsAny(name, "._") {
		return ""
	}
	return strings.ReplaceAll(name, ".", "_")
}
