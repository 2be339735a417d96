package disk

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// pageBytes is the unit in which a crash keeps or loses unsynced bytes.
const pageBytes = 4096

// Mem is a file system in memory that knows which bytes and which names were
// synced. CrashClone gives the world as it may be found after a power cut.
type Mem struct {
	mu     sync.Mutex
	root   *memNode
	locks  map[string]bool
	free   uint64
	rng    *rand.Rand
	syncs  int
	writes int
}

// memNode is a file or a directory; names point to it, open files hold it.
type memNode struct {
	dir  bool
	mod  time.Time
	data []byte

	// What is durable: data as of the last sync, and the stretch that may differ.
	synced           []byte
	dirtyLo, dirtyHi int
	shrunk           bool // truncated since the last sync

	names   map[string]*memNode
	durable map[string]*memNode
	ops     []memOp // changes of names since the last SyncDir, in order
}

// memOp changes names in one directory: drop goes, set comes (a rename within a
// directory is one op and so atomic).
type memOp struct {
	drop, set string
	node      *memNode
}

// NewMem makes an empty file system. The same seed and the same calls give the
// same crash clones.
func NewMem(seed uint64) *Mem {
	return &Mem{
		root:  newMemDir(),
		locks: map[string]bool{},
		free:  1 << 40,
		rng:   rand.New(rand.NewPCG(seed, 0x5eed)),
	}
}

func newMemDir() *memNode {
	return &memNode{dir: true, names: map[string]*memNode{}, durable: map[string]*memNode{}}
}

// SetFree sets what Space answers as free. It limits nothing: Faulty does.
func (m *Mem) SetFree(bytes uint64) { m.mu.Lock(); m.free = bytes; m.mu.Unlock() }

// Counts gives the number of writes and of file syncs so far.
func (m *Mem) Counts() (writes, syncs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes, m.syncs
}

// Crash is what becomes of the bytes and names that were not synced.
type Crash int

const (
	// CrashAny: a random part survives. Bytes do by page, in any order, and lost pages
	// of a file that grew read as zeros; changes of names do as a prefix in order per
	// directory.
	CrashAny Crash = iota
	// CrashKept: all survives, as after a kill of the process alone.
	CrashKept
	// CrashLost: nothing does.
	CrashLost
	// CrashTorn: of every file's new bytes and of every directory's new names a prefix
	// does.
	CrashTorn
)

// CrashClone is CrashCloneAs with CrashAny.
func (m *Mem) CrashClone() *Mem { return m.CrashCloneAs(CrashAny) }

// CrashCloneAs returns another file system that holds what a power cut at this
// moment may leave: everything synced, and of the rest what how says. The original
// goes on unharmed.
func (m *Mem) CrashCloneAs(how Crash) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(m.rng.Uint64())
	c.free = m.free
	seen := map[*memNode]*memNode{}
	c.root = m.crashNode(m.root, how, seen)
	return c
}

func (m *Mem) crashNode(n *memNode, how Crash, seen map[*memNode]*memNode) *memNode {
	if c := seen[n]; c != nil {
		return c
	}
	if !n.dir {
		data := m.crashData(n, how)
		c := &memNode{mod: n.mod, data: data, synced: slices.Clone(data)}
		seen[n] = c
		return c
	}
	c := newMemDir()
	seen[n] = c
	names := maps.Clone(n.durable)
	done := len(n.ops)
	switch how {
	case CrashLost:
		done = 0
	case CrashAny, CrashTorn:
		done = m.rng.IntN(len(n.ops) + 1)
	}
	for _, op := range n.ops[:done] {
		op.apply(names)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.names[name] = m.crashNode(names[name], how, seen)
	}
	c.durable = maps.Clone(c.names)
	return c
}

