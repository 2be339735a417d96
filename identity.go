package weir

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	file    string // where it was read, for messages
}

const (
	metaFile   = "meta.properties"
	formatKey  = "weir.format"
	dataFormat = 1 // raise when an older Weir could no longer read the folder
)

// identify checks that every log dir is of one and the same node and cluster, and
// gives a name to those that are empty. A folder with partitions but no name is
// refused: data never changes its owner in silence.
func identify(fs disk.FS, dirs []partition.DirInfo, c *config.Static) (identity, error) {
	var id identity
	var empty []string
	for _, d := range dirs {
		if d.Err != nil {
			continue
		}
		path := filepath.Join(d.Path, metaFile)
		text, err := fs.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			if name, used := holdsData(fs, d.Path); used {
				return id, fmt.Errorf("%s holds %s but no %s: put that file back, or start in an empty folder with --data-dir", d.Path, name, metaFile)
			}
			empty = append(empty, path)
			continue
		}
		if err != nil {
			return id, fmt.Errorf("cannot read %s: %w: mend its rights, or name another folder with --data-dir", path, err)
		}
		got, err := parseIdentity(path, text)
		if err != nil {
			return id, err
		}
		if got.node != c.NodeID() {
			return id, fmt.Errorf("%s belongs to node %d, but this node is %d: set node.id=%d, or name this node's own folder", path, got.node, c.NodeID(), got.node)
		}
		if id.file != "" && id.cluster != got.cluster {
			return id, fmt.Errorf("%s is of cluster %s, but %s of cluster %s: name folders of one cluster in log.dirs", path, got.cluster, id.file, id.cluster)
		}
		id = got
	}
	if want := c.ClusterID(); want != "" && id.file != "" && want != id.cluster {
		return id, fmt.Errorf("%s is of cluster %s, but the configuration says %s: name the folder of that cluster, or leave the cluster id out", id.file, id.cluster, want)
	}
	if id.file == "" {
		id = identity{cluster: c.ClusterID(), node: c.NodeID()}
		if id.cluster == "" {
			id.cluster = newID()
		}
	}
	for _, path := range empty {
		if err := fs.WriteAtomic(path, id.text()); err != nil {
			return id, fmt.Errorf("cannot write %s: %w: free some space or mend its rights, or name another folder with --data-dir", path, err)
		}
		id.file = path
	}
	return id, nil
}

func (id identity) text() []byte {
	return fmt.Appendf(nil, "version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n%s=%d\n", id.cluster, id.node, newID(), formatKey, dataFormat)
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

// holdsData says whether a folder without a name holds something of a broker's.
func holdsData(fs disk.FS, dir string) (name string, used bool) {
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		if e.Dir && (strings.HasPrefix(e.Name, "__") || strings.Contains(e.Name, "-")) {
			return e.Name, true
		}
	}
	return "", false
}

// metadataThere refuses log dirs that hold partitions without the metadata that names
// them: starting would take every partition for a stranger's.
func metadataThere(fs disk.FS, metaDir string, dirs []partition.DirInfo) error {
	if _, err := fs.Stat(filepath.Join(metaDir, quorum.Dir)); err == nil {
		return nil
	}
	for _, d := range dirs {
		if name, used := holdsData(fs, d.Path); d.Err == nil && used {
			return fmt.Errorf("%s holds %s but the metadata log %s is gone: put that folder back, or start in an empty folder with --data-dir",
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
