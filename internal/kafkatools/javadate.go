package kafkatools

import (
	"fmt"
	"strings"
	"time"
)

// javaDate is t by a pattern of Java's SimpleDateFormat.
func javaDate(pattern string, t time.Time) (string, error) {
	var b strings.Builder
	rs := []rune(pattern)
	for i := 0; i < len(rs); {
		r := rs[i]
		if r == '\'' {
			end := i + 1
			for end < len(rs) && rs[end] != '\'' {
				end++
			}
			if end == i+1 {
				b.WriteRune('\'')
			}
			b.WriteString(string(rs[i+1 : min(end, len(rs))]))
			i = end + 1
			continue
		}
		if r|0x20 < 'a' || r|0x20 > 'z' {
			b.WriteRune(r)
			i++
			continue
		}
		n := 1
		for i+n < len(rs) && rs[i+n] == r {
			n++
		}
		i += n
		number := func(v int) { fmt.Fprintf(&b, "%0*d", n, v) }
		switch r {
		case 'y', 'Y', 'u':
			if n == 2 {
				fmt.Fprintf(&b, "%02d", t.Year()%100)
			} else {
				number(t.Year())
			}
		case 'M', 'L':
			switch {
			case n > 3:
				b.WriteString(t.Month().String())
			case n == 3:
				b.WriteString(t.Month().String()[:3])
			default:
				number(int(t.Month()))
			}
		case 'd':
			number(t.Day())
		case 'D':
			number(t.YearDay())
		case 'H':
			number(t.Hour())
		case 'k':
			number((t.Hour()+23)%24 + 1)
		case 'K':
			number(t.Hour() % 12)
		case 'h':
			number((t.Hour()+11)%12 + 1)
		case 'm':
			number(t.Minute())
		case 's':
			number(t.Second())
		case 'S':
			number(t.Nanosecond() / 1e6)
		case 'a':
			b.WriteString(t.Format("PM"))
		case 'E':
			if n > 3 {
				b.WriteString(t.Weekday().String())
			} else {
				b.WriteString(t.Weekday().String()[:3])
			}
		case 'z':
			b.WriteString(t.Format("MST"))
		case 'Z':
			b.WriteString(t.Format("-0700"))
		case 'X':
			b.WriteString(t.Format([]string{"Z07", "Z0700", "Z07:00"}[min(n, 3)-1]))
		default:
			return "", illegalArgument("Illegal pattern character '%c'", r)
		}
	}
	return b.String(), nil
}
