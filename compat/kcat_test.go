//go:build compat

package compat

// Shows: kcat, on whatever librdkafka the distribution gives it (an old one,
// which needs Produce v0 in ApiVersions to compress at all): every codec and
// acks, groups whose members join, leave and die, commit and resume, seek by
// time, metadata. Topics are made by auto-creation, deleted by franz-go.

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func kcat(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("kcat")
	if err != nil {
		missing(t, "kcat is not installed")
	}
	return run(t, stdin, path, append([]string{"-q", "-b", sharedBroker(t).addr}, args...)...)
}

func lines(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d:%s%d-%s\n", i, prefix, i, strings.Repeat("text ", 20))
	}
	return b.String()
}

func TestKcat(t *testing.T) {
	kcat(t, "", "-V")
	auto := unique(t) // auto-created by the first produce: B065
	kcat(t, lines("x", 10), "-P", "-t", auto, "-K", ":")

	t.Run("codecs and acks", func(t *testing.T) {
		r := dial(t, sharedBroker(t).addr)
		topic := r.topic(1)
		want := 0
		for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
			for _, acks := range []string{"0", "1", "all"} {
				from := int64(want)
				kcat(t, lines(codec+acks, 200), "-P", "-t", topic, "-K", ":", "-z", codec, "-X", "acks="+acks, "-X", "linger.ms=50")
				want += 200
				eventually(t, 10*time.Second, "all stored", func() (string, bool) {
					n := r.latest(topic)
					return fmt.Sprint(n), n == int64(want)
				})
				for _, s := range readBatches(t, r.fetch(topic, from).RecordBatches) {
					if s.last >= from && s.codec() != int16(i) && s.count > 1 {
						t.Errorf("%s acks=%s: stored with codec %d: %v", codec, acks, s.codec(), s)
					}
				}
			}
		}
		out := kcat(t, "", "-C", "-t", topic, "-o", "beginning", "-e", "-f", "%k %s\n")
		if got := strings.Count(out, "\n"); got != want || !strings.Contains(out, "k199 zstdall199-text") {
			t.Errorf("consumed %d lines of %d", got, want)
		}
	})
	t.Run("empty partition", func(t *testing.T) { // B003's second opinion
		r := dial(t, sharedBroker(t).addr)
		if out := kcat(t, "", "-C", "-t", r.topic(1), "-o", "beginning", "-e"); out != "" {
			t.Errorf("printed %q", out)
		}
	})
	t.Run("seek by time", func(t *testing.T) {
		r := dial(t, sharedBroker(t).addr)
		topic := r.topic(1)
		base := time.Now().UnixMilli() - 60_000
		for i := range 10 {
			r.put(topic, batchSpec{recs: []rec{{value: []byte(fmt.Sprint("at ", i)), ts: base + int64(i)*1000}}})
		}
		out := kcat(t, "", "-C", "-t", topic, "-o", fmt.Sprintf("s@%d", base+4500), "-e", "-f", "%o %s %T\n")
		if !strings.HasPrefix(out, fmt.Sprintf("5 at 5 %d\n", base+5000)) || strings.Count(out, "\n") != 5 {
			t.Errorf("from the time of 4.5: %q", out)
		}
		out = kcat(t, "", "-Q", "-t", fmt.Sprintf("%s:0:%d", topic, base+7000))
		if !strings.Contains(out, "offset 7") {
			t.Errorf("-Q: %q", out)
		}
		out = kcat(t, "", "-C", "-t", topic, "-o", "-2", "-e", "-f", "%o\n")
		if out != "8\n9\n" {
			t.Errorf("the last two: %q", out)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		out := kcat(t, "", "-L", "-J")
		if !strings.Contains(out, sharedBroker(t).addr) || !strings.Contains(out, auto) {
			t.Errorf("-L: %s", out)
		}
	})
	t.Run("commit and resume", func(t *testing.T) { // B095's client
		r := dial(t, sharedBroker(t).addr)
		topic, group := r.topic(1), unique(t)
		kcat(t, lines("r", 100), "-P", "-t", topic, "-K", ":")
		var got []string
		for range 4 {
			out := kcat(t, "", "-G", group, "-c", "25", "-X", "auto.offset.reset=earliest", "-f", "%o\n", topic)
			got = append(got, strings.Fields(out)...)
		}
		for i, o := range got {
			if o != fmt.Sprint(i) {
				t.Fatalf("offset %s at place %d of %d", o, i, len(got))
			}
		}
		if len(got) != 100 {
			t.Errorf("%d records of 100", len(got))
		}
	})
	t.Run("group of changing members", func(t *testing.T) { kcatGroup(t, dial(t, sharedBroker(t).addr)) })
	t.Run("delete", func(t *testing.T) { code(t, "delete", dial(t, sharedBroker(t).addr).delete(auto), 0) })
}

