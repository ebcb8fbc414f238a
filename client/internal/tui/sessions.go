package tui

import (
	"cmp"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

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
			m.picker = &picker{all: found}
		}
	})
}

// onPicked resumes a session.
func (m *model) onPicked(to wire.SessionInfo) {
	m.emit(kindEcho, m.th.Dim.Render("── "+"resuming "+visible.Line(cmp.Or(to.Name, to.Title, string(to.ID)))))
	request(m, "/resume", &wire.SessionRequest{Op: "resume", SessionID: &to.ID, IncludeHistory: true}, func(*wire.SessionReply) {})
}

func (m *model) slashNew(string) {
	request(m, "/new", &wire.SessionRequest{Op: "new"}, func(*wire.SessionReply) {})
}

// onMoved shows another session. Its events follow; those of the session that was left are not shown from now on.
func (m *model) onMoved(r *wire.SessionReply) {
	old := "the old one is kept"
	if m.turn != nil {
		old = "in the old one the agent works on"
	}
	m.forget()
	if r.Op == "new" {
		m.note("a new conversation; " + old + " (/resume)")
	}
	m.SessionInfo = r.Session
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
