package lab

import (
	"context"
	"fmt"
	"time"
)

// RunStep loads at a rate for as long as a step takes.
type RunStep func(ctx context.Context, rate float64, hold time.Duration) (Step, error)

// Ramp tries the rates of a plan, judges each step and stops as the rules say;
// with confirm it holds 80 % of the sustainable rate for that long at the end.
// said is told each step as it is judged. When ctx ends it returns what there is.
func Ramp(ctx context.Context, p Plan, l Limits, hold, confirm time.Duration, run RunStep, said func(Step, []Finding)) (*RampResult, error) {
	r := &RampResult{Plan: p}
	var done []Tried
	for {
		rate, more := p.Next(done)
		if !more {
			break
		}
		s, err := run(ctx, rate, hold)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			break // a step cut short is judged by nothing
		}
		fs := Judge(s, r.Steps, l)
		r.Steps, r.Findings = append(r.Steps, s), append(r.Findings, fs)
		done = append(done, Tried{rate, Stops(fs)})
		said(s, fs)
	}
	r.Outcome = Conclude(r.Steps, r.Findings)
	if len(r.Steps) > 0 {
		r.Missing = NotMeasured(r.Steps[0])
	}
	if confirm > 0 && r.Outcome.Sustainable > 0 && ctx.Err() == nil {
		s, err := run(ctx, 0.8*r.Outcome.Sustainable, confirm)
		if err != nil {
			return nil, err
		}
		if ctx.Err() == nil {
			r.Confirm = &s
			if fs := Judge(s, nil, l); Stops(fs) {
				r.Outcome.Text += fmt.Sprintf("; but 80 %% of it did not hold for %v: %s", confirm, fs[0].Evidence)
			}
		}
	}
	return r, nil
}

// StepOf is a load as a step of a ramp: its first settle is left out.
func StepOf(p *Produced, settle time.Duration) Step {
	from, to := 0, len(p.Windows)
	for from < to && p.Windows[from].AtS < settle.Seconds()-1e-3 {
		from++
	}
	// The last window is that of the drain, unless it is a whole one.
	if to-from > 1 && p.Windows[to-1].Seconds < 0.5*p.Windows[from].Seconds {
		to--
	}
	if from == to {
		from = 0
	}
	part := Join(p.Windows[from:to])
	// Failures count wherever they fell, in the settling and in the drain too.
	s := Step{Offered: p.Offered, Achieved: part.Rate, Records: part.Records + p.All.Failed, Errors: p.All.Errors, Hold: part.Seconds, Limited: p.Limited}
	if part.Intended.P99Us != nil {
		s.P99Us = float64(*part.Intended.P99Us)
	}
	for _, w := range p.Windows[from:to] {
		s.Windows = append(s.Windows, w.Rate())
	}
	return s
}
