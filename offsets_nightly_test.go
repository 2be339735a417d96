//go:build nightly

package weir_test

// Shows: ten million commits by a thousand groups, and a start serves them all in
// less than two seconds: after a stop in order, and on the files a kill leaves.
// WEIR_COMMITS sets another number.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	kmsgs "github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/weirmq/weir"
)

func TestTenMillionCommits(t *testing.T) {
	const groups, partitions = 1000, 10
	commits := 10_000_000
	if s := os.Getenv("WEIR_COMMITS"); s != "" {
		commits, _ = strconv.Atoi(s)
	}
	rounds := commits / groups / partitions
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	s := start(t, weir.Options{DataDir: dir})
	c := client(t, s, kgo.MaxVersions(kversion.V3_8_0()))
	n := &node{t, s, dir, c, kadm.NewClient(c)}
	n.create("orders", partitions, nil)
	begun := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= groups*rounds {
					return
				}
				r := kmsgs.NewPtrOffsetCommitRequest()
				r.Group = fmt.Sprintf("group-%04d", i%groups)
				r.Generation = -1
				rt := kmsgs.NewOffsetCommitRequestTopic()
				rt.Topic = "orders"
				for p := range int32(partitions) {
					rp := kmsgs.NewOffsetCommitRequestTopicPartition()
					rp.Partition, rp.Offset, rp.LeaderEpoch = p, int64(i/groups), 0
					rt.Partitions = append(rt.Partitions, rp)
				}
				r.Topics = append(r.Topics, rt)
				for {
					resp, err := c.Request(t.Context(), r)
					if err != nil {
						t.Error(err)
						return
					}
					code := resp.(*kmsgs.OffsetCommitResponse).Topics[0].Partitions[partitions-1].ErrorCode
					if code == 0 {
						break
					}
					if code != 14 && code != 16 {
						t.Errorf("commit %d: error %d", i, code)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	t.Logf("%d commits in %v: %.0f a second", commits, took.Round(time.Millisecond), float64(commits)/took.Seconds())
	time.Sleep(time.Second)
	killed := filepath.Join(parent, "killed")
	if out, err := exec.Command("cp", "-r", dir, killed).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.stop()
	for _, d := range []string{dir, killed} {
		files, _ := filepath.Glob(filepath.Join(d, "__consumer_offsets-*", "*.log"))
		size := int64(0)
		for _, f := range files {
			if st, err := os.Stat(f); err == nil {
				size += st.Size()
			}
		}
		begun := time.Now()
		s := start(t, weir.Options{DataDir: d})
		up := time.Since(begun)
		c := client(t, s, kgo.MaxVersions(kversion.V3_8_0()))
		r := kmsgs.NewPtrOffsetFetchRequest()
		for g := range groups {
			rg := kmsgs.NewOffsetFetchRequestGroup()
			rg.Group = fmt.Sprintf("group-%04d", g)
			r.Groups = append(r.Groups, rg)
		}
		for len(r.Groups) > 0 { // those still loading are asked again
			kresp, err := c.Broker(1).RetriableRequest(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			r.Groups = r.Groups[:0]
			for _, g := range kresp.(*kmsgs.OffsetFetchResponse).Groups {
				if g.ErrorCode != 0 {
					rg := kmsgs.NewOffsetFetchRequestGroup()
					rg.Group = g.Group
					r.Groups = append(r.Groups, rg)
					continue
				}
				if len(g.Topics) != 1 || len(g.Topics[0].Partitions) != partitions {
					t.Fatalf("%s: %+v", g.Group, g)
				}
				for _, p := range g.Topics[0].Partitions {
					if p.Offset != int64(rounds-1) {
						t.Fatalf("%s partition %d: offset %d, want %d", g.Group, p.Partition, p.Offset, rounds-1)
					}
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		took := time.Since(begun)
		t.Logf("%s: %d MB in %d files; up after %v, all groups served after %v", filepath.Base(d), size>>20, len(files), up.Round(time.Millisecond), took.Round(time.Millisecond))
		if took > 2*time.Second {
			t.Errorf("%s: served after %v, want less than 2 s", filepath.Base(d), took)
		}
		c.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
