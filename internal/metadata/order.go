package metadata

import (
	"sort"
	"strings"
)

// order keeps the topics sorted by name, in chunks that images share: a change
// copies one chunk and the short list of chunks.
type order struct{ chunks [][]*Topic }

const orderChunk = 256

// find gives the chunk that holds or would hold name, and the place in it.
func (o *order) find(name string) (c, i int, ok bool) {
	c = sort.Search(len(o.chunks), func(c int) bool { return o.chunks[c][0].Name > name }) - 1
	if c < 0 {
		return 0, 0, false
	}
	ch := o.chunks[c]
	i = sort.Search(len(ch), func(i int) bool { return ch[i].Name >= name })
	return c, i, i < len(ch) && ch[i].Name == name
}

// orderOwned says which chunks a Draft may write in place; nil: not even the
// list of chunks.
type orderOwned []bool

func (o *order) own(w *orderOwned) {
	if *w == nil {
		o.chunks = append([][]*Topic(nil), o.chunks...)
		*w = make(orderOwned, len(o.chunks))
	}
}

func (o *order) put(w *orderOwned, t *Topic) {
	o.own(w)
	if len(o.chunks) == 0 {
		o.chunks = append(o.chunks, []*Topic{t})
		*w = append(*w, true)
		return
	}
	c, i, ok := o.find(t.Name)
	ch := o.chunks[c]
	if !(*w)[c] {
		ch = append(make([]*Topic, 0, len(ch)+1), ch...)
		(*w)[c] = true
	}
	if ok {
		ch[i] = t
		o.chunks[c] = ch
		return
	}
	ch = append(ch, nil)
	copy(ch[i+1:], ch[i:])
	ch[i] = t
	o.chunks[c] = ch
	if len(ch) <= orderChunk {
		return
	}
	// Names often arrive in rising order: leave the left half nearly full then.
	cut := len(ch) / 2
	if i == len(ch)-1 {
		cut = len(ch) - 1
	}
	right := append(make([]*Topic, 0, orderChunk), ch[cut:]...)
	o.chunks[c] = ch[:cut:cut]
	o.chunks = append(o.chunks, nil)
	copy(o.chunks[c+2:], o.chunks[c+1:])
	o.chunks[c+1] = right
	*w = append(*w, false)
	copy((*w)[c+2:], (*w)[c+1:])
	(*w)[c+1] = true
}

func (o *order) del(w *orderOwned, name string) {
	c, i, ok := o.find(name)
	if !ok {
		return
	}
	o.own(w)
	old := o.chunks[c]
	if len(old) == 1 {
		o.chunks = append(o.chunks[:c], o.chunks[c+1:]...)
		*w = append((*w)[:c], (*w)[c+1:]...)
		return
	}
	ch := make([]*Topic, 0, len(old)-1)
	ch = append(ch, old[:i]...)
	o.chunks[c] = append(ch, old[i+1:]...)
	(*w)[c] = true
}

func (o *order) each(fn func(*Topic) bool) {
	for _, ch := range o.chunks {
		for _, t := range ch {
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
