package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sublet/wire"
)

// current returns the current link. If there is none, it makes the next attempt to connect earlier.
func (c *Conn) current() (*link, error) {
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		select {
		case c.kick <- struct{}{}:
		default:
		}
		return nil, ErrDisconnected
	}
	return l, nil
}

// reach is current for requests that need a daemon: it starts one that was stopped, and waits up to startBound.
func (c *Conn) reach(ctx context.Context) (*link, error) {
	c.mu.Lock()
	if c.asleep {
		c.asleep, c.starting = false, make(chan struct{})
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	starting := c.starting
	c.mu.Unlock()
	if starting == nil {
		return c.current()
	}
	bound := time.NewTimer(startBound)
	defer bound.Stop()
	select {
	case <-starting:
	case <-bound.C:
		return nil, fmt.Errorf("%w: it was not up after %v", ErrDisconnected, startBound)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
	l, err := c.current()
	if cause := c.Err(); errors.Is(err, ErrDisconnected) && cause != nil && !errors.Is(cause, ErrDisconnected) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return l, err
}

// Send queues a message that has no reply: lease messages, shell state, results. It never waits for the daemon. Without a
// connection it returns ErrDisconnected and, unlike a request, does not hasten the next attempt.
func (c *Conn) Send(m wire.Message) error {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return ErrDisconnected
	}
	return l.send(m)
}

func (l *link) send(m wire.Message) error {
	l.note(m, true) // before sending: the answer may arrive before Send returns
	err := l.wc.Send(m)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrClosed) || l.wc.Err() != nil: // the link broke, and its reader has not noticed yet
		return fmt.Errorf("send %s: %w: %w", m.Kind(), ErrDisconnected, err)
	}
	return fmt.Errorf("send %s: %w", m.Kind(), err)
}

// post sends a request that is answered by events.
func (c *Conn) post(ctx context.Context, id *wire.RequestID, m wire.Message) error {
	l, err := c.reach(ctx)
	if err != nil {
		return err
	}
	mint(id)
	return l.send(m)
}

func mint(id *wire.RequestID) {
	if *id == "" {
		*id = wire.RequestID(wire.NewID())
	}
}

// call sends a request and waits for its reply.
func call[R wire.Message](ctx context.Context, c *Conn, id *wire.RequestID, m wire.Message) (R, error) {
	var none R
	l, err := c.reach(ctx)
	if err != nil {
		return none, err
	}
	mint(id)
	reply := make(chan wire.Message, 1)
	l.mu.Lock()
	if _, taken := l.calls[*id]; taken {
		l.mu.Unlock()
		return none, &wire.Error{Code: wire.CodeDuplicateID, Message: "request id used twice"}
	}
	l.calls[*id] = reply // before sending: the answer may arrive before Send returns
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.calls, *id)
		l.mu.Unlock()
	}()
	if err := l.send(m); err != nil {
		return none, err
	}
	select {
	case answer := <-reply:
		return as[R](answer)
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-l.over:
		select {
		case answer := <-reply: // it came just before the end
			return as[R](answer)
		default:
		}
		return none, ErrDisconnected
	}
}

func as[R wire.Message](answer wire.Message) (R, error) {
	var none R
	switch answer := answer.(type) {
	case R:
		return answer, nil
	case *wire.Error:
		return none, answer
	default:
		return none, fmt.Errorf("answered with %s", answer.Kind())
	}
}

// Ask sends the request; its events arrive at Handle. An empty RequestID is filled in. Like every request it starts a daemon
// that was stopped.
func (c *Conn) Ask(ctx context.Context, r *wire.AgentRequest) error {
	return c.post(ctx, &r.RequestID, r)
}

// Show returns what an AgentRequest would first send to the model.
func (c *Conn) Show(ctx context.Context, r *wire.ShowRequest) (*wire.ShowReply, error) {
	return call[*wire.ShowReply](ctx, c, &r.RequestID, r)
}

// Cancel ends a turn, by turn_id or by request_id of this connection. The turn's AgentComplete answers.
func (c *Conn) Cancel(_ context.Context, r *wire.CancelRequest) error { return c.notify(r) }

// Confirm answers a question. ConfirmationResolved reports how it ended.
func (c *Conn) Confirm(_ context.Context, r *wire.ConfirmationResponse) error { return c.notify(r) }

// Compact sends the request; CompactionStarted and CompactionComplete arrive at Handle.
func (c *Conn) Compact(ctx context.Context, r *wire.CompactRequest) error {
	return c.post(ctx, &r.RequestID, r)
}

// Undo sends the request; its events arrive at Handle.
func (c *Conn) Undo(ctx context.Context, r *wire.UndoRequest) error {
	return c.post(ctx, &r.RequestID, r)
}

