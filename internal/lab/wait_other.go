//go:build !linux

package lab

import "time"

func nanosleep(d time.Duration) { time.Sleep(d) }
