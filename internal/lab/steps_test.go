package lab

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Shows: a ramp over a target of known capacity finds it, by loads and rules
// together, and a ramp that is interrupted keeps its steps.

// capacity takes one record each 1/rate and acknowledges it at once.
func TestRampFindsTheCapacity(t *testing.T) {
	const capacity = 1000.0
	plan, err := ParsePlan("200..4k")
	if err != nil {
		t.Fatal(err)
	}
	payload := mustPool(t, "zero", "10")
	synctest.Test(t, func(t *testing.T) {
		loadAt := func(ctx context.Context, rate float64, hold time.Duration) (Step, error) {
			f := (&fake{slow: time.Duration(float64(time.Second) / capacity)}).begin()
			defer f.end()
			const settle = 2 * time.Second
			p, err := Produce(ctx, Load{Arrivals: constant(rate), Duration: hold + settle, Payload: payload, plainSleep: true}, []Sender{f})
			if err != nil {
				return Step{}, err
			}
			return StepOf(p, settle), nil
		}
		steps := 0
		r, err := Ramp(t.Context(), plan, Limits{}, 10*time.Second, 20*time.Second, loadAt, func(Step, []Finding) { steps++ })
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Outcome; o.Sustainable < 950 || o.Sustainable > 1000*1.02 || o.StoppedAt > 1.06*capacity || o.Why[0].Rule != "achieved" {
			t.Errorf("capacity 1,000: %+v", o)
		}
		if steps != len(r.Steps) || r.Confirm == nil || math.Abs(r.Confirm.Achieved-0.8*r.Outcome.Sustainable) > 10 || strings.Contains(r.Outcome.Text, "did not hold") {
			t.Errorf("%d steps told of %d, confirmed %+v", steps, len(r.Steps), r.Confirm)
		}

		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		r, err = Ramp(ctx, plan, Limits{}, 10*time.Second, 0, loadAt, func(Step, []Finding) {})
		if err != nil || len(r.Steps) != 2 || r.Outcome.Sustainable != 400 {
			t.Errorf("interrupted after 30 s of steps of 12 s: %v, %+v", err, r)
		}
	})
}
