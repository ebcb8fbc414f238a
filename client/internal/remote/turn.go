package remote

import (
	"context"
	"fmt"
	"time"

	"sublet/wire"
)

// Turn makes a request that a turn answers, an AgentRequest or a ToolRequest, and waits for the turn's end. It calls each for
// every event of the turn, in order, the AgentComplete last, on the caller's goroutine. When ctx ends the turn is cancelled, and
// its AgentComplete (status cancelled) is returned if it comes within 7 s; else context.Cause(ctx). A request refused before it
// began returns its *wire.Error.
func (c *Conn) Turn(ctx context.Context, r wire.OfRequest, each func(wire.Message)) (*wire.AgentComplete, error) {
	var end *wire.AgentComplete
	err := c.follow(ctx, r, func(m wire.Message) (bool, error) {
		if refused, ok := m.(*wire.Error); ok && refused.TurnID == "" {
			return true, refused
		}
		if each != nil {
			each(m)
		}
		end, _ = m.(*wire.AgentComplete)
		return end != nil, nil
	})
	return end, err
}

// LeaseRun borrows the shell of another client. It calls each (nil = none) for the lease's messages in order and returns the
// command's end, with a nil error whatever its exit code; or *DeniedError, *RevokedError, *wire.Error. When ctx ends the
// command is cancelled, and its end is returned if it comes within 7 s.
func (c *Conn) LeaseRun(ctx context.Context, r *wire.LeaseRunRequest, each func(wire.LeaseMessage)) (*wire.CommandCompleted, error) {
	var end *wire.CommandCompleted
	err := c.follow(ctx, r, func(m wire.Message) (bool, error) {
		if lm, ok := m.(wire.LeaseMessage); ok && each != nil {
			each(lm)
		}
		switch m := m.(type) {
		case *wire.Error:
			return true, m
		case *wire.ShellLeaseDenied:
			return true, &DeniedError{ShellLeaseDenied: *m}
		case *wire.CommandCompleted:
			end = m
		case *wire.ShellLeaseReleased:
			if end == nil {
				return true, &RevokedError{Reason: m.Reason}
			}
			return true, nil
		}
		return false, nil
	})
	if end != nil {
		return end, nil // the command ended, so the end of the lease does not matter
	}
	return nil, err
}

// A DeniedError reports that the shell was not lent.
type DeniedError struct{ wire.ShellLeaseDenied }

func (e *DeniedError) Error() string {
	switch e.Reason {
	case wire.DeniedNoShell:
		return "no client lends its shell"
	case wire.DeniedTimeout:
		switch {
		case e.Why != "":
			return "the shell was not free in time: " + e.Why
		case e.Holder == "":
			return "the shell was not free in time"
		}
		return fmt.Sprintf("the shell was not free in time: %s has had it for %v", e.Holder, time.Duration(e.HeldMS)*time.Millisecond)
	case wire.DeniedBroken:
		return "the shell was not lent: " + e.Why
	case wire.DeniedShuttingDown:
		return "the daemon is stopping"
	case wire.DeniedUser:
		return "the lease was revoked before the command could begin"
	}
	return "the shell was not lent: " + e.Reason
}

// Is makes errors.Is(err, wire.ErrLeaseDenied) true.
func (e *DeniedError) Is(target error) bool { return target == wire.ErrLeaseDenied }

// Hint returns what to do.
func (e *DeniedError) Hint() string {
	switch e.Reason {
	case wire.DeniedNoShell:
		return "open a terminal and run `sublet` there; its shell is then lent"
	case wire.DeniedTimeout:
		return "wait longer with --wait, or see `sublet lease ls`"
	case wire.DeniedBroken:
		return "its window shows what to do"
	}
	return ""
}

// A RevokedError reports that a lease ended before its command did.
type RevokedError struct{ Reason string }

func (e *RevokedError) Error() string { return "the lease ended before the command: " + e.Reason }

// Is makes errors.Is(err, wire.ErrLeaseDenied) true.
func (e *RevokedError) Is(target error) bool { return target == wire.ErrLeaseDenied }

// follow sends r and calls step with what follows until step returns true. When ctx ends it cancels once, and continues for
// cancelBound.
func (c *Conn) follow(ctx context.Context, r wire.OfRequest, step func(wire.Message) (stop bool, err error)) error {
	l, err := c.reach(ctx)
	if err != nil {
		return err
	}
	s, err := l.follow(r)
	if err != nil {
		return err
	}
	defer l.forget(r)
	wait, over := context.WithCancelCause(context.WithoutCancel(ctx))
	defer over(nil)
	defer context.AfterFunc(ctx, func() { // at once, also while step waits for a reader of its own
		cause := context.Cause(ctx)
		if l.send(&wire.CancelRequest{RequestID: r.RequestRef(), Reason: "cancelled by the caller"}) != nil {
			over(cause)
			return
		}
		bound := time.NewTimer(cancelBound)
		defer bound.Stop()
		select {
		case <-bound.C:
			over(cause)
		case <-wait.Done():
		}
	})()
	for {
		m, err := s.next(wait)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		if stop, err := step(m); stop {
			return err
		}
	}
}
