package lend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/lease/confine"
	"sublet/wire"
)

// borrow is one request for a shell, from queue to end. await waits on its channels, to which the lender sends, or closes ended, under
// its lock and once.
type borrow struct {
	ctx     context.Context // the borrower's: once it has ended nothing begins
	request request
	lease   lease.Lease // the lender's, under its lock

	ended     chan struct{}
	completed chan *wire.CommandCompleted // holds one
	unfit     chan error                  // holds one: why the command was not handed over although the shell was granted

	// guarded by the lender's mu
	// As the client reported: what the user does with the shell, and why it cannot be lent at all.
	why, broken string
	ready       bool // the borrower has recorded that the command may run, and it is still wanted
	begun       bool // it was handed to the client, and the user did not come before it

	// Written before ended is closed.
	outcome, holder string
	heldFor         time.Duration
}

// Terms are those on which a shell is borrowed.
type Terms struct {
	Turn   wire.TurnID
	Holder string        // shown to the user and to those who wait
	Wait   time.Duration // in the queue
	Term   time.Duration // of the lease, before the command begins
	// Watch is called with what becomes of the command: ShellLeaseQueued, ShellLeaseAcquired, CommandStarted, CommandOutput and, before the
	// shell is given back, CommandCompleted. It may change the ids of the lease in a message, and must not block. nil: nobody watches.
	Watch func(wire.LeaseMessage)
}

// request is what is to run in a lender's shell.
type request struct {
	Terms
	Command
	own  bool // the user's own command: it may run wherever the shell is, and what it starts is not an agent's
	undo bool // no command: undo what the last one changed in the shell, or
	all  bool // what all of them changed
	// continuation is how the command can go on as a job; nil = it cannot.
	continuation *continuation
	record       func() // records that it may run, while the shell is asked for and before anything runs; nil = already recorded
}

// run takes the shell in its turn, runs the command and gives the shell back, on every path. Errors are those of
// taking it; what the command did is in the result. When ctx ends, the command is cancelled at once and run returns with
// its end, or when the lease's own bound has passed.
func (ln *Lender) run(ctx context.Context, r request) (*wire.CommandCompleted, error) {
	return ln.carryOut(ln.enqueue(ctx, r))
}

// carryOut is run for a request that enqueue has put into the queue.
func (ln *Lender) carryOut(b *borrow) (*wire.CommandCompleted, error) {
	defer ln.giveBack(b)
	if b.request.record != nil {
		b.request.record()
	}
	ln.markReady(b)
	done, err := ln.await(b)
	if err == nil {
		b.report(done)
	}
	return done, err
}

// report calls Terms.Watch.
func (b *borrow) report(m wire.LeaseMessage) {
	if b.request.Watch != nil {
		b.request.Watch(m)
	}
}

// await waits for the command's end.
func (ln *Lender) await(b *borrow) (*wire.CommandCompleted, error) {
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
	select { // the command's own end, if both came at once: it has the result
	case done := <-b.completed:
		return done, nil
	case err := <-b.unfit:
		return nil, err
	default:
	}
	switch { // begun is not written any more once the lease has ended
	case b.begun:
		return b.cutOff(), nil
	case b.ctx.Err() != nil: // cancelled while it was handed over, and the user came before it
		return nil, context.Cause(b.ctx)
	}
	return nil, b.refusal(time.Since(b.lease.Asked))
}

// enqueue puts a request into the queue.
func (ln *Lender) enqueue(ctx context.Context, r request) *borrow {
	b := &borrow{
		ctx: ctx, request: r,
		ended: make(chan struct{}), completed: make(chan *wire.CommandCompleted, 1), unfit: make(chan error, 1),
	}
	ln.shells.agentSessions.rememberShellsOf(ln.owner.pid) // what runs in them counts as inside a shell that agents use
	ln.mu.Lock()
	defer ln.mu.Unlock()
	now := time.Now()
	ln.apply(ln.m.Request(now, &b.lease, lease.Request{
		ID: wire.NewID(), Holder: r.Holder, Purpose: r.Purpose, Wait: r.Wait, Term: r.Term, Owner: b,
	}))
	if b.lease.State == lease.Queued {
		holder, held := ln.m.Holder(now)
		b.report(&wire.ShellLeaseQueued{Holder: holder, HeldMS: held.Milliseconds(), Position: ln.m.Position(&b.lease)})
	}
	return b
}

func (ln *Lender) giveBack(b *borrow) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.apply(ln.m.Release(time.Now(), &b.lease))
}

// markReady notes that the command may run as far as its borrower is concerned.
func (ln *Lender) markReady(b *borrow) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	b.ready = true
	if b.lease.State == lease.Held {
		ln.beginLocked(b)
	}
}

