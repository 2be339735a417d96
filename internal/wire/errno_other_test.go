//go:build !unix

package wire

import "errors"

var errNoDescriptors = errors.New("too many open files")
