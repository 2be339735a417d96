package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// value is a parsed value. Which field counts follows from the key's type.
type value struct {
	raw   string // the text in its usual form, as DescribeConfigs shows it
	given string // the text as it was given, which DescribeConfigs shows in synonyms
	null  bool
	n     int64 // Bool (0 or 1), Int, Short, Long
	f     float64
	list  []string
}

// ValueError is a refused value: what was given, why it cannot be, what can be,
// and what to try.
type ValueError struct {
	Key, Value string
	Reason     string // "must be at least 1"
	Allowed    string // the range in Kafka's notation, or the type
	Try        string // a value that works
	Where      string // "server.properties line 3", "environment KAFKA_X", or empty
}

func (e *ValueError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Invalid value %s for configuration %s: %s", e.Value, e.Key, e.Reason)
	if e.Where != "" {
		fmt.Fprintf(&b, " (%s)", e.Where)
	}
	if e.Allowed != "" {
		fmt.Fprintf(&b, "; allowed: %s", e.Allowed)
	}
	if e.Try != "" {
		fmt.Fprintf(&b, "; try %s", e.Try)
	}
	return b.String()
}

// refuse makes the error for a value of k.
func (k *Key) refuse(raw, reason string) *ValueError {
	e := &ValueError{Key: k.Name, Value: raw, Reason: reason, Allowed: k.AllowedText()}
	if k.Sensitive() {
		e.Value = "(hidden)"
	}
	switch {
	case k.Null || k.Default == "":
	case k.Default == raw:
	default:
		e.Try = k.Default + ", the default"
	}
	return e
}

// AllowedText is the range, or the type's own range when the key has none.
func (k *Key) AllowedText() string {
	if k.Allowed != "" {
		return k.Allowed
	}
	switch k.Type {
	case Bool:
		return "[true, false]"
	case Int:
		return "[-2147483648,...,2147483647]"
	case Short:
		return "[-32768,...,32767]"
	case Long:
		return "a whole number of 64 bits"
	case Double:
		return "a number"
	}
	return ""
}

// parse reads raw as Kafka does (blanks around it do not count) and checks it.
func (k *Key) parse(raw string) (value, error) {
	v := value{raw: strings.TrimSpace(raw)}
	v.given = v.raw
	var err error
	switch k.Type {
	case Bool:
		switch {
		case strings.EqualFold(v.raw, "true"):
			v.n, v.raw = 1, "true"
		case strings.EqualFold(v.raw, "false"):
			v.raw = "false"
		default:
			return v, k.refuse(v.raw, "must be true or false")
		}
		return v, nil
	case Int, Short, Long:
		bits := map[Type]int{Int: 32, Short: 16, Long: 64}[k.Type]
		if v.n, err = strconv.ParseInt(v.raw, 10, bits); err != nil {
			return v, k.refuse(v.raw, "must be a whole number of type "+k.Type.String())
		}
		v.raw = strconv.FormatInt(v.n, 10)
		if reason := k.inRange(float64(v.n)); reason != "" {
			return v, k.refuse(v.raw, reason)
		}
	case Double:
		if v.f, err = strconv.ParseFloat(v.raw, 64); err != nil || math.IsNaN(v.f) || math.IsInf(v.f, 0) {
			return v, k.refuse(v.raw, "must be a number")
		}
		v.raw = javaDouble(v.f)
		if reason := k.inRange(v.f); reason != "" {
			return v, k.refuse(v.raw, reason)
		}
	case List:
		v.list = SplitList(v.raw)
		if k.oneOf != nil {
			v.list = withoutTwins(v.list)
		}
		v.raw = strings.Join(v.list, ",")
		if k.filled && len(v.list) == 0 {
			return v, k.refuse(v.raw, "must name at least one")
		}
		for _, item := range v.list {
			if item == "" {
				return v, k.refuse(v.raw, "has an empty member")
			}
			if !k.named(item) {
				return v, k.refuse(v.raw, fmt.Sprintf("%q is none of: %s", item, strings.Join(k.oneOf, ", ")))
			}
		}
	default:
		if k.filled && v.raw == "" {
			return v, k.refuse(v.raw, "must not be empty")
		}
		if !k.named(v.raw) {
			return v, k.refuse(v.raw, "must be one of: "+strings.Join(k.oneOf, ", "))
		}
	}
	if k.check != nil {
		if reason := k.check(v); reason != "" {
			return v, k.refuse(v.raw, reason)
		}
	}
	return v, nil
}

// inRange returns why x is outside, or "".
func (k *Key) inRange(x float64) string {
	num := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case x >= k.min && x <= k.max:
		return ""
	case k.special != "" && num(x) == k.special:
		return ""
	case !math.IsInf(k.min, 0) && !math.IsInf(k.max, 0):
		reason := "must be between " + num(k.min) + " and " + num(k.max)
		if k.special != "" {
			reason += ", or " + k.special
		}
		return reason
	case x < k.min:
		return "must be at least " + num(k.min)
	}
	return "must be at most " + num(k.max)
}

func (k *Key) named(s string) bool {
	if k.oneOf == nil {
		return true
	}
	for _, o := range k.oneOf {
		if o == s || k.fold && strings.EqualFold(o, s) {
			return true
		}
	}
	return false
}

// parseDefault parses the default. An empty one need not pass the check: Kafka
// has some that do not.
func (k *Key) parseDefault() value {
	if k.Null {
		return value{null: true}
	}
	v, err := k.parse(k.Default)
	if err != nil && k.Default != "" {
		panic("BUG: default in the key table: " + err.Error())
	}
	return v
}

// SplitList takes a list apart at its commas, without the blanks around the
// members. An empty text is an empty list.
func SplitList(s string) []string {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func withoutTwins(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// javaDouble writes f as Java does, which is what clients see of Kafka: 0.5,
// 1.0, 1.7976931348623157E308.
func javaDouble(f float64) string {
	if a := math.Abs(f); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
