package weir

import "testing"

// The parts never come to more than the whole, and neither logs nor connections get
// nothing (B178).
func TestDivideOpenFilesB178(t *testing.T) {
	for _, limit := range []int{64, 256, 1024, 4096, 20_000, 1 << 20} {
		o := divideOpenFiles(limit)
		if o.logs+o.connections >= limit || o.logs < 16 || o.connections < 16 {
			t.Errorf("%d: %+v", limit, o)
		}
	}
	if o := divideOpenFiles(0); o.logs != 0 || o.connections < 1<<30 {
		t.Errorf("no limit: %+v", o)
	}
}
