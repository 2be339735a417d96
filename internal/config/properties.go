package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Property is one line of a .properties file.
type Property struct {
	Key, Value string
	Line       int // of its first character, from 1
}

// ParseProperties reads Java's .properties format: "#" and "!" comments, key and
// value parted by "=", ":" or blanks, a line going on after a "\" at its end, and
// the escapes \t \n \r \f \uXXXX. The text is UTF-8 (Java reads ISO 8859-1 there;
// for ASCII it is the same). A key that comes twice is returned twice; the later
// one counts. The only error is a broken \u escape, with its line.
func ParseProperties(text []byte) ([]Property, error) {
	var props []Property
	lines := splitLines(string(text))
	for i := 0; i < len(lines); {
		first := i + 1
		line := strings.TrimLeft(lines[i], " \t\f")
		i++
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for goesOn(line) && i < len(lines) {
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
			i++
		}
		if goesOn(line) {
			line = line[:len(line)-1]
		}
		rawKey, rawValue := splitProperty(line)
		key, err := unescape(rawKey)
		if err == nil {
			var value string
			value, err = unescape(rawValue)
			props = append(props, Property{key, value, first})
		}
		if err != nil {
			return props, fmt.Errorf("line %d: %w", first, err)
		}
	}
	return props, nil
}

func splitLines(s string) []string {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	return strings.Split(s, "\n")
}

// goesOn says whether line ends with an odd number of backslashes.
func goesOn(line string) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitProperty cuts at the first "=", ":" or blank that is not escaped, and
// takes the blanks and one "=" or ":" around the cut away.
func splitProperty(line string) (key, value string) {
	end := 0
	for end < len(line) {
		c := line[end]
		if c == '\\' {
			end += 2
			continue
		}
		if c == '=' || c == ':' || c == ' ' || c == '\t' || c == '\f' {
			break
		}
		end++
	}
	if end >= len(line) {
		return line, ""
	}
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	return line[:end], rest
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	var high rune // first half of a surrogate pair
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 >= len(s) {
				return "", fmt.Errorf(`\u needs four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`\u%s: not four hexadecimal digits`, s[i+1:i+5])
			}
			i += 4
			r := rune(n)
			if high != 0 {
				r, high = utf16.DecodeRune(high, r), 0
			} else if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				high = r
				continue
			}
			if utf16.IsSurrogate(r) {
				r = utf8.RuneError
			}
			b.WriteRune(r)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
