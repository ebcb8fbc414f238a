package tui

import (
	"cmp"
	"slices"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/line"
	"sublet/wire"
	"sublet/wire/visible"
)

// execution is a call of a tool that the screen shows.
type execution struct {
	card.Card
	id            wire.ExecutionID
	turn          wire.TurnID
	printed       bool
	asked         bool // it has asked for the keyboard, so what is typed at its end may be for it
	seen          int  // lines of its output when it last gave the keyboard back
	shellReported bool // LeasedEnded was received
}

// maxKept is how many finished cards ^O can print.
const maxKept = 50

// executions are the calls of tools that the screen shows.
type executions struct {
	cards    map[wire.ExecutionID]*execution
	running  []*execution // that have not ended, in the order in which they began
	finished []*execution // that have ended, newest last, for ^O
	openAt   int          // how many of finished, from the end, ^O has printed in full
}

// card returns the execution of an ID. It makes one if there is none.
func (x *executions) card(id wire.ExecutionID, agent, tool string) *execution {
	if x.cards == nil {
		x.cards = map[wire.ExecutionID]*execution{}
	}
	c := x.cards[id]
	if c == nil {
		c = &execution{id: id}
		x.cards[id] = c
	}
	c.Tool, c.Agent = cmp.Or(c.Tool, tool), cmp.Or(c.Agent, agent)
	return c
}

// show adds a card to the running ones.
func (x *executions) show(c *execution) {
	if !c.printed && !slices.Contains(x.running, c) {
		x.running = append(x.running, c)
	}
}

// keep records that a card was printed.
func (x *executions) keep(c *execution) {
	x.finished = append(x.finished, c)
	x.finished = x.finished[max(0, len(x.finished)-maxKept):]
	x.openAt = 0
}

// open returns the newest card that has not been opened, then the newest again; nil if there is none.
func (x *executions) open() *execution {
	n := len(x.finished)
	if n == 0 {
		return nil
	}
	x.openAt = x.openAt%n + 1
	return x.finished[n-x.openAt]
}

// onLeased handles an event of an agent's command in the user's shell.
func (m *model) onLeased(event any) {
	switch e := event.(type) {
	case lender.LeasedStarted:
		m.own.leased, m.userEnded, m.ahead = true, "", line.Line{}
		m.flushText("") // the text before the command is printed above it
		c := m.card(e.ExecutionID, e.Agent, "bash")
		c.Command, c.Leased, c.Shell, c.Started, c.turn, c.Reach = e.Command, true, m.Name, m.now(), e.TurnID, e.Reach
		m.show(c)
		m.tryHandOver()
	case lender.LeasedOutput:
		m.card(e.ExecutionID, "", "bash").Out.Write(e.Data)
		if m.programHasTerminal() && m.handover.id == e.ExecutionID {
			m.paint.Raw(e.Data)
		}
	case lender.LeasedKeyboard:
		m.onKeyboard(e)
	case lender.LeasedEnded:
		m.leasedEnded(e)
	}
}

// leasedEnded handles the shell's report of a command's end. The daemon's CommandResult comes after it, unless the daemon gave the
// command up.
func (m *model) leasedEnded(e lender.LeasedEnded) {
	c := m.card(e.ExecutionID, "", "bash")
	forced := e.Result.Signal != "" || e.Result.Status != wire.StatusOK
	if secret := m.programHasTerminal() && (m.handover.why == "password" || m.handover.why == "secret"); secret || forced && c.asked {
		m.keys.Mute(muteAfterSecret) // the rest of a secret must not reach the shell or the line
	}
	m.endHandOver(e.ExecutionID)
	if !m.own.ai() || m.again.what == "enter" { // the hint offers to take the shell back
		m.hint = ""
	}
	m.ahead, m.again = line.Line{}, again{}
	c.shellReported, c.UserEnded, m.dir = true, m.userEnded, e.Result.Dir
	c.Exit, c.Signal, c.Took, c.Job = e.Result.ExitCode, e.Result.Signal, e.Result.Duration, e.Result.JobPID != 0
	c.Output, c.Cut, c.Spool = e.Result.Output, e.Result.Truncated, e.Result.SpoolPath // the daemon's result also has notes for the model
	if c.Status == "" {
		c.Status = cmp.Or(e.Status, e.Result.Status)
	}
	if c.Started.IsZero() {
		c.Started = m.now().Add(-e.Result.Duration)
	}
	var after []string
	for _, p := range e.Result.Leftovers {
		after = append(after, "still running: "+p.String())
	}
	if e.Result.Stays != "" {
		after = append(after, "it could not go on as a job: "+e.Result.Stays)
	}
	if e.Result.Lost != "" {
		after = append(after, e.Result.Lost+" had no effect on your shell: the command ran in a child of it")
	}
	if e.Changed != "" {
		after = append(after, "changed in your shell: "+e.Changed+" (/undo-shell puts it back)")
	}
	if c.printed || m.turn == nil || m.turn.id != c.turn { // no CommandResult follows
		delete(m.cards, e.ExecutionID)
	}
	if !c.printed {
		c.Notes = append(c.Notes, after...)
		m.finish(c)
		return
	}
	for _, line := range after {
		m.emit(kindCard, "    "+m.th.Dim.Render(cells.Fit(visible.Line(line), m.w-4)))
	}
}

// finish prints the card of a call that has ended.
func (m *model) finish(c *execution) {
	m.running = slices.DeleteFunc(m.running, func(o *execution) bool { return o == c })
	if c.printed {
		return
	}
	c.printed = true
	m.emit(kindCard, c.Finished(&m.th, m.w))
	c.Out = card.Tail{}
	m.keep(c)
}
