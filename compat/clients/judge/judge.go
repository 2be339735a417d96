// Package judge is what the Go judges share: one line for each thing shown,
// "ok NAME", "FAIL NAME | WHY" or "skip NAME | WHY", and "done" at the end.
// ../../clients_test.go makes a test of each line.
package judge

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// PerRound is how many records each acks setting writes to a codec's topic.
const PerRound = 60

// Nulls is the matrix of B038 in the order in which it is written: nil stands
// for null. Every record carries the headers h=null, h=empty, h=x.
func Nulls() [][2][]byte {
	var out [][2][]byte
	for _, k := range [][]byte{nil, {}, []byte("x")} {
		for _, v := range [][]byte{nil, {}, []byte("x")} {
			out = append(out, [2][]byte{k, v})
		}
	}
	return out
}

// Same tells null from empty.
func Same(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }

// Value is the record i of a round, long enough to be worth compressing.
func Value(prefix string, i int) []byte {
	return fmt.Appendf(nil, "%s%d-%s", prefix, i, strings.Repeat("text ", 20))
}

// Check runs f and prints its line.
func Check(name string, f func() error) {
	err := guard(f)
	if err != nil {
		fmt.Println("FAIL", name, "|", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Println("ok", name)
}

func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// Done ends the report.
func Done() { fmt.Println("done") }

// Must ends the process: what follows could show nothing.
func Must(err error) {
	if err != nil {
		fmt.Println("FAIL start |", err)
		os.Exit(1)
	}
}

// Until polls ok for at most within.
func Until(within time.Duration, what string, ok func() (string, bool)) error {
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		last, good := ok()
		if good {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v; last: %s", what, within, last)
		}
	}
}

// Signalled gives a context that ends on SIGTERM.
func Signalled() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	return ctx
}
