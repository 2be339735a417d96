package metadata

// table is a hash map that can be shared between images: buckets are short
// slices, copied one at a time by the Draft that changes them. Go's own maps
// would have to be copied whole. Readers need no lock because a published
// bucket never changes.
type table[K comparable, V any] struct {
	hash    func(K) uint32
	buckets [][]pair[K, V] // a power of two
	n       int
}

type pair[K comparable, V any] struct {
	key K
	val V
}

const (
	tableMinBuckets = 64
	// Above this many entries per bucket the table grows fourfold. Small enough
	// for a scan to beat a Go map, large enough that the bucket array, copied
	// once per Draft, stays short: 8 KiB at 10,000 topics.
	tableLoad = 12
)

func newTable[K comparable, V any](hash func(K) uint32) table[K, V] {
	return table[K, V]{hash: hash, buckets: make([][]pair[K, V], tableMinBuckets)}
}

func (t *table[K, V]) get(k K) (V, bool) {
	for i := range t.bucket(k) {
		if p := &t.bucket(k)[i]; p.key == k {
			return p.val, true
		}
	}
	var zero V
	return zero, false
}

func (t *table[K, V]) bucket(k K) []pair[K, V] {
	return t.buckets[t.hash(k)&uint32(len(t.buckets)-1)]
}

// each visits in no useful order; callers whose output can be seen sort.
func (t *table[K, V]) each(fn func(K, V)) {
	for _, b := range t.buckets {
		for i := range b {
			fn(b[i].key, b[i].val)
		}
	}
}

// owned says which buckets a Draft may write in place. A nil array means that
// the array of buckets itself is still shared.
type owned []bool

// own copies the bucket array at the first write of a Draft.
func (t *table[K, V]) own(o *owned) {
	if *o == nil {
		t.buckets = append([][]pair[K, V](nil), t.buckets...)
		*o = make(owned, len(t.buckets))
	}
}

func (t *table[K, V]) put(o *owned, k K, v V) {
	t.own(o)
	i := t.hash(k) & uint32(len(t.buckets)-1)
	b := t.buckets[i]
	if !(*o)[i] {
		b = append(make([]pair[K, V], 0, len(b)+1), b...)
		(*o)[i] = true
	}
	for j := range b {
		if b[j].key == k {
			b[j].val = v
			t.buckets[i] = b
			return
		}
	}
	t.buckets[i] = append(b, pair[K, V]{k, v})
	t.n++
	if t.n > tableLoad*len(t.buckets) {
		t.grow(o)
	}
}

func (t *table[K, V]) del(o *owned, k K) {
	if _, ok := t.get(k); !ok {
		return
	}
	t.own(o)
	i := t.hash(k) & uint32(len(t.buckets)-1)
	old := t.buckets[i]
	b := make([]pair[K, V], 0, len(old)-1)
	for _, p := range old {
		if p.key != k {
			b = append(b, p)
		}
	}
	t.buckets[i] = b
	(*o)[i] = true
	t.n--
}

func (t *table[K, V]) grow(o *owned) {
	old := t.buckets
	t.buckets = make([][]pair[K, V], 4*len(old))
	*o = make(owned, len(t.buckets))
	for i := range *o {
		(*o)[i] = true
	}
	mask := uint32(len(t.buckets) - 1)
	for _, b := range old {
		for _, p := range b {
			i := t.hash(p.key) & mask
			t.buckets[i] = append(t.buckets[i], p)
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
