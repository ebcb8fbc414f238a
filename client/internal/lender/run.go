package lender

import (
	"context"
	"errors"
	"slices"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// take waits for the shell. If ctx ends first it returns ctx's cause.
func (l *Lender) take(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.mu.Lock()
		busy := l.token
		if busy == nil {
			l.token = make(chan struct{})
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		}
	}
}

func (l *Lender) give() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveLocked()
}

func (l *Lender) giveLocked() {
	close(l.token)
	l.token = nil
}

// Run runs a command of the user and returns at its end; out (nil = none) is called with nothing when the command begins
// to run, and then receives its raw output, from one goroutine, in order, and may keep the shell waiting. The user comes first:
// nothing is lent from here on until the end. While a borrowed command runs Run returns *LentError at once; with takeBack it
// cancels that command, ends its lease, and waits (at most 5 s) for the shell, and until the observer was told all of that
// command. Other errors: ErrBusy, ErrClosed, ctx's cause, the shell's own. When ctx ends the command is cancelled.
func (l *Lender) Run(ctx context.Context, text string, takeBack bool, out func([]byte)) (shell.Result, error) {
	l.mu.Lock()
	switch {
	case l.closing != "":
		l.mu.Unlock()
		return shell.Result{}, ErrClosed
	case l.user != nil:
		l.mu.Unlock()
		return shell.Result{}, ErrBusy
	}
	if g := l.grant; g != nil && g.exec != nil {
		if !takeBack {
			defer l.mu.Unlock()
			return shell.Result{}, &LentError{Lending: l.lendingLocked()}
		}
		l.endLocked(g, wire.ReleasedByUser, errTakenBack)
	} else if g != nil && len(g.seen) == 0 {
		l.endLocked(g, wire.ReleasedUserFirst, nil) // whose command is still on its way has not had its turn
	}
	l.user = &use{since: time.Now()}
	if l.looking != nil {
		l.looking()
	}
	l.wantedLocked()
	l.changedLocked()
	if l.up {
		l.send(&wire.ShellUseReply{Holder: "user"}) // this is the window typed in last
	}
	l.mu.Unlock()

	defer func() {
		l.mu.Lock()
		l.user, l.dirty, l.userAt = nil, true, time.Now()
		l.changedLocked()
		l.mu.Unlock()
		l.stir() // whoever waited may have it now
	}()
	if err := l.take(ctx); err != nil {
		return shell.Result{}, err
	}
	defer l.give()
	if takeBack {
		all := make(shown)
		l.events.put(all)
		select {
		case <-all:
		case <-ctx.Done():
		case <-l.ctx.Done():
		}
	}
	c := shell.Command{Text: text, User: true, Output: out}
	if out != nil {
		c.Started = func() { out(nil) }
	}
	r, err := l.sh.Run(ctx, c)
	if r.Respawned {
		l.events.put(Respawned{Why: r.Why})
	}
	return r, err
}

