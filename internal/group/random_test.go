package group_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/group"
	"github.com/weirmq/weir/internal/machine"
)

var (
	seed  = flag.Uint64("seed", 0, "run this seed only, and print what happens")
	seeds = flag.Uint64("seeds", 100, "how many seeds to run")
)

// TestRandom runs random clients against a shard and wants, all the way: a
// shard loaded from the records has the same hard state, describes settled
// groups alike and knows the same offsets; a group's books agree; and in the
// end, when all clients are gone, no request is left unanswered, no member and
// no deadline is left over.
func TestRandom(t *testing.T) {
	if *seed != 0 {
		random(t, *seed)
		return
	}
	for s := range *seeds {
		random(t, s+1)
		if t.Failed() {
			return
		}
	}
}

func random(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	l := newLocal(t)
	if r.IntN(4) == 0 {
		l.play(parse("config maxsize=2 retention=30000 check=7000"))
	} else {
		l.play(parse("config retention=30000 check=7000"))
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var history []string
	do := func(line string) {
		history = append(history, line)
		defer func() {
			if p := recover(); p != nil {
				t.Fatalf("seed %d: %v\n%s", seed, p, strings.Join(history, "\n"))
			}
		}()
		out := l.play(parse(line))
		for _, o := range out {
			history = append(history, "  "+o)
			if who, _, ok := strings.Cut(o, ": join UNKNOWN_MEMBER_ID"); ok && r.IntN(2) == 0 {
				delete(l.member, strings.TrimSpace(who[strings.LastIndex(who, " ")+1:]))
			}
		}
		l.shard.Check()
	}
	inst := map[string]string{"s": " instance=i1", "s2": " instance=i1", "z": " instance=i2"}
	kind := map[string]string{"a": "g", "b": "g", "c": "g", "s": "g", "s2": "g", "z": "g", "h1": "h", "h2": "h"}
	n := 40 + r.IntN(200)
	for i := range n {
		who := pick("a", "b", "c", "s", "s2", "z", "h1", "h2")
		on := who + inst[who] + " group=" + kind[who]
		fixed := fmt.Sprintf(" session=%d rebalance=%d", 2000+1000*r.IntN(8), 1000+1000*r.IntN(8))
		if r.IntN(6) == 0 { // clients that play by the rules
			set := [][]string{{"a", "b"}, {"a", "s"}, {"s", "z", "b"}, {"a", "b", "c"}, {"h1", "h2"}, {"s2"}}[r.IntN(6)]
			for _, m := range set {
				join := "join " + m + inst[m] + " group=" + kind[m] + fixed
				do(join + " v=" + pick("4", "9"))
				if inst[m] == "" {
					do(join)
				}
			}
			do(fmt.Sprintf("tick %dms", r.IntN(5000)))
			for range 2 {
				for _, m := range set {
					do("sync " + m + inst[m] + " v=4 group=" + kind[m] + " assign=a:1,b:2,c:3,s:4,s2:5,z:6,h1:7,h2:8")
				}
			}
		}
		switch r.IntN(16) {
		case 0, 1, 2, 3:
			do("join " + on + fixed + " v=" + pick("1", "3", "4", "8", "9") + " protos=" + pick("range(t)", "range(t)", "range(t)", "range(t+u),rr(u)", "rr(t),range(t)", "rr(u)"))
		case 4:
			do("join " + on + fixed + " member= v=9")
		case 5, 6, 7:
			do("sync " + on + " proto=" + pick("range", "range", "range", "rr") + " assign=a:1,b:2,c:3,s:4,s2:5,z:6,h1:7,h2:8")
		case 8, 9:
			do("beat " + on)
		case 10:
			do("leave " + on + " v=" + pick("1", "3", "5") + " members=" + who + strings.Replace(inst[who], " instance=", "/", 1))
		case 11, 12:
			do("commit " + on + fmt.Sprintf(" v=%d t:%d=%d/m u:0=%d", 2+r.IntN(8), r.IntN(4), i, i) + pick("", "", "", " retention=3000"))
		case 13:
			do("commit x group=" + pick("k", "g", "h") + fmt.Sprintf(" t:%d=%d", r.IntN(3), i))
		case 14:
			do(pick("delete x group=", "offsetdelete x t:0 group=", "delete x group=", "fetch x all group=") + pick("g", "h", "k"))
		case 15:
			if r.IntN(5) == 0 {
				do("droptopic u")
			}
		}
		if r.IntN(3) == 0 {
			do(fmt.Sprintf("tick %dms", r.IntN(3000)))
		}
		if r.IntN(40) == 0 {
			do("reload")
		}
		if i%10 == 0 || i == n-1 {
			if d := l.compareWithLoaded(); d != "" {
				t.Fatalf("seed %d: %s\n%s", seed, d, strings.Join(history, "\n"))
			}
		}
	}
	do("tick 20m")
	if len(l.asked) != 0 || l.shard.Timers() != 0 {
		t.Errorf("seed %d: %d unanswered, %d deadlines left\n%s", seed, len(l.asked), l.shard.Timers(), strings.Join(history, "\n"))
	}
	if s := l.shard.HardState(); s != "" {
		t.Errorf("seed %d: left over: %s\n%s", seed, s, strings.Join(history, "\n"))
	}
	if *printed {
		t.Log(strings.Join(history, "\n"))
	}
}

var printed = flag.Bool("print", false, "print what happens")

// compareWithLoaded says how a shard loaded from the records differs.
func (l *local) compareWithLoaded() string {
	f := group.NewShard(l.cfg, nil)
	for i, rec := range l.log.records {
		f.Replay(int64(i), rec)
	}
	f.Loaded(l.now)
	if a, b := l.shard.HardState(), f.HardState(); a != b {
		return "hard state\nlive " + a + "\nloaded " + b
	}
	for _, g := range l.shard.Settled() {
		for _, req := range []any{
			group.DescribeGroup{Version: 6, Group: g},
			fetchAll(g),
		} {
			a, b := view(l.shard, l.now, req), view(f, l.now, req)
			if a != b {
				return g + "\nlive " + a + "\nloaded " + b
			}
		}
	}
	return ""
}

func fetchAll(g string) group.FetchGroup {
	q := group.FetchGroup{Version: 8}
	q.Group.Group = g
	return q
}

func view(s *group.Shard, now time.Time, req any) string {
	step := s.Handle(now, machine.Token(1), &group.Request{Req: req})
	out := ""
	for _, r := range step.Replies {
		out += fmt.Sprintf("%+v\n", flat(r.Resp))
	}
	return out
}

// flat is a value as text with pointers followed.
func flat(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
