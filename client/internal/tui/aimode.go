package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

// asked is a question whose turn has not begun yet.
type asked struct {
	*wire.AgentRequest
	echoed bool // its text was printed
	cancel bool // its turn is to be cancelled when it begins
	unsent bool // it waits for a connection to the daemon
	posted bool // it is on its way to the daemon, or there
}

// askWait bounds how long questions wait for a connection to the daemon.
const askWait = 20 * time.Second

// ask sends a question with the user's directory, latest commands and their output, when the daemon is connected. With steer the
// running turn takes it in; otherwise it is answered after that turn.
func (m *model) ask(prompt string, steer bool) {
	a := &asked{AgentRequest: &wire.AgentRequest{
		RequestID: wire.RequestID(wire.NewID()), Agent: m.chosenAgent, Prompt: prompt,
		Context: wire.RequestContext{Cwd: wire.OSString(m.Shell.Dir()), RecentCommands: slices.Clone(m.recent)},
		Options: wire.RequestOptions{Model: m.chosenModel, Thinking: m.thinking, Steer: steer},
	}}
	if n := len(m.recent); n > 0 {
		a.Context.RecentOutput = m.recent[n-1].OutputTail
	}
	first := m.turn == nil && len(m.waiting) == 0
	m.waiting = append(m.waiting, a)
	if !m.Daemon.Connected() {
		a.unsent = true
		m.after(askWait, func() {
			if a.unsent && slices.Contains(m.waiting, a) {
				m.giveUpWaiting()
			}
		})
		return
	}
	m.sendAsk(a, first)
}

// sendAsk sends a question to the daemon. first reports that it is next: its text is printed now, not when its turn begins.
func (m *model) sendAsk(a *asked, first bool) {
	a.unsent = false
	if first {
		m.echo(a.Prompt)
		a.echoed = true
	}
	m.task(func(ctx context.Context) then {
		err := m.Daemon.Post(ctx, a.AgentRequest)
		return func() {
			if err != nil {
				m.takeWaiting(a.RequestID)
				m.fail("not asked: "+err.Error(), "")
				m.restore(a.Prompt)
				return
			}
			a.posted = true
			if !m.up { // lost since
				m.dropPosted()
			}
		}
	})
}

// dropPosted removes the questions that were sent over a connection that was lost: whether the daemon has them is not known.
func (m *model) dropPosted() {
	m.waiting = slices.DeleteFunc(m.waiting, func(a *asked) bool {
		if a.posted {
			m.note("this question may not have arrived; ask again if no answer comes: " + visible.FirstLine(a.Prompt))
		}
		return a.posted
	})
}

// notify sends msg to the daemon outside the event loop. If that fails, the loop calls failed.
func (m *model) notify(msg wire.Message, failed func(err error)) {
	m.task(func(context.Context) then {
		if err := m.Daemon.Notify(msg); err != nil {
			return func() { failed(err) }
		}
		return nil
	})
}

// sendWaiting sends the questions that waited for the daemon.
func (m *model) sendWaiting() {
	for i, a := range m.waiting {
		if a.unsent {
			m.sendAsk(a, i == 0 && m.turn == nil)
		}
	}
}

// giveUpWaiting prints why the questions that wait for the daemon cannot be asked, and restores them.
func (m *model) giveUpWaiting() {
	var prompts []string
	m.waiting = slices.DeleteFunc(m.waiting, func(a *asked) bool {
		if a.unsent {
			prompts = append(prompts, a.Prompt)
		}
		return a.unsent
	})
	m.fail("no agent can be asked: the daemon is not connected"+detail(m.linkDetail), "your shell works without it; `sublet doctor` shows what is wrong")
	m.restore(strings.Join(prompts, "\n"))
}

// restore puts a question that was not asked back into the line, unless the user has written something else there.
func (m *model) restore(prompt string) {
	if m.ed.Empty() {
		m.ed.Set(prompt)
	}
}

// cancelTurn puts the first question that waits for the daemon back into the line. If none does, it cancels the running turn and its
// command or, if none runs yet, the first question that waits for its turn.
func (m *model) cancelTurn(reason string) {
	for _, a := range m.waiting {
		if a.unsent {
			m.takeWaiting(a.RequestID)
			m.restore(a.Prompt)
			return
		}
	}
	r := &wire.CancelRequest{Reason: reason}
	switch {
	case m.turn != nil:
		r.TurnID, m.turn.cancel = &m.turn.id, true
	case len(m.waiting) > 0:
		r.RequestID, m.waiting[0].cancel = &m.waiting[0].RequestID, true
	default:
		return
	}
	m.notify(r, func(err error) { m.fail("could not stop the turn: "+err.Error(), "") })
}

