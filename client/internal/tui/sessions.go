package tui

import (
	"context"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

func (m *model) slashSessions(string) {
	daemon, th, now, width := m.daemon, m.th, m.now(), m.w
	m.op("/sessions", func(ctx context.Context) (then, error) {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "list", Limit: 30})
		if err != nil {
			return nil, err
		}
		if len(r.Sessions) == 0 {
			return m.saying("no conversations yet"), nil
		}
		var lines []string
		for _, s := range r.Sessions {
			lines = append(lines, fit(sessionLine(&th, s, now, width), width))
		}
		if r.More {
			lines = append(lines, th.dim.Render("… and older ones: sublet session ls"))
		}
		return m.printing(lines...), nil
	})
}

// slashResume goes to a session by id, or by the end or beginning of one, or lets the user choose.
func (m *model) slashResume(args string) {
	daemon := m.daemon
	m.op("/resume", func(ctx context.Context) (then, error) {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "list", Limit: 200})
		if err != nil {
			return nil, err
		}
		found := r.Sessions
		if args != "" {
			found = nil
			for _, s := range r.Sessions {
				id := string(s.ID)
				if id == args || s.Name == args {
					return func() { m.onPicked(s) }, nil
				}
				if len(args) >= 4 && (strings.HasSuffix(id, args) || strings.HasPrefix(id, args)) {
					found = append(found, s)
				}
			}
		}
		switch {
		case len(found) == 0 && args == "":
			return m.saying("no conversations yet"), nil
		case len(found) == 0: // older than the list: the daemon knows
			return func() { m.onPicked(wire.SessionInfo{ID: wire.SessionID(args)}) }, nil
		case len(found) == 1 && args != "":
			return func() { m.onPicked(found[0]) }, nil
		}
		return func() { m.picker = &picker{title: "resume:", all: found, now: m.now()} }, nil
	})
}

// onPicked goes to a session. From here on only its events count; they may come before the answer does.
func (m *model) onPicked(to wire.SessionInfo) {
	from := m.session
	m.forget()
	m.session = to
	m.emit(kindEcho, m.th.dim.Render(m.th.glyph("── ", "-- ")+"resuming "+visible.Line(firstOf(to.Name, to.Title, string(to.ID)))))
	daemon := m.daemon
	m.op("/resume", func(ctx context.Context) (then, error) {
		ready, err := daemon.Resume(ctx, to.ID, 0)
		if err != nil {
			m.inbox.push(then(func() { m.session = from }))
			return nil, err
		}
		return func() { m.onSession(ready.Session) }, nil
	})
}

func (m *model) slashNew(string) {
	daemon := m.daemon
	m.op("/new", func(ctx context.Context) (then, error) {
		r, err := daemon.Sessions(ctx, &wire.SessionRequest{Op: "new"})
		if err != nil {
			return nil, err
		}
		return func() { m.onSession(r.Session) }, nil
	})
}

// onSession notes which session the window is in.
func (m *model) onSession(s wire.SessionInfo) {
	if s.ID != m.session.ID {
		m.forget()
		m.note("a new conversation; the old one is kept (/resume)")
	}
	m.session = s
}
