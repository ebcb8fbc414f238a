package lend

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"sublet/lease"
	"sublet/wire"
)

// Lender is one client's shell and the queue for it. It outlives a lost connection by up to lease.Grace, so that a client that
// comes back finds its running command, and those who wait keep their place.
type Lender struct {
	shells *Shells
	owner  Owner

	mu sync.Mutex
	// below: guarded by mu
	m       *lease.Manager
	timer   *time.Timer // set to the queue's next deadline
	closed  bool
	conn    connection
	view    view  // what is known of the shell
	trust   trust // what of that no person has approved
	uses    uses
	typedAt time.Time
	// A release that the client has not answered yet: what it sends before the answer is what the command left behind.
	unanswered lease.Ref
	answered   chan struct{}
}

// connection is a lender's link to its client, and what the program at its other end can do.
type connection struct {
	window       Window   // nil while the link is down
	capabilities []string // wire.CapRestore and others

	shown  *wire.ShellQueueChanged // the last one sent on this link; nil = nobody waits
	lostAt time.Time               // when the link was lost
	grace  *time.Timer             // closes the lender after that
}

func (c *connection) can(capability string) bool { return slices.Contains(c.capabilities, capability) }

// Can reports whether the lender's client has a capability, such as wire.CapConfine.
func (ln *Lender) Can(capability string) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.conn.can(capability)
}

func newLender(s *Shells, o Owner) *Lender {
	return &Lender{
		shells: s, owner: o, m: lease.NewManager(&s.fences), typedAt: time.Now(),
		view: view{reported: make(chan struct{})}, uses: uses{asked: map[uint64]chan<- *wire.ShellUseReply{}},
	}
}

// PID returns the pid that the client reported.
func (ln *Lender) PID() int { return ln.owner.reported }

// Window returns the connection of the lender's client, nil while the link is down.
func (ln *Lender) Window() Window {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.conn.window
}

// link makes w the lender's connection and sends it ready. The lease under which the client still runs its command is kept and added to
// ready; any other ends. An older connection is ended, because each of two would get the other's messages. link returns false, and has
// done nothing, if the lender is closed.
func (ln *Lender) link(w Window, env *wire.EnvSnapshot, ready *wire.Ready) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.closed {
		return false
	}
	if ln.conn.grace != nil {
		ln.conn.grace.Stop()
	}
	if old := ln.conn.window; old != nil {
		old.End(&wire.Error{
			Code: wire.CodeDuplicateID, Message: fmt.Sprintf("another connection lends the shell of client %d now", ln.PID()),
			Hint:    "a process that lends several shells gives each a client.pid of its own",
			Details: map[string]string{"client_pid": strconv.Itoa(ln.PID())},
		})
	}
	ln.conn = connection{window: w, capabilities: env.Capabilities}
	ln.view.link(env)
	ln.releaseAnswered()
	var refs []lease.Ref
	var executions []string
	for _, h := range env.Leases {
		refs = append(refs, lease.Ref{ID: string(h.LeaseID), Fence: h.Fence})
		executions = append(executions, string(h.ExecutionID))
	}
	adopted, effects := ln.m.Reconnect(time.Now(), refs, executions)
	if adopted != nil {
		ready.Leases = append(ready.Leases, wire.HeldLease{
			LeaseID: wire.LeaseID(adopted.ID), Fence: adopted.Fence, ExecutionID: wire.ExecutionID(adopted.Running()),
		})
	}
	w.Send(ready)
	ln.apply(effects)
	return true
}

// Unlink notes that the client's connection ended; the lender is closed later if the client does not come back (see lost). A connection that
// was replaced already changes nothing.
func (ln *Lender) Unlink(w Window) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window != w {
		return
	}
	ln.conn.window = nil
	ln.releaseAnswered()
	ln.apply(ln.m.Disconnect(time.Now()))
	ln.conn.lostAt = time.Now()
	ln.conn.grace = time.AfterFunc(goneEvery, ln.lost)
}

// goneEvery is how often to check whether a client whose link dropped has ended; if so, it is not waited for.
const goneEvery = time.Second

// lost closes the lender of a client that has ended, or has not come back within the grace.
func (ln *Lender) lost() {
	if ln.closeLost() {
		ln.shells.forget(ln)
	}
}

// closeLost ends every lease if the client is lost for good, and reports whether it did. Otherwise lost is called again later.
func (ln *Lender) closeLost() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window != nil || ln.closed {
		return false
	}
	if left := time.Until(ln.conn.lostAt.Add(lease.Grace)); left > 0 && !ln.owner.gone() {
		ln.conn.grace.Reset(min(left, goneEvery))
		return false
	}
	ln.closeLocked(lease.NoShell)
	return true
}

// close ends every lease and forgets the lender.
func (ln *Lender) close(outcome string) {
	ln.mu.Lock()
	ln.closeLocked(outcome)
	ln.mu.Unlock()
	ln.shells.forget(ln)
}

func (ln *Lender) closeLocked(outcome string) {
	ln.closed = true
	ln.apply(ln.m.Close(time.Now(), outcome))
	if ln.conn.grace != nil {
		ln.conn.grace.Stop()
	}
	ln.releaseAnswered()
}