// worker is the one goroutine that runs borrowed commands and looks at the shell's state.
func (l *Lender) worker() {
	exited := l.sh.Exited()
	for {
		select {
		case <-l.stirred:
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

// step does the next thing there is to do with the shell and reports whether to look again.
func (l *Lender) step() bool {
	l.mu.Lock()
	if g := l.grant; g != nil && g.exec != nil {
		l.mu.Unlock()
		l.execute(g.exec)
		return true
	}
	if l.user != nil || l.closing != "" {
		l.mu.Unlock()
		return false
	}
	if l.staleLocked() {
		ctx, cancel := context.WithCancel(l.ctx)
		l.looking = cancel // the user ends it by wanting the shell
		l.mu.Unlock()
		if l.take(ctx) == nil {
			l.look(ctx)
			l.give()
		}
		l.mu.Lock()
		l.looking = nil
		cancel()
		l.mu.Unlock()
		return true
	}
	granted := l.grantLocked()
	if granted {
		l.changedLocked()
	}
	l.mu.Unlock()
	return false
}

// execute runs a borrowed command to its end. Whatever happens, CommandCompleted is sent once.
func (l *Lender) execute(e *execution) {
	m := e.msg
	defer e.cancel(nil)
	if err := l.take(e.ctx); err != nil {
		l.complete(e, shell.Result{Status: wire.StatusCancelled, Dir: l.sh.Dir()}, nil)
		l.mu.Lock()
		l.settledLocked(e)
		l.changedLocked()
		l.mu.Unlock()
		return
	}
	l.look(e.ctx) // the daemon knows the state a command starts in
	if e.undo {
		l.restore(e)
		l.mu.Lock()
		l.settledLocked(e)
		l.giveLocked()
		l.changedLocked()
		l.mu.Unlock()
		return
	}
	l.mu.Lock()
	before := l.state
	if m.Fingerprint != wire.Fingerprint(m.Command, m.Cwd, l.sh.Digest()) {
		e.grant.exec = nil
		l.refuse(m, "the shell changed since this was judged")
		l.settledLocked(e)
		l.giveLocked()
		l.changedLocked()
		l.mu.Unlock()
		return
	}
	l.ran = joined(l.ran, m.ExecutionID)
	l.mu.Unlock()

	p := newPump(l.send, m.LeaseRef, m.ExecutionID)
	began := false
	r, err := l.sh.Run(e.ctx, shell.Command{
		Text: string(m.Command), Dir: string(m.Cwd), Timeout: time.Duration(m.TimeoutMS) * time.Millisecond,
		Started: func() {
			began = true
			l.send(&wire.CommandStarted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID})
			l.events.put(LeasedStarted{
				ExecutionID: m.ExecutionID, Agent: e.grant.acquire.Agent, Command: string(m.Command), Cwd: string(m.Cwd), TurnID: e.grant.acquire.TurnID,
			})
		},
		Output: func(data []byte) {
			l.events.put(LeasedOutput{ExecutionID: m.ExecutionID, Data: slices.Clone(data)})
			p.add(data)
		},
		Keyboard: func(why string) { l.events.put(LeasedKeyboard{ExecutionID: m.ExecutionID, Why: why}) },
	})
	p.close()
	status := l.complete(e, r, err)
	l.lookAfter(func() { // the lock is held
		if r.Respawned {
			l.events.put(Respawned{Why: "a borrowed command ended it: " + r.Why})
		}
		changed := ""
		if before.Digest != "" { // the digest is over what later commands are judged by only
			changed = shell.Difference(before, l.state)
			if changed != "" {
				l.change = &change{by: m.ExecutionID, before: before, after: l.state}
			}
		}
		if began {
			// What was typed for the agent's program, and not read by it, may be a password: it is nobody's now. A user's own
			// typing ahead stays in the editor, which had the keyboard unless the program asked for it.
			r.Unread = nil
			l.events.put(LeasedEnded{ExecutionID: m.ExecutionID, Result: r, Changed: changed, Status: status})
		}
	})
	l.mu.Lock()
	l.settledLocked(e)
	l.giveLocked()
	l.changedLocked()
	l.mu.Unlock()
}

// restore is RestoreShellState once the shell is its own.
func (l *Lender) restore(e *execution) {
	ctx, cancel := context.WithTimeoutCause(e.ctx, time.Duration(e.msg.TimeoutMS)*time.Millisecond, errTooLong)
	defer cancel()
	begun := time.Now()
	l.send(&wire.CommandStarted{LeaseRef: e.msg.LeaseRef, ExecutionID: e.msg.ExecutionID})
	changed, err := l.putBack(ctx)
	r := shell.Result{Output: []byte(changed), Dir: l.sh.Dir(), Duration: time.Since(begun)}
	if err == nil {
		r.Status = wire.StatusOK
	}
	l.complete(e, r, err)
}

// settledLocked ends an execution, and its lease if that was to end with it.
func (l *Lender) settledLocked(e *execution) {
	e.grant.settles = false
	if e.grant.ending != "" {
		l.endLocked(e.grant, e.grant.ending, nil)
	}
	close(e.done)
}

// complete reports a command's end under its own lease (T2e).
func (l *Lender) complete(e *execution, r shell.Result, err error) (status string) {
	done := completed(e, r, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	g := e.grant
	g.exec, g.last, g.settles, l.dirty, l.lentAt = nil, done, true, true, time.Now()
	l.send(done)
	return done.Status
}

// outputMost is more than the shell keeps by default and a quarter of what a frame holds (T2f).
const outputMost = wire.MaxFrame / 4

func completed(e *execution, r shell.Result, err error) *wire.CommandCompleted {
	done := &wire.CommandCompleted{
		LeaseRef: e.msg.LeaseRef, ExecutionID: e.msg.ExecutionID, Output: r.Output, ExitCode: r.ExitCode, Signal: r.Signal, Status: r.Status,
		Cwd: wire.OSString(r.Dir), DurationMS: r.Duration.Milliseconds(), Leftovers: []wire.Process{}, Notes: slices.Clone(r.Notes),
	}
	if done.Output == nil {
		done.Output = []byte{}
	}
	cut := r.Truncated
	if over := len(done.Output) - outputMost; over > 0 {
		done.Output = slices.Concat(done.Output[:outputMost/2], done.Output[len(done.Output)-outputMost/2:])
		cut += int64(over)
	}
	if cut > 0 {
		done.Truncated = &wire.Truncation{Bytes: cut, SpoolPath: wire.OSString(r.SpoolPath)}
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
