package gateway

import (
	"context"
	"slices"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// Ask begins a turn. Next returns its events, under the request's id, which is filled in if empty: TurnStarted and exactly one
// AgentComplete, or one *wire.Error without a turn if it never began. After an error of Ask no event follows.
func (s *Session) Ask(ctx context.Context, r *wire.AgentRequest) error {
	if r.RequestID == "" {
		r.RequestID = wire.RequestID(wire.NewID())
	}
	kept := *r
	a := &ask{req: &kept}
	s.mu.Lock()
	s.asks = append(s.asks, a) // before sending: the answer may come before Ask returns
	s.mu.Unlock()
	err := s.on(ctx, func(c *remote.Conn, link int) error {
		if err := c.Post(ctx, r); err != nil {
			return err
		}
		s.mu.Lock()
		a.link = link
		lost := link != s.links
		s.mu.Unlock()
		if lost { // an older link may have delivered it
			s.work.Go(s.reconcile)
		}
		return nil
	})
	if err != nil {
		s.mu.Lock()
		s.asks = slices.DeleteFunc(s.asks, func(b *ask) bool { return a == b })
		s.mu.Unlock()
	}
	return err
}

// Cancel ends a request of this session, also one that waits or whose link was lost; it returns false if there is none. Next
// returns its end.
func (s *Session) Cancel(id wire.RequestID, why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.asks, func(a *ask) bool { return a.req.RequestID == id })
	if i < 0 {
		return false
	}
	a := s.asks[i]
	a.cancelled = why
	s.cancelLocked(a)
	s.endWaitingLocked()
	return true
}

// endWaitingLocked ends a cancelled request that waits behind a running one, because the daemon reports its end only when its
// turn would begin.
func (s *Session) endWaitingLocked() {
	runs := slices.IndexFunc(s.asks, func(a *ask) bool { return a.turn != "" })
	if runs < 0 {
		return
	}
	for _, a := range slices.Clone(s.asks[runs:]) {
		if a.turn == "" && a.cancelled != "" {
			s.endLocked(a, wire.CodeCancelled, a.cancelled+", before it began")
		}
	}
}

// cancelLocked sends a cancel; without a link the next reconcile does.
func (s *Session) cancelLocked(a *ask) {
	r := &wire.CancelRequest{Reason: a.cancelled}
	switch {
	case s.conn == nil:
		return
	case a.turn != "":
		turn := a.turn
		r.TurnID = &turn
	case a.link == s.links:
		id := a.req.RequestID
		r.RequestID = &id
	default:
		return // it is cancelled when it begins
	}
	_ = s.conn.Send(r)
}

// Confirm answers a question; ConfirmationResolved reports how it ended.
func (s *Session) Confirm(ctx context.Context, r *wire.ConfirmationResponse) error {
	return s.on(ctx, func(c *remote.Conn, _ int) error { return c.Confirm(ctx, r) })
}

// Request sends a request and waits for its reply; wire.Call does that with the reply's type. Errors are *wire.Error, ErrAway,
// context.Cause(ctx). It repeats a request whose link was lost, so a rename or delete may have been done already.
func (s *Session) Request(ctx context.Context, r wire.OfRequest) (reply wire.Message, err error) {
	err = s.on(ctx, func(c *remote.Conn, _ int) (err error) {
		*r.RequestRef() = "" // a repeated one is another request for the daemon
		reply, err = c.Request(ctx, r)
		return err
	})
	return reply, err
}

// Attach moves to another session; Next returns its events after afterSeq (0 = all, -1 = no stored ones). Turns of the old
// session continue, but their events are not received.
func (s *Session) Attach(ctx context.Context, id wire.SessionID, afterSeq int64) error {
	return s.on(ctx, func(c *remote.Conn, _ int) error {
		s.mu.Lock()
		wasID, wasSeq := s.id, s.seq
		s.id, s.seq = id, afterSeq // before the request: its events may come before the reply is read
		s.mu.Unlock()
		r, err := wire.Call(ctx, c, &wire.SessionRequest{Op: "resume", SessionID: &id, AfterSeq: afterSeq, IncludeHistory: afterSeq >= 0})
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.id != id: // meanwhile another call moved the session, or the daemon assigned a new one
		case err != nil:
			s.id, s.seq = wasID, wasSeq
		case s.seq < 0:
			s.seq = r.Session.LastSeq
		}
		return err
	})
}

// Move reports the client's current folder, environment and terminal to the daemon.
func (s *Session) Move(ctx context.Context, p Place) error {
	s.mu.Lock()
	s.o.Place = p
	s.mu.Unlock()
	return s.on(ctx, func(c *remote.Conn, _ int) error { return c.EnvChanged(ctx) })
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
	err := s.on(ctx, func(c *remote.Conn, _ int) error { conn = c; return nil })
	if err != nil {
		return nil, err
	}
	return conn.Turn(ctx, r, each)
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