func (m *Mem) crashData(n *memNode, how Crash) []byte {
	if how == CrashLost || n.dirtyHi <= n.dirtyLo && !n.shrunk {
		return slices.Clone(n.synced)
	}
	size := len(n.data)
	switch how {
	case CrashKept:
		return slices.Clone(n.data)
	case CrashTorn:
		if n.shrunk && m.rng.IntN(2) == 0 {
			return slices.Clone(n.synced) // the cut did not come to the disk, nor what followed it
		}
		lo := min(n.dirtyLo, size)
		cut := lo + m.rng.IntN(size-lo+1)
		out := append(slices.Clone(n.data[:cut]), n.synced[min(cut, len(n.synced)):]...)
		if n.shrunk {
			out = out[:cut]
		}
		return out
	}
	if size != len(n.synced) {
		lo, hi := min(size, len(n.synced)), max(size, len(n.synced))
		size = lo + m.rng.IntN(hi-lo+1)
	}
	out := make([]byte, size)
	copy(out, n.synced)
	for p := 0; p < size; p += pageBytes {
		end := min(p+pageBytes, size)
		if p < len(n.data) && m.rng.IntN(4) != 0 { // most pages make it: whole tails should be seen too
			copy(out[p:end], n.data[p:min(end, len(n.data))])
		}
	}
	return out
}

func (op memOp) apply(names map[string]*memNode) {
	if op.drop != "" {
		delete(names, op.drop)
	}
	if op.set != "" {
		names[op.set] = op.node
	}
}

func (n *memNode) change(op memOp) {
	op.apply(n.names)
	n.ops = append(n.ops, op)
}

func split(path string) []string {
	path = filepath.ToSlash(filepath.Clean(path))
	parts := strings.Split(path, "/")
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == "." })
}

func memError(op, path string, err error) error {
	return &os.PathError{Op: op, Path: path, Err: err}
}

var errNotDir = errors.New("not a directory")

// findLocked walks to path; parent is nil only for the root.
func (m *Mem) findLocked(path string) (parent *memNode, name string, node *memNode) {
	node = m.root
	for _, part := range split(path) {
		if node == nil || !node.dir {
			return nil, "", nil
		}
		parent, name, node = node, part, node.names[part]
	}
	return parent, name, node
}

func (m *Mem) open(op, path string, create, truncate, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, node := m.findLocked(path)
	switch {
	case node != nil && node.dir:
		return nil, memError(op, path, errors.New("is a directory"))
	case node == nil && (!create || parent == nil):
		return nil, memError(op, path, fs.ErrNotExist)
	case node == nil:
		node = &memNode{mod: time.Now()}
		parent.change(memOp{set: name, node: node})
	case truncate:
		node.truncate(0)
	}
	return &memFile{m: m, node: node, name: path, write: write}, nil
}

func (m *Mem) Open(path string) (File, error)     { return m.open("open", path, false, false, true) }
func (m *Mem) OpenRead(path string) (File, error) { return m.open("open", path, false, false, false) }
func (m *Mem) Create(path string) (File, error)   { return m.open("create", path, true, true, true) }
func (m *Mem) OpenOrCreate(path string) (File, error) {
	return m.open("create", path, true, false, true)
}

func (m *Mem) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, node := m.findLocked(path)
	if node == nil || parent == nil {
		return memError("remove", path, fs.ErrNotExist)
	}
	if node.dir && len(node.names) > 0 {
		return memError("remove", path, errors.New("directory not empty"))
	}
	parent.change(memOp{drop: name})
	return nil
}

func (m *Mem) RemoveAll(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if parent, name, node := m.findLocked(path); node != nil && parent != nil {
		parent.change(memOp{drop: name})
	}
	return nil
}

func (m *Mem) Rename(oldPath, newPath string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldName, node := m.findLocked(oldPath)
	to, newName, target := m.findLocked(newPath)
	if node == nil || from == nil || to == nil {
		return memError("rename", oldPath, fs.ErrNotExist)
	}
	if target != nil && target.dir && len(target.names) > 0 {
		return memError("rename", newPath, fs.ErrExist)
	}
	if from == to {
		from.change(memOp{drop: oldName, set: newName, node: node})
		return nil
	}
	to.change(memOp{set: newName, node: node})
	from.change(memOp{drop: oldName})
	return nil
}

func (m *Mem) MkdirAll(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	node := m.root
	for _, part := range split(path) {
		next := node.names[part]
		if next == nil {
			next = newMemDir()
			node.change(memOp{set: part, node: next})
		}
		if !next.dir {
			return memError("mkdir", path, errNotDir)
		}
		node = next
	}
	return nil
}

func (m *Mem) Mkdir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, name, node := m.findLocked(path)
	switch {
	case parent == nil:
		return memError("mkdir", path, fs.ErrNotExist)
	case node != nil:
		return memError("mkdir", path, fs.ErrExist)
	}
	parent.change(memOp{set: name, node: newMemDir()})
	return nil
}

