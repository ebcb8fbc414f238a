package lender

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sublet/wire"
)

// Why a borrowed command is cancelled.
var (
	errTakenBack  = errors.New("taken back by the user")
	errDaemonGone = errors.New("the daemon that asked for it is gone")
	errLinkLost   = errors.New("the connection to the daemon did not come back")
	errLeaseOver  = errors.New("its lease is over")
	errClosing    = errors.New("the shell is closing")
	errCancelled  = errors.New("cancelled")
	errTooLong    = errors.New("took too long")
)

// Handle handles a lease message from the daemon. It never blocks; every message but a late cancel is answered.
func (l *Lender) Handle(m wire.LeaseMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *wire.AcquireShellLease:
		l.acquireLocked(m)
	case *wire.ExecuteLeasedCommand:
		l.executeLocked(&execution{msg: m, toJob: make(chan struct{}, 1)})
	case *wire.RestoreShellState:
		msg := &wire.ExecuteLeasedCommand{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, TimeoutMS: m.TimeoutMS}
		l.executeLocked(&execution{msg: msg, undo: true, all: m.All})
	case *wire.CancelLeasedCommand:
		l.cancelLocked(m)
	case *wire.ContinueLeasedCommand:
		l.continueLocked(m)
	case *wire.ReleaseShellLease:
		l.releaseLocked(m)
	}
}

// acquireLocked queues an offer, which the worker grants once the line editor is held.
func (l *Lender) acquireLocked(m *wire.AcquireShellLease) {
	if l.closing != "" {
		l.send(&wire.ShellLeaseDenied{LeaseRef: m.LeaseRef, Reason: l.closing})
		return
	}
	if g := l.grant; g != nil && g.ref() == m.LeaseRef {
		l.acquiredLocked(g) // a repeated request gets the answer again
		return
	}
	if w := l.waiting; w != nil && w.LeaseRef == m.LeaseRef {
		l.waiting = m
		l.scheduleQueuedReportLocked()
		return
	}
	if m.Fence <= l.newest { // the lease was superseded or has ended
		l.answerEndedLocked(m.LeaseRef, wire.ReleasedReleased)
		return
	}
	// The daemon makes an offer only when it regards the last lease as ended, so older ones are stale even if the message about
	// their end was lost.
	l.newest = m.Fence
	if l.waiting != nil {
		l.answerEndedLocked(l.waiting.LeaseRef, wire.ReleasedReleased)
	}
	l.waiting = m
	if g := l.grant; g != nil { // there is at most one holder
		l.endLocked(g, wire.ReleasedExpired, errLeaseOver)
	}
	if l.grant != nil {
		l.sendQueuedLocked(m, "")
	}
	l.scheduleQueuedReportLocked()
	l.wakeWorker()
	l.changedLocked()
}

// sendQueuedLocked reports to the daemon that m waits: for the current lease, which is ending, else for the user. why is what keeps
// the line editor busy; "" = not known.
func (l *Lender) sendQueuedLocked(m *wire.AcquireShellLease, why string) {
	q := &wire.ShellLeaseQueued{LeaseRef: m.LeaseRef, Holder: "user", Why: why}
	switch {
	case l.grant != nil:
		q.Holder, q.HeldMS = l.grant.acquire.Agent, time.Since(l.grant.since).Milliseconds()
	case !l.user.IsZero():
		q.HeldMS = time.Since(l.user).Milliseconds()
	}
	l.send(q)
}

// scheduleQueuedReportLocked schedules another report about what the worker waits for.
func (l *Lender) scheduleQueuedReportLocked() {
	if l.holding.late != nil {
		l.holding.late.Reset(0)
	}
}

// reportQueued reports to the daemon why the line editor is not free.
func (l *Lender) reportQueued() {
	why := l.Shell.Busy()
	if why == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting != nil {
		l.sendQueuedLocked(l.waiting, why)
	}
}

// grantLocked grants the waiting lease. The line editor must be held, and the daemon must have the shell's
// current state, by which it judges.
func (l *Lender) grantLocked() {
	m := l.waiting
	l.waiting = nil
	l.grant = &grant{acquire: m, since: time.Now(), seen: map[wire.ExecutionID]bool{}}
	l.acquiredLocked(l.grant)
	l.changedLocked()
	l.Log.Info("shell lent", "lease", m.LeaseID, "fence", m.Fence, "agent", m.Agent)
}

func (l *Lender) acquiredLocked(g *grant) {
	l.send(&wire.ShellLeaseAcquired{LeaseRef: g.ref(), Cwd: wire.OSString(l.dir), State: l.state.Digest})
}

// executeLocked accepts a command or a request to restore the state, or refuses it. The fingerprint is compared later, just
// before the command runs, when the shell's state is known.
func (l *Lender) executeLocked(e *execution) {
	g, m := l.grant, e.msg
	if g != nil && g.ref() == refOf(m) {
		defer func() { g.seen[m.ExecutionID] = true }()
	}
	switch {
	case g == nil || g.ref() != refOf(m) || g.ending != "":
		if old := l.findEndedLocked(m.LeaseID); old != nil && old.last != nil && old.last.ExecutionID == m.ExecutionID {
			l.send(old.last)
			return
		}
		l.refuse(m, "the lease is over")
	case g.exec != nil && g.exec.msg.ExecutionID == m.ExecutionID: // a repeat of the current request
	case g.last != nil && g.last.ExecutionID == m.ExecutionID:
		l.send(g.last)
	case g.seen[m.ExecutionID]:
		l.refuse(m, "it was asked for before")
	case g.exec != nil:
		l.refuse(m, "another command of this lease is running")
	case !l.user.IsZero():
		g.last = l.refuse(m, "the user is running a command")
	default:
		e.grant = g
		e.ctx, e.cancel = context.WithCancelCause(l.ctx)
		g.exec = e
		l.wakeWorker()
		l.changedLocked()
	}
}

