package lender

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sublet/lease/confine"
	"sublet/lease/shell"
	"sublet/wire"
)

// queuedAfter is how long to wait for the editor before the daemon is informed that a lease waits.
const queuedAfter = 50 * time.Millisecond

// worker is the only goroutine that holds the shell's line editor.
func (l *Lender) worker() {
	defer l.release()
	exited := l.Shell.Exited()
	for {
		select {
		case <-l.wake:
		case <-exited:
			exited = nil
			l.mu.Lock()
			l.closeLocked(wire.DeniedNoShell, wire.ReleasedShellExited)
			l.mu.Unlock()
		case <-l.ctx.Done():
			return
		}
		for l.step() {
		}
	}
}

// step performs the next action with the shell and reports whether there may be more.
func (l *Lender) step() bool {
	l.mu.Lock()
	g := l.grant
	wanted := l.up && l.closing == "" && (l.waiting != nil || l.inform)
	switch {
	case g != nil && g.exec != nil:
		l.mu.Unlock()
		l.execute(g.exec)
		return true
	case g != nil: // wait for its command or its end
		l.mu.Unlock()
		return false
	case l.held && (l.keys || !wanted):
		l.mu.Unlock()
		l.release()
		return true
	case len(l.undos) > 0:
		u := l.undos[0]
		l.undos = l.undos[1:]
		l.mu.Unlock()
		l.undo(u)
		return true
	case !wanted:
		l.mu.Unlock()
		return false
	}
	ctx, cancel := context.WithCancel(l.ctx)
	inform := l.inform
	l.holding.stop, l.inform = cancel, false
	l.mu.Unlock()
	err := l.ready(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding.stop = nil
	cancelled := ctx.Err() != nil
	cancel()
	switch {
	case l.closing != "":
	case cancelled: // the lease was given up; the screen may need the state all the same
		l.inform = l.inform || inform && l.taken
	case errors.Is(err, shell.ErrClosed):
		l.closeLocked(wire.DeniedNoShell, wire.ReleasedShellExited)
	case err != nil:
		l.cannotLendLocked(err)
	case l.waiting != nil && l.up && !l.keys:
		l.grantLocked()
	}
	return true
}

// ready holds the editor, and reads and sends the shell's state if the daemon does not have it. While the user is busy it
// reports that.
func (l *Lender) ready(ctx context.Context) error {
	l.mu.Lock()
	l.holding.late = time.AfterFunc(queuedAfter, l.reportQueued)
	l.mu.Unlock()
	err := l.hold(ctx)
	l.mu.Lock()
	l.holding.late.Stop()
	l.holding.late = nil
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.syncState(ctx)
}

// cannotLendLocked refuses the waiting lease because the shell's editor does not answer as expected, and informs the user.
func (l *Lender) cannotLendLocked(err error) {
	l.Log.Warn("the shell cannot be lent", "err", err)
	e, why := CannotLend{Why: err.Error()}, err.Error()
	if broken, ok := errors.AsType[*shell.BrokenError](err); ok {
		e.Hint, why = broken.Hint(), broken.Why
	}
	if l.waiting != nil {
		l.Observer.Observe(e)
	}
	l.denyLocked(wire.DeniedBroken, why)
	l.changedLocked()
}

// hold waits for the editor and holds it. Keys of the user count from here.
func (l *Lender) hold(ctx context.Context) error {
	if l.held {
		return nil
	}
	l.mu.Lock()
	l.keys = false
	l.mu.Unlock()
	err := l.Shell.Hold(ctx)
	l.held = err == nil
	return err
}

// release gives the editor back to the user.
func (l *Lender) release() {
	if !l.held {
		return
	}
	l.held = false
	if err := l.Shell.Release(); err != nil && !errors.Is(err, shell.ErrClosed) {
		l.Log.Warn("the editor was not given back", "err", err)
	}
}

// execute runs a borrowed command to its end. It sends exactly one CommandCompleted in every case.
func (l *Lender) execute(e *execution) {
	defer e.cancel(nil)
	err := l.hold(e.ctx)
	if err == nil {
		err = l.syncState(e.ctx) // so that the daemon has the state in which the command starts
	}
	switch {
	case err != nil:
		l.complete(e, completed(e, shell.Result{}, err))
	case e.undo:
		l.restore(e)
	default:
		l.run(e)
	}
	l.release()
	l.mu.Lock()
	defer l.mu.Unlock()
	e.grant.settles = false
	if e.grant.ending != "" {
		l.endLocked(e.grant, e.grant.ending, nil)
	}
	l.changedLocked()
}

// run runs the command itself. It returns when the screen has shown all of it.
func (l *Lender) run(e *execution) {
	m, refused := e.msg, ""
	l.mu.Lock()
	before := l.state
	switch {
	case m.Fingerprint != wire.Fingerprint(m.Command, m.Cwd, before.Digest):
		refused = "the shell changed since this was judged"
	case m.Confine.Reach != "" && l.Launcher == "":
		refused = "this window cannot hold a command to its reach"
	}
	if refused != "" {
		e.grant.exec, e.grant.last = nil, l.refuse(m, refused)
	}
	l.mu.Unlock()
	if refused != "" {
		return
	}
	began, printed := false, int64(0)
	c := shell.Command{
		Text: string(m.Command), Dir: string(m.Cwd), Timeout: time.Duration(m.TimeoutMS) * time.Millisecond,
		Confine: specOf(m.Confine), Launcher: l.Launcher, Job: string(m.Job),
		Started: func() {
			began = true
			l.started(e, false)
			l.Observer.Observe(LeasedStarted{
				ExecutionID: m.ExecutionID, Agent: e.grant.acquire.Agent, Command: string(m.Command), TurnID: e.grant.acquire.TurnID,
				Reach: m.Confine.Reach,
			})
		},
		Output: func(data []byte) {
			l.Observer.Observe(LeasedOutput{ExecutionID: m.ExecutionID, Data: slices.Clone(data)})
			l.send(&wire.CommandOutput{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Offset: printed, Data: data})
			printed += int64(len(data))
		},
		Keyboard: func(why, who string) {
			l.secrets.asked(why == "password" || why == "secret")
			l.started(e, why != "")
			l.Observer.Observe(LeasedKeyboard{ExecutionID: m.ExecutionID, Why: why, Who: who})
		},
		Stays: func(why string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.sendStartedLocked(e, why)
		},
	}
	if m.Continue {
		c.Continue = e.toJob
	}
	r, err := l.Shell.Run(e.ctx, c)
	if !began {
		l.complete(e, completed(e, r, err))
		return
	}
	changed, mayDiffer := "", r.Changes || err != nil || string(m.Cwd) != before.Dir
	if mayDiffer {
		changed = l.changedBy(m.ExecutionID, before)
	}
	done := completed(e, r, err)
	l.Observer.Observe(LeasedEnded{ExecutionID: m.ExecutionID, Result: r, Changed: changed, Status: done.Status})
	l.complete(e, done)
	if mayDiffer {
		l.sendState()
	}
	l.Observer.AwaitDrawn()
}

// started reports to the daemon that a command runs, and whether it has the user's keyboard, which pauses its timeout.
func (l *Lender) started(e *execution, keyboard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.began || e.keyboard != keyboard {
		e.began, e.keyboard, e.handed = true, keyboard, e.handed || keyboard
		l.sendStartedLocked(e, "")
	}
}

// sendStartedLocked sends how a command runs. stays is why it could not go on as a job; "" = that was not asked for.
func (l *Lender) sendStartedLocked(e *execution, stays string) {
	l.send(&wire.CommandStarted{LeaseRef: e.msg.LeaseRef, ExecutionID: e.msg.ExecutionID, Keyboard: e.keyboard, Stays: stays})
}

// specOf converts a confinement for the shell; nil for none.
func specOf(c wire.Confinement) *confine.Spec {
	if c.Reach == "" {
		return nil
	}
	s := &confine.Spec{Reach: c.Reach, Project: string(c.Project), Proxy: string(c.Proxy)}
	for _, dir := range c.Caches {
		s.Caches = append(s.Caches, string(dir))
	}
	for _, path := range c.Hidden {
		s.Hidden = append(s.Hidden, string(path))
	}
	return s
}

// complete reports a command's end under its own lease.
func (l *Lender) complete(e *execution, done *wire.CommandCompleted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done.Cwd = cmp.Or(done.Cwd, wire.OSString(l.dir))
	l.dir = string(done.Cwd)
	g := e.grant
	g.exec, g.last, g.settles = nil, done, true
	l.send(done)
}

// completed returns the report of a command's end.
func completed(e *execution, r shell.Result, err error) *wire.CommandCompleted {
	done := &wire.CommandCompleted{
		LeaseRef: e.msg.LeaseRef, ExecutionID: e.msg.ExecutionID, Output: r.Output, ExitCode: r.ExitCode, Signal: r.Signal, Status: r.Status,
		Cwd: wire.OSString(r.Dir), JobPID: r.JobPID, DurationMS: r.Duration.Milliseconds(), Leftovers: []wire.Process{}, Notes: slices.Clone(r.Notes),
	}
	if done.Output == nil {
		done.Output = []byte{}
	}
	if r.Truncated > 0 {
		done.Truncated = &wire.Truncation{Bytes: r.Truncated, SpoolPath: wire.OSString(r.SpoolPath)}
	}
	for _, p := range r.Leftovers {
		done.Leftovers = append(done.Leftovers, wire.Process{PID: p.PID, Command: wire.OSString(p.Command)})
	}
	cause := context.Cause(e.ctx)
	switch {
	case err != nil && done.Status == "" && e.ctx.Err() != nil:
		done.Status = wire.StatusCancelled
	case err != nil && done.Status == "":
		done.Status = wire.StatusRefused
		done.Notes = append(done.Notes, "the shell could not run it: "+err.Error())
	}
	if done.Status == wire.StatusCancelled {
		switch {
		case errors.Is(cause, errTooLong):
			done.Status = wire.StatusTimeout
		case cause != nil && !errors.Is(cause, context.Canceled):
			done.Notes = append(done.Notes, cause.Error())
		}
	}
	if done.Notes == nil {
		done.Notes = []string{}
	}
	return done
}