func (m *Mem) ReadDir(path string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, node := m.findLocked(path)
	if node == nil {
		return nil, memError("readdir", path, fs.ErrNotExist)
	}
	if !node.dir {
		return nil, memError("readdir", path, errNotDir)
	}
	entries := make([]Entry, 0, len(node.names))
	for _, name := range slices.Sorted(maps.Keys(node.names)) {
		n := node.names[name]
		entries = append(entries, Entry{Name: name, Dir: n.dir, Size: int64(len(n.data))})
	}
	return entries, nil
}

func (m *Mem) Stat(path string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, node := m.findLocked(path)
	if node == nil {
		return Info{}, memError("stat", path, fs.ErrNotExist)
	}
	return Info{Size: int64(len(node.data)), ModTime: node.mod, Dir: node.dir}, nil
}

func (m *Mem) SyncDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, node := m.findLocked(path)
	if node == nil {
		return memError("syncdir", path, fs.ErrNotExist)
	}
	if node.dir {
		node.durable, node.ops = maps.Clone(node.names), nil
	}
	return nil
}

func (m *Mem) ReadFile(path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, node := m.findLocked(path)
	if node == nil || node.dir {
		return nil, memError("open", path, fs.ErrNotExist)
	}
	return slices.Clone(node.data), nil
}

func (m *Mem) WriteAtomic(path string, data []byte) error { return writeAtomic(m, path, data) }

func (m *Mem) Lock(path string) (io.Closer, error) {
	f, err := m.OpenOrCreate(path)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[path] {
		return nil, memError("lock", path, ErrLocked)
	}
	m.locks[path] = true
	return &memLock{File: f, m: m, path: path}, nil
}

func (m *Mem) Space(string) (free, total uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free, 1 << 40, nil
}

type memLock struct {
	File
	m    *Mem
	path string
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	delete(l.m.locks, l.path)
	l.m.mu.Unlock()
	return l.File.Close()
}

func (n *memNode) truncate(size int) {
	n.mod = time.Now()
	if size <= len(n.data) {
		n.shrunk = n.shrunk || size < len(n.data)
		n.dirtyLo = min(n.dirtyLo, size)
		n.data = n.data[:size]
		return
	}
	n.grow(size)
}

// grow extends with zeros; the memory may hold bytes of before a truncation.
func (n *memNode) grow(size int) {
	old := len(n.data)
	n.mark(old, size)
	n.data = slices.Grow(n.data, size-old)[:size]
	clear(n.data[old:])
}

func (n *memNode) mark(lo, hi int) {
	if n.dirtyHi <= n.dirtyLo {
		n.dirtyLo, n.dirtyHi = lo, hi
		return
	}
	n.dirtyLo, n.dirtyHi = min(n.dirtyLo, lo), max(n.dirtyHi, hi)
}

type memFile struct {
	m      *Mem
	node   *memNode
	name   string
	write  bool
	closed bool
}

func (f *memFile) check(op string, write bool) error {
	if f.closed {
		return memError(op, f.name, fs.ErrClosed)
	}
	if write && !f.write {
		return memError(op, f.name, fs.ErrPermission)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("read", false); err != nil {
		return 0, err
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("write", true); err != nil {
		return 0, err
	}
	f.m.writes++
	end := int(off) + len(p)
	if end > len(f.node.data) {
		f.node.grow(end)
	}
	copy(f.node.data[off:], p)
	f.node.mark(int(off), end)
	f.node.mod = time.Now()
	return len(p), nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("sync", false); err != nil {
		return err
	}
	f.m.syncs++
	n := f.node
	if n.shrunk || n.dirtyHi > n.dirtyLo {
		lo := min(n.dirtyLo, len(n.data), len(n.synced))
		n.synced = append(n.synced[:lo], n.data[lo:]...)
		n.dirtyLo, n.dirtyHi, n.shrunk = 0, 0, false
	}
	return nil
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("truncate", true); err != nil {
		return err
	}
	f.node.truncate(int(size))
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return int64(len(f.node.data)), f.check("stat", false)
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.check("close", false)
	f.closed = true
	return err
}

func (f *memFile) Preallocate(int64) error { return nil }
func (f *memFile) Name() string            { return f.name }
func (f *memFile) Fd() (uintptr, bool)     { return 0, false }
