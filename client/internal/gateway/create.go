package gateway

import (
	"context"
	"slices"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// Create moves to a new session under an id of the caller's choosing. Errors are those of Do; duplicate_id where there is
// such a session, not_found_session where there was one and it was deleted.
func (s *Session) Create(ctx context.Context, id wire.SessionID) error {
	return s.on(ctx, func(c *remote.Conn, _ int) error {
		_, err := c.Sessions(ctx, &wire.SessionRequest{Op: "new", SessionID: &id})
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.id, s.seq = id, 0
		return nil
	})
}

// Pending reports whether a request of this session has neither ended nor been refused, as far as the daemon has told. What
// it told before the answer to a Do is known when that returns.
func (s *Session) Pending(id wire.RequestID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asks, func(a *ask) bool { return a.req.RequestID == id })
}
