package config

import "strings"

// Nearest is the known key that looks most like name, or empty when none looks
// enough like it. It counts letters to change, and knows the same words in
// another order.
func Nearest(name string) string {
	name = strings.ToLower(name)
	best, bestCost := "", len(name)/3+1
	for _, k := range allKeys {
		cost := distance(name, k.Name, bestCost)
		if sameWords(name, k.Name) {
			cost = 0
		}
		if cost < bestCost {
			best, bestCost = k.Name, cost
		}
	}
	return best
}

func sameWords(a, b string) bool {
	wa, wb := words(a), words(b)
	if len(wa) != len(wb) {
		return false
	}
	for w, n := range wa {
		if wb[w] != n {
			return false
		}
	}
	return true
}

func words(s string) map[string]int {
	m := map[string]int{}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		m[w]++
	}
	return m
}

// distance is the Levenshtein distance, or limit when it is not below it.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal, least := row[0], i
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
			least = min(least, row[j])
		}
		if least >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}
