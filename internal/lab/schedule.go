package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Arrivals says when records are due. It is a value that describes a whole
// load; Schedule gives one producer's share of it.
type Arrivals struct {
	Kind  string          `json:"kind"`               // constant, poisson, burst, ramp, replay
	Rate  float64         `json:"rate"`               // records per second of all producers together; ramp: at the start
	Burst int             `json:"burst,omitempty"`    // burst: records that are due at once
	To    float64         `json:"to,omitempty"`       // ramp: rate at the end
	Over  time.Duration   `json:"over_ns,omitempty"`  // ramp: how long it climbs; it stays at To afterwards
	Times []time.Duration `json:"times_ns,omitempty"` // replay: due times from the start, ascending
	Seed  uint64          `json:"seed,omitempty"`     // poisson
}

// ParseArrivals reads constant, poisson, burst:N or ramp:TO, for a load of rate
// records per second that lasts for over (used by ramp).
func ParseArrivals(s string, rate float64, over time.Duration) (Arrivals, error) {
	kind, arg, has := strings.Cut(s, ":")
	a := Arrivals{Kind: kind, Rate: rate, Over: over, Seed: 1}
	var err error
	switch kind {
	case "constant", "poisson":
		if has {
			err = fmt.Errorf("arrivals %s takes no argument", kind)
		}
	case "burst":
		a.Burst, err = strconv.Atoi(arg)
		if err != nil || a.Burst < 1 {
			err = fmt.Errorf("arrivals %q: write burst:N, N records that are due at once", s)
		}
	case "ramp":
		a.To, err = strconv.ParseFloat(arg, 64)
		if err != nil {
			err = fmt.Errorf("arrivals %q: write ramp:RATE, the records per second at the end", s)
		}
	default:
		err = fmt.Errorf("arrivals %q: want constant, poisson, burst:N or ramp:RATE", s)
	}
	if err == nil {
		err = a.Check()
	}
	return a, err
}

// Check refuses what gives no schedule.
func (a Arrivals) Check() error {
	good := func(r float64) bool { return r > 0 && r <= 1e9 }
	switch a.Kind {
	case "constant", "poisson", "burst":
		if !good(a.Rate) {
			return fmt.Errorf("rate %v: want records per second above 0 and at most 1e9", a.Rate)
		}
		if a.Kind == "burst" && a.Burst < 1 {
			return fmt.Errorf("burst of %d records: want at least 1", a.Burst)
		}
	case "ramp":
		if !good(a.Rate) || !good(a.To) {
			return fmt.Errorf("ramp from %v to %v: want records per second above 0 and at most 1e9", a.Rate, a.To)
		}
		if a.Over <= 0 {
			return fmt.Errorf("ramp over %v: it needs a duration", a.Over)
		}
	case "replay":
		for i := 1; i < len(a.Times); i++ {
			if a.Times[i] < a.Times[i-1] {
				return fmt.Errorf("replay: time %d lies before the one in front of it", i)
			}
		}
	default:
		return fmt.Errorf("arrivals of kind %q: want constant, poisson, burst, ramp or replay", a.Kind)
	}
	return nil
}

// Schedule is the due times of one producer, as durations from the start of the
// run, ascending. Not for several goroutines.
type Schedule struct {
	a         Arrivals
	k         int64 // of the record that is due next
	step      int64
	random    *rand.Rand
	at        float64 // poisson: seconds
	perSecond float64 // poisson: of this share
}

// Schedule gives share number share of of: the shares together are the load.
// It panics when a does not pass Check or the share lies outside.
func (a Arrivals) Schedule(share, of int) *Schedule {
	if share < 0 || share >= of {
		panic(fmt.Sprintf("BUG: share %d of %d", share, of))
	}
	if err := a.Check(); err != nil {
		panic("BUG: " + err.Error())
	}
	s := &Schedule{a: a, k: int64(share), step: int64(of)}
	if a.Kind == "poisson" {
		// Poisson streams add up to one: each share is a stream of its own.
		s.random = rand.New(rand.NewPCG(a.Seed, uint64(share)))
		s.perSecond = a.Rate / float64(of)
	}
	return s
}

// Next gives the next due time; false: the schedule is over (replay only).
// Times are computed from the record's number, so that rounding never adds up.
func (s *Schedule) Next() (time.Duration, bool) {
	k := s.k
	s.k += s.step
	switch s.a.Kind {
	case "constant":
		return seconds(float64(k) / s.a.Rate), true
	case "poisson":
		s.at += s.random.ExpFloat64() / s.perSecond
		return seconds(s.at), true
	case "burst":
		b := int64(s.a.Burst)
		return seconds(float64(k/b*b) / s.a.Rate), true
	case "ramp":
		return seconds(s.a.rampTime(float64(k))), true
	default:
		if k >= int64(len(s.a.Times)) {
			return 0, false
		}
		return s.a.Times[k], true
	}
}

// rampTime solves rate*t + (to-rate)*t^2/(2*over) = k for t, in the form that
// loses no digits when the slope is small; after over the rate stays.
func (a Arrivals) rampTime(k float64) float64 {
	over := a.Over.Seconds()
	if whole := (a.Rate + a.To) / 2 * over; k >= whole {
		return over + (k-whole)/a.To
	}
	slope := (a.To - a.Rate) / over
	return 2 * k / (a.Rate + math.Sqrt(a.Rate*a.Rate+2*slope*k))
}

// MeanRate is the load's records per second over its first d.
func (a Arrivals) MeanRate(d time.Duration) float64 {
	t := d.Seconds()
	if t <= 0 {
		return a.Rate
	}
	switch a.Kind {
	case "ramp":
		over := a.Over.Seconds()
		if t <= over {
			return a.Rate + (a.To-a.Rate)*t/over/2
		}
		return ((a.Rate+a.To)/2*over + a.To*(t-over)) / t
	case "replay":
		n := 0
		for n < len(a.Times) && a.Times[n] < d {
			n++
		}
		return float64(n) / t
	}
	return a.Rate
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
