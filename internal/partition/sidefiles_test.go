package partition

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/batch"
	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
)

// TestCheckpointsDamaged (B130): a checkpoint of the log dir that is gone, empty, full
// of zeros, short of a line or wrong in its count costs a longer start and nothing
// else: no partition is offline, no record missing, the gaps of a compacted log least
// of all; records that DeleteRecords took may come back.
func TestCheckpointsDamaged(t *testing.T) {
	all := []string{recoveryCheckpoint, startCheckpoint, cleanerCheckpoint, hwCheckpoint}
	for _, file := range append(all, "all") {
		for name, edit := range map[string]func(b []byte) []byte{
			"empty":       func([]byte) []byte { return nil },
			"zeros":       func(b []byte) []byte { return make([]byte, len(b)) },
			"a line less": func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] },
			"half a line": func(b []byte) []byte { return b[:len(b)-3] },
			"wrong count": func(b []byte) []byte { return bytes.Replace(b, []byte("\n"), []byte("\n9"), 1) },
			"tmp beside":  nil,
			"gone":        nil,
		} {
			for _, stop := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s, stopped in order %v", file, name, stop), func(t *testing.T) {
					mem := disk.NewMem(1)
					if err := mem.MkdirAll("/data"); err != nil {
						t.Fatal(err)
					}
					if err := mem.WriteAtomic("/data/"+metaProperties, []byte("x")); err != nil {
						t.Fatal(err)
					}
					img, delta := image(topic("plain", topicA, 2), topic("compacted", kafka.TopicID{2}, 1))
					m := openCrash(t, mem)
					m.Apply(img, delta)
					ends := make(map[string]kafka.Offset)
					for _, p := range m.All() {
						for range 200 {
							if _, err := p.Append(time.Now(), numbered(p.log.End()), -1); err != nil {
								t.Fatal(err)
							}
						}
						p.flush()
						ends[p.TP.String()] = p.log.End()
					}
					if _, err := m.Get(topicA, 1).DeleteRecords(50); err != nil {
						t.Fatal(err)
					}
					cleanAll(m)
					m.checkpoint(false)
					fs := mem
					if stop {
						if err := m.Close(); err != nil {
							t.Fatal(err)
						}
					} else {
						fs = mem.CrashCloneAs(disk.CrashKept)
						defer m.Close()
					}
					for _, one := range all {
						if file != "all" && file != one {
							continue
						}
						path := "/data/" + one
						b, err := fs.ReadFile(path)
						if err != nil {
							t.Fatal(err)
						}
						switch {
						case edit != nil:
							err = fs.WriteAtomic(path, edit(b))
						case name == "gone":
							err = fs.Remove(path)
						default:
							var f disk.File
							if f, err = fs.Create(path + ".tmp"); err == nil {
								_, err = f.WriteAt([]byte("0\n7"), 0)
							}
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					m2 := openCrash(t, fs)
					defer m2.Close()
					m2.Apply(img, delta)
					for _, p := range m2.All() {
						if err := p.Failed(); err != nil {
							t.Fatalf("%s: %v", p.TP, err)
						}
						if p.log.End() != ends[p.TP.String()] {
							t.Errorf("%s ends at %d, want %d", p.TP, p.log.End(), ends[p.TP.String()])
						}
						last, n := kafka.Offset(-1), 0
						if err := p.Scan(func(b batch.View) error {
							return b.Each(func(r *batch.Record) error {
								if off := b.Offset(r); !strings.HasPrefix(string(r.Value), fmt.Sprint(int64(off), " ")) || off <= last {
									return fmt.Errorf("%q at %d after %d", r.Value, off, last)
								}
								last = b.Offset(r)
								n++
								return nil
							})
						}); err != nil {
							t.Errorf("%s: %v", p.TP, err)
						}
						if last != p.log.End()-1 || p.TP.Topic == "plain" && n < 150 || n < crashKeys {
							t.Errorf("%s: %d records, the last at %d", p.TP, n, last)
						}
					}
				})
			}
		}
	}
}
