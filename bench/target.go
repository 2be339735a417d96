package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// target is one broker under load.
type target struct {
	name, boot string
	pid        int // 0: not known
}

func parseTarget(s string) (target, error) {
	name, rest, ok := strings.Cut(s, "=")
	boot, pid, hasPID := strings.Cut(rest, "@")
	t := target{name: name, boot: boot}
	if !ok || name == "" || !strings.Contains(boot, ":") {
		return t, fmt.Errorf("%q is not NAME=HOST:PORT[@PID]", s)
	}
	if hasPID {
		var err error
		if t.pid, err = strconv.Atoi(pid); err != nil {
			return t, fmt.Errorf("%q: the process id is not a number", s)
		}
	}
	return t, nil
}

// cpu is the CPU time the broker has used, at the clock's 10 ms; 0 when its process is not known.
func (t target) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is the broker's resident memory in MiB, 0 when its process is not known.
func (t target) resident() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(f[0], 64)
	return kib / 1024
}

// withTopic makes a topic, waits until every partition has a leader, runs fn and deletes the topic.
func (t target) withTopic(ctx context.Context, topic string, partitions int, configs map[string]*string, fn func() error) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(t.boot))
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(120_000)
	if _, err := adm.CreateTopic(ctx, int32(partitions), 1, configs, topic); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ts, err := adm.ListTopics(ctx, topic)
		if err == nil && ts[topic].Err == nil && len(ts[topic].Partitions) == partitions {
			led := true
			for _, p := range ts[topic].Partitions {
				led = led && p.Err == nil && p.Leader >= 0
			}
			if led {
				break
			}
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("topic %s has no leader everywhere after 2 minutes", topic), err)
		}
	}
	err = fn()
	_, deleteErr := adm.DeleteTopic(ctx, topic)
	return errors.Join(err, deleteErr)
}
