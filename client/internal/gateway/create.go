package gateway

import (
	"context"
	"errors"
	"slices"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// ConnectOrCreate is Connect that makes the session under its id if there is none.
func (d *Daemon) ConnectOrCreate(ctx context.Context, o Options) (*Session, error) {
	s, err := d.Connect(ctx, o)
	id := o.Session
	if id == "" || !errors.Is(err, wire.ErrNotFoundSession) {
		return s, err
	}
	o.Session = ""
	if s, err = d.Connect(ctx, o); err != nil {
		return nil, err
	}
	if err = s.Create(ctx, id); err == nil {
		return s, nil
	}
	s.Close()
	if errors.Is(err, wire.ErrDuplicateID) { // another client created it meanwhile
		o.Session = id
		return d.Connect(ctx, o)
	}
	return nil, err
}

// Create moves to a new session under an id of the caller's choosing. Errors are those of Request; duplicate_id where there is
// such a session, not_found_session where there was one and it was deleted.
func (s *Session) Create(ctx context.Context, id wire.SessionID) error {
	return s.on(ctx, func(c *remote.Conn, _ int) error {
		_, err := c.Request(ctx, &wire.SessionRequest{Op: "new", SessionID: &id})
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.id, s.seq = id, 0
		return nil
	})
}

// pending reports whether a request of this session has neither ended nor been refused, by the messages received so far.
func (s *Session) pending(id wire.RequestID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asks, func(a *ask) bool { return a.req.RequestID == id })
}
