package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

// The tests drive a Core over a counter: "+n" writes n records and answers
// their sum, "?" answers the sum, "wait" parks its token until "wake", "fx"
// writes one record and asks for an effect.
type counter struct {
	sum     int
	waiting []Token
	due     time.Time
	loaded  bool
	offsets []int64
}

func (c *counter) Handle(now time.Time, from Token, req any) (s Step[int]) {
	var n int
	switch q := req.(string); {
	case q == "?":
		s.Reply(from, c.sum)
	case q == "wait":
		c.waiting = append(c.waiting, from)
		c.due = now.Add(time.Second)
	case q == "wake":
		for _, w := range c.waiting {
			s.Reply(w, "woken")
		}
		c.waiting = nil
		s.Reply(from, "done")
	case q == "fx":
		s.Records = []int{1}
		s.Effects = []any{"effect"}
		s.Reply(from, "asked")
	default:
		if _, err := fmt.Sscanf(q, "+%d", &n); err != nil {
			panic(q)
		}
		for range n {
			s.Records = append(s.Records, 1)
		}
		s.Reply(from, c.sum+n)
	}
	return s
}

func (c *counter) Expire(now time.Time) (s Step[int]) {
	c.due = time.Time{}
	for _, w := range c.waiting {
		s.Reply(w, "late")
	}
	c.waiting = nil
	s.Records = []int{100}
	return s
}

func (c *counter) NextDeadline() time.Time    { return c.due }
func (c *counter) Replay(offset int64, r int) { c.sum += r; c.offsets = append(c.offsets, offset) }
func (c *counter) Loaded(time.Time)           { c.loaded = true }

type testLog struct {
	next    int64
	batches []int
	err     error
}

func (l *testLog) Append(_ time.Time, rs []int) (int64, error) {
	if l.err != nil {
		return 0, l.err
	}
	l.batches = append(l.batches, len(rs))
	l.next += int64(len(rs))
	return l.next - 1, nil
}

var t0 = time.Unix(1000, 0)

