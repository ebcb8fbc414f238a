package gateway

import (
	"context"
	"slices"

	"sublet/client/internal/remote"
	"sublet/wire"
)

// Ask begins a turn. Its events come from Next, under the request's id, which is filled in where it is empty: TurnStarted,
// and then exactly one AgentComplete; or one *wire.Error without a turn, if it never began. An error of Ask means that
// nothing was begun, and no event follows.
func (s *Session) Ask(ctx context.Context, r *wire.AgentRequest) error {
	if r.RequestID == "" {
		r.RequestID = wire.RequestID(wire.NewID())
	}
	complete(r)
	kept := *r
	a := &ask{req: &kept}
	s.mu.Lock()
	s.asks = append(s.asks, a) // before sending: the answer may come before Ask returns
	s.mu.Unlock()
	err := s.on(ctx, func(c *remote.Conn, link int) error {
		if err := c.Ask(ctx, r); err != nil {
			return err
		}
		s.mu.Lock()
		a.link = link
		lost := link != s.links
		s.mu.Unlock()
		if lost { // it may have been the older link that took it
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

// complete makes the lists of a request ones that are there.
func complete(r *wire.AgentRequest) {
	if r.Attachments == nil {
		r.Attachments = []wire.Attachment{}
	}
	if r.Context.RecentCommands == nil {
		r.Context.RecentCommands = []wire.RecentCommand{}
	}
	if r.Context.OpenFiles == nil {
		r.Context.OpenFiles = []wire.OSString{}
	}
}

// Cancel ends a request of this session, also one that waits or whose link was lost; false if there is none that runs. Its
// end comes from Next as ever.
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

// endWaitingLocked ends what is cancelled and waits behind a request that runs. The daemon tells its end when its turn
// comes, which may be long; nobody who has cancelled wants to wait for that.
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

// Confirm answers a question; ConfirmationResolved tells how it ended.
func (s *Session) Confirm(ctx context.Context, r *wire.ConfirmationResponse) error {
	return s.on(ctx, func(c *remote.Conn, _ int) error { return c.Confirm(ctx, r) })
}

// Do sends one request about sessions and waits for its reply. Errors are *wire.Error, ErrAway, ctx's cause. One that the
// link lost is repeated, so a rename or a delete may find itself done.
func (s *Session) Do(ctx context.Context, r *wire.SessionRequest) (reply *wire.SessionReply, err error) {
	err = s.on(ctx, func(c *remote.Conn, _ int) (err error) {
		again := *r
		reply, err = c.Sessions(ctx, &again)
		return err
	})
	return reply, err
}

// Status asks how the daemon is.
func (s *Session) Status(ctx context.Context) (reply *wire.StatusReply, err error) {
	err = s.on(ctx, func(c *remote.Conn, _ int) (err error) {
		reply, err = c.Status(ctx)
		return err
	})
	return reply, err
}

// Attach moves to another session; its events after afterSeq come from Next (0 = all, -1 = none of the old ones). Turns of
// the session that is left go on, and are not heard of any more.
func (s *Session) Attach(ctx context.Context, id wire.SessionID, afterSeq int64) error {
	return s.on(ctx, func(c *remote.Conn, _ int) error {
		s.mu.Lock()
		wasID, wasSeq := s.id, s.seq
		s.id, s.seq = id, afterSeq // before the request: its events may come before the reply is read
		s.mu.Unlock()
		r, err := c.Sessions(ctx, &wire.SessionRequest{Op: "resume", SessionID: &id, AfterSeq: afterSeq, IncludeHistory: afterSeq >= 0})
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.id != id:
		case err != nil:
			s.id, s.seq = wasID, wasSeq
		case s.seq < 0:
			s.seq = r.Session.LastSeq
		}
		return err
	})
}

// Move tells the daemon where the client is now: folder, environment, terminal.
func (s *Session) Move(ctx context.Context, p Place) error {
	s.mu.Lock()
	s.o.Place = p
	s.mu.Unlock()
	return s.on(ctx, func(c *remote.Conn, _ int) error { return c.EnvChanged(ctx) })
}

// Place is what Move told last, or Connect.
func (s *Session) Place() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Place
}

// Policy reads or changes mode and rules.
func (s *Session) Policy(ctx context.Context, r *wire.PolicyRequest) (reply *wire.PolicyReply, err error) {
	err = s.on(ctx, func(c *remote.Conn, _ int) error {
		again := *r
		reply, err = c.Policy(ctx, &again)
		return err
	})
	return reply, err
}

// Tool runs one tool and waits for its end, as remote.Conn.Tool does. Where the link is lost meanwhile the error is
// remote.ErrDisconnected: whether it ran is not known, so it is not asked again.
func (s *Session) Tool(ctx context.Context, r *wire.ToolRequest, each func(wire.Message)) (*wire.AgentComplete, error) {
	var conn *remote.Conn
	err := s.on(ctx, func(c *remote.Conn, _ int) error {
		conn = c
		return nil
	})
	if err != nil {
		return nil, err
	}
	return conn.Tool(ctx, r, each)
}

// Look asks what the shell looks like that a borrower would get, and who has which shell.
func (s *Session) Look(ctx context.Context) (reply *wire.StatusReply, err error) {
	err = s.on(ctx, func(c *remote.Conn, _ int) (err error) {
		reply, err = c.Look(ctx)
		return err
	})
	return reply, err
}
