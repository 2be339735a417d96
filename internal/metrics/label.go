package metrics

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// MaxLabels is how many values a family may have whose labels clients choose.
const MaxLabels = 10000

// labelMax is the longest label value in bytes.
const labelMax = 128

// Label makes a string that a client chose fit for a label: valid UTF-8 and at
// most 128 bytes. A string that had to change ends in a hash of the original, so
// that two different ones stay different: a page with the same series twice
// would not parse. (Quotes, backslashes and newlines are escaped by the text
// format itself.)
func Label(s string) string {
	if len(s) <= labelMax && utf8.ValidString(s) {
		return s
	}
	h := fnv.New32a()
	h.Write([]byte(s))
	suffix := fmt.Sprintf("~%08x", h.Sum32())
	v := strings.ToValidUTF8(s, "\uFFFD")
	if limit := labelMax - len(suffix); len(v) > limit {
		for limit > 0 && !utf8.RuneStart(v[limit]) {
			limit--
		}
		v = v[:limit]
	}
	return v + suffix
}
