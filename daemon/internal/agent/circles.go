package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// Limits for an agent that repeats itself. A call is compared together with its result, so polling until a result changes does
// not count.
const (
	hintAfter   = 3 // the same call: a note for the model is added to its result
	sameCalls   = 5 // the same call in a row: the user is asked
	cycleCalls  = 8 // a repeated sequence counts from this many calls in all
	cycleRounds = 3 // and from this many repetitions
	maxCycle    = 8 // calls in one sequence
)

// circles records an agent's calls to detect repetition.
type circles struct {
	last []string // the newest calls with their results, the newest last
}

// add records key, a call with its result, and returns how often it is among the newest maxCycle*(cycleRounds+1) calls, this one included.
func (c *circles) add(key string) (n int) {
	c.last = append(c.last, key)
	if most := maxCycle * (cycleRounds + 1); len(c.last) > most {
		c.last = slices.Delete(c.last, 0, len(c.last)-most)
	}
	for _, k := range c.last {
		if k == key {
			n++
		}
	}
	return n
}

// period returns the length of the sequence of calls that the agent repeats and how often it has done so; 0 if it does not.
func (c *circles) period() (period, rounds int) {
	n := len(c.last)
	for period = 1; period <= maxCycle; period++ {
		same := 0 // calls at the end that equal the call one period before
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

// remind adds a note to a repeated result. Only the model gets the note; the result is stored without it.
func (r *runner) remind(d *finished) {
	content := strings.ReplaceAll(d.result.Content, d.result.SpoolPath, "") // a long result has a file of its own
	n := r.circles.add(d.call.name + "\x00" + string(d.call.args) + "\x00" + content)
	if n >= hintAfter {
		d.result.Content += fmt.Sprintf("\n[this is the same call with the same result, %d times now; try something else, or say what is in the way]", n)
	}
}

// leaveCircle asks the user whether an agent that repeats itself may go on, and returns an error if not. A comment goes
// to the model with the newest result, and lets the agent go on whatever the answer was.
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
		Arguments: provider.ArgumentsObject(last.args), Continue: what,
	})
	if err != nil && ctx.Err() == nil {
		r.log.Warn("nobody could be asked whether to go on", "err", err)
	}
	if !d.Allowed && d.Comment == "" {
		return &workError{"stopped: " + what + ": " + clip(clean(string(last.args)), 200), "say what it should try instead, or `go on`"}
	}
	r.circles = circles{}
	if parts := r.entries[len(r.entries)-1].msg.Parts; d.Comment != "" && len(parts) > 0 {
		parts[len(parts)-1].ToolResult.Content += "\n[the user says: " + d.Comment + "]"
	}
	return nil
}
