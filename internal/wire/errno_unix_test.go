//go:build unix

package wire

import "syscall"

var errNoDescriptors = syscall.EMFILE
