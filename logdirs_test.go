package weir_test

// A log dir that is away at a start: B136. What lies in it is offline, never begun
// anew in another dir, and is there again when the dir is.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir"
)

func TestLogDirAway(t *testing.T) {
	for name, c := range map[string]struct {
		away func(t *testing.T, dir string) // after dir itself was moved away
		omit bool                           // dir is left out of log.dirs
		old  bool                           // an older Weir wrote the folders
	}{
		"a file in its place":             {away: func(t *testing.T, dir string) { write(t, dir, "broken") }},
		"a file in place of an older one": {away: func(t *testing.T, dir string) { write(t, dir, "broken") }, old: true},
		"not mounted": {away: func(t *testing.T, dir string) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		"not in log.dirs": {omit: true},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			one, two := filepath.Join(home, "one"), filepath.Join(home, "two")
			both := []string{"log.dirs=" + one + "," + two}
			begin := func(overrides []string) *weir.Server {
				return start(t, weir.Options{Overrides: overrides})
			}
			s := begin(both)
			cl := client(t, s, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if _, err := kadm.NewClient(cl).CreateTopics(t.Context(), 4, 1, nil, "t"); err != nil {
				t.Fatal(err)
			}
			var records []*kgo.Record
			for n := range 400 {
				records = append(records, &kgo.Record{Topic: "t", Partition: int32(n % 4), Value: fmt.Append(nil, n)})
			}
			if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.old {
				for _, dir := range []string{one, two} {
					forgetDirs(t, dir)
				}
			}
			var lost []int // partitions in the dir that goes away
			for p := range 4 {
				if _, err := os.Stat(filepath.Join(two, fmt.Sprint("t-", p))); err == nil {
					lost = append(lost, p)
				}
			}
			if len(lost) == 0 || len(lost) == 4 {
				t.Fatalf("partitions %v of 4 lie in %s", lost, two)
			}
			if err := os.Rename(two, two+".away"); err != nil {
				t.Fatal(err)
			}
			overrides := both
			if c.omit {
				overrides = []string{"log.dirs=" + one}
			} else {
				c.away(t, two)
			}
			for range 2 { // and again, when nothing was learnt in between
				s = begin(overrides)
				for p, end := range logEnds(t, s, 4) {
					switch away := slices.Contains(lost, p); {
					case away && end != -1:
						t.Errorf("partition %d, which is away, has end %d", p, end)
					case !away && end != 100:
						t.Errorf("partition %d: end %d", p, end)
					}
				}
				// New topics go to the dir that is left, and are served.
				cl = client(t, s, kgo.DefaultProduceTopic("new"), kgo.AllowAutoTopicCreation())
				if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("x")}).FirstErr(); err != nil {
					t.Errorf("a new topic: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(two); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(two+".away", two); err != nil {
				t.Fatal(err)
			}
			s = begin(both)
			for p, end := range logEnds(t, s, 4) {
				if end != 100 {
					t.Errorf("partition %d after the dir came back: end %d", p, end)
				}
			}
		})
	}
}

// A dir that is added is no dir that is missing, and one that is given up for good
// may be taken out of the list.
func TestLogDirAddedAndGivenUp(t *testing.T) {
	home := t.TempDir()
	one, two := filepath.Join(home, "one"), filepath.Join(home, "two")
	s := start(t, weir.Options{Overrides: []string{"log.dirs=" + one}})
	if _, err := kadm.NewClient(client(t, s)).CreateTopics(t.Context(), 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, weir.Options{Overrides: []string{"log.dirs=" + one + "," + two}})
	if got := s.FailedDirs(); len(got) != 0 {
		t.Errorf("an added dir is taken for a lost one: %v", got)
	}
	if _, err := kadm.NewClient(client(t, s)).CreateTopics(t.Context(), 2, 1, nil, "u"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(two); err != nil {
		t.Fatal(err)
	}
	forgetDirs(t, one)
	s = start(t, weir.Options{Overrides: []string{"log.dirs=" + one + "," + two}})
	ends, err := kadm.NewClient(client(t, s)).ListEndOffsets(t.Context(), "t", "u")
	if err != nil || ends.Error() != nil {
		t.Errorf("after the loss was accepted: %v, %v", err, ends.Error())
	}
}

// forgetDirs takes the list of the node's dirs out of a dir's meta.properties.
func forgetDirs(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "meta.properties")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "weir.directories=") {
			kept = append(kept, line)
		}
	}
	if len(kept) == strings.Count(string(text), "\n") {
		t.Fatalf("no list of dirs in\n%s", text)
	}
	write(t, path, strings.Join(kept, ""))
}