// refOf returns the lease that a message belongs to, for a comparison: without the id of a request.
func refOf(m wire.LeaseMessage) wire.LeaseRef {
	return wire.LeaseRef{LeaseID: m.Ref().LeaseID, Fence: m.Ref().Fence}
}

// refuse answers that a command does not run. The answer is returned, to be kept as the end of the lease's last command.
func (l *Lender) refuse(m *wire.ExecuteLeasedCommand, why string) *wire.CommandCompleted {
	l.Log.Info("leased command refused", "lease", m.LeaseID, "fence", m.Fence, "why", why)
	refused := &wire.CommandCompleted{
		LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Status: wire.StatusRefused, Cwd: wire.OSString(l.dir),
		Output: []byte{}, Leftovers: []wire.Process{}, Notes: []string{why},
	}
	l.send(refused)
	return refused
}

// cancelLocked cancels one command and leaves its lease in force. The command may have ended, and its lease, too.
func (l *Lender) cancelLocked(m *wire.CancelLeasedCommand) {
	for _, g := range []*grant{l.grant, l.ended} {
		switch {
		case g == nil || g.ref().LeaseID != m.LeaseID:
		case g.exec != nil && g.exec.msg.ExecutionID == m.ExecutionID:
			g.exec.cancel(cancelCause(m.Reason))
			return
		case g.last != nil && g.last.ExecutionID == m.ExecutionID:
			l.send(g.last) // it has ended already: send its end again
			return
		}
	}
	l.Log.Debug("nothing to cancel", "lease", m.LeaseID, "execution", m.ExecutionID)
}

// continueLocked has the running command go on as a job of the shell. A command that has ended was reported.
func (l *Lender) continueLocked(m *wire.ContinueLeasedCommand) {
	if g := l.grant; g != nil && g.ref() == refOf(m) && g.exec != nil && g.exec.msg.ExecutionID == m.ExecutionID {
		select {
		case g.exec.toJob <- struct{}{}:
		default: // it is asked for already
		}
	}
}

func cancelCause(reason string) error {
	switch reason {
	case "timeout":
		return errTooLong
	case "stale":
		return errLeaseOver
	}
	return errCancelled
}

// releaseLocked ends a lease in any state, and always answers, since an unanswered release would leave the lease in the
// daemon's queue.
func (l *Lender) releaseLocked(m *wire.ReleaseShellLease) {
	reason := wire.ReleasedReleased
	switch m.Reason {
	case "expired":
		reason = wire.ReleasedExpired
	case "disconnected":
		reason = wire.ReleasedDisconnected
	}
	if g := l.grant; g != nil && g.ref().LeaseID == m.LeaseID {
		l.endLocked(g, reason, errLeaseOver)
		l.changedLocked()
		return
	}
	if l.waiting != nil && l.waiting.LeaseID == m.LeaseID {
		l.forgetLocked()
		l.changedLocked()
	}
	l.newest = max(l.newest, m.Fence) // if the offer arrives after the release, it is stale
	l.answerEndedLocked(m.LeaseRef, reason)
}

// answerEndedLocked answers that a lease has ended: with its own reason if it was in force here, else with the given one.
func (l *Lender) answerEndedLocked(ref wire.LeaseRef, reason string) {
	if g := l.findEndedLocked(ref.LeaseID); g != nil && g.acquire.Fence == ref.Fence {
		reason = g.ending
	}
	l.send(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: reason})
}

// endLocked ends a lease with ShellLeaseReleased, after which the daemon expects nothing more of it. If a command runs, endLocked
// cancels it with cause; execute then ends the lease, once the command's end and its changes have been sent. The first reason is kept.
func (l *Lender) endLocked(g *grant, reason string, cause error) {
	g.ending = cmp.Or(g.ending, reason)
	if g.exec != nil || g.settles {
		if g.exec != nil {
			g.exec.cancel(cause)
		}
		return
	}
	l.grant, l.ended = nil, g
	l.send(&wire.ShellLeaseReleased{LeaseRef: g.ref(), Reason: g.ending})
	l.Log.Info("lease ended", "lease", g.ref().LeaseID, "fence", g.ref().Fence, "reason", g.ending)
	l.wakeWorker()
}

// findEndedLocked returns the lease of an id if it is the last that ended, else nil. The daemon offers another only when it knows of
// that end, so that no message about an earlier one can follow.
func (l *Lender) findEndedLocked(id wire.LeaseID) *grant {
	if l.ended != nil && l.ended.ref().LeaseID == id {
		return l.ended
	}
	return nil
}

// TakeBack ends the current lease on behalf of the user and cancels its command.
func (l *Lender) TakeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant != nil {
		l.endLocked(l.grant, wire.ReleasedByUser, errTakenBack)
		l.changedLocked()
	}
}
