package lender

import (
	"context"
	"fmt"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// undoRequest is the user's request to put back what borrowed commands changed.
type undoRequest struct {
	ctx  context.Context
	all  bool
	done chan struct{} // closed when the rest is set

	changed, left string
	err           error
}

// UndoShell puts back what the last borrowed command that changed the shell's state changed in it, as far as it is still so;
// with all, what all of them changed. changed is one line of what that did, "" where there was nothing to put back; left is
// one line of what differs all the same: of what could not be put back or, once there is nothing more to put back, from
// before the first of them. While a borrowed command runs it returns an error at once; other errors are ErrClosed, ctx's
// cause, and the shell's own.
func (l *Lender) UndoShell(ctx context.Context, all bool) (changed, left string, err error) {
	l.mu.Lock()
	switch {
	case l.closing != "":
		l.mu.Unlock()
		return "", "", ErrClosed
	case l.grant != nil && l.grant.exec != nil:
		defer l.mu.Unlock()
		return "", "", fmt.Errorf("the shell is lent to %s: %s", l.grant.acquire.Agent, l.grant.acquire.Purpose)
	}
	l.preemptLocked()
	u := &undoRequest{ctx: ctx, all: all, done: make(chan struct{})}
	l.undos = append(l.undos, u)
	l.wakeWorker()
	l.mu.Unlock()
	select {
	case <-u.done:
		return u.changed, u.left, u.err
	case <-ctx.Done():
		return "", "", context.Cause(ctx)
	case <-l.ctx.Done():
		return "", "", ErrClosed
	}
}

// undo carries out u. It holds the line editor meanwhile, and neither before nor after.
func (l *Lender) undo(u *undoRequest) {
	ctx, cancel := context.WithCancel(u.ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if u.err = l.hold(ctx); u.err == nil {
		u.changed, u.left, u.err = l.putBack(ctx, u.all)
	}
	l.release()
	close(u.done)
}

// putBack puts back what the last borrowed command changed, or all of them, and sends the daemon the state. The editor must be held.
func (l *Lender) putBack(ctx context.Context, all bool) (changed, left string, err error) {
	by, changed, left, err := l.changes.PutBack(ctx, l.Shell, all)
	if len(by) == 0 {
		return "", "", err
	}
	l.mu.Lock()
	for _, id := range by { // the daemon judges the state by the commands that may have made it
		l.ran = joined(l.ran, wire.ExecutionID(id))
	}
	l.mu.Unlock()
	if stateErr := l.syncState(ctx); err == nil {
		err = stateErr
	}
	return changed, left, err
}

// restore is RestoreShellState once the editor is held.
func (l *Lender) restore(e *execution) {
	ctx, cancel := context.WithTimeoutCause(e.ctx, time.Duration(e.msg.TimeoutMS)*time.Millisecond, errTooLong)
	defer cancel()
	begun := time.Now()
	l.send(&wire.CommandStarted{LeaseRef: e.msg.LeaseRef, ExecutionID: e.msg.ExecutionID})
	changed, left, err := l.putBack(ctx, e.all)
	r := shell.Result{Output: []byte(changed), Duration: time.Since(begun)}
	if left != "" {
		r.Notes = []string{"still different: " + left}
	}
	if err == nil {
		r.Status = wire.StatusOK
	}
	l.complete(e, completed(e, r, err))
}
