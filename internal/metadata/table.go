package metadata

// token is the identity of a Draft. What carries a draft's token was made by it
// and may be written in place; everything else is shared with published images
// and is copied first. Nobody holds a token after its Draft is done.
type token struct{ _ byte } // not empty: two must never have one address

// table is a hash map that images share: pages of buckets, copied one at a time
// by the Draft that changes them. Go's own maps would have to be copied whole.
// Readers need no lock because what is published never changes.
type table[K comparable, V any] struct {
	hash  func(K) uint32
	owner *token // of the slice pages
	pages []*page[K, V]
	n     int
}

type page[K comparable, V any] struct {
	owner   *token
	buckets [pageBuckets]bucket[K, V]
}

type bucket[K comparable, V any] struct {
	owner *token
	items []pair[K, V]
}

type pair[K comparable, V any] struct {
	key K
	val V
}

const (
	pageBuckets   = 16
	tableMinPages = 4
	// Above this many entries per bucket the table grows fourfold. Few enough
	// for a scan to beat a Go map, so many that the list of pages, copied once
	// per Draft, stays short: half a KiB at 10,000 topics.
	tableLoad = 12
)

func newTable[K comparable, V any](hash func(K) uint32) table[K, V] {
	t := table[K, V]{hash: hash, pages: make([]*page[K, V], tableMinPages)}
	for i := range t.pages {
		t.pages[i] = &page[K, V]{}
	}
	return t
}

// slot is where a key belongs.
func (t *table[K, V]) slot(k K) (p, b int) {
	i := int(t.hash(k)) & (len(t.pages)*pageBuckets - 1)
	return i / pageBuckets, i % pageBuckets
}

func (t *table[K, V]) get(k K) (V, bool) {
	p, b := t.slot(k)
	items := t.pages[p].buckets[b].items
	for i := range items {
		if items[i].key == k {
			return items[i].val, true
		}
	}
	var zero V
	return zero, false
}

// each visits in no useful order; callers whose output can be seen sort.
func (t *table[K, V]) each(fn func(K, V)) {
	for _, p := range t.pages {
		for b := range p.buckets {
			for _, e := range p.buckets[b].items {
				fn(e.key, e.val)
			}
		}
	}
}

// own gives the key's bucket, free to be written to.
func (t *table[K, V]) own(o *token, k K) *bucket[K, V] {
	if t.owner != o {
		t.pages = append([]*page[K, V](nil), t.pages...)
		t.owner = o
	}
	pi, bi := t.slot(k)
	p := t.pages[pi]
	if p.owner != o {
		c := *p
		c.owner = o
		p = &c
		t.pages[pi] = p
	}
	b := &p.buckets[bi]
	if b.owner != o {
		b.items = append(make([]pair[K, V], 0, len(b.items)+1), b.items...)
		b.owner = o
	}
	return b
}

func (t *table[K, V]) put(o *token, k K, v V) {
	b := t.own(o, k)
	for i := range b.items {
		if b.items[i].key == k {
			b.items[i].val = v
			return
		}
	}
	b.items = append(b.items, pair[K, V]{k, v})
	t.n++
	if t.n > tableLoad*pageBuckets*len(t.pages) {
		t.grow(o)
	}
}

func (t *table[K, V]) del(o *token, k K) {
	if _, ok := t.get(k); !ok {
		return
	}
	b := t.own(o, k)
	for i := range b.items {
		if b.items[i].key == k {
			last := len(b.items) - 1
			b.items[i] = b.items[last]
			b.items[last] = pair[K, V]{}
			b.items = b.items[:last]
			t.n--
			return
		}
	}
}

func (t *table[K, V]) grow(o *token) {
	old := t.pages
	t.pages, t.owner = make([]*page[K, V], 4*len(old)), o
	for i := range t.pages {
		p := &page[K, V]{owner: o}
		for b := range p.buckets {
			p.buckets[b].owner = o
		}
		t.pages[i] = p
	}
	for _, op := range old {
		for ob := range op.buckets {
			for _, e := range op.buckets[ob].items {
				p, b := t.slot(e.key)
				t.pages[p].buckets[b].items = append(t.pages[p].buckets[b].items, e)
			}
		}
	}
}

// FNV-1a. Keys are topic names chosen by users of the cluster; a user who can
// create topics that collide can fill the disk just as well.
func hashString(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h ^ h>>15
}
