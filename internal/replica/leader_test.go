package replica

// Shows: the leader's rules one by one, as short scripts of calls and what they
// give. Brokers are 1 (the leader), 2, 3; times are seconds.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirmq/weir/internal/kafka"
)

func at(seconds float64) time.Time { return time.UnixMilli(1_000_000 + int64(seconds*1000)) }

func ids(n ...kafka.BrokerID) []kafka.BrokerID { return n }

func newTestLeader(minISR int, isr ...kafka.BrokerID) *Leader {
	return NewLeader(LeaderConfig{Self: 1, Epoch: 5, PartitionEpoch: 10, Replicas: ids(1, 2, 3), ISR: isr,
		Start: 0, End: 100, HighWatermark: 90, MinISR: minISR, LagMaxMs: 10_000, Now: at(0)})
}

// script runs lines against l and returns what each gave:
//
//	append END | fetch T ID OFFSET [ineligible] | expire T | commit T EPOCH ID,ID | refuse CODE | min N | acked OFFSET | check ACKS
func script(l *Leader, lines string) string {
	var out strings.Builder
	show := func(advanced bool, p *Proposal) {
		fmt.Fprintf(&out, "hw %d", l.hw)
		if advanced {
			out.WriteString(" advanced")
		}
		if p != nil {
			fmt.Fprintf(&out, " propose %v on %d", p.ISR, p.PartitionEpoch)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		line = strings.TrimSpace(line)
		var t float64
		var id, off, n int
		var list string
		switch verb, rest, _ := strings.Cut(line, " "); verb {
		case "append":
			fmt.Sscan(rest, &off)
			show(l.Appended(kafka.Offset(off)), nil)
		case "fetch":
			fmt.Sscan(rest, &t, &id, &off)
			advanced, p, code := l.Fetched(at(t), Fetch{From: kafka.BrokerID(id), Offset: kafka.Offset(off), Eligible: !strings.Contains(rest, "ineligible")})
			if code != kafka.NoError {
				fmt.Fprintf(&out, "code %d", code)
				break
			}
			show(advanced, p)
		case "expire":
			fmt.Sscan(rest, &t)
			show(l.Expire(at(t)))
		case "commit":
			fmt.Sscan(rest, &t, &n, &list)
			var isr []kafka.BrokerID
			for _, s := range strings.Split(list, ",") {
				fmt.Sscan(s, &id)
				isr = append(isr, kafka.BrokerID(id))
			}
			show(l.Committed(at(t), int32(n), ids(1, 2, 3), isr), nil)
		case "refuse":
			fmt.Sscan(rest, &n)
			show(false, l.Refused(l.Pending(), kafka.Error(n)))
		case "min":
			fmt.Sscan(rest, &n)
			show(l.SetMinISR(n), nil)
		case "acked":
			fmt.Sscan(rest, &off)
			done, code := l.AckedAll(kafka.Offset(off))
			fmt.Fprintf(&out, "%v %d", done, code)
		case "check":
			fmt.Sscan(rest, &n)
			fmt.Fprintf(&out, "%d", l.CheckAppend(int16(n)))
		default:
			panic("unknown line: " + line)
		}
		out.WriteByte('\n')
	}
	return strings.TrimSpace(out.String())
}

func TestLeader(t *testing.T) {
	for _, c := range []struct {
		name   string
		leader *Leader
		lines  string
		want   string
	}{
		{"one replica: committed at once", NewLeader(LeaderConfig{Self: 1, Replicas: ids(1), ISR: ids(1), End: 7, MinISR: 2}), `
			append 8
			acked 7
			acked 8
			check -1
			expire 99`, `
			hw 8 advanced
			true 0
			false 0
			0
			hw 8`},
		{"the slowest in sync decides", newTestLeader(1, 1, 2, 3), `
			append 110
			fetch 1 2 110
			fetch 1 3 95
			fetch 2 3 110
			acked 109`, `
			hw 90
			hw 90
			hw 95 advanced
			hw 110 advanced
			true 0`},
		{"a new leader commits nothing before its followers came", newTestLeader(1, 1, 2), `
			fetch 1 2 80
			fetch 1 2 100`, `
			hw 90
			hw 100 advanced`},
		{"a follower joins when it has all and the epoch's start", newTestLeader(1, 1, 2), `
			fetch 1 2 100
			append 120
			fetch 2 3 99
			fetch 2 2 120
			fetch 3 3 100
			fetch 3 3 120
			fetch 4 3 120
			commit 4 11 1,2,3
			append 130
			fetch 5 2 130
			fetch 5 3 130`, `
			hw 100 advanced
			hw 100
			hw 100
			hw 120 advanced
			hw 120
			hw 120 propose [1 2 3] on 10
			hw 120
			hw 120
			hw 120
			hw 120
			hw 130 advanced`},
		{"who was proposed to join already holds the watermark", newTestLeader(1, 1, 2), `
			fetch 1 2 100
			fetch 1 3 100
			append 110
			fetch 2 2 110
			expire 60
			fetch 60 3 110`, `
			hw 100 advanced
			hw 100 propose [1 2 3] on 10
			hw 100
			hw 100
			hw 100
			hw 110 advanced`},
		{"a caught-up replica outside holds it for the lag time only", newTestLeader(1, 1), `
			fetch 1 3 100 ineligible
			append 105
			fetch 2 3 105
			refuse 107
			append 110
			expire 5
			fetch 6 3 110
			refuse 107`, `
			hw 100
			hw 105 advanced
			hw 105 propose [1 3] on 10
			hw 105
			hw 110 advanced
			hw 110
			hw 110 propose [1 3] on 10
			hw 110`},
		{"out of sync: behind for longer than the lag time (B150)", newTestLeader(1, 1, 2, 3), `
			fetch 1 2 100
			fetch 1 3 100
			expire 30
			append 110
			expire 31
			fetch 30.5 2 100
			expire 31
			fetch 31 2 110
			expire 40
			commit 41 11 1,2
			expire 60`, `
			hw 90
			hw 100 advanced
			hw 100
			hw 100
			hw 100 propose [1] on 10
			hw 100
			hw 100
			hw 100
			hw 100
			hw 110 advanced
			hw 110`},
		{"idle, then a write: nobody leaves before the lag time has passed since the last fetch", newTestLeader(1, 1, 2), `
			fetch 1 2 100
			fetch 100 2 100
			append 110
			expire 100.4
			fetch 100.5 2 100
			fetch 101 2 110
			expire 111.5`, `
			hw 100 advanced
			hw 100
			hw 100
			hw 100
			hw 100
			hw 110 advanced
			hw 110`},
		{"a follower always one fetch behind stays", newTestLeader(1, 1, 2), `
			append 110
			fetch 1 2 100
			append 120
			fetch 9 2 110
			append 130
			fetch 17 2 120
			expire 18
			fetch 25 2 130
			expire 26`, `
			hw 90
			hw 100 advanced
			hw 100
			hw 110 advanced
			hw 110
			hw 120 advanced
			hw 120
			hw 130 advanced
			hw 130`},
		{"shrinking waits for the controller before the watermark moves", newTestLeader(1, 1, 2, 3), `
			append 110
			fetch 9 2 110
			expire 11
			fetch 12 2 110
			commit 13 11 1,2
			acked 109`, `
			hw 90
			hw 90
			hw 90 propose [1 2] on 10
			hw 90
			hw 110 advanced
			true 0`},
		{"min.insync.replicas (B153)", newTestLeader(2, 1, 2), `
			check -1
			append 110
			expire 11
			acked 95
			commit 12 11 1
			check -1
			check 1
			check 0
			acked 89
			acked 95
			min 1
			acked 95`, `
			0
			hw 90
			hw 90 propose [1] on 10
			false 0
			hw 90
			19
			0
			0
			true 20
			false 0
			hw 110 advanced
			true 0`},
		{"errors of the controller", newTestLeader(1, 1, 2), `
			fetch 1 3 100
			refuse 7
			refuse 95
			fetch 2 3 100
			commit 3 10 1,2,3
			commit 3 11 1,2
			fetch 4 3 100
			refuse 55
			fetch 5 3 100 ineligible
			fetch 6 3 100`, `
			hw 90 propose [1 2 3] on 10
			hw 90 propose [1 2 3] on 10
			hw 90
			hw 90
			hw 90
			hw 90
			hw 90 propose [1 2 3] on 11
			hw 90
			hw 90
			hw 90 propose [1 2 3] on 11`},
		{"a stranger's fetch", newTestLeader(1, 1, 2), `
			fetch 1 9 100`, `
			code 75`},
	} {
		want := strings.TrimSpace(strings.ReplaceAll(c.want, "\t", ""))
		if got := script(c.leader, c.lines); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

func TestCheckEpoch(t *testing.T) {
	l := newTestLeader(1, 1)
	for claimed, want := range map[kafka.Epoch]kafka.Error{
		kafka.NoEpoch: 0, 4: kafka.ErrFencedLeaderEpoch, 5: 0, 6: kafka.ErrUnknownLeaderEpoch,
	} {
		if got := l.CheckEpoch(claimed); got != want {
			t.Errorf("%d: %d, want %d", claimed, got, want)
		}
	}
}

func TestReplicasChange(t *testing.T) {
	l := newTestLeader(1, 1, 2)
	l.Fetched(at(1), Fetch{From: 2, Offset: 100, Eligible: true})
	if l.Committed(at(2), 11, ids(1, 4), ids(1, 2)) {
		t.Error("watermark moved")
	}
	if _, _, code := l.Fetched(at(2), Fetch{From: 2, Offset: 100}); code != kafka.ErrUnknownLeaderEpoch {
		t.Errorf("replica that left: code %d", code)
	}
	if _, p := l.Expire(at(2)); p == nil || fmt.Sprint(p.ISR) != "[1]" {
		t.Errorf("who is no replica any more leaves at once: %v", p)
	}
	if l.ReadBound(true) != 100 || l.ReadBound(false) != 100 {
		t.Error("read bounds")
	}
}
