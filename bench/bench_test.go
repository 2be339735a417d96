package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirmq/weir"
)

func broker(t *testing.T) target {
	t.Helper()
	s, err := weir.Start(t.Context(), weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return target{name: "weir", boot: s.Addr()}
}

// The cases of hundreds of clients or partitions run by `make bench` alone.
func TestSmallCasesRun(t *testing.T) {
	b := broker(t)
	for _, c := range cases {
		if c.name == "partitions" || c.name == "fan-out" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			figures, err := c.run(t.Context(), b, "t-"+c.name, 0.002)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range figures {
				if f.value <= 0 {
					t.Errorf("%s is %v", f.name, f.value)
				}
			}
		})
	}
}

// An open loop that is asked for more than a second's worth of records takes
// that second, and counts latency from the due time.
func TestPaceHolds(t *testing.T) {
	b := broker(t)
	load := producing{clients: 2, size: 10, records: 200, batch: 1 << 16, acks: kgo.LeaderAck(), perSecond: 400}
	err := b.withTopic(t.Context(), "paced", 1, nil, func() error {
		p, err := load.run(t.Context(), b.boot, "paced")
		if p.took < 450*time.Millisecond {
			t.Errorf("200 records at 400/s took %v", p.took)
		}
		if p.latency.TotalCount() != 200 {
			t.Errorf("%d of 200 latencies", p.latency.TotalCount())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailedRecordsFailTheRun(t *testing.T) {
	b := broker(t)
	small := "100"
	load := producing{clients: 1, size: 1000, records: 10, batch: 1 << 16, acks: kgo.LeaderAck()}
	err := b.withTopic(t.Context(), "small", 1, map[string]*string{"max.message.bytes": &small}, func() error {
		_, err := load.run(t.Context(), b.boot, "small")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "MESSAGE_TOO_LARGE") {
		t.Errorf("error %v, want MESSAGE_TOO_LARGE", err)
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "name at least one broker",
		"-t weir":                         "is not NAME=HOST:PORT",
		"-t weir=127.0.0.1:1@x":           "process id",
		"-t weir=127.0.0.1:1 -r 0":        "rounds",
		"-t weir=127.0.0.1:1 no-such":     `no case "no-such"`,
		"-t weir=127.0.0.1:1@7 -s 0 peak": "scale",
	} {
		err := run(context.Background(), strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("bench %s: error %v, want %q", args, err, want)
		}
	}
}

func TestMedianAndDigits(t *testing.T) {
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("median of three: %v", m)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("median of four: %v", m)
	}
	for x, want := range map[float64]string{0.123: "0.12", 12.34: "12.3", 1234.5: "1234", 123456: "123k"} {
		if got := short(x); got != want {
			t.Errorf("short(%v) = %s, want %s", x, got, want)
		}
	}
}
