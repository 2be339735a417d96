package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// figure is one number of a run.
type figure struct {
	name  string
	value float64
	more  bool // more is better
}

// benchCase is one load. run gets a broker and a name for its topics, and the
// factor on the number of records.
type benchCase struct {
	name, what string
	run        func(ctx context.Context, t target, topic string, scale float64) ([]figure, error)
}

var cases = []benchCase{
	{"peak-200b", "2 producers, 200 B, 1 MiB batches, acks=1, 6 partitions: as many records a second as two cores carry, load included", peak},
	{"peak-200b-raw", "4 connections without a client library, 200 B, 5 prepared batches of 900 KB under way on each, acks=1, 6 partitions", peakRaw},
	{"fan-out", "100 producers and 500 consumers at once, 1 KiB, 100 partitions", fan},
	{"end-to-end", "one record of 100 B in flight, acks=all: from send to arrival", inFlight},
	{"half-load", "5,000 records/s of 1 KiB, acks=1: from due time to arrival", paced},
	{"one-record", "20 producers, one record of 100 B in flight each, acks=1", tiny},
	{"partitions", "1 KiB over 6 and over 1,000 partitions, acks=1", spread},
	{"one-record-raw", "100 connections without a client library, one record of 100 B in flight each, acks=1", tinyRaw},
	{"fsync", "flush.messages=1, acks=1, 100 B: 1 connection and 100 without a client library, one record in flight each", fsync},
}

func scaled(n int64, scale float64) int64 { return max(1, int64(float64(n)*scale)) }

// costs adds what the broker's process used.
func (t target) costs(before time.Duration, records int64, figures ...figure) []figure {
	if t.pid == 0 {
		return figures
	}
	used := t.cpu() - before
	return append(figures, figure{"broker CPU us per record", used.Seconds() * 1e6 / float64(records), false},
		figure{"resident MiB", t.resident(), false})
}

func quantiles(h *hdrhistogram.Histogram) []figure {
	var out []figure
	for _, q := range []float64{50, 99, 99.9} {
		if float64(h.TotalCount())*(100-q)/100 >= 5 { // fewer carry no such percentile
			out = append(out, figure{fmt.Sprintf("p%v ms", q), float64(h.ValueAtQuantile(q)) / 1000, false})
		}
	}
	return out
}

func peak(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	load := producing{clients: 2, size: 200, records: scaled(8_000_000, scale), batch: 1 << 20, linger: 5 * time.Millisecond, acks: kgo.LeaderAck()}
	return out, t.withTopic(ctx, topic, 6, nil, func() error {
		cpu := t.cpu()
		p, err := load.run(ctx, t.boot, topic)
		out = t.costs(cpu, p.records, figure{"records/s", float64(p.records) / p.took.Seconds(), true})
		return err
	})
}

func peakRaw(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	load := rawLoad{clients: 4, size: 200, perBatch: 4300, partitions: 6, window: 5}
	load.records = scaled(4000, scale) * load.perBatch
	return out, t.withTopic(ctx, topic, load.partitions, nil, func() error {
		cpu := t.cpu()
		p, err := load.run(ctx, t.boot, topic)
		out = t.costs(cpu, p.records, figure{"records/s", float64(p.records) / p.took.Seconds(), true})
		return err
	})
}

func fan(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	const partitions, readers = 100, 500
	load := producing{clients: 100, size: 1024, records: scaled(200_000, scale), batch: 1 << 20, linger: 5 * time.Millisecond, acks: kgo.LeaderAck()}
	return out, t.withTopic(ctx, topic, partitions, nil, func() error {
		cpu := t.cpu()
		took, delivered, err := fanOut(ctx, t.boot, topic, load, readers, partitions)
		out = t.costs(cpu, load.records+delivered, figure{"records/s in and out", float64(load.records+delivered) / took.Seconds(), true})
		return err
	})
}

func inFlight(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	n := scaled(10_000, scale)
	return out, t.withTopic(ctx, topic, 1, nil, func() error {
		cpu := t.cpu()
		h, err := endToEnd(ctx, t.boot, topic, int(n), 100, 0, kgo.AllISRAcks())
		if err == nil {
			out = t.costs(cpu, n, quantiles(h)...)
		}
		return err
	})
}

func paced(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	n := scaled(100_000, scale)
	return out, t.withTopic(ctx, topic, 6, nil, func() error {
		cpu := t.cpu()
		h, err := endToEnd(ctx, t.boot, topic, int(n), 1024, 5000, kgo.LeaderAck())
		if err == nil {
			out = t.costs(cpu, n, quantiles(h)...)
		}
		return err
	})
}

