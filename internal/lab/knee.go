package lab

import "slices"

// kneeProminence is how far the curve must hang below the straight line from
// its first to its last point, as a share of its height: less is no knee.
const kneeProminence = 0.2

// Knee is the last rate before the curve of latency over rate bends up, by
// Kneedle's distance from the straight line. False: fewer than four points, a
// curve that does not rise to twice its lowest value, or one without a bend.
// The points need no order.
func Knee(rates, latencies []float64) (rate float64, ok bool) {
	order := make([]int, len(rates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if rates[a] < rates[b] {
			return -1
		}
		return 1
	})
	n := len(order)
	if n < 4 {
		return 0, false
	}
	first, last := order[0], order[n-1]
	low, high := slices.Min(latencies), latencies[last]
	width, height := rates[last]-rates[first], high-low
	if width <= 0 || high < 2*low {
		return 0, false
	}
	best, at := 0.0, -1
	for _, i := range order[1 : n-1] {
		line := (rates[i] - rates[first]) / width
		if d := line - (latencies[i]-low)/height; d > best {
			best, at = d, i
		}
	}
	if at < 0 || best < kneeProminence {
		return 0, false
	}
	return rates[at], true
}
