package lender

import (
	"maps"
	"time"

	"sublet/wire"
)

// Snapshot fills in what the shell knows: environment, directory, and the leases as this side knows them, those included
// whose end the daemon may not have received.
func (l *Lender) Snapshot(s *wire.EnvSnapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Digest != "" { // else the shell has not reported its variables yet
		l.sentEnv = Public(l.state.Vars)
	}
	s.Env = maps.Clone(l.sentEnv)
	s.Cwd = wire.OSString(l.dir)
	s.Leases = []wire.HeldLease{}
	for _, g := range []*grant{l.ended, l.grant} {
		if g != nil {
			s.Leases = append(s.Leases, wire.HeldLease{LeaseID: g.ref().LeaseID, Fence: g.ref().Fence, ExecutionID: g.execution()})
		}
	}
}

// execution returns the command that runs under g, else the last one.
func (g *grant) execution() wire.ExecutionID {
	switch {
	case g.exec != nil:
		return g.exec.msg.ExecutionID
	case g.last != nil:
		return g.last.ExecutionID
	}
	return ""
}

// Up starts using a new link: both sides drop leases that the other does not know, and ends that the daemon may have missed are
// sent again. A lease that the daemon does not list ends here together with its command.
func (l *Lender) Up(r *wire.Ready) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = true
	l.sentDigest, l.newest = "", 0 // fences belong to the daemon; no message of an earlier link can arrive on this one
	l.bodies = nil
	l.unsent, l.sentLast = joined(l.sentLast, l.unsent...), nil // the last state may not have arrived
	if l.grace != nil {
		l.grace.Stop()
		l.grace = nil
	}
	theirs := map[wire.LeaseID]wire.HeldLease{}
	for _, h := range r.Leases {
		theirs[h.LeaseID] = h
		l.newest = max(l.newest, h.Fence)
	}
	if g := l.grant; g != nil {
		if h, known := theirs[g.ref().LeaseID]; known && h.Fence == g.ref().Fence {
			delete(theirs, h.LeaseID)
			l.resendEndLocked(g, h)
			if g.exec != nil && g.exec.handed { // the last message may not have arrived
				l.sendStartedLocked(g.exec, "")
			}
		} else {
			l.Log.Info("lease not known to the daemon", "lease", g.ref().LeaseID)
			l.endLocked(g, wire.ReleasedDisconnected, errDaemonGone)
		}
	}
	for id, h := range theirs {
		reason := wire.ReleasedDisconnected
		if g := l.findEndedLocked(id); g != nil {
			l.resendEndLocked(g, h)
			reason = g.ending
		}
		l.send(&wire.ShellLeaseReleased{LeaseRef: wire.LeaseRef{LeaseID: id, Fence: h.Fence}, Reason: reason})
	}
	l.inform = l.taken // the daemon has no state of the shell on this link yet
	l.changedLocked()
	l.wakeWorker()
}

// resendEndLocked sends a command's end again to a daemon that still waits for it.
func (l *Lender) resendEndLocked(g *grant, h wire.HeldLease) {
	if g.last != nil && g.last.ExecutionID == h.ExecutionID {
		l.send(g.last)
	}
}

// Down records that the link was lost. Waiting offers are dropped, since the daemon makes them again. The current lease and
// its command continue for wire.LeaseGrace.
func (l *Lender) Down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up {
		return
	}
	l.up = false
	l.forgetLocked()
	if l.grant != nil {
		l.grace = time.AfterFunc(wire.LeaseGrace, l.graceOver)
	}
	l.changedLocked()
}

func (l *Lender) graceOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up || l.grant == nil {
		return
	}
	l.endLocked(l.grant, wire.ReleasedDisconnected, errLinkLost)
	l.changedLocked()
}
