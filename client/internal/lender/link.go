package lender

import (
	"maps"
	"time"

	"sublet/wire"
)

// Snapshot fills in what the shell knows: environment, directory, and the leases as this side believes them to be,
// those included whose end the daemon may not have heard.
func (l *Lender) Snapshot(s *wire.EnvSnapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Digest != "" {
		l.sentEnv = Public(l.state.Vars)
	}
	s.Env = maps.Clone(l.sentEnv)
	s.Cwd = wire.OSString(l.dir)
	s.Leases = []wire.HeldLease{}
	held := l.ended
	if l.grant != nil {
		held = append(held[:len(held):len(held)], l.grant)
	}
	for _, g := range held {
		s.Leases = append(s.Leases, wire.HeldLease{LeaseID: g.ref().LeaseID, Fence: g.ref().Fence, ExecutionID: g.execution()})
	}
}

// execution is the command that runs under g, else the last one.
func (g *grant) execution() wire.ExecutionID {
	switch {
	case g.exec != nil:
		return g.exec.msg.ExecutionID
	case g.last != nil:
		return g.last.ExecutionID
	}
	return ""
}

// Up takes a new link into use: both sides drop what the other does not know, and what ended meanwhile is told. A
// lease that the daemon does not list (it is another one, or gave up) ends here, its command with it.
func (l *Lender) Up(r *wire.Ready) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = true
	l.told, l.newest = "", 0 // fences are the daemon's; nothing of an earlier link can arrive on this one
	l.bodies = nil
	l.untold, l.toldOf = joined(l.toldOf, l.untold...), nil // what was told last may not have come
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
			l.tellLastLocked(g, h)
			if g.exec != nil && g.exec.handed { // what was sent last may not have come
				l.tellStartedLocked(g.exec)
			}
		} else {
			l.log.Info("lease not known to the daemon", "lease", g.ref().LeaseID)
			l.endLocked(g, wire.ReleasedDisconnected, errDaemonGone)
		}
	}
	for id, h := range theirs {
		reason := wire.ReleasedDisconnected
		if g := l.endedLocked(wire.LeaseRef{LeaseID: id}); g != nil {
			l.tellLastLocked(g, h)
			reason = g.reason
		}
		l.send(&wire.ShellLeaseReleased{LeaseRef: wire.LeaseRef{LeaseID: id, Fence: h.Fence}, Reason: reason})
	}
	l.inform = l.taken // this link knows nothing of the shell's state yet
	l.changedLocked()
	l.stir()
}

// tellLastLocked sends a command's end again to a daemon that still waits for it.
func (l *Lender) tellLastLocked(g *grant, h wire.HeldLease) {
	if g.last != nil && g.last.ExecutionID == h.ExecutionID {
		l.send(g.last)
	}
}

// Down notes that the link is lost. What waited waits no longer: the daemon offers again. A lease in force, and the
// command that runs under it, go on for wire.LeaseGrace.
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
