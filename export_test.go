package weir

import "github.com/weirmq/weir/internal/disk"

// OnDisk starts the broker on another file system.
func (o Options) OnDisk(fs disk.FS) Options { o.fs = fs; return o }