// UserCommand reports a command that the user ran.
func (c *Conn) UserCommand(_ context.Context, r *wire.CommandResult) error { return c.Send(r) }

// EnvChanged sends a new EnvSnapshot.
func (c *Conn) EnvChanged(context.Context) error {
	s := c.o.Snapshot()
	s.ProtocolMin, s.ProtocolMax = wire.MinVersion, wire.Version
	return c.Send(s)
}

// notify sends a message that has no reply. Unlike Send it makes the next attempt to connect earlier; it never starts a stopped daemon.
func (c *Conn) notify(m wire.Message) error {
	l, err := c.current()
	if err != nil {
		return err
	}
	return l.send(m)
}

// Sessions lists, searches, renames and so on; one page at a time. Errors are *wire.Error, ErrDisconnected and ctx's cause,
// as for every method that has a reply.
func (c *Conn) Sessions(ctx context.Context, r *wire.SessionRequest) (*wire.SessionReply, error) {
	if r.Op == "resume" && r.SessionID != nil {
		c.expect(*r.SessionID, r.AfterSeq)
	}
	return call[*wire.SessionReply](ctx, c, &r.RequestID, r)
}

// expect makes the events after seq count as new, so that a replay is delivered. With -1 it waits until the daemon reports
// the session's last number.
func (c *Conn) expect(id wire.SessionID, seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq < 0 || seq < c.seen[id] {
		c.seen[id] = seq
	}
}

// settleLocked marks all events so far of a session as seen, if old ones are not wanted; events from now on, also while the
// link is down, are new.
func (c *Conn) settleLocked(s wire.SessionInfo) {
	if seen, ok := c.seen[s.ID]; ok && seen < 0 {
		c.seen[s.ID] = s.LastSeq
	}
}

// Models asks the providers which models they have, or looks one up.
func (c *Conn) Models(ctx context.Context, r *wire.ModelsRequest) (*wire.ModelsReply, error) {
	return call[*wire.ModelsReply](ctx, c, &r.RequestID, r)
}

// Jobs lists background jobs, reads one's output or ends one.
func (c *Conn) Jobs(ctx context.Context, r *wire.JobRequest) (*wire.JobReply, error) {
	return call[*wire.JobReply](ctx, c, &r.RequestID, r)
}

// Agents lists the agents that a session's agent has started, or does something with one.
func (c *Conn) Agents(ctx context.Context, r *wire.AgentsRequest) (*wire.AgentsReply, error) {
	return call[*wire.AgentsReply](ctx, c, &r.RequestID, r)
}

// Policy reads or changes mode and rules.
func (c *Conn) Policy(ctx context.Context, r *wire.PolicyRequest) (*wire.PolicyReply, error) {
	return call[*wire.PolicyReply](ctx, c, &r.RequestID, r)
}

// Status returns the daemon's state.
func (c *Conn) Status(ctx context.Context) (*wire.StatusReply, error) {
	r := &wire.StatusRequest{}
	return call[*wire.StatusReply](ctx, c, &r.RequestID, r)
}

// Leases is Status with who uses the clients' shells; it may take wire.ShellUseBound.
func (c *Conn) Leases(ctx context.Context) (*wire.StatusReply, error) {
	r := &wire.StatusRequest{Shells: true}
	return call[*wire.StatusReply](ctx, c, &r.RequestID, r)
}

// Look is Status with a description of the shell that a borrower would get.
func (c *Conn) Look(ctx context.Context) (*wire.StatusReply, error) {
	r := &wire.StatusRequest{Shells: true, Look: true}
	return call[*wire.StatusReply](ctx, c, &r.RequestID, r)
}

// Shutdown stops the daemon; the connection closes when it is gone. With IfIdle a busy one refuses: errors.Is(err,
// wire.ErrShuttingDown), and the *wire.Error's details contain how many turns run.
func (c *Conn) Shutdown(ctx context.Context, r *wire.ShutdownRequest) (*wire.StatusReply, error) {
	return call[*wire.StatusReply](ctx, c, &r.RequestID, r)
}

// RevokeLease takes a lease back from its holder.
func (c *Conn) RevokeLease(ctx context.Context, r *wire.LeaseRevokeRequest) (*wire.StatusReply, error) {
	return call[*wire.StatusReply](ctx, c, &r.RequestID, r)
}

// Resume attaches to another session; its events after afterSeq arrive at Handle like any other (0 = all, -1 = none).
func (c *Conn) Resume(ctx context.Context, id wire.SessionID, afterSeq int64) (*wire.Ready, error) {
	if _, err := c.Sessions(ctx, &wire.SessionRequest{Op: "resume", SessionID: &id, AfterSeq: afterSeq, IncludeHistory: afterSeq >= 0}); err != nil {
		return nil, fmt.Errorf("resume session %s: %w", id, err)
	}
	return c.Ready(), nil
}
