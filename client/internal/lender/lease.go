package lender

import (
	"context"
	"errors"
	"slices"
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

// Handle takes a message of a lease from the daemon. It never waits; every message but a late cancel has an answer.
func (l *Lender) Handle(m wire.LeaseMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *wire.AcquireShellLease:
		l.acquireLocked(m)
	case *wire.ExecuteLeasedCommand:
		l.executeLocked(&execution{msg: m})
	case *wire.RestoreShellState:
		msg := &wire.ExecuteLeasedCommand{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, TimeoutMS: m.TimeoutMS}
		l.executeLocked(&execution{msg: msg, undo: true, all: m.All})
	case *wire.CancelLeasedCommand:
		l.cancelLocked(m)
	case *wire.ReleaseShellLease:
		l.releaseLocked(m)
	default:
		l.log.Warn("unexpected lease message", "kind", m.Kind())
	}
}

// acquireLocked queues an offer, which the worker grants once the line editor is held.
func (l *Lender) acquireLocked(m *wire.AcquireShellLease) {
	select {
	case <-l.exited:
		l.closeLocked(wire.DeniedNoShell, wire.ReleasedShellExited)
	default:
	}
	if l.closing != "" {
		l.send(&wire.ShellLeaseDenied{LeaseRef: m.LeaseRef, Reason: l.closing})
		return
	}
	if g := l.grant; g != nil && g.ref() == m.LeaseRef {
		l.acquiredLocked(g) // asked twice, answered twice
		return
	}
	if i := slices.IndexFunc(l.waiting, func(w *wire.AcquireShellLease) bool { return w.LeaseRef == m.LeaseRef }); i >= 0 {
		l.waiting[i] = m
		l.tellQueuedLocked()
		return
	}
	if m.Fence <= l.newest {
		// It was superseded or is over: nothing may wait for it.
		l.overLocked(m.LeaseRef, wire.ReleasedReleased)
		return
	}
	// The daemon offers to the next only when it holds the last one's lease for over: what is older is stale, whatever
	// became of the message that said so.
	l.newest = m.Fence
	for _, w := range l.waiting {
		l.overLocked(w.LeaseRef, wire.ReleasedReleased)
	}
	l.waiting = []*wire.AcquireShellLease{m}
	if g := l.grant; g != nil {
		// One holder at most: it ends now, its command first.
		l.endLocked(g, wire.ReleasedExpired, errLeaseOver)
	}
	if l.grant != nil {
		l.queueLocked(m, "")
	}
	l.tellQueuedLocked()
	l.stir()
	l.changedLocked()
}

// queueLocked reports that a lease waits, for the user where the last one does not still settle.
func (l *Lender) queueLocked(m *wire.AcquireShellLease, why string) {
	q := &wire.ShellLeaseQueued{LeaseRef: m.LeaseRef, Holder: "user", Why: why}
	switch {
	case l.grant != nil:
		q.Holder, q.HeldMS = l.grant.acquire.Agent, time.Since(l.grant.since).Milliseconds()
	case !l.user.IsZero():
		q.HeldMS = time.Since(l.user).Milliseconds()
	}
	l.send(q)
}

// tellQueuedLocked has what the worker waits for reported anew.
func (l *Lender) tellQueuedLocked() {
	if l.queued != nil {
		l.queued.Reset(0)
	}
}

// tellQueued reports to the daemon why the editor is not free.
func (l *Lender) tellQueued() {
	why := l.sh.Busy()
	if why == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.waiting {
		l.queueLocked(m, why)
	}
}

// grantLocked lends the shell to the first in the queue. The editor is held, and the daemon knows the shell's state: what
// it judges by must be what is there.
func (l *Lender) grantLocked() {
	m := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.grant = &grant{acquire: m, since: time.Now(), seen: map[wire.ExecutionID]bool{}}
	l.acquiredLocked(l.grant)
	l.changedLocked()
	l.log.Info("shell lent", "lease", m.LeaseID, "fence", m.Fence, "agent", m.Agent)
}

func (l *Lender) acquiredLocked(g *grant) {
	l.send(&wire.ShellLeaseAcquired{LeaseRef: g.ref(), Cwd: wire.OSString(l.dir), State: l.state.Digest})
}

