package tui

import (
	"cmp"
	"context"
	"strings"

	"sublet/client/internal/tui/cells"
	"sublet/wire"
	"sublet/wire/visible"
)

func (m *model) slashSessions(string) {
	request(m, "/sessions", &wire.SessionRequest{Op: "list", Limit: 30}, func(r *wire.SessionReply) {
		if len(r.Sessions) == 0 {
			m.note("no conversations yet")
			return
		}
		var lines []string
		for _, s := range r.Sessions {
			lines = append(lines, cells.Fit(sessionLine(&m.th, s, m.now(), m.w), m.w))
		}
		if r.More {
			lines = append(lines, m.th.Dim.Render("… and older ones: sublet session ls"))
		}
		m.list(lines)
	})
}

// slashResume goes to the session of a name or an id, of which the first or last four characters suffice if no other one fits. Without
// args, or where several fit, the user chooses.
func (m *model) slashResume(args string) {
	request(m, "/resume", &wire.SessionRequest{Op: "list", Limit: 200}, func(r *wire.SessionReply) {
		var found []wire.SessionInfo
		for _, s := range r.Sessions {
			id := string(s.ID)
			if args != "" && (id == args || s.Name == args) {
				m.onPicked(s)
				return
			}
			if args == "" || len(args) >= 4 && (strings.HasSuffix(id, args) || strings.HasPrefix(id, args)) {
				found = append(found, s)
			}
		}
		switch {
		case len(found) == 0 && args == "":
			m.note("no conversations yet")
		case len(found) == 0: // older than the list: the daemon knows
			m.onPicked(wire.SessionInfo{ID: wire.SessionID(args)})
		case len(found) == 1 && args != "":
			m.onPicked(found[0])
		default:
			m.picker = &picker{title: "resume:", all: found, now: m.now()}
		}
	})
}

// onPicked goes to a session. Events of other sessions are not shown from now on; those of this one may come before the reply.
func (m *model) onPicked(to wire.SessionInfo) {
	from := m.SessionInfo
	m.forget()
	m.SessionInfo = to
	m.emit(kindEcho, m.th.Dim.Render("── "+"resuming "+visible.Line(cmp.Or(to.Name, to.Title, string(to.ID)))))
	resume := func(ctx context.Context) (*wire.Ready, error) {
		ready, err := m.Daemon.Resume(ctx, to.ID, 0)
		if err != nil {
			m.after(0, func() { m.SessionInfo = from })
		}
		return ready, err
	}
	await(m, "/resume", resume, func(ready *wire.Ready) { m.onSession(ready.Session) })
}

func (m *model) slashNew(string) {
	request(m, "/new", &wire.SessionRequest{Op: "new"}, func(r *wire.SessionReply) { m.onSession(r.Session) })
}

// onSession records which session the window is in.
func (m *model) onSession(s wire.SessionInfo) {
	if s.ID != m.SessionInfo.ID {
		old := "the old one is kept"
		if m.turn != nil {
			old = "in the old one the agent works on"
		}
		m.forget()
		m.note("a new conversation; " + old + " (/resume)")
	}
	m.SessionInfo = s
	m.readMode()
}

// readMode asks the daemon for the policy mode of this session, for the footer.
func (m *model) readMode() {
	id := m.SessionInfo.ID
	request(m, "/mode", &wire.PolicyRequest{Op: "get", SessionID: &id}, func(p *wire.PolicyReply) {
		if m.SessionInfo.ID == id {
			m.policy = p.Mode
		}
	})
}