// withdraw has the daemon drop the newest prompt that waits, whichever window asked it. The window that did gets an Error.
func (m *model) withdraw() {
	if len(m.queued) == 0 {
		return
	}
	r := &wire.CancelRequest{TurnID: &m.queued[len(m.queued)-1].TurnID, Reason: "taken back by the user"}
	m.notify(r, func(err error) { m.fail("could not take it back: "+err.Error(), "") })
}

// next returns a line for each prompt that waits for the running turn, in their order. Those that the daemon has not listed come last.
func (m *model) next() (lines []string) {
	add := func(steer bool, of, prompt, help string) {
		word := "next"
		if steer {
			word = "sent with its next results"
		}
		word = "  " + word + of + ": "
		room := m.w - cells.Width(word+help)
		if room < 8 { // the prompt is more important
			room, help = m.w-cells.Width(word), ""
		}
		lines = append(lines, m.th.Dim.Render(word+cells.Fit(visible.FirstLine(prompt), room)+help))
	}
	for i, q := range m.queued {
		of, help := "", ""
		if !slices.ContainsFunc(m.waiting, func(a *asked) bool { return a.RequestID == q.RequestID }) {
			of = ", asked in another window"
		}
		if i == len(m.queued)-1 {
			help = " · ctrl+q takes it back" // see withdraw
		}
		add(q.Steer, of, q.Prompt, help)
	}
	for _, a := range m.waiting {
		if !slices.ContainsFunc(m.queued, func(q wire.QueuedTurn) bool { return q.RequestID == a.RequestID }) {
			add(a.Options.Steer, "", a.Prompt, "")
		}
	}
	return lines
}

// working returns a line for each agent that works, for the live part of the screen.
func (m *model) working() []string {
	now := m.now()
	spin := m.th.Spin(now) + " "
	var out []string
	t := m.turn
	switch {
	case t != nil && !m.up:
		return []string{m.th.Dim.Render("· " + "the daemon is gone; the result is shown when it is back")}
	case t == nil:
		for i, a := range m.waiting {
			word := "asking…"
			if a.unsent {
				word = "waiting for the daemon · esc gives back: " + visible.FirstLine(a.Prompt)
			} else if a.cancel {
				word = "stopping…"
			} else if i > 0 {
				word = "next: " + visible.FirstLine(a.Prompt)
			}
			out = append(out, spin+m.th.Dim.Render(word))
		}
		return out
	}
	stop := m.th.Dim.Render(" · esc stops") // on the first line only
	if t.cancel {
		stop = m.th.Warn.Render(" · stopping…")
	}
	// line adds a line. It cuts word to the width that the agent's name, the duration and stop leave.
	line := func(who, word string, since time.Time) {
		end := m.th.Dim.Render(" · "+style.Ticking(now.Sub(since))) + stop
		stop = ""
		out = append(out, spin+who+m.th.Dim.Render(cells.Fit(word, max(8, m.w-cells.Width(spin+who+end))))+end)
	}
	for _, s := range t.agents {
		switch {
		case s.phase == "" && len(t.agents) > 1: // it has ended, or has not begun
		case card.IsMain(s.name):
			line("", m.phase(s), t.started)
		default:
			line(m.th.Name(s.name)+" ", m.phase(s), s.since)
		}
	}
	if len(out) == 0 {
		line("", "thinking", t.started)
	}
	return append(out, m.next()...)
}

// phase describes what an agent is doing.
func (m *model) phase(s *speaker) string {
	word := map[string]string{
		wire.PhaseAnalyzing: "reading", wire.PhasePlanning: "planning", wire.PhaseExecuting: "working",
	}[s.phase]
	if word == "" {
		word = "thinking"
	}
	running := slices.ContainsFunc(m.running, func(c *execution) bool { return c.Agent == s.name })
	switch {
	case s.phase == wire.PhaseWaiting:
		word = visible.FirstLine(s.message)
	case running: // its card shows the command
	case s.reasoning != "":
		lines := strings.Split(strings.TrimSpace(s.reasoning), "\n")
		word += ": " + visible.Line(strings.TrimSpace(lines[len(lines)-1]))
	case s.message != "":
		word = visible.FirstLine(s.message)
	}
	return word
}