// executeLocked accepts a command, or the wish to put the state back, or refuses it. The fingerprint is compared just before
// it runs, when the editor is held and the shell's state known.
func (l *Lender) executeLocked(e *execution) {
	g, m := l.grant, e.msg
	if g != nil && g.ref() == refOf(m) {
		defer func() { g.seen[m.ExecutionID] = true }()
	}
	switch {
	case g == nil || g.ref() != refOf(m) || g.ending != "":
		if old := l.endedLocked(m.LeaseRef); old != nil && old.last != nil && old.last.ExecutionID == m.ExecutionID {
			l.send(old.last)
			return
		}
		l.refuse(m, "the lease is over")
	case g.exec != nil && g.exec.msg.ExecutionID == m.ExecutionID:
		// A repeat of what is being done.
	case g.last != nil && g.last.ExecutionID == m.ExecutionID:
		l.send(g.last)
	case g.seen[m.ExecutionID]:
		l.refuse(m, "it was asked for before")
	case g.exec != nil:
		l.refuse(m, "another command of this lease is running")
	case !l.user.IsZero():
		l.refuse(m, "the user is running a command")
	default:
		e.grant, e.done = g, make(chan struct{})
		e.ctx, e.cancel = context.WithCancelCause(l.ctx)
		g.exec = e
		l.stir()
		l.changedLocked()
	}
}

// refOf is the lease that a message is of, as it is kept here.
func refOf(m wire.LeaseMessage) wire.LeaseRef {
	return wire.LeaseRef{LeaseID: m.Ref().LeaseID, Fence: m.Ref().Fence}
}

func (l *Lender) refuse(m *wire.ExecuteLeasedCommand, why string) {
	l.log.Info("leased command refused", "lease", m.LeaseID, "fence", m.Fence, "why", why)
	l.send(&wire.CommandCompleted{
		LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Status: wire.StatusRefused, Cwd: wire.OSString(l.dir),
		Output: []byte{}, Leftovers: []wire.Process{}, Notes: []string{why},
	})
}

// cancelLocked ends the command itself, not only who waits for it.
func (l *Lender) cancelLocked(m *wire.CancelLeasedCommand) {
	for _, g := range append([]*grant{l.grant}, l.ended...) {
		switch {
		case g == nil || g.ref().LeaseID != m.LeaseID:
		case g.exec != nil && g.exec.msg.ExecutionID == m.ExecutionID:
			g.exec.cancel(cancelCause(m.Reason))
			return
		case g.last != nil && g.last.ExecutionID == m.ExecutionID:
			l.send(g.last) // it had ended
			return
		}
	}
	l.log.Debug("nothing to cancel", "lease", m.LeaseID, "execution", m.ExecutionID)
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

// releaseLocked gives up a lease in whatever state it is, and always answers: a release that is ignored leaves a ghost
// in the daemon's queue.
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
	if n := len(l.waiting); n > 0 {
		l.waiting = slices.DeleteFunc(l.waiting, func(w *wire.AcquireShellLease) bool { return w.LeaseID == m.LeaseID })
		if len(l.waiting) == 0 {
			l.forgetLocked()
		}
		if len(l.waiting) < n {
			l.changedLocked()
		}
	}
	l.newest = max(l.newest, m.Fence) // should the offer itself come only now, it is over
	l.overLocked(m.LeaseRef, reason)
}

// overLocked answers that a lease is over: for its own reason where it was in force here, else for the one given.
func (l *Lender) overLocked(ref wire.LeaseRef, reason string) {
	if g := l.endedLocked(ref); g != nil && g.acquire.Fence == ref.Fence { // it may have been lent twice
		reason = g.reason
	}
	l.send(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: reason})
}

// endLocked ends a lease: at once, or once its running command has been cancelled, has ended and its change of the shell's
// state was sent: the daemon takes the answer to a release as the sign that it knows all. The first reason stands.
func (l *Lender) endLocked(g *grant, reason string, cause error) {
	if g.exec != nil || g.settles {
		if g.ending == "" {
			g.ending = reason
		}
		if g.exec != nil {
			g.exec.cancel(cause)
		}
		return
	}
	g.reason = reason
	l.ended = append(l.ended, g)
	if len(l.ended) > endedKept {
		l.ended = slices.Delete(l.ended, 0, 1)
	}
	l.grant = nil
	l.send(&wire.ShellLeaseReleased{LeaseRef: g.ref(), Reason: reason})
	l.log.Info("lease over", "lease", g.ref().LeaseID, "fence", g.ref().Fence, "reason", reason)
	l.stir()
}

func (l *Lender) endedLocked(ref wire.LeaseRef) *grant {
	for _, g := range slices.Backward(l.ended) {
		if g.ref().LeaseID == ref.LeaseID {
			return g
		}
	}
	return nil
}

// TakeBack ends the lease in force and cancels its command. The daemon learns that the user did it.
func (l *Lender) TakeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant != nil {
		l.endLocked(l.grant, wire.ReleasedByUser, errTakenBack)
		l.changedLocked()
	}
}
