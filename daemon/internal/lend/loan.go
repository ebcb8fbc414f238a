package lend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/wire"
	"sublet/wire/visible"
)

// A Relay sends what becomes of a command in a window's shell to the client that asked for it, with the id of its request.
type Relay struct {
	request wire.RequestID
	send    func(wire.Message)
	ref     atomic.Pointer[wire.LeaseRef]
}

// NewRelay returns a Relay for that request.
func NewRelay(request wire.RequestID, send func(wire.Message)) *Relay {
	r := &Relay{request: request, send: send}
	r.ref.Store(&wire.LeaseRef{RequestID: request})
	return r
}

// Ref returns the lease, whose own id is known while its borrower has the shell.
func (r *Relay) Ref() wire.LeaseRef { return *r.ref.Load() }

// Pass sends a message about the command: it can be Terms.Watch.
func (r *Relay) Pass(m wire.LeaseMessage) {
	switch m.(type) {
	case *wire.ShellLeaseQueued: // also for who had it and goes back into the queue
		r.ref.Store(&wire.LeaseRef{RequestID: r.request})
	case *wire.ShellLeaseAcquired:
		r.ref.Store(&wire.LeaseRef{LeaseID: m.Ref().LeaseID, Fence: m.Ref().Fence, RequestID: r.request})
	}
	*m.Ref() = r.Ref()
	r.send(m)
}

// Loan is a command of the user's own that a client borrows another's shell for. The lease's events answer, with the request's id, up
// to ShellLeaseReleased or ShellLeaseDenied.
type Loan struct {
	Request *wire.LeaseRunRequest
	Who     string        // the client, for the audit log
	Wait    time.Duration // in the queue, and
	Term    time.Duration // of the lease, and
	Timeout time.Duration // of the command, where the request says nothing
	Relay   *Relay
	Audit   func(store.AuditEntry)
}

// Check returns an error if a field of the request is invalid.
func Check(r *wire.LeaseRunRequest) error {
	switch {
	case r.Command == "":
		return fmt.Errorf("command: is empty")
	case strings.ContainsRune(string(r.Command), 0):
		return fmt.Errorf("command: contains a NUL byte")
	case r.Cwd != "" && !filepath.IsAbs(string(r.Cwd)):
		return fmt.Errorf("cwd: %s is not absolute", visible.Exact(string(r.Cwd)))
	case r.WaitMS < 0 || r.TimeoutMS < 0:
		return fmt.Errorf("wait_ms and timeout_ms must not be less than 0")
	case r.TimeoutMS > lease.MaxTimeout.Milliseconds():
		return fmt.Errorf("timeout_ms: %d is more than the limit of %d", r.TimeoutMS, lease.MaxTimeout.Milliseconds())
	}
	return nil
}

// Lend puts the user's own command l into the shell's queue. The caller must call run, in any goroutine: it runs the command when its turn
// has come, sends its events, and returns the last of them when the shell is given back.
func (ln *Lender) Lend(ctx context.Context, l Loan) (run func() wire.Message) {
	r, execution, began := l.Request, wire.ExecutionID(wire.NewID()), time.Now()
	decision := store.AuditEntry{
		At: began, Event: "decision", Agent: l.Who, Tool: "lease run", Command: mask.String(string(r.Command)),
		Cwd: string(r.Cwd), Decision: "allow", By: "the user's own act",
	}
	auditEnd := func(status string, exitCode *int) {
		e := decision
		e.Event, e.Decision, e.At, e.DurationMS = "execution", "", time.Now(), time.Since(began).Milliseconds()
		e.Status, e.ExitCode = status, exitCode
		l.Audit(e)
	}
	c := tool.Command{
		ExecutionID: string(execution), Text: string(r.Command), Cwd: string(r.Cwd), Timeout: cmp.Or(milliseconds(r.TimeoutMS), l.Timeout),
		Purpose: visible.Cut(visible.FirstLine(string(r.Command)), 120), Approval: tool.Approval{Person: true},
	}
	on := Terms{Holder: "lease run", Wait: cmp.Or(milliseconds(r.WaitMS), l.Wait), Term: l.Term, Watch: func(m wire.LeaseMessage) {
		if done, ok := m.(*wire.CommandCompleted); ok {
			auditEnd(done.Status, done.ExitCode) // it is in the audit log before its client is sent it
		}
		l.Relay.Pass(m)
	}}
	b := ln.enqueue(ctx, request{
		Terms: on, Command: Command{Command: c}, own: true, record: func() { l.Audit(decision) },
	})
	return func() wire.Message {
		if _, err := ln.carryOut(b); err != nil {
			auditEnd(wire.StatusRefused, nil)
			return denial(l.Relay.Ref(), err)
		}
		return &wire.ShellLeaseReleased{LeaseRef: l.Relay.Ref(), Reason: releasedFor(b.outcome)}
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// releasedFor returns the reason of a ShellLeaseReleased for the outcome of a lease.
func releasedFor(outcome string) string {
	switch outcome {
	case lease.Revoked:
		return wire.ReleasedByUser
	case lease.Expired:
		return wire.ReleasedExpired
	case lease.ShellExited:
		return wire.ReleasedShellExited
	case lease.Disconnected, lease.NoShell, lease.ShuttingDown:
		return wire.ReleasedDisconnected
	}
	return wire.ReleasedReleased
}

// denial returns the answer to a borrower that did not get the shell because of err: an Error if the borrower cancelled its request, else a
// ShellLeaseDenied with the reason.
func denial(ref wire.LeaseRef, err error) wire.Message {
	m := &wire.ShellLeaseDenied{LeaseRef: ref, Reason: wire.DeniedUser}
	busy, isBusy := errors.AsType[*tool.BusyError](err)
	broken, isBroken := errors.AsType[*tool.BrokenError](err)
	switch {
	case isBusy:
		m.Reason, m.Holder, m.HeldMS, m.Why = wire.DeniedTimeout, busy.Holder, busy.Held.Milliseconds(), busy.Why
	case isBroken:
		m.Reason, m.Why = wire.DeniedBroken, broken.Why
	case errors.Is(err, tool.ErrNoShell):
		m.Reason = wire.DeniedNoShell
	case errors.Is(err, ErrShuttingDown):
		m.Reason = wire.DeniedShuttingDown
	case errors.Is(err, context.Canceled):
		return &wire.Error{
			Event: wire.Event{RequestID: ref.RequestID}, Code: wire.CodeCancelled, Message: err.Error(),
			Details: map[string]string{}, Recoverable: true,
		}
	}
	return m
}
