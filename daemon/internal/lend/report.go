package lend

import (
	"slices"
	"time"

	"sublet/lease"
	"sublet/wire"
	"sublet/wire/visible"
)

// Report handles a message of the client about its own leases. From a connection that was replaced it returns ErrNotShellOwner,
// except for CommandOutput, which it drops. Each message is checked against the current lease and fence: one that is late,
// foreign or repeated changes no lease, but what it reports of the shell itself counts.
func (ln *Lender) Report(w Window, m wire.LeaseMessage) error {
	now, ref := time.Now(), lease.Ref{ID: string(m.Ref().LeaseID), Fence: m.Ref().Fence}
	if out, ok := m.(*wire.CommandOutput); ok {
		ln.output(w, ref, out)
		return nil
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window != w {
		return ErrNotShellOwner
	}
	switch m := m.(type) {
	case *wire.ShellLeaseQueued:
		ln.queued(now, ref, m)
	case *wire.ShellLeaseAcquired:
		ln.acquired(now, ref, m)
	case *wire.ShellLeaseDenied:
		ln.denied(now, ref, m)
	case *wire.CommandStarted:
		ln.started(now, ref, m)
	case *wire.CommandCompleted:
		ln.completed(now, ref, m)
	case *wire.ShellLeaseReleased:
		ln.released(now, ref, m)
	}
	return nil
}

// Of the methods below, those that take a ref handle one kind of message each, for Report, and are called with mu held.

// waitingLocked returns the borrow in the queue whose lease has that ref, or nil.
func (ln *Lender) waitingLocked(ref lease.Ref) *borrow {
	for l := range ln.m.Waiting {
		if l.Ref() == ref {
			return l.Owner.(*borrow)
		}
	}
	return nil
}

// queued records that the client cannot lend yet, and why.
func (ln *Lender) queued(now time.Time, ref lease.Ref, m *wire.ShellLeaseQueued) {
	ln.m.Wait(now, ref, m.Holder, time.Duration(m.HeldMS)*time.Millisecond)
	if b := ln.waitingLocked(ref); b != nil {
		b.why = visible.Exact(visible.Cut(m.Why, maxWhy))
		b.report(&wire.ShellLeaseQueued{Holder: m.Holder, HeldMS: m.HeldMS, Why: b.why})
	}
}

// acquired records that the client grants the shell, in the folder m.Cwd, to the borrower that it was offered to. Its command is sent if
// the borrower is ready.
func (ln *Lender) acquired(now time.Time, ref lease.Ref, m *wire.ShellLeaseAcquired) {
	b := ln.waitingLocked(ref)
	offered := b != nil && b.lease.State == lease.Offered
	ln.view.cwd, ln.view.digest = string(m.Cwd), m.State
	ln.apply(ln.m.Acquired(now, ref))
	if offered {
		b.report(m)
	}
}

// denied ends the wait of the borrower whom the client refused, with the outcome of m.Reason. The caller holds mu.
func (ln *Lender) denied(now time.Time, ref lease.Ref, m *wire.ShellLeaseDenied) {
	outcome := lease.Denied
	switch m.Reason {
	case wire.DeniedBroken:
		if b := ln.waitingLocked(ref); b != nil {
			b.broken = visible.Exact(visible.Cut(m.Why, maxWhy))
		}
	case wire.DeniedNoShell:
		outcome = lease.NoShell
	case wire.DeniedShuttingDown:
		outcome = lease.ShuttingDown
	case wire.DeniedTimeout:
		outcome = lease.TimedOut
		ln.m.Wait(now, ref, m.Holder, time.Duration(m.HeldMS)*time.Millisecond)
	}
	ln.apply(ln.m.Refused(now, ref, outcome))
}

// started records that the command runs, and whether it has the user's keyboard.
func (ln *Lender) started(now time.Time, ref lease.Ref, m *wire.CommandStarted) {
	if l := ln.m.Current(); m.Stays != "" && l != nil && l.Ref() == ref && l.Running() == string(m.ExecutionID) {
		l.Owner.(*borrow).request.continuation.refuse(visible.Cut(visible.Line(m.Stays), maxWhy))
	}
	if ln.m.Started(now, ref, string(m.ExecutionID)) {
		ln.m.Current().Owner.(*borrow).report(&wire.CommandStarted{ExecutionID: m.ExecutionID})
	}
	ln.m.Keyboard(now, ref, string(m.ExecutionID), m.Keyboard)
	ln.setTimer()
}

// completed passes the command's end to its borrower.
func (ln *Lender) completed(now time.Time, ref lease.Ref, m *wire.CommandCompleted) {
	l := ln.m.Current()
	ok, effects := ln.m.Completed(now, ref, string(m.ExecutionID))
	if ok {
		if m.Status == wire.StatusCancelled && slices.ContainsFunc(effects, endsRevoked) {
			m.Notes = []string{"its lease was revoked"}
		}
		if m.Cwd != "" {
			ln.view.cwd = string(m.Cwd)
		}
		l.Owner.(*borrow).completed <- m
	}
	ln.apply(effects)
	if ok && ln.m.Len() > 1 { // the next waiter gets the shell before this borrower calls giveBack
		ln.apply(ln.m.Release(now, l))
	}
}

// released ends the lease that the client reports as over, for m.Reason.
func (ln *Lender) released(now time.Time, ref lease.Ref, m *wire.ShellLeaseReleased) {
	outcome := lease.Revoked
	switch m.Reason {
	case wire.ReleasedShellExited:
		outcome = lease.ShellExited
	case wire.ReleasedDisconnected:
		outcome = lease.Disconnected
	case wire.ReleasedExpired:
		outcome = lease.Expired
	case wire.ReleasedReleased:
		outcome = lease.Released
	}
	if ref == ln.unanswered {
		ln.releaseAnswered()
	}
	if m.Reason == wire.ReleasedUserFirst && ln.preempted(now, ref) {
		return
	}
	ln.apply(ln.m.Gone(now, ref, outcome))
}

// preempted puts the holder of the lease back into the queue, because the user began a command first. It returns false, and changes
// nothing, if the holder's command has started or ended. It is called with mu held.
func (ln *Lender) preempted(now time.Time, ref lease.Ref) bool {
	if l := ln.m.Current(); l != nil && l.Ref() == ref {
		b := l.Owner.(*borrow)
		if b.begun && (l.Running() == "" || l.Began()) {
			return false
		}
		b.begun = false // its command is handed over again later
	}
	ln.apply(ln.m.Preempted(now, ref, "user"))
	return true
}

// endsRevoked reports whether an effect ends a lease as Revoked. Of the effects of a command's end, that is a lease which Lender.revoke had
// taken back; one that the user takes back in the window ends in released.
func endsRevoked(e lease.Effect) bool { return e.Do == lease.End && e.Reason == lease.Revoked }

// output passes live output on, without the lock: it comes from the connection's one reader, so it stays in order.
func (ln *Lender) output(w Window, ref lease.Ref, m *wire.CommandOutput) {
	ln.mu.Lock()
	var to *borrow
	if ln.conn.window == w && ln.m.Output(ref, string(m.ExecutionID)) {
		to = ln.m.Current().Owner.(*borrow)
	}
	ln.mu.Unlock()
	if to != nil {
		to.report(m)
	}
}
