package partition

// A coordinator's log that is damaged: its state would be wrong, so it is not made.

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirmq/weir/internal/disk"
	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/machine"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestShardOfDamagedLog: whatever bit flips, the shard refuses, says once which file and
// what to do, and loads when the file is whole again.
func TestShardOfDamagedLog(t *testing.T) {
	const name = "/data/a-0/00000000000000000000.log"
	for what, at := range map[string]int{"value": -3, "crc": 18, "magic": 16, "length up": 8, "length down": 11, "offset up": 2, "offset up a little": 6, "offset down": 7, "last delta": 26} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := disk.NewMem(1)
				m := open(t, mem, plain(), topic("a", topicA, 1))
				defer m.Close()
				p := m.Get(topicA, 0)
				var logs lockedBuffer
				start := func() *Shard {
					s := StartShard(p, func() machine.Machine[byte] { return new(counter) }, counterCodec, slog.New(slog.NewTextHandler(&logs, nil)))
					p.shard.Store(s)
					return s
				}
				s := start()
				for n := range byte(9) {
					ask(s, n+1)
				}
				s.Close()
				flip := func() {
					whole, err := mem.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					size := len(whole) / 9
					i := 5*size + at
					if at < 0 {
						i += size
					}
					f, err := mem.Open(name)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					if _, err := f.WriteAt([]byte{whole[i] ^ 1}, int64(i)); err != nil {
						t.Fatal(err)
					}
				}
				flip()
				s = start()
				if got := ask(s, "sum"); got != kafka.ErrCoordinatorLoadInProgress {
					t.Errorf("a shard of a damaged log answered %v", got)
				}
				time.Sleep(time.Minute)
				said := logs.String()
				if strings.Count(said, "level=ERROR") != 1 || !strings.Contains(said, name) || !strings.Contains(said, "/accept-loss") ||
					!strings.Contains(said, fmt.Sprint("offset ", 5)) {
					t.Errorf("said:\n%s", said)
				}
				flip()
				time.Sleep(time.Minute)
				if got := ask(s, "sum"); got != 45 {
					t.Errorf("after the repair the sum is %v", got)
				}
				s.Close()
			})
		})
	}
}
