package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

// asked is a question on its way: not begun yet.
type asked struct {
	request wire.RequestID
	prompt  string
	message *wire.AgentRequest
	said    bool // printed already
	cancel  bool // to be cancelled as soon as it begins
	unsent  bool // there is no daemon yet
}

// askWait bounds how long a question waits for the daemon to come.
const askWait = 20 * time.Second

// ask sends a question with what the user had in front of them, at once or as soon as the daemon is there. steer gives it to
// the turn that runs; else it waits for that one's end.
func (m *model) ask(prompt string, steer bool) {
	a := &asked{request: wire.RequestID(wire.NewID()), prompt: prompt}
	a.message = &wire.AgentRequest{
		RequestID: a.request, Prompt: prompt,
		Context: wire.RequestContext{Cwd: wire.OSString(m.Shell.Dir()), RecentCommands: slices.Clone(m.recent)},
		Options: wire.RequestOptions{Model: m.chosenModel, Thinking: m.thinking, Steer: steer},
	}
	if n := len(m.recent); n > 0 {
		a.message.Context.RecentOutput = m.recent[n-1].OutputTail
	}
	first := m.turn == nil && len(m.waiting) == 0
	m.waiting = append(m.waiting, a)
	if !m.Daemon.Connected() {
		a.unsent = true
		m.after(askWait, func() { m.onAskOverdue(a) })
		return
	}
	m.sendAsk(a, first)
}

func (m *model) sendAsk(a *asked, first bool) {
	a.unsent = false
	if first {
		m.echo(a.prompt)
		a.said = true
	}
	daemon := m.Daemon
	m.task(func(ctx context.Context) then {
		if err := daemon.Ask(ctx, a.message); err != nil {
			return func() { m.onAskFailed(a, err) }
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

// giveBack takes a question that was not sent out of the line, and puts it where it can be sent again.
func (m *model) giveBack(a *asked) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o *asked) bool { return o == a })
	if m.ed.Empty() {
		m.ed.Set(a.prompt)
	}
}

// onAskOverdue prints why nobody can be asked.
func (m *model) onAskOverdue(a *asked) {
	if a.unsent && slices.Contains(m.waiting, a) {
		m.fail("no agent can be asked: the daemon is not connected"+detail(m.linkWord), "your shell works without it; sublet doctor says what is wrong")
		m.giveBack(a)
	}
}

// onAskFailed gives a question back that did not reach the daemon.
func (m *model) onAskFailed(a *asked, err error) {
	if slices.Contains(m.waiting, a) {
		m.fail("not asked: "+err.Error(), "")
		m.giveBack(a)
	}
}

// cancelTurn ends the running turn and its command, or, where none runs yet, the question on its way.
func (m *model) cancelTurn(reason string) {
	for _, a := range m.waiting {
		if a.unsent {
			m.giveBack(a)
			return
		}
	}
	r := &wire.CancelRequest{Reason: reason}
	switch {
	case m.turn != nil:
		id := m.turn.id
		r.TurnID = &id
		m.turn.cancel = true
	case len(m.waiting) > 0:
		id := m.waiting[0].request
		r.RequestID = &id
		m.waiting[0].cancel = true
	default:
		return
	}
	daemon := m.Daemon
	m.task(func(ctx context.Context) then {
		if err := daemon.Cancel(ctx, r); err != nil {
			return func() { m.fail("could not stop it: "+err.Error(), "") }
		}
		return nil
	})
}

// working is what the agents do now, one line for each, for the live part.
func (m *model) working() []string {
	now := m.now()
	spin := m.th.Spin(now) + " "
	var out []string
	t := m.turn
	switch {
	case t != nil && m.loss != nil:
		return []string{m.th.Dim.Render("· " + "the daemon is gone; what came of this is told when it is back")}
	case t == nil:
		for i, a := range m.waiting {
			word := "asking…"
			if a.unsent {
				word = "waiting for the daemon" + detail(m.linkWord) + " · esc gives the question back"
			} else if a.cancel {
				word = "stopping…"
			} else if i > 0 {
				word = "next: " + visible.FirstLine(a.prompt)
			}
			out = append(out, spin+m.th.Dim.Render(word))
		}
		return out
	}
	stop := m.th.Dim.Render(" · esc stops")
	if t.cancel {
		stop = m.th.Warn.Render(" · stopping…")
	}
	// How long it takes, and how it is stopped, stand there whatever else there is to say.
	line := func(who, what string, since time.Time) {
		end := m.th.Dim.Render(" · "+style.Ticking(now.Sub(since))) + stop
		stop = ""
		out = append(out, spin+who+m.th.Dim.Render(cells.Fit(what, max(8, m.w-cells.Width(spin+who+end))))+end)
	}
	for _, name := range t.order {
		s := t.agents[name]
		switch {
		case s.phase == "" && len(t.order) > 1:
		case name == "" || name == "orchestrator":
			line("", m.phase(s), t.started)
		default:
			line(m.th.Agent.Render(visible.Line(name))+" ", m.phase(s), s.since)
		}
	}
	if len(out) == 0 {
		line("", "thinking", t.started)
	}
	for _, a := range m.waiting {
		word := "  next: "
		if a.message.Options.Steer {
			word = "  told with its next results: "
		}
		out = append(out, m.th.Dim.Render(word+visible.FirstLine(a.prompt)))
	}
	return out
}

// phase says what an agent does, in words.
func (m *model) phase(s *speaker) string {
	word := map[string]string{
		wire.PhaseAnalyzing: "reading", wire.PhasePlanning: "planning", wire.PhaseExecuting: "working",
	}[s.phase]
	if word == "" {
		word = "thinking"
	}
	running := slices.ContainsFunc(m.live, func(c *execution) bool { return c.Agent == s.name })
	switch {
	case s.phase == wire.PhaseWaiting:
		word = visible.FirstLine(s.message)
	case running: // its card says what
	case s.reasoning != "":
		lines := strings.Split(strings.TrimSpace(s.reasoning), "\n")
		word += ": " + strings.TrimSpace(lines[len(lines)-1])
	case s.message != "":
		word = visible.FirstLine(s.message)
	}
	return word
}
