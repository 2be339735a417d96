package weir

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/config"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/partition"
	"github.com/weirmq/weir/internal/quorum"
)

// identity is which node of which cluster a log dir belongs to. It lies in
// meta.properties, as Kafka's does, with one key of ours that says who wrote the
// folder and in which format.
type identity struct {
	cluster string
	node    kafka.BrokerID
	file    string   // where it was read, for messages
	dir     string   // the log dir's own id
	dirs    []string // the ids of all log dirs this node has had; nil in a folder that an older Weir wrote
}

const (
	metaFile   = "meta.properties"
	formatKey  = "weir.format"
	dirsKey    = "weir.directories"
	dataFormat = 1 // raise when an older Weir could no longer read the folder
)

// absence is what identify found missing.
type absence struct {
	err   error    // a log dir that this node had is not here; nil: all are
	empty []string // sound dirs that are likely the mount points of what is missing
}

// identify checks that every log dir is of one and the same node and cluster, and
// gives a name to those that are new. A folder with partitions but no name is
// refused: data never changes its owner in silence. Each dir's file lists the ids of
// all, so that one that is left out, or whose disk is not mounted, is missed: its
// partitions must not be begun anew in another (B136).
func identify(fs disk.FS, dirs []partition.DirInfo, c *config.Static) (identity, absence, error) {
	var gone absence
	var id identity
	var empty []string // dirs without a name
	named := map[string]identity{}
	fail := func(format string, args ...any) (identity, absence, error) {
		return id, gone, fmt.Errorf(format, args...)
	}
	for _, d := range dirs {
		if d.Err != nil {
			continue
		}
		path := filepath.Join(d.Path, metaFile)
		text, err := fs.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			if name, used := holdsData(fs, d.Path); used {
				return fail("%s holds %s but no %s: put that file back, or start in an empty folder with --data-dir", d.Path, name, metaFile)
			}
			empty = append(empty, d.Path)
			continue
		}
		if err != nil {
			return fail("cannot read %s: %w: mend its rights, or name another folder with --data-dir", path, err)
		}
		got, err := parseIdentity(path, text)
		if err != nil {
			return id, gone, err
		}
		if got.node != c.NodeID() {
			return fail("%s belongs to node %d, but this node is %d: set node.id=%d, or name this node's own folder", path, got.node, c.NodeID(), got.node)
		}
		if id.file != "" && id.cluster != got.cluster {
			return fail("%s is of cluster %s, but %s of cluster %s: name folders of one cluster in log.dirs", path, got.cluster, id.file, id.cluster)
		}
		id = got
		if got.dir == "" {
			got.dir, got.dirs = newID(), nil
		}
		named[d.Path] = got
	}
	if want := c.ClusterID(); want != "" && id.file != "" && want != id.cluster {
		return fail("%s is of cluster %s, but the configuration says %s: name the folder of that cluster, or leave the cluster id out", id.file, id.cluster, want)
	}
	if id.file == "" {
		id = identity{cluster: c.ClusterID(), node: c.NodeID()}
		if id.cluster == "" {
			id.cluster = newID()
		}
	}
	known, here, recorded := map[string]bool{}, map[string]bool{}, false
	for _, got := range named {
		here[got.dir], known[got.dir] = true, true
		recorded = recorded || got.dirs != nil
		for _, d := range got.dirs {
			known[d] = true
		}
	}
	missing := 0
	for d := range known {
		if !here[d] {
			missing++
		}
	}
	switch {
	case len(named) == 0:
	case missing > 0:
		gone.err = fmt.Errorf("%d log dir(s) this node has used are not in log.dirs, not mounted or not usable: put them back and start again, or, "+
			"if they are lost for good, take the line %s out of %s", missing, dirsKey, metaFiles(named))
	case !recorded && len(dirs) < len(c.LogDirs()):
		gone.err = errors.New("a log dir cannot be used: mend it and start again")
	}
	if gone.err != nil {
		gone.empty = empty
		empty = nil
	}
	for _, dir := range empty {
		named[dir] = identity{cluster: id.cluster, node: id.node, dir: newID()}
		known[named[dir].dir] = true
	}
	all := slices.Sorted(maps.Keys(known))
	if gone.err != nil && !recorded {
		all = nil // a list without the one that is away would forget it
	}
	for _, dir := range slices.Sorted(maps.Keys(named)) {
		got := named[dir]
		path := filepath.Join(dir, metaFile)
		if got.file == "" || !slices.Equal(got.dirs, all) {
			got.dirs = all
			if err := fs.WriteAtomic(path, got.text()); err != nil {
				return fail("cannot write %s: %w: free some space or mend its rights, or name another folder with --data-dir", path, err)
			}
		}
		id.file = path
	}
	return id, gone, nil
}