// apply carries out effects and sets the timer. Called with mu held: messages leave in the order of the decisions.
func (ln *Lender) apply(effects []lease.Effect) {
	for _, e := range effects {
		var b *borrow
		if e.Lease != nil {
			b = e.Lease.Owner.(*borrow)
		}
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(e.Ref.ID), Fence: e.Ref.Fence}
		switch e.Do {
		case lease.Offer:
			ln.send(&wire.AcquireShellLease{
				LeaseRef: ref, TurnID: b.request.Turn, Agent: e.Lease.Holder, Purpose: e.Lease.Purpose,
				WaitMS: max(0, e.Lease.Wait-time.Since(e.Lease.Asked)).Milliseconds(), TermMS: e.Lease.Term.Milliseconds(),
			})
		case lease.Grant:
			ln.beginLocked(b)
			ln.shells.log.Info("lease granted", "lease", e.Ref.ID, "fence", e.Ref.Fence, "agent", e.Lease.Holder, "client", ln.PID())
		case lease.Cancel:
			ln.send(&wire.CancelLeasedCommand{LeaseRef: ref, ExecutionID: wire.ExecutionID(e.Execution), Reason: e.Reason})
		case lease.Release:
			ln.send(&wire.ReleaseShellLease{LeaseRef: ref, Reason: e.Reason})
			if e.Lease != nil && ln.conn.window != nil {
				ln.releaseAnswered()
				ln.unanswered, ln.answered = e.Ref, make(chan struct{})
			}
		case lease.End:
			b.outcome, b.holder, b.heldFor = e.Reason, e.Holder, e.HeldFor
			close(b.ended)
			ln.shells.log.Info("lease ended", "lease", e.Ref.ID, "outcome", e.Reason, "client", ln.PID())
		}
	}
	ln.setTimer()
	ln.sendQueue()
}

// sendQueue sends the client the list of those who wait for its shell if it differs from the list sent last. It is called with mu held.
func (ln *Lender) sendQueue() {
	if ln.conn.window == nil || !ln.conn.can(wire.CapQueue) || ln.m.Len() < 2 && ln.conn.shown == nil {
		return
	}
	now := &wire.ShellQueueChanged{Waiting: []wire.LeaseWaiter{}}
	behind := 0
	for l := range ln.m.Waiting {
		if l.State == lease.Offered {
			continue // the client has it in hand
		}
		if behind++; behind > wire.ShellQueueNamed {
			break
		}
		now.Waiting = append(now.Waiting, waiter(l, time.Now()))
	}
	if behind > wire.ShellQueueNamed { // all but the one in hand, and the named
		now.More = ln.m.Len() - 1 - wire.ShellQueueNamed
	}
	switch {
	case ln.conn.shown == nil && len(now.Waiting) == 0:
		return
	case ln.conn.shown != nil && ln.conn.shown.More == now.More && slices.EqualFunc(ln.conn.shown.Waiting, now.Waiting, sameWaiter):
		return
	}
	ln.send(now)
	if ln.conn.shown = now; len(now.Waiting) == 0 {
		ln.conn.shown = nil
	}
}

func sameWaiter(a, b wire.LeaseWaiter) bool { return a.LeaseID == b.LeaseID }

// releaseAnswered ends the wait of Where for the client's answer to a release: it came, or is not waited for any more. It is called with
// mu held.
func (ln *Lender) releaseAnswered() {
	if ln.answered != nil {
		close(ln.answered)
	}
	ln.unanswered, ln.answered = lease.Ref{}, nil
}

// send queues a message for the client, if it is connected. It is called with mu held.
func (ln *Lender) send(m wire.Message) {
	if ln.conn.window != nil {
		ln.conn.window.Send(m)
	}
}

// setTimer sets the timer to the queue's next deadline. It is called with mu held.
func (ln *Lender) setTimer() {
	at, ok := ln.m.NextDeadline()
	if !ok {
		if ln.timer != nil {
			ln.timer.Stop()
		}
		return
	}
	wait := max(0, time.Until(at))
	if ln.timer == nil {
		ln.timer = time.AfterFunc(wait, ln.tick)
		return
	}
	ln.timer.Reset(wait)
}

func (ln *Lender) tick() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.apply(ln.m.Tick(time.Now()))
}

// Busy reports whether anybody holds the shell or waits for it.
func (ln *Lender) Busy() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.m.Len() > 0
}

// Linked reports whether the client is connected; open, whether it may still come back.
func (ln *Lender) Linked() (linked, open bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.conn.window != nil, !ln.closed
}

// Typed records when the user last typed in the shell's window.
func (ln *Lender) Typed(at time.Time) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.typedLocked(at)
}

func (ln *Lender) typedLocked(at time.Time) {
	if at.After(ln.typedAt) {
		ln.typedAt = at
	}
}

// revoke ends the lease with that id, or all (""), and reports whether there was one.
func (ln *Lender) revoke(id wire.LeaseID) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	var list []*lease.Lease
	if l := ln.m.Current(); l != nil {
		list = append(list, l)
	}
	for l := range ln.m.Waiting {
		list = append(list, l)
	}
	found := false
	for i := len(list) - 1; i >= 0; i-- { // waiters first, so that none is offered what it is about to lose
		if l := list[i]; id == "" || l.ID == string(id) {
			found = true
			ln.apply(ln.m.Revoke(time.Now(), l))
		}
	}
	return found
}
