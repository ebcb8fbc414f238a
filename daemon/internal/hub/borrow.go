package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/lease/confine"
	"sublet/wire"
	"sublet/wire/visible"
)

// borrow is one wish for a shell, from queue to end. The blocking side waits on its channels; the lender closes them
// under its own lock, so each is closed once.
type borrow struct {
	lender *lender
	ctx    context.Context // the borrower's: once it has ended nothing begins
	wish   wish
	lease  lease.Lease // the lender's, under its lock

	ended     chan struct{}
	completed chan *wire.CommandCompleted // holds one
	unfit     chan error                  // holds one: why the command was not handed over although the shell was had

	// guarded by the lender's mu
	// As the client reported: what the user does with the shell, and why it cannot be lent at all.
	why, broken string
	ready       bool // what is to be written down before the command runs is, and it is still wanted
	begun       bool // it was handed to the client, and the user did not come before it

	// Written before the channel that announces them is closed.
	cwd, digest     string        // where the shell stood when it was had; the lender's
	outcome, holder string        // ended
	heldFor         time.Duration // ended
}

// watcher is told how a borrowed command goes. Any of the functions may be nil; they are called one at a time and must
// not block.
type watcher struct {
	queued   func(holder string, held time.Duration, position int, why string)
	acquired func(ref wire.LeaseRef, cwd, digest string)
	started  func()
	output   func(offset int64, data []byte)
}

// wish is what somebody wants to run in a lender's shell.
type wish struct {
	turn      wire.TurnID
	holder    string // shown to the user and to whoever waits
	purpose   string
	wait      time.Duration
	term      time.Duration
	execution wire.ExecutionID
	command   string
	cwd       string // "" = the shell's own
	timeout   time.Duration
	approved  *tool.ShellPlace             // nil: wherever the shell stands
	confine   confine.Spec                 // what the kernel holds it to; without a reach it runs in the shell itself
	holds     func() bool                  // reports whether the scripts that it was judged by still are what they were; nil: there are none
	vetted    bool                         // a person wanted this very command
	job       string                       // folder of a background job, which the command becomes; "" = it runs in the foreground
	marks     bool                         // an agent's, in the shell itself: what that starts from now on is marked
	undo      bool                         // no command: put back what the last one changed in the shell
	all       bool                         // of undo: what all of them changed
	record    func()                       // writes down that it may run, while the shell is asked for and before anything runs; nil = it is written
	told      func(*wire.CommandCompleted) // takes its end, before the shell goes back; nil = run's result does
	watch     watcher
}

// run takes the shell in its turn, runs the command and gives the shell back, on every path (T2b). Errors are those of
// taking it; what the command did is in the result. When ctx ends, the command is cancelled at once and run returns with
// its end, or when the lease's own bound has passed (T2a).
func (ln *lender) run(ctx context.Context, w wish) (*wire.CommandCompleted, error) {
	return ln.see(ln.ask(ctx, w))
}

// see is run for a wish that is in the queue already.
func (ln *lender) see(b *borrow) (*wire.CommandCompleted, error) {
	defer ln.giveBack(b)
	if b.wish.record != nil {
		b.wish.record()
	}
	ln.recorded(b)
	done, err := ln.await(b)
	if err == nil && b.wish.told != nil {
		b.wish.told(done)
	}
	return done, err
}

// await waits for the command's end.
func (ln *lender) await(b *borrow) (*wire.CommandCompleted, error) {
	select {
	case done := <-b.completed:
		return done, nil
	case err := <-b.unfit:
		return nil, err
	case <-b.ended:
	case <-b.ctx.Done():
		ln.mu.Lock()
		begun := b.begun // if not, it never will be
		ln.apply(ln.m.CancelCommand(time.Now(), &b.lease, cancelReason(b.ctx)))
		ln.mu.Unlock()
		if !begun {
			return nil, context.Cause(b.ctx)
		}
		select { // the lease expires when the command does not end
		case done := <-b.completed:
			return done, nil
		case <-b.ended:
		}
	}
	select { // both at once: the command's own end says more
	case done := <-b.completed:
		return done, nil
	case err := <-b.unfit:
		return nil, err
	default:
	}
	switch { // begun is not written any more once the lease has ended
	case b.begun:
		return b.cutOff(b.wish.execution), nil
	case b.ctx.Err() != nil: // cancelled while it was handed over, and the user came before it
		return nil, context.Cause(b.ctx)
	}
	return nil, b.refusal(time.Since(b.lease.Asked))
}

// ask puts a wish into the queue.
func (ln *lender) ask(ctx context.Context, w wish) *borrow {
	b := &borrow{
		lender: ln, ctx: ctx, wish: w,
		ended: make(chan struct{}), completed: make(chan *wire.CommandCompleted, 1), unfit: make(chan error, 1),
	}
	ln.hub.shells.sawBelow(ln.owner.pid)
	ln.mu.Lock()
	defer ln.mu.Unlock()
	now := time.Now()
	ln.apply(ln.m.Request(now, &b.lease, lease.Request{
		ID: wire.NewID(), Holder: w.holder, Purpose: w.purpose, Wait: w.wait, Term: w.term, Owner: b,
	}))
	if b.lease.State == lease.Queued && w.watch.queued != nil {
		holder, held := ln.m.Holder(now)
		w.watch.queued(holder, held, ln.m.Position(&b.lease), "")
	}
	return b
}

