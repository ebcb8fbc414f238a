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
		c.hasten()
		return nil, ErrDisconnected
	}
	return l, nil
}

// hasten makes the next attempt to connect earlier.
func (c *Conn) hasten() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// reach is current for requests that need a daemon: it starts one that was stopped, and waits up to startBound.
func (c *Conn) reach(ctx context.Context) (*link, error) {
	c.mu.Lock()
	if c.asleep {
		c.asleep, c.starting = false, make(chan struct{})
		c.hasten()
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

// Post sends a request that is answered by events, which arrive at Handle. An empty request_id is filled in. Like every request it
// starts a daemon that was stopped.
func (c *Conn) Post(ctx context.Context, r wire.OfRequest) error {
	l, err := c.reach(ctx)
	if err != nil {
		return err
	}
	mint(r)
	return l.send(r)
}

// mint fills in an empty request_id and returns the id.
func mint(r wire.OfRequest) wire.RequestID {
	id := r.RequestRef()
	if *id == "" {
		*id = wire.RequestID(wire.NewID())
	}
	return *id
}

// Request sends a request and waits for its reply; wire.Call does that with the reply's type. Errors are *wire.Error,
// ErrDisconnected and ctx's cause.
func (c *Conn) Request(ctx context.Context, r wire.OfRequest) (wire.Message, error) {
	if s, ok := r.(*wire.SessionRequest); ok && s.Op == "resume" && s.SessionID != nil {
		c.expect(*s.SessionID, s.AfterSeq)
	}
	l, err := c.reach(ctx)
	if err != nil {
		return nil, err
	}
	s, err := l.follow(r)
	if err != nil {
		return nil, err
	}
	defer l.forget(r)
	for {
		m, err := s.next(ctx)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *wire.Error:
			return nil, m
		case wire.OfRequest:
			return m, nil
		}
	}
}

// EnvChanged sends a new EnvSnapshot.
func (c *Conn) EnvChanged() error { return c.Send(c.o.Snapshot()) }

// Notify is Send for what the user waits for: a CancelRequest, which the turn's AgentComplete answers, or a ConfirmationResponse, which
// ConfirmationResolved answers. It makes the next attempt to connect earlier; it never starts a stopped daemon.
func (c *Conn) Notify(m wire.Message) error {
	l, err := c.current()
	if err != nil {
		return err
	}
	return l.send(m)
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