// Of two folders of one partition none is chosen: the newer may be the empty one.
func TestPartitionInTwoDirs(t *testing.T) {
	home := t.TempDir()
	one, two := filepath.Join(home, "one"), filepath.Join(home, "two")
	dirs := []string{"log.dirs=" + one + "," + two}
	s := start(t, weir.Options{Overrides: dirs})
	if _, err := kadm.NewClient(client(t, s)).CreateTopics(t.Context(), 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(one, "t-0"), filepath.Join(two, "t-0")
	if _, err := os.Stat(from); err != nil {
		from, to = to, from
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	s = start(t, weir.Options{Overrides: dirs})
	if got := logEnds(t, s, 2); got[0] != -1 || got[1] != 0 {
		t.Errorf("ends %v; partition 0 lies in two dirs", got)
	}
	// A later topic of that name is another's.
	a := kadm.NewClient(client(t, s))
	if _, err := a.DeleteTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateTopics(t.Context(), 2, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if got := logEnds(t, s, 2); got[0] != 0 || got[1] != 0 {
		t.Errorf("ends %v of the later topic", got)
	}
}

// logEnds gives the log end of each of topic t's partitions, -1 for one that is offline.
func logEnds(t *testing.T, s *weir.Server, partitions int) []int64 {
	t.Helper()
	offline := 0
	out := make([]int64, partitions)
	ends, _ := kadm.NewClient(client(t, s)).ListEndOffsets(t.Context(), "t")
	for p := range out {
		o, ok := ends.Lookup("t", int32(p))
		switch {
		case ok && o.Err == nil:
			out[p] = o.Offset
		case !ok || errors.Is(o.Err, kerr.LeaderNotAvailable) || errors.Is(o.Err, kerr.KafkaStorageError):
			out[p] = -1
			offline++
		default:
			t.Errorf("partition %d: %v", p, o.Err)
		}
	}
	if offline == partitions {
		t.Fatal("no partition answers")
	}
	return out
}

// A disk that is taken away under a running broker (unmounted by force, the folder
// moved) is missed by the first operation that needs a name in it, not a minute later.
func TestLogDirTakenAway(t *testing.T) {
	home := t.TempDir()
	one, two := filepath.Join(home, "one"), filepath.Join(home, "two")
	s := start(t, weir.Options{Overrides: []string{"log.dirs=" + one + "," + two, "log.segment.bytes=1048576"}})
	cl := client(t, s, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(1), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if _, err := kadm.NewClient(cl).CreateTopics(t.Context(), 4, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	send := func(p int) error {
		return cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: int32(p), Value: make([]byte, 600_000)}).FirstErr()
	}
	lost := map[int]bool{}
	for p := range 4 {
		if err := send(p); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(two, fmt.Sprint("t-", p))); err == nil {
			lost[p] = true
		}
	}
	if err := os.Rename(two, two+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(two, 0o755); err != nil {
		t.Fatal(err)
	}
	for p := range lost {
		for range 4 { // a segment is full after two
			if send(p) != nil {
				break
			}
		}
		break
	}
	if got := s.FailedDirs(); len(got) != 1 || got[0] != two {
		t.Fatalf("failed dirs %v, want %s", got, two)
	}
	for p, end := range logEnds(t, s, 4) {
		if lost[p] != (end == -1) {
			t.Errorf("partition %d: end %d", p, end)
		}
		if !lost[p] {
			if err := send(p); err != nil {
				t.Errorf("partition %d in the other dir: %v", p, err)
			}
		}
	}
}
