package commitlog

import "testing"

// A name that is taken for a file of a log is the name that log would give it.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"00000000000000000042.log", "+0000000000000000042.log", "000000000000000000042.log",
		"00000000000000000042.log.deleted", "9223372036854775807.index", "t-0", "a-b-7", "t-007", "t--1"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if base, ext, ok := parseName(name); ok && fileName(base, ext) != name {
			t.Fatalf("%q is taken for %q", name, fileName(base, ext))
		}
		if tp, ok := parseDirName(name); ok && tp.String() != name {
			t.Fatalf("%q is taken for %q", name, tp)
		}
	})
}
