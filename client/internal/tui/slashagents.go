package tui

import (
	"slices"
	"strings"
	"time"

	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

// slashAgents lists the agents of this conversation, or does something with one.
func (m *model) slashAgents(args string) {
	op, name, _ := strings.Cut(args, " ")
	r := &wire.AgentsRequest{Op: "list"}
	if args != "" {
		if name = strings.TrimSpace(name); name == "" || !slices.Contains([]string{"show", "stop", "merge", "drop"}, op) {
			m.fail("/agents takes show, stop, merge or drop, and the name of an agent", "/agents lists them")
			return
		}
		r.Op, r.Name = op, name
	}
	request(m, "/agents", r, func(reply *wire.AgentsReply) {
		switch r.Op {
		case "stop":
			m.note(visible.Line(name) + " is being ended")
		case "merge":
			m.note("what " + visible.Line(name) + " changed is in your project now, not committed")
		case "drop":
			m.note("the working tree of " + visible.Line(name) + " is gone")
		case "show":
			m.emit(kindText, visible.Text(reply.Text))
		default:
			m.listAgents(reply.Agents)
		}
	})
}

func (m *model) listAgents(agents []wire.SubAgent) {
	if len(agents) == 0 {
		m.note("no agent was started in this conversation")
		return
	}
	var lines []string
	for _, a := range agents {
		state, since := m.th.Good.Render(visible.Line(a.Status)), ""
		if a.State == wire.AgentRunning {
			state, since = m.th.Accent.Render("works"), " · "+style.Elapsed(m.now().Sub(time.UnixMilli(a.StartedAtMS)))
		} else if a.Status != wire.StatusSuccess {
			state = m.th.Warn.Render(visible.Line(a.Status))
		}
		about := since + " · " + visible.Line(a.Title)
		if a.SessionID != "" {
			about += " · /resume " + visible.Line(string(a.SessionID))
		}
		lines = append(lines, m.th.Bold.Render(visible.Line(a.Name))+"  "+state+m.th.Dim.Render(about))
		if a.Worktree != "" {
			lines = append(lines, m.th.Dim.Render("  works in "+visible.Line(string(a.Worktree))))
		}
	}
	m.list(append(lines, m.th.Dim.Render("/agents show, stop, merge or drop NAME")))
}
