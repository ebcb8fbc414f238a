package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sublet/wire"
)

// asked is a question on its way: not begun yet.
type asked struct {
	request wire.RequestID
	prompt  string
	message *wire.AgentRequest
	said    bool // printed already
	cancel  bool // to be cancelled as soon as it begins
	unsent  bool // there is no daemon yet
	inShell bool // asked with ? from command mode
}

// askFailed tells that a question did not reach the daemon.
type askFailed struct {
	request wire.RequestID
	err     error
}

// askWait bounds how long a question waits for the daemon to come.
const askWait = 20 * time.Second

// askOverdue says that a question has waited long enough.
type askOverdue struct{ a *asked }

// ask sends a question with what the user had in front of them, at once or as soon as the daemon is there.
func (m *model) ask(prompt string) {
	a := &asked{request: wire.RequestID(wire.NewID()), prompt: prompt, inShell: !m.ai}
	a.message = &wire.AgentRequest{
		RequestID: a.request, Prompt: prompt,
		Context: wire.RequestContext{Cwd: wire.OSString(m.shell.Dir()), RecentCommands: slices.Clone(m.recent)},
	}
	if n := len(m.recent); n > 0 {
		a.message.Context.RecentOutput = m.recent[n-1].OutputTail
	}
	first := m.turn == nil && len(m.waiting) == 0
	m.waiting = append(m.waiting, a)
	if !m.daemon.Connected() {
		a.unsent = true
		m.after(askWait, askOverdue{a})
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
	daemon := m.daemon
	m.task(func(ctx context.Context) tea.Msg {
		if err := daemon.Ask(ctx, a.message); err != nil {
			return askFailed{a.request, err}
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
	if m.ed.empty() {
		m.ai = !a.inShell
		if a.inShell {
			m.ed.set("?" + a.prompt)
		} else {
			m.ed.set(a.prompt)
		}
	}
	m.dirty = true
}

// onAskOverdue tells why nobody can be asked.
func (m *model) onAskOverdue(a *asked) {
	if a.unsent && slices.Contains(m.waiting, a) {
		m.fail("no agent can be asked: the daemon is not connected"+detail(m.linkWord), "your shell works without it; sublet doctor says what is wrong")
		m.giveBack(a)
	}
}

func (m *model) onAskFailed(f askFailed) {
	for _, a := range m.waiting {
		if a.request == f.request {
			m.fail("not asked: "+f.err.Error(), "")
			m.giveBack(a)
			return
		}
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
	m.dirty = true
	daemon := m.daemon
	m.task(func(ctx context.Context) tea.Msg {
		if err := daemon.Cancel(ctx, r); err != nil {
			return taskFailed{"could not stop it: " + err.Error(), ""}
		}
		return nil
	})
}

// summary of what the agents do now, one line for each, for the live part.
func (m *model) working() []string {
	now := m.now()
	spin := m.th.accent.Render(m.th.spin(m.spinAt))
	var out []string
	t := m.turn
	if t != nil && m.lost {
		return []string{m.th.dim.Render(m.th.glyph("· ", "- ") + "the daemon is gone; what came of this is told when it is back")}
	}
	if t == nil {
		for i, a := range m.waiting {
			word := "asking…"
			if a.unsent {
				word = "waiting for the daemon" + detail(m.linkWord) + " · esc gives the question back"
			} else if a.cancel {
				word = "stopping…"
			} else if i > 0 {
				word = "next: " + firstLine(visible(a.prompt))
			}
			out = append(out, spin+" "+m.th.dim.Render(word))
		}
		return out
	}
	for _, name := range t.order {
		s := t.agents[name]
		if s.phase == "" && len(t.order) > 1 {
			continue
		}
		line := spin + " "
		if name != "" && name != "orchestrator" {
			line += m.th.agent.Render(visibleLine(name)) + " "
		}
		line += m.phase(s)
		if name == "" || name == "orchestrator" {
			line += m.th.dim.Render(" · " + ticking(now.Sub(t.started)))
		} else {
			line += m.th.dim.Render(" · " + ticking(now.Sub(s.since)))
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		out = append(out, spin+" "+m.th.dim.Render("thinking · "+ticking(now.Sub(t.started))))
	}
	if t.cancel {
		out[0] += m.th.warn.Render(" · stopping…")
	} else if m.ai {
		out[0] += m.th.dim.Render(" · esc stops")
	} else {
		out[0] += m.th.dim.Render(" · ctrl+c stops")
	}
	for _, a := range m.waiting {
		out = append(out, m.th.dim.Render("  next: "+firstLine(visible(a.prompt))))
	}
	return out
}

// phase says what an agent does, in words.
func (m *model) phase(s *speaker) string {
	word := map[string]string{
		wire.PhaseAnalyzing: "reading", wire.PhasePlanning: "planning", wire.PhaseGenerating: "thinking", wire.PhaseExecuting: "working",
	}[s.phase]
	if word == "" {
		word = "thinking"
	}
	running := slices.ContainsFunc(m.live, func(c *card) bool { return c.agent == s.name })
	switch {
	case running: // its card says what
	case s.reasoning != "":
		lines := strings.Split(strings.TrimSpace(s.reasoning), "\n")
		word += ": " + strings.TrimSpace(lines[len(lines)-1])
	case s.message != "":
		word = visibleLine(firstLine(s.message))
	}
	return m.th.dim.Render(word)
}
