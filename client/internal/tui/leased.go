package tui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/cells"
	"sublet/wire"
	"sublet/wire/visible"
)

// card returns the card of an execution, and makes it where there is none.
func (m *model) card(id wire.ExecutionID, agent, tool string) *card {
	c := m.cards[id]
	if c == nil {
		c = &card{id: id, agent: agent, tool: tool}
		m.cards[id] = c
	}
	if c.tool == "" {
		c.tool = tool
	}
	if c.agent == "" {
		c.agent = agent
	}
	return c
}

// show puts a card among the running ones.
func (m *model) show(c *card) {
	if !c.done && !slices.Contains(m.live, c) {
		m.live = append(m.live, c)
	}
}

// onLeased deals with an agent's command in the user's shell.
func (m *model) onLeased(event any) {
	switch e := event.(type) {
	case lender.LeasedStarted:
		m.own.leased, m.back, m.ahead = true, false, ""
		m.flushText("") // what was said before comes first
		c := m.card(e.ExecutionID, e.Agent, "bash")
		c.command, c.leased, c.shell, c.started, c.turn, c.reach = e.Command, true, m.opt.Name, m.now(), e.TurnID, e.Reach
		m.show(c)
		m.tryHand()
	case lender.LeasedOutput:
		m.card(e.ExecutionID, "", "bash").out.write(e.Data)
		if m.held() && m.hand.id == e.ExecutionID {
			m.paint.Raw(e.Data)
		}
	case lender.LeasedKeyboard:
		m.onKeyboard(e)
	case lender.LeasedEnded:
		m.leasedEnded(e)
	}
}

// leasedEnded is how a command ended, as the shell reports it; the daemon's CommandResult may come before or after.
func (m *model) leasedEnded(e lender.LeasedEnded) {
	c := m.card(e.ExecutionID, "", "bash")
	forced := e.Result.Signal != "" || e.Result.Status != wire.StatusOK
	if secret := m.held() && (m.hand.why == "password" || m.hand.why == "secret"); secret || forced && c.asked {
		m.keys.Mute(handMute) // the rest of a secret is nobody's
	}
	m.endHand(e.ExecutionID)
	if !m.own.ai || !m.offered.IsZero() {
		m.hint = nil
	}
	m.ahead, m.offered = "", time.Time{}
	c.shellSaid, c.taken = true, m.back
	c.exit, c.signal, c.took = e.Result.ExitCode, e.Result.Signal, e.Result.Duration
	c.output, c.cut, c.spool = e.Result.Output, e.Result.Truncated, e.Result.SpoolPath // the daemon's has notes for the model
	if c.status == "" {
		c.status = cmp.Or(e.Status, e.Result.Status)
	}
	if c.started.IsZero() {
		c.started = m.now().Add(-e.Result.Duration)
	}
	var after []string
	for _, p := range e.Result.Leftovers {
		after = append(after, "still running: "+p.String())
	}
	if e.Changed != "" {
		after = append(after, "changed in your shell: "+e.Changed+" (/undo-shell puts it back)")
	}
	if !c.printed {
		c.notes = append(c.notes, after...)
		m.finish(c)
		return
	}
	for _, line := range after {
		m.emit(kindCard, "    "+m.th.Dim.Render(cells.Fit(visible.Line(line), m.w-4)))
	}
}

// finish prints a card that ended.
func (m *model) finish(c *card) {
	c.done = true
	m.live = slices.DeleteFunc(m.live, func(o *card) bool { return o == c })
	if c.printed {
		return
	}
	c.printed = true
	if e := c.place; e != nil {
		e.text, e.ready = c.Finished(&m.th, m.w), true
		c.place = nil
	} else {
		m.emit(kindCard, c.Finished(&m.th, m.w))
	}
	c.out = tail{}
	if len(m.cards) > 200 { // those whose other half never came
		maps.DeleteFunc(m.cards, func(_ wire.ExecutionID, o *card) bool { return o.printed && o != c })
	}
	m.kept = append(m.kept, c)
	if len(m.kept) > 50 {
		m.kept = append(m.kept[:0:0], m.kept[len(m.kept)-50:]...)
	}
	m.openAt = 0
}

// shellWord bounds how long a finished card waits for the shell's report on what changed in it, which comes after the
// result; what is printed after the card waits with it, below.
const shellWord = 700 * time.Millisecond

// reserve keeps a finished card's place in the scrollback until the shell has reported what changed.
func (m *model) reserve(c *card) {
	if c.place != nil || c.printed {
		return
	}
	m.live = slices.DeleteFunc(m.live, func(o *card) bool { return o == c })
	c.place = &entry{kind: kindCard, card: c}
	m.out = append(m.out, c.place)
	m.after(shellWord, func() {
		if c.place != nil {
			m.finish(c)
		}
	})
}
