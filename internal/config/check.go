package config

// checks are the rules that a range cannot say. They return why a value is
// refused, or "".
var checks = map[string]func(v value) string{
	"log.retention.ms":      unlimitedOrPositive,
	"log.retention.minutes": unlimitedOrPositive,
	"log.retention.hours":   unlimitedOrPositive,
}

// Kafka refuses 0 at a start; any negative number means without limit.
func unlimitedOrPositive(v value) string {
	if v.n == 0 {
		return "must be -1 (without limit) or at least 1"
	}
	return ""
}
