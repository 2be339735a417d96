//go:build !unix

package lab

import "time"

// Busy is not known on this system.
func Busy() time.Duration { return 0 }
