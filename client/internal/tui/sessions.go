package tui

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sublet/wire"
)

// sessionChanged is the end of going to another session, or the list to choose one from.
type sessionChanged struct {
	list []wire.SessionInfo // to choose from; nil: went to info
	info wire.SessionInfo
	from wire.SessionInfo // where to stay if err is set
	err  error
}

func (m *model) slashSessions(string) {
	daemon, th, now, width := m.daemon, m.th, m.now(), m.w
	m.op("/sessions", func(ctx context.Context) (printText, error) {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "list", Limit: 30})
		if err != nil {
			return printText{}, err
		}
		if len(r.Sessions) == 0 {
			return m.quiet("no conversations yet"), nil
		}
		var lines []string
		for _, s := range r.Sessions {
			lines = append(lines, fit(sessionLine(&th, s, now, width), width))
		}
		if r.More {
			lines = append(lines, th.dim.Render("… and older ones: sublet session ls"))
		}
		return printText{strings.Join(lines, "\n"), kindText}, nil
	})
}

// slashResume goes to a session by id, or by the end or beginning of one, or lets the user choose.
func (m *model) slashResume(args string) {
	if !m.daemon.Connected() {
		m.fail("/resume: the daemon is not connected", m.linkWord)
		return
	}
	daemon := m.daemon
	m.task(func(ctx context.Context) tea.Msg {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "list", Limit: 200})
		if err != nil {
			return taskFailed{"/resume: " + err.Error(), ""}
		}
		if args == "" {
			if len(r.Sessions) == 0 {
				return m.quiet("no conversations yet")
			}
			return sessionChanged{list: r.Sessions}
		}
		var found []wire.SessionInfo
		for _, s := range r.Sessions {
			id := string(s.ID)
			if id == args || s.Name == args {
				return picked{s}
			}
			if len(args) >= 4 && (strings.HasSuffix(id, args) || strings.HasPrefix(id, args)) {
				found = append(found, s)
			}
		}
		switch len(found) {
		case 0:
			return picked{wire.SessionInfo{ID: wire.SessionID(args)}} // older than the list: the daemon knows
		case 1:
			return picked{found[0]}
		}
		return sessionChanged{list: found}
	})
}

// onPicked goes to a session. From here on only its events count; they may come before the answer does.
func (m *model) onPicked(p picked) {
	from := m.session
	m.forget()
	m.session = p.session
	m.emit(kindEcho, m.th.dim.Render(m.th.glyph("── ", "-- ")+"resuming "+visibleLine(firstOf(p.session.Name, p.session.Title, string(p.session.ID)))))
	daemon, id := m.daemon, p.session.ID
	m.task(func(ctx context.Context) tea.Msg {
		ready, err := daemon.Resume(ctx, id, 0)
		if err != nil {
			return sessionChanged{from: from, err: err}
		}
		return sessionChanged{info: ready.Session}
	})
}

func (m *model) slashNew(string) {
	if !m.daemon.Connected() {
		m.fail("/new: the daemon is not connected", m.linkWord)
		return
	}
	daemon, from := m.daemon, m.session
	m.task(func(ctx context.Context) tea.Msg {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "new"})
		if err != nil {
			return sessionChanged{from: from, err: err}
		}
		return sessionChanged{info: r.Session}
	})
}

func (m *model) onSession(s sessionChanged) {
	switch {
	case s.err != nil:
		m.session = s.from
		var e *wire.Error
		if errors.As(s.err, &e) {
			m.fail(e.Message, e.Hint)
		} else {
			m.fail(s.err.Error(), "")
		}
	case s.list != nil:
		m.picker = &picker{title: "resume:", all: s.list, now: m.now()}
	case s.info.ID == m.session.ID:
		m.session = s.info
	default:
		m.forget()
		m.session = s.info
		m.note("a new conversation; the old one is kept (/resume)")
	}
}