func (ln *lender) giveBack(b *borrow) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.apply(ln.m.Release(time.Now(), &b.lease))
}

// recorded notes that the command may run as far as its borrower is concerned.
func (ln *lender) recorded(b *borrow) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	b.ready = true
	if b.lease.State == lease.Held {
		ln.beginLocked(b)
	}
}

// beginLocked hands the command to the client as soon as both are there, the shell and the borrower's leave, by whoever
// brings the second of them: the borrower need not be woken for it. It is bound to the place where it was approved.
func (ln *lender) beginLocked(b *borrow) {
	w := &b.wish
	if !b.ready || b.begun || b.ctx.Err() != nil {
		return
	}
	if a := w.approved; a != nil && (a.Cwd != b.cwd || a.StateDigest != b.digest) {
		b.ready = false
		b.unfit <- tool.ErrChanged // given back, judged again (T2d, T3l)
		return
	}
	if w.holds != nil && !w.holds() {
		b.ready = false
		b.unfit <- tool.ErrChanged // somebody changed a script meanwhile
		return
	}
	if w.confine.Reach != "" && !ln.confines {
		b.ready = false
		b.unfit <- tool.ErrChanged // another program has the window by now
		return
	}
	if err := ln.m.Execute(time.Now(), &b.lease, string(w.execution), w.timeout); err != nil {
		b.ready = false
		b.unfit <- fmt.Errorf("%w: %w", ErrLeaseDenied, err)
		return
	}
	b.begun = true
	if w.marks {
		ln.hub.markBelow(ln.owner.pid)
	}
	ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
	if w.undo {
		ln.tell(&wire.RestoreShellState{LeaseRef: ref, ExecutionID: w.execution, TimeoutMS: b.lease.Timeout().Milliseconds(), All: w.all})
		return
	}
	ln.blame = !w.vetted && w.confine.Reach == "" // a child changes nothing in the shell
	if w.vetted {
		ln.vetted = append(ln.vetted[max(0, len(ln.vetted)-vettedKept+1):], w.execution)
	}
	cwd := w.cwd
	if cwd == "" {
		cwd = b.cwd
	}
	ln.tell(&wire.ExecuteLeasedCommand{
		LeaseRef: ref, ExecutionID: w.execution, Command: wire.OSString(w.command), Cwd: wire.OSString(cwd),
		TimeoutMS:   b.lease.Timeout().Milliseconds(),
		Fingerprint: wire.Fingerprint(wire.OSString(w.command), wire.OSString(cwd), b.digest), Confine: wireConfinement(w.confine),
		Job: wire.OSString(w.job),
	})
}

// vettedKept is how many commands that a person wanted are remembered by a lender: more than what is told late is the work of.
const vettedKept = 64

// maxWhy bounds what a client says for people, in bytes.
const maxWhy = 256

// refusal is why a borrower did not get the shell.
func (b *borrow) refusal(waited time.Duration) error {
	if b.broken != "" {
		return &tool.BrokenError{Why: b.broken}
	}
	switch b.outcome {
	case lease.TimedOut:
		return &tool.BusyError{Holder: b.holder, Held: b.heldFor, Waited: waited, Why: b.why}
	case lease.NoShell, lease.Disconnected, lease.ShellExited:
		return tool.ErrNoShell
	case lease.Revoked:
		return fmt.Errorf("%w: the user took it back", ErrLeaseDenied)
	case lease.ShuttingDown:
		return ErrShuttingDown
	case lease.Expired:
		return fmt.Errorf("%w: its term ran out before a command was run", ErrLeaseDenied)
	}
	return fmt.Errorf("%w: the user refused", ErrLeaseDenied)
}

// cutOff is the end of a command whose lease ended before the client reported its end.
func (b *borrow) cutOff(id wire.ExecutionID) *wire.CommandCompleted {
	done := &wire.CommandCompleted{ExecutionID: id, Status: wire.StatusCancelled}
	switch b.outcome {
	case lease.Revoked:
		done.Notes = []string{"the user took the shell back while it ran"}
	case lease.ShellExited:
		done.Status = wire.StatusShellExited
		done.Notes = []string{"the user's shell ended while it ran"}
	case lease.Expired:
		switch why := b.lease.CancelReason(); {
		case why == lease.CancelStale: // nobody cancelled it: the lease's term was over
			done.Status = wire.StatusRefused
			done.Notes = []string{fmt.Sprintf("the shell did not start it within %v", b.lease.Term)}
		case !b.lease.Began():
			done.Notes = []string{fmt.Sprintf("the shell had not started it, and did not answer the cancel within %v", lease.CancelBound)}
		default:
			done.Notes = []string{"the shell did not report its end in time; it may still run"}
			if why == lease.CancelTimeout {
				done.Status = wire.StatusTimeout
			}
		}
	default:
		done.Notes = []string{"the user's window was lost while it ran; whether it came to its end is not known"}
	}
	return done
}

