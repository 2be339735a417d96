package broker

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// CompatTable is the part of docs/compat.md that the version table gives: a test
// keeps the page and the table alike.
func CompatTable() string {
	var b strings.Builder
	b.WriteString("| key | API | versions | Kafka 4.4 | notes |\n|---|---|---|---|---|\n")
	for _, a := range apis {
		k := kafkaRanges[a.key]
		fmt.Fprintf(&b, "| %d | %s | %d-%d | %d-%d | %s |\n", a.key, kmsg.NameForKey(a.key), a.min, a.max, k[0], k[1], a.note)
	}
	return b.String()
}

// kafkaRanges are what Kafka 4.4 serves, for comparison.
var kafkaRanges = map[int16][2]int16{
	0: {3, 13}, 1: {4, 18}, 2: {1, 11}, 3: {0, 13}, 8: {2, 10}, 9: {1, 10}, 10: {0, 6}, 11: {0, 9}, 12: {0, 4}, 13: {0, 5},
	14: {0, 5}, 15: {0, 6}, 16: {0, 5}, 17: {0, 1}, 18: {0, 5}, 19: {2, 7}, 20: {1, 6}, 21: {0, 2}, 22: {0, 5}, 23: {2, 4},
	29: {1, 3}, 30: {1, 3}, 31: {1, 3}, 32: {1, 4}, 33: {0, 2}, 35: {1, 5}, 36: {0, 2}, 37: {0, 3}, 42: {0, 3}, 43: {0, 2}, 44: {0, 1}, 45: {0, 1}, 46: {0, 0},
	47: {0, 0}, 48: {0, 1}, 55: {0, 2}, 60: {0, 2}, 61: {0, 0}, 74: {0, 1}, 75: {0, 0},
}
