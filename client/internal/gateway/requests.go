package gateway

import (
	"context"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// Request sends a request and waits for its reply; wire.Call does that with the reply's type. Errors are *wire.Error, ErrAway,
// ErrNoAnswer, context.Cause(ctx). It repeats a request whose link was lost, so a rename or delete may have been done already.
func (s *Session) Request(ctx context.Context, r wire.OfRequest) (reply wire.Message, err error) {
	ctx, cancel := s.d.bound(ctx)
	defer cancel()
	err = s.withConn(ctx, func(c *remote.Conn, _ int) (err error) {
		*r.RequestRef() = "" // a repeated one is another request for the daemon
		reply, err = c.Request(ctx, r)
		return err
	})
	return reply, err
}

// Attach moves to another session, without its earlier events. No turn of the client may run.
func (s *Session) Attach(ctx context.Context, id wire.SessionID) error {
	return s.switchTo(ctx, &wire.SessionRequest{Op: "resume", SessionID: &id, AfterSeq: -1})
}

// Create moves to a new session under an id of the caller's choosing. Errors are those of Request; duplicate_id where there is
// such a session, not_found_session where there was one and it was deleted. No turn of the client may run.
func (s *Session) Create(ctx context.Context, id wire.SessionID) error {
	return s.switchTo(ctx, &wire.SessionRequest{Op: "new", SessionID: &id})
}

func (s *Session) switchTo(ctx context.Context, r *wire.SessionRequest) error {
	_, err := s.Request(ctx, r)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.id = *r.SessionID
	}
	return err
}

// Move reports the client's current folder, environment and terminal to the daemon.
func (s *Session) Move(ctx context.Context, p Place) error {
	s.mu.Lock()
	s.o.Place = p
	s.mu.Unlock()
	return s.withConn(ctx, func(c *remote.Conn, _ int) error { return c.EnvChanged() })
}

// Place returns what Move reported last, or Connect.
func (s *Session) Place() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Place
}

// Tool runs one tool and waits for its end, as remote.Conn.Tool does. If the link is lost meanwhile the error is
// remote.ErrDisconnected: the tool may have run, so the request is not repeated.
func (s *Session) Tool(ctx context.Context, r *wire.ToolRequest, each func(wire.Message)) (*wire.AgentComplete, error) {
	var conn *remote.Conn
	err := s.withConn(ctx, func(c *remote.Conn, _ int) error { conn = c; return nil })
	if err != nil {
		return nil, err
	}
	return conn.Turn(ctx, r, each)
}