// kcatMember is one kcat -G process.
type kcatMember struct {
	cmd *exec.Cmd
	wg  sync.WaitGroup
	out *seenLines
}

type seenLines struct {
	mu   sync.Mutex
	seen map[string]bool
	each map[*kcatMember]int
}

func (s *seenLines) len() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.seen) }

func startKcat(t *testing.T, addr, group, topic string, out *seenLines) *kcatMember {
	t.Helper()
	m := &kcatMember{out: out}
	m.cmd = exec.Command("kcat", "-q", "-b", addr, "-G", group, "-u", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000",
		"-X", "heartbeat.interval.ms=500", "-X", "auto.commit.interval.ms=200", "-f", "%s\n", topic)
	pipe, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.end(syscall.SIGKILL) })
	m.wg.Go(func() {
		for sc := bufio.NewScanner(pipe); sc.Scan(); {
			out.mu.Lock()
			out.seen[string(bytes.Clone(sc.Bytes()))] = true
			out.each[m]++
			out.mu.Unlock()
		}
	})
	return m
}

func (m *kcatMember) end(sig syscall.Signal) {
	if m.cmd.ProcessState == nil {
		m.cmd.Process.Signal(sig)
		m.wg.Wait()
		m.cmd.Wait()
	}
}

func kcatGroup(t *testing.T, r *rawConn) {
	addr := sharedBroker(t).addr
	topic, group := r.topic(6), unique(t)
	all := &seenLines{seen: map[string]bool{}, each: map[*kcatMember]int{}}
	total := 0
	write := func(prefix string) {
		kcat(t, lines(prefix, 300), "-P", "-t", topic, "-K", ":", "-X", "acks=all")
		total += 300
	}
	state := func(members int) {
		t.Helper()
		eventually(t, 30*time.Second, fmt.Sprint(members, " members"), func() (string, bool) {
			g := r.describe(4, group)[0]
			assigned := 0
			for _, m := range g.Members {
				if len(m.MemberAssignment) > 0 {
					assigned++
				}
			}
			return fmt.Sprintf("%s, %d members, %d assigned", g.State, len(g.Members), assigned), g.State == "Stable" && len(g.Members) == members && assigned == members
		})
	}
	a := startKcat(t, addr, group, topic, all)
	write("one")
	state(1)
	b := startKcat(t, addr, group, topic, all)
	c := startKcat(t, addr, group, topic, all)
	write("two")
	state(3)
	b.end(syscall.SIGTERM) // leaves
	write("three")
	state(2)
	d := startKcat(t, addr, group, topic, all)
	state(3)
	c.end(syscall.SIGKILL) // dies
	write("four")
	state(2)
	eventually(t, 30*time.Second, "every record", func() (string, bool) {
		return fmt.Sprintf("%d of %d", all.len(), total), all.len() == total
	})
	a.end(syscall.SIGTERM)
	d.end(syscall.SIGTERM)
	state2 := r.describe(4, group)[0].State
	if state2 != "Empty" {
		t.Errorf("after all left: %s", state2)
	}
	sum := int64(0)
	committed, _ := r.committed(group)
	var keys []string
	for k, c := range committed {
		sum += c.offset
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if sum != int64(total) {
		t.Errorf("committed %d of %d (%v)", sum, total, keys)
	}
}