func tiny(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	load := producing{clients: 20, size: 100, records: scaled(200_000, scale), batch: 1 << 20, acks: kgo.LeaderAck(), closedLoop: true}
	return out, t.withTopic(ctx, topic, 6, nil, func() error {
		cpu := t.cpu()
		p, err := load.run(ctx, t.boot, topic)
		out = t.costs(cpu, p.records, append(quantiles(p.latency), figure{"records/s", float64(p.records) / p.took.Seconds(), true})...)
		return err
	})
}

func tinyRaw(ctx context.Context, t target, topic string, scale float64) (out []figure, err error) {
	load := rawLoad{clients: 100, size: 100, records: scaled(400_000, scale), perBatch: 1, partitions: 1, window: 1}
	return out, t.withTopic(ctx, topic, 1, nil, func() error {
		cpu := t.cpu()
		p, err := load.run(ctx, t.boot, topic)
		out = t.costs(cpu, p.records, append(quantiles(p.latency), figure{"records/s", float64(p.records) / p.took.Seconds(), true})...)
		return err
	})
}

func spread(ctx context.Context, t target, topic string, scale float64) ([]figure, error) {
	var out []figure
	for _, partitions := range []int{6, 1000} {
		load := producing{clients: 1, size: 1024, records: scaled(1_000_000, scale), batch: 1 << 20, linger: 5 * time.Millisecond, acks: kgo.LeaderAck()}
		name := fmt.Sprintf("%s-%d", topic, partitions)
		err := t.withTopic(ctx, name, partitions, nil, func() error {
			cpu := t.cpu()
			p, err := load.run(ctx, t.boot, name)
			for _, f := range t.costs(cpu, p.records, figure{"records/s", float64(p.records) / p.took.Seconds(), true}) {
				f.name += fmt.Sprintf(" over %d", partitions)
				out = append(out, f)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func fsync(ctx context.Context, t target, topic string, scale float64) ([]figure, error) {
	var out []figure
	rates := map[int]float64{}
	every := "1"
	for _, clients := range []int{1, 100} {
		load := rawLoad{clients: clients, size: 100, records: scaled(int64(2000+1000*clients), scale), perBatch: 1, partitions: 1, window: 1}
		name := fmt.Sprintf("%s-%d", topic, clients)
		err := t.withTopic(ctx, name, 1, map[string]*string{"flush.messages": &every}, func() error {
			p, err := load.run(ctx, t.boot, name)
			rates[clients] = float64(p.records) / p.took.Seconds()
			out = append(out, figure{fmt.Sprintf("records/s of %d", clients), rates[clients], true})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return append(out, figure{"100 over 1", rates[100] / rates[1], true}), nil
}

// compare runs the case rounds times on each target, turn about, and prints a row per figure.
func (c benchCase) compare(ctx context.Context, targets []target, rounds int, scale float64) error {
	seen := make([]map[string][]float64, len(targets))
	var order []figure
	for round := range rounds + 1 {
		for i := range targets {
			at := (i + round) % len(targets)
			t := targets[at]
			topic := fmt.Sprintf("bench-%s-%d-%d", c.name, round, time.Now().UnixMilli())
			s := scale
			if round == 0 {
				s *= 0.2
			}
			figures, err := c.run(ctx, t, topic, s)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if round == 0 {
				continue
			}
			if seen[at] == nil {
				seen[at] = map[string][]float64{}
			}
			for _, f := range figures {
				if !slices.ContainsFunc(order, func(o figure) bool { return o.name == f.name }) {
					order = append(order, f)
				}
				seen[at][f.name] = append(seen[at][f.name], f.value)
			}
		}
	}
	for _, f := range order {
		cells := make([]string, 0, len(targets)+1)
		base := median(seen[0][f.name])
		var ratios []string
		for i := range targets {
			v := seen[i][f.name]
			if len(v) == 0 {
				cells = append(cells, "")
				continue
			}
			cells = append(cells, fmt.Sprintf("%s [%s..%s]", short(median(v)), short(slices.Min(v)), short(slices.Max(v))))
			if i > 0 && !math.IsNaN(base) {
				r := base / median(v)
				if f.more {
					r = median(v) / base
				}
				ratios = append(ratios, fmt.Sprintf("%.2fx", r))
			}
		}
		fmt.Printf("| %s | %s | %s | %s |\n", c.name, f.name, strings.Join(cells, " | "), strings.Join(ratios, ", "))
	}
	return nil
}

// median of no values is NaN.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// short prints three digits that matter.
func short(x float64) string {
	switch a := math.Abs(x); {
	case a >= 10_000:
		return fmt.Sprintf("%.0fk", x/1000)
	case a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
