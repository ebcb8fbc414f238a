package agent

import (
	"context"
	"fmt"
	"slices"

	"sublet/wire"
)

// When an agent goes round in circles. A call counts with its result: one that is repeated until its result changes is none.
const (
	hintAfter   = 3 // the same call: its result gets a note for the model
	sameCalls   = 5 // in a row: somebody is asked
	cycleCalls  = 8 // a cycle must be as long as this, and have been gone through
	cycleRounds = 3 // times
	maxCycle    = 8 // calls in one round
)

// circles is what an agent has called, to see that it repeats itself.
type circles struct {
	count map[string]int // of each call with its result
	last  []string       // the newest calls with their results, the latest last
}

// add takes in a call and returns how often it has given this result.
func (c *circles) add(key string) int {
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[key]++
	c.last = append(c.last, key)
	if most := maxCycle * (cycleRounds + 1); len(c.last) > most {
		c.last = slices.Delete(c.last, 0, len(c.last)-most)
	}
	return c.count[key]
}

// period returns how many calls the agent repeats, and how many times it has made them; 0 where it does not.
func (c *circles) period() (period, rounds int) {
	n := len(c.last)
	for period = 1; period <= maxCycle; period++ {
		same := 0 // calls at the end that equal the one a period before
		for same+period < n && c.last[n-1-same] == c.last[n-1-same-period] {
			same++
		}
		same += period
		if period == 1 && same >= sameCalls || period > 1 && same >= max(cycleCalls, cycleRounds*period) {
			return period, same / period
		}
	}
	return 0, 0
}

// remind adds a note to a result that a call gave before. Only the model gets the note; the result is stored without it.
func (r *runner) remind(d *finished) {
	n := r.circles.add(d.call.name + "\x00" + string(d.call.args) + "\x00" + d.result.Content)
	if n >= hintAfter {
		d.result.Content += fmt.Sprintf("\n[this is the same call with the same result, %d times now; try something else, or say what is in the way]", n)
	}
}

// leaveCircle asks whether an agent that goes round in circles may go on. The error is a *CircleError where it may not. What
// the user says goes to the model with the newest result, and lets the agent go on whatever they answered.
func (r *runner) leaveCircle(ctx context.Context, calls []call) error {
	period, rounds := r.circles.period()
	if period == 0 {
		return nil
	}
	last := calls[len(calls)-1]
	what := fmt.Sprintf("the same call of %s gave the same result %d times in a row", clip(clean(last.name), 100), rounds)
	if period > 1 {
		what = fmt.Sprintf("the same %d calls gave the same results %d times in a row, the last of them of %s", period, rounds, clip(clean(last.name), 100))
	}
	d, err := r.t.Approver.Approve(ctx, Question{
		Agent: r.name, Role: r.t.Role.Name, Tool: wire.ToolContinue, ExecutionID: wire.ExecutionID(wire.NewID()),
		Arguments: objectOr(string(last.args)), GoOn: what,
	})
	if err != nil && ctx.Err() == nil {
		r.log.Warn("nobody could be asked whether to go on", "err", err)
	}
	if !d.Allowed && d.Comment == "" {
		return &CircleError{What: what + ": " + clip(clean(string(last.args)), 200)}
	}
	r.circles = circles{}
	if parts := r.entries[len(r.entries)-1].msg.Parts; d.Comment != "" && len(parts) > 0 {
		parts[len(parts)-1].ToolResult.Content += "\n[the user says: " + d.Comment + "]"
	}
	return nil
}
