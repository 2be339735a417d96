package weir

import "testing"

// The parts never come to more than the whole, and neither logs nor connections get
// nothing (B178).
func TestDivideOpenFilesB178(t *testing.T) {
	for _, limit := range []int{64, 256, 1024, 4096, 20_000, 1 << 20} {
		o := divideOpenFiles(limit)
		if o.logs < 16 || o.connections < 16 {
			t.Errorf("%d: %+v", limit, o)
		}
		for _, conns := range []int{0, o.connections / 2, o.connections} {
			if n := o.logsBeside(conns); n+conns >= limit || n < o.logs {
				t.Errorf("%d: %d log files beside %d connections, of %+v", limit, n, conns, o)
			}
		}
	}
	if o := divideOpenFiles(0); o.logsBeside(5) != 0 || o.connections < 1<<30 {
		t.Errorf("no limit: %+v", o)
	}
}