// beginLocked hands the command to the client once the shell is granted and the borrower has recorded that it may run.
// Whichever comes second calls it, so that no goroutine has to be woken. If the place, a script, or the client is no longer the
// one that was approved, it hands nothing over: the borrower gets tool.ErrChanged, gives the shell back, and the command is
// judged again.
func (ln *Lender) beginLocked(b *borrow) {
	r := &b.request
	if !b.ready || b.begun || b.ctx.Err() != nil {
		return
	}
	id, confined := wire.ExecutionID(r.ExecutionID), r.Confine.Reach != ""
	moved := !r.own && !r.undo && (r.Approved.Cwd != ln.view.cwd || r.Approved.StateDigest != ln.view.digest)
	edited := r.Approval.Holds != nil && !r.Approval.Holds() // a script that it runs
	replaced := confined && !ln.conn.can(wire.CapConfine)    // another program has the window by now
	if moved || edited || replaced {
		b.ready = false
		b.unfit <- tool.ErrChanged
		return
	}
	if err := ln.m.Execute(time.Now(), &b.lease, r.ExecutionID, r.Timeout); err != nil {
		b.ready = false
		b.unfit <- fmt.Errorf("%w: %w", ErrDenied, err)
		return
	}
	b.begun = true
	ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
	if r.undo {
		ln.send(&wire.RestoreShellState{LeaseRef: ref, ExecutionID: id, TimeoutMS: b.lease.Timeout().Milliseconds(), All: r.all})
		return
	}
	if !r.own && !confined && !r.Approval.Literal {
		ln.shells.markShellsOf(ln.owner.pid)
	}
	if r.Approval.Person {
		ln.trust.wanted(id)
	}
	command, cwd := wire.OSString(r.Text), wire.OSString(cmp.Or(r.Cwd, ln.view.cwd))
	ln.send(&wire.ExecuteLeasedCommand{
		LeaseRef: ref, ExecutionID: id, Command: command, Cwd: cwd, TimeoutMS: b.lease.Timeout().Milliseconds(),
		Fingerprint: wire.Fingerprint(command, cwd, ln.view.digest), Confine: wireConfinement(r.Confine), Job: wire.OSString(r.folder()), Continue: r.continuation != nil,
	})
}

// maxWhy bounds an explanation of a client, which people are shown, in bytes.
const maxWhy = 256

// refusal returns the error of a borrower that did not get the shell: the client's reason if its shell is broken, else that of b.outcome.
// waited is the time since the borrower asked.
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
		return fmt.Errorf("%w: the user took it back", ErrDenied)
	case lease.ShuttingDown:
		return ErrShuttingDown
	case lease.Expired:
		return fmt.Errorf("%w: its term ran out before a command was run", ErrDenied)
	}
	return fmt.Errorf("%w: the user refused", ErrDenied)
}

// cutOff is the end of a command whose lease ended before the client reported its end.
func (b *borrow) cutOff() *wire.CommandCompleted {
	done := &wire.CommandCompleted{ExecutionID: wire.ExecutionID(b.request.ExecutionID), Status: wire.StatusCancelled}
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

// cancelReason returns the reason field of a CancelLeasedCommand.
func cancelReason(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return lease.CancelTimeout
	}
	return lease.CancelUser
}

// wireConfinement converts a confinement for the wire, where no list is nil. Without a reach the command is not confined.
func wireConfinement(s confine.Spec) wire.Confinement {
	c := wire.Confinement{Reach: s.Reach, Project: wire.OSString(s.Project), Caches: []wire.OSString{}, Hidden: []wire.OSString{}, Proxy: wire.OSString(s.Proxy)}
	for _, dir := range s.Caches {
		c.Caches = append(c.Caches, wire.OSString(dir))
	}
	for _, path := range s.Hidden {
		c.Hidden = append(c.Hidden, wire.OSString(path))
	}
	return c
}

// answerBound is how long a shell that runs no command may take to report its state or to put it back, for which it runs only builtins.
const answerBound = 10 * time.Second

// Restore undoes the last change that a borrowed command made to the shell, or (all) every such change. changed describes in one line
// what was undone, left what could not be; "" = nothing.
func (ln *Lender) Restore(ctx context.Context, id wire.ExecutionID, all bool, on Terms) (changed, left string, err error) {
	if !ln.Can(wire.CapRestore) {
		return "", "", errors.New("the client that lends the shell cannot put its state back; it is older than the daemon")
	}
	c := tool.Command{ExecutionID: string(id), Purpose: "put back what changed in the shell", Timeout: answerBound}
	done, err := ln.run(ctx, request{Terms: on, Command: Command{Command: c}, undo: true, all: all})
	switch {
	case err != nil:
		return "", "", err
	case done.Status != wire.StatusOK:
		return "", "", fmt.Errorf("the shell's state was not put back (%s): %s", done.Status, strings.Join(done.Notes, "; "))
	}
	return string(done.Output), strings.Join(done.Notes, "; "), nil
}
