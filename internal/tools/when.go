package tools

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// moment is a point in time a user wrote, and what has to be said about it.
type moment struct {
	ms      int64
	warning string // empty: none
}

// String is the moment as understood, for the user to check.
func (m moment) String() string {
	return fmt.Sprintf("%s (%d ms)", time.UnixMilli(m.ms).UTC().Format("2006-01-02T15:04:05.000Z07:00"), m.ms)
}

var (
	year2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	year2100 = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

// parseMoment reads milliseconds since 1970, "now", or an ISO date with a zone
// or without; without one it is UTC, as with Kafka's own tools. A number that
// is no date of this century in milliseconds is kept as it is, with a warning:
// seconds and nanoseconds are the usual mistake.
func parseMoment(s string, now time.Time) (moment, error) {
	s = strings.TrimSpace(s)
	if s == "now" {
		return moment{ms: now.UnixMilli()}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		m := moment{ms: n}
		if n < year2000 || n >= year2100 {
			m.warning = fmt.Sprintf("%d is read as milliseconds, and so is not between the years 2000 and 2100", n)
			for _, u := range []struct {
				name string
				ms   int64
			}{{"seconds", n * 1000}, {"microseconds", n / 1000}, {"nanoseconds", n / 1_000_000}} {
				if u.ms >= year2000 && u.ms < year2100 {
					m.warning += fmt.Sprintf("; if it is %s, write %d (%s)", u.name, u.ms, time.UnixMilli(u.ms).UTC().Format(time.RFC3339))
					break
				}
			}
		}
		return m, nil
	}
	t := strings.Replace(s, " ", "T", 1)
	for _, l := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02"} {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07"} {
			if at, err := time.Parse(l+zone, t); err == nil {
				m := moment{ms: at.UnixMilli()}
				if zone == "" {
					m.warning = fmt.Sprintf("%q has no time zone and is read as UTC; write +02:00 or Z behind it to be sure", s)
				}
				return m, nil
			}
		}
	}
	return moment{}, fmt.Errorf("%q is no time: write milliseconds since 1970 (%d) or a date (%s)", s, now.UnixMilli(), now.UTC().Format("2006-01-02T15:04:05Z"))
}

var isoDuration = regexp.MustCompile(`^([-+])?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// parseDuration reads an ISO 8601 duration (P1DT2H), as Kafka's tools take, or
// one as Go writes it (26h), with days (1d2h) as well.
func parseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is no duration: write 90m, 36h, 7d or PT1H30M", s)
	if m := isoDuration.FindStringSubmatch(strings.ToUpper(s)); m != nil && len(s) > 1 && !strings.HasSuffix(strings.ToUpper(s), "T") {
		var d time.Duration
		for i, u := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute} {
			if m[i+2] != "" {
				n, err := strconv.Atoi(m[i+2])
				if err != nil || time.Duration(n) > (1<<62)/u {
					return 0, bad
				}
				d += time.Duration(n) * u
			}
		}
		if m[6] != "" {
			f, err := strconv.ParseFloat(m[6], 64)
			if err != nil || f > 1e9 {
				return 0, bad
			}
			d += time.Duration(f * float64(time.Second))
		}
		if m[1] == "-" {
			d = -d
		}
		return d, nil
	}
	var days time.Duration
	rest := s
	if n, after, ok := strings.Cut(s, "d"); ok {
		d, err := strconv.Atoi(n)
		if err != nil || d < 0 || d > 36500 {
			return 0, bad
		}
		days, rest = time.Duration(d)*24*time.Hour, after
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, bad
	}
	return days + d, nil
}