// TestCore plays lines on a Core. "ask TOKEN REQ", "drain", "mark OFFSET" (the
// watermark), "tick" (2 s and Expire), "break" (the log fails from now on),
// "fail", "load VALUE", "start".
func TestCore(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"a write waits for the watermark", `
			start
			ask 1 +2
			drain =
			mark 0 =
			mark 1 = 1:2`},
		{"a read waits for the last write before it, also across drains", `
			start
			ask 1 ?
			drain = 1:0
			ask 2 +1
			ask 3 ?
			drain =
			ask 4 ?
			ask 5 +1
			ask 6 ?
			drain =
			mark 0 = 2:1 3:1 4:1
			mark 1 = 5:2 6:2
			ask 7 ?
			drain = 7:2`},
		{"a read decided before any pending write waits for the earlier one only", `
			start
			ask 1 +1
			drain =
			ask 2 ?
			ask 3 +1
			drain =
			mark 0 = 1:1 2:1
			mark 1 = 3:2`},
		{"what was loaded may not be safe yet", `
			load 5
			load 6
			start
			ask 1 ?
			drain =
			mark 1 = 1:11`},
		{"what was loaded and known to be safe", `
			load 5
			mark 0 =
			start
			ask 1 ?
			drain = 1:5`},
		{"nothing is answered but refused while loading", `
			ask 1 ?
			drain = 1:COORDINATOR_LOAD_IN_PROGRESS
			start
			ask 1 ?
			drain = 1:0`},
		{"a waiting request is answered by a later step", `
			start
			ask 1 wait
			drain =
			ask 2 wake
			drain = 1:woken 2:done`},
		{"deadlines write and answer", `
			start
			ask 1 wait
			tick
			drain =
			mark 0 = 1:late
			ask 2 ?
			drain = 2:100`},
		{"an effect waits like an answer", `
			start
			ask 1 fx
			drain =
			mark 0 = 1:asked !effect`},
		{"a failed append answers everybody and ends the core", `
			start
			ask 1 wait
			ask 2 +1
			drain =
			ask 3 ?
			break
			ask 4 +1
			drain = 1:NOT_COORDINATOR 2:NOT_COORDINATOR 3:NOT_COORDINATOR 4:NOT_COORDINATOR error
			ask 5 ?
			drain = 5:NOT_COORDINATOR
			mark 9 =`},
		{"leadership goes: what is safe is still answered", `
			start
			ask 1 +1
			ask 2 wait
			drain =
			ask 3 +1
			fail = 1:NOT_COORDINATOR 2:NOT_COORDINATOR 3:NOT_COORDINATOR
			drain =`},
		{"an input without a token is answered to nobody", `
			start
			ask 0 +1
			ask 1 ?
			drain =
			mark 0 = 1:1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, m := &testLog{}, &counter{}
			core := NewCore(m, log)
			now := t0
			for _, line := range strings.Split(strings.TrimSpace(c.script), "\n") {
				line = strings.TrimSpace(line)
				cmd, want, _ := strings.Cut(line, " =")
				if line[len(line)-1] == '=' {
					cmd = strings.TrimSpace(strings.TrimSuffix(line, "="))
				}
				f := strings.Fields(cmd)
				var got []string
				show := func(rs []Reply) {
					for _, r := range rs {
						if e, ok := r.Resp.(kafka.Error); ok {
							r.Resp = e.Name()
						}
						got = append(got, fmt.Sprintf("%d:%v", r.Token, r.Resp))
					}
				}
				effects := func(es []any) {
					for _, e := range es {
						got = append(got, fmt.Sprintf("!%v", e))
					}
				}
				var n int64
				if len(f) > 1 {
					fmt.Sscan(f[1], &n)
				}
				switch f[0] {
				case "ask":
					core.Submit(now, Token(n), f[2])
				case "drain":
					rs, es, err := core.Drain(now)
					show(rs)
					effects(es)
					if err != nil {
						got = append(got, "error")
					}
				case "mark":
					show(core.Watermark(n))
					effects(core.Effects())
				case "tick":
					now = now.Add(2 * time.Second)
					core.Expire(now)
				case "break":
					log.err = errors.New("no space")
				case "fail":
					show(core.Fail())
				case "load":
					core.Load(log.next, int(n))
					log.next++
				case "start":
					core.Start(now)
					if !m.loaded {
						t.Fatal("Loaded was not called")
					}
				default:
					t.Fatalf("command %q", line)
				}
				if g := strings.Join(got, " "); g != strings.TrimSpace(want) {
					t.Fatalf("%s: got %q", line, g)
				}
			}
		})
	}
}

func TestOneDrainIsOneBatch(t *testing.T) {
	log, m := &testLog{}, &counter{}
	core := NewCore(m, log)
	core.Load(0, 3)
	log.next = 1
	core.Start(t0)
	for i := range 5 {
		core.Submit(t0, Token(i+1), "+2")
	}
	if core.Pending() != 10 {
		t.Fatalf("pending %d", core.Pending())
	}
	core.Drain(t0)
	core.Drain(t0)
	core.Submit(t0, 9, "+1")
	core.Drain(t0)
	if want := []int{10, 1}; !slices.Equal(log.batches, want) {
		t.Errorf("batches %v, want %v", log.batches, want)
	}
	if m.offsets[0] != 0 || m.offsets[1] != Live {
		t.Errorf("replayed at %v", m.offsets)
	}
}

func TestMisuse(t *testing.T) {
	for name, f := range map[string]func(c *Core[int]){
		"token twice":  func(c *Core[int]) { c.Submit(t0, 1, "wait"); c.Submit(t0, 1, "wait") },
		"start twice":  func(c *Core[int]) { c.Start(t0) },
		"load started": func(c *Core[int]) { c.Load(0, 1) },
		"log goes back": func(c *Core[int]) {
			c.Submit(t0, 1, "+1")
			c.Drain(t0)
			c.log.(*testLog).next = 0
			c.Submit(t0, 2, "+1")
			c.Drain(t0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCore(&counter{}, &testLog{})
			c.Start(t0)
			defer func() {
				if p := recover(); p == nil || !strings.HasPrefix(fmt.Sprint(p), "BUG:") {
					t.Errorf("panic %v", p)
				}
			}()
			f(c)
		})
	}
}

func BenchmarkCoreRead(b *testing.B) {
	core := NewCore(&counter{}, &testLog{})
	core.Start(t0)
	b.ReportAllocs()
	for i := range b.N {
		core.Submit(t0, Token(i+1), "?")
		core.Drain(t0)
	}
}
