package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/weirmq/weir/internal/kafka"
)

// jsonReader reads one JSON value from front to back without building a tree.
// The first error sticks and every later call is harmless. It exists because
// replaying a large log through encoding/json took most of the start.
type jsonReader struct {
	b   []byte
	i   int
	err error

	// The last broker ids read. Most lists of a cluster are among a few, so
	// neighbours share one: records and images never write to them.
	ids, scratch []kafka.BrokerID
}

var errShortJSON = errors.New("ends too early")

func (r *jsonReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: "+format, append([]any{r.i}, args...)...)
	}
}

func (r *jsonReader) space() {
	for r.i < len(r.b) && (r.b[r.i] == ' ' || r.b[r.i] == '\t' || r.b[r.i] == '\n' || r.b[r.i] == '\r') {
		r.i++
	}
}

// peek is the next byte that is not space, 0 at the end or after an error.
func (r *jsonReader) peek() byte {
	if r.err != nil {
		return 0
	}
	r.space()
	if r.i == len(r.b) {
		r.fail("%w", errShortJSON)
		return 0
	}
	return r.b[r.i]
}

func (r *jsonReader) expect(c byte) bool {
	if got := r.peek(); r.err == nil && got != c {
		r.fail("%q instead of %q", got, c)
	}
	if r.err != nil {
		return false
	}
	r.i++
	return true
}

// object calls fn with each key, good until fn returns; fn reads the value.
func (r *jsonReader) object(fn func(key []byte)) {
	if !r.expect('{') {
		return
	}
	if r.peek() == '}' {
		r.i++
		return
	}
	for r.err == nil {
		if r.peek() != '"' {
			r.fail("object key is not a string")
			return
		}
		key := r.bytes()
		if !r.expect(':') {
			return
		}
		fn(key)
		switch r.peek() {
		case ',':
			r.i++
		case '}':
			r.i++
			return
		default:
			r.fail("object goes on without ',' or '}'")
		}
	}
}

// array calls fn to read each element.
func (r *jsonReader) array(fn func()) {
	if !r.expect('[') {
		return
	}
	if r.peek() == ']' {
		r.i++
		return
	}
	for r.err == nil {
		fn()
		switch r.peek() {
		case ',':
			r.i++
		case ']':
			r.i++
			return
		default:
			r.fail("array goes on without ',' or ']'")
		}
	}
}

func (r *jsonReader) str() string { return string(r.bytes()) }

// bytes is a string's content; it aliases the input when nothing is escaped.
func (r *jsonReader) bytes() []byte {
	if !r.expect('"') {
		return nil
	}
	start := r.i
	plain := true
	for r.i < len(r.b) {
		switch c := r.b[r.i]; {
		case c == '"':
			raw := r.b[start:r.i]
			r.i++
			if plain {
				return raw
			}
			var s string
			if err := json.Unmarshal(r.b[start-1:r.i], &s); err != nil {
				r.fail("string: %v", err)
			}
			return []byte(s)
		case c == '\\':
			plain = false
			r.i++
		case c < ' ':
			r.fail("control character in string")
			return nil
		case c >= utf8.RuneSelf:
			plain = false // encoding/json replaces what is not UTF-8
		}
		r.i++
	}
	r.i = len(r.b)
	r.fail("%w", errShortJSON)
	return nil
}

func (r *jsonReader) int(bits int) int64 {
	r.peek()
	start := r.i
	for r.err == nil && r.i < len(r.b) && (r.b[r.i] == '-' || r.b[r.i] >= '0' && r.b[r.i] <= '9') {
		r.i++
	}
	if r.err != nil {
		return 0
	}
	raw := r.b[start:r.i]
	if digits := raw; len(digits) > 1 && (digits[0] == '0' || digits[0] == '-' && digits[1] == '0') {
		r.fail("number %q", raw)
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, bits)
	if err != nil {
		r.fail("number %q: not an integer of %d bits", raw, bits)
	}
	return n
}

func (r *jsonReader) int32() int32 { return int32(r.int(32)) }

func (r *jsonReader) bool() bool {
	switch r.peek() {
	case 't':
		r.word("true")
		return true
	case 'f':
		r.word("false")
		return false
	}
	r.fail("not true or false")
	return false
}

func (r *jsonReader) word(w string) {
	if len(r.b)-r.i < len(w) || string(r.b[r.i:r.i+len(w)]) != w {
		r.fail("not %s", w)
		return
	}
	r.i += len(w)
}

// maxSkipDepth bounds the recursion over fields that this version does not know.
const maxSkipDepth = 64

func (r *jsonReader) skip(depth int) {
	if depth > maxSkipDepth {
		r.fail("nested deeper than %d", maxSkipDepth)
		return
	}
	switch c := r.peek(); {
	case r.err != nil:
	case c == '{':
		r.object(func([]byte) { r.skip(depth + 1) })
	case c == '[':
		r.array(func() { r.skip(depth + 1) })
	case c == '"':
		r.str()
	case c == 't' || c == 'f':
		r.bool()
	case c == 'n':
		r.word("null")
	case c == '-' || c >= '0' && c <= '9':
		start := r.i
		for r.i < len(r.b) && (r.b[r.i] >= '0' && r.b[r.i] <= '9' || r.b[r.i] == '-' || r.b[r.i] == '+' || r.b[r.i] == '.' || r.b[r.i]|0x20 == 'e') {
			r.i++
		}
		if f, err := strconv.ParseFloat(string(r.b[start:r.i]), 64); err != nil || math.IsInf(f, 0) {
			r.fail("number %q", r.b[start:r.i])
		}
	default:
		r.fail("%q begins no value", c)
	}
}

// appendString writes s as a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			q, err := json.Marshal(s)
			if err != nil {
				panic(fmt.Sprintf("BUG: string %q has no JSON form: %v", s, err))
			}
			return append(dst, q...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
