package kafkatools

import (
	"strings"
	"unicode/utf8"
)

// breakable cuts a line where Java's line breaker may break it: behind spaces,
// behind hyphens, and behind a dot that is no decimal point. Joined, the parts
// are the line.
func breakable(line string) []string {
	var parts []string
	start := 0
	for i := 0; i < len(line)-1; i++ {
		here, next := line[i], line[i+1]
		cut := here == ' ' && next != ' ' ||
			here == '-' && next != '-' && next != ' ' ||
			here == '.' && letter(next) && i > 0 && letter(line[i-1])
		if cut {
			parts = append(parts, line[start:i+1])
			start = i + 1
		}
	}
	return append(parts, line[start:])
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// pieces breaks text into lines of at most width, those that go on two in; a
// part that is longer stays whole.
func pieces(text string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		at := ""
		for _, part := range breakable(line) {
			if strings.TrimSpace(at) != "" && runes(at)+runes(strings.TrimRight(part, " ")) > width {
				out = append(out, strings.TrimRight(at, " "))
				at = "  "
			}
			at += part
		}
		out = append(out, strings.TrimRight(at, " "))
	}
	return out
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// justified breaks text into lines of width and fills all but the last with
// spaces between the words, as argparse4j does.
func justified(text string, width int) string {
	var out []string
	at := ""
	for _, part := range breakable(text) {
		if at != "" && runes(at)+runes(strings.TrimRight(part, " ")) > width {
			out = append(out, stretched(at, width))
			at = ""
		}
		at += part
	}
	return strings.Join(append(out, strings.TrimRight(at, " ")), "\n")
}

func stretched(line string, width int) string {
	words := strings.Fields(line)
	gaps := len(words) - 1
	extra := width - runes(strings.Join(words, " "))
	if gaps < 1 || extra < 0 {
		return strings.Join(words, " ")
	}
	each, more := extra/gaps, extra%gaps
	first := (gaps - more + 1) / 2 // those in the middle get one more
	var b strings.Builder
	for i, w := range words {
		b.WriteString(w)
		if i == gaps {
			break
		}
		n := 1 + each
		if i >= first && i < first+more {
			n++
		}
		b.WriteString(strings.Repeat(" ", n))
	}
	return b.String()
}