func metaFiles(named map[string]identity) string {
	var files []string
	for dir := range named {
		files = append(files, filepath.Join(dir, metaFile))
	}
	slices.Sort(files)
	return strings.Join(files, " and ")
}

func (id identity) text() []byte {
	b := fmt.Appendf(nil, "version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n%s=%d\n", id.cluster, id.node, id.dir, formatKey, dataFormat)
	if len(id.dirs) > 0 {
		b = fmt.Appendf(b, "%s=%s\n", dirsKey, strings.Join(id.dirs, ","))
	}
	return b
}

func parseIdentity(path string, text []byte) (identity, error) {
	id := identity{file: path, node: -1}
	props, err := config.ParseProperties(text)
	if err != nil {
		return id, fmt.Errorf("%s is damaged: %w: restore it from a copy or from another log dir of this node", path, err)
	}
	format := ""
	for _, p := range props {
		switch p.Key {
		case "cluster.id":
			id.cluster = p.Value
		case "node.id", "broker.id":
			n, err := strconv.ParseInt(p.Value, 10, 32)
			if err != nil {
				return id, fmt.Errorf("%s is damaged: %s=%s is no number: restore it from a copy or from another log dir of this node", path, p.Key, p.Value)
			}
			id.node = kafka.BrokerID(n)
		case "directory.id":
			id.dir = p.Value
		case dirsKey:
			id.dirs = strings.FieldsFunc(p.Value, func(r rune) bool { return r == ',' })
		case formatKey:
			format = p.Value
		}
	}
	switch n, err := strconv.Atoi(format); {
	case format == "" && id.cluster != "":
		return id, fmt.Errorf("%s was written by Apache Kafka: Weir does not take over its metadata; start in an empty folder with --data-dir, and copy the data with a client", filepath.Dir(path))
	case err != nil || id.cluster == "" || id.node < 0:
		return id, fmt.Errorf("%s is damaged: it lacks cluster.id, node.id or %s: restore it from a copy or from another log dir of this node", path, formatKey)
	case n > dataFormat:
		return id, fmt.Errorf("%s is in data format %d, newer than the %d this Weir knows: start the newer Weir again", filepath.Dir(path), n, dataFormat)
	}
	return id, nil
}

// holdsData says whether a folder without a name holds something of a broker's, and
// what, apart from but.
func holdsData(fs disk.FS, dir string, but ...string) (name string, used bool) {
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		if e.Dir && !slices.Contains(but, e.Name) && (strings.HasPrefix(e.Name, "__") || strings.Contains(e.Name, "-")) {
			return e.Name, true
		}
	}
	return "", false
}

// metadataThere refuses log dirs that hold partitions without the metadata that names
// them: starting would take every partition for a stranger's.
func metadataThere(fs disk.FS, metaDir string, dirs []partition.DirInfo) error {
	entries, _ := fs.ReadDir(filepath.Join(metaDir, quorum.Dir))
	for _, e := range entries {
		if ext := filepath.Ext(e.Name); ext == ".log" || ext == ".snapshot" {
			return nil
		}
	}
	for _, d := range dirs {
		if name, used := holdsData(fs, d.Path, quorum.Dir); d.Err == nil && used {
			return fmt.Errorf("%s holds %s but the metadata log in %s is gone: put that folder back, or start in an empty folder with --data-dir",
				d.Path, name, filepath.Join(metaDir, quorum.Dir))
		}
	}
	return nil
}

// newID is an id in Kafka's form: 22 characters of URL-safe base64.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] &= 0x7f // no leading dash: tools take it for a flag
	return base64.RawURLEncoding.EncodeToString(b[:])
}