// The client's messages. Each is checked against the current lease and fence; what is late, foreign or repeated changes
// nothing (T2e).

func refOf(r wire.LeaseRef) lease.Ref { return lease.Ref{ID: string(r.LeaseID), Fence: r.Fence} }

// Lease takes a message of the client's own leases.
func (c *Client) Lease(m wire.LeaseMessage) error {
	ln := c.lender
	if ln == nil {
		return ErrNotShellOwner
	}
	now, ref := time.Now(), refOf(*m.Ref())
	if out, ok := m.(*wire.CommandOutput); ok {
		ln.output(c, ref, out)
		return nil
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client != c {
		return ErrNotShellOwner // a connection that was replaced
	}
	switch m := m.(type) {
	case *wire.ShellLeaseQueued:
		held := time.Duration(m.HeldMS) * time.Millisecond
		ln.m.Wait(now, ref, m.Holder, held)
		for l := range ln.m.Waiting {
			b := l.Owner.(*borrow)
			if l.Ref() != ref {
				continue
			}
			b.why = visible.Exact(cut(m.Why, maxWhy))
			if b.wish.watch.queued != nil {
				b.wish.watch.queued(m.Holder, held, 0, b.why)
			}
		}
	case *wire.ShellLeaseAcquired:
		var acquired func(ref wire.LeaseRef, cwd, digest string)
		for l := range ln.m.Waiting { // before the grant hands the command over
			if b := l.Owner.(*borrow); l.Ref() == ref && l.State == lease.Offered {
				b.cwd, b.digest = string(m.Cwd), m.State
				acquired = b.wish.watch.acquired
			}
			break
		}
		ln.cwd, ln.digest = string(m.Cwd), m.State
		ln.apply(ln.m.Acquired(now, ref))
		if acquired != nil {
			acquired(wire.LeaseRef{LeaseID: m.LeaseID, Fence: m.Fence}, string(m.Cwd), m.State)
		}
	case *wire.ShellLeaseDenied:
		outcome := lease.Denied
		switch m.Reason {
		case wire.DeniedBroken:
			for l := range ln.m.Waiting {
				if l.Ref() == ref {
					l.Owner.(*borrow).broken = visible.Exact(cut(m.Why, maxWhy))
				}
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
	case *wire.CommandStarted:
		if ln.m.Started(now, ref, string(m.ExecutionID)) {
			if b := ln.m.Current().Owner.(*borrow); b.wish.watch.started != nil {
				b.wish.watch.started()
			}
		}
		ln.m.Keyboard(now, ref, string(m.ExecutionID), m.Keyboard)
		ln.arm()
	case *wire.CommandCompleted:
		l := ln.m.Current()
		ok, effects := ln.m.Completed(now, ref, string(m.ExecutionID))
		if ok {
			if m.Status == wire.StatusCancelled && slices.ContainsFunc(effects, revoked) {
				m.Notes = []string{"its lease was revoked"}
			}
			if m.Cwd != "" {
				ln.cwd = string(m.Cwd)
			}
			l.Owner.(*borrow).completed <- m
		}
		ln.apply(effects)
		if ok && ln.m.Len() > 1 { // who waits need not wait for the borrower as well
			ln.apply(ln.m.Release(now, l))
		}
	case *wire.ShellLeaseReleased:
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
			ln.answer()
		}
		if m.Reason == wire.ReleasedUserFirst && ln.preempted(now, ref) {
			return nil
		}
		ln.apply(ln.m.Gone(now, ref, outcome))
		if ln.known != "" && ln.m.Current() == nil { // on a new link the state comes later
			ln.blame = false
		}
	}
	return nil
}

// preempted puts a borrower back into the line whose command the user came before, between the grant and its start. It
// reports false where that command has begun, or ended.
func (ln *lender) preempted(now time.Time, ref lease.Ref) bool {
	if l := ln.m.Current(); l != nil && l.Ref() == ref {
		b := l.Owner.(*borrow)
		if b.begun && (l.Running() == "" || l.Began()) {
			return false
		}
		b.begun, ln.blame = false, false
	}
	ln.apply(ln.m.Preempted(now, ref, "user"))
	return true
}

// revoked reports whether an effect is the end of a lease that was taken back through the daemon.
func revoked(e lease.Effect) bool { return e.Do == lease.End && e.Reason == lease.Revoked }

// output passes live output on, without the lock: it comes from the connection's one reader, so it stays in order.
func (ln *lender) output(c *Client, ref lease.Ref, m *wire.CommandOutput) {
	ln.mu.Lock()
	var to func(int64, []byte)
	if ln.client == c && ln.m.Output(ref, string(m.ExecutionID)) {
		to = ln.m.Current().Owner.(*borrow).wish.watch.output
	}
	ln.mu.Unlock()
	if to != nil {
		to(m.Offset, m.Data)
	}
}
